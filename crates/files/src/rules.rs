//! Which files the rules of `.gitignore`, `.ignore`, `.tiroignore`, `.git/info/exclude` and the user's own list ignore.
//!
//! The patterns are those of the `ignore` crate. Its walker is not used, because it opens files by their paths: a file
//! of rules that is a link would be read wherever it leads, and one that is a pipe would block. Here files of rules are
//! opened like all other files, as regular files of a limited size and never through links, as git does as well.
//!
//! The rules of an inner folder go before those of an outer one. In a folder, `.tiroignore` goes before `.ignore`, which
//! goes before `.gitignore`. The weakest are the user's rules for all repositories (`core.excludesFile`). A folder of a name
//! that tools give to what they install or build is ignored too, unless a rule takes it back.

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

/// The files of rules in a folder, from the weakest to the strongest.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".tiroignore"];

/// The name by which `.git/info/exclude` is shown.
const EXCLUDE: &str = ".git/info/exclude";

/// The name by which the user's rules for all repositories are shown.
const EXCLUDES: &str = "git's list for all repositories";

/// The largest file of rules that is read, in bytes. Arbitrary: the largest ones have some ten thousand bytes.
const LARGEST: u64 = 1 << 20;

/// The rules of the folders that were asked about.
pub(super) struct Rules<'r> {
    roots: &'r Roots,
    /// `None` for a folder without rules.
    folders: HashMap<FilePath, Option<Gitignore>>,
    /// The folder that was asked about last, and the folders whose rules hold in it, from the inside out. A walk asks
    /// about all files of a folder one after the other.
    last: Option<(FilePath, Vec<FilePath>)>,
    /// Whether the root has a file of rules. Such a file lists the folders that are built; a folder that it doesn't
    /// list may have sources.
    is_listed: bool,
    /// The files of rules that can't be read.
    pub unreadable: Vec<FilePath>,
}

impl<'r> Rules<'r> {
    /// Returns the rules of the repositories in `roots`.
    pub(super) fn new(roots: &'r Roots) -> Rules<'r> {
        Rules { roots, folders: HashMap::new(), last: None, is_listed: false, unreadable: Vec::new() }
    }

    /// Notes which entries the folder `path` has. If none of them is a file of rules, none is looked for.
    pub(super) fn note_entries(&mut self, path: &FilePath, entries: &Entries) {
        let is_rules = |name: &OsString| NAMES.iter().any(|rules| name.eq_ignore_ascii_case(rules));
        // The root also has `.git/info/exclude`.
        if path.parent().is_some() && !entries.iter().any(|(name, _)| is_rules(name)) {
            self.folders.entry(path.clone()).or_insert(None);
        }
    }

    /// Returns why the entry `path` is ignored, if it is. The folders above it are taken as not ignored.
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

    /// Returns the folders whose rules hold in `folder`, from the inside out. Their rules are read if necessary.
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

    /// Returns why the file `path` or a folder above it is ignored, if it is.
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
        if path.parent().is_none() {
            let opened = self.roots.excludes();
            self.add(&mut builder, opened, EXCLUDES, path);
            let opened = self.roots.exclude(path);
            self.add(&mut builder, opened, EXCLUDE, path);
        }
        if let Ok(folder) = self.roots.folder(path) {
            for name in NAMES {
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
            // Git skips a line that is no pattern, too.
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
