//! Compares a commit with its first parent. Finds the changed files, the renamed files and the changed lines, and makes
//! a digest of these lines.

pub(super) mod changes;
pub(super) mod digest;
pub(super) mod entries;
pub(super) mod hunks;
pub(super) mod names;
pub(super) mod renames;
