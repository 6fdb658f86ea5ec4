//! Imports conversations that other programs keep as files. These are the sessions of SpecStory in the repository, and
//! files with JSON lines of messages.
//!
//! A message is recognised by its id. Without an id, it is recognised by its text and by how often the conversation
//! contained this text before. So importing a file again stores only the messages that were added to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::common;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize::{self, counted};
use tiro_base::memory::{Draft, FileWrite, Identity, Kind, LONGEST_TEXT, Millis, Provenance, Work};
use tiro_capture::clients::transcripts::{self, Line, Lines};
use tiro_capture::import::evidence::WrittenFile;
use tiro_capture::import::messages::{self, Said};
use tiro_capture::import::specstory;
use tiro_embed::Loaded;
use tiro_files::{Budget, Limits, Roots};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::own_files;
use tiro_host::project::{OpenProject, WritableProject};
use tiro_host::summaries::sessions;
use tiro_intake::session_id;
use tiro_recall::remember::remember;
use tiro_redact::{self, Redaction};
use tiro_store::{Origin, Outcome};

/// The folder in which SpecStory keeps its sessions, relative to the root of the project.
const HISTORY: &str = ".specstory/history";

/// The largest session of SpecStory that is read, in bytes.
const LARGEST: u64 = 32 * 1024 * 1024;

/// The longest time that an import spends on summaries.
const SUMMARISING: Duration = Duration::from_secs(1);

/// The longest time for listing the files of the repository.
const LISTING: Duration = Duration::from_secs(5);

/// The names with which sessions are listed.
const SPECSTORY: &str = "specstory";
const FILE: &str = "file";

/// The source of an import.
#[derive(Debug)]
pub enum Args {
    /// The sessions that SpecStory keeps in the repository.
    Specstory,
    /// Files with JSON lines of messages.
    Files(Vec<PathBuf>),
}

/// The result of `tiro import specstory` and `tiro import FILE`.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Conversations that were read.
    pub sessions: usize,
    /// Messages that were stored by this call.
    pub imported: usize,
    /// Messages that were stored before.
    pub already_stored: usize,
    /// Messages that were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// Messages that were left out because they are of sub-agents, too long, or of sessions that the configuration
    /// ignores.
    pub left_out: usize,
    /// The parts that can't be read, with the file, the line and the reason.
    pub unread: Vec<String>,
    /// Secrets replaced, by rule.
    pub redactions: Vec<Redaction>,
    /// Pieces of text that are not embedded yet.
    pub pending: usize,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// A conversation to import.
struct Conversation {
    name: String,
    origin: Origin,
    /// The time that is used for messages before the first message with a time.
    began: Millis,
    said: Vec<Said>,
}

/// Reads the conversations and stores their messages.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let project = caller.begin_project(engine).await?;
    let mut output = Output::default();
    let conversations = match args {
        Args::Specstory => of_specstory(engine, &project, &mut output)?,
        Args::Files(paths) => of_files(engine, &paths, &mut output)?,
    };
    output.sessions = conversations.len();
    let work = Worked::of(&project, &conversations).await;
    for conversation in conversations {
        store(engine, &project, conversation, &work, &mut output).await?;
    }
    own_files::link_sessions(engine, caller, &project, work.span).await?;
    if output.imported > 0 {
        engine.wrote();
        sessions::work_off(engine, caller, SUMMARISING).await?;
    }
    Ok(output)
}

/// Reads the sessions of SpecStory through the path policy of the project.
fn of_specstory(engine: &Engine, project: &OpenProject, output: &mut Output) -> Result<Vec<Conversation>> {
    let roots = Roots::new(&project.root, &[], &[engine.config().data_dir.clone()])?;
    // Many users keep the sessions out of git, as SpecStory advises. They asked for these files all the same.
    let limits = Limits { file_bytes: LARGEST, without_ignored: false, ..Limits::default() };
    // The sessions are plain texts, so none of the budget for documents is spent.
    let budget = Budget::default();
    let _ends = budget.ends_with_call();
    let gathered = tiro_files::gather(&roots, &[HISTORY.to_owned()], &limits, &budget);
    if let Some(refused) = gathered.refused.first() {
        return Err(Error::not_found(format!(
            "no sessions of SpecStory: `{}` {}",
            refused.path, refused.why
        ))
        .hint("SpecStory writes them to `.specstory/history` of the repository"));
    }
    output
        .notices
        .extend(gathered.skipped.iter().map(|skipped| format!("left out of `{HISTORY}`: {skipped}")));
    output.notices.extend(gathered.cut.map(|cut| format!("{cut}: {}", cut.way_out())));
    let now_ns = engine.now().saturating_mul(1_000_000);
    let reading =
        tiro_files::Reading { limits: &limits, now_ns, extractor: engine.extractor(), budget: &budget };
    let mut found: BTreeMap<String, Conversation> = BTreeMap::new();
    let mut subagents = BTreeSet::new();
    for file in gathered.files.iter().filter(|file| file.path.ends_with(".md")) {
        let read = match roots.read(file, &reading) {
            Ok(read) => read,
            Err(why) => {
                output.unread.push(format!("{} {why}", quoted(&file.path)));
                continue;
            }
        };
        let stem = stem(Path::new(&file.path));
        let session = specstory::read(&stem, &read.text);
        output.left_out += session.left_out;
        let is_other = |id: &String| Some(id) != session.id.as_ref();
        subagents.extend(session.subagents.into_iter().filter(is_other));
        if session.said.is_empty() {
            output.unread.push(format!("{} has no messages", quoted(&file.path)));
            continue;
        }
        let (client, title) = (Some(SPECSTORY.to_owned()), session.title);
        let conversation = Conversation {
            name: session.id.unwrap_or(stem),
            origin: Origin { client, title, ..Origin::default() },
            began: session.began.unwrap_or(file.stat.mtime_ns / 1_000_000),
            said: session.said,
        };
        // There are two files of a session that was renamed, or that another version exported too. One of them has more
        // edits, or more messages.
        let is_fuller = found.get(&conversation.name).is_none_or(|it| fullness(it) < fullness(&conversation));
        if is_fuller {
            found.insert(conversation.name.clone(), conversation);
        }
    }
    for name in &subagents {
        output.left_out += found.remove(name).map_or(0, |conversation| conversation.said.len());
    }
    Ok(found.into_values().collect())
}

/// Returns how many edits of known files, and how many messages a conversation has.
fn fullness(conversation: &Conversation) -> (usize, usize) {
    let edits = conversation.said.iter().map(|said| said.written.len()).sum();
    (edits, conversation.said.len())
}

/// Reads files of JSON lines.
fn of_files(engine: &Engine, paths: &[PathBuf], output: &mut Output) -> Result<Vec<Conversation>> {
    let mut found: Vec<Conversation> = Vec::new();
    for path in paths {
        let mut lines = Lines::open(path, 0)?;
        let (stem, shown) = (stem(&transcripts::plain(path)), quoted(path.display()).to_string());
        let began = transcripts::modified(path).unwrap_or_else(|| engine.now());
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut number = 0;
        while let Some((_, line)) = lines.next_line()? {
            number += 1;
            let bytes = match line {
                Line::Whole(bytes) => bytes,
                Line::Cut(kept, _) => {
                    output
                        .notices
                        .push(format!("`{shown}` line {number} is too long: only a part of it was read"));
                    kept
                }
            };
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}');
            if text.is_empty() {
                continue;
            }
            let (said, problems) = messages::read(text);
            output.unread.extend(problems.iter().map(|problem| format!("{shown} line {number} {problem}")));
            for said in said {
                let name = said.session.clone().unwrap_or_else(|| stem.clone());
                let place = *places.entry(name.clone()).or_insert_with(|| {
                    let origin = Origin { client: Some(FILE.to_owned()), ..Origin::default() };
                    found.push(Conversation { name, origin, began, said: Vec::new() });
                    found.len() - 1
                });
                found[place].said.push(said);
            }
        }
        if lines.at() < transcripts::around(path, 0, 0)?.0 {
            output.unread.push(format!("{shown} line {} is not finished", number + 1));
        }
    }
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where the work of the conversations belongs.
struct Worked {
    places: specstory::Places,
    root: String,
    /// The times of the first and the last conversation, if any of them changed a file or made a commit.
    span: Option<(Millis, Millis)>,
}

impl Worked {
    async fn of(project: &OpenProject, conversations: &[Conversation]) -> Worked {
        let works =
            |said: &Said| !said.written.is_empty() || !said.likely.is_empty() || said.commits.is_some();
        let working = conversations.iter().filter(|conversation| conversation.said.iter().any(works));
        let times = working.flat_map(|conversation| {
            conversation.said.iter().filter_map(|said| said.time).chain([conversation.began])
        });
        let (first, last) = (times.clone().min(), times.max());
        let files = files(project).await;
        let written = conversations.iter().flat_map(|conversation| &conversation.said);
        let paths = written.flat_map(|said| said.written.iter().chain(&said.likely));
        let paths = paths.map(|written| written.path.as_str());
        let root = project.root.to_string_lossy().into_owned();
        Worked { places: specstory::Places::of(paths, files), root, span: first.zip(last) }
    }

    /// Returns what a tool call did. If it changed a file of another machine, its work tree is unknown.
    fn work(
        &self,
        written: Vec<WrittenFile>,
        likely: Vec<WrittenFile>,
        commits: Option<Vec<String>>,
    ) -> Work {
        let writes = written.into_iter().filter_map(|written| {
            let is_here = Path::new(&written.path).starts_with(&self.root);
            let worktree = is_here.then(|| self.root.clone());
            Some(FileWrite { path: self.places.relative(&written.path)?, worktree, lines: written.lines })
        });
        let named = likely.into_iter().filter_map(|written| {
            let path = self.places.named(&written.path)?.to_owned();
            Some((path.clone(), FileWrite { path, worktree: None, lines: written.lines }))
        });
        let named: BTreeMap<String, FileWrite> = named.collect();
        Work { writes: writes.chain(named.into_values()).collect(), commits, ..Work::default() }
    }
}

/// Returns the files of the commit that is checked out, as far as they can be listed in time.
async fn files(project: &OpenProject) -> BTreeSet<String> {
    let Some(repository) = project.repository.clone() else { return BTreeSet::new() };
    let listed = tokio::task::spawn_blocking(move || {
        let head = repository.head().ok()?.commit?;
        repository.files(&head, |_| true, Instant::now() + LISTING).ok()
    });
    let files = listed.await.ok().flatten().unwrap_or_default();
    files.into_iter().map(|file| file.path).collect()
}

/// Stores the messages of a conversation.
async fn store(
    engine: &Engine,
    project: &WritableProject,
    conversation: Conversation,
    work: &Worked,
    output: &mut Output,
) -> Result<()> {
    let (store, scope, redactor) = (project.store.as_ref(), &project.scope, &project.redactor);
    let session = session_id(redactor, "session", &conversation.name)?;
    if engine.config().ignored.session(session.as_str()) {
        output.left_out += conversation.said.len();
        return Ok(());
    }
    if !store.session_messages(scope, &session, 0).await?.is_empty() {
        let about = store.about_sessions(scope, vec![session.clone()]).await?;
        let client = about.into_iter().next().and_then(|about| about.client);
        if let Some(client) = client.filter(|client| Some(client) != conversation.origin.client.as_ref()) {
            let name = quoted(session.as_str()).to_string();
            output.notices.push(format!("session `{name}` is not imported again: it is known from {client}"));
            return Ok(());
        }
    }
    let mut drafts = Vec::with_capacity(conversation.said.len());
    let (mut last, mut times) = (conversation.began, HashMap::new());
    for said in conversation.said {
        if said.text.len() > LONGEST_TEXT {
            output.left_out += 1;
            continue;
        }
        last = said.time.unwrap_or(last);
        let key = match said.id {
            Some(id) => format!("id:{id}"),
            None => {
                // The text is redacted first, because an id that is derived from a secret would reveal it.
                let text = redactor.redact(&said.text).text;
                let hash = blake3::hash(format!("{}\0{text}", said.role.as_str()).as_bytes()).to_hex();
                let time = times.entry(hash).or_insert(0);
                *time += 1;
                format!("said:{hash}:{time}")
            }
        };
        let mut draft = Draft::new(Kind::Message, Provenance::Imported, said.text, last);
        draft.identity = Identity::Named(key);
        draft.session = Some(session.clone());
        draft.role = Some(said.role);
        draft.speaker = said.speaker;
        draft.work = work.work(said.written, said.likely, said.commits);
        drafts.push(draft);
    }
    let (now, random) = (engine.now(), || engine.random());
    let remembered =
        remember(store, scope, redactor, &Loaded::default(), drafts, now, random, |_| {}).await?;
    let receipt = &remembered.receipt;
    output.imported += receipt.count(Outcome::Stored);
    output.already_stored += receipt.count(Outcome::AlreadyStored) + receipt.count(Outcome::Conflict);
    output.forgotten += receipt.count(Outcome::Forgotten);
    output.pending += receipt.pending;
    for (rule, count) in remembered.redactions {
        tiro_redact::add(&mut output.redactions, &rule, count);
    }
    let title = conversation.origin.title.map(|title| redactor.redact(&title).text.into_owned());
    store.describe_session(scope, &session, Origin { title, ..conversation.origin }).await
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Imported {} from {}",
            counted(self.imported, "message", "messages"),
            counted(self.sessions, "conversation", "conversations")
        );
        for (count, what) in [
            (self.already_stored, "stored before"),
            (self.forgotten, "forgotten before and not stored again"),
            (self.left_out, "left out"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text.push('.');
        if !self.unread.is_empty() {
            text += &format!("\nNot read: {}.", humanize::some(&self.unread));
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
