//! Divides a block into sentences by the rules of Unicode (UAX #29). The rules of Unicode also cut a sentence after an
//! abbreviation; this module joins such parts again.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::code::is_spaceless;
use super::{Block, Kind};

/// Only a line with at least this many bytes may count as wrapped, and only a Thai text with at least this many bytes
/// is cut at its spaces. Arbitrary.
const LONG_LINE: usize = 50;

/// The maximum number of bytes of a sentence that can be quoted. Arbitrary: a longer one is usually a pasted text
/// without punctuation.
const LONGEST: usize = 500;

/// The lines of a paragraph count as a list if there are at least this many. Arbitrary.
const LINES_OF_LIST: usize = 3;

/// Words that never end a sentence.
const CUT_AFTER: [&str; 22] = [
    "a", "an", "and", "are", "as", "at", "because", "by", "called", "for", "from", "if", "is", "like",
    "named", "of", "or", "than", "that", "the", "to", "with",
];

/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 26] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "eg", "ie", "cf", "no", "approx",
    "fig", "inc", "ltd", "jr", "sr", "al", "ca", "z.b", "d.h", "bzw", "usw",
];

/// The form of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A statement or a request.
    Statement,
    /// A question.
    Question,
    /// Text in square brackets, such as `[laughs]`.
    Aside,
    /// The words that introduce a list or code and end with a colon.
    Introduction,
}

/// A sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The text of the sentence in one line, without markup.
    pub text: String,
    /// The bytes of the message from which the sentence was read.
    pub range: Range<usize>,
    /// Its form.
    pub form: Form,
    /// Whether the sentence has no end mark, such as a full stop.
    pub is_open: bool,
    /// Whether the sentence belongs to a list item, or to a paragraph of several lines.
    pub is_item: bool,
}

impl Sentence {
    /// Returns whether the sentence can be quoted alone: it has at least two words, isn't cut off, isn't a template with
    /// blanks, and isn't too long.
    pub fn is_whole(&self) -> bool {
        let text = self.text.as_str();
        let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        matches!(self.form, Form::Statement | Form::Question)
            && (words > 1 || text.chars().filter(|c| is_spaceless(*c)).count() > 3)
            && text.len() <= LONGEST
            && !text.ends_with([',', ';', '…', '(', '&', '/', '→', '-', '–', '—'])
            && !text.ends_with("...")
            && !text.contains("-----")
            && !CUT_AFTER.iter().any(|word| text.strip_suffix(word).is_some_and(|rest| rest.ends_with(' ')))
            && !text.starts_with(['|', ')', ']', '}', ',', ';', '+', '=', '\\'])
            && !has_blank(text)
            && is_balanced(text)
    }
}

/// Returns the sentences of a block in order. Text without a letter or a digit is left out.
pub fn sentences(block: &Block) -> Vec<Sentence> {
    let mut found = Vec::new();
    let paragraphs = paragraphs(&block.text);
    let is_list = block.kind == Kind::Item || paragraphs.len() >= LINES_OF_LIST;
    for paragraph in paragraphs {
        // A line break within a wrapped line counts as a space. Both have one byte, so the offsets stay the same.
        let text = block.text[paragraph.clone()].replace('\n', " ");
        for range in divide(&text) {
            let piece = text[range.clone()].trim();
            if !piece.contains(char::is_alphanumeric) {
                continue;
            }
            let start =
                paragraph.start + range.start + (text[range.clone()].len() - text[range].trim_start().len());
            found.push(Sentence {
                text: piece.split_whitespace().collect::<Vec<_>>().join(" "),
                range: block.source_range(start..start + piece.len()),
                form: form(piece),
                is_open: !ends(piece),
                is_item: is_list,
            });
        }
    }
    found
}

/// Returns the ranges of the lines of a text. The parts of a wrapped line are returned as one range.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches('\n').len();
        match found.last_mut() {
            Some(open) if is_wrapped(text[open.clone()].trim_end(), line.trim()) => open.end = end,
            _ => found.push(start..end),
        }
        start += line.len();
    }
    found
}

/// Returns whether the line `next` continues the wrapped line `open`: no sentence ends with the line `open`, and no
/// sentence begins with the line `next`.
fn is_wrapped(open: &str, next: &str) -> bool {
    let last = open.rsplit('\n').next().unwrap_or(open);
    last.len() >= LONG_LINE
        && !last.ends_with(['.', '!', '?', ':', ';', '。', '！', '？', '…', ']', '|'])
        && next.starts_with(|c: char| c.is_lowercase() || is_spaceless(c) || matches!(c, '(' | '"' | '\''))
}

/// Divides a text without line breaks into the ranges of its sentences.
fn divide(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    // If a text begins in lower case, its other sentences do too, and the rules find no boundary before them.
    let is_lower = goes_on(text);
    let pieces = short_runs(text)
        .into_iter()
        .flat_map(UnicodeSegmentation::split_sentence_bounds)
        .flat_map(|piece| if is_lower { at_stops(piece) } else { vec![piece] });
    for piece in pieces {
        let end = start + piece.len();
        match found.last_mut() {
            Some(open) if is_abbreviated(text[open.clone()].trim_end()) => open.end = end,
            // A name of a file, such as `docs.$.tsx` or `docs.[page].tsx`.
            Some(open) if goes_on_as_name(&text[open.clone()], piece) => open.end = end,
            Some(open) if ends_quoted(text[open.clone()].trim_end()) && goes_on(piece) => open.end = end,
            _ => found.push(start..end),
        }
        start = end;
    }
    // The rules put an opening bracket that follows a full stop into the sentence before it.
    for next in 1..found.len() {
        let open = text[found[next - 1].clone()].trim_end_matches(['「', '『', '（', '“', '《']).len();
        found[next - 1].end = found[next - 1].start + open;
        found[next].start = found[next - 1].end;
    }
    found.into_iter().flat_map(|range| asides(text, range)).flat_map(|range| thai(text, range)).collect()
}

/// Returns whether `piece` goes on with a name in which the rules found the end of a sentence. A text that is too long to be
/// quoted doesn't go on, because its end is read again for each piece.
fn goes_on_as_name(text: &str, piece: &str) -> bool {
    text.len() <= LONGEST && text.ends_with('.') && piece.starts_with(['$', '[', '{'])
}

/// Returns whether a text ends with a quoted question or exclamation, after which the sentence may go on.
fn ends_quoted(text: &str) -> bool {
    text.strip_suffix(['"', '”', '’', '»']).is_some_and(|text| text.ends_with(['?', '!']))
}

/// Returns whether a text begins in lower case.
fn goes_on(text: &str) -> bool {
    text.trim_start().starts_with(char::is_lowercase)
}

/// A text is cut within a longer run of blanks and closing marks than this. Arbitrary: no real text has such a run.
const LONGEST_RUN: usize = 200;

/// Cuts a text within long runs of blanks and closing marks. At each place of such a run, the rules would read the rest
/// of the run, which would take quadratic time.
fn short_runs(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut run) = (0, 0);
    for (at, c) in text.char_indices() {
        run = if c.is_alphanumeric() { 0 } else { run + 1 };
        if run > LONGEST_RUN {
            found.push(&text[start..at]);
            (start, run) = (at, 0);
        }
    }
    found.push(&text[start..]);
    found
}

/// Cuts a text after each full stop that is followed by a space and a lower-case letter.
fn at_stops(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, stop) in text.match_indices(['.', '!', '?']) {
        let rest = &text[at + stop.len()..];
        let follows = rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(char::is_lowercase));
        if follows && !text[..at].ends_with('.') {
            found.push(&text[start..=at + 1]);
            start = at + 2;
        }
    }
    found.push(&text[start..]);
    found
}

/// Returns whether the full stop at the end of `text` belongs to an abbreviation, an initial, or the number of a list
/// item.
fn is_abbreviated(text: &str) -> bool {
    let Some(before) = text.strip_suffix('.') else { return false };
    let last = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or(before);
    let is_initial = last.chars().count() == 1 && last.starts_with(char::is_uppercase) && last != "I";
    let is_number = last.len() <= 3 && last == before.trim() && last.bytes().all(|b| b.is_ascii_digit());
    is_initial || is_number || ABBREVIATIONS.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// Cuts an aside of several words off the beginning or the end of a sentence.
fn asides(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let piece = &text[range.clone()];
    let is_aside = |inner: &str| inner.contains(' ') && !inner.contains('[');
    let body = piece.trim_start();
    let from = range.start + piece.len() - body.len();
    if body.starts_with('[')
        && let Some(end) =
            body.find(']').filter(|end| is_aside(&body[1..*end]) && !body[end + 1..].starts_with('('))
        && !body[end + 1..].trim_matches(['.', ' ', '!', '?']).is_empty()
    {
        return vec![range.start..from + end + 1, from + end + 1..range.end];
    }
    let trimmed = piece.trim_end();
    if trimmed.ends_with(']')
        && let Some(open) = trimmed.rfind(" [").filter(|open| is_aside(&trimmed[open + 2..trimmed.len() - 1]))
    {
        return vec![range.start..range.start + open, range.start + open..range.end];
    }
    vec![range]
}

/// Cuts long Thai, Lao, Myanmar or Khmer text at its spaces, which are its only marks between sentences.
fn thai(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let is_thai =
        |c: char| matches!(c, '\u{e01}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}');
    if !text[range.clone()].contains(is_thai) {
        return vec![range];
    }
    let mut found = Vec::new();
    let (mut start, mut at, mut has_thai) = (range.start, range.start, false);
    for word in text[range.clone()].split_inclusive(' ') {
        at += word.len();
        has_thai |= word.contains(is_thai);
        if at - start >= LONG_LINE && has_thai {
            found.push(start..at);
            (start, has_thai) = (at, false);
        }
    }
    if start < range.end {
        found.push(start..range.end);
    }
    found
}

/// Returns `text` without quotation marks and brackets at its end.
fn unquoted(text: &str) -> &str {
    text.trim_end_matches(['"', '\'', ')', '”', '’', '»', '」', '』', '）', '*', '_'])
}

/// Returns whether `text` ends with the end mark of a sentence.
fn ends(text: &str) -> bool {
    unquoted(text).ends_with(['.', '!', '?', '。', '！', '？', '…', '।', '۔', '؟', '።', '។'])
}

fn form(text: &str) -> Form {
    let body = text.trim();
    match unquoted(body).trim_end_matches(['!', '！']) {
        _ if body.starts_with('[') && body.ends_with(']') => Form::Aside,
        last if last.ends_with(['?', '？', '؟']) => Form::Question,
        last if last.ends_with([':', '：']) => Form::Introduction,
        _ => Form::Statement,
    }
}

/// Returns whether `text` is a template: it has a blank to fill in, such as `[Your Name]`, `<your-key>` or `____`.
fn has_blank(text: &str) -> bool {
    let opens = [('[', ']'), ('<', '>'), ('{', '}')];
    let is_blank = |before: &str, inner: &str, open: char| {
        let lower = inner.to_lowercase();
        let names =
            ["your", "insert", "name", "company", "date", "placeholder", "title", "link", "topic", "number"];
        let words = inner.split([' ', '_', '-', '/']).filter(|word| !word.is_empty());
        let is_amount =
            open == '[' && before.ends_with(['$', '€', '£']) && inner.starts_with(char::is_alphabetic);
        is_amount
            || !inner.is_empty()
                && inner.len() < 40
                && match open {
                    '[' => {
                        words.clone().all(|word| word.starts_with(char::is_uppercase)) && words.count() > 1
                            || names
                                .iter()
                                .any(|name| lower.split([' ', '_', '-', '/', '\'']).any(|word| word == *name))
                    }
                    _ => lower.starts_with("your") || lower.starts_with("insert"),
                }
    };
    let has = |(open, close): (char, char)| {
        text.match_indices(open).any(|(at, _)| {
            let inner = &text[at + 1..];
            inner.find(close).is_some_and(|end| is_blank(&text[..at], &inner[..end], open))
        })
    };
    text.contains("___") || text.contains("{{") || opens.into_iter().any(has)
}

/// Returns whether every bracket is closed and the double quotation marks come in pairs.
fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' | '[' | '{' | '“' | '「' | '（' => open.push(c),
            ')' | ']' | '}' | '”' | '」' | '）' => {
                let before = match c {
                    ')' => '(',
                    ']' => '[',
                    '}' => '{',
                    '”' => '“',
                    '」' => '「',
                    _ => '（',
                };
                // The closing bracket of a list number (`1)`) or of a smiley has no opening bracket.
                if open.last() == Some(&before) {
                    open.pop();
                } else if c != ')' {
                    return false;
                }
            }
            _ => {}
        }
    }
    open.is_empty()
        && text.matches('"').count().is_multiple_of(2)
        && text.matches('`').count().is_multiple_of(2)
}
