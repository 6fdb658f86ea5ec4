//! The caller of an operation: an owner, their project, and the tools they may use.
//!
//! A process that serves stdio has one caller, who is the owner. A server over HTTP has more callers: owners of other
//! projects, and authors who have a personal key. An author uses the project of another caller, as this author sees it,
//! and has no files on this machine: transcripts, commits and work trees are the owner's.
//!
//! The data that is opened for a caller, above all the project's store, is
//! kept in the [`Caller`], where other callers of the process can't see it. Operations get their project only from
//! their caller. Everything that all callers share is in [`Engine`].

mod client;
mod found;
mod later;
mod opening;
mod toolset;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::found::FoundProject;
use self::later::Later;
use self::opening::unread;
use crate::engine::{Engine, Latest, LetGo, Notices};
use crate::principals::{Access, Rights};
use crate::project::{self, OpenProject, Placement, SeenProject};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{AuthorId, Forgets, ProjectId, Scope, Shared, TenantId};
use tiro_capture::clients::Client;
use tiro_capture::follow::catch_up::Following;
use tiro_capture::sources::Machine;
use tiro_capture::spool::running::Process;
use tiro_store::{Bookkeeping, Measurement, Savings};

pub use self::client::most_tokens;
pub use self::later::Task;
pub use self::toolset::{Toolset, Toolsets};
pub use self::writing::WritingCaller;

/// A caller for operations that only read, with the project that was opened for the caller. Several calls can use it at
/// the same time. A clone is the same caller.
#[derive(Clone)]
pub struct Caller {
    state: Arc<CallerState>,
}

/// The forms in which the caller reads an answer. Each form must fit into the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Only as text. Models read answers in this form.
    Text,
    /// As text or as data (JSON). Programs and the command line read answers in these forms.
    #[default]
    Both,
}

/// The state that all calls of a caller share.
struct CallerState {
    owner: TenantId,
    /// Who reads and writes. This is the owner, unless the caller is an author of the owner's team.
    author: AuthorId,
    /// What an author with a personal key may do. `None` for the owner, whose files are on this machine.
    access: Option<Access>,
    /// What the author may do in the project. `None` also if the project is not shared with the author.
    rights: Option<Rights>,
    /// The project, if it is opened by its id, because it has no directory on this machine.
    registered: Option<ProjectId>,
    /// The caller whose open project this caller uses, if it opens none itself.
    origin: Option<Caller>,
    directory: Option<PathBuf>,
    /// Whether the user named the directory as the project. If so, a bare repository in it is accepted.
    is_named: bool,
    toolsets: Toolsets,
    form: Form,
    project: Latest<FoundProject>,
    /// The empty project in memory that is used until something is stored for the project.
    blank_project: Latest<FoundProject>,
    following: Following,
    later: Later,
    /// The client that serves this caller's model, the ancestors of this process, and the time at which the client gave
    /// its name.
    client: Mutex<Option<(Client, Vec<Process>, Millis)>>,
    /// The maximum number of tokens of an answer that this client shows its model.
    most_tokens: AtomicUsize,
    notices: Notices,
    measured: Mutex<Vec<Measurement>>,
    saved: Mutex<Savings>,
    said_pending: AtomicBool,
    serves_tools: AtomicBool,
}

impl CallerState {
    fn new(owner: TenantId, directory: Option<PathBuf>, is_named: bool) -> CallerState {
        CallerState {
            author: AuthorId::new(owner.as_str()),
            owner,
            access: None,
            rights: None,
            registered: None,
            origin: None,
            directory,
            is_named,
            toolsets: Toolsets::default(),
            form: Form::default(),
            project: Latest::default(),
            blank_project: Latest::default(),
            following: Following::default(),
            later: Later::default(),
            client: Mutex::default(),
            most_tokens: AtomicUsize::new(usize::MAX),
            notices: Notices::default(),
            measured: Mutex::default(),
            saved: Mutex::default(),
            said_pending: AtomicBool::new(false),
            serves_tools: AtomicBool::default(),
        }
    }
}

impl LetGo for CallerState {
    fn let_go(&self) {
        drop((self.project.let_go(), self.blank_project.let_go()));
    }
}

impl Caller {
    /// Returns the forms in which the caller reads answers.
    pub fn form(&self) -> Form {
        self.state.form
    }

    /// Returns whether the caller may use the tools of `toolset`.
    pub fn may_use(&self, toolset: Toolset) -> bool {
        self.state.toolsets.has(toolset)
    }

    /// Returns the owner of everything the caller stores. The caller reads only this owner's memories.
    pub fn owner(&self) -> &TenantId {
        &self.state.owner
    }

    /// Returns the author who reads and writes: the owner, or an author with a personal key.
    pub fn author(&self) -> &AuthorId {
        &self.state.author
    }

    /// Returns whether the files of this machine are the caller's. An author with a personal key has no files here.
    pub fn has_files(&self) -> bool {
        self.state.access.is_none()
    }

    /// Returns whether the caller may do what needs `access`. The owner may do everything.
    pub fn may(&self, access: Access) -> bool {
        self.state.access.is_none_or(|own| own >= access)
    }

    /// Returns the scope of all sessions of `project`, as this caller reads it. An author with a personal key sees there
    /// only what the author keeps private.
    pub fn scope_of(&self, project: ProjectId) -> Scope {
        let shared = if self.has_files() { Shared::Seen } else { Shared::Hidden };
        Scope { shared, ..self.shared_scope_of(project) }
    }

    /// Returns the scope of all sessions of `project`, which is shared with this caller.
    pub fn shared_scope_of(&self, project: ProjectId) -> Scope {
        Scope {
            reader: self.state.author.clone(),
            shared: Shared::Seen,
            forgets: if self.may(Access::Admin) { Forgets::Everyones } else { Forgets::Own },
            ..Scope::own(self.state.owner.clone(), project)
        }
    }

    /// Returns the state of the caller who has the project open and whose idle worker works for this caller too.
    fn shared(&self) -> &CallerState {
        self.state.origin.as_ref().map_or(&self.state, |origin| origin.shared())
    }

    /// Returns the list of the work that is left for the idle worker. The work of an author is done as this author.
    fn later(&self) -> &Later {
        if self.has_files() { &self.shared().later } else { &self.state.later }
    }

    /// Returns the directory that the user named as the project, if any. A bare repository in it is accepted.
    pub fn named(&self) -> Option<&Path> {
        self.state.directory.as_deref().filter(|_| self.state.is_named)
    }

    /// Returns the canonical path of the directory that the caller works in.
    ///
    /// Errors with [`Kind::NoProject`](tiro_base::error::Kind::NoProject) and a hint if the directory doesn't exist or
    /// is not a directory.
    pub fn directory(&self) -> Result<PathBuf> {
        project::directory(self.state.directory.as_deref())
    }

    /// Returns the data of the caller's machine for all projects.
    pub fn machine(&self, engine: &Engine) -> Machine {
        let config = engine.config();
        Machine {
            data_dir: config.data_dir.clone(),
            clients: config.clients.clone(),
            finder: project::finder(config, self.named()),
            ignored: config.ignored.clone(),
            clock: Arc::clone(engine.clock()),
        }
    }

    /// Returns the current project of the caller, without registering or creating anything.
    ///
    /// Fails as [`Caller::project`] does.
    pub async fn look(&self, engine: &Engine) -> Result<SeenProject> {
        let directory = self.directory()?;
        let installation = engine.existing_installation().await?;
        let registry = installation.as_ref().map(|installation| installation.registry.as_ref());
        let seen = project::look(&directory, engine.config(), self.named(), registry).await?;
        let repository = seen.repository.map(Arc::new);
        let trouble = seen.trouble.as_ref().map(unread);
        let mut open = None;
        if let Some((id, installation)) = seen.known.zip(installation)
            && let Some(store) = installation.registry.existing_store(&id).await?
        {
            open = Some(OpenProject {
                books: Arc::clone(&store) as Arc<dyn Bookkeeping>,
                store,
                redactor: installation.redactor_of(&id),
                name: seen.name.clone(),
                root: seen.root.clone(),
                repository: repository.clone(),
                scope: self.scope_of(id),
                is_blank: false,
                placement: Placement::default(),
                trouble,
                original: None,
                formerly: seen.formerly.clone(),
            });
        }
        Ok(SeenProject {
            name: seen.name,
            root: seen.root,
            repository,
            trouble: seen.trouble,
            original: seen.original,
            formerly: seen.formerly,
            open,
        })
    }

    /// Returns the caller's project for reading. The first call opens the project. If its store or its repository was
    /// replaced, the project is opened again. A project without a store gets an empty store in memory, so that reading
    /// creates no files.
    ///
    /// Errors with [`Kind::NoProject`](tiro_base::error::Kind::NoProject) and a hint if there is none.
    pub async fn project(&self, engine: &Engine) -> Result<Arc<OpenProject>> {
        Ok(self.found(engine).await?.project.reader())
    }

    /// Returns the same caller, but with the right to write. Before a read-only call is answered, it is used to store
    /// what is new in transcripts and in the repository.
    pub(crate) fn following(&self) -> WritingCaller {
        WritingCaller::of(self)
    }

    /// Returns whether this answer should report how many texts are not embedded yet. This is true only for the first
    /// answer to a caller.
    pub fn says_pending(&self) -> bool {
        !self.state.said_pending.swap(true, Ordering::Relaxed)
    }

    /// Returns the state that this process keeps for following the caller's project.
    pub(crate) fn followed(&self) -> &Following {
        &self.shared().following
    }

    /// Leaves work to the idle worker. A call that only reads found this work and may not do it itself.
    pub fn leave(&self, task: Task) {
        self.later().add(task);
    }

    /// Returns the work that calls left, the oldest first.
    pub fn left(&self) -> Vec<Task> {
        self.later().all()
    }

    /// Removes work that is done.
    pub fn did(&self, task: &Task) {
        self.later().remove(task);
    }

    /// Wakes the idle worker if calls left work.
    pub fn tell_of_work(&self) {
        self.later().tell();
    }

    /// Waits until the idle worker has stashed the messages that calls left for the stash, but at most for `patience`.
    /// Returns whether these messages are stashed.
    pub async fn await_stash(&self, patience: Duration) -> bool {
        self.later().stashed(patience).await
    }

    /// Waits until there is work for the idle worker.
    pub async fn wait_for_work(&self) {
        self.later().told().await;
    }

    /// Counts a call of the operation `name` that took `micros` microseconds. [`WritingCaller::keep_measurements`] stores the
    /// counts.
    pub fn measured(&self, name: &str, micros: u64) {
        let new = Measurement::of(name, micros);
        let mut measured = self.shared().measured.lock().unwrap_or_else(PoisonError::into_inner);
        match measured.iter_mut().find(|each| each.name == new.name && each.bucket == new.bucket) {
            Some(each) => each.count += 1,
            None => measured.push(new),
        }
    }

    /// Counts a context of `sent` tokens that replaced a conversation of `whole` tokens.
    pub fn saved(&self, whole: i64, sent: i64) {
        let saved = Savings { answers: 1, whole, sent };
        self.shared().saved.lock().unwrap_or_else(PoisonError::into_inner).add(saved);
    }

    /// Returns the notices about the files in use that were not returned before. For example, they report that another
    /// store was opened, that permissions were removed which let other users read, or that something could not be
    /// stored.
    pub fn take_news(&self, engine: &Engine) -> Option<String> {
        // Notices about the files of this machine are for their owner.
        let mut news = if self.has_files() { engine.take_notices() } else { Vec::new() };
        news.append(&mut self.state.notices.take());
        (!news.is_empty()).then(|| news.join(" "))
    }

    /// Records that this process serves tools. From then on, the answers of read-only tools report the notices too. A
    /// command doesn't need this, because it prints the notices next to its output.
    pub fn serves_tools(&self) {
        self.state.serves_tools.store(true, Ordering::Relaxed);
    }

    /// Returns the notices for the answer of a read-only tool.
    pub fn take_news_for_reading(&self, engine: &Engine) -> Option<String> {
        self.state.serves_tools.load(Ordering::Relaxed).then(|| self.take_news(engine)).flatten()
    }

    /// Keeps a notice for the next answer that can report it, and logs it.
    pub fn add_notice(&self, notice: String) {
        self.state.notices.add(notice);
    }
}
