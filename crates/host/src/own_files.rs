//! The side with the user's files, in this process. It passes new content to the memory of a caller's project.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::caller::{Caller, WritingCaller};
use crate::engine::Engine;
use crate::project::{SeenProject, WritableProject};
use crate::summaries::sessions as summaries;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::file::path_of;
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_base::scope::ProjectId;
use tiro_capture::clients::Client;
use tiro_capture::follow::catch_up::{self, unfollowed};
use tiro_capture::follow::link::{Span, WorkTrees, link_span};
use tiro_capture::follow::sessions::Keep;
use tiro_capture::follow::{commits, documents, graph, line_origins, pointer, sessions};
use tiro_capture::sources::{Sources, root_of};
use tiro_files::{Refusal, Roots};
use tiro_git::{LARGEST_BLAMED, Repository};
use tiro_intake::{Capture, LineOrigins, LinesAsked, ReadIntake, Standing, Subject};
use tiro_recall::store_intake::StoreIntake;
use tiro_store::Store;

/// The longest time that an import spends on summaries of the imported sessions. The idle server and `tiro index` make
/// the remaining summaries.
const SUMMARISING: Duration = Duration::from_secs(1);

/// The origins of lines are cached if finding them took this long.
const SLOW_ORIGINS: Duration = Duration::from_millis(50);

/// The files of a caller who only reads.
struct OwnFiles<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
}

impl Caller {
    /// Returns the interface to the caller's files.
    pub fn capture<'a>(&'a self, engine: &'a Engine) -> impl Capture + 'a {
        OwnFiles { engine, caller: self }
    }

    /// Returns the path in the repository of the file that `asked` names, and its content, if the path policy allows to
    /// read it.
    ///
    /// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if it doesn't.
    pub async fn own_file(&self, engine: &Engine, asked: &LinesAsked) -> Result<(String, Vec<u8>)> {
        own(self)?;
        let project = self.project(engine).await?;
        let own = [engine.config().data_dir.clone()];
        let roots = Roots::new(&project.root, &[], &own)?.with_home(engine.config().home.clone());
        let (path, content) = own_lines(&roots, &self.directory()?, &project.root, asked)?;
        Ok((path, content.unwrap_or_default()))
    }

    /// Returns the directory of the caller's project.
    pub async fn root_of(&self, engine: &Engine) -> Result<PathBuf> {
        own(self)?;
        Ok(self.project(engine).await?.root.clone())
    }
}

/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if the files of this machine are not the caller's.
fn own(caller: &Caller) -> Result<()> {
    match caller.has_files() {
        true => Ok(()),
        false => Err(Error::bad_input("your files are not on the machine of this server")
            .hint("ask about files with a server on your own machine, `tiro serve`")),
    }
}

#[async_trait]
impl Capture for OwnFiles<'_> {
    async fn catch_up(&self) -> Vec<String> {
        let (engine, caller) = (self.engine, self.caller);
        if !caller.has_files() {
            return Vec::new();
        }
        let mut notices = before_a_call(engine, &caller.following()).await;
        // Opening the store may produce notices about its files. A read-only operation reports these together with the
        // other notices, within the budget of its answer. Each notice is reported once.
        let news = caller.take_news_for_reading(engine).map(|news| news.trim_end_matches('.').to_owned());
        notices.splice(0..0, news);
        notices
    }

    async fn standing(&self, subjects: Vec<Subject>) -> Vec<Standing> {
        let (engine, caller) = (self.engine, self.caller);
        let unknown = vec![Standing::UNKNOWN; subjects.len()];
        if !caller.has_files() {
            return unknown;
        }
        let Ok(project) = caller.project(engine).await else { return unknown };
        let sources = project.sources(caller.machine(engine));
        graph::standing(&sources, &project.read_intake(engine.clock()), subjects).await
    }

    async fn checked_out(&self) -> Option<String> {
        let project = self.caller.project(self.engine).await.ok()?;
        let repository = project.sources(self.caller.machine(self.engine)).repository?;
        let head = tokio::task::spawn_blocking(move || repository.head().ok()?.commit);
        head.await.ok()?.map(|sha| sha.to_string())
    }

    async fn line_origins(&self, asked: LinesAsked) -> Result<LineOrigins> {
        let (engine, caller) = (self.engine, self.caller);
        own(caller)?;
        let project = caller.project(engine).await?;
        let own = [engine.config().data_dir.clone()];
        let roots = Roots::new(&project.root, &[], &own)?.with_home(engine.config().home.clone());
        let (path, content) = own_lines(&roots, &caller.directory()?, &project.root, &asked)?;
        let sources = project.sources(caller.machine(engine));
        let intake = project.read_intake(engine.clock());
        let head = self.checked_out().await.filter(|_| asked.rev.is_none());
        let is_shallow = sources.repository.as_deref().is_some_and(Repository::is_shallow);
        let key = head.map(|head| lines_key(&head, is_shallow, &asked, &path, content.as_deref()));
        if let Some(key) = key
            && let Some(body) = project.store.cached(&project.scope, key, engine.now()).await?
            && let Ok(origins) = serde_json::from_str(&body)
        {
            return Ok(origins);
        }
        let began = Instant::now();
        let origins = line_origins::find((&sources, &intake), asked, path, content).await?;
        if let Some(key) = key
            && origins.notices.is_empty()
            && began.elapsed() >= SLOW_ORIGINS
        {
            let body = serde_json::to_string(&origins).expect("origins are JSON");
            let (ttl, most) = (engine.config().options.cache_ttl(), engine.config().options.cache_bytes());
            project.books.cache(&project.scope, key, body, engine.now(), ttl, most).await?;
        }
        Ok(origins)
    }
}

/// Returns the key under which the origins of lines are cached: a hash of everything on which they depend.
fn lines_key(
    head: &str,
    is_shallow: bool,
    asked: &LinesAsked,
    path: &str,
    content: Option<&[u8]>,
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 origins of lines");
    let content = content.map(blake3::hash);
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(format!("{head} {is_shallow} {:?} {path:?} {content:?}", asked.lines).as_bytes());
    *hasher.finalize().as_bytes()
}

/// Returns the path in the repository of the file whose lines are asked for, and its content. A relative path is read
/// from `directory`, where the caller works, or else from the root of the work tree. The file may be gone if the version
/// of a commit is meant.
fn own_lines(
    roots: &Roots,
    directory: &Path,
    root: &Path,
    asked: &LinesAsked,
) -> Result<(String, Option<Vec<u8>>)> {
    let below = directory.join(&asked.path);
    let place = below.to_str().filter(|_| below.exists()).unwrap_or(&asked.path);
    let found = match roots.own_file(place, LARGEST_BLAMED) {
        Ok((path, content)) => Ok((path, Some(content))),
        Err(Refusal::Missing) if asked.rev.is_some() => {
            let below = below.strip_prefix(root).unwrap_or(Path::new(&asked.path));
            let path = below.to_string_lossy().replace('\\', "/").trim_start_matches("./").to_owned();
            roots.check_gone(&path).map(|()| (path, None))
        }
        Err(why) => Err(why),
    };
    found.map_err(|why| {
        let error = Error::bad_input(format!("`{}` {why}", quoted(&asked.path)));
        match (why, why.way_out()) {
            (Refusal::Missing, _) => {
                error.hint("if it was renamed or deleted, name a commit that has it as `rev`")
            }
            (_, Some(way_out)) => error.hint(way_out),
            (_, None) => error,
        }
    })
}

/// Returns the files of the project and its memory.
fn sides(
    engine: &Engine,
    caller: &WritingCaller,
    project: &WritableProject,
) -> (Sources, StoreIntake<dyn Store>) {
    (project.sources(caller.machine(engine)), project.intake(engine.clock()))
}

/// Tells the idle workers if something was imported.
fn tell(engine: &Engine, imported: usize) {
    if imported > 0 {
        engine.wrote();
    }
}

async fn before_a_call(engine: &Engine, caller: &WritingCaller) -> Vec<String> {
    // If there is no project, the call itself reports the error.
    let Ok(project) = caller.project(engine).await else { return Vec::new() };
    let notices = match to_follow(engine, caller).await {
        // The project isn't stored yet and hooks left no references, so there is nothing to follow.
        Ok(None) => Vec::new(),
        Err(error) => vec![unfollowed(&error)],
        Ok(Some(project)) => {
            let (sources, intake) = sides(engine, caller, &project);
            match catch_up::before_a_call((&sources, &intake), caller.followed()).await {
                Ok(followed) => {
                    tell(engine, followed.imported);
                    followed.notices
                }
                Err(error) => vec![unfollowed(&error)],
            }
        }
    };
    project.trouble.iter().cloned().chain(notices).collect()
}

/// Returns the project if there may be something to follow, because the project is stored or hooks wrote references. If
/// hooks wrote references and the project is not stored, the project is created first.
async fn to_follow(engine: &Engine, caller: &WritingCaller) -> Result<Option<Arc<WritableProject>>> {
    if !caller.has_files() {
        return Ok(None);
    }
    let project = caller.project(engine).await?;
    match project.is_blank && engine.spool(&project).is_empty() {
        true => Ok(None),
        false => caller.begin_project(engine).await.map(Some),
    }
}

/// Passes on new content while no call waits. Reads transcripts for at most `patience`. Returns whether there may be
/// something to follow.
pub async fn while_idle(engine: &Engine, caller: &WritingCaller, patience: Duration) -> Result<bool> {
    let Some(project) = to_follow(engine, caller).await? else { return Ok(false) };
    let (sources, intake) = sides(engine, caller, &project);
    match catch_up::while_idle((&sources, &intake), caller.followed(), patience).await {
        Ok(followed) => {
            tell(engine, followed.imported);
            followed.for_next_answer.into_iter().for_each(|notice| caller.add_notice(notice));
        }
        Err(error) => tracing::debug!(%error, "not caught up"),
    }
    Ok(true)
}

/// Writes the pointer for the next session of the project.
pub async fn point(engine: &Engine, caller: &WritingCaller, project: &WritableProject) -> Result<()> {
    let (sources, intake) = sides(engine, caller, project);
    pointer::point(&sources, &intake).await
}

/// Imports the commits of the caller's project as [`commits::import`] does.
pub async fn import_commits(
    engine: &Engine,
    caller: &WritingCaller,
    args: commits::Args,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<commits::Imported> {
    let project = caller.project(engine).await?;
    commits::repository(&project.sources(caller.machine(engine)))?;
    let project = caller.begin_project(engine).await?;
    let (sources, intake) = sides(engine, caller, &project);
    let mut imported = commits::import((&sources, &intake), args, progress).await?;
    let documents = documents::follow((&sources, &intake), None).await?;
    imported.documents = documents.stored;
    if documents.is_unfinished {
        imported.notices.push(
            "the documents of the repository could not be read in time: run the command again".to_owned(),
        );
    }
    if documents.left_out > 0 {
        let left_out = counted(documents.left_out, "document is", "documents are");
        imported.notices.push(format!("{left_out} left out, since there are too many"));
    }
    tell(engine, imported.imported + imported.documents);
    pointer::point(&sources, &intake).await?;
    Ok(imported)
}

/// Imports the sessions of the caller's project as [`sessions::import`] does, and begins to summarise them.
pub async fn import_sessions(
    engine: &Engine,
    caller: &WritingCaller,
    args: sessions::Args,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<sessions::Imported> {
    let began = Instant::now();
    let project = caller.begin_project(engine).await?;
    let (sources, intake) = sides(engine, caller, &project);
    // Transcripts that the user names are imported whole, so other projects don't matter.
    let others = match args.transcripts.is_empty() {
        true => roots_of_others(engine, Some(&project.scope.project)).await,
        false => Vec::new(),
    };
    let patience = args.patience;
    let imported = sessions::import((&sources, &intake), &others, args, progress).await?;
    tell(engine, imported.imported);
    if imported.imported > 0 {
        let left = patience.map_or(SUMMARISING, |patience| patience.saturating_sub(began.elapsed()));
        summaries::work_off(engine, caller, left.min(SUMMARISING)).await?;
    }
    pointer::point(&sources, &intake).await?;
    Ok(imported)
}

/// Links the commits made around the sessions in `span`, the times of the first and the last message. `None` means that
/// no session changed a file or made a commit.
pub async fn link_sessions(
    engine: &Engine,
    caller: &WritingCaller,
    project: &WritableProject,
    span: Option<(Millis, Millis)>,
) -> Result<()> {
    let Some((from, until)) = span else { return Ok(()) };
    let (sources, intake) = sides(engine, caller, project);
    let mut worked = Span::default();
    worked.widen(from);
    worked.widen(until);
    link_span((&sources, &intake), &WorkTrees::of(&sources), &worked, None).await?;
    Ok(())
}

/// Searches the transcripts of `client` for the sessions of a project, as [`sessions::search`] does. The project was
/// only looked at, and nothing is changed.
pub async fn search_sessions(
    engine: &Engine,
    caller: &Caller,
    project: &SeenProject,
    client: Client,
) -> Result<sessions::Search> {
    let sources = project.sources(caller.machine(engine));
    let intake = project.open.as_ref().map(|open| open.read_intake(engine.clock()));
    let intake = intake.as_ref().map(|intake| intake as &dyn ReadIntake);
    let own = project.open.as_ref().map(|open| &open.scope.project);
    let (others, mut work_trees) = (roots_of_others(engine, own).await, WorkTrees::of(&sources));
    sessions::search((&sources, intake), client, &others, &mut work_trees, Keep::No, |_, _| {}).await
}

/// Returns the roots of the registered projects other than `own`, as far as the registry can be read.
async fn roots_of_others(engine: &Engine, own: Option<&ProjectId>) -> Vec<PathBuf> {
    let rows = match engine.existing_installation().await {
        Ok(Some(installation)) => installation.registry.all().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let places = rows.into_iter().filter(|row| Some(&row.id) != own).flat_map(|row| row.places);
    places.map(|place| root_of(&path_of(&place))).collect()
}
