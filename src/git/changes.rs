//! What a commit changed: files, lines, and a hash that survives rebasing.
//!
//! A commit is compared with its first parent. Renames are found by equal content, then by at least half of the
//! lines being equal. Every limit below bounds work and memory whatever the commit holds; what is beyond one is
//! counted, never silently left out. A merge is compared by its trees only: the lines are those of the commits it
//! brings in.

use std::fmt;
use std::ops::ControlFlow;

use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::tree::{Visit, visit};
use gix::objs::tree::EntryMode;
use gix::objs::{Find, FindHeader, TreeRefIter};

use super::details::IsIgnored;
use super::diff::{Hunk, count_lines, hunks};
use super::digest::{Digest, DigestBuilder};
use super::renames::pair_renames;

/// Files that are listed; of more, the number is given.
const FILE_LIMIT: usize = 512;

/// Changed tree entries after which the comparison stops: a tree can name far more files than it has bytes.
const ENTRY_LIMIT: usize = 20_000;

/// The largest blob whose lines are compared, in bytes.
const BLOB_LIMIT: u64 = 1 << 20;

/// Bytes of blobs read for one commit.
pub(super) const COMMIT_BUDGET: usize = 32 << 20;

/// The changes of a commit against its first parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The changed files by path, at most 512.
    pub files: Vec<FileChange>,
    /// How many changed files are not listed; a lower bound if [`Changes::partial`].
    pub more_files: usize,
    /// There were too many changed files to count them.
    pub partial: bool,
    /// How many changed files are ignored: nothing else is told of them.
    pub ignored_files: usize,
    /// Added lines over all files whose lines were compared.
    pub insertions: u64,
    /// Removed lines over all files whose lines were compared.
    pub deletions: u64,
    /// What the lines say; empty for merges.
    pub digest: Digest,
    /// Why nothing could be compared: a tree or the parent is missing, as at the end of a shallow history.
    pub unknown: Option<String>,
}

impl Changes {
    /// Returns whether nothing changed but ignored files.
    pub fn is_ignored(&self) -> bool {
        self.ignored_files > 0 && self.files.is_empty() && !self.partial
    }
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, after a rename the new one; from the root of the repository, with `/`.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// How much of it changed.
    pub lines: Lines,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It has other content or another mode.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name, and maybe other content.
    Renamed {
        /// The path it had.
        from: String,
    },
}

/// How much of a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Its lines were compared.
    Counted {
        /// Lines added.
        insertions: u64,
        /// Lines removed.
        deletions: u64,
    },
    /// It is not text.
    Binary,
    /// It is larger than 1 MiB, or the commit as a whole than 32 MiB.
    TooLarge,
    /// A version of it is not in this clone, or damaged.
    Missing,
    /// It names a commit of another repository.
    Submodule,
    /// Lines of merges are not compared.
    Merge,
}

/// A hash of what a commit changes, blind to line numbers and white space: equal for rebased and cherry-picked
/// copies. Meant to be compared together with the author time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchId([u8; 16]);

/// Prints 32 hexadecimal digits.
impl fmt::Display for PatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether the lines of a commit are compared too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Trees,
    Lines,
}

/// Compares two trees; `None` is the empty one. Of an ignored file nothing is read but, where it may have been renamed,
/// how much of it is like another.
pub(super) fn compare(
    repo: &gix::Repository,
    state: &mut gix::diff::tree::State,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
    depth: Depth,
    is_ignored: IsIgnored<'_>,
) -> (Changes, Option<PatchId>) {
    let mut entries = match changed_entries(repo, state, old, new) {
        Ok(entries) => entries,
        Err(reason) => return (Changes { unknown: Some(reason), ..Changes::default() }, None),
    };
    let mut blobs = Blobs { repo, left: COMMIT_BUDGET };
    pair_renames(&mut entries.found, if depth == Depth::Lines { Some(&mut blobs) } else { None });
    entries.found.sort_by(|a, b| a.path.cmp(&b.path));

    let mut changes = Changes { partial: entries.partial, ..Changes::default() };
    let mut digest = DigestBuilder::default();
    let mut patch = Patch::default();
    for entry in &entries.found {
        if entry.paths().any(|path| is_ignored(&path.to_str_lossy())) {
            changes.ignored_files += 1;
            continue;
        }
        let (lines, text) = match depth {
            Depth::Lines => entry.lines(&mut blobs),
            Depth::Trees => (Lines::Merge, None),
        };
        patch.add(entry, lines, text.as_ref());
        if let Lines::Counted { insertions, deletions } = lines {
            changes.insertions += insertions;
            changes.deletions += deletions;
        }
        if changes.files.len() == FILE_LIMIT {
            changes.more_files += 1;
            continue;
        }
        let path = entry.path.to_str_lossy().into_owned();
        if let Some(Text { old, new, hunks }) = &text {
            digest.add(&path, old, new, hunks);
        }
        changes.files.push(FileChange { path, kind: entry.kind(), lines });
    }
    changes.digest = digest.finish();
    let known = depth == Depth::Lines && !entries.partial && !changes.files.is_empty();
    (changes, if known { patch.finish() } else { None })
}

/// A file that differs between two trees.
pub(super) struct Entry {
    pub path: BString,
    /// The path it had where it was renamed.
    pub from: Option<BString>,
    pub old: Option<(EntryMode, gix::ObjectId)>,
    pub new: Option<(EntryMode, gix::ObjectId)>,
}

/// The two versions of a file and where they differ.
struct Text {
    old: Vec<u8>,
    new: Vec<u8>,
    hunks: Vec<Hunk>,
}

impl Entry {
    /// Returns its path, and before that the one it had where it was renamed.
    pub fn paths(&self) -> impl Iterator<Item = &BString> {
        self.from.iter().chain([&self.path])
    }

    fn kind(&self) -> ChangeKind {
        match (&self.from, self.old, self.new) {
            (Some(from), ..) => ChangeKind::Renamed { from: from.to_str_lossy().into_owned() },
            (None, None, _) => ChangeKind::Added,
            (None, _, None) => ChangeKind::Deleted,
            (None, Some(_), Some(_)) => ChangeKind::Modified,
        }
    }

    fn lines(&self, blobs: &mut Blobs<'_>) -> (Lines, Option<Text>) {
        if self.old.or(self.new).is_some_and(|(mode, _)| mode.is_commit()) {
            return (Lines::Submodule, None);
        }
        if self.old.zip(self.new).is_some_and(|((_, old), (_, new))| old == new) {
            return (Lines::Counted { insertions: 0, deletions: 0 }, None);
        }
        match (blobs.read(self.old), blobs.read(self.new)) {
            (Blob::Text(old), Blob::Text(new)) => {
                let hunks = hunks(&old, &new);
                let insertions = hunks.iter().map(|hunk| count_lines(&new[hunk.added.clone()])).sum();
                let deletions = hunks.iter().map(|hunk| count_lines(&old[hunk.removed.clone()])).sum();
                (Lines::Counted { insertions, deletions }, Some(Text { old, new, hunks }))
            }
            (Blob::Missing, _) | (_, Blob::Missing) => (Lines::Missing, None),
            (Blob::TooLarge, _) | (_, Blob::TooLarge) => (Lines::TooLarge, None),
            (Blob::Binary, _) | (_, Blob::Binary) => (Lines::Binary, None),
        }
    }
}

/// The files that differ between two trees, and whether there were too many to see all.
pub(super) struct Entries {
    pub(super) found: Vec<Entry>,
    partial: bool,
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

/// Collects what a [`PatchId`] is made of, file by file in the order of their paths.
struct Patch {
    hasher: blake3::Hasher,
    line: Vec<u8>,
    complete: bool,
}

impl Default for Patch {
    fn default() -> Patch {
        Patch { hasher: blake3::Hasher::new(), line: Vec::new(), complete: true }
    }
}

impl Patch {
    fn add(&mut self, entry: &Entry, lines: Lines, text: Option<&Text>) {
        self.line.clear();
        self.line.extend_from_slice(entry.from.as_deref().map_or(&[][..], Vec::as_slice));
        self.line.push(0);
        self.line.extend_from_slice(&entry.path);
        self.line.push(0);
        for side in [entry.old, entry.new] {
            self.line.extend_from_slice(&side.map_or(0, |(mode, _)| mode.value()).to_be_bytes());
        }
        match (text, lines) {
            (Some(Text { old, new, hunks }), _) => {
                for Hunk { removed, added } in hunks {
                    self.push_lines(b'-', &old[removed.clone()]);
                    self.push_lines(b'+', &new[added.clone()]);
                }
            }
            (None, Lines::Missing | Lines::Merge) => self.complete = false,
            (None, _) => {
                for (_, id) in [entry.old, entry.new].into_iter().flatten() {
                    self.line.extend_from_slice(id.as_bytes());
                }
            }
        }
        self.hasher.update(&(self.line.len() as u64).to_be_bytes());
        self.hasher.update(&self.line);
    }

    fn push_lines(&mut self, sign: u8, text: &[u8]) {
        for line in text.lines() {
            self.line.push(sign);
            self.line.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
            self.line.push(b'\n');
        }
    }

    fn finish(self) -> Option<PatchId> {
        let mut id = [0; 16];
        id.copy_from_slice(&self.hasher.finalize().as_bytes()[..16]);
        self.complete.then_some(PatchId(id))
    }
}
