//! Finds the sentences of a message, in any script.
//!
//! Messages are half prose, half lists, code and logs, so the end of a line ends a sentence unless the line is clearly
//! wrapped. This code does not parse language: a wrong cut only makes a summary read less smoothly.

use std::ops::Range;

use super::words::is_spaceless;

/// The maximum number of bytes of a sentence. A longer one is cut at a comma if it has one, otherwise at a space,
/// otherwise anywhere. Arbitrary.
const LONGEST: usize = 500;

/// The minimum number of bytes of a line that may count as wrapped. Also the minimum number of bytes of a piece of
/// Thai text that is cut at a space. Arbitrary.
const LONG_LINE: usize = 50;

/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 20] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "cf", "no", "approx", "fig", "inc",
    "ltd", "jr", "sr", "al", "ca",
];

/// The form of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A statement.
    Plain,
    /// A question.
    Question,
    /// Text in square brackets, such as `[laughs]`.
    Aside,
    /// A line of code, of a table, or of a log.
    Code,
}

/// Returns the sentences of `text` in order. Each is a range of bytes, without surrounding white space, and a form.
pub(super) fn sentences(text: &str) -> Vec<(Range<usize>, Form)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut paragraph: Option<Range<usize>> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let is_code = !is_fence && (is_fenced || is_code(line));
        let joins = !is_fence
            && !is_code
            && paragraph.as_ref().is_some_and(|open| is_wrapped(text[open.clone()].trim_end(), trimmed));
        if !joins && let Some(done) = paragraph.take() {
            prose(text, done, &mut found);
        }
        if is_fence {
            is_fenced = !is_fenced;
        } else if is_code {
            divide(text, range, Form::Code, &mut found);
        } else {
            paragraph = Some(paragraph.map_or(range.start, |open| open.start)..range.end);
        }
    }
    if let Some(done) = paragraph {
        prose(text, done, &mut found);
    }
    found
}

/// Returns whether the line `next` continues the wrapped line `open`: no sentence ends with `open`, and none begins
/// with `next`.
fn is_wrapped(open: &str, next: &str) -> bool {
    let last = open.rsplit('\n').next().unwrap_or(open);
    last.len() >= LONG_LINE
        && !last.ends_with(['.', '!', '?', ':', ';', '。', '！', '？', '…', ']', '|'])
        && next.starts_with(|c: char| c.is_lowercase() || is_spaceless(c) || matches!(c, '(' | '"' | '\''))
}

/// Returns whether a line looks like code, a table or a program's output: it has few letters, an ending such as `;`, or
/// a deep indentation together with signs of code.
fn is_code(line: &str) -> bool {
    let body = line.trim();
    let letters = body.chars().filter(|c| c.is_alphabetic() || c.is_whitespace()).count();
    let all = body.chars().count();
    let marks = body.ends_with([';', '{', '}', '|', '>']) && !body.ends_with("->");
    all > 3
        && (letters * 2 < all || marks || (line.starts_with("    ") && body.contains(['(', '=', '{'])))
        && !body.chars().any(is_spaceless)
}

/// Adds the sentences of a paragraph.
fn prose(text: &str, range: Range<usize>, found: &mut Vec<(Range<usize>, Form)>) {
    let part = &text[range.clone()];
    let mut start = 0;
    let mut characters = part.char_indices().peekable();
    let mut thai = 0;
    while let Some((at, c)) = characters.next() {
        let mut end = at + c.len_utf8();
        thai += usize::from(matches!(c, '\u{e01}'..='\u{e4f}' | '\u{e81}'..='\u{edf}')) * c.len_utf8();
        let rest = &part[end..];
        // An aside is a separate sentence.
        let aside = c.is_whitespace() && rest.starts_with('[') && rest.contains(']');
        let after_aside =
            c == ']' && part[start..end].trim_start().starts_with('[') && !rest.starts_with('(');
        let ends = match c {
            '。' | '！' | '？' | '｡' | '．' | '।' | '॥' | '۔' | '؟' | '።' | '។' | '။' => {
                true
            }
            '.' | '!' | '?' | '…' => {
                let closing =
                    rest.len() - rest.trim_start_matches(['"', '\'', ')', '”', '’', '»', '*', '_']).len();
                let next = rest[closing..].chars().next();
                let follows = rest[closing..].trim_start().chars().next();
                next.is_none_or(char::is_whitespace)
                    && (c != '.'
                        || (follows.is_none_or(|c| !c.is_lowercase()) && !is_abbreviated(&part[start..at])))
            }
            _ => aside || after_aside || (c.is_whitespace() && thai >= LONG_LINE),
        };
        if !ends {
            continue;
        }
        while let Some((_, closing)) = characters.next_if(|(_, c)| {
            matches!(
                c,
                '"' | '\'' | ')' | '”' | '’' | '»' | '」' | '』' | '）' | '!' | '?' | '.' | '！' | '？'
            )
        }) {
            end += closing.len_utf8();
        }
        let piece = range.start + start..range.start + end;
        divide(text, piece.clone(), form(&text[piece]), found);
        (start, thai) = (end, 0);
    }
    let piece = range.start + start..range.end;
    divide(text, piece.clone(), form(&text[piece]), found);
}

/// Returns whether the full stop after `before` belongs to an abbreviation, an initial, or the number of an item.
fn is_abbreviated(before: &str) -> bool {
    let last = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or(before);
    let is_initial = last.chars().count() == 1 && last.starts_with(char::is_uppercase) && last != "I";
    let is_number = last.len() <= 3 && last == before.trim() && last.bytes().all(|b| b.is_ascii_digit());
    is_initial || is_number || ABBREVIATIONS.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// Returns the form of a sentence of prose.
fn form(piece: &str) -> Form {
    let body = piece.trim();
    let last = body.trim_end_matches(['"', '\'', ')', '”', '’', '!', '！', '」', '』']);
    match body {
        _ if body.starts_with('[') && body.ends_with(']') => Form::Aside,
        _ if last.ends_with(['?', '？', '؟']) => Form::Question,
        _ => Form::Plain,
    }
}

/// Adds the sentence at `range` to `found`, without the white space around it and in parts if it is too long. Adds
/// nothing if it has no letter or digit.
fn divide(text: &str, range: Range<usize>, form: Form, found: &mut Vec<(Range<usize>, Form)>) {
    let mut start = range.start;
    while start < range.end {
        let mut end = range.end;
        if end - start > LONGEST {
            end = text.floor_char_boundary(start + LONGEST);
            let window = &text[start..end];
            let half = text.floor_char_boundary(start + LONGEST / 2) - start;
            let cut = window[half..]
                .rfind([',', ';', ':', '，', '、', '；', '：'])
                .or_else(|| window[half..].rfind(char::is_whitespace))
                .map(|at| half + at + window[half + at..].chars().next().map_or(1, char::len_utf8));
            end = cut.map_or(end, |cut| start + cut);
        }
        let part = &text[start..end];
        let begin = start + (part.len() - part.trim_start().len());
        let trimmed = part.trim();
        if trimmed.contains(char::is_alphanumeric) {
            found.push((begin..begin + trimmed.len(), form));
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_in_many_languages() {
        for (text, expected) in [
            ("One. Two!  Three?\nFour", &["One.", "Two!", "Three?", "Four"][..]),
            ("Dr. Smith paid 3.50 e.g. in cash. Fine.", &["Dr. Smith paid 3.50 e.g. in cash.", "Fine."]),
            ("1. Install it. 2. Run it.", &["1. Install it.", "2. Run it."]),
            ("He said \"Stop!\" Then left.", &["He said \"Stop!\"", "Then left."]),
            ("What?! Really...", &["What?!", "Really..."]),
            ("See v1.2.3 of foo.rs. It works.", &["See v1.2.3 of foo.rs.", "It works."]),
            ("今日は雨です。明日は？「晴れ。」", &["今日は雨です。", "明日は？", "「晴れ。」"]),
            ("我们决定用SQLite。原因是简单！", &["我们决定用SQLite。", "原因是简单！"]),
            ("वह आया। वह गया।", &["वह आया।", "वह गया।"]),
            ("هل أنت هنا؟ نعم.", &["هل أنت هنا؟", "نعم."]),
            ("오늘은 비가 온다. 내일은?", &["오늘은 비가 온다.", "내일은?"]),
            ("Look! [shares image: a red barn] Nice.", &["Look!", "[shares image: a red barn]", "Nice."]),
            ("- first item\n- second item", &["- first item", "- second item"]),
            (
                "A line that was wrapped by its author at seventy columns or so\ngoes on. End.",
                &["A line that was wrapped by its author at seventy columns or so\ngoes on.", "End."],
            ),
            (
                "A long line that ends without a full stop and goes on for a while\né = f(1);\nEnd.",
                &["A long line that ends without a full stop and goes on for a while", "é = f(1);", "End."],
            ),
            ("Run:\n```\nlet a = 1;\n\nb()\n```\nDone.", &["Run:", "let a = 1;", "b()", "Done."]),
            ("", &[]),
            ("?! ... \n\n", &[]),
        ] {
            let found: Vec<&str> = sentences(text).into_iter().map(|(range, _)| &text[range]).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn thai_is_cut_at_spaces_where_it_is_long() {
        let text = "วันนี้เราตัดสินใจใช้ฐานข้อมูลใหม่สำหรับโครงการ พรุ่งนี้จะเริ่มย้ายข้อมูลทั้งหมด";
        assert_eq!(sentences(text).len(), 2);
    }

    #[test]
    fn forms_are_recognised() {
        for (text, form) in [
            ("Shall we?", Form::Question),
            ("好吗？", Form::Question),
            ("We shall.", Form::Plain),
            ("[a photo of a dog]", Form::Aside),
            ("    let x = f(1);", Form::Code),
            ("| a | b |", Form::Code),
            ("see [1]", Form::Plain),
        ] {
            assert_eq!(sentences(text).first().map(|(_, form)| *form), Some(form), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn sentences_are_in_order_and_bounded(text in "([a-zA-Z .!?\n\\[\\]`]|東|。|ไทย|é|👩|\\|){0,900}") {
            let mut last = 0;
            for (range, _) in sentences(&text) {
                prop_assert!(range.start >= last && range.end <= text.len() && range.len() <= LONGEST);
                prop_assert!(text[range.clone()].contains(char::is_alphanumeric));
                last = range.end;
            }
        }
    }
}
