//! The files and folders that a walk did not take, grouped by the reason.

use std::collections::BTreeMap;
use std::fmt;

use super::refusal::Refusal;
use tiro_base::error::quoted;
use tiro_base::humanize;

/// The maximum number of paths of a group that are shown. Arbitrary.
const SHOWN: usize = 5;

/// The files and folders that were not taken for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The reason.
    pub why: Refusal,
    /// How many files there are.
    pub files: usize,
    /// How many folders there are. Their content was not looked at.
    pub folders: usize,
    /// The first paths, escaped. A folder ends with `/`.
    pub paths: Vec<String>,
}

/// The groups, by their reasons.
#[derive(Debug, Default)]
pub(super) struct Skips(BTreeMap<Refusal, Skipped>);

impl Skips {
    /// Counts a file that was left out.
    pub(super) fn file(&mut self, path: &str, why: Refusal) {
        let group = self.group(why);
        group.files += 1;
        group.show(path, "");
    }

    /// Counts a folder that was left out.
    pub(super) fn folder(&mut self, path: &str, why: Refusal) {
        let group = self.group(why);
        group.folders += 1;
        group.show(path, "/");
    }

    /// Returns the groups, the largest first.
    pub(super) fn into_groups(self) -> Vec<Skipped> {
        let mut groups: Vec<Skipped> = self.0.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.files + group.folders));
        groups
    }

    fn group(&mut self, why: Refusal) -> &mut Skipped {
        let empty = || Skipped { why, files: 0, folders: 0, paths: Vec::new() };
        self.0.entry(why).or_insert_with(empty)
    }
}

impl Skipped {
    fn show(&mut self, path: &str, end: &str) {
        if self.paths.len() < SHOWN {
            self.paths.push(quoted(format_args!("{path}{end}")));
        }
    }
}

/// Shows the group on one line: "4,312 files and 1 folder, each of which is ignored by .gitignore (`target/`, …)".
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize, one: &str, several: &str| {
            format!("{} {}", humanize::thousands(count as u64), if count == 1 { one } else { several })
        };
        let files = count(self.files, "file", "files");
        let folders = count(self.folders, "folder", "folders");
        match (self.files, self.folders) {
            (_, 0) => f.write_str(&files)?,
            (0, _) => f.write_str(&folders)?,
            _ => write!(f, "{files} and {folders}")?,
        }
        let paths: Vec<String> = self.paths.iter().map(|path| format!("`{path}`")).collect();
        let which = if self.files + self.folders == 1 { " that" } else { ", each of which" };
        let more = if self.files + self.folders > self.paths.len() { ", …" } else { "" };
        write!(f, "{which} {} ({}{more})", self.why, paths.join(", "))
    }
}
