//! Finds the files that paths lead to. Named files are taken, and named folders are walked.
//!
//! Files of a folder are sorted by the bytes of their paths, so their order is always the same. If several paths or
//! links lead to a file, the file is taken once, under its real path. Rules about ignored files (`rules.rs`) apply only
//! to walks: a named file is read even if it is ignored. Everything that is not taken is reported, except `.git`.
//!
//! The number of entries, the depth and the time of a walk are limited, and a walk ends with its call. If a folder has
//! more entries than may still be looked at, none of its entries is taken, because each walk would take different
//! entries.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use super::budget::Budget;
use super::folder::{Entry, Folder};
use super::policy::{FilePath, PathTarget, Roots};
use super::refusal::Refusal;
use super::rules::Rules;
use super::skips::{Skipped, Skips};
use super::{FoundFile, Limits, form, names};
use tiro_base::error::quoted;
use tiro_base::humanize;
use tiro_base::thread::Stat;

/// The files that paths lead to.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The files in the order of the given paths. The files of a folder are in the order of their own paths.
    pub files: Vec<FoundFile>,
    /// The given paths that lead to nothing that may be read, in order.
    pub refused: Vec<Refused>,
    /// The files and folders that were not taken from folders, by reason.
    pub skipped: Vec<Skipped>,
    /// The reason why the walk ended early; `None` if it was complete.
    pub cut: Option<Cut>,
}

/// A given path that leads to nothing that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The path, escaped.
    pub path: String,
    /// The reason.
    pub why: Refusal,
}

/// The reason why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The walk would have had to look at more than this many entries.
    Entries(usize),
    /// It took too long.
    Deadline,
}

impl Cut {
    /// Returns what to try next.
    pub fn way_out(self) -> &'static str {
        "name smaller folders, or list what is not needed in `.tiroignore`"
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Entries(most) => {
                write!(f, "there are more than {} entries", humanize::thousands(*most as u64))
            }
            Cut::Deadline => f.write_str("looking for files took too long"),
        }
    }
}

/// Finds the files that `paths` lead to.
pub fn gather(roots: &Roots, paths: &[String], limits: &Limits, budget: &Budget) -> Gathered {
    gather_changed(roots, paths, limits, budget, &|_| None)
}

/// Like [`gather`], but doesn't open a file of a folder if its metadata is the same as `known` returns. Such a file was
/// text when it was read, and is unchanged. `known` gets the path in the form in which answers show it.
pub fn gather_changed(
    roots: &Roots,
    paths: &[String],
    limits: &Limits,
    budget: &Budget,
    known: &dyn Fn(&str) -> Option<Stat>,
) -> Gathered {
    let places: Vec<_> = paths.iter().map(|path| (path, roots.resolve(path))).collect();
    let named = places.iter().filter_map(|(_, place)| match place {
        Ok(PathTarget::File(path)) => Some(path.clone()),
        _ => None,
    });
    let mut walk = Walk {
        roots,
        limits,
        budget,
        known,
        named: named.collect(),
        rules: Rules::new(roots, limits.without_ignored),
        walked: HashSet::new(),
        taken: HashSet::new(),
        skipped: HashSet::new(),
        looked_at: 0,
        skips: Skips::default(),
        found: Gathered::default(),
    };
    for (path, place) in places {
        let taken = match place {
            Ok(PathTarget::File(path)) => walk.take(&path),
            Ok(PathTarget::Folder(path)) => match roots.folder(&path) {
                Ok(folder) if walk.found.cut.is_none() => {
                    walk.found.cut = walk.folder(&folder, &path, 0).break_value();
                    Ok(())
                }
                opened => opened.map(drop),
            },
            Err(why) => Err(why),
        };
        if let Err(why) = taken {
            let refused = Refused { path: quoted(path), why };
            if !walk.found.refused.contains(&refused) {
                walk.found.refused.push(refused);
            }
        }
    }
    for rules in std::mem::take(&mut walk.rules.unreadable) {
        walk.skips.file(&roots.shown(&rules), Refusal::NoRules);
    }
    Gathered { skipped: walk.skips.into_groups(), ..walk.found }
}

struct Walk<'r> {
    roots: &'r Roots,
    limits: &'r Limits,
    /// The budget, which says whether the call has ended.
    budget: &'r Budget,
    /// The metadata of files when they were read.
    known: &'r dyn Fn(&str) -> Option<Stat>,
    /// The files that were named.
    named: HashSet<FilePath>,
    rules: Rules<'r>,
    walked: HashSet<FilePath>,
    taken: HashSet<FilePath>,
    /// The files and folders that were skipped. The set ensures that each is counted only once.
    skipped: HashSet<FilePath>,
    looked_at: usize,
    skips: Skips,
    found: Gathered,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Folder, path: &FilePath, depth: usize) -> ControlFlow<Cut> {
        if depth > self.limits.depth {
            self.skip_folder(path, Refusal::TooDeep(self.limits.depth));
            return ControlFlow::Continue(());
        }
        if !self.walked.insert(path.clone()) {
            return ControlFlow::Continue(());
        }
        let mut entries = match folder.entries(self.limits.entries - self.looked_at) {
            Ok(Some(entries)) => entries,
            Ok(None) => return ControlFlow::Break(Cut::Entries(self.limits.entries)),
            Err(why) => {
                self.skip_folder(path, why);
                return ControlFlow::Continue(());
            }
        };
        self.looked_at += entries.len();
        self.rules.note_entries(path, &entries);
        entries.sort_by_cached_key(in_order);
        for (name, entry) in entries {
            if self.budget.has_ended() || self.limits.until.is_some_and(|until| Instant::now() >= until) {
                return ControlFlow::Break(Cut::Deadline);
            }
            let inner = path.join(&name);
            match entry {
                Entry::Folder => match self.may_enter(folder, &inner, &name) {
                    Ok(Some(entered)) => self.folder(&entered, &inner, depth + 1)?,
                    Ok(None) => {}
                    Err(why) => self.skip_folder(&inner, why),
                },
                _ if name == ".git" => {}
                _ => {
                    if let Err(why) = self.entry(folder, &inner, &name, entry) {
                        self.skip_file(&inner, why);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Opens the folder `name` of `folder`, unless it belongs to git.
    fn may_enter(
        &mut self,
        folder: &Folder,
        path: &FilePath,
        name: &OsString,
    ) -> Result<Option<Folder>, Refusal> {
        if name == ".git" {
            return Ok(None);
        }
        names::check_folder_name(name)?;
        self.roots.check_owner(path)?;
        match self.rules.ignore(path, true) {
            Some(why) => Err(why),
            None => folder.enter(name).map(Some),
        }
    }

    /// Takes the file of a folder, or the file that a link of a folder leads to.
    fn entry(
        &mut self,
        folder: &Folder,
        path: &FilePath,
        name: &OsString,
        entry: Entry,
    ) -> Result<(), Refusal> {
        self.roots.check_name(path)?;
        if !self.named.contains(path)
            && let Some(why) = self.rules.ignore(path, false)
        {
            return Err(why);
        }
        match entry {
            Entry::File if self.take_known(folder, path, name) => Ok(()),
            Entry::File => self.take(path),
            Entry::Link => match self.roots.follow(path)? {
                PathTarget::Folder(_) => Err(Refusal::LinkToFolder),
                PathTarget::File(target) => {
                    let ignored = match self.named.contains(&target) {
                        true => None,
                        false => self.rules.ignore_anywhere(&target),
                    };
                    ignored.map_or(Ok(()), Err)?;
                    self.take(&target)
                }
            },
            Entry::Special | Entry::Folder => Err(Refusal::Special),
        }
    }

    /// Adds a file, unless it was taken before.
    fn take(&mut self, path: &FilePath) -> Result<(), Refusal> {
        if self.taken.contains(path) {
            return Ok(());
        }
        let opened = self.roots.open(path)?;
        let is_named = self.named.contains(path);
        let form = form::of(&opened, path.below(), is_named, self.limits)?;
        self.taken.insert(path.clone());
        let stat = opened.stat;
        self.found.files.push(FoundFile { path: self.roots.shown(path), stat, form, file: path.clone() });
        Ok(())
    }

    /// Adds a file without opening it, if its metadata is the same as when it was read. Returns whether it was added.
    fn take_known(&mut self, folder: &Folder, path: &FilePath, name: &OsString) -> bool {
        let shown = self.roots.shown(path);
        let Some(known) = (self.known)(&shown) else { return false };
        if folder.stat(name) != Some(known) || !self.taken.insert(path.clone()) {
            return false;
        }
        let form = form::of_name(path.below(), self.named.contains(path));
        self.found.files.push(FoundFile { path: shown, stat: known, form, file: path.clone() });
        true
    }

    fn skip_file(&mut self, path: &FilePath, why: Refusal) {
        if self.skipped.insert(path.clone()) {
            self.skips.file(&self.roots.shown(path), why);
        }
    }

    fn skip_folder(&mut self, path: &FilePath, why: Refusal) {
        if self.skipped.insert(path.clone()) {
            self.skips.folder(&self.roots.shown(path), why);
        }
    }
}

/// Returns the key by which entries are sorted. The key gives the order of the files' paths, in which `/` follows the
/// name of a folder.
fn in_order((name, entry): &(OsString, Entry)) -> Vec<u8> {
    let mut key = name.as_encoded_bytes().to_vec();
    key.extend((*entry == Entry::Folder).then_some(b'/'));
    key
}
