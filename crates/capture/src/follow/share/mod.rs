//! Decides which entries of a session belong to a project.
//!
//! A message belongs to the project of the agent's working directory at the time of writing. While the agent is in a
//! directory that belongs to no project, such as `/tmp`, the messages belong to the project in which the session began.
//! A tool call belongs to the project of the working directory, and also to each repository whose files the call
//! changed.
//!
//! The agent may also work in a folder above the repository. If a turn then acts in the repository, the repository gets
//! all messages of the turn, starting with the user's question. It gets no entries about other repositories, and no
//! entries of a turn that did nothing in the repository. If the user names a session, the project gets the whole
//! session.

mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::clients::{Client, transcripts};
use crate::follow::link::WorkTrees;
use crate::import::transcript::TranscriptEntry;
use crate::sources::Sources;
use crate::spool::{self, Reference, Spool};
use tiro_base::memory::Role;

pub use within::{Whose, Within};

/// The maximum number of entries of a turn that wait for an action in the project. Arbitrary: enough for a question
/// and a plan.
const MOST_HELD: usize = 32;

/// How a transcript was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy<'a> {
    /// The user named the transcript, so all of it is imported.
    Name,
    /// An import found the transcript. Other projects get no reference to it.
    Search,
    /// A hook that ran in this directory reported the transcript. At that time, the directory was in the project.
    Hook(&'a Path),
    /// The project in which the session runs left a reference to the transcript.
    Project,
}

/// The name of the event in references that one project leaves for another.
pub const SHARED: &str = "shared";

/// Chooses the part of a session that belongs to a project.
pub struct Share<'a> {
    within: Within<'a>,
    /// The directory in which the session began; empty if unknown.
    held_in: String,
    /// Whether the session began in this project.
    is_held_here: bool,
    /// Entries of this turn that were written while the agent was in a folder above the project. They wait until the
    /// turn acts in the project.
    waiting: Vec<TranscriptEntry>,
    /// Whether this turn has acted in the project yet.
    is_here: bool,
}

impl<'a> Share<'a> {
    /// Returns the chooser of the project's part of the session at `path`. Returns `None` if the whole session belongs
    /// to the project. There are two such cases: the user named the session, or no directory is recorded and the client
    /// named the session's folder after a directory of this project. If it is unknown where the session ran, the
    /// project gets only the entries that certainly concern it.
    pub fn of(
        mut within: Within<'a>,
        (client, path, found_by): (Client, &Path, FoundBy<'_>),
        began_in: Option<PathBuf>,
    ) -> Option<Share<'a>> {
        let is_named_after = || {
            let (hash, roots) = (transcripts::hash_of(client, path), within.work_trees().roots_and_former());
            transcripts::is_named_after(client, path, hash.as_deref(), &roots)
        };
        let is_named = found_by == FoundBy::Name || (began_in.is_none() && is_named_after());
        if is_named {
            return None;
        }
        let held_in = began_in.and_then(|directory| directory.into_os_string().into_string().ok());
        let held_in = held_in.unwrap_or_default();
        let is_gone = !held_in.is_empty() && !Path::new(&held_in).exists();
        match found_by {
            // If the session ran in the hook's directory and this directory no longer exists, it was a work tree of the
            // project. The names are compared as lossy text, because clients may record a name differently if it isn't
            // UTF-8.
            FoundBy::Hook(directory) if is_gone && directory.to_string_lossy() == held_in => {
                within.add_former(directory.to_owned());
            }
            FoundBy::Hook(directory) if is_gone && !directory.exists() => {
                // The session ran in one of the two directories, and the hook in the other. If one contains the other,
                // it counts as the work tree.
                let (hook, began) = (directory, Path::new(&held_in));
                let root = if began.starts_with(hook) { hook } else { began };
                if hook.starts_with(root) {
                    within.add_former(root.to_owned());
                }
            }
            // If the directory exists, the directory itself shows to which project it belongs.
            FoundBy::Project if is_gone => within.add_others(PathBuf::from(&held_in)),
            _ => {}
        }
        let is_held_here = within.has(&held_in);
        Some(Share { within, held_in, is_held_here, waiting: Vec::new(), is_here: false })
    }

    /// Returns whether the session began in this project.
    pub fn is_held_here(&self) -> bool {
        self.is_held_here
    }

    /// Continues a turn that an earlier reading began. `is_here` says whether the turn has already acted in the
    /// project.
    pub fn resume(&mut self, is_here: bool) {
        self.is_here = is_here;
    }

    /// Returns whether the turn that was read last has acted in the project.
    pub fn is_here(&self) -> bool {
        self.is_here
    }

    /// Returns the entries that belong to the project. They include earlier entries of the turn that waited for the
    /// turn's first action in the project.
    pub fn take(&mut self, said: Vec<TranscriptEntry>) -> Vec<TranscriptEntry> {
        let mut taken = Vec::new();
        for said in said {
            if begins_turn(&said) {
                self.waiting.clear();
                self.is_here = false;
            }
            let stood = said.worktree.as_deref().unwrap_or(&self.held_in);
            let is_here = self.within.has(stood) || (self.is_held_here && !self.within.is_others(stood));
            let is_above = !is_here && self.within.is_beneath(stood);
            let wrote = said.written.iter().map(|written| &written.path);
            let mut acted = directories(wrote, stood).iter().any(|directory| self.within.has(directory));
            if !acted && (is_above || self.is_here) {
                acted =
                    directories(said.files.iter(), stood).iter().any(|directory| self.within.has(directory));
            }
            if is_here || acted {
                self.is_here = true;
                taken.append(&mut self.waiting);
                taken.push(said);
            } else if said.role != Role::Tool && is_above {
                match self.is_here {
                    true => taken.push(said),
                    false if self.waiting.len() < MOST_HELD => self.waiting.push(said),
                    false => {}
                }
            }
        }
        taken
    }
}

/// Collects the other repositories in which a session of this project worked.
pub struct Visited<'a> {
    sources: &'a Sources,
    own: Option<PathBuf>,
    directories: BTreeSet<String>,
    /// One directory of each repository, keyed by the path that identifies the repository.
    found: BTreeMap<PathBuf, PathBuf>,
}

impl<'a> Visited<'a> {
    /// Returns an empty collection.
    pub fn new(sources: &'a Sources, work_trees: &WorkTrees) -> Visited<'a> {
        let own = sources.place(&work_trees.root);
        Visited { sources, own, directories: BTreeSet::new(), found: BTreeMap::new() }
    }

    /// Collects the repositories of the directories that the agent was in, and of the files that it changed.
    pub fn note(&mut self, said: &[TranscriptEntry]) {
        for said in said {
            let stood = said.worktree.as_deref().unwrap_or_default();
            let wrote = said.written.iter().map(|written| &written.path);
            let mut directories = directories(wrote, stood);
            directories.extend((!stood.is_empty()).then(|| stood.to_owned()));
            for directory in directories {
                if !self.directories.insert(directory.clone()) {
                    continue;
                }
                let found = self.sources.machine.finder.place_and_repository(Path::new(&directory));
                // Any folder can be a project, but only repositories are collected.
                if let Ok(Some((place, Some(_)))) = found
                    && Some(&place) != self.own.as_ref()
                {
                    self.found.insert(place, PathBuf::from(directory));
                }
            }
        }
    }

    /// Leaves a reference to the session in the spool of each collected repository that is captured.
    pub fn tell(self, client: Client, path: &Path) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        for (place, directory) in self.found {
            let spool = Spool::of(&self.sources.machine.data_dir, &place);
            if !spool.is_captured() {
                continue;
            }
            let left = spool.leave(&Reference {
                client: client.word().to_owned(),
                event: SHARED.to_owned(),
                session: spool::key(&stem),
                transcript: Some(path.to_owned()),
                commit: None,
                directory,
                at: self.sources.now(),
                trouble: None,
            });
            if let Err(error) = left {
                tracing::warn!(%error, "could not leave a reference to a session in another project");
            }
        }
    }
}

/// Returns whether the entry is a new request of the user, which begins a turn.
pub fn begins_turn(said: &TranscriptEntry) -> bool {
    said.role == Role::User && !said.is_subagent && !said.is_summary
}

/// Returns the directories of `files`. Relative paths are relative to `stood`, the agent's directory.
fn directories<'f>(files: impl Iterator<Item = &'f String>, stood: &str) -> Vec<String> {
    let directory = |file: &String| {
        let path = Path::new(stood).join(file);
        Some(path.parent()?.to_str()?.to_owned())
    };
    files.filter_map(directory).collect()
}

/// Returns the spool of the project in which the session runs, if that is another project.
pub fn elsewhere(sources: &Sources, work_trees: &WorkTrees, client: Client, path: &Path) -> Option<Spool> {
    let directory = transcripts::directory_of(client, path)?;
    if work_trees.work_tree(&directory.to_string_lossy()).is_some() {
        // A repository inside this one is a separate project.
        let (nested, own) = (sources.place(&directory), sources.place(&work_trees.root));
        if nested.is_none() || nested == own {
            return None;
        }
    }
    Some(Spool::of(&sources.machine.data_dir, &sources.place(&directory)?))
}
