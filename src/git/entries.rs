//! The files that differ between two trees: found, joined where one was renamed, and read.
//!
//! Renames are found by equal content, then by at least half of the lines being equal.

use std::collections::HashMap;
use std::ops::ControlFlow;

use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::tree::{Visit, visit};
use gix::objs::tree::EntryMode;
use gix::objs::{Find, FindHeader, TreeRefIter};

/// Changed tree entries after which the comparison stops: a tree can name far more files than it has bytes.
const ENTRY_LIMIT: usize = 20_000;

/// The largest blob whose lines are compared, in bytes.
const BLOB_LIMIT: u64 = 1 << 20;

/// Bytes of blobs read for one commit.
pub(super) const COMMIT_BUDGET: usize = 32 << 20;

/// Pairs of a deleted and an added file that are compared to find renames with changes.
const RENAME_PAIRS: usize = 400;

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
pub(super) struct Entries {
    pub(super) found: Vec<Entry>,
    pub(super) partial: bool,
}

pub(super) fn changed_entries(
    repo: &gix::Repository,
    state: &mut gix::diff::tree::State,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
) -> Result<Entries, String> {
    let tree = |id: gix::ObjectId| -> Result<Vec<u8>, String> {
        let mut buffer = Vec::new();
        match repo.objects.try_find(&id, &mut buffer).map(|object| object.map(|object| object.kind)) {
            Ok(Some(gix::objs::Kind::Tree)) => Ok(buffer),
            Ok(Some(kind)) => Err(format!("the tree `{id}` is a {kind}")),
            Ok(None) if id.is_empty_tree() => Ok(Vec::new()),
            Ok(None) => Err(format!("the tree `{id}` is missing")),
            Err(error) => Err(error.to_string()),
        }
    };
    let (old, new) = (old.map(tree).transpose()?.unwrap_or_default(), tree(new)?);
    let parse = |data| TreeRefIter::from_bytes(data, gix::hash::Kind::Sha1);
    let mut collector =
        Collector { entries: Entries { found: Vec::new(), partial: false }, path: Default::default() };
    match gix::diff::tree(parse(&old), parse(&new), state, &repo.objects, &mut collector) {
        Ok(()) => Ok(collector.entries),
        Err(_) if collector.entries.partial => Ok(collector.entries),
        Err(error) => Err(error.to_string()),
    }
}

/// Collects what [`gix::diff::tree`] finds; `path` keeps track of where it is.
struct Collector {
    entries: Entries,
    path: gix::diff::tree::Recorder,
}

impl Visit for Collector {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.path.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &BStr) {
        self.path.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &BStr) {
        self.path.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.path.pop_path_component();
    }

    fn visit(&mut self, change: visit::Change) -> visit::Action {
        let (old, new) = match change {
            visit::Change::Addition { entry_mode, oid, .. } => (None, Some((entry_mode, oid))),
            visit::Change::Deletion { entry_mode, oid, .. } => (Some((entry_mode, oid)), None),
            visit::Change::Modification { previous_entry_mode, previous_oid, entry_mode, oid } => {
                (Some((previous_entry_mode, previous_oid)), Some((entry_mode, oid)))
            }
        };
        let is_file = |side: &(EntryMode, gix::ObjectId)| !side.0.is_tree();
        let (old, new) = (old.filter(is_file), new.filter(is_file));
        if old.is_some() || new.is_some() {
            self.entries.found.push(Entry { path: self.path.path_clone(), from: None, old, new });
        }
        self.entries.partial = self.entries.found.len() >= ENTRY_LIMIT;
        if self.entries.partial { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Reads blobs as long as the commit's budget lasts.
pub(super) struct Blobs<'a> {
    pub repo: &'a gix::Repository,
    pub left: usize,
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
        match self.repo.objects.try_header(&id) {
            Ok(Some(header)) if header.size > BLOB_LIMIT.min(self.left as u64) => return Blob::TooLarge,
            Ok(Some(header)) if header.kind != gix::objs::Kind::Blob => return Blob::Missing,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return Blob::Missing,
        }
        let mut data = Vec::new();
        match self.repo.objects.try_find(&id, &mut data).map(|object| object.is_some()) {
            Ok(true) => {}
            Ok(false) | Err(_) => return Blob::Missing,
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
        let best = sources.iter().position(|&source| file_name(&entries[source].path) == name).unwrap_or(0);
        pairs.push((sources.remove(best), index));
        false
    });
    deleted.retain(|index| !pairs.iter().any(|(source, _)| source == index));
    if let Some(blobs) = blobs.filter(|_| deleted.len() * added.len() <= RENAME_PAIRS) {
        pairs.extend(similar(entries, &deleted, &added, blobs));
    }

    for &(source, target) in &pairs {
        entries[target].old = entries[source].old;
        entries[target].from = Some(entries[source].path.clone());
    }
    let mut index = 0;
    let sources: std::collections::HashSet<usize> = pairs.iter().map(|&(source, _)| source).collect();
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
