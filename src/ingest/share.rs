//! Which entries of a session belong to a project that it was not held in.
//!
//! A session belongs to the project that it was held in, as a whole, and to each repository that it worked in: where the
//! agent changed into it, or changed files in it. Such a repository gets of the session what was done there: tool calls in
//! its work trees or on its files, and what was said while the agent stood there. Of what was said in a folder above it
//! gets the turns in which something was done there, from the question on. It never gets what was done in another
//! repository, and of a session that only passed by, nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::caller::Caller;
use crate::clients::{Client, transcripts};
use crate::config::Config;
use crate::engine::Engine;
use crate::import::transcript::Entry;
use crate::ingest::link::Place;
use crate::memory::Role;
use crate::project;
use crate::spool::{self, Reference, Spool};

/// Entries of a turn that wait until something is done in the project. Arbitrary: a question, and plans made for it.
const MOST_HELD: usize = 32;

/// How a transcript came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose<'a> {
    /// The user named it: all of it is imported.
    Named,
    /// An import found it: no other project is told of it.
    Found,
    /// A hook that ran in this directory told of it; that was in the project then.
    Hooked(&'a Path),
    /// The project that it was held in told of it.
    Shared,
}

/// The event of a reference that one project leaves for another.
pub(crate) const SHARED: &str = "shared";

/// What a project gets of a session that was held elsewhere.
pub(crate) struct Share<'a> {
    within: Within<'a>,
    /// The directory it was held in; empty where nobody knows.
    held_in: String,
    /// What was said in this turn above the project, while nothing was done in it.
    waiting: Vec<Entry>,
    /// Whether something was done in the project in this turn.
    is_here: bool,
}

impl<'a> Share<'a> {
    /// Returns what the project gets of the session at `path`, or `None` where that is all of it: it was named, or it was
    /// held here. Of one that was held nobody knows where it gets what is known to be done here.
    pub fn of(
        engine: &'a Engine,
        caller: &'a Caller,
        place: &'a Place,
        (client, path, whose): (Client, &Path, Whose<'_>),
    ) -> Option<Share<'a>> {
        let held_in = transcripts::directory_of(client, path);
        let is_found_here = match (whose, &held_in) {
            (Whose::Named, _) => true,
            (_, None) => whose == Whose::Found || transcripts::is_named_after(client, path, &place.roots()),
            // A work tree that is gone belonged to the project that its hooks left references for. A client writes down
            // a name that isn't UTF-8 as another one.
            (Whose::Hooked(directory), Some(held_in)) => {
                directory.to_string_lossy() == held_in.to_string_lossy() && !held_in.exists()
            }
            (_, Some(_)) => false,
        };
        if is_found_here {
            return None;
        }
        let held_in = held_in.and_then(|directory| directory.into_os_string().into_string().ok());
        let held_in = held_in.unwrap_or_default();
        // Only where it is gone: else the place itself tells whose it is.
        let anothers = Some(PathBuf::from(&held_in))
            .filter(|directory| whose == Whose::Shared && !held_in.is_empty() && !directory.exists());
        let mut within =
            Within { config: engine.config(), named: caller.named(), place, anothers, known: HashMap::new() };
        let is_held_here = within.has(&held_in);
        (!is_held_here).then_some(Share { within, held_in, waiting: Vec::new(), is_here: false })
    }

    /// Goes on in a turn in which something was done in the project, or nothing was.
    pub fn resume(&mut self, is_here: bool) {
        self.is_here = is_here;
    }

    /// Whether something was done in the project in the turn that was read last.
    pub fn is_here(&self) -> bool {
        self.is_here
    }

    /// Returns those entries that belong to the project, with those before that do since.
    pub fn take(&mut self, said: Vec<Entry>) -> Vec<Entry> {
        let mut taken = Vec::new();
        for said in said {
            if begins_turn(&said) {
                self.waiting.clear();
                self.is_here = false;
            }
            let stood = said.worktree.as_deref().unwrap_or(&self.held_in);
            let is_done_here = match said.files.is_empty() {
                true => self.within.has(stood),
                false => directories(&said, stood).iter().any(|directory| self.within.has(directory)),
            };
            if is_done_here {
                self.is_here = true;
                taken.append(&mut self.waiting);
                taken.push(said);
            } else if said.role != Role::Tool && self.within.is_beneath(stood) {
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

/// The other repositories that a session worked in, which was held here.
pub(crate) struct Visited<'a> {
    config: &'a Config,
    named: Option<&'a Path>,
    own: Option<PathBuf>,
    directories: BTreeSet<String>,
    /// By the place they are known by, a directory in each.
    found: BTreeMap<PathBuf, PathBuf>,
}

impl<'a> Visited<'a> {
    /// Returns what begins without any.
    pub fn new(engine: &'a Engine, caller: &'a Caller, place: &Place) -> Visited<'a> {
        let (config, named) = (engine.config(), caller.named());
        let own = project::place(&place.root, config, named).ok().flatten();
        Visited { config, named, own, directories: BTreeSet::new(), found: BTreeMap::new() }
    }

    /// Notes where the agent stood, and whose files it changed.
    pub fn note(&mut self, said: &[Entry]) {
        for said in said {
            let stood = said.worktree.as_deref().unwrap_or_default();
            let mut directories =
                if !said.written.is_empty() { directories(said, stood) } else { Vec::new() };
            directories.extend((!stood.is_empty()).then(|| stood.to_owned()));
            for directory in directories {
                if !self.directories.insert(directory.clone()) {
                    continue;
                }
                let found = project::place_and_repository(Path::new(&directory), self.config, self.named);
                // Any folder could be a project; what somebody works in is a repository.
                if let Ok(Some((place, Some(_)))) = found
                    && Some(&place) != self.own.as_ref()
                {
                    self.found.insert(place, PathBuf::from(directory));
                }
            }
        }
    }

    /// Leaves a reference to the session in each of them.
    pub fn tell(self, engine: &Engine, client: Client, path: &Path) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        for (place, directory) in self.found {
            let spool = Spool::of(&engine.config().data_dir, &place);
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
                at: engine.now(),
                trouble: None,
            });
            if let Err(error) = left {
                tracing::warn!(%error, "another project was not told of a session");
            }
        }
    }
}

/// Which directories lie in the project, and not in another one within it.
struct Within<'a> {
    config: &'a Config,
    named: Option<&'a Path>,
    place: &'a Place,
    /// A directory of another project that is gone, and may have lain within this one.
    anothers: Option<PathBuf>,
    known: HashMap<String, bool>,
}

impl Within<'_> {
    fn has(&mut self, directory: &str) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let path = Path::new(directory);
        let is_anothers = self.anothers.as_ref().is_some_and(|anothers| path.starts_with(anothers));
        let has = !is_anothers && self.place.work_tree(directory).is_some() && {
            // A directory that is gone belonged to what it lay in.
            let there = path.ancestors().find(|directory| directory.exists()).unwrap_or(path);
            let innermost = project::place(there, self.config, self.named).ok().flatten();
            innermost.is_none()
                || innermost == project::place(&self.place.root, self.config, self.named).ok().flatten()
        };
        self.known.insert(directory.to_owned(), has);
        has
    }

    /// Whether the project lies beneath `directory`.
    fn is_beneath(&self, directory: &str) -> bool {
        if directory.is_empty() {
            // Every path starts with that.
            return false;
        }
        let directory = Path::new(directory);
        let canonical = directory.canonicalize();
        let directory = canonical.as_deref().unwrap_or(directory);
        self.place.roots().iter().any(|root| root.starts_with(directory))
    }
}

/// Whether a user asks something anew.
pub(crate) fn begins_turn(said: &Entry) -> bool {
    said.role == Role::User && !said.is_subagent && !said.is_summary
}

/// Returns the directories of an entry's files.
fn directories(said: &Entry, stood: &str) -> Vec<String> {
    let directory = |file: &String| {
        let path = Path::new(stood).join(file);
        Some(path.parent()?.to_str()?.to_owned())
    };
    said.files.iter().filter_map(directory).collect()
}
