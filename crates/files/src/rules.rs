//! Finds the files that are ignored by the rules in `.gitignore`, `.ignore`, `.tiroignore`, `.git/info/exclude` and the
//! user's own list.
//!
//! The patterns are handled by the `ignore` crate. The walker of that crate is not used, because it opens files by
//! their paths: it would follow a link in place of a file of rules, and block at a pipe. This module opens files of
//! rules like all other files. As in git, they must be regular files of a limited size, and links are not followed.
//!
//! The rules of an inner folder take precedence over the rules of an outer folder. Within a folder, `.tiroignore` takes
//! precedence over `.ignore`, and `.ignore` over `.gitignore`. The user's rules for all repositories
//! (`core.excludesFile`) come last. A folder with a name that tools use for installed or built files is ignored too,
//! unless a rule includes it again. A caller may do without git's rules: `.gitignore`, the list of the repository and the
//! user's own list.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::folder::Entries;
use super::names;
use super::policy::{FilePath, Roots};
use super::refusal::Refusal;
use tiro_base::thread::Stat;

/// The files of rules in a folder, from the weakest to the strongest. The first is git's.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".tiroignore"];

/// The name by which `.git/info/exclude` is shown.
const EXCLUDE: &str = ".git/info/exclude";

/// The name by which the user's rules for all repositories are shown.
const EXCLUDES: &str = "git's list for all repositories";

/// The largest file of rules that is read, in bytes. Arbitrary: many times the size of the largest known files, which
/// have some ten thousand bytes.
const LARGEST: u64 = 1 << 20;

/// The rules of the folders that were looked up so far.
pub(super) struct Rules<'r> {
    roots: &'r Roots,
    /// Whether git's rules apply, too.
    of_git: bool,
    /// `None` for a folder without rules.
    folders: HashMap<FilePath, Option<Gitignore>>,
    /// The folder that was looked up last, and the folders whose rules apply to it, from the inside out. The field is a
    /// cache, because a walk looks up all files of a folder one after the other.
    last: Option<(FilePath, Vec<FilePath>)>,
    /// Whether the root has a file of rules. Such a file usually lists the built folders, so a folder that it doesn't
    /// list may contain sources.
    is_listed: bool,
    /// The files of rules that can't be read.
    pub unreadable: Vec<FilePath>,
}

impl<'r> Rules<'r> {
    /// Returns the rules of the repositories in `roots`: also those of git if `of_git` is true.
    pub(super) fn new(roots: &'r Roots, of_git: bool) -> Rules<'r> {
        Rules { roots, of_git, folders: HashMap::new(), last: None, is_listed: false, unreadable: Vec::new() }
    }

    /// Records the entries of the folder `path`. If no entry is a file of rules, the folder is not searched for such
    /// files.
    pub(super) fn note_entries(&mut self, path: &FilePath, entries: &Entries) {
        let is_rules = |name: &OsString| NAMES.iter().any(|rules| name.eq_ignore_ascii_case(rules));
        // The root also has `.git/info/exclude`.
        if path.parent().is_some() && !entries.iter().any(|(name, _)| is_rules(name)) {
            self.folders.entry(path.clone()).or_insert(None);
        }
    }

    /// Returns the reason why the entry `path` is ignored, or `None` if the entry isn't ignored. Assumes that the
    /// folders above the entry are not ignored.
    pub(super) fn ignore(&mut self, path: &FilePath, is_folder: bool) -> Option<Refusal> {
        let folder = path.parent()?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != folder) {
            let within = self.within(&folder);
            self.last = Some((folder, within));
        }
        for within in self.last.iter().flat_map(|(_, within)| within) {
            let Some(rules) = self.folders.get(within).and_then(Option::as_ref) else { continue };
            let below = path.below().strip_prefix(within.below()).unwrap_or(path.below());
            match rules.matched(below, is_folder) {
                Match::Ignore(rule) => return Some(Refusal::Ignored(name(rule.from()))),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        (is_folder && names::is_built(path.below(), self.is_listed)).then_some(Refusal::Built)
    }

    /// Returns the folders whose rules apply to `folder`, from the inside out. Reads these rules if necessary.
    fn within(&mut self, folder: &FilePath) -> Vec<FilePath> {
        let mut within = Vec::new();
        let mut next = Some(folder.clone());
        while let Some(folder) = next {
            next = folder.parent();
            if !self.folders.contains_key(&folder) {
                let read = self.read(&folder);
                self.folders.insert(folder.clone(), read);
            }
            if self.folders[&folder].is_some() {
                within.push(folder);
            }
        }
        within
    }

    /// Returns the reason why the file `path` or a folder above it is ignored; `None` if neither is ignored.
    pub(super) fn ignore_anywhere(&mut self, path: &FilePath) -> Option<Refusal> {
        let mut folder = path.parent();
        while let Some(above) = folder {
            if let Some(why) = self.ignore(&above, true) {
                return Some(why);
            }
            folder = above.parent();
        }
        self.ignore(path, false)
    }

    fn read(&mut self, path: &FilePath) -> Option<Gitignore> {
        let mut builder = GitignoreBuilder::new("");
        if path.parent().is_none() && self.of_git {
            let opened = self.roots.excludes();
            self.add(&mut builder, opened, EXCLUDES, path);
            let opened = self.roots.exclude(path);
            self.add(&mut builder, opened, EXCLUDE, path);
        }
        if let Ok(folder) = self.roots.folder(path) {
            for name in NAMES.into_iter().skip(usize::from(!self.of_git)) {
                let opened = match folder.open(name.as_ref()) {
                    Err(Refusal::Missing) => Ok(None),
                    opened => opened.map(Some),
                };
                self.is_listed |= path.parent().is_none() && matches!(opened, Ok(Some(_)));
                self.add(&mut builder, opened, name, path);
            }
        }
        builder.build().ok().filter(|rules| !rules.is_empty())
    }

    fn add(
        &mut self,
        builder: &mut GitignoreBuilder,
        opened: Result<Option<(File, Stat)>, Refusal>,
        name: &'static str,
        folder: &FilePath,
    ) {
        let read = opened.and_then(|opened| opened.map(|(file, _)| text(file)).transpose());
        let text = match read {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) => return self.unreadable.push(folder.join(name.as_ref())),
        };
        for line in text.trim_start_matches('\u{feff}').lines() {
            // An error is ignored, because git skips a line that is not a pattern, too.
            let _ = builder.add_line(Some(PathBuf::from(name)), line);
        }
    }
}

fn text(file: File) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| Refusal::of(&error))?;
    match bytes.len() as u64 > LARGEST {
        true => Err(Refusal::TooLarge(LARGEST)),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn name(from: Option<&Path>) -> &'static str {
    let known = NAMES.into_iter().chain([EXCLUDES]).find(|name| from == Some(Path::new(name)));
    known.unwrap_or(EXCLUDE)
}
