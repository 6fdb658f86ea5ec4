//! Summarises the changed lines of a commit in a few hundred bytes: the sections that contain them, the names that they
//! add or remove, new words, and added sentences.
//!
//! A commit message says why something changed. But people often search for a changed thing, such as a flag, a function
//! or an error text. The digest puts such words into the index without the whole diff. The digest is made from single
//! lines, so it works for any language. Parsers would find more, but they would take more time and support only some
//! languages. Lock files, minified files and vendored files are left out, because their lines say nothing about the
//! change.

use std::collections::{HashMap, HashSet};

use gix::bstr::ByteSlice;

use super::hunks::Hunk;
use super::names::{Format, WIDTH, clip, indentation, symbol};
use tiro_redact::Redactor;

const HEADING_LIMIT: usize = 40;
const SYMBOL_LIMIT: usize = 60;
const LINE_LIMIT: usize = 8;
const WORD_LIMIT: usize = 40;

/// The largest number of added words of one file that are looked up in its old version.
const FRESH_LIMIT: usize = 1000;

/// The largest number of changed lines that are read in one commit. A commit with more lines is an import of files, not
/// an edit.
const CHANGED_LIMIT: usize = 20_000;

/// How many bytes before the added lines are also searched for secrets, because a block with a key may begin there.
const CONTEXT_OF_SECRETS: usize = 2048;

/// The mark that ends a sentence that was cut.
const CUT: &str = " …";

/// The maximum number of lines above a change that are searched for its heading.
const LOOK_BACK: usize = 400;

/// A summary of the changed lines of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// The headings of the changed lines. A heading is the line, as written, that opens the definition or section
    /// around a change. In order of appearance; at most 40.
    pub headings: Vec<String>,
    /// How many headings are left out.
    pub more_headings: usize,
    /// Names that are defined in added lines but not in removed ones. `added` and `removed` together have at most 60
    /// names.
    pub added: Vec<String>,
    /// Names that are defined in removed lines but not in added ones.
    pub removed: Vec<String>,
    /// How many names `added` and `removed` leave out.
    pub more_symbols: usize,
    /// Added sentences: documentation, comments, texts shown to users; at most 8.
    pub lines: Vec<String>,
    /// Identifiers, flags and words that are new in a changed file, in order of appearance; at most 40.
    pub words: Vec<String>,
}

/// Builds a [`Digest`] file by file.
#[derive(Default)]
pub(crate) struct DigestBuilder {
    headings: Unique,
    added: Unique,
    removed: Unique,
    lines: Vec<(u8, String)>,
    words: Unique,
    dropped: HashSet<String>,
    looked_at: usize,
}

impl DigestBuilder {
    /// Adds the changes of one file.
    pub(crate) fn add(&mut self, path: &str, old: &[u8], new: &[u8], hunks: &[Hunk]) {
        let format = Format::of(path);
        if format == Format::Noise {
            return;
        }
        let mut fresh = Vec::new();
        for Hunk { removed, added } in hunks {
            let (before, after) = (&old[removed.clone()], &new[added.clone()]);
            if self.looked_at > CHANGED_LIMIT {
                break;
            }
            self.looked_at += before.lines().count() + after.lines().count();
            if !old.is_empty() && !new.is_empty() {
                let first = after.lines().chain(before.lines()).find(|line| !line.trim_ascii().is_empty());
                if let Some(heading) = heading(&old[..removed.start], first.unwrap_or_default(), format) {
                    self.headings.push(heading);
                }
            }
            for line in before.lines() {
                if let Some((_, sentence)) = sentence(line, format) {
                    self.dropped.insert(sentence);
                }
                if let Some(symbol) = symbol(line, format) {
                    self.removed.push(symbol);
                }
            }
            let harmless = Harmless::of(&new[added.start.saturating_sub(CONTEXT_OF_SECRETS)..added.end]);
            for line in after.lines() {
                if let Some(symbol) = symbol(line, format).filter(|symbol| harmless.holds(symbol)) {
                    self.added.push(symbol);
                }
                if let Some((rank, sentence)) = sentence(line, format)
                    && harmless.holds(sentence.trim_end_matches(CUT))
                {
                    self.lines.push((rank, sentence));
                }
                if fresh.len() < FRESH_LIMIT && self.words.items.len() < WORD_LIMIT {
                    fresh.extend(words(line).filter(|word| harmless.holds_word(word)));
                }
            }
        }
        if !old.is_empty() && !fresh.is_empty() {
            self.add_new_words(fresh, old);
        }
    }

    /// Adds the words of `fresh` that the old version of the file does not contain.
    fn add_new_words(&mut self, fresh: Vec<&[u8]>, old: &[u8]) {
        let mut is_new: HashMap<&[u8], bool> = fresh.iter().map(|word| (*word, true)).collect();
        // Most words of the old version are not among the few added words. A fast bit map excludes them, so that they
        // need not be looked up in the hash map.
        let mut wanted = [0u64; 1024];
        let bit = |word: &[u8]| {
            let byte = |index: usize| usize::from(word[index]);
            let key = byte(0) ^ byte(1) << 3 ^ byte(2) << 6 ^ byte(word.len() - 1) << 8 ^ word.len() << 11;
            ((key >> 6) & 1023, 1u64 << (key & 63))
        };
        for word in is_new.keys() {
            let (slot, mask) = bit(word);
            wanted[slot] |= mask;
        }
        let mut left = is_new.len();
        for word in words(old) {
            let (slot, mask) = bit(word);
            if wanted[slot] & mask != 0
                && let Some(is_new) = is_new.get_mut(word).filter(|is_new| **is_new)
            {
                *is_new = false;
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
        for word in fresh.into_iter().filter(|word| is_new[word]) {
            self.words.push(word.to_str_lossy().into_owned());
        }
    }

    /// Returns the digest.
    pub(crate) fn finish(self) -> Digest {
        let DigestBuilder { headings, added, removed, mut lines, words, dropped, .. } = self;
        let gone = removed.items.iter().filter(|name| !added.seen.contains(*name)).cloned();
        let come = added.items.iter().filter(|name| !removed.seen.contains(*name)).cloned();
        let (mut added, mut removed): (Vec<String>, Vec<String>) = (come.collect(), gone.collect());
        let symbols = added.len() + removed.len();
        added.truncate(SYMBOL_LIMIT);
        removed.truncate(SYMBOL_LIMIT - added.len().min(SYMBOL_LIMIT));

        lines.sort_by_key(|(rank, _)| *rank);
        let mut sentences = Unique::default();
        for (_, line) in lines.into_iter().filter(|(_, line)| !dropped.contains(line)) {
            sentences.push(line);
        }
        sentences.items.truncate(LINE_LIMIT);
        Digest {
            more_headings: headings.items.len().saturating_sub(HEADING_LIMIT),
            headings: headings.items.into_iter().take(HEADING_LIMIT).collect(),
            more_symbols: symbols - added.len() - removed.len(),
            added,
            removed,
            lines: sentences.items,
            words: words.items.into_iter().take(WORD_LIMIT).collect(),
        }
    }
}

/// The parts of a text that may be quoted without the text around them. A password is recognised only by the text
/// around it. A password that is quoted as a single word would no longer be recognised and redacted, so it must not be
/// quoted at all.
enum Harmless {
    /// All of the text may be quoted: it contains no secret.
    All,
    /// The text contains secrets, so only the rest of the text may be quoted. The set contains the words of that rest.
    Rest(String, HashSet<Vec<u8>>),
}

impl Harmless {
    fn of(text: &[u8]) -> Harmless {
        let text = text.to_str_lossy();
        // The marks that replace secrets contain a keyed hash, but they are dropped below, so any key will do.
        let redacted = Redactor::new([0; 32]).redact(&text);
        if redacted.found.is_empty() {
            return Harmless::All;
        }
        let mut rest = String::with_capacity(redacted.text.len());
        for (number, piece) in redacted.text.split("[REDACTED:").enumerate() {
            let after = if number == 0 { Some(piece) } else { piece.split_once(']').map(|(_, after)| after) };
            rest.push_str(after.unwrap_or_default());
            rest.push('\n');
        }
        let words = words(rest.as_bytes()).map(<[u8]>::to_vec).collect();
        Harmless::Rest(rest, words)
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Harmless::All => true,
            Harmless::Rest(rest, _) => rest.contains(text),
        }
    }

    fn holds_word(&self, word: &[u8]) -> bool {
        match self {
            Harmless::All => true,
            Harmless::Rest(_, words) => words.contains(word),
        }
    }
}

/// Texts in order of appearance, without duplicates.
#[derive(Default)]
struct Unique {
    items: Vec<String>,
    seen: HashSet<String>,
}

impl Unique {
    fn push(&mut self, text: String) {
        if !text.is_empty() && self.seen.insert(text.clone()) {
            self.items.push(text);
        }
    }
}

/// Returns the heading of the line `first`: the line that opens the definition or section around `first`, as
/// written. `above` is the text before `first`.
///
/// In code the heading is the nearest line above that defines a name and is indented less. If no such line exists, the
/// heading is the nearest line that begins with a letter, `_` or `$`, as in git. In prose the heading is the nearest
/// `#` heading.
fn heading(above: &[u8], first: &[u8], format: Format) -> Option<String> {
    let indent = indentation(first);
    let mut fallback = None;
    for line in above.lines().rev().take(LOOK_BACK) {
        let starts = line.first().copied().unwrap_or(b' ');
        if format == Format::Prose {
            if starts == b'#' {
                return Some(clip(line));
            }
            continue;
        }
        if indentation(line) < indent && symbol(line, format).is_some() {
            return Some(clip(line));
        }
        let at_margin = starts.is_ascii_alphabetic() || starts == b'_' || starts == b'$';
        if at_margin && fallback.is_none() {
            fallback = Some(line);
            if indent == 0 {
                break;
            }
        }
    }
    fallback.map(clip)
}

/// Returns the sentence that a line contains, and its rank: 0 (the best) for prose, 1 for comments, 2 for strings in
/// code.
fn sentence(line: &[u8], format: Format) -> Option<(u8, String)> {
    if line.len() > 2000 {
        return None;
    }
    let text = line.to_str().ok()?.trim();
    let (rank, said) = if format == Format::Prose {
        (0, text)
    } else if let Some(comment) = ["///", "//!", "//", "/*", "* ", "# ", "\"\"\"", "-- ", ";; ", "<!-- "]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
    {
        (1, comment.trim_end_matches(['*', '/', '-', '>', '"']))
    } else {
        (2, ['"', '\'', '`'].into_iter().find_map(|quote| within(text, quote).filter(|said| reads(said)))?)
    };
    reads(said).then(|| (rank, beginning(said.trim())))
}

/// Returns the text between the first and the last `quote` of a line of code. If the line has only one quote, a `"`,
/// returns the text after it. An apostrophe within a word doesn't count as a quote.
fn within(line: &str, quote: char) -> Option<&str> {
    let is_quote = |(at, _): &(usize, &str)| {
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        !(is_letter(line[..*at].chars().next_back())
            && is_letter(line[at + quote.len_utf8()..].chars().next()))
    };
    let mut quotes = line.match_indices(quote).filter(is_quote);
    let (first, _) = quotes.next()?;
    let rest = &line[first + quote.len_utf8()..];
    match quotes.next_back() {
        Some((last, _)) => Some(&line[first + quote.len_utf8()..last]),
        None => Some(rest).filter(|_| quote == '"'),
    }
}

/// Returns whether a text reads like a sentence: it has at least four words and consists mostly of words, and it is no
/// table, code or query.
fn reads(said: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.chars().filter(|c| c.is_alphabetic()).count() > 1
            && word.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '’'))
    };
    let said = said.trim();
    let (mut words, mut all, mut lettered) = (0, 0, 0);
    for word in said.split_whitespace() {
        all += 1;
        words += usize::from(is_word(word));
        lettered += usize::from(word.bytes().filter(u8::is_ascii_alphabetic).count() > 1);
    }
    let is_drawn = said.contains("   ") || said.contains("\\n") || said.starts_with('|');
    lettered >= 4 && words * 5 >= all * 3 && !is_drawn
}

/// Returns the text if it has at most 120 bytes, otherwise its beginning. If possible, the beginning ends with a whole
/// sentence. If that is not possible, the beginning ends with a whole word, followed by `…`.
fn beginning(said: &str) -> String {
    if said.len() <= WIDTH {
        return clip(said.as_bytes());
    }
    let head = &said[..said.floor_char_boundary(WIDTH)];
    if let Some(end) = head.rfind(". ").filter(|end| *end >= WIDTH / 3) {
        return head[..=end].to_owned();
    }
    let head = &said[..said.floor_char_boundary(WIDTH - CUT.len())];
    let end = head.rfind(char::is_whitespace).unwrap_or(head.len());
    format!("{}{CUT}", head[..end].trim_end())
}

/// Returns the identifiers, flags and words of a text that have 3 to 60 bytes and at least one letter. A flag keeps its
/// dashes: `--plain`.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !IS_WORD_PART[usize::from(*byte)]).filter_map(|word| {
        let word = word.trim_end_with(|character| character == '-');
        let dashes = word.iter().take_while(|&&byte| byte == b'-').count();
        let word = if dashes == 2 { word } else { &word[dashes..] };
        let has_letter = || word.iter().any(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
        ((3..=60).contains(&word.len()) && has_letter()).then_some(word)
    })
}

/// Which bytes may be part of a word: letters, digits, `_`, `-`, and every byte of a non-ASCII character.
const IS_WORD_PART: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric()
            || byte == b'_' as usize
            || byte == b'-' as usize
            || byte >= 0x80;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_keep_the_dashes_of_flags_only() {
        let found: Vec<_> = words(b"use `--no-pager`, -x, ---, a_b-c- 1234 \"ok\" caf\xc3\xa9")
            .map(|word| word.to_str_lossy())
            .collect();
        assert_eq!(found, ["use", "--no-pager", "a_b-c", "caf\u{e9}"]);
    }

    fn said(line: &str, path: &str) -> Option<String> {
        sentence(line.as_bytes(), Format::of(path)).map(|(_, said)| said)
    }

    /// Guards against two former faults: sentences were cut within a word, and queries, tables and test sources were
    /// taken for sentences.
    #[test]
    fn a_sentence_is_cut_at_the_end_of_a_word_and_what_does_not_read_as_one_is_none() {
        let long = "A word may leave its place in some file and no later reader of the bare word is able to recognise it again";
        let cut = said(&format!("// {long} and more of the same kind"), "a.rs").unwrap();
        assert_eq!(cut, format!("{long} and more …"));
        let two = format!("// A password is known by what stands around it. {long}");
        assert_eq!(said(&two, "a.rs").unwrap(), "A password is known by what stands around it.");
        assert_eq!(said("- Blank lines can be squeezed", "a.md").unwrap(), "- Blank lines can be squeezed");
        let thrown = "    throw new Error('the pager isn\\'t there any more');";
        assert_eq!(said(thrown, "a.js").unwrap(), "the pager isn\\'t there any more");
        assert_eq!(said("it's what they don't know", "a.js"), None);
        for junk in [
            "\"SELECT 1 FROM memories WHERE owner = ?1 AND kind = ?2 LIMIT 1\"",
            "// opened       engine   what is open  →     project",
            "\"fn config() {\\n    the database moved to another host\\n\"",
            "// a = b + c; d = e(f); g += h[i]; call(x, y, z)",
        ] {
            assert_eq!(said(junk, "a.rs"), None, "{junk}");
        }
        assert_eq!(said("| one table | with four | more words |", "a.md"), None);
    }

    /// A single word of a diff could be a password, which can't be recognised without the text around it.
    #[test]
    fn a_secret_is_never_quoted_without_its_context() {
        let old = b"fn config() {\n}\n";
        let password = ["B7YSBXAx", "tNztUYhs6l"].concat();
        let new = format!(
            "fn config() {{\n    // The database moved to another host today.\n    \
             connect(\"postgres://admin:{password}@db.example.org/app\", timeout_of_minutes);\n}}\n"
        );
        let mut builder = DigestBuilder::default();
        builder.add("a.rs", old, new.as_bytes(), &super::super::hunks::hunks(old, new.as_bytes()));
        let digest = builder.finish();
        assert!(!format!("{digest:?}").contains(&password), "{digest:?}");
        assert!(digest.words.contains(&"timeout_of_minutes".to_owned()), "{digest:?}");
        assert_eq!(digest.lines, ["The database moved to another host today."]);
    }

    proptest! {
        /// Whatever the bytes are, building a digest succeeds and stays within the limits.
        #[test]
        fn a_digest_is_total_and_bounded(
            old in prop::collection::vec(any::<u8>(), 0..200),
            new in "(pub |fn |impl<|const |class |--flag |é|\\(|\"|\n|# |[a-z]{1,9} ){0,200}",
            path in prop::sample::select(vec!["a.rs", "a.c", "a.md", "a.toml"]),
        ) {
            let new = new.as_bytes();
            for (old, new) in [(&old[..], new), (new, &old[..])] {
                let mut builder = DigestBuilder::default();
                builder.add(path, old, new, &super::super::hunks::hunks(old, new));
                let digest = builder.finish();
                prop_assert!(digest.headings.len() <= HEADING_LIMIT && digest.lines.len() <= LINE_LIMIT);
                prop_assert!(digest.added.len() + digest.removed.len() <= SYMBOL_LIMIT);
                prop_assert!(digest.words.len() <= WORD_LIMIT);
                prop_assert!(digest.headings.iter().chain(&digest.lines).all(|line| line.len() <= WIDTH));
            }
        }
    }
}
