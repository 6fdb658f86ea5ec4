//! Reads what a prompt says about files, as the system prompt tells the assistant to read it.
//!
//! It is written from the description of the format, without tiro's own code: a mistake that both had would not show.

use std::collections::{BTreeMap, BTreeSet};

use crate::assistant::Message;

/// Says that a text has no line feed at its end.
const UNENDED: &str = " (no line feed at its end)";

/// A part of a message that the caller sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'m> {
    /// A whole file.
    File {
        /// Its path.
        path: &'m str,
        /// Its text.
        text: &'m str,
    },
    /// The changes of a file.
    Change {
        /// Its path.
        path: &'m str,
        /// The unified diff.
        diff: &'m str,
    },
    /// A file whose copy is no longer valid.
    Removal {
        /// Its path.
        path: &'m str,
    },
    /// A line that is part of a note.
    Line(&'m str),
    /// A frame that has no end.
    Broken(&'m str),
}

/// What an assistant knows after it has read a prompt.
#[derive(Debug, Default)]
pub struct Known {
    /// Its copies of files, by path.
    pub copies: BTreeMap<String, String>,
    /// The files that it can search.
    pub searchable: Searchable,
    /// What could not be read, such as a diff that doesn't apply.
    pub faults: Vec<String>,
}

/// The files that a note says can be searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searchable {
    named: BTreeSet<String>,
    folders: BTreeSet<String>,
    has_others: bool,
}

impl Searchable {
    /// Returns whether the note names the file or counts it with its folder.
    pub fn covers(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.named.contains(path) || self.folders.contains(folder) || self.has_others
    }

    /// Returns whether the note names the file itself.
    pub fn names(&self, path: &str) -> bool {
        self.named.contains(path)
    }
}

/// Returns the parts of a message that the caller sent, up to the instructions.
pub fn pieces(message: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if line == "[instructions]" {
            break;
        }
        let (piece, next) = match opened(line) {
            Some(Opened::Removal(path)) => (Piece::Removal { path }, after),
            Some(Opened::Frame(word, about, mark)) => match inside(after, word, mark) {
                None => (Piece::Broken(line), after),
                Some((text, next)) => {
                    let unended = about.strip_suffix(UNENDED);
                    let path = unended.unwrap_or(about);
                    let text = if unended.is_some() { text.strip_suffix('\n').unwrap_or(text) } else { text };
                    let piece = match word {
                        "file" => Piece::File { path, text },
                        _ => Piece::Change { path, diff: text },
                    };
                    (piece, next)
                }
            },
            None => (Piece::Line(line), after),
        };
        pieces.push(piece);
        rest = next;
    }
    pieces
}

/// The first line of a frame.
enum Opened<'m> {
    /// The word, what follows it, and the mark.
    Frame(&'m str, &'m str, &'m str),
    /// The path of a removal, which has only this line.
    Removal(&'m str),
}

fn opened(line: &str) -> Option<Opened<'_>> {
    let (about, mark) = line.strip_prefix('[')?.strip_suffix(']')?.rsplit_once(" | ")?;
    if mark.len() != 16 || !mark.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    match about.split_once(' ')? {
        ("removed", about) => Some(Opened::Removal(about.rsplit_once(": ")?.0)),
        (word @ ("file" | "diff"), about) => Some(Opened::Frame(word, about, mark)),
        _ => None,
    }
}

/// Returns the text up to the last line of the frame, and what follows that line.
fn inside<'m>(text: &'m str, word: &str, mark: &str) -> Option<(&'m str, &'m str)> {
    let end = format!("[/{word} | {mark}]\n");
    let at = match text.starts_with(&end) {
        true => 0,
        false => text.find(&format!("\n{end}"))? + 1,
    };
    Some((&text[..at], &text[at + end.len()..]))
}

/// Returns what the assistant knows after it has read `messages`.
pub fn read(messages: &[Message]) -> Known {
    let mut known = Known::default();
    for message in messages.iter().filter(|message| message.role == "user") {
        let mut note: Option<Searchable> = None;
        for piece in pieces(&message.text) {
            match piece {
                Piece::File { path, text } => drop(known.copies.insert(path.to_owned(), text.to_owned())),
                Piece::Removal { path } => {
                    if known.copies.remove(path).is_none() {
                        known.faults.push(format!("`{path}` is removed, but was not there"));
                    }
                }
                Piece::Change { path, diff } => match known.copies.get(path).map(|copy| apply(copy, diff)) {
                    Some(Some(text)) => drop(known.copies.insert(path.to_owned(), text)),
                    Some(None) => known.faults.push(format!("a diff of `{path}` doesn't apply")),
                    None => known.faults.push(format!("a diff of `{path}`, but no copy")),
                },
                Piece::Broken(line) => known.faults.push(format!("`{line}` has no end")),
                Piece::Line(line) => read_note(line, &mut note, &mut known.searchable),
            }
        }
    }
    known
}

/// Reads a line of a note. A note about searchable files replaces the one before.
fn read_note(line: &str, note: &mut Option<Searchable>, searchable: &mut Searchable) {
    if line.starts_with("[no files have to be searched") {
        *searchable = Searchable::default();
        return;
    }
    if line.starts_with("[not shown because they don't fit") {
        *note = Some(Searchable::default());
    } else if let Some(note) = note.as_mut()
        && let Some(line) = line.strip_prefix(' ')
    {
        let line = line.strip_suffix(']').unwrap_or(line);
        if let Some((_, folder)) = line.split_once(" more in ") {
            match folder.strip_suffix('/') {
                Some(folder) => drop(note.folders.insert(folder.to_owned())),
                None => note.has_others = true,
            }
        } else if let Some((path, _)) = line.rsplit_once(" (") {
            note.named.insert(path.to_owned());
        }
    }
    if line.ends_with(']')
        && let Some(note) = note.take()
    {
        *searchable = note;
    }
}

/// Returns the text that a unified diff makes of `old`; `None` if it doesn't apply.
pub fn apply(old: &str, diff: &str) -> Option<String> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut lines = diff.split_inclusive('\n').peekable();
    let (mut new, mut at) = (Vec::new(), 0);
    while let Some(header) = lines.next() {
        let mut fields = header.strip_prefix("@@ -")?.split(' ');
        let (start, mut gone) = range(fields.next()?)?;
        let (_, mut come) = range(fields.next()?.strip_prefix('+')?)?;
        let start = if gone == 0 { start } else { start.checked_sub(1)? };
        new.extend(old.get(at..start)?);
        at = start;
        while gone + come > 0 {
            let line = lines.next()?;
            let is_unended = lines.next_if(|line| line.starts_with("\\ No newline")).is_some();
            let text = line.get(1..)?;
            let text = if is_unended { text.strip_suffix('\n')? } else { text };
            let sign = line.as_bytes()[0];
            if matches!(sign, b' ' | b'-') {
                gone = gone.checked_sub(1)?;
                if *old.get(at)? != text {
                    return None;
                }
                at += 1;
            }
            if matches!(sign, b' ' | b'+') {
                come = come.checked_sub(1)?;
                new.push(text);
            }
            if !matches!(sign, b' ' | b'-' | b'+') {
                return None;
            }
        }
    }
    new.extend(old.get(at..)?);
    Some(new.concat())
}

fn range(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

/// Returns `text` with the digits of all marks of redacted secrets replaced by `000`: they differ between installations.
pub fn without_digits(text: &str) -> String {
    let mut parts = text.split("[REDACTED:");
    let mut neutral = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        neutral.push_str("[REDACTED:");
        let mark = part.split_once(']').and_then(|(inside, rest)| Some((inside.rsplit_once(':')?, rest)));
        match mark {
            Some(((rule, digits), rest)) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                neutral.push_str(&format!("{rule}:000]{rest}"));
            }
            _ => neutral.push_str(part),
        }
    }
    neutral
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Message {
        Message { role: "user".into(), text: text.into() }
    }

    #[test]
    fn pieces_are_told_apart_by_their_marks() {
        let message = "[file src/[id]/a.rs | ff1cde53e57a9abd]\nfn a() {}\n[/file | 0000000000000000]\n\
                       [/file | ff1cde53e57a9abd]\n\
                       [file b.txt (no line feed at its end) | 8e8d35badda49196]\nno end\n[/file | 8e8d35badda49196]\n\
                       [file c.txt | 8e8d35badda49197]\n[/file | 8e8d35badda49197]\n\
                       [diff src/[id]/a.rs | c1c5591fb14489d9]\n@@ -1 +1 @@\n-x\n+y\n[/diff | c1c5591fb14489d9]\n\
                       [removed a: b.rs: it no longer exists | 287fb801ac9f5bd8]\n\
                       [a note | 287fb801ac9f5bdX]\n\
                       [instructions]\n[removed d.rs: not a frame | 287fb801ac9f5bd8]\n";
        assert_eq!(
            pieces(message),
            [
                Piece::File { path: "src/[id]/a.rs", text: "fn a() {}\n[/file | 0000000000000000]\n" },
                Piece::File { path: "b.txt", text: "no end" },
                Piece::File { path: "c.txt", text: "" },
                Piece::Change { path: "src/[id]/a.rs", diff: "@@ -1 +1 @@\n-x\n+y\n" },
                Piece::Removal { path: "a: b.rs" },
                Piece::Line("[a note | 287fb801ac9f5bdX]"),
            ]
        );
        let cut = "[file a.rs | ff1cde53e57a9abd]\nfn a() {}\n[/diff | ff1cde53e57a9abd]\n";
        assert!(matches!(pieces(cut)[0], Piece::Broken(_)), "{:?}", pieces(cut));
    }

    #[test]
    fn the_newest_copy_and_the_newest_note_hold() {
        let first = "[file a.rs | ff1cde53e57a9abd]\none\ntwo\n[/file | ff1cde53e57a9abd]\n\
                     [file b.rs | ff1cde53e57a9abe]\nb\n[/file | ff1cde53e57a9abe]\n\
                     [not shown because they don't fit; search them with search_session_attachments:\n big.rs (9,000 tokens)\n \
                     3 more in src/deep/]\n[instructions]\nWhy?";
        let known = read(&[user(first)]);
        assert!(known.searchable.names("big.rs") && known.searchable.covers("src/deep/x.rs"));
        assert!(!known.searchable.covers("src/x.rs") && !known.searchable.names("src/deep/x.rs"));
        let later = "[diff a.rs | ff1cde53e57a9abd]\n@@ -2 +2 @@\n-two\n+three\n\\ No newline at end of file\n[/diff | ff1cde53e57a9abd]\n\
                     [removed b.rs: it no longer exists | 287fb801ac9f5bd8]\n\
                     [no files have to be searched any more]\n[instructions]\nAnd now?";
        let known = read(&[user(first), user(later)]);
        assert_eq!(known.copies, BTreeMap::from([("a.rs".to_owned(), "one\nthree".to_owned())]));
        assert_eq!(known.searchable, Searchable::default());
        assert_eq!(known.faults, Vec::<String>::new());
        let known = read(&[user(later)]);
        assert_eq!(known.faults.len(), 2, "{:?}", known.faults);
        let answer = Message { role: "assistant".into(), text: first.into() };
        assert!(read(&[answer]).copies.is_empty());
    }

    #[test]
    fn a_diff_is_applied_only_where_it_fits() {
        let old = "a\nb\nc\nd";
        assert_eq!(apply(old, "@@ -0,0 +1 @@\n+z\n").as_deref(), Some("z\na\nb\nc\nd"));
        let end = "@@ -3,2 +3 @@\n-c\n-d\n\\ No newline at end of file\n+e\n";
        assert_eq!(apply(old, end).as_deref(), Some("a\nb\ne\n"));
        assert_eq!(apply(old, "@@ -1 +1 @@\n-b\n+c\n"), None);
        assert_eq!(apply(old, "@@ -1,2 +1 @@\n-a\n+c\n"), None);
        assert_eq!(apply(old, "@@ -9 +9 @@\n-a\n+c\n"), None);
        assert_eq!(apply(old, "").as_deref(), Some(old));
    }

    #[test]
    fn only_digits_of_marks_are_replaced() {
        assert_eq!(without_digits("a [REDACTED:aws:1f3] [REDACTED:x"), "a [REDACTED:aws:000] [REDACTED:x");
        assert_eq!(without_digits("[REDACTED:...] no"), "[REDACTED:...] no");
    }
}
