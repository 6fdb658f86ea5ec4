//! Reads one transcript from its cursor on, and stores the new entries.
//!
//! Reading is done in steps. Each step reads some lines, stores their entries, and moves the cursor behind these lines.
//! An interrupted step is repeated. That is harmless, because an entry gets the same id each time.

mod batch;
mod drafts;
pub mod forks;
pub mod prompts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clients::Client;
use crate::clients::transcripts::{self, Line, Lines};
use crate::follow::cursor::{Cursor, Kept};
use crate::follow::link::{Span, WorkTrees};
use crate::follow::pauses::{self, KeptOut};
use crate::follow::sessions::imported::Imported;
use crate::follow::share::{self, FoundBy, Share, Visited, Within};
use crate::import::transcript::{About, Format, Transcript, TranscriptEntry};
use crate::sources::{Sources, random};
use tiro_base::error::{Error, Result};
use tiro_base::memory::{Draft, Millis, Role};
use tiro_base::scope::SessionId;
use tiro_intake::prepare::{Prepared, prepare_all};
use tiro_intake::{Intake, session_id};
use tiro_redact::Redactor;
use tiro_store::{HEADLESS, Origin};

use self::batch::Batch;
use self::drafts::{draft, is_too_much};
use self::forks::{Divided, Originals};

/// The minimum length of a client's id that counts as unique across sessions, in bytes. UUIDs are longer, and so are
/// the ids of tool calls in the vendors' interfaces (`toolu_` or `call_`, followed by 16 or more letters).
const UNIQUE: usize = 20;

/// The number of bytes after a tool call for which Tiro waits for the result of the call.
const WAITED: u64 = 256 * 1024;

/// The longest time that a tool call can take, in milliseconds: a day. If a call is older, its session has ended.
const LONGEST_CALL: Millis = 24 * 60 * 60 * 1000;

/// The maximum number of bytes of an unfinished turn that the next step reads again, if the session runs in another
/// project. In a longer turn, messages before the first action in this project can be lost. Arbitrary: most turns are
/// shorter.
const READ_AGAIN: u64 = 1024 * 1024;

/// The maximum number of bytes of a transcript that one reading with a time limit reads. The time is checked only
/// between lines, and a line may be endless.
const STEP: u64 = 64 * 1024 * 1024;

/// Imports transcripts into a project and adds up the results.
pub struct Importer<'a> {
    sources: &'a Sources,
    intake: &'a dyn Intake,
    /// The project's work trees and reflogs.
    pub work_trees: &'a WorkTrees,
    /// Roots of other projects, also of those that no longer exist.
    pub others: &'a [PathBuf],
    /// The sums so far.
    pub output: Imported,
    /// The times of the first and the last entry that was stored.
    pub span: Span,
    /// The own ids of all copies that were read so far from forked sessions.
    copies: HashSet<String>,
}

/// The reading of one transcript.
struct Reading<'a> {
    client: Client,
    path: &'a Path,
    /// The redacted name under which the cursor of the transcript is stored.
    source: String,
    cursor: Cursor,
    reader: Transcript,
    /// The offset in bytes where this reading began.
    begins: u64,
    /// Entries that are read and not stored yet.
    batch: Batch,
    /// Chooses the part of the session that belongs to this project. `None` if the whole session belongs to the
    /// project.
    share: Option<Share<'a>>,
    /// The other repositories that the session worked in.
    visited: Visited<'a>,
    /// The offset at which the current turn begins. The next reading starts there, to read the turn again. Used only
    /// for a session that runs in another project.
    turn: Option<u64>,
    /// The origin of the session, as it was stored last.
    described: Option<Origin>,
    /// The stored content of the sessions from which this session copies entries.
    originals: Originals,
    /// Whether messages that the client has compacted are stashed. This is so if a hook reported the transcript.
    stashes: bool,
}

impl<'a> Importer<'a> {
    /// Returns an importer with empty sums.
    pub fn new(sources: &'a Sources, intake: &'a dyn Intake, work_trees: &'a WorkTrees) -> Importer<'a> {
        let (output, span) = (Imported::default(), Span::default());
        Importer { sources, intake, work_trees, others: &[], output, span, copies: HashSet::new() }
    }

    /// Reads the new lines of one transcript for at most `patience`, and stores their entries. `progress` is called
    /// with the number of bytes read so far.
    pub async fn follow(
        &mut self,
        (client, path, found_by): (Client, &Path, FoundBy<'_>),
        patience: Option<Duration>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<()> {
        let began = Instant::now();
        self.output.transcripts += 1;
        if transcripts::is_copy(path) {
            return Ok(());
        }
        let source = self.source(path);
        let (cursor, all) = Cursor::of(self.intake, &source, path).await?;
        if cursor.done() >= all {
            if !cursor.is_packed_anew {
                return Ok(());
            }
            // If the compressed file is damaged, perhaps nothing more can be read.
            let mut lines = Lines::open(path, all)?;
            while lines.next_line()?.is_some() {}
            self.output.count_end(path, lines.end());
            return cursor.write(self.redacting(), &source).await;
        }
        self.output.grown += 1;

        let reader = Transcript::new(format(client)?, cursor.about());
        let most = patience.map_or(u64::MAX, |_| STEP);
        let mut lines = Lines::resume(path, cursor.at, cursor.looked, most)?;
        let within = Within::new(self.sources, self.work_trees, self.others);
        let began_in = transcripts::directory_of(client, path);
        let share = Share::of(within, (client, path, found_by), began_in);
        let visited = Visited::new(self.sources, self.work_trees);
        let mut reading = Reading::new((client, path), source, cursor, reader, share, visited);
        reading.stashes = matches!(found_by, FoundBy::Hook(_));
        reading.originals.copies = std::mem::take(&mut self.copies);
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
                // The beginning of an incomplete last line counts as read, because the rest of the line is not written
                // yet.
                let done = lines.at() + lines.looked();
                self.output.bytes_left += if is_over { all.saturating_sub(done) } else { 0 };
                break;
            }
        }
        self.output.bytes += lines.at() - reading.begins;
        self.output.count_lines(reading.reader.counts());
        self.output.count_end(path, lines.end());
        self.finish(&mut reading, &lines, patience.is_none()).await?;
        self.copies = std::mem::take(&mut reading.originals.copies);
        if matches!(found_by, FoundBy::Hook(_)) {
            reading.visited.tell(client, path);
        }
        Ok(())
    }

    /// Returns the name under which the cursor of the transcript is stored.
    pub fn source(&self, path: &Path) -> String {
        Cursor::source(&self.sources.redactor, path)
    }

    fn redacting(&self) -> (&Redactor, &dyn Intake) {
        (&self.sources.redactor, self.intake)
    }

    /// Stores the batch, then the cursor.
    async fn store_batch(&mut self, reading: &mut Reading<'_>, lines: &Lines) -> Result<()> {
        let Batch { said, compacted, .. } = std::mem::take(&mut reading.batch);
        let about = reading.reader.about().clone();
        let compacted = compacted.filter(|_| reading.stashes).map(|count| {
            let rest = said[count..].iter().map(|(_, entry)| entry.key.clone());
            rest.collect::<Vec<String>>()
        });
        self.store(reading, &about, said).await?;
        if let Some(rest) = compacted {
            let session = self.session(reading.path, &about)?;
            self.intake.stash_compacted(&session, &rest).await?;
        }
        reading.turn = reading.turn.filter(|turn| lines.at() - turn <= READ_AGAIN);
        let from = reading.reader.open_from().into_iter().chain(reading.turn).min();
        let cursor = &mut reading.cursor;
        cursor.advance(from.unwrap_or(u64::MAX).min(lines.at()).max(cursor.at));
        cursor.looked = if from.is_none() { lines.looked() } else { 0 };
        cursor.seen = lines.at() + lines.looked();
        // If the turn will be read again from its beginning, the next reading finds out for itself whether the turn
        // acted here.
        cursor.is_here = reading.turn.is_none() && reading.share.as_ref().is_some_and(Share::is_here);
        reading.keep_cursor(self.redacting()).await
    }

    /// Stores the tool calls whose results Tiro no longer waits for. An import doesn't wait for the results in old
    /// sessions.
    async fn finish(&mut self, reading: &mut Reading<'_>, lines: &Lines, is_import: bool) -> Result<()> {
        let end = lines.at() + lines.looked();
        let is_old = reading.reader.about().last.is_some_and(|last| self.sources.now() - last > LONGEST_CALL);
        let Some(from) = reading.reader.open_from() else { return Ok(()) };
        if end - from <= WAITED && !(is_import && is_old) {
            return Ok(());
        }
        // The session probably ended during the call. If the call were not stored now, every later reading would have
        // to begin at this call.
        let about = reading.reader.about().clone();
        let mut rest = reading.reader.finish();
        if let Some(share) = &mut reading.share {
            rest = share.take(rest);
        }
        let rest = rest.into_iter().map(|said| (lines.at().saturating_sub(1), said)).collect();
        self.store(reading, &about, rest).await?;
        reading.cursor.advance(lines.at());
        (reading.cursor.looked, reading.cursor.seen) = (lines.looked(), lines.at() + lines.looked());
        reading.cursor.is_here = reading.share.as_ref().is_some_and(Share::is_here);
        reading.keep_cursor(self.redacting()).await
    }

    /// Stores entries, and the origin of the session if it changed.
    async fn store(
        &mut self,
        reading: &mut Reading<'_>,
        about: &About,
        said: Vec<(u64, TranscriptEntry)>,
    ) -> Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        if about.is_headless && self.sources.machine.ignored.headless {
            self.output.left_out += said.len();
            self.output.headless += said.len();
            return Ok(());
        }
        let session = self.session(reading.path, about)?;
        let pauses = KeptOut::of(self.sources);
        let cursor = &mut reading.cursor;
        cursor.first = cursor.first.or_else(|| said.iter().find_map(|(_, said)| pauses::began(said)));
        let origin = self.origin(reading, about, &pauses);
        // A forked session begins with copies of the entries of the original session, which have the same ids.
        let ids = said.iter().map(|(_, said)| said.key.clone()).filter(|key| key.len() >= UNIQUE).collect();
        let copied = self.intake.known_elsewhere(&session, ids).await?;
        reading.originals.load(self.redacting(), &session, about, &said).await?;
        let read = (&session, about, &mut reading.cursor.prefix);
        let Divided { own, copies, stored } =
            reading.originals.divide(&self.sources.redactor, read, said, &copied);
        self.output.already_stored += stored;
        let mut drafts = self.drafts(reading, &session, &pauses, own);
        for (name, said) in copies {
            let original = session_id(&self.sources.redactor, "session", &name)?;
            drafts.extend(self.drafts(reading, &original, &pauses, said));
            let (client, worktree) = (origin.client.clone(), origin.worktree.clone());
            let origin = Origin { client, worktree, ..Origin::default() };
            self.intake.describe_session(&original, origin).await?;
        }
        self.find_heads(&mut drafts).await?;
        let Prepared { memories, redactions } = prepare_all(&self.sources.redactor, drafts, &mut random);
        self.output.count_entries(&self.intake.remember(memories).await?, redactions);
        if reading.described.as_ref() != Some(&origin) {
            self.intake.describe_session(&session, origin.clone()).await?;
            reading.described = Some(origin);
        }
        Ok(())
    }

    /// Returns the session of the transcript `path`.
    fn session(&self, path: &Path, about: &About) -> Result<SessionId> {
        let plain = transcripts::plain(path);
        let stem = plain.file_stem().unwrap_or_default().to_string_lossy();
        let name = about.session.as_deref().unwrap_or(&stem);
        session_id(&self.sources.redactor, "session", name)
    }

    /// Returns the origin of the session: its client, work tree, title and other ids.
    fn origin(&self, reading: &Reading<'_>, about: &About, pauses: &KeptOut) -> Origin {
        let redacted = |text: &str| self.sources.redactor.redact(text).text.into_owned();
        let title = about.title.as_deref().filter(|_| !pauses.title(reading.cursor.first, about.last));
        let work_tree = about.worktree.as_deref().and_then(|directory| self.work_trees.work_tree(directory));
        Origin {
            client: Some(match about.is_headless {
                true => format!("{}{HEADLESS}", reading.client.word()),
                false => reading.client.word().to_owned(),
            }),
            worktree: work_tree.as_ref().map(|root| root.to_string_lossy().into_owned()),
            title: title.map(redacted),
            aliases: about.aliases.iter().map(|alias| redacted(alias)).collect(),
            visibility: None,
        }
    }

    /// Returns drafts for the entries `said`, and counts the entries that are left out.
    fn drafts(
        &mut self,
        reading: &mut Reading<'_>,
        session: &SessionId,
        pauses: &KeptOut,
        said: Vec<(u64, TranscriptEntry)>,
    ) -> Vec<Draft> {
        let ignored = &self.sources.machine.ignored;
        let cursor = &mut reading.cursor;
        let mut drafts = Vec::with_capacity(said.len());
        let mut kept = cursor.kept();
        for (end, said) in said {
            let time = said.time.or(said.since).unwrap_or_else(|| self.sources.now());
            let files =
                said.files.iter().filter_map(|file| self.work_trees.relative(file, said.worktree.as_deref()));
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
            let mut draft = draft(said, session, time, files, self.work_trees);
            draft.work.writes.retain(|write| !ignored.path(&write.path));
            drafts.push(draft);
        }
        drafts
    }

    /// Gives each draft without a commit the last commit that was made on its branch before the draft's time. Once
    /// reflogs have expired, this commit is the likeliest one.
    async fn find_heads(&self, drafts: &mut [Draft]) -> Result<()> {
        let unknown = drafts.iter_mut().filter(|draft| draft.head_sha.is_none() && draft.branch.is_some());
        let unknown: Vec<&mut Draft> = unknown.collect();
        let places =
            unknown.iter().map(|draft| (draft.branch.clone().unwrap_or_default(), draft.time)).collect();
        let found = self.intake.commits_before(places).await?;
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
            originals: Originals::default(),
            stashes: false,
        }
    }

    /// Reads the line at the offset `at`, and adds the entries that it completes and that belong to the project.
    fn take(&mut self, at: u64, line: Line<'_>) {
        let compactions = self.reader.counts().compactions;
        let mut said = match line {
            Line::Whole(bytes) => self.reader.line(at, bytes),
            Line::Cut(start, bytes) => self.reader.cut(at, start, bytes),
        };
        let is_held_here = self.share.as_ref().is_none_or(Share::is_held_here);
        if is_held_here {
            self.visited.note(&said);
        } else if said.iter().any(share::begins_turn) {
            self.turn = Some(at);
        }
        if let Some(share) = &mut self.share {
            said = share.take(said);
        }
        if self.reader.counts().compactions > compactions {
            self.batch.compacted = Some(self.batch.said.len());
        }
        self.batch.take(at, said);
    }

    /// Adds the entries that were held back until the end of the file.
    fn take_rest(&mut self, lines: &Lines) {
        let mut rest = self.reader.rest();
        if let Some(share) = &mut self.share {
            rest = share.take(rest);
        }
        self.batch.take(lines.at().saturating_sub(1), rest);
    }

    /// Stores the cursor.
    async fn keep_cursor(&mut self, to: (&Redactor, &dyn Intake)) -> Result<()> {
        self.cursor.keep(to, &self.source, self.path, &self.reader).await
    }
}

/// Returns the transcript format of `client`. Fails for git and for clients that get only the server.
pub fn format(client: Client) -> Result<Format> {
    match client {
        Client::ClaudeCode => Ok(Format::ClaudeCode),
        Client::Codex => Ok(Format::Codex),
        Client::Gemini => Ok(Format::Gemini),
        Client::Qwen => Ok(Format::Qwen),
        Client::Copilot => Ok(Format::Copilot),
        Client::Opencode => Ok(Format::Opencode),
        Client::Git => Err(Error::bad_input("git keeps no transcripts").hint("use `tiro import git`")),
        Client::Mcp(client) => {
            Err(Error::bad_input(format!("Tiro reads no transcripts of {}", client.name())))
        }
    }
}
