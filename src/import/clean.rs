//! Removes from a text what must not be remembered: private passages, additions of the client, blobs, terminal escapes.

use std::borrow::Cow;

/// Replaces a private passage.
const PRIVATE: &str = "[private]";

const OPENS: [&str; 1] = ["private"];
const CLOSES: [&str; 2] = ["/", "private"];

/// Letters that a private passage must have to be removed from other texts too; a shorter one could be any word.
const TELLING: usize = 6;

/// Private passages of a line that are removed from other texts.
const MOST_PASSAGES: usize = 64;

/// Letters without white space that make a blob: more than any hash or name has.
const BLOB: usize = 200;

/// Letters without white space after which the next line may continue a blob: PEM wraps at 64, `base64` at 76.
const WRAPPED: usize = 60;

/// The private passages of one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Private {
    passages: Vec<String>,
    /// How many passages were replaced.
    pub(super) replaced: usize,
}

impl Private {
    /// Returns the same passages, with none counted as replaced.
    pub(super) fn for_call(&self) -> Private {
        Private { passages: self.passages.clone(), replaced: 0 }
    }

    /// Remembers the private passages of `text`, so that they are removed from the other texts of the line too.
    pub(super) fn note(&mut self, text: &str) {
        for (start, end, _) in Marked::new(text) {
            let passage = text[start..end].trim();
            let is_room = self.passages.len() < MOST_PASSAGES;
            if is_room && passage.len() >= TELLING && self.passages.iter().all(|known| known != passage) {
                self.passages.push(passage.to_owned());
            }
        }
    }

    /// Returns `text` without private passages: its own, and those of texts that were passed to [`Private::note`].
    pub(super) fn strip<'a>(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        self.note(&text);
        let mut kept = String::new();
        let mut from = 0;
        for (start, _, after) in Marked::new(&text) {
            let opens = text[..start].rfind('<').expect("a passage follows its tag");
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

/// Iterates over the passages between `<private>` and `</private>`, or the end: where each starts and ends, and where
/// the text after it starts.
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
        // Passages can be nested.
        let (mut depth, mut at) = (1, start);
        loop {
            let Some((ends, after)) = tag(self.text, at, &CLOSES) else {
                self.from = self.text.len();
                return Some((start, self.text.len(), self.text.len()));
            };
            let mut inner = at;
            while let Some((_, after)) = tag(&self.text[..ends], inner, &OPENS) {
                depth += 1;
                inner = after;
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

/// Returns where the next tag of these parts begins and ends. Tags may be in any case and contain spaces.
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

/// Returns `text` without the blocks `<name>…</name>`; a block that isn't closed ends with the text.
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

/// Returns the text between `<name>` and `</name>`, or up to the end.
pub(super) fn within<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>")).map_or(rest, |(within, _)| within).trim())
}

/// Returns `text` with blobs replaced by their size, and without terminal escapes and control characters.
pub(super) fn readable(text: Cow<'_, str>) -> Cow<'_, str> {
    let has_controls = text.bytes().any(|b| b < b' ' && !matches!(b, b'\n' | b'\t'));
    let text = if has_controls { Cow::Owned(without_controls(&text)) } else { text };
    let (mut kept, mut from, mut run, mut line) = (String::new(), 0, 0, 0);
    for (place, byte) in text.bytes().chain([b' ']).enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_') {
            continue;
        }
        // Encodings are often wrapped, and a line of prose contains white space.
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

/// Returns whether a long run of letters is an encoding, not a path or a ruler.
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
                // Colours and cursor movements end with a letter, titles with a bell or a backslash.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| !matches!(c, '\u{7}' | '\\')) {},
                _ => {}
            },
            // The text before a carriage return was a progress display that the text after it overwrote.
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
