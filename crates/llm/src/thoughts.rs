//! Finds thoughts that a server left in the text of an answer.
//!
//! Local servers without a parser for a reasoning model pass on the whole text of the model: its thoughts between
//! `<think>` and `</think>`, followed by the answer. If the prompt ends with `<think>`, the text has only the closing
//! tag.

/// The tags around thoughts.
const TAGS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>")];

/// Returns the place in `text` where the answer begins, after the thoughts. Returns `None` if this place is not known
/// yet because `text` is not complete. If a complete text consists of unfinished thoughts, its answer is empty.
pub(super) fn answer_begins(text: &str, is_complete: bool) -> Option<usize> {
    let mut begin = 0;
    loop {
        let rest = text[begin..].trim_start();
        let at = text.len() - rest.len();
        if let Some((opening, closing)) = TAGS.iter().find(|(opening, _)| rest.starts_with(opening)) {
            match rest[opening.len()..].find(closing) {
                Some(end) => begin = at + opening.len() + end + closing.len(),
                None => return is_complete.then_some(text.len()),
            }
            continue;
        }
        if !is_complete {
            let may_open = TAGS.iter().any(|(opening, _)| opening.starts_with(rest));
            return if may_open { None } else { Some(if begin > 0 { at } else { 0 }) };
        }
        return Some(match begin {
            0 => unopened(text).unwrap_or(0),
            _ => at,
        });
    }
}

/// Returns the place after thoughts whose opening tag is missing. Such thoughts end with a closing tag at the end of a
/// line, and the text has no opening tag.
fn unopened(text: &str) -> Option<usize> {
    let (opening, closing) = TAGS[0];
    let at = text.find(closing).filter(|_| !text.contains(opening))?;
    let rest = &text[at + closing.len()..];
    let answer = rest.trim_start();
    let is_line_end = rest.starts_with(['\n', '\r']);
    (is_line_end && !answer.is_empty() && !answer.contains(closing)).then_some(text.len() - answer.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> &str {
        &text[answer_begins(text, true).unwrap()..]
    }

    #[test]
    fn thoughts_at_the_beginning_are_no_part_of_the_answer() {
        for (text, expected) in [
            ("<think>Perhaps a spinlock? No.</think>\n\nUse a mutex.", "Use a mutex."),
            ("\n<think>\n\n</think>\n\nUse a mutex.", "Use a mutex."),
            ("<thinking>a</thinking><think>b</think> Use it.", "Use it."),
            ("Perhaps a spinlock?\n</think>\n\nUse a mutex.", "Use a mutex."),
            ("<think>It never ends", ""),
            ("<think>a</think>", ""),
        ] {
            assert_eq!(answer(text), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_about_thoughts_stays_whole() {
        for text in [
            "Use a mutex.",
            "  Use a mutex.",
            "",
            "The model writes <think> and </think>\naround its thoughts.",
            "Remove everything before `</think>` from the text.",
            "Split at </think>\nand again at </think>\nto get it.",
            "<thinker> is an element.",
        ] {
            assert_eq!(answer(text), text);
        }
    }

    #[test]
    fn a_text_that_arrives_in_pieces_is_shown_once_it_is_known_to_be_the_answer() {
        for (text, begins) in [
            ("", None),
            ("\n<thi", None),
            ("<think>a", None),
            ("<think>a</think>", None),
            ("<think>a</think>\n\nUse", Some(18)),
            ("<thumb", Some(0)),
            ("Use", Some(0)),
        ] {
            assert_eq!(answer_begins(text, false), begins, "{text}");
        }
    }
}
