//! Takes whole sentences and list items from a message, so that no excerpt ends within a sentence.

use std::ops::Range;

use tiro_text::blocks::{self, Kind};
use tiro_text::tokens;

/// The number of bytes of a message that are read before and after a piece. They are needed to recognise the beginning
/// of a list or of code, and the end of a sentence. Arbitrary.
const READ_AROUND: usize = 4 * 1024;

/// This many bytes of a message are read, from the beginning of a piece on. No passage has room for so many. Arbitrary.
const READ: usize = 32 * 1024;

/// Returns the whole sentences and list items of `text` within the bytes `piece`, without markup. If they have more
/// than `most` tokens, returns only the first ones that fit.
///
/// If there is no whole sentence, as in code, returns the first lines of the piece that fit. With a larger `most`, the
/// result begins with the same bytes.
pub fn quote(text: &str, piece: Range<usize>, most: usize) -> String {
    let mut quoted = String::new();
    let mut used = 0;
    let Some((text, piece)) = around(text, piece) else { return String::new() };
    for block in blocks::blocks(text) {
        if !block.is_said() || block.range.end <= piece.start || block.range.start >= piece.end {
            continue;
        }
        let mark = if block.kind == Kind::Item { "- " } else { "" };
        let mut is_first = true;
        for sentence in blocks::sentences(&block) {
            let is_within = piece.start <= sentence.range.start && sentence.range.end <= piece.end;
            if !is_within || !sentence.is_whole() {
                continue;
            }
            let before = match (quoted.is_empty(), is_first) {
                (true, _) => "",
                (_, true) => "\n",
                _ => " ",
            };
            let mark = if is_first { mark } else { "" };
            let next = format!("{before}{mark}{}", sentence.text);
            used += tokens::count(&next);
            if used > most {
                return if quoted.is_empty() { first_lines(&next, most) } else { quoted };
            }
            quoted += &next;
            is_first = false;
        }
    }
    if quoted.is_empty() { first_lines(text.get(piece).unwrap_or_default().trim(), most) } else { quoted }
}

/// Returns whether there is a whole sentence or list item of `text` within the bytes `piece`.
pub fn has_sentence(text: &str, piece: Range<usize>) -> bool {
    let Some((text, piece)) = around(text, piece) else { return false };
    let is_within = |sentence: &blocks::Sentence| {
        piece.start <= sentence.range.start && sentence.range.end <= piece.end && sentence.is_whole()
    };
    let said = blocks::blocks(text).into_iter().filter(|block| block.is_said());
    said.flat_map(|block| blocks::sentences(&block)).any(|sentence| is_within(&sentence))
}

/// Returns the text around the bytes `piece`, and the bytes of the piece in it. A message can have megabytes, so only a
/// part of it is read.
fn around(text: &str, piece: Range<usize>) -> Option<(&str, Range<usize>)> {
    let last = text.floor_char_boundary(piece.end.min(piece.start.saturating_add(READ)));
    let begin = text.floor_char_boundary(piece.start.saturating_sub(READ_AROUND));
    let end = text.floor_char_boundary(last + READ_AROUND);
    Some((text.get(begin..end)?, piece.start - begin..last.max(piece.start) - begin))
}

/// Returns the first lines of `text` that have at most `most` tokens. If the first line has more tokens, returns its
/// first words.
pub fn first_lines(text: &str, most: usize) -> String {
    let cut = tokens::truncate(text, most);
    if cut.len() == text.len() {
        return cut.trim_end().to_owned();
    }
    let at_line = text[cut.len()..].starts_with('\n').then_some(cut.len()).or_else(|| cut.rfind('\n'));
    let end = at_line.or_else(|| cut.rfind(char::is_whitespace)).unwrap_or(cut.len());
    cut[..end].trim_end().to_owned()
}

/// Returns the excerpt of a commit: its subject, then the lines of `piece` with at most `most` tokens. A mark shows
/// where lines between the subject and the piece are left out.
pub fn commit(text: &str, piece: Range<usize>, most: usize) -> String {
    let subject = text.trim_start().lines().next().unwrap_or_default();
    let body = text.get(piece.clone()).unwrap_or_default().trim();
    if text[..piece.start.min(text.len())].trim().is_empty() || body.starts_with(subject) {
        return first_lines(body, most);
    }
    let subject = first_lines(subject, most / 2);
    let left = most.saturating_sub(tokens::count(&subject) + 4);
    format!("{subject}\n… {}", first_lines(body, left))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANSWER: &str = "Sure, let us look at it.\n\n## Steps\n\n1. **Open** the `config.toml` file and read it.\n\
        2. Change the port of the server.\n\n```\nport = 80\n```\n\nThe server then listens on that port. Ask again if it fails.";

    #[test]
    fn whole_sentences_and_items_are_quoted() {
        let all = quote(ANSWER, 0..ANSWER.len(), 100);
        let expected = "Sure, let us look at it.\n- Open the config.toml file and read it.\n- Change the port of the \
            server.\nThe server then listens on that port. Ask again if it fails.";
        assert_eq!(all, expected);
        // A piece that begins and ends within sentences loses them.
        let piece = ANSWER.find("look").unwrap()..ANSWER.find("that port").unwrap();
        assert_eq!(
            quote(ANSWER, piece, 100),
            "- Open the config.toml file and read it.\n- Change the port of the server."
        );
        assert_eq!(quote(ANSWER, 0..ANSWER.len(), 10), "Sure, let us look at it.");
        assert_eq!(quote("```\nlet a = 1;\nlet b = 2;\n```", 0..29, 12), "```\nlet a = 1;");
    }

    /// An earlier version read the whole message, which would take a minute.
    #[test]
    fn of_a_huge_message_only_a_part_is_read() {
        let huge = "A dull line of a log without an end\n".repeat(2_000_000) + "The lamp hangs in room 237.";
        let piece = huge.find("The lamp").unwrap()..huge.len();
        assert_eq!(quote(&huge, piece, 100), "The lamp hangs in room 237.");
        assert!(!quote(&huge, 0..huge.len(), 100).is_empty());
    }

    #[test]
    fn an_excerpt_of_a_commit_begins_with_its_subject() {
        let text = "cache: keep the tiles\n\nThe tiles were made anew for each frame.\nNow they are kept.";
        assert_eq!(commit(text, 0..text.len(), 100), text);
        let piece = text.find("Now").unwrap()..text.len();
        assert_eq!(commit(text, piece, 100), "cache: keep the tiles\n… Now they are kept.");
    }

    proptest! {
        #[test]
        fn a_longer_quotation_begins_with_the_shorter(text in "([A-Z][a-z ]{0,30}[.?!] |\n- [a-z ]{1,20}|```\n[a-z\n]{0,20}```\n){0,12}", most in 1..60usize) {
            let short = quote(&text, 0..text.len(), most);
            let long = quote(&text, 0..text.len(), most + 20);
            prop_assert!(long.starts_with(&short), "{short:?} {long:?}");
            prop_assert!(tokens::count(&short) <= most + 1, "{short:?}");
        }
    }
}
