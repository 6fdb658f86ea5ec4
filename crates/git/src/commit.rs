//! Reads one commit: its author, times, message and parents.
//!
//! The parser is our own and tolerates nearly any input, because real histories contain headers that strict parsers
//! refuse: authors without a date, dates beyond the year 9999, messages in rare encodings. A commit is unreadable only
//! if its tree line is missing, the id of its tree or of a parent is invalid, or it has more than 1,000 parents. E-mail
//! addresses are not kept: they are only looked up in `.mailmap`.

use gix::bstr::ByteSlice;
use gix::objs::Kind;

use super::diff::changes::{Changes, PatchId};
use super::mailmap::Mailmap;
use super::objects::Handle;
use super::sha::Sha;
use tiro_base::encoding::{self, How};

/// The largest commit object that is read, in bytes.
const COMMIT_LIMIT: u64 = 16 << 20;

/// The maximum number of parents of a commit. No merge made by a person has so many.
const PARENT_LIMIT: usize = 1000;

/// The longest message that is kept, in bytes.
const MESSAGE_LIMIT: usize = 32 << 10;

/// A commit, and its changes compared with its first parent.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitDetail {
    /// The id of the commit.
    pub sha: Sha,
    /// The ids of the parents, beginning with the first parent. The list includes parents that a shallow clone doesn't
    /// contain.
    pub parents: Vec<Sha>,
    /// The author.
    pub author: Author,
    /// The time when the author made the change. A rebase keeps this time.
    pub author_time: Moment,
    /// The time when this commit object was made. A rebase changes this time.
    pub commit_time: Moment,
    /// The message.
    pub message: Message,
    /// The changes compared with the first parent.
    pub changes: Changes,
    /// A hash of the changes. A rebased or cherry-picked copy of the commit has the same hash. `None` for
    /// merges, for empty commits, and if the changes are not fully known, for example because a blob is
    /// missing.
    pub patch_id: Option<PatchId>,
}

/// The author of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// The current name of the author according to `.mailmap`; empty if the commit has no author.
    pub name: String,
    /// The author's name in the commit, if it differs from `name`.
    pub written: Option<String>,
}

/// A commit that could not be read, and why.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The id of the commit.
    pub sha: Sha,
    /// Why the commit could not be read, in words.
    pub reason: String,
}

/// A commit message as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The text: at most 32 KiB, without trailing white space.
    pub text: String,
    /// The length of the whole message in bytes.
    pub bytes: usize,
    /// Whether the message was longer than the limit and its end was left out.
    pub cut: bool,
    /// How the encoding of the text was found.
    pub how: How,
}

impl Message {
    /// Returns the first line of the message, or an empty text if the message is empty.
    pub fn subject(&self) -> &str {
        self.text.lines().next().unwrap_or("").trim()
    }

    fn decode(bytes: &[u8], reader: &encoding::RecordDecoder) -> Message {
        let kept = &bytes[..bytes.len().min(MESSAGE_LIMIT)];
        let cut = bytes.len() > kept.len();
        let (text, how) = reader.read(kept, !cut);
        let text = text.replace("\r\n", "\n").trim_start_matches('\n').trim_end().to_owned();
        Message { text, bytes: bytes.len(), cut, how }
    }
}

/// A time as a commit records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since 1970-01-01 UTC, within the years 1 to 9999.
    pub seconds: i64,
    /// The number of seconds between UTC and the author's local time: less than a day, and possibly negative.
    pub offset: i32,
    /// Whether the recorded time was missing, unreadable or outside the years 1 to 9999.
    pub nonsense: bool,
}

impl Moment {
    /// The beginning of the year 1, in seconds since 1970.
    pub(super) const FIRST: i64 = -62_135_596_800;
    /// The end of the year 9999, in seconds since 1970.
    pub(super) const LAST: i64 = 253_402_300_799;

    /// Parses a time such as `1700000000 +0130`. Accepts anything: an unreadable time becomes the epoch, and a time
    /// outside the years 1 to 9999 becomes the first or last second of those years.
    fn parse(text: &[u8]) -> Moment {
        let mut words = text.to_str().unwrap_or("").split_ascii_whitespace();
        let stated = words.next().and_then(|word| {
            let digits = word.strip_prefix('-').unwrap_or(word);
            let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let beyond = if word.starts_with('-') { i64::MIN } else { i64::MAX };
            all_digits.then(|| word.parse::<i64>().unwrap_or(beyond))
        });
        let seconds = stated.unwrap_or(0).clamp(Moment::FIRST, Moment::LAST);
        let zone: Option<i32> = words.next().and_then(|word| word.parse().ok());
        let offset =
            zone.map(|zone| zone / 100 * 3600 + zone % 100 * 60).filter(|offset| offset.abs() <= 86_400);
        Moment { seconds, offset: offset.unwrap_or(0), nonsense: stated != Some(seconds) }
    }
}

/// The headers and the message of a commit object, borrowed from its bytes.
pub(super) struct RawCommit<'a> {
    /// The tree.
    pub tree: gix::ObjectId,
    /// The parents, the first one first.
    pub parents: Vec<Sha>,
    author: &'a [u8],
    committer: &'a [u8],
    encoding: Option<&'a [u8]>,
    message: &'a [u8],
}

impl<'a> RawCommit<'a> {
    fn parse(mut data: &'a [u8]) -> Result<RawCommit<'a>, String> {
        let mut tree = None;
        let mut commit = RawCommit {
            tree: gix::ObjectId::null(gix::hash::Kind::Sha1),
            parents: Vec::new(),
            author: b"",
            committer: b"",
            encoding: None,
            message: b"",
        };
        while !data.is_empty() {
            let end = data.find_byte(b'\n').unwrap_or(data.len());
            let line = &data[..end];
            data = &data[(end + 1).min(data.len())..];
            if line.is_empty() {
                commit.message = data;
                break;
            }
            let (key, value) = line.split_once_str(" ").unwrap_or((line, b""));
            let id = || {
                gix::ObjectId::from_hex(value)
                    .map_err(|_| "the id of its tree or of a parent is invalid".to_owned())
            };
            match key {
                b"tree" => tree = Some(id()?),
                b"parent" if commit.parents.len() == PARENT_LIMIT => {
                    return Err(format!("it has more than {PARENT_LIMIT} parents"));
                }
                b"parent" => commit.parents.push(Sha::from(id()?.as_ref())),
                b"author" => commit.author = value,
                b"committer" => commit.committer = value,
                b"encoding" => commit.encoding = Some(value),
                _ => {}
            }
        }
        commit.tree = tree.ok_or("it has no tree")?;
        Ok(commit)
    }

    /// Returns the author.
    pub(super) fn author(&self, mailmap: &Mailmap) -> Author {
        let Signature { name, address, .. } = Signature::of(self.author);
        let shortened = |name: &str| name.trim().chars().take(200).collect::<String>();
        let written = shortened(&self.reader().read(name, true).0);
        let current = mailmap.current(&written, &address.to_str_lossy()).map(|name| shortened(&name));
        match current.filter(|current| *current != written && !current.is_empty()) {
            Some(name) => Author { name, written: Some(written) },
            None => Author { name: written, written: None },
        }
    }

    /// Returns the decoder of the commit's texts. The header names one encoding for all texts of the commit, but names
    /// may be in another encoding, because git doesn't convert them.
    fn reader(&self) -> encoding::RecordDecoder {
        let message = &self.message[..self.message.len().min(MESSAGE_LIMIT)];
        encoding::RecordDecoder::new(self.encoding, &[message, Signature::of(self.author).name])
    }

    /// Returns the commit without its changes.
    pub(super) fn detail(&self, sha: Sha, mailmap: &Mailmap) -> CommitDetail {
        CommitDetail {
            sha,
            parents: self.parents.clone(),
            author: self.author(mailmap),
            author_time: Signature::of(self.author).time,
            commit_time: Signature::of(self.committer).time,
            message: Message::decode(self.message, &self.reader()),
            changes: Changes::default(),
            patch_id: None,
        }
    }
}

/// The parts of a line `Name <address> SECONDS OFFSET`.
struct Signature<'a> {
    name: &'a [u8],
    address: &'a [u8],
    time: Moment,
}

impl Signature<'_> {
    fn of(line: &[u8]) -> Signature<'_> {
        let begin = line.find_byte(b'<').unwrap_or(line.len());
        let end = line.rfind_byte(b'>').filter(|end| *end > begin);
        Signature {
            name: &line[..begin],
            address: end.map_or(&b""[..], |end| line[begin + 1..end].trim_ascii()),
            time: Moment::parse(line.rfind_byte(b'>').map_or(&b""[..], |end| &line[end + 1..])),
        }
    }
}

/// Reads a commit into `buffer` and parses it.
///
/// # Errors
///
/// The reason why the commit can't be read, in words.
pub(super) fn read<'a>(
    objects: &mut Handle,
    sha: &Sha,
    buffer: &'a mut Vec<u8>,
) -> Result<RawCommit<'a>, String> {
    let read = objects.read(&sha.object_id(), Kind::Commit, COMMIT_LIMIT, buffer);
    read.map_err(|fault| fault.to_string())?;
    RawCommit::parse(buffer)
}

/// Returns the parents of a commit.
///
/// # Errors
///
/// The reason why the commit can't be read, in words.
pub(super) fn parents(objects: &mut Handle, sha: &Sha, buffer: &mut Vec<u8>) -> Result<Vec<Sha>, String> {
    read(objects, sha, buffer).map(|commit| commit.parents)
}

/// Returns the parents of a commit and its commit time in seconds since 1970.
///
/// # Errors
///
/// The reason why the commit can't be read, in words.
pub(super) fn parents_and_time(
    objects: &mut Handle,
    sha: &Sha,
    buffer: &mut Vec<u8>,
) -> Result<(Vec<Sha>, i64), String> {
    let commit = read(objects, sha, buffer)?;
    let time = Signature::of(commit.committer).time;
    Ok((commit.parents, time.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_is_read() {
        let at = |text: &str| {
            let Moment { seconds, offset, nonsense } = Moment::parse(text.as_bytes());
            (seconds, offset, nonsense)
        };
        assert_eq!(at(" 1700000000 +0130"), (1_700_000_000, 5400, false));
        assert_eq!(at(" 1700000000 -0800"), (1_700_000_000, -28_800, false));
        assert_eq!(at(" 9999999999999 +0000"), (Moment::LAST, 0, true));
        assert_eq!(at(" 99999999999999999999999 +9999999"), (Moment::LAST, 0, true));
        assert_eq!(at(" -99999999999999 +0000"), (Moment::FIRST, 0, true));
        assert_eq!(at(" -5 +0000"), (-5, 0, false));
        assert_eq!(at(""), (0, 0, true));
        assert_eq!(at(" yesterday"), (0, 0, true));
    }

    #[test]
    fn messages_are_read_in_the_encoding_they_name_or_flagged() {
        let read = |bytes: &[u8], encoding: Option<&str>| {
            let reader = encoding::RecordDecoder::new(encoding.map(str::as_bytes), &[bytes]);
            let message = Message::decode(bytes, &reader);
            (message.text, message.how, message.cut)
        };
        let named = |text: &str| (text.to_owned(), How::AsNamed, false);
        assert_eq!(read("Grüße\n".as_bytes(), None), named("Grüße"));
        assert_eq!(read(b"Gr\xfc\xdfe", Some("ISO-8859-1")), named("Grüße"));
        assert_eq!(read(b"5 \x80", Some("windows-1252")), named("5 €"));
        assert_eq!(read(b"Gr\xfc\xdfe", None), ("Grüße".to_owned(), How::Guessed, false));
        assert_eq!(read(b"\xff\xff\xff\xff\xff", None), ("\u{fffd}".repeat(5), How::Replaced, false));
        let long = "ü".repeat(MESSAGE_LIMIT);
        let (text, how, cut) = read(format!("x{long}").as_bytes(), None);
        assert_eq!((text.len(), how, cut), (MESSAGE_LIMIT - 1, How::AsNamed, true));
    }

    #[test]
    fn a_commit_without_people_or_message_is_still_a_commit() {
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let data = format!("tree {tree}\nauthor nobody\ngpgsig -----\n more\n -----\n");
        let detail = RawCommit::parse(data.as_bytes()).unwrap().detail(Sha([1; 20]), &Mailmap::default());
        assert_eq!((detail.author.name.as_str(), detail.message.text.as_str()), ("nobody", ""));
        assert!(detail.author_time.nonsense && detail.commit_time.nonsense);
        assert!(RawCommit::parse(b"parent x\n").is_err());
        assert!(RawCommit::parse(b"").is_err());
    }
}
