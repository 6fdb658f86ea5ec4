//! What a commit changed: files, lines, and a hash that survives rebasing.
//!
//! A commit is compared with its first parent, file by file as [`entries`](super::entries) finds them. Every limit bounds
//! work and memory whatever the commit holds; what is beyond one is counted, never silently left out. A merge is compared
//! by its trees only: the lines are those of the commits it brings in.

use std::fmt;

use gix::bstr::ByteSlice;

use super::digest::{Digest, DigestBuilder};
use super::entries::{Blob, Blobs, COMMIT_BUDGET, Entry, Patience, changed_entries};
use super::hunks::{Hunk, count_lines, hunks};
use super::renames::pair_renames;
use crate::git::objects::Handle;

/// Files that are listed; of more, the number is given.
const FILE_LIMIT: usize = 512;

/// Says of a path whether what happens to that file is to be passed over.
pub type IsIgnored<'a> = &'a (dyn Fn(&str) -> bool + Sync);

/// The changes of a commit against its first parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The changed files by path, at most 512.
    pub files: Vec<FileChange>,
    /// How many changed files are not listed; a lower bound if [`Changes::partial`].
    pub more_files: usize,
    /// There were too many changed files to count them, or they took too long to find, or a tree can't be read.
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
    /// It is larger than 1 MiB, or the commit as a whole than 32 MiB, or it took too long.
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
pub(in crate::git) enum Depth {
    Trees,
    Lines,
}

/// Compares two trees; `None` is the empty one. Of an ignored file nothing is read but, where it may have been renamed,
/// how much of it is like another.
pub(in crate::git) fn compare(
    objects: &mut Handle,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
    depth: Depth,
    is_ignored: IsIgnored<'_>,
) -> (Changes, Option<PatchId>) {
    let patience = Patience::begin();
    let mut entries = match changed_entries(objects, old, new, patience) {
        Ok(entries) => entries,
        Err(reason) => return (Changes { unknown: Some(reason), ..Changes::default() }, None),
    };
    let mut blobs = Blobs { objects, left: COMMIT_BUDGET, patience };
    pair_renames(&mut entries.found, if depth == Depth::Lines { Some(&mut blobs) } else { None });
    entries.found.sort_by(|a, b| a.path.cmp(&b.path));

    let mut changes = Changes { partial: entries.partial, ..Changes::default() };
    if entries.partial && entries.found.is_empty() {
        changes.unknown = Some("its trees are too large to be compared, or can't be read".to_owned());
    }
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

/// The two versions of a file and where they differ.
struct Text {
    old: Vec<u8>,
    new: Vec<u8>,
    hunks: Vec<Hunk>,
}

impl Entry {
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
