//! Pages of lines.
//!
//! A page is gzip of lines of JSON: the format, then one line for each change, then the end. The end says where the next
//! page begins. So a page that was cut off has no end, or fails gzip's checksum, and nothing of it is used.
//!
//! Everything is bounded by constants, because a small page can grow without end when it is unpacked.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

/// The version of the format that this version writes. A later version that an older one can't read has a higher number.
pub const FORMAT: u32 = 1;

/// The media type of a page.
pub const MEDIA_TYPE: &str = "application/x-ndjson+gzip";

/// The largest page that a server accepts, in bytes: the largest body of a request.
pub const LARGEST_SENT: usize = 4 << 20;

/// The largest page, in bytes, before and after it is unpacked. Arbitrary: twice the longest text of a memory.
pub const LARGEST: usize = 32 << 20;

/// The most lines of a page. Arbitrary.
pub const MOST: usize = 500;

/// A page gets no further line if its lines have more bytes than this. Even if they can't be compressed, it is small
/// enough for a server.
const ENOUGH: usize = 3 << 20;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    tiro_sync: u32,
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct Last {
    end: End,
}

/// What the end of a page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The number after which the next page begins.
    pub next: i64,
    /// Whether there are further pages.
    pub more: bool,
    /// In a page of the server, how many pages it had counted for the device before. A page counts if the device sent it, or if
    /// it leads to another number than the one that was asked for, unless the device has counted more than the server.
    /// `None` if the server doesn't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// A page that is being written.
pub struct Packer {
    gzip: GzEncoder<Vec<u8>>,
    bytes: usize,
    lines: usize,
}

impl Default for Packer {
    fn default() -> Packer {
        let mut packer = Packer { gzip: GzEncoder::new(Vec::new(), Compression::new(6)), bytes: 0, lines: 0 };
        packer.write(&Head { tiro_sync: FORMAT });
        packer
    }
}

impl Packer {
    /// Returns whether the page has room for a line of `length` bytes. An empty page has room for every line.
    pub fn fits(&self, length: usize) -> bool {
        self.lines == 0 || (self.lines < MOST && self.bytes + length <= ENOUGH)
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        self.bytes += line.len();
        self.raw(line.as_bytes());
    }

    /// Returns the whole page.
    pub fn finish(mut self, end: End) -> Vec<u8> {
        self.write(&Last { end });
        self.gzip.finish().expect("writing to memory doesn't fail")
    }

    fn write(&mut self, value: &impl Serialize) {
        let line = serde_json::to_vec(value).expect("plain values are JSON");
        self.raw(&line);
    }

    fn raw(&mut self, line: &[u8]) {
        let written = self.gzip.write_all(line).and_then(|()| self.gzip.write_all(b"\n"));
        written.expect("writing to memory doesn't fail");
    }
}

/// A page that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The lines, without the first and the last.
    pub lines: Vec<T>,
    /// Its end.
    pub end: End,
}

/// Why a page can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no page.
    Other,
    /// It is of a later version.
    Later,
    /// It ends too early, or was changed on its way.
    BrokenOff,
    /// It has too many bytes or lines.
    TooLarge,
}

impl Unreadable {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Unreadable::Other => "it is no page of changes",
            Unreadable::Later => "it is of a later version of Tiro",
            Unreadable::BrokenOff => "it ends too early, or was changed on its way",
            Unreadable::TooLarge => "it is too large",
        }
    }
}

/// Reads a page. `read` reads one line.
pub fn read<T>(packed: &[u8], mut read: impl FnMut(&[u8]) -> T) -> Result<Page<T>, Unreadable> {
    if packed.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    let mut unpacked = BufReader::new(GzDecoder::new(packed).take(LARGEST as u64 + 1));
    let mut left = LARGEST;
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| -> Result<bool, Unreadable> {
        line.clear();
        let count = unpacked.read_until(b'\n', line).map_err(|error| broken(&error))?;
        left = left.checked_sub(count).ok_or(Unreadable::TooLarge)?;
        Ok(count > 0 && line.pop_if(|byte| *byte == b'\n').is_some())
    };
    if !next(&mut line)? {
        return Err(Unreadable::Other);
    }
    let head: Head = serde_json::from_slice(&line).map_err(|_| Unreadable::Other)?;
    if head.tiro_sync > FORMAT {
        return Err(Unreadable::Later);
    }
    let mut lines = Vec::new();
    loop {
        if !next(&mut line)? {
            return Err(Unreadable::BrokenOff);
        }
        if line.starts_with(b"{\"end\":") {
            let Last { end } = serde_json::from_slice(&line).map_err(|_| Unreadable::BrokenOff)?;
            // Only at the end of the stream is the checksum compared.
            let is_over = !next(&mut line)? && line.is_empty();
            return if is_over { Ok(Page { lines, end }) } else { Err(Unreadable::BrokenOff) };
        }
        if lines.len() == MOST {
            return Err(Unreadable::TooLarge);
        }
        lines.push(read(&line));
    }
}

/// Returns why unpacking failed.
fn broken(error: &std::io::Error) -> Unreadable {
    match error.kind() {
        ErrorKind::InvalidInput => Unreadable::Other,
        _ => Unreadable::BrokenOff,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: End = End { next: 7, more: true, before: Some(3) };

    fn packed(lines: &[&str]) -> Vec<u8> {
        let mut packer = Packer::default();
        lines.iter().for_each(|line| packer.add(line));
        packer.finish(END)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn strings(packed: &[u8]) -> Result<Page<String>, Unreadable> {
        read(packed, |line| String::from_utf8_lossy(line).into_owned())
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        for lines in [&[][..], &["{}"], &["a", "b", "ü"]] {
            let page = strings(&packed(lines)).unwrap();
            assert_eq!(
                (page.lines.iter().map(String::as_str).collect::<Vec<_>>(), page.end),
                (lines.to_vec(), END)
            );
        }
    }

    #[test]
    fn half_a_page_is_no_page() {
        let whole = packed(&["one", "two", "three"]);
        for length in 0..whole.len() {
            assert!(strings(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            // Some bytes of gzip's head say nothing about the content.
            if let Ok(page) = strings(&changed) {
                assert_eq!(page.lines, ["one", "two", "three"], "byte {at}");
            }
        }
        // A stream that was cut and closed well has no end.
        assert_eq!(strings(&gzip(b"{\"tiro_sync\":1}\n{}\n")), Err(Unreadable::BrokenOff));
        assert_eq!(strings(&gzip(b"{\"tiro_sync\":1}\n{}")), Err(Unreadable::BrokenOff));
        let after = b"{\"tiro_sync\":1}\n{\"end\":{\"next\":1,\"more\":false}}\n{}\n";
        assert_eq!(strings(&gzip(after)), Err(Unreadable::BrokenOff));
    }

    #[test]
    fn what_is_no_page_is_named() {
        for other in [&b""[..], b"<html>", b"{}\n"] {
            assert!(strings(other).is_err(), "{other:?}");
        }
        assert_eq!(strings(&gzip(b"<html>\n")), Err(Unreadable::Other));
        assert_eq!(strings(&gzip(b"")), Err(Unreadable::Other));
        assert_eq!(strings(&gzip(b"{\"tiro_sync\":\"1\"}\n")), Err(Unreadable::Other));
        assert_eq!(strings(&gzip(b"{\"tiro_sync\":2,\"new\":[]}\n")), Err(Unreadable::Later));
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let mut text = b"{\"tiro_sync\":1}\n".to_vec();
        text.resize(LARGEST + 2, b'a');
        let bomb = gzip(&text);
        assert!(bomb.len() < LARGEST_SENT / 8);
        assert_eq!(strings(&bomb), Err(Unreadable::TooLarge));
        let many = b"{\"tiro_sync\":1}\n".iter().copied().chain(b"{}\n".repeat(MOST + 1));
        assert_eq!(strings(&gzip(&many.collect::<Vec<_>>())), Err(Unreadable::TooLarge));
    }

    #[test]
    fn a_page_is_small_enough_for_a_server_even_if_nothing_can_be_compressed() {
        let mut packer = Packer::default();
        let mut state = 1_u64;
        let mut noise = |length: usize| -> String {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + ((state >> 33) % 95) as u8)
            };
            (0..length).map(|_| next()).collect()
        };
        while packer.fits(100_000) {
            packer.add(&noise(100_000));
        }
        assert!(packer.lines() > 20);
        assert!(packer.finish(END).len() <= LARGEST_SENT);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), raw in any::<bool>()) {
            let _ = strings(&if raw { bytes } else { gzip(&bytes) });
        }
    }
}
