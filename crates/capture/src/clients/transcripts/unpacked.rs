//! Opens a transcript and reads its text. If the file is compressed, the text is decompressed.
//!
//! Codex compresses sessions that are a week old. A compressed file is recognised by its first bytes, not by its name.
//! It may contain several frames, some of which have to be skipped. It may be damaged or unfinished, or it may expand
//! to an endless text. So as much text as possible is read, up to a limit, and [`Unpacked::end`] reports how the text
//! ended.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::database::Text;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The first bytes of compressed data. A frame that is skipped begins with a byte whose last four bits may be any
/// number, followed by `SKIPPED`.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The extension of a compressed transcript.
const EXTENSION: &str = "zst";

/// The maximum number of bytes to which a file may expand: the larger of this number and the file's length times the
/// factor below, but never more than [`MOST`]. JSON of sessions shrinks to a tenth, rarely to a fiftieth.
const SMALL: u64 = 64 * 1024 * 1024;
const RATIO: u64 = 256;
const MOST: u64 = 4 * 1024 * 1024 * 1024;

/// The largest window that is kept in memory while a file is decompressed. If a frame states its length, its window has
/// this length.
const WINDOW: u64 = 256 * 1024 * 1024;

/// How the text of a transcript ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole file was read, or reading has not reached the end of the file.
    Whole,
    /// The compressed file is damaged or ends in the middle of a frame. The text before that was read.
    Damaged,
    /// The compressed file expands to more than is read.
    TooLarge,
}

/// The text of an open transcript.
pub struct Unpacked(Inner);

enum Inner {
    Plain(File),
    Session(Box<Text>),
    Packed(Box<Packed>),
}

struct Packed {
    file: BufReader<File>,
    decoder: FrameDecoder,
    /// The number of bytes of text that were read, and the maximum number.
    read: u64,
    most: u64,
    /// Set when nothing more can be decompressed.
    end: Option<End>,
}

impl Unpacked {
    /// Returns the text of `file`.
    ///
    /// # Errors
    ///
    /// The errors of reading the file.
    pub(super) fn new(mut file: File) -> io::Result<Unpacked> {
        let mut head = Vec::new();
        (&file).take(4).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        let is_skipped = head.len() == 4 && head[0] & 0xf0 == 0x50 && head[1..] == SKIPPED;
        if head != MAGIC && !is_skipped {
            return Ok(Unpacked(Inner::Plain(file)));
        }
        let most = file.metadata()?.len().saturating_mul(RATIO).clamp(SMALL, MOST);
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        let file = BufReader::with_capacity(256 * 1024, file);
        Ok(Unpacked(Inner::Packed(Box::new(Packed { file, decoder, read: 0, most, end: None }))))
    }

    /// Returns the text of a session in a database.
    pub(super) fn of_session(text: Text) -> Unpacked {
        Unpacked(Inner::Session(Box::new(text)))
    }

    /// Moves to the byte `at` of the text. In compressed text, and in the text of a session in a database, `at` must not be before the current byte.
    ///
    /// # Errors
    ///
    /// The errors of reading the file.
    pub(super) fn skip_to(&mut self, at: u64) -> io::Result<()> {
        match &mut self.0 {
            Inner::Plain(file) => file.seek(SeekFrom::Start(at)).map(drop),
            Inner::Session(text) => {
                let left = at.saturating_sub(text.read);
                io::copy(&mut text.as_mut().take(left), &mut io::sink()).map(drop)
            }
            Inner::Packed(packed) => {
                let left = at.saturating_sub(packed.read);
                io::copy(&mut packed.as_mut().take(left), &mut io::sink()).map(drop)
            }
        }
    }

    /// Returns the length of the text. If the text is not that of a plain file, this reads the rest of it.
    ///
    /// # Errors
    ///
    /// The errors of reading the file.
    pub(super) fn length(&mut self) -> io::Result<u64> {
        match &mut self.0 {
            Inner::Plain(file) => Ok(file.metadata()?.len()),
            Inner::Session(text) => io::copy(text.as_mut(), &mut io::sink()).map(|_| text.read),
            Inner::Packed(packed) => io::copy(packed.as_mut(), &mut io::sink()).map(|_| packed.read),
        }
    }

    /// Returns how the text ended.
    pub fn end(&self) -> End {
        match &self.0 {
            Inner::Plain(_) | Inner::Session(_) => End::Whole,
            Inner::Packed(packed) => packed.end.unwrap_or(End::Whole),
        }
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Plain(file) => file.read(into),
            Inner::Session(text) => text.read(into),
            Inner::Packed(packed) => packed.read(into),
        }
    }
}

impl Packed {
    /// Begins the next frame. Returns `None` if there is none.
    fn next_frame(&mut self) -> io::Result<Option<()>> {
        loop {
            if self.file.fill_buf()?.is_empty() {
                return Ok(None);
            }
            match self.decoder.reset(&mut self.file) {
                Ok(()) => return Ok(Some(())),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    self.file.seek_relative(i64::from(length))?;
                }
                Err(_) => {
                    self.end = Some(End::Damaged);
                    return Ok(None);
                }
            }
        }
    }

    /// Ends the current frame with an empty last block and a checksum, so that the text up to here can be read.
    fn give_up(&mut self) {
        let last: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
        let _ = self.decoder.decode_blocks(last, BlockDecodingStrategy::UptoBlocks(1));
        self.end = Some(End::Damaged);
    }
}

impl Read for Packed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.end == Some(End::TooLarge) || into.is_empty() {
                return Ok(0);
            }
            if self.decoder.can_collect() > 0 {
                if self.read == self.most {
                    self.end = Some(End::TooLarge);
                    return Ok(0);
                }
                let left = usize::try_from(self.most - self.read).unwrap_or(usize::MAX);
                let most = into.len().min(left);
                let read = self.decoder.read(&mut into[..most])?;
                self.read += read as u64;
                return Ok(read);
            }
            if self.end.is_some() {
                return Ok(0);
            }
            if self.decoder.is_finished() {
                if self.next_frame()?.is_none() {
                    self.end = self.end.or(Some(End::Whole));
                }
            } else if self
                .decoder
                .decode_blocks(&mut self.file, BlockDecodingStrategy::UptoBlocks(1))
                .is_err()
            {
                self.give_up();
            }
        }
    }
}

/// Returns the path that the transcript had before it was compressed.
pub fn plain(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) if extension == EXTENSION => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// The length of a file in bytes, and the time of its last change in milliseconds.
pub type Stamp = (u64, i64);

/// Returns the length and the time of a compressed transcript. Returns `None` if the transcript is not compressed.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let is_packed = plain(path) != path;
    is_packed.then(|| Some((path.metadata().ok()?.len(), modified(path)?)))?
}

/// Returns when a file was last changed, in milliseconds since 1970.
pub fn modified(path: &Path) -> Option<i64> {
    let changed = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(changed.as_millis()).ok()
}

/// Returns whether `path` is the compressed copy of a transcript that still exists uncompressed, and so may have grown.
pub fn is_copy(path: &Path) -> bool {
    let plain = plain(path);
    plain != path && plain.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame of uncompressed blocks that names its length.
    fn frame(text: &[u8]) -> Vec<u8> {
        let mut out = [MAGIC.as_slice(), &[0xa0], &(text.len() as u32).to_le_bytes()].concat();
        let mut parts: Vec<&[u8]> = text.chunks(1000).collect();
        if parts.is_empty() {
            parts.push(b"");
        }
        for (place, part) in parts.iter().enumerate() {
            let head = (part.len() << 3) | usize::from(place + 1 == parts.len());
            out.extend(&(head as u32).to_le_bytes()[..3]);
            out.extend(*part);
        }
        out
    }

    /// Returns a frame of blocks that repeat one byte.
    fn bomb(blocks: usize) -> Vec<u8> {
        let mut out = [MAGIC.as_slice(), &[0x00, 0x38]].concat();
        for place in 0..blocks {
            let head = (100_000 << 3) | 2 | usize::from(place + 1 == blocks);
            out.extend(&(head as u32).to_le_bytes()[..3]);
            out.push(b'x');
        }
        out
    }

    fn read(bytes: &[u8]) -> (Vec<u8>, End) {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut text = Unpacked::new(file).unwrap();
        let mut read = Vec::new();
        text.read_to_end(&mut read).unwrap();
        (read, text.end())
    }

    #[test]
    fn frames_are_read_one_after_the_other_and_others_are_skipped() {
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], b"abc".as_slice()].concat();
        let long = b"0123456789".repeat(777);
        let bytes = [skipped.clone(), frame(b"one\n"), skipped, frame(&long), frame(b"")].concat();
        assert_eq!(read(&bytes), ([b"one\n".as_slice(), &long].concat(), End::Whole));
        assert_eq!(read(b"{}\n"), (b"{}\n".to_vec(), End::Whole));
        assert_eq!(read(b""), (Vec::new(), End::Whole));
    }

    #[test]
    fn a_damaged_file_is_read_as_far_as_possible() {
        let long = b"0123456789".repeat(777);
        let whole = [frame(b"one\n"), frame(&long)].concat();
        let (text, end) = read(&whole[..whole.len() - 900]);
        assert_eq!(end, End::Damaged);
        assert!(text.len() > 6000 && [b"one\n".as_slice(), &long].concat().starts_with(&text));
        assert_eq!(
            read(&[&frame(b"one\n"), b"garbage".as_slice()].concat()),
            (b"one\n".to_vec(), End::Damaged)
        );
        assert_eq!(read(&whole[..3]), (whole[..3].to_vec(), End::Whole));
        assert_eq!(read(&whole[..7]), (Vec::new(), End::Damaged));
    }

    #[test]
    fn an_endless_text_is_cut_off() {
        let (text, end) = read(&bomb(2000));
        assert_eq!((text.len() as u64, end), (SMALL, End::TooLarge));
        let (text, end) = read(&bomb(20));
        assert_eq!((text.len(), end), (2_000_000, End::Whole));
    }

    #[test]
    fn a_compressed_transcript_keeps_its_name() {
        assert_eq!(plain(Path::new("/a/r.jsonl.zst")), Path::new("/a/r.jsonl"));
    }
}
