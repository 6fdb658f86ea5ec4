//! Finds the files and lines that a commit changes compared with its first parent, and computes a hash of the changes
//! that stays the same when the commit is rebased.
//!
//! [`entries`](super::entries) finds the files that differ. The time and the memory for a commit are limited. The
//! result says what was left out because of a limit. For a merge, only the trees are compared: the lines were already
//! compared for the merged commits.

use std::fmt;

use gix::bstr::ByteSlice;

use super::digest::{Digest, DigestBuilder};
use super::entries::{Blob, Blobs, COMMIT_BUDGET, Deadline, Entry, changed_entries, in_utf8, shown};
use super::hunks::{Hunk, count_lines, hunks};
use super::renames::pair_renames;
use crate::objects::Handle;

/// The maximum number of changed files that are listed; further files are only counted.
const FILE_LIMIT: usize = 512;

/// A function that takes the path of a file and returns whether the changes to the file are left out.
pub type IsIgnored<'a> = &'a (dyn Fn(&str) -> bool + Sync);

/// The changes of a commit compared with its first parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The changed files, sorted by path; at most 512.
    pub files: Vec<FileChange>,
    /// How many changed files are not listed. The real number may be higher if [`Changes::partial`] is set.
    pub more_files: usize,
    /// Whether there may be more changed files than were found, because there are too many, because finding them took
    /// too long, or because a tree can't be read.
    pub partial: bool,
    /// How many changed files are ignored. Nothing else is reported about them.
    pub ignored_files: usize,
    /// How many lines were added, in all files whose lines were compared.
    pub insertions: u64,
    /// How many lines were removed, in all files whose lines were compared.
    pub deletions: u64,
    /// A summary of the changed lines; empty for merges.
    pub digest: Digest,
    /// Why the commit could not be compared, for example because a shallow history ends here and the parent is missing;
    /// `None` if it was compared.
    pub unknown: Option<String>,
}

impl Changes {
    /// Returns whether only ignored files changed.
    pub fn is_ignored(&self) -> bool {
        self.ignored_files > 0 && self.files.is_empty() && !self.partial
    }
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path from the root of the repository, separated by `/`. For a renamed file, the path is the new one.
    pub path: String,
    /// How the file changed.
    pub kind: ChangeKind,
    /// How many of its lines changed.
    pub lines: Lines,
}

/// How a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// The content or the mode changed.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file was renamed, and its content may have changed.
    Renamed {
        /// The old path.
        from: String,
    },
}

/// How many lines of a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The lines were compared.
    Counted {
        /// Lines added.
        insertions: u64,
        /// Lines removed.
        deletions: u64,
    },
    /// The file is not text.
    Binary,
    /// The lines were not compared: the file is larger than 1 MiB, the files of the commit together are larger than 32
    /// MiB, or comparing them took too long.
    TooLarge,
    /// A version of the file is damaged or not in this clone.
    Missing,
    /// The entry is a submodule: a commit of another repository.
    Submodule,
    /// The commit is a merge, whose lines are not compared.
    Merge,
}

/// A hash of a commit's changes. The hash ignores line numbers and white space, so rebased and cherry-picked copies
/// have the same hash. Different commits can make the same change, so callers should compare the author time as well.
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

/// Whether only the trees of a commit are compared, or also the lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The trees alone.
    Trees,
    /// Also the lines.
    Lines,
}

/// Compares two trees; `old` is `None` for the empty tree. The content of an ignored file is read only to find out
/// whether the file was renamed.
pub(crate) fn compare(
    objects: &mut Handle,
    old: Option<gix::ObjectId>,
    new: gix::ObjectId,
    depth: Depth,
    is_ignored: IsIgnored<'_>,
) -> (Changes, Option<PatchId>) {
    let deadline = Deadline::begin();
    let mut entries = match changed_entries(objects, old, new, deadline) {
        Ok(entries) => entries,
        Err(reason) => return (Changes { unknown: Some(reason), ..Changes::default() }, None),
    };
    let mut blobs = Blobs { objects, left: COMMIT_BUDGET, deadline };
    pair_renames(&mut entries.found, if depth == Depth::Lines { Some(&mut blobs) } else { None });
    entries.found.sort_by(|a, b| a.path.cmp(&b.path));

    let mut changes = Changes { partial: entries.partial, ..Changes::default() };
    if entries.partial && entries.found.is_empty() {
        changes.unknown = Some("its trees are too large to compare, or can't be read".to_owned());
    }
    let mut digest = DigestBuilder::default();
    let mut patch = Patch::default();
    for entry in &entries.found {
        if entry.paths().any(|path| is_ignored(&shown(path))) {
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
        let path = shown(&entry.path);
        if let Some(Text { old, new, hunks }) = text.map(Text::in_utf8) {
            digest.add(&path, &old, &new, &hunks);
        }
        changes.files.push(FileChange { path, kind: entry.kind(), lines });
    }
    changes.digest = digest.finish();
    let known = depth == Depth::Lines && !entries.partial && !changes.files.is_empty();
    (changes, if known { patch.finish() } else { None })
}

/// The two versions of a file, and the lines in which they differ.
struct Text {
    old: Vec<u8>,
    new: Vec<u8>,
    hunks: Vec<Hunk>,
}

impl Text {
    /// Returns the text in UTF-8.
    fn in_utf8(self) -> Text {
        let (old, new, is_converted) = in_utf8(self.old, self.new);
        let hunks = if is_converted { hunks(&old, &new) } else { self.hunks };
        Text { old, new, hunks }
    }
}

impl Entry {
    fn kind(&self) -> ChangeKind {
        match (&self.from, self.old, self.new) {
            (Some(from), ..) => ChangeKind::Renamed { from: shown(from) },
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

/// Computes a [`PatchId`] from the changed files in the order of their paths.
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
