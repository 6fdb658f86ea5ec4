//! Reads one transcript from where it was left, and stores what is new in it.
//!
//! A reading goes in steps: some lines are read, what they say is stored, and the cursor moves behind them. A step that is
//! interrupted is repeated: an entry has the same identity each time.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::clients::Client;
use crate::clients::transcripts::{Line, Lines};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::import::transcript::{About, Entry, Format, Transcript};
use crate::ingest::cursor::{Cursor, Kept};
use crate::ingest::imported::Imported;
use crate::ingest::link::{Place, Span};
use crate::ingest::pauses::{self, KeptOut};
use crate::ingest::share::{self, Share, Visited, Whose};
use crate::memory::{Draft, FileWrite, Identity, Kind, LONGEST_TEXT, Millis, Provenance, Role, Work};
use crate::project::OpenProject;
use crate::remember::remember;
use crate::scope::SessionId;
use crate::store::Origin;

/// What is stored by one transaction: entries, and bytes of their texts.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// What is kept of one session: bytes of what tools printed, and of all. A session beyond it is a loop, not a talk.
const TOOLS_KEPT: usize = 4 * 1024 * 1024;
const ALL_KEPT: usize = 16 * 1024 * 1024;

/// The length from which a client's id is taken to name one entry in all sessions: UUIDs are longer, and so are the ids
/// of tool calls that the vendors' interfaces give (`toolu_` or `call_` and 24 letters).
const UNIQUE: usize = 24;

/// Bytes that may follow a call before it is no longer waited for.
const WAITED: u64 = 256 * 1024;

/// Bytes of a turn that are read again for what follows, of a session that was held elsewhere. Of a longer turn what was said
/// before anything was done in the project isn't known any more where something is. Arbitrary: most turns are shorter.
const READ_AGAIN: u64 = 1024 * 1024;

/// Bytes of a transcript that are looked at by a step that must come to an end: a line may have none.
const STEP: u64 = 64 * 1024 * 1024;

/// Imports transcripts into a project, and adds up what it did.
pub(crate) struct Importer<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    project: &'a OpenProject,
    /// Where the project lies.
    pub(crate) place: &'a Place,
    /// What was done so far.
    pub(crate) output: Imported,
    /// The times of the entries that were stored.
    pub(crate) span: Span,
}

/// The reading of one transcript.
struct Reading<'a> {
    client: Client,
    path: &'a Path,
    /// The name that the store has for the transcript.
    source: String,
    cursor: Cursor,
    reader: Transcript,
    /// Where the reading began, in bytes.
    begins: u64,
    /// What is read and not stored yet.
    batch: Batch,
    /// What belongs to the project, of a session that was held elsewhere.
    share: Option<Share<'a>>,
    /// The other repositories that the session worked in.
    visited: Visited<'a>,
    /// Where the turn begins that is read, of a session that was held elsewhere: the next reading begins there.
    turn: Option<u64>,
    /// The origin of the session as it is stored.
    described: Option<Origin>,
}

#[derive(Default)]
struct Batch {
    /// With where the line begins that each ended with.
    said: Vec<(u64, Entry)>,
    bytes: usize,
}

impl<'a> Importer<'a> {
    /// Returns an importer that has read nothing yet.
    pub(crate) fn new(
        engine: &'a Engine,
        caller: &'a Caller,
        project: &'a OpenProject,
        place: &'a Place,
    ) -> Importer<'a> {
        Importer { engine, caller, project, place, output: Imported::default(), span: Span::default() }
    }

    /// Reads what is new in one transcript, within `patience`, and stores it; `progress` gets the bytes read.
    pub(crate) async fn follow(
        &mut self,
        (client, path, whose): (Client, &Path, Whose<'_>),
        patience: Option<Duration>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<()> {
        let began = Instant::now();
        self.output.transcripts += 1;
        let source = format!("transcript:{}", path.display());
        let source = self.project.redactor.redact(&source).text.into_owned();
        let (cursor, all) = Cursor::of(self.project, &source, path).await?;
        if cursor.at + cursor.looked >= all {
            return Ok(());
        }
        self.output.grown += 1;

        let reader = Transcript::new(format(client)?, cursor.about());
        let most = patience.map_or(u64::MAX, |_| STEP);
        let mut lines = Lines::resume(path, cursor.at, cursor.looked, most)?;
        let share = Share::of(self.engine, self.caller, self.place, (client, path, whose));
        let visited = Visited::new(self.engine, self.caller, self.place);
        let mut reading = Reading::new((client, path), source, cursor, reader, share, visited);
        loop {
            let is_late = patience.is_some_and(|patience| began.elapsed() >= patience);
            let line = if is_late { None } else { lines.next_line()? };
            let is_last = line.is_none();
            if let Some((at, line)) = line {
                reading.take(at, line);
            }
            let is_over = is_last && (is_late || lines.is_spent());
            if is_last && !is_over {
                reading.take_rest(&lines);
            }
            if is_last || reading.batch.is_full() {
                self.store_batch(&mut reading, &lines).await?;
                progress(lines.at() - reading.begins);
            }
            if is_last {
                // Half a line at the end is no work left: its rest is not written yet.
                let done = lines.at() + lines.looked();
                self.output.bytes_left += if is_over { all.saturating_sub(done) } else { 0 };
                break;
            }
        }
        self.output.bytes += lines.at() - reading.begins;
        self.output.count_lines(reading.reader.counts());
        self.finish(&mut reading, &lines).await?;
        if matches!(whose, Whose::Hooked(_)) {
            reading.visited.tell(self.engine, client, path);
        }
        Ok(())
    }

    /// Stores what was read, and how far.
    async fn store_batch(&mut self, reading: &mut Reading<'_>, lines: &Lines) -> Result<()> {
        let said = std::mem::take(&mut reading.batch).said;
        let about = reading.reader.about().clone();
        self.store(reading, &about, said).await?;
        reading.turn = reading.turn.filter(|turn| lines.at() - turn <= READ_AGAIN);
        let from = reading.reader.open_from().into_iter().chain(reading.turn).min();
        let cursor = &mut reading.cursor;
        cursor.advance(from.unwrap_or(u64::MAX).min(lines.at()).max(cursor.at));
        cursor.looked = if from.is_none() { lines.looked() } else { 0 };
        // A turn that is read from its beginning on says so itself.
        cursor.is_here = reading.turn.is_none() && reading.share.as_ref().is_some_and(Share::is_here);
        reading.keep_cursor(self.engine, self.project).await
    }

    /// Stores calls without an answer that were waited for too long.
    async fn finish(&mut self, reading: &mut Reading<'_>, lines: &Lines) -> Result<()> {
        let end = lines.at() + lines.looked();
        if reading.reader.open_from().is_none_or(|from| end - from <= WAITED) {
            return Ok(());
        }
        // The call was broken off with its session, or the next step would begin where this one did.
        let about = reading.reader.about().clone();
        let mut rest = reading.reader.finish();
        if let Some(share) = &mut reading.share {
            rest = share.take(rest);
        }
        let rest = rest.into_iter().map(|said| (lines.at().saturating_sub(1), said)).collect();
        self.store(reading, &about, rest).await?;
        reading.cursor.advance(lines.at());
        reading.cursor.looked = lines.looked();
        reading.cursor.is_here = reading.share.as_ref().is_some_and(Share::is_here);
        reading.keep_cursor(self.engine, self.project).await
    }

    /// Stores what was said, and where the session comes from where that is new.
    async fn store(
        &mut self,
        reading: &mut Reading<'_>,
        about: &About,
        said: Vec<(u64, Entry)>,
    ) -> Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        let (store, scope) = (&self.project.store, &self.project.scope);
        let stem = reading.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = about.session.as_deref().unwrap_or(&stem);
        let session = SessionId::read(&self.project.redactor, "session", name)?;
        let pauses = KeptOut::of(self.engine, self.project);
        let cursor = &mut reading.cursor;
        cursor.first = cursor.first.or_else(|| said.iter().find_map(|(_, said)| pauses::began(said)));
        let origin = self.origin(reading, about, &pauses);
        // A fork begins with a copy of what it was forked from, under the same ids.
        let ids = said.iter().map(|(_, said)| said.key.clone()).filter(|key| key.len() >= UNIQUE).collect();
        let copied = store.known_elsewhere(scope, &session, ids).await?;
        let mut drafts = self.drafts(reading, &session, &pauses, said, &copied);
        self.find_heads(&mut drafts).await?;
        let now = self.engine.now();
        let random = || self.engine.random();
        let remembered =
            remember(store, scope, &self.project.redactor, None, drafts, now, random, |_| {}).await?;
        self.output.count_entries(remembered);
        if reading.described.as_ref() != Some(&origin) {
            store.describe_session(scope, &session, origin.clone()).await?;
            reading.described = Some(origin);
        }
        Ok(())
    }

    /// Returns where the session comes from.
    fn origin(&self, reading: &Reading<'_>, about: &About, pauses: &KeptOut) -> Origin {
        let redacted = |text: &str| self.project.redactor.redact(text).text.into_owned();
        let title = about.title.as_deref().filter(|_| !pauses.title(reading.cursor.first, about.last));
        let work_tree = about.worktree.as_deref().and_then(|directory| self.place.work_tree(directory));
        Origin {
            client: Some(reading.client.word().to_owned()),
            worktree: work_tree.as_ref().map(|root| root.to_string_lossy().into_owned()),
            title: title.map(redacted),
            aliases: about.aliases.iter().map(|alias| redacted(alias)).collect(),
        }
    }

    /// Returns what is to be stored of `said`, without the copies of entries of other sessions (`copied`), and counts what
    /// is left out.
    fn drafts(
        &mut self,
        reading: &mut Reading<'_>,
        session: &SessionId,
        pauses: &KeptOut,
        said: Vec<(u64, Entry)>,
        copied: &HashSet<String>,
    ) -> Vec<Draft> {
        let ignored = &self.engine.config().ignored;
        let cursor = &mut reading.cursor;
        let mut drafts = Vec::with_capacity(said.len());
        let mut kept = cursor.kept();
        for (end, said) in said {
            if copied.contains(&said.key) {
                self.output.already_stored += 1;
                continue;
            }
            let time = said.time.or(said.since).unwrap_or_else(|| self.engine.now());
            let files =
                said.files.iter().filter_map(|file| self.place.relative(file, said.worktree.as_deref()));
            let files: Vec<String> = files.map(|(file, _)| file).collect();
            let is_unwanted = pauses.said(&said, cursor.first)
                || ignored.session(session.as_str())
                || ignored.any_path(&files);
            let is_too_much = is_too_much(&said, kept);
            if is_unwanted || is_too_much {
                self.output.left_out += 1;
                self.output.too_much += usize::from(!is_unwanted);
                continue;
            }
            let size = said.text.len();
            let more = Kept { all: size, tools: if said.role == Role::Tool { size } else { 0 } };
            kept.add(more);
            cursor.keeps(end, more);
            self.span.widen(time);
            let mut draft = draft(said, session, time, files, self.place);
            draft.work.writes.retain(|write| !ignored.path(&write.path));
            drafts.push(draft);
        }
        drafts
    }

    /// Gives drafts without a commit the last one of their branch before them: reflogs expire, and it is the likeliest.
    async fn find_heads(&self, drafts: &mut [Draft]) -> Result<()> {
        let unknown = drafts.iter_mut().filter(|draft| draft.head_sha.is_none() && draft.branch.is_some());
        let unknown: Vec<&mut Draft> = unknown.collect();
        let places =
            unknown.iter().map(|draft| (draft.branch.clone().unwrap_or_default(), draft.time)).collect();
        let found = self.project.store.commits_before(&self.project.scope, places).await?;
        for (draft, sha) in unknown.into_iter().zip(found) {
            draft.head_sha = sha;
        }
        Ok(())
    }
}

impl<'a> Reading<'a> {
    fn new(
        (client, path): (Client, &'a Path),
        source: String,
        cursor: Cursor,
        reader: Transcript,
        mut share: Option<Share<'a>>,
        visited: Visited<'a>,
    ) -> Reading<'a> {
        if let Some(share) = &mut share {
            share.resume(cursor.is_here);
        }
        Reading {
            client,
            path,
            source,
            begins: cursor.at,
            cursor,
            reader,
            batch: Batch::default(),
            share,
            visited,
            turn: None,
            described: None,
        }
    }

    /// Takes what the line at `at` says, as far as it belongs to the project.
    fn take(&mut self, at: u64, line: Line<'_>) {
        let mut said = match line {
            Line::Whole(bytes) => self.reader.line(at, bytes),
            Line::Cut(start, bytes) => self.reader.cut(at, start, bytes),
        };
        match &mut self.share {
            Some(share) => {
                self.turn = if said.iter().any(share::begins_turn) { Some(at) } else { self.turn };
                said = share.take(said);
            }
            None => self.visited.note(&said),
        }
        self.batch.take(at, said);
    }

    /// Takes what the last line leaves open.
    fn take_rest(&mut self, lines: &Lines) {
        let mut rest = self.reader.rest();
        if let Some(share) = &mut self.share {
            rest = share.take(rest);
        }
        self.batch.take(lines.at().saturating_sub(1), rest);
    }

    /// Stores how far the transcript is read.
    async fn keep_cursor(&mut self, engine: &Engine, project: &OpenProject) -> Result<()> {
        self.cursor.keep(engine, project, &self.source, self.path, &self.reader).await
    }
}

impl Batch {
    fn take(&mut self, end: u64, said: Vec<Entry>) {
        self.bytes += said.iter().map(|said| said.text.len()).sum::<usize>();
        self.said.extend(said.into_iter().map(|said| (end, said)));
    }

    /// Whether it is as large as one transaction may be.
    fn is_full(&self) -> bool {
        self.said.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}

/// Whether an entry is longer than one may be, or than what is left of what may be kept of its session.
fn is_too_much(said: &Entry, kept: Kept) -> bool {
    let size = said.text.len();
    let is_tool = said.role == Role::Tool;
    kept.all + size > ALL_KEPT || (is_tool && kept.tools + size > TOOLS_KEPT) || size > LONGEST_TEXT
}

fn draft(said: Entry, session: &SessionId, time: Millis, files: Vec<String>, place: &Place) -> Draft {
    // A client writes its own summary down as if the user had said it.
    let role = if said.is_summary { Role::Assistant } else { said.role };
    let provenance = match role {
        _ if said.is_summary => Provenance::Derived,
        Role::User if said.is_subagent => Provenance::ModelSaid,
        Role::User => Provenance::UserSaid,
        Role::Assistant => Provenance::ModelSaid,
        Role::Tool => Provenance::ToolOutput,
        Role::System => Provenance::Imported,
    };
    let kind = if said.is_summary { Kind::Summary } else { Kind::Message };
    let mut draft = Draft::new(kind, provenance, said.text, time);
    draft.identity = match said.fingerprint {
        Some(fingerprint) => Identity::Named(format!("like:{fingerprint:016x}")),
        None => Identity::Named(format!("id:{}", said.key)),
    };
    draft.occurrence = said.fingerprint.map(|_| said.key.clone());
    draft.source_id = Some(said.key);
    draft.session = Some(session.clone());
    draft.role = Some(role);
    draft.speaker = match said.is_subagent {
        true => Some(said.speaker.map_or("sub-agent".to_owned(), |name| format!("sub-agent {name}"))),
        false => said.speaker,
    };
    let reflog = said.worktree.as_deref().and_then(|directory| place.work_tree(directory));
    let reflog = reflog.and_then(|root| place.reflogs.get(&root));
    draft.head_sha = reflog.and_then(|reflog| reflog.at(time)).map(|sha| sha.to_string());
    draft.branch = said.branch.filter(|branch| branch != "HEAD" && !branch.is_empty());
    draft.files = files;
    let directory = said.worktree.as_deref();
    let writes = said.written.into_iter().filter_map(|written| {
        let (path, root) = place.relative(&written.path, directory)?;
        Some(FileWrite { path, worktree: Some(root.to_string_lossy().into_owned()), lines: written.lines })
    });
    draft.work = Work {
        writes: writes.collect(),
        worktree: directory
            .and_then(|it| place.work_tree(it))
            .map(|root| root.to_string_lossy().into_owned()),
        ended: said.until,
        commits: said.commits,
    };
    draft
}

/// Returns how `client` writes its transcripts.
pub(crate) fn format(client: Client) -> Result<Format> {
    match client {
        Client::ClaudeCode => Ok(Format::ClaudeCode),
        Client::Codex => Ok(Format::Codex),
        Client::Gemini => Ok(Format::Gemini),
        Client::Git => Err(Error::bad_input("git keeps no transcripts").hint("use `tiro import git`")),
    }
}
