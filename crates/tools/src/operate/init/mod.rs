//! Connects Tiro to the agents installed on this machine, and disconnects it.

mod keep;
pub mod named;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::keep::Copies;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::file::path_of;
use tiro_base::humanize::counted;
use tiro_capture::clients::retention::{self, Retention};
use tiro_capture::clients::{self, Applied, Client, GitPlace, Plan, Removed, by_hand};
use tiro_capture::follow::history::{Stored, follow_from};
use tiro_capture::follow::sessions::Account;
use tiro_capture::sources::known_clients;
use tiro_capture::spool::capture::{self, Scope};
use tiro_git::{Repository, Sha, Stop, identity};
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::config::UnusedKey;
use tiro_host::engine::Engine;
use tiro_host::own_files::search_sessions;
use tiro_host::project::{self, SeenProject};

/// Measured rates of imports. They are used to estimate how long an import takes.
const COMMITS_A_SECOND: u64 = 1200;
const BYTES_A_SECOND: u64 = 4 * 1024 * 1024;

/// The changes that `tiro init` would make.
#[derive(Debug)]
pub struct Prepared {
    /// The files that would change.
    pub plan: Plan,
    /// The program and its model, if they have to be copied first.
    copies: Copies,
    /// Which projects are captured from now on.
    pub scope: Scope,
    /// Which projects were captured before; `None` if the user never chose.
    pub scope_before: Option<Scope>,
    /// Whether the user chose this project before. This matters only if Tiro captures only chosen projects.
    pub is_chosen: bool,
    /// Keys in the environment that no provider uses.
    pub unused_keys: Vec<UnusedKey>,
    /// Servers of Tiro that were configured by hand, in addition to the one that `tiro init` writes.
    pub additional: Vec<clients::Finding>,
    /// The commits and sessions that can be imported.
    pub backfill: Backfill,
    /// How long Claude Code keeps transcripts; `None` if it is not installed.
    pub retention: Option<Retention>,
    /// The project's root; `None` if the working directory is not in a project.
    pub root: Option<PathBuf>,
    /// The project's name; `None` if the working directory is not in a project.
    pub project: Option<String>,
    /// The files and folders that will be created by the first call that stores something. Empty if the project has a
    /// store.
    pub makes: Vec<String>,
}

/// The project's history that is not imported yet.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Backfill {
    /// Whether the project is a repository.
    pub git: bool,
    /// How many commits are not imported.
    pub commits: usize,
    /// The sessions that are not imported, by client.
    pub sessions: Vec<Held>,
    /// The account of all transcripts of each client that has some.
    pub accounts: Vec<Account>,
    /// The duration of the import at the measured rates, in seconds.
    pub seconds: u64,
}

/// A client's transcripts of the project that are not imported.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// The client.
    pub client: Client,
    /// The number of transcripts that were never read, or have grown since they were last read.
    pub transcripts: usize,
    /// How many bytes of these transcripts are not read yet.
    pub bytes: u64,
}

/// The answer of `tiro init`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The clients found.
    pub found: Vec<String>,
    /// Files written.
    pub written: Vec<PathBuf>,
    /// Files that were not changed, each with the reason and the remedy.
    pub findings: Vec<clients::Finding>,
    /// Which projects are captured.
    pub captured: Scope,
    /// What to do next.
    pub next: Vec<String>,
}

/// Returns the changes that would be made, and the history that can be imported. Changes nothing and does not register
/// the project.
///
/// `scope` says which projects to capture. If it is `None`, the user's earlier choice applies. If the user never chose,
/// all projects are captured. `reading` contains the names of the tools that the user may let agents call without
/// asking.
///
/// # Errors
///
/// Errors with [`Kind::BadInput`] if `scope` captures only this project and the working directory is not in a project.
pub async fn prepare(
    engine: &Engine,
    caller: &Caller,
    scope: Option<Scope>,
    reading: &[String],
) -> Result<Prepared> {
    let places = known_clients(engine.config().clients.as_ref())?;
    let project = match caller.look(engine).await {
        Ok(project) => Some(project),
        // Clients can be set up outside a project, too.
        Err(error) if error.kind() == Kind::NoProject => None,
        Err(error) => return Err(error),
    };
    if project.is_none() && scope == Some(Scope::Project) {
        return Err(Error::bad_input(
            "the working directory is not in a project, so there is none to capture",
        )
        .hint("run `tiro init` in a project, or name one with --project"));
    }
    let scope_before = Scope::chosen(&engine.config().data_dir);
    let is_chosen = project
        .as_ref()
        .is_some_and(|project| engine.spool_of(&project.root, project.repository.as_deref()).is_chosen());
    let scope = scope.or(scope_before).unwrap_or(Scope::Machine);
    let repository = project.as_ref().and_then(|project| project.repository.as_deref());
    let git = repository.map(|repository| git_place(engine, repository, Vec::new()));
    let plan = clients::plan(places, &engine.config().program()?, git.as_ref(), reading)?;
    let copies = Copies::needed(engine.config())?;
    let root = project.as_ref().map(|project| project.root.clone());
    let additional = by_hand::look(places, root.as_deref(), Some(&plan));
    let backfill = match &project {
        Some(project) => backfill(engine, caller, project).await?,
        None => Backfill::default(),
    };
    let makes = match &project {
        Some(project) if project.open.is_none() => first_call_makes(engine, project),
        _ => Vec::new(),
    };
    Ok(Prepared {
        plan,
        copies,
        scope,
        scope_before,
        is_chosen,
        unused_keys: unused_keys(engine),
        additional,
        backfill,
        retention: retention(engine),
        root,
        project: project.map(|project| project.name),
        makes,
    })
}

/// Returns the keys in the environment that no provider uses. If the configuration can't be read, there are none.
pub fn unused_keys(engine: &Engine) -> Vec<UnusedKey> {
    let sources = &engine.config().sources;
    let providers = sources.options().and_then(|options| sources.providers(&options));
    providers.map(|providers| sources.unused_keys(&providers)).unwrap_or_default()
}

/// Returns the quoted paths that will be created when something is first stored. The project must have no store yet.
pub fn first_call_makes(engine: &Engine, project: &SeenProject) -> Vec<String> {
    let data_dir = &engine.config().data_dir;
    let id = project.repository.as_ref().map(|repository| repository.common_dir().join(identity::FILE));
    let kept = [Some(data_dir.join("owner.db")), id].into_iter().flatten().filter(|path| !path.exists());
    let store = format!("a folder in `{}`", quoted(data_dir.join("projects").display()));
    kept.map(|path| format!("`{}`", quoted(path.display()))).chain([store]).collect()
}

/// Writes the prepared changes, and records the previous content of each file. If the user accepted the offers of the
/// plan, they were moved to its changes, and are written too.
pub fn apply(engine: &Engine, prepared: &Prepared) -> Result<Output> {
    prepared.copies.make()?;
    let Applied { written, mut findings } = clients::apply(&prepared.plan.changes, &record(engine))?;
    findings.extend(prepared.plan.findings.iter().cloned());
    findings.extend(additional_servers(engine, prepared)?);
    let found = prepared.plan.found.iter().map(|client| client.name().to_owned()).collect();
    if prepared.scope_before != Some(prepared.scope) {
        prepared.scope.choose(&engine.config().data_dir)?;
    }
    Ok(Output { found, written, findings, captured: prepared.scope, next: prepared.next() })
}

/// Returns the servers of Tiro that are configured by hand, in addition to the one that `tiro init` writes.
pub fn additional_servers(engine: &Engine, prepared: &Prepared) -> Result<Vec<clients::Finding>> {
    Ok(by_hand::look(known_clients(engine.config().clients.as_ref())?, prepared.root.as_deref(), None))
}

/// Records that the user chose the project, if only chosen projects are captured.
pub async fn choose_project(engine: &Engine, caller: &WritingCaller, prepared: &Prepared) -> Result<()> {
    if prepared.scope == Scope::Project && prepared.project.is_some() {
        let project = caller.begin_project(engine).await?;
        engine.spool(&project).choose(&project.root)?;
    }
    Ok(())
}

/// Starts to follow new commits, unless they are followed already. This does not store commits that branches already
/// contain or that were made while the project was not captured. `tiro import git` stores those commits.
///
/// Errors if the project's store can't be opened or written.
pub async fn follow_commits(engine: &Engine, caller: &WritingCaller, prepared: &Prepared) -> Result<()> {
    if prepared.project.is_none() {
        return Ok(());
    }
    let project = caller.begin_project(engine).await?;
    let Some(repository) = &project.repository else { return Ok(()) };
    let intake = project.intake(engine.clock());
    let stored = Stored::of(&intake).await?;
    if stored.is_imported() || (stored.is_followed() && prepared.was_captured()) {
        return Ok(());
    }
    let tips: Vec<Sha> = repository.tips().found.into_iter().map(|tip| tip.sha).collect();
    follow_from(&intake, &tips).await
}

/// The setup of projects other than the project in the working directory.
#[derive(Debug, Default, Serialize)]
pub struct Others {
    /// The hooks in other repositories.
    pub hooks: Vec<PathBuf>,
    /// Other chosen projects; empty if every project is captured.
    pub projects: Vec<PathBuf>,
}

/// Returns the setup of other projects.
pub async fn others(engine: &Engine, caller: &Caller) -> Result<Others> {
    let mut hooks = clients::hooks(&record(engine), &repositories(engine, caller).await)?;
    let here = caller.look(engine).await.ok();
    let repository = here.as_ref().and_then(|project| project.repository.as_deref());
    let own = repository.and_then(|repository| clients::hook_of(&git_place(engine, repository, Vec::new())));
    hooks.retain(|hook| Some(hook) != own.as_ref());
    let data_dir = &engine.config().data_dir;
    let mut projects = match Scope::chosen(data_dir) {
        Some(Scope::Project) => capture::chosen_projects(data_dir),
        // If every project is captured, no project depends on an earlier choice.
        _ => Vec::new(),
    };
    projects.retain(|root| here.as_ref().is_none_or(|project| project.root != *root));
    Ok(Others { hooks, projects })
}

/// Removes everything that setup ever wrote, except the parts that `others` need. The hooks in `others` stay. The
/// clients stay set up if other projects are chosen to be captured.
pub async fn remove(engine: &Engine, caller: &Caller, others: &Others) -> Result<Removed> {
    let data_dir = &engine.config().data_dir;
    let keep = clients::Keep { clients: !others.projects.is_empty(), hooks: others.hooks.clone() };
    let places = engine.config().clients.as_ref();
    let mut removed = clients::remove(&record(engine), places, &repositories(engine, caller).await, &keep)?;
    if keep.clients {
        if let Ok(project) = caller.look(engine).await {
            engine.spool_of(&project.root, project.repository.as_deref()).unchoose()?;
        }
        let count = counted(others.projects.len(), "other project is", "other projects are");
        removed.notes.push(format!("Clients stay set up, since {count} captured."));
    } else {
        Scope::forget(data_dir);
        if keep::remove(engine.config())? {
            removed.notes.push("Removed the copy of the program from the data directory.".to_owned());
        }
    }
    Ok(removed)
}

/// Returns findings about files that setup changed and that no longer exist.
pub async fn lost(engine: &Engine, caller: &Caller) -> Result<Vec<clients::Finding>> {
    clients::lost(&record(engine), &repositories(engine, caller).await)
}

/// Returns the programs that our entries start, in the files of the clients and in the hooks of all known repositories.
pub async fn written(engine: &Engine, caller: &Caller) -> Result<Vec<clients::ConfiguredProgram>> {
    Ok(clients::written(
        known_clients(engine.config().clients.as_ref())?,
        &repositories(engine, caller).await,
    ))
}

/// Returns whether only one thing would change in the file at `path`: `program` would be started by another path.
pub async fn differs_by_path(engine: &Engine, caller: &Caller, path: &Path, program: &Path) -> bool {
    let project = caller.look(engine).await.ok();
    let repository = project.as_ref().and_then(|project| project.repository.as_deref());
    let git = repository.map(|repository| git_place(engine, repository, Vec::new()));
    let places = known_clients(engine.config().clients.as_ref());
    let plan = places.and_then(|places| clients::plan(places, program, git.as_ref(), &[]));
    plan.is_ok_and(|plan| plan.changes.iter().all(|change| change.path != path))
}

/// Returns whether the record of setup contains the hook at `path`.
pub async fn wrote_hook(engine: &Engine, caller: &Caller, path: &Path) -> bool {
    let hooks = clients::hooks(&record(engine), &repositories(engine, caller).await);
    hooks.is_ok_and(|hooks| hooks.iter().any(|hook| hook == path))
}

/// Returns whether the record of setup says that clients are set up.
pub fn was_applied(engine: &Engine) -> bool {
    clients::was_applied(&record(engine))
}

/// Returns how long Claude Code keeps transcripts; `None` if it is not installed.
pub fn retention(engine: &Engine) -> Option<Retention> {
    retention::of(engine.config().clients.as_ref()?)
}

/// Makes Claude Code keep transcripts for ten years, and records the former setting.
///
/// # Errors
///
/// An error if the record of the setup can't be written.
pub fn keep_transcripts(engine: &Engine) -> Result<Applied> {
    retention::raise(known_clients(engine.config().clients.as_ref())?, &record(engine))
}

/// Returns the folder in which setup records its changes.
fn record(engine: &Engine) -> PathBuf {
    engine.config().data_dir.join("init")
}

/// Returns the registered repositories that exist, and the repository of the working directory.
async fn repositories(engine: &Engine, caller: &Caller) -> Vec<GitPlace> {
    // An unreadable registry is treated as an empty registry.
    let rows = match engine.existing_installation().await {
        Ok(Some(installation)) => installation.registry.all().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let here = caller.look(engine).await.ok().and_then(|project| Some(project.repository?.common_dir()));
    let registered = rows.iter().flat_map(|row| row.places.iter().map(|place| path_of(place)));
    let places: BTreeSet<PathBuf> = registered.chain(here).collect();
    let open = |common: PathBuf| {
        let id = identity::read(&common).ok().flatten();
        let row = rows.iter().find(|row| Some(row.id.as_str()) == id.as_deref());
        let formerly = row.into_iter().flat_map(|row| row.places.iter().map(|place| path_of(place)));
        let repository = Repository::open(&common, &project::trust(engine.config(), caller.named())).ok()?;
        Some(git_place(engine, &repository, formerly.filter(|place| *place != common).collect()))
    };
    places.into_iter().filter_map(open).collect()
}

fn git_place(engine: &Engine, repository: &Repository, formerly: Vec<PathBuf>) -> GitPlace {
    let hooks =
        repository.hooks("post-commit", engine.config().git_settings(), engine.config().home.as_deref());
    GitPlace {
        hooks: hooks.directory,
        common: repository.common_dir(),
        work_tree: repository.work_dir(),
        is_tracked: hooks.is_tracked,
        formerly,
    }
}

async fn backfill(engine: &Engine, caller: &Caller, project: &SeenProject) -> Result<Backfill> {
    let mut backfill = Backfill::default();
    let repository = project.repository.as_deref();
    if let Some(repository) = repository {
        backfill.git = true;
        let known = match &project.open {
            Some(open) => open.store.known_commits(&open.scope).await?,
            None => Vec::new(),
        };
        let known: std::collections::HashSet<String> = known.into_iter().collect();
        let tips = repository.tips().found;
        let is_known = &mut |sha: &Sha| known.contains(&sha.to_string());
        let history =
            repository.history(&tips, tiro_git::KnownCommit::OnlyItself, &Stop::default(), is_known)?;
        backfill.commits = history.commits.len();
    }
    let mut bytes = 0;
    for client in Client::AGENTS {
        let search = search_sessions(engine, caller, project, client).await?;
        let new = search.found.iter().filter(|each| each.unread > 0);
        let (transcripts, size) = new.fold((0, 0), |(count, size), each| (count + 1, size + each.unread));
        if transcripts > 0 {
            backfill.sessions.push(Held { client, transcripts, bytes: size });
        }
        if search.account.seen > 0 {
            backfill.accounts.push(search.account);
        }
        bytes += size;
    }
    backfill.seconds = (backfill.commits as u64).div_ceil(COMMITS_A_SECOND) + bytes.div_ceil(BYTES_A_SECOND);
    Ok(backfill)
}

impl Prepared {
    /// Returns whether anything would change. In this case, the user has to confirm it.
    pub fn is_new(&self) -> bool {
        let is_chosen = self.scope == Scope::Machine || self.project.is_none() || self.is_chosen;
        !self.plan.changes.is_empty()
            || !self.copies.is_empty()
            || self.scope_before.is_some_and(|before| before != self.scope)
            || !is_chosen
    }

    /// Adds the offers of the plan to its changes.
    pub fn accept_offers(&mut self) {
        self.plan.accept_offers();
    }

    /// Returns whether this project was captured before, either because it was chosen or because every project was
    /// captured.
    fn was_captured(&self) -> bool {
        match self.scope_before {
            Some(Scope::Machine) => true,
            Some(Scope::Project) => self.is_chosen,
            None => false,
        }
    }

    /// Returns how long Claude Code keeps transcripts, if it deletes them so early that Tiro offers to keep them
    /// longer.
    pub fn short_retention(&self) -> Option<&Retention> {
        self.retention.as_ref().filter(|retention| retention.is_short())
    }

    /// Errors with [`Kind::NotFound`] if there is nothing to set up.
    pub fn require_client(&self) -> Result<()> {
        match self.plan.found.is_empty() {
            true => Err(Error::not_found("there is nothing to set up")
                .hint("install a client, or run `tiro init` in a repository; `tiro serve` works with any MCP client")),
            false => Ok(()),
        }
    }
}

impl Backfill {
    /// Returns whether there is nothing to import.
    pub fn is_empty(&self) -> bool {
        self.commits == 0 && self.sessions.is_empty()
    }
}
