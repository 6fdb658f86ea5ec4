//! Reads a file that was found.
//!
//! A file can change while it is read. So the metadata of the file is compared before and after the reading. If the
//! metadata changed, the file is read again.
//!
//! A file that changed right before it was read can change once more without a change of its metadata, for two reasons.
//! First, the times of a file have the resolution of the file system's clock. Second, a program may write to the file
//! through a memory mapping. If it writes to the same page several times, only the first write after the kernel has
//! written this page to the disk changes the times. So a reading is *settled* only if the file had not changed for the
//! time [`SETTLED`]. After a reading that is not settled, the next reading must compare the content. The times are
//! compared with the caller's clock. If the file lies on another machine whose clock is late by more than [`SETTLED`],
//! a reading can count as settled too early.

use std::io;

use super::budget::{Budget, Exhausted};
use super::documents::{Extracted, Extractor, Note};
use super::plain::plain;
use super::policy::{PathTarget, Roots};
use super::refusal::Refusal;
use super::{Form, FoundFile, Limits, folder};
use tiro_base::encoding::{self, NoText, Text};
use tiro_base::thread::{ContentHash, Stat};

/// The time, in nanoseconds, for which a file must have been unchanged before its times are trusted. This time is
/// longer than the resolution of any common file system (FAT: 2 s). Linux also writes a changed page to the disk in a
/// shorter time (30 s, and up to 5 s more until Linux checks; <https://docs.kernel.org/admin-guide/sysctl/vm.html>).
const SETTLED: i64 = 60_000_000_000;

/// The maximum number of times that a file is read if it changes during each reading.
const TRIES: usize = 3;

/// The largest image that providers of models accept, in bytes.
const LARGEST_IMAGE: u64 = 5_000_000;

/// The parameters of reading files.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The limits of reading.
    pub limits: &'a Limits,
    /// The time before the reading, in nanoseconds since 1970.
    pub now_ns: i64,
    /// The extractor for the text of documents.
    pub extractor: &'a Extractor,
    /// The budget of the call for documents. The budget also says whether the call has ended.
    pub budget: &'a Budget,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its text.
    pub text: String,
    /// The hash of its bytes.
    pub raw: ContentHash,
    /// The metadata of the file when it was read.
    pub stat: Stat,
    /// Whether the file can be trusted to be unchanged as long as its metadata is the same.
    pub is_settled: bool,
    /// Notes about parts of the file that are missing from the text.
    pub notes: Vec<Note>,
}

/// An image for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its media type, such as `image/png`.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Roots {
    /// Reads a file that was found, unless the call has ended. The text of a text file is returned unchanged, with a
    /// byte order mark if there is one. Text in another encoding is converted to UTF-8, and a note says so.
    pub fn read(&self, found: &FoundFile, reading: &Reading<'_>) -> Result<Read, Refusal> {
        if reading.budget.has_ended() {
            return Err(Refusal::Budget(Exhausted::Ended));
        }
        let most = match found.form {
            Form::Text => reading.limits.file_bytes,
            Form::Document(_) => reading.limits.document_bytes,
        };
        let Bytes { bytes, stat, keeps_times } = self.bytes(found, most)?;
        let raw = ContentHash::of(&bytes);
        let Extracted { text, notes } = match found.form {
            Form::Text => decode(bytes)?,
            Form::Document(kind) => {
                let extracted = reading.extractor.extract(kind, raw, bytes, reading.budget);
                extracted.map_err(Refusal::Budget)?.map_err(|fault| Refusal::Document(kind, fault))?
            }
        };
        Ok(Read { text, raw, stat, is_settled: keeps_times && is_settled(&stat, reading.now_ns), notes })
    }

    /// Reads the image at `path`, without its metadata.
    pub fn image(&self, path: &str) -> Result<Image, Refusal> {
        let file = match self.resolve(path)? {
            PathTarget::File(file) => file,
            PathTarget::Folder(_) => return Err(Refusal::Folder),
        };
        let stat = Stat::default();
        let found = FoundFile { path: String::new(), stat, form: Form::Text, file };
        let Bytes { bytes, .. } = self.bytes(&found, LARGEST_IMAGE)?;
        let media_type = media_type(&bytes).ok_or(Refusal::NoImage)?;
        Ok(Image { media_type, bytes: plain(bytes) })
    }

    /// Returns the path of the project's file at `path`, relative to the project's root, and its bytes, at most `most`.
    pub fn own_file(&self, path: &str, most: u64) -> Result<(String, Vec<u8>), Refusal> {
        let file = match self.resolve(path)? {
            PathTarget::File(file) if file.is_of_project() => file,
            PathTarget::File(_) => return Err(Refusal::Outside),
            PathTarget::Folder(_) => return Err(Refusal::Folder),
        };
        let shown = self.shown(&file);
        let found = FoundFile { path: String::new(), stat: Stat::default(), form: Form::Text, file };
        Ok((shown, self.bytes(&found, most)?.bytes))
    }

    /// Returns the bytes of a file, at most `most`.
    fn bytes(&self, found: &FoundFile, most: u64) -> Result<Bytes, Refusal> {
        for _ in 0..TRIES {
            let opened = self.open(&found.file)?;
            if opened.stat.size > most {
                return Err(Refusal::TooLarge(most));
            }
            let mut bytes = Vec::with_capacity(usize::try_from(opened.stat.size).unwrap_or_default());
            let limited = &mut io::Read::take(&opened.file, most.saturating_add(1));
            io::Read::read_to_end(limited, &mut bytes).map_err(|error| Refusal::of(&error))?;
            let length = bytes.len() as u64;
            if length > most {
                return Err(Refusal::TooLarge(most));
            }
            if length == opened.stat.size && folder::stat(&opened.file)? == opened.stat {
                let keeps_times = folder::keeps_times(&opened.file);
                return Ok(Bytes { bytes, stat: opened.stat, keeps_times });
            }
        }
        Err(Refusal::Changing)
    }
}

/// The bytes of a file.
struct Bytes {
    bytes: Vec<u8>,
    /// The metadata of the file, which was the same before and after the reading.
    stat: Stat,
    /// See [`folder::keeps_times`].
    keeps_times: bool,
}

fn is_settled(stat: &Stat, now_ns: i64) -> bool {
    now_ns.saturating_sub(stat.mtime_ns.max(stat.ctime_ns)) > SETTLED
}

fn decode(bytes: Vec<u8>) -> Result<Extracted, Refusal> {
    match encoding::text(bytes) {
        Ok(Text { text, from, replaced }) => {
            let damaged = (replaced > 0).then_some(Note::Replaced(replaced));
            Ok(Extracted { text, notes: from.map(Note::Converted).into_iter().chain(damaged).collect() })
        }
        Err(NoText::Binary) => Err(Refusal::Binary),
        Err(NoText::Unclear) => Err(Refusal::Encoding),
    }
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_converted_and_a_note_says_so() {
        let decoded = |bytes: &[u8]| {
            decode(bytes.to_vec()).map(|read| {
                let notes = read.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                (read.text, notes)
            })
        };
        let plain = |text: &str| Ok((text.to_owned(), String::new()));
        let noted = |text: &str, note: &str| Ok((text.to_owned(), note.to_owned()));
        assert_eq!(decoded(b""), plain(""));
        assert_eq!(decoded("\u{feff}naïve\r\n".as_bytes()), plain("\u{feff}naïve\r\n"));
        assert_eq!(decoded(b"\xff\xfeh\0i\0=\xd8\x00\xde"), noted("hi😀", "converted from UTF-16"));
        assert_eq!(decoded(b"caf\xe9"), noted("café", "converted from windows-1252"));
        let damaged = "naïve café déjà".as_bytes().iter().chain(b"\xff").copied().collect::<Vec<u8>>();
        let note = "1 byte that is not UTF-8 is shown as U+FFFD";
        assert_eq!(decoded(&damaged), noted("naïve café déjà\u{fffd}", note));
        assert_eq!(decoded(b"\xff\xfeh\0i"), Err(Refusal::Encoding));
        assert_eq!(decoded(b"a\0b"), Err(Refusal::Binary));
    }

    #[test]
    fn a_file_is_settled_some_time_after_its_last_change() {
        let now = 1_800_000_000_000_000_000;
        let at =
            |mtime_ns: i64, ctime_ns: i64| is_settled(&Stat { mtime_ns, ctime_ns, ..Stat::default() }, now);
        assert!(at(now - SETTLED - 1, now - SETTLED - 1));
        assert!(!at(now - SETTLED, now - SETTLED - 1));
        // Programs can set `mtime` back, but not `ctime`.
        assert!(!at(now - 10 * SETTLED, now - 1));
        assert!(!at(now + SETTLED, now - 10 * SETTLED));
        assert!(at(i64::MIN, i64::MIN));
    }
}
