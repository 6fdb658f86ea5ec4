//! Removes content that must not be remembered from a text: private passages, text that the client added, blobs and
//! terminal escapes.

use std::borrow::Cow;

/// The mark that replaces a private passage.
const PRIVATE: &str = "[private]";

const OPENS: [&str; 1] = ["private"];
const CLOSES: [&str; 2] = ["/", "private"];

/// The minimum number of bytes that a private passage must have to be removed from the line's other texts too. A
/// shorter passage could be any word.
const TELLING: usize = 6;

/// How many private passages of a line are also removed from the line's other texts.
const MOST_PASSAGES: usize = 64;

/// A run of at least this many letters without white space may be a blob. No hash or name has as many letters.
const BLOB: usize = 200;

/// A blob may continue in the next line if its current line has at least this many letters without white space. PEM
/// wraps lines at 64 letters, `base64` at 76.
const WRAPPED: usize = 60;

/// The private passages of one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Private {
    passages: Vec<String>,
    /// How many passages were replaced, in all texts.
    pub(super) replaced: usize,
}

impl Private {
    /// Returns a copy for a call. It has the same passages, but its count of replaced passages starts at 0.
    pub(super) fn for_call(&self) -> Private {
        Private { passages: self.passages.clone(), replaced: 0 }
    }

    /// Records the private passages of `text`, so that they are removed from the other texts of the line too.
    pub(super) fn note(&mut self, text: &str) {
        for (start, end, _) in Marked::new(text) {
            let passage = text[start..end].trim();
            let is_room = self.passages.len() < MOST_PASSAGES;
            if is_room && passage.len() >= TELLING && self.passages.iter().all(|known| known != passage) {
                self.passages.push(passage.to_owned());
            }
        }
    }

    /// Returns `text` with private passages replaced. These are the passages that `text` itself marks as private, and
    /// the passages that [`Private::note`] recorded from other texts.
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

/// Iterates over the passages between `<private>` and `</private>`. Each item contains the start of the passage, its
/// end, and the start of the text after the closing tag. A passage without a closing tag extends to the end of the
/// text.
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

/// Returns the beginning and the end of the next tag that consists of the parts `tag`. The tag may be in upper or lower
/// case and contain spaces.
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

/// Returns `text` without the blocks `<name>…</name>` of the given names. A block that isn't closed reaches to the end
/// of the text.
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

/// Returns a user's message `text` without the blocks `<name>…</name>` that the client put into it. A tag within a
/// line, or in a block of code, is kept, because the user wrote it.
pub(super) fn without_blocks<'a>(text: Cow<'a, str>, names: &[&str]) -> Cow<'a, str> {
    let (mut kept, mut from, mut at) = (None::<String>, 0, 0);
    let mut added = Added { text: &text, names, line: 0, searched: 0, is_code: false, unclosed: Vec::new() };
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let Some(end) = added.end(start, from) else {
            at = start + 1;
            continue;
        };
        *kept.get_or_insert_default() += &text[from..start];
        (from, at) = (end, end);
    }
    match kept {
        Some(kept) => Cow::Owned(kept + &text[from..]),
        None => text,
    }
}

/// Finds the ends of blocks in a text, from its beginning to its end. Results are remembered, because a text can have
/// many tags.
struct Added<'t, 'n> {
    text: &'t str,
    names: &'t [&'n str],
    /// The beginning of the first line that was not yet searched for code, and whether this line is in a block of code.
    line: usize,
    is_code: bool,
    /// Where the search for the end of this line goes on. A line may have very many tags.
    searched: usize,
    /// The names whose tags are not closed in the rest of the text.
    unclosed: Vec<&'n str>,
}

impl<'n> Added<'_, 'n> {
    /// Returns the end of the block that starts at `start`, if the client wrote this block. `from` is the end of the
    /// previous block.
    ///
    /// A client's block starts and ends at the borders of lines, or its content begins with a line break. Without a
    /// closing tag, the block must start a line and its content must begin with a line break. It then reaches to the
    /// end of the text.
    fn end(&mut self, start: usize, from: usize) -> Option<usize> {
        let rest = &self.text[start + 1..];
        let is_name = |rest: &str, name: &str| {
            rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
        };
        let name: &'n str = self.names.iter().find(|name| is_name(rest, name))?;
        if self.is_code(start) {
            return None;
        }
        let before = self.text[from..start].trim_end_matches([' ', '\t']);
        let is_indented = start - from - before.len() > 3;
        let begins_line = (before.is_empty() || before.ends_with('\n')) && !is_indented;
        let opened = start + 1 + rest.find('>')? + 1;
        let is_broken = self.text[opened..].starts_with(['\n', '\r']);
        let closing = format!("</{name}>");
        let is_open = self.unclosed.contains(&name);
        let end = if is_open { None } else { self.text[opened..].find(&closing) };
        let Some(end) = end.map(|found| opened + found + closing.len()) else {
            if !is_open {
                self.unclosed.push(name);
            }
            return (begins_line && is_broken).then_some(self.text.len());
        };
        let after = self.text[end..].trim_start_matches([' ', '\t']);
        let is_followed =
            after.strip_prefix('<').is_some_and(|rest| self.names.iter().any(|it| is_name(rest, it)));
        let ends_line = after.is_empty() || after.starts_with(['\n', '\r']) || is_followed;
        (is_broken || (begins_line && ends_line)).then_some(end)
    }

    /// Returns whether the byte `at` is in a block of code.
    fn is_code(&mut self, at: usize) -> bool {
        while let Some(length) = self.text[self.searched..at].find('\n') {
            let end = self.searched + length;
            let line = self.text[self.line..end].trim_start();
            self.is_code ^= line.starts_with("```") || line.starts_with("~~~");
            (self.line, self.searched) = (end + 1, end + 1);
        }
        self.searched = at;
        self.is_code
    }
}

/// If `text` consists of blocks `<name>…</name>` alone, returns the name and the content of each block.
pub(super) fn only_blocks<'a>(text: &'a str, names: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let opened = rest.strip_prefix('<')?;
        let (name, inner) =
            names.iter().find_map(|name| Some((*name, opened.strip_prefix(name)?.strip_prefix('>')?)))?;
        let (inner, after) = inner.split_once(&format!("</{name}>"))?;
        found.push((name, inner.trim()));
        rest = after.trim_start();
    }
    (!found.is_empty()).then_some(found)
}

/// Returns whether `text` is a client's block `<name>…</name>`: nothing follows the block, or its content begins with a
/// line break.
pub(super) fn is_block(text: &str, name: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix(&format!("<{name}>"));
    inner.is_some_and(|inner| inner.starts_with(['\n', '\r']) || inner.ends_with(&format!("</{name}>")))
}

/// Returns the text between `<name>` and `</name>`. If the closing tag is missing, returns all the text after `<name>`.
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
        // After a long line, the run goes on in the next line, because encoded data is often wrapped. Prose has spaces,
        // which end a run.
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

/// Returns whether a long run of letters is encoded data, not a path or a line of dashes.
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
                // Escape sequences for colours and cursor movements end with a letter, those for titles with a bell or
                // a backslash.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| !matches!(c, '\u{7}' | '\\')) {},
                _ => {}
            },
            // The text before a carriage return is dropped: it was a progress display, which the text after it
            // overwrote.
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

/// Returns `text` in one line, cut to about `most` characters.
pub(super) fn clip(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for word in text.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        let letters = word.chars().take(left + 1).count();
        if letters + gap > left {
            let room = left.saturating_sub(gap + 1);
            line.extend((gap == 1 && room > 0).then_some(' '));
            line.extend(word.chars().take(room));
            line.push('…');
            break;
        }
        line.extend((gap == 1).then_some(' '));
        line += word;
        left -= letters + gap;
    }
    line
}
