//! Finds and reads the files that differ between two trees.
//!
//! Trees with equal ids are equal and are not read. The number of other trees that are read is limited to the number
//! that real commits need. Without a limit, a few tiny trees could stand for an astronomical number of files, because
//! each tree can contain the next one ten times.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use gix::bstr::BString;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Kind, TreeRefIter};

use crate::objects::{Fault, Handle};
use tiro_base::encoding;

/// How many changed files a comparison finds before it stops. A small tree can stand for a huge number of files.
const ENTRY_LIMIT: usize = 20_000;

/// The maximum number of trees, and the most bytes of trees, that are read for one comparison.
const TREE_LIMIT: usize = 50_000;
const TREE_BYTES: usize = 64 << 20;

/// The largest tree that is read, in bytes. A folder of about 400,000 files has a tree of this size.
const LARGEST_TREE: u64 = 16 << 20;

/// The maximum depth of nested folders, and the maximum number of bytes of a path. Common file systems have these two
/// limits.
const DEPTH_LIMIT: usize = 2048;
const PATH_LIMIT: usize = 4096;

/// The largest blob whose lines are compared, in bytes.
const BLOB_LIMIT: u64 = 1 << 20;

/// The maximum number of bytes of blobs that are read for one commit.
pub(crate) const COMMIT_BUDGET: usize = 32 << 20;

/// The longest time spent on the files of one commit. Arbitrary: ten times as long as the slowest real commit took.
const COMMIT_TIME: Duration = Duration::from_secs(3);

/// A file that differs between two trees.
pub(crate) struct Entry {
    /// The path; the new path of a renamed file.
    pub path: BString,
    /// The old path of a renamed file.
    pub from: Option<BString>,
    /// Mode and blob before; `None` for an added file.
    pub old: Option<(EntryMode, gix::ObjectId)>,
    /// Mode and blob after; `None` for a removed file.
    pub new: Option<(EntryMode, gix::ObjectId)>,
}

impl Entry {
    /// Returns the paths of the file. If the file was renamed, the first one is the old path.
    pub fn paths(&self) -> impl Iterator<Item = &BString> {
        self.from.iter().chain([&self.path])
    }
}

/// The files that differ between two trees.
#[derive(Default)]
pub(crate) struct Entries {
    /// The files.
    pub(crate) found: Vec<Entry>,
    /// Whether files are missing, because the limits ended the comparison.
    pub(crate) partial: bool,
}

/// The time at which reading the files of a commit stops.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a commit whose reading begins now.
    pub fn begin() -> Deadline {
        Deadline(Instant::now() + COMMIT_TIME)
    }

    /// Returns a deadline at a given time.
    pub fn at(time: Instant) -> Deadline {
        Deadline(time)
    }

    /// Returns whether the time for the commit is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// One entry of a tree.
struct Item {
    name: BString,
    mode: EntryMode,
    id: gix::ObjectId,
}

impl Item {
    fn is_tree(&self) -> bool {
        self.mode.kind() == EntryKind::Tree
    }

    fn side(&self) -> Option<(EntryMode, gix::ObjectId)> {
        (!self.is_tree()).then_some((self.mode, self.id))
    }
}

/// Two folders that are being compared, with the entries that are still to be compared. A folder that exists on one
/// side only has no entries on the other.
struct Pair {
    /// The length of the folder's path in bytes.
    path: usize,
    old: std::vec::IntoIter<Item>,
    new: std::vec::IntoIter<Item>,
}

impl Pair {
    /// Returns the old and the new side of the next entry, in the order of names. Returns `None` when both folders have
    /// no entries left.
    fn advance(&mut self) -> Option<(Option<Item>, Option<Item>)> {
        let next = match (self.old.as_slice().first(), self.new.as_slice().first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => order(old, new),
        };
        let old = if next.is_le() { self.old.next() } else { None };
        let new = if next.is_ge() { self.new.next() } else { None };
        Some((old, new))
    }
}

/// Compares two trees; `old` is `None` for the empty tree.
///
/// # Errors
///
/// Returns why `old` or `new` can't be read, in words. If a tree inside `old` or `new` can't be read, the function
/// succeeds, but the result is marked as partial.
pub(crate) fn changed_entries(
    objects: &mut Handle,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
    deadline: Deadline,
) -> Result<Entries, String> {
    if old == Some(new) {
        return Ok(Entries::default());
    }
    let mut trees = Trees { objects, buffer: Vec::new(), count: 0, bytes: 0 };
    let mut read = |id: gix::ObjectId| trees.read(&id).map_err(|fault| format!("the tree `{id}`: {fault}"));
    let old = old.map_or(Ok(Vec::new()), &mut read)?;
    let new = read(new)?;
    let mut entries = Entries::default();
    let mut path = BString::default();
    // Trees without any file. A hostile repository may contain such a tree many times, so each is read only once.
    let mut without_files: HashSet<gix::ObjectId> = HashSet::new();
    let mut stack = vec![Pair { path: 0, old: old.into_iter(), new: new.into_iter() }];
    while let Some(pair) = stack.last_mut() {
        path.truncate(pair.path);
        let Some((old, new)) = pair.advance() else {
            stack.pop();
            continue;
        };
        if let (Some(old), Some(new)) = (&old, &new)
            && old.id == new.id
            && old.mode == new.mode
        {
            continue;
        }
        let Some(name) = new.as_ref().or(old.as_ref()).map(|item| &item.name) else { continue };
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let side = |item: &Option<Item>| item.as_ref().and_then(Item::side);
        let (old_file, new_file) = (side(&old), side(&new));
        if old_file.is_some() || new_file.is_some() {
            entries.found.push(Entry { path: path.clone(), from: None, old: old_file, new: new_file });
        }
        let folder = |item: Option<Item>| item.filter(Item::is_tree).map(|item| item.id);
        let (old, new) = (folder(old), folder(new));
        let is_over = entries.found.len() >= ENTRY_LIMIT
            || trees.count >= TREE_LIMIT
            || trees.bytes >= TREE_BYTES
            || stack.len() >= DEPTH_LIMIT
            || path.len() >= PATH_LIMIT
            || deadline.is_over();
        if is_over {
            entries.partial = true;
            return Ok(entries);
        }
        let has_no_file = |id: &gix::ObjectId| without_files.contains(id);
        if old.iter().chain(&new).all(has_no_file) {
            continue;
        }
        let mut read = |id: Option<gix::ObjectId>| match id.map(|id| trees.read(&id)) {
            Some(Ok(items)) => items,
            Some(Err(_)) => {
                entries.partial = true;
                Vec::new()
            }
            None => Vec::new(),
        };
        let (old_items, new_items) = (read(old), read(new));
        for (id, items) in [(old, &old_items), (new, &new_items)] {
            let has_no_file = |item: &Item| item.is_tree() && without_files.contains(&item.id);
            if let Some(id) = id.filter(|_| items.iter().all(has_no_file)) {
                without_files.insert(id);
            }
        }
        stack.push(Pair { path: path.len(), old: old_items.into_iter(), new: new_items.into_iter() });
    }
    Ok(entries)
}

/// Reads trees, and counts them and their bytes.
struct Trees<'a> {
    objects: &'a mut Handle,
    buffer: Vec<u8>,
    count: usize,
    bytes: usize,
}

impl Trees<'_> {
    fn read(&mut self, id: &gix::ObjectId) -> Result<Vec<Item>, Fault> {
        if id.is_empty_tree() {
            return Ok(Vec::new());
        }
        self.count += 1;
        self.objects.read(id, Kind::Tree, LARGEST_TREE, &mut self.buffer)?;
        self.bytes += self.buffer.len();
        let items = TreeRefIter::from_bytes(&self.buffer, gix::hash::Kind::Sha1).map(|entry| {
            let entry = entry.map_err(|_| Fault::Damaged)?;
            Ok(Item { name: entry.filename.to_owned(), mode: entry.mode, id: entry.oid.to_owned() })
        });
        items.collect()
    }
}

/// Compares two entries by name in git's order, in which the name of a folder counts as if it ended in `/`. A file and
/// a folder of the same name are therefore different entries.
fn order(old: &Item, new: &Item) -> Ordering {
    let shared = old.name.len().min(new.name.len());
    let end = |item: &Item| item.name.get(shared).copied().unwrap_or(if item.is_tree() { b'/' } else { 0 });
    old.name[..shared]
        .cmp(&new.name[..shared])
        .then_with(|| end(old).cmp(&end(new)))
        .then_with(|| old.name.len().cmp(&new.name.len()))
}

/// Returns the path of a file as text. Bytes that are not UTF-8 are shown as in git, for example as `\366`, so that
/// different paths stay different.
pub(crate) fn shown(path: &BString) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

/// Returns both versions of a file in UTF-8, and whether they were converted. The old and the new version are read in
/// the same encoding, so that unchanged lines are still equal.
pub(crate) fn in_utf8(old: Vec<u8>, new: Vec<u8>) -> (Vec<u8>, Vec<u8>, bool) {
    if encoding::is_utf8(&old) && encoding::is_utf8(&new) {
        return (old, new, false);
    }
    let reader = encoding::RecordDecoder::new(None, &[&old, &new]);
    let [old, new] = [old, new].map(|bytes| reader.read(&bytes, true).0.into_bytes());
    (old, new, true)
}

/// Reads blobs within the budget and the time of a commit.
pub(crate) struct Blobs<'a> {
    /// Where the blobs are read.
    pub objects: &'a mut Handle,
    /// How many bytes may still be read.
    pub left: usize,
    /// When reading ends.
    pub deadline: Deadline,
}

/// The content of a blob, or the reason why it was not read.
pub(crate) enum Blob {
    /// Its text.
    Text(Vec<u8>),
    /// The blob is no text.
    Binary,
    /// The blob is larger than the number of bytes that may still be read.
    TooLarge,
    /// The blob is damaged or not in the repository.
    Missing,
}

impl Blobs<'_> {
    /// Reads one side of a change. A side that does not exist, such as the old side of a new file, reads as an empty
    /// text.
    pub fn read(&mut self, side: Option<(EntryMode, gix::ObjectId)>) -> Blob {
        let Some((_, id)) = side else { return Blob::Text(Vec::new()) };
        if self.deadline.is_over() {
            return Blob::TooLarge;
        }
        let mut data = Vec::new();
        match self.objects.read(&id, Kind::Blob, BLOB_LIMIT.min(self.left as u64), &mut data) {
            Ok(()) => {}
            Err(Fault::TooLarge(_)) => return Blob::TooLarge,
            Err(_) => return Blob::Missing,
        }
        self.left -= data.len().min(self.left);
        // This is git's test for a binary file: a NUL among the first 8,000 bytes.
        if data[..data.len().min(8000)].contains(&0) { Blob::Binary } else { Blob::Text(data) }
    }
}
