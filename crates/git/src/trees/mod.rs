//! Reads the files of commits, and compares those of two commits.

pub(super) mod files;
pub(super) mod named;
pub(super) mod words;
