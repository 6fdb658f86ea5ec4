//! What a commit changed, compared with its first parent: files, renames, lines, and a digest of those lines.

pub(super) mod changes;
pub(super) mod digest;
pub(super) mod entries;
pub(super) mod hunks;
pub(super) mod names;
pub(super) mod renames;
