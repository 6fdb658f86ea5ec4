//! The machine's data about a project, from which memories are made.

mod finder;
mod ignored;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clients::Places;
use crate::spool::Spool;
use tiro_base::error::{Error, Result};
use tiro_base::memory::Millis;
use tiro_git::Repository;
use tiro_redact::Redactor;
use tiro_store::clock::Clock;

pub use self::finder::{Finder, root_of};
pub use self::ignored::Ignored;

/// The data on the user's machine for all projects.
#[derive(Clone)]
pub struct Machine {
    /// The data directory. It contains the references that hooks leave, and the results of looking at transcripts.
    pub data_dir: PathBuf,
    /// The folders in which clients keep their files; `None` if there is no home directory.
    pub clients: Option<Places>,
    /// Finds the project of a directory.
    pub finder: Finder,
    /// The sessions and files that the user does not want to be remembered.
    pub ignored: Ignored,
    /// The clock.
    pub clock: Arc<Clock>,
}

/// The data on the user's machine about one project.
pub struct Sources {
    /// The machine.
    pub machine: Machine,
    /// The root of the work tree. Outside a repository, this is the directory itself.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// Why the repository can't be read.
    pub trouble: Option<String>,
    /// The former roots of the project, from before it was moved or renamed. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
    /// Redacts the text that is passed to the memory of the project.
    pub redactor: Redactor,
}

impl Machine {
    /// Returns the folders where clients keep their files. Fails if there is no home directory.
    pub fn clients(&self) -> Result<&Places> {
        known_clients(self.clients.as_ref())
    }
}

/// Returns the folders where clients keep their files. Fails if `clients` is `None`, because there is no home
/// directory.
pub fn known_clients(clients: Option<&Places>) -> Result<&Places> {
    clients.ok_or_else(|| {
        Error::bad_input("there is no home directory, so clients can't be found").hint("set HOME")
    })
}

/// Returns a random key for a draft without an identity.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

impl Sources {
    /// Returns the time, in milliseconds since 1970 UTC.
    pub fn now(&self) -> Millis {
        self.machine.clock.now()
    }

    /// Returns the spool of the project, in which hooks leave references.
    pub fn spool(&self) -> Spool {
        Spool::of_project(&self.machine.data_dir, &self.root, self.repository.as_deref())
    }

    /// Returns the path that identifies the project of `directory`, as [`Finder::place`] does. Also returns `None` if
    /// the project can't be determined.
    pub fn place(&self, directory: &Path) -> Option<PathBuf> {
        self.machine.finder.place(directory).ok().flatten()
    }
}
