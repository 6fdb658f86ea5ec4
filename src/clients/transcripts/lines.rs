//! Reads a transcript line by line.
//!
//! A transcript may grow while it is read, end in the middle of a line, be replaced, or be gigabytes long. Only whole
//! lines are returned, one at a time. If a line is too long, only its beginning is returned. A hook can name any
//! path, so only regular files are read, and no files that the system generates.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::unpacked::{End, Unpacked};
use crate::error::{Context, Error, Kind, Result, quoted};
use crate::file::{self, Links};

/// The longest line that is read whole, in bytes; a longer line contains an image or a pasted file.
const LONGEST_LINE: u64 = 32 * 1024 * 1024;

/// How many bytes at the beginning of a longer line are returned.
const START: usize = 64 * 1024;

/// Folders of generated files, where reading may block forever.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A line of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The whole line, without its line end.
    Whole(&'a [u8]),
    /// The beginning of a line that is too long, and the length of the whole line.
    Cut(&'a [u8], u64),
}

/// Reads the lines of a transcript, starting at any position.
pub struct Lines {
    reader: BufReader<Unpacked>,
    at: u64,
    /// How many bytes of the current line were already searched for its end.
    looked: u64,
    /// How many more bytes may be read.
    most: u64,
    buffer: Vec<u8>,
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

    /// Opens the transcript at `path` to read at most `most` bytes, beginning at byte `at`. The line that begins
    /// there is known to have no line end in its first `looked` bytes; see [`Lines::looked`].
    ///
    /// # Errors
    ///
    /// The errors of [`Lines::open`].
    pub fn resume(path: &Path, at: u64, looked: u64, most: u64) -> Result<Lines> {
        let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
        let mut text = open(path)?;
        let mut buffer = Vec::new();
        text.skip_to(at).context(Kind::Io, failed)?;
        if looked > 0 {
            text.by_ref().take(START as u64).read_to_end(&mut buffer).context(Kind::Io, failed)?;
            text.skip_to(at + looked).context(Kind::Io, failed)?;
        }
        Ok(Lines { reader: BufReader::with_capacity(256 * 1024, text), at, looked, most, buffer })
    }

    /// Returns the next whole line, and the byte at which it begins. `None` if no whole line is left, or if the limit
    /// of bytes is reached.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if reading fails.
    pub fn next_line(&mut self) -> Result<Option<(u64, Line<'_>)>> {
        let failed = || "cannot read the transcript".to_owned();
        if self.looked == 0 {
            self.buffer.clear();
        }
        loop {
            let part = self.reader.fill_buf().context(Kind::Io, failed)?;
            if part.is_empty() || self.most == 0 {
                return Ok(None);
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(part.len(), |end| end + 1);
            let room = if self.looked + taken as u64 > LONGEST_LINE { START } else { LONGEST_LINE as usize };
            let kept = taken.min(room.saturating_sub(self.buffer.len()));
            self.buffer.extend_from_slice(&part[..kept]);
            self.reader.consume(taken);
            self.looked += taken as u64;
            self.most = self.most.saturating_sub(taken as u64);
            if end.is_some() {
                break;
            }
        }
        let (begins, bytes) = (self.at, std::mem::take(&mut self.looked));
        self.at += bytes;
        if bytes > LONGEST_LINE {
            self.buffer.truncate(START);
            self.buffer.shrink_to(START);
            return Ok(Some((begins, Line::Cut(&self.buffer, bytes))));
        }
        Ok(Some((begins, Line::Whole(self.buffer.trim_ascii_end()))))
    }

    /// Returns the byte at which the next line begins.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns how many bytes of the next line were already searched for its end and need not be searched again. It
    /// is 0 unless the line is already too long.
    pub fn looked(&self) -> u64 {
        if self.looked > LONGEST_LINE { self.looked } else { 0 }
    }

    /// Returns how the text of the transcript ended, once no line is left.
    pub fn end(&self) -> End {
        self.reader.get_ref().end()
    }

    /// Returns whether the limit of bytes is reached.
    pub fn is_spent(&self) -> bool {
        self.most == 0
    }
}

/// Returns whether `path` is a regular file that can be a transcript.
pub fn is_file(path: &Path) -> bool {
    real(path).is_ok()
}

/// Returns the real path of a regular file.
///
/// # Errors
///
/// [`Kind::BadInput`] if it is not a regular file, or if the system generates it.
fn real(path: &Path) -> Result<PathBuf> {
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

/// Opens a regular file to read its text, decompressed if it is compressed. It never blocks, not even if a pipe replaces
/// the file after the check.
///
/// # Errors
///
/// The errors of [`Lines::open`].
pub fn open(path: &Path) -> Result<Unpacked> {
    let failed = || format!("cannot read the transcript `{}`", quoted(path.display()));
    match file::open(&real(path)?, Links::Followed, u64::MAX) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(no_file(path)),
        opened => opened.and_then(Unpacked::new).context(Kind::Io, failed),
    }
}

/// Returns the length of the transcript's text and some of its bytes: up to `length` at its beginning, and up to
/// `length` before `at`. They show whether the file was replaced or truncated.
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
    // Compressed text can't be read backwards, so the bytes before `at` that were just read are taken from there.
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
            let mut lines = Lines::resume(&path, *at, *looked, LONGEST_LINE + (1 << 20)).unwrap();
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
}
