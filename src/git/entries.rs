//! The files that differ between two trees: found, joined where one was renamed, and read.
//!
//! Trees of equal ids are equal and are never looked into, and of those that differ only so many are read as any honest
//! commit has: a tree of a few bytes can name another ten times over, that one the next, and so on to more files than
//! there are atoms. Renames are found by equal content, then by at least half of the lines being equal.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use gix::bstr::{BString, ByteSlice};
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Kind, TreeRefIter};

use super::objects::{Fault, Handle};

/// Changed tree entries after which the comparison stops: a tree can name far more files than it has bytes.
const ENTRY_LIMIT: usize = 20_000;

/// Trees that are read to compare two, and their bytes, at most.
const TREE_LIMIT: usize = 50_000;
const TREE_BYTES: usize = 64 << 20;

/// The largest tree that is read, in bytes: some 400,000 files in one folder.
const LARGEST_TREE: u64 = 16 << 20;

/// Folders within folders, at most, and bytes of a path: as many as a file system has.
const DEPTH_LIMIT: usize = 2048;
const PATH_LIMIT: usize = 4096;

/// The largest blob whose lines are compared, in bytes.
const BLOB_LIMIT: u64 = 1 << 20;

/// Bytes of blobs read for one commit.
pub(super) const COMMIT_BUDGET: usize = 32 << 20;

/// How long the files of one commit are looked at. Arbitrary: ten times what the slowest honest one took.
const COMMIT_TIME: Duration = Duration::from_secs(3);

/// Pairs of a deleted and an added file that are compared to find renames with changes.
const RENAME_PAIRS: usize = 400;

/// Files of equal content among which one of the same name is looked for.
const NAMESAKES: usize = 64;

/// A file that differs between two trees.
pub(super) struct Entry {
    pub path: BString,
    /// The path it had where it was renamed.
    pub from: Option<BString>,
    pub old: Option<(EntryMode, gix::ObjectId)>,
    pub new: Option<(EntryMode, gix::ObjectId)>,
}

impl Entry {
    /// Returns its path, and before that the one it had where it was renamed.
    pub fn paths(&self) -> impl Iterator<Item = &BString> {
        self.from.iter().chain([&self.path])
    }
}

/// The files that differ between two trees, and whether there were too many to see all.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) found: Vec<Entry>,
    pub(super) partial: bool,
}

/// Says until when a commit's files are looked at.
#[derive(Clone, Copy)]
pub(super) struct Patience(Instant);

impl Patience {
    /// Begins with a commit.
    pub fn begin() -> Patience {
        Patience(Instant::now() + COMMIT_TIME)
    }

    /// Whether it has taken long enough.
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

/// Two trees that are compared with one another, or one with nothing, and how far that has come.
struct Pair {
    /// Bytes of the path that the folder takes.
    path: usize,
    old: std::vec::IntoIter<Item>,
    new: std::vec::IntoIter<Item>,
}

/// Compares two trees; no `old` one is the empty tree.
///
/// Errors, with what is wrong, where one of the two can't be read; a tree within them that can't be leaves the result
/// partial.
pub(super) fn changed_entries(
    objects: &mut Handle,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
    patience: Patience,
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
    // Trees without a file in them, which may be named over and over.
    let mut barren: HashSet<gix::ObjectId> = HashSet::new();
    let mut stack = vec![Pair { path: 0, old: old.into_iter(), new: new.into_iter() }];
    while let Some(pair) = stack.last_mut() {
        path.truncate(pair.path);
        let next = match (pair.old.as_slice().first(), pair.new.as_slice().first()) {
            (None, None) => {
                stack.pop();
                continue;
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => order(old, new),
        };
        let old = if next.is_le() { pair.old.next() } else { None };
        let new = if next.is_ge() { pair.new.next() } else { None };
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
            || patience.is_over();
        if is_over {
            entries.partial = true;
            return Ok(entries);
        }
        let is_barren = |id: &gix::ObjectId| barren.contains(id);
        if old.iter().chain(&new).all(is_barren) {
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
            let is_barren = |item: &Item| item.is_tree() && barren.contains(&item.id);
            if let Some(id) = id.filter(|_| items.iter().all(is_barren)) {
                barren.insert(id);
            }
        }
        stack.push(Pair { path: path.len(), old: old_items.into_iter(), new: new_items.into_iter() });
    }
    Ok(entries)
}

/// Reads trees and counts what that takes.
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

/// Orders entries as git stores them: folders as if their names ended in `/`. A file and a folder of one name are two.
fn order(old: &Item, new: &Item) -> Ordering {
    let shared = old.name.len().min(new.name.len());
    let end = |item: &Item| item.name.get(shared).copied().unwrap_or(if item.is_tree() { b'/' } else { 0 });
    old.name[..shared]
        .cmp(&new.name[..shared])
        .then_with(|| end(old).cmp(&end(new)))
        .then_with(|| old.name.len().cmp(&new.name.len()))
}

/// Reads blobs as long as the commit's budget and time last.
pub(super) struct Blobs<'a> {
    pub objects: &'a mut Handle,
    pub left: usize,
    pub patience: Patience,
}

pub(super) enum Blob {
    Text(Vec<u8>),
    Binary,
    TooLarge,
    Missing,
}

impl Blobs<'_> {
    /// Reads one side of a change; the side that does not exist is an empty text.
    pub fn read(&mut self, side: Option<(EntryMode, gix::ObjectId)>) -> Blob {
        let Some((_, id)) = side else { return Blob::Text(Vec::new()) };
        if self.patience.is_over() {
            return Blob::TooLarge;
        }
        let mut data = Vec::new();
        match self.objects.read(&id, Kind::Blob, BLOB_LIMIT.min(self.left as u64), &mut data) {
            Ok(()) => {}
            Err(Fault::TooLarge(_)) => return Blob::TooLarge,
            Err(_) => return Blob::Missing,
        }
        self.left -= data.len().min(self.left);
        // As git tells: a NUL among the first 8,000 bytes.
        if data[..data.len().min(8000)].contains(&0) { Blob::Binary } else { Blob::Text(data) }
    }
}

/// Joins a deleted and an added file into one that was renamed: first those of equal content, preferring equal
/// file names, then, if `blobs` can be read and there are few, the pairs that share most lines.
pub(super) fn pair_renames(entries: &mut Vec<Entry>, blobs: Option<&mut Blobs<'_>>) {
    let is_blob = |side: &Option<(EntryMode, gix::ObjectId)>| side.is_some_and(|(mode, _)| mode.is_blob());
    let mut deleted: Vec<usize> = Vec::new();
    let mut added: Vec<usize> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match (&entry.old, &entry.new) {
            (old, None) if is_blob(old) => deleted.push(index),
            (None, new) if is_blob(new) => added.push(index),
            _ => {}
        }
    }
    if deleted.is_empty() || added.is_empty() {
        return;
    }

    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut by_content: HashMap<gix::ObjectId, Vec<usize>> = HashMap::new();
    for &index in &deleted {
        by_content.entry(entries[index].old.expect("deleted files had content").1).or_default().push(index);
    }
    added.retain(|&index| {
        let id = entries[index].new.expect("added files have content").1;
        let Some(sources) =
            by_content.get_mut(&id).filter(|sources| !sources.is_empty() && !id.is_empty_blob())
        else {
            return true;
        };
        let name = file_name(&entries[index].path);
        let mut close = sources.iter().take(NAMESAKES);
        let best = close.position(|&source| file_name(&entries[source].path) == name).unwrap_or(0);
        pairs.push((sources.remove(best), index));
        false
    });
    let paired: HashSet<usize> = pairs.iter().map(|(source, _)| *source).collect();
    deleted.retain(|index| !paired.contains(index));
    if let Some(blobs) = blobs.filter(|_| deleted.len() * added.len() <= RENAME_PAIRS) {
        pairs.extend(similar(entries, &deleted, &added, blobs));
    }

    for &(source, target) in &pairs {
        entries[target].old = entries[source].old;
        entries[target].from = Some(entries[source].path.clone());
    }
    let mut index = 0;
    let sources: HashSet<usize> = pairs.iter().map(|&(source, _)| source).collect();
    entries.retain(|_| {
        index += 1;
        !sources.contains(&(index - 1))
    });
}

fn file_name(path: &BString) -> &[u8] {
    path.rsplit_once_str("/").map_or(path.as_slice(), |(_, name)| name)
}

/// Returns the pairs with at least half of their bytes in equal lines, the most alike first.
fn similar(
    entries: &[Entry],
    deleted: &[usize],
    added: &[usize],
    blobs: &mut Blobs<'_>,
) -> Vec<(usize, usize)> {
    if deleted.is_empty() || added.is_empty() {
        return Vec::new();
    }
    let mut lines = |index: usize| {
        let mut lines: HashMap<u64, (i64, usize)> = HashMap::new();
        let Blob::Text(text) = blobs.read(entries[index].old.or(entries[index].new)) else {
            return (lines, 0);
        };
        for line in text.lines() {
            lines.entry(hash(line)).or_insert((0, line.len() + 1)).0 += 1;
        }
        (lines, text.len())
    };
    let old: Vec<_> = deleted.iter().map(|&index| lines(index)).collect();
    let new: Vec<_> = added.iter().map(|&index| lines(index)).collect();
    let mut scored = Vec::new();
    for (source, (old, old_bytes)) in deleted.iter().zip(&old) {
        for (target, (new, new_bytes)) in added.iter().zip(&new) {
            let (small, large) = (*old_bytes.min(new_bytes), *old_bytes.max(new_bytes));
            if small * 2 < large || large == 0 {
                continue;
            }
            let shared: usize = old
                .iter()
                .filter_map(|(line, (count, bytes))| Some(new.get(line)?.0.min(*count) as usize * bytes))
                .sum();
            if shared * 2 >= large {
                scored.push((shared as f64 / large as f64, *source, *target));
            }
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (_, source, target) in scored {
        if !pairs.iter().any(|&(taken, given)| taken == source || given == target) {
            pairs.push((source, target));
        }
    }
    pairs
}

/// FNV-1a: fast on short lines, and a collision only makes two files look more alike.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
