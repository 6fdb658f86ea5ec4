//! What must not be remembered is taken out of a text: private passages, what the client put in, blobs, escapes.

use std::borrow::Cow;

/// What stands where a private passage was.
const PRIVATE: &str = "[private]";

const OPENS: [&str; 1] = ["private"];
const CLOSES: [&str; 2] = ["/", "private"];

/// A private passage shorter than this is not looked for elsewhere: it might be any word.
const TELLING: usize = 6;

/// Private passages of a line that are looked for elsewhere.
const MOST_PASSAGES: usize = 64;

/// Letters without a gap that make a blob: longer than any hash or name.
const BLOB: usize = 200;

/// Letters of a line without a gap that the next line may go on with: PEM wraps at 64, `base64` at 76.
const WRAPPED: usize = 60;

/// The private passages of one line, and how many there were.
#[derive(Clone, Debug, Default)]
pub(super) struct Private {
    passages: Vec<String>,
    /// Passages replaced.
    pub(super) replaced: usize,
}

impl Private {
    /// Returns what was heard so far, with nothing replaced yet.
    pub(super) fn handed_on(&self) -> Private {
        Private { passages: self.passages.clone(), replaced: 0 }
    }

    /// Notes what `text` marks as private, so that it is taken out of the other texts of the line too.
    pub(super) fn hear(&mut self, text: &str) {
        for (start, end, _) in Marked::new(text) {
            let passage = text[start..end].trim();
            let is_room = self.passages.len() < MOST_PASSAGES;
            if is_room && passage.len() >= TELLING && self.passages.iter().all(|known| known != passage) {
                self.passages.push(passage.to_owned());
            }
        }
    }

    /// Returns `text` without what it, or a text heard before, marks as private.
    pub(super) fn strip<'a>(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        self.hear(&text);
        let mut kept = String::new();
        let mut from = 0;
        for (start, _, after) in Marked::new(&text) {
            let opens = text[..start].rfind('<').expect("a passage stands behind its tag");
            kept += &text[from..opens];
            kept += PRIVATE;
            from = after;
            self.replaced += 1;
        }
        let mut text = if from == 0 { text } else { Cow::Owned(kept + &text[from..]) };
        for passage in &self.passages {
            if text.contains(passage.as_str()) {
                self.replaced += text.matches(passage.as_str()).count();
                text = Cow::Owned(text.replace(passage.as_str(), PRIVATE));
            }
        }
        text
    }
}

/// Yields where the passages between `<private>` and `</private>`, or the end, start and end, and what follows.
struct Marked<'a> {
    text: &'a str,
    from: usize,
}

impl<'a> Marked<'a> {
    fn new(text: &'a str) -> Marked<'a> {
        Marked { text, from: 0 }
    }
}

impl Iterator for Marked<'_> {
    type Item = (usize, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, start) = tag(self.text, self.from, &OPENS)?;
        // A passage may hold passages.
        let (mut depth, mut at) = (1, start);
        loop {
            let Some((ends, after)) = tag(self.text, at, &CLOSES) else {
                self.from = self.text.len();
                return Some((start, self.text.len(), self.text.len()));
            };
            let mut inner = at;
            while let Some((_, behind)) = tag(&self.text[..ends], inner, &OPENS) {
                depth += 1;
                inner = behind;
            }
            depth -= 1;
            if depth == 0 {
                self.from = after;
                return Some((start, ends, after));
            }
            at = after;
        }
    }
}

/// Returns where the next tag of these parts begins and what follows it, whatever its case and with spaces inside.
fn tag(text: &str, from: usize, tag: &[&str]) -> Option<(usize, usize)> {
    let mut at = from;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let mut rest = Some(text[start + 1..].trim_start());
        for part in tag {
            let begins = |rest: &str| rest.get(..part.len()).is_some_and(|it| it.eq_ignore_ascii_case(part));
            rest = rest.filter(|rest| begins(rest)).map(|rest| rest[part.len()..].trim_start());
        }
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('>')) {
            return Some((start, text.len() - rest.len()));
        }
        at = start + 1;
    }
    None
}

/// Returns `text` without the blocks `<name>…</name>`, and without what follows one that isn't closed.
pub(super) fn without<'a>(text: Cow<'a, str>, names: &[&str]) -> Cow<'a, str> {
    let (mut kept, mut from, mut at) = (None::<String>, 0, 0);
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let named = names.iter().find(|name| {
            let rest = text[start + 1..].strip_prefix(**name);
            rest.is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
        });
        let Some(name) = named else {
            at = start + 1;
            continue;
        };
        *kept.get_or_insert_default() += &text[from..start];
        let closing = format!("</{name}>");
        from = text[start..].find(&closing).map_or(text.len(), |found| start + found + closing.len());
        at = from;
    }
    match kept {
        Some(kept) => Cow::Owned(kept + &text[from..]),
        None => text,
    }
}

/// Returns what stands between `<name>` and `</name>`, or the end.
pub(super) fn within<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>")).map_or(rest, |(within, _)| within).trim())
}

/// Returns `text` with blobs named instead of shown, and without terminal escapes and control characters.
pub(super) fn readable(text: Cow<'_, str>) -> Cow<'_, str> {
    let has_controls = text.bytes().any(|b| b < b' ' && !matches!(b, b'\n' | b'\t'));
    let text = if has_controls { Cow::Owned(without_controls(&text)) } else { text };
    let (mut kept, mut from, mut run, mut line) = (String::new(), 0, 0, 0);
    for (place, byte) in text.bytes().chain([b' ']).enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_') {
            continue;
        }
        // Encodings are often wrapped; prose has no line without a gap.
        if byte == b'\n' && place - line >= WRAPPED {
            line = place + 1;
            continue;
        }
        if place - run >= BLOB && is_blob(&text.as_bytes()[run..place]) {
            kept += &text[from..run];
            kept += &format!("[blob, {} bytes]", place - run);
            from = place;
        }
        run = place + 1;
        line = run;
    }
    if from == 0 { text } else { Cow::Owned(kept + &text[from..]) }
}

/// Returns whether a long run is an encoding rather than a path or a ruler.
fn is_blob(run: &[u8]) -> bool {
    let letters = run.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    let separators = run.iter().filter(|byte| matches!(byte, b'/' | b'-' | b'_')).count();
    letters * 10 > run.len() * 8 && separators * 10 < run.len()
}

fn without_controls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // Colours and movements end with a letter, titles with a bell or a backslash.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| !matches!(c, '\u{7}' | '\\')) {},
                _ => {}
            },
            // What a carriage return overwrites was progress.
            '\r' => {
                if chars.peek().is_some_and(|next| *next != '\n') {
                    kept.truncate(kept.rfind('\n').map_or(0, |end| end + 1));
                }
            }
            '\n' | '\t' => kept.push(c),
            c if c.is_control() => {}
            c => kept.push(c),
        }
    }
    kept
}
