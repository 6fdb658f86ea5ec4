//! Reads a transcript line by line.
//!
//! A transcript may grow while it is read, end in the middle of a line, be replaced, or be gigabytes long. Lines are
//! returned one at a time. If the last line has no line end, it is returned only if it is a whole JSON value. If a line
//! is too long, its long strings are shortened while it is read. Old versions of Gemini CLI wrote a single JSON value
//! over many lines, and such a file is returned as one line. A hook can name any path, so only regular files are read,
//! and files that the system generates are refused.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::database;
use super::thin::{Thin, completed, is_whole};
use super::unpacked::{End, Unpacked};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};

/// The longest line that is read whole, in bytes. A longer line contains an image or a pasted file.
const LONGEST_LINE: u64 = 32 * 1024 * 1024;

/// In a line of up to this many bytes, long strings are shortened even if the line exceeds the limit of one reading. If
/// a longer line needs several readings, only its beginning is returned.
const LONGEST_THINNED: u64 = 256 * 1024 * 1024;

/// The number of bytes that are returned of a line that needs several readings, and of an overlong line that is not
/// JSON.
const START: usize = 64 * 1024;

/// Folders of generated files, where reading may block forever.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A line of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The whole line, without its line end.
    Whole(&'a [u8]),
    /// The kept part of a line that is too long or unfinished, and the length of the whole line. If the line is JSON,
    /// the kept part is JSON too.
    Cut(&'a [u8], u64),
}

/// Reads the lines of a transcript, starting at any position.
pub struct Lines {
    reader: BufReader<Unpacked>,
    at: u64,
    /// The number of bytes of the current line that were already searched for the line end.
    looked: u64,
    /// How many more bytes may be read.
    most: u64,
    buffer: Vec<u8>,
    /// The current line, if it is too long for `buffer`.
    thin: Option<Thin>,
    /// The longest line that is shortened in one reading.
    thinned: u64,
    /// Whether only empty lines were read since the beginning of the file.
    is_first: bool,
    /// Whether the file is a single JSON value over many lines.
    is_document: bool,
    /// Whether the unfinished end of the file was returned.
    is_over: bool,
}

impl Lines {
    /// Opens the transcript at `path` to read it, beginning at byte `at`.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the file can't be read, [`Kind::BadInput`] if it is not a regular file.
    pub fn open(path: &Path, at: u64) -> Result<Lines> {
        Lines::resume(path, at, 0, u64::MAX)
    }

    /// Opens the transcript at `path` to read at most `most` bytes, beginning at byte `at`. A line that was begun is
    /// read to its end, unless it is very long. An earlier reading found no line end in the first `looked` bytes after
    /// `at`; see [`Lines::looked`].
    ///
    /// # Errors
    ///
    /// The errors of [`Lines::open`].
    pub fn resume(path: &Path, at: u64, looked: u64, most: u64) -> Result<Lines> {
        Lines::with_limits(path, (at, looked), most, LONGEST_THINNED)
    }

    fn with_limits(path: &Path, (at, looked): (u64, u64), most: u64, thinned: u64) -> Result<Lines> {
        let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
        let mut text = open(path)?;
        text.skip_to(at).context(Kind::Io, failed)?;
        // A line that can be shortened is read from its beginning again.
        let looked = if looked > thinned { looked } else { 0 };
        let (mut buffer, mut thin) = (Vec::new(), None);
        if looked > 0 {
            text.by_ref().take(START as u64).read_to_end(&mut buffer).context(Kind::Io, failed)?;
            text.skip_to(at + looked).context(Kind::Io, failed)?;
            thin = Some(Thin::start(buffer.clone()));
        }
        Ok(Lines {
            reader: BufReader::with_capacity(256 * 1024, text),
            at,
            looked,
            most,
            is_first: at == 0,
            is_document: looked > 0 && at == 0 && is_document(&buffer),
            buffer,
            thin,
            thinned,
            is_over: false,
        })
    }

    /// Returns the byte at which the next line begins, and the line. Returns `None` if no line is left, or if the limit
    /// of bytes is reached.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if reading fails.
    pub fn next_line(&mut self) -> Result<Option<(u64, Line<'_>)>> {
        if self.looked == 0 {
            self.buffer.clear();
            self.thin = None;
        }
        if self.is_over || !self.read_line()? {
            return Ok(None);
        }
        let begins = self.at;
        let bytes = self.looked;
        if !self.is_over {
            self.at += std::mem::take(&mut self.looked);
        }
        let thin = self.thin.take();
        if thin.is_none() && !self.is_over {
            let line = self.buffer.trim_ascii_end();
            self.is_first &= line.is_empty();
            return Ok(Some((begins, Line::Whole(line))));
        }
        if let Some(thin) = thin {
            self.buffer = thin.into_kept();
        }
        if !is_whole(&self.buffer) {
            match completed(&self.buffer) {
                Some(line) => self.buffer = line,
                None => self.buffer.truncate(START),
            }
        }
        self.is_first = false;
        Ok(Some((begins, Line::Cut(&self.buffer, bytes))))
    }

    /// Reads the current line. Returns whether there is a line to return.
    fn read_line(&mut self) -> Result<bool> {
        let failed = || "cannot read the transcript".to_owned();
        loop {
            let part = self.reader.fill_buf().context(Kind::Io, failed)?;
            if part.is_empty() {
                break;
            }
            if self.most == 0 && (self.looked == 0 || self.looked > self.thinned) {
                return Ok(false);
            }
            let end = part.iter().position(|byte| *byte == b'\n').filter(|_| !self.is_document);
            let taken = end.map_or(part.len(), |end| end + 1);
            match &mut self.thin {
                Some(thin) => thin.push(&part[..taken]),
                None => self.buffer.extend_from_slice(&part[..taken]),
            }
            self.reader.consume(taken);
            self.looked += taken as u64;
            self.most = self.most.saturating_sub(taken as u64);
            if self.thin.is_none() && self.looked > LONGEST_LINE {
                let mut thin = Thin::new(LONGEST_LINE as usize);
                thin.push(&self.buffer);
                self.thin = Some(thin);
                self.buffer = Vec::new();
            }
            if end.is_some() {
                self.is_document = self.is_first && self.thin.is_none() && is_document(&self.buffer);
                if !self.is_document {
                    return Ok(true);
                }
            }
        }
        let is_whole = is_whole(self.thin.as_ref().map_or(&self.buffer, |thin| thin.kept()));
        // An unfinished document is read up to its current end. It is read again when it has grown.
        self.is_over = !is_whole && self.is_document && self.looked > 0;
        Ok(self.looked > 0 && (is_whole || self.is_document))
    }

    /// Returns the byte at which the next line begins.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns how many bytes of the next line were already searched for the line end. The result is 0, unless the line
    /// is too long or the file is an unfinished document.
    pub fn looked(&self) -> u64 {
        if self.looked > LONGEST_LINE || self.is_over { self.looked } else { 0 }
    }

    /// Returns how the text of the transcript ended. Call this after the last line was returned.
    pub fn end(&self) -> End {
        self.reader.get_ref().end()
    }

    /// Returns whether the limit of bytes is reached.
    pub fn is_spent(&self) -> bool {
        self.most == 0
    }
}

/// Returns whether a file that begins with `start` is a single JSON value over many lines.
fn is_document(start: &[u8]) -> bool {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    match line.first() {
        Some(b'[') => true,
        Some(b'{') => matches!(line.last(), Some(b'{' | b'[' | b',' | b':')),
        _ => false,
    }
}

/// Returns whether `path` is a regular file that can be a transcript.
pub fn is_file(path: &Path) -> bool {
    real(path).is_ok()
}

/// Returns the real path of a regular file, or of a session in a database that is a regular file.
///
/// # Errors
///
/// [`Kind::BadInput`] if the path doesn't lead to a regular file, or if the system generates the file.
fn real(path: &Path) -> Result<PathBuf> {
    if let Some((database, id)) = database::split(path) {
        return Ok(database::path_of(&real(database)?, id));
    }
    let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
    let real = path.canonicalize().context(Kind::Io, failed)?;
    let is_made_up = SYSTEM.iter().any(|folder| real.starts_with(folder));
    match !is_made_up && fs::metadata(&real).context(Kind::Io, failed)?.is_file() {
        true => Ok(real),
        false => Err(no_file(path)),
    }
}

fn no_file(path: &Path) -> Error {
    Error::bad_input(format!("`{}` is not a regular file", quoted(path.display()))).hint("name a transcript")
}

/// Opens a regular file to read its text, which is decompressed if necessary. Never blocks, not even if a pipe replaces
/// the file after the check.
///
/// # Errors
///
/// The errors of [`Lines::open`].
pub fn open(path: &Path) -> Result<Unpacked> {
    let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
    let real = real(path)?;
    if let Some((database, id)) = database::split(&real) {
        return database::Text::open(database, id).map(Unpacked::of_session);
    }
    match file::open(&real, Links::Followed, u64::MAX) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(no_file(path)),
        opened => opened.and_then(Unpacked::new).context(Kind::Io, failed),
    }
}

/// The number of bytes at the beginning of a transcript that are searched for the session that it forks. The copied
/// lines come first.
const HEAD: u64 = 64 * 1024;

/// Returns the client's id of the session that was forked, if the transcript begins with a copy of another session and
/// says so.
pub fn forked_from(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let id = head.split_once("\"forked_from_id\"").or_else(|| {
        let (_, rest) = head.split_once("\"forkedFrom\"")?;
        rest.split_once("\"sessionId\"")
    });
    let (before, rest) = id?.1.split_once('"')?;
    let (id, _) = rest.split_once('"')?;
    (before.trim() == ":").then(|| id.to_owned())
}

/// Returns the length of the transcript's text, up to `length` bytes from its beginning, and up to `length` bytes
/// before `at`. The bytes show whether the file was replaced or truncated.
///
/// # Errors
///
/// The errors of [`Lines::open`].
pub fn around(path: &Path, at: u64, length: u64) -> Result<(u64, Vec<u8>)> {
    let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
    let mut text = open(path)?;
    let mut bytes = Vec::new();
    text.by_ref().take(length.min(at)).read_to_end(&mut bytes).context(Kind::Io, failed)?;
    let head = bytes.len() as u64;
    // Compressed text can't be read backwards, so the bytes before `at` are taken from the bytes that were just read.
    let from = at.saturating_sub(length);
    if from < head {
        bytes.extend_from_within(from as usize..);
    }
    text.skip_to(from.max(head)).context(Kind::Io, failed)?;
    text.by_ref().take(at - from.max(head).min(at)).read_to_end(&mut bytes).context(Kind::Io, failed)?;
    Ok((text.length().context(Kind::Io, failed)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, at: u64) -> (Vec<(u64, String)>, u64) {
        let mut lines = Lines::open(path, at).unwrap();
        let mut found = Vec::new();
        while let Some((at, line)) = lines.next_line().unwrap() {
            let shown = match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::Cut(start, bytes) => format!("{} of {bytes}", start.len()),
            };
            found.push((at, shown));
        }
        (found, lines.at())
    }

    #[test]
    fn only_whole_lines_are_returned_and_reading_continues_after_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        fs::write(&path, "one\r\ntwo\nhal").unwrap();
        let (lines, at) = read(&path, 0);
        assert_eq!(lines, [(0, "one".to_owned()), (5, "two".to_owned())]);
        fs::write(&path, "one\r\ntwo\nhalf\n").unwrap();
        assert_eq!(read(&path, at), (vec![(9, "half".to_owned())], 14));
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let long = "x".repeat(LONGEST_LINE as usize + 10);
        fs::write(&path, format!("{long}\nnext\n")).unwrap();
        let (lines, _) = read(&path, 0);
        assert_eq!(lines[0].1, format!("{START} of {}", LONGEST_LINE + 11));
        assert_eq!(lines[1].1, "next");
    }

    #[test]
    fn a_line_without_an_end_is_searched_in_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let long = "x".repeat(3 * LONGEST_LINE as usize);
        fs::write(&path, format!("one\n{long}")).unwrap();
        let (mut at, mut looked, mut steps) = (0, 0, 0);
        let mut step = |at: &mut u64, looked: &mut u64| {
            let mut lines =
                Lines::with_limits(&path, (*at, *looked), LONGEST_LINE + (1 << 20), LONGEST_LINE).unwrap();
            let (before, mut found) = (*at + *looked, Vec::new());
            while let Some((_, line)) = lines.next_line().unwrap() {
                found.push(match line {
                    Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    Line::Cut(start, bytes) => format!("{} of {bytes}", start.len()),
                });
            }
            (*at, *looked) = (lines.at(), lines.looked());
            assert!(*at + *looked <= before + LONGEST_LINE + (2 << 20), "more was looked at");
            steps += 1;
            (found, lines.is_spent())
        };
        let mut found = Vec::new();
        while let (lines, true) = step(&mut at, &mut looked) {
            found.extend(lines);
        }
        assert_eq!((found, at, looked), (vec!["one".to_owned()], 4, long.len() as u64));
        fs::write(&path, format!("one\n{long}y\nnext\n")).unwrap();
        let (found, _) = step(&mut at, &mut looked);
        assert_eq!(found, [format!("{START} of {}", long.len() + 2), "next".to_owned()]);
        assert_eq!((looked, steps), (0, 4));
    }
    #[test]
    fn the_texts_of_a_very_long_line_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let picture = "A".repeat(LONGEST_LINE as usize);
        let line = |text: &str| format!("{{\"text\":\"{text}\",\"data\":\"{picture}\",\"end\":1}}\n");
        fs::write(&path, format!("{}next\n{}", line("why"), line("last").trim_end())).unwrap();
        let mut lines = Lines::resume(&path, 0, 0, 1).unwrap();
        let shown = format!("{{\"text\":\"why\",\"data\":\"[… {} bytes]\",\"end\":1}}", picture.len());
        let bytes = line("why").len() as u64;
        assert_eq!(lines.next_line().unwrap(), Some((0, Line::Cut(format!("{shown}\n").as_bytes(), bytes))));
        assert!(lines.next_line().unwrap().is_none() && lines.is_spent());
        let mut lines = Lines::open(&path, bytes + 5).unwrap();
        let Some((_, Line::Cut(kept, _))) = lines.next_line().unwrap() else { panic!("it is long") };
        assert!(kept.starts_with(b"{\"text\":\"last\""));
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn a_document_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        for document in
            ["{\n \"a\": [\n 1\n ]\n}", "\n\u{feff}{ \n\"a\":1}\n\n", "[{\"a\":1},\n{\"b\":2}]", "{\"a\":1}"]
        {
            fs::write(&path, document).unwrap();
            let (lines, at) = read(&path, 0);
            assert_eq!(at, document.len() as u64, "{document}");
            assert_eq!(lines.last().unwrap().1, document.trim_start_matches('\n').trim_end());
        }
        // It is still being written, so reading begins at its start again.
        fs::write(&path, "{\n\"a\":[{\"b\":1},{\"c\":\"unfini").unwrap();
        let mut lines = Lines::open(&path, 0).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        assert_eq!(lines.next_line().unwrap(), Some((0, Line::Cut(b"{\n\"a\":[{\"b\":1}]}", length))));
        assert!(lines.next_line().unwrap().is_none());
        assert_eq!((lines.at(), lines.looked()), (0, length));
    }
}
