//! Imports the sessions that a client keeps as transcripts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::clients::transcripts::{self, Line, Lines};
use crate::clients::{Client, Places};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::import::transcript::{About, Counts, Entry, Format, Transcript};
use crate::ingest::cursor::{Cursor, Kept};
use crate::ingest::link::{Place, Span, link_span};
use crate::ingest::pauses::{self, KeptOut};
use crate::ingest::pointer;
use crate::ingest::share::{self, Share, Visited, Whose};
use crate::memory::{Draft, FileWrite, Identity, Kind, LONGEST_TEXT, Millis, Provenance, Role, Work};
use crate::project::OpenProject;
use crate::redact;
use crate::remember::remember;
use crate::scope::SessionId;
use crate::store::{Origin, Outcome};
use crate::summaries::sessions;

pub use crate::ingest::imported::Imported;

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
/// How long an import goes on to make what sessions come down to; an idle server and `tiro index` do the rest.
const SUMMARISING: Duration = Duration::from_secs(1);

/// What `tiro import claude-code|codex|gemini` takes.
#[derive(Debug)]
pub struct Args {
    /// Whose sessions.
    pub client: Client,
    /// These transcripts; all of the project's if there are none.
    pub transcripts: Vec<PathBuf>,
    /// When to stop, leaving the rest to the next time; never if left out.
    pub patience: Option<Duration>,
}

/// Reads what is new in the project's transcripts and stores it; `progress` hears bytes done and all.
///
/// Can be interrupted and repeated: an entry has the same identity each time.
pub(crate) async fn import(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Imported> {
    let project = caller.begin_project(engine).await?;
    let began = Instant::now();
    let place = Place::of(project);
    let mut output = Imported::default();
    let is_named = !args.transcripts.is_empty();
    let found = find(engine, &place, args.client, args.transcripts)?;
    if found.is_empty() {
        output.notices.push(format!("no session of {} was held in this project", args.client.name()));
    }

    let all: u64 = found.iter().map(|each| each.bytes).sum();
    let mut done = 0;
    let mut span = Span::default();
    // One that was named is imported whole, wherever it was held.
    let whose = if is_named { Whose::Named } else { Whose::Found };
    for transcript in &found {
        let left = args.patience.map(|patience| patience.saturating_sub(began.elapsed()));
        let mut show = |read| progress(done + read, all);
        match follow(
            engine,
            caller,
            project,
            &place,
            (args.client, &transcript.path, whose),
            left,
            &mut output,
            &mut span,
            &mut show,
        )
        .await
        {
            Ok(()) => {}
            // The others are none the worse for it.
            Err(error) => output.failed.push(error.to_string()),
        }
        done += transcript.bytes;
        progress(done, all);
    }
    output.commits_linked = link_span(project, &place, &span, args.patience).await?;
    if output.imported > 0 {
        engine.wrote();
        let left = args.patience.map_or(SUMMARISING, |patience| patience.saturating_sub(began.elapsed()));
        sessions::work_off(engine, caller, left.min(SUMMARISING)).await?;
    }
    pointer::point(engine, project).await?;
    Ok(output)
}

/// Finds the transcripts that were named, else those of the project.
pub(crate) fn find(
    engine: &Engine,
    place: &Place,
    client: Client,
    named: Vec<PathBuf>,
) -> Result<Vec<transcripts::Found>> {
    if named.is_empty() {
        return Ok(transcripts::of_project(&places(engine)?, client, &place.roots()));
    }
    let found = named.into_iter().map(|path| {
        let bytes = transcripts::around(&path, 0, 0)?.0;
        Ok(transcripts::Found { path: path.canonicalize().unwrap_or(path), bytes })
    });
    found.collect()
}

/// Reads what is new in one transcript and stores it.
#[expect(clippy::too_many_arguments, reason = "where, what, until when, and three things to add to")]
pub(crate) async fn follow(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    place: &Place,
    (client, path, whose): (Client, &Path, Whose<'_>),
    patience: Option<Duration>,
    output: &mut Imported,
    span: &mut Span,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<()> {
    let began = Instant::now();
    output.transcripts += 1;
    let redactor = &project.redactor;
    let source = redactor.redact(&format!("transcript:{}", path.display())).text.into_owned();
    let (mut cursor, all) = Cursor::of(project, &source, path).await?;
    if cursor.at + cursor.looked >= all {
        return Ok(());
    }
    output.grown += 1;

    let mut reader = Transcript::new(format(client)?, cursor.about());
    let most = patience.map_or(u64::MAX, |_| STEP);
    let mut lines = Lines::resume(path, cursor.at, cursor.looked, most)?;
    let begins = cursor.at;
    let mut batch = Batch::default();
    let mut described = None;
    let mut share = Share::of(engine, caller, place, (client, path, whose));
    if let Some(share) = &mut share {
        share.resume(cursor.is_here);
    }
    let mut visited = Visited::new(engine, caller, place);
    // Of a session that was held elsewhere a turn is read from its beginning on.
    let mut turn = None;
    loop {
        let is_late = patience.is_some_and(|patience| began.elapsed() >= patience);
        let line = if is_late { None } else { lines.next_line()? };
        let is_last = line.is_none();
        let (at, mut said) = match line {
            Some((at, Line::Whole(bytes))) => (at, reader.line(at, bytes)),
            Some((at, Line::Cut(start, bytes))) => (at, reader.cut(at, start, bytes)),
            None => (begins, Vec::new()),
        };
        match &mut share {
            Some(share) => {
                turn = if said.iter().any(share::begins_turn) { Some(at) } else { turn };
                said = share.take(said);
            }
            None => visited.note(&said),
        }
        batch.take(at, said);
        let is_over = is_last && (is_late || lines.is_spent());
        if is_last && !is_over {
            let rest = reader.rest();
            let rest = match &mut share {
                Some(share) => share.take(rest),
                None => rest,
            };
            batch.take(lines.at().saturating_sub(1), rest);
        }
        if is_last || batch.said.len() >= BATCH || batch.bytes >= BATCH_BYTES {
            let said = std::mem::take(&mut batch).said;
            let about = reader.about().clone();
            store(
                engine,
                project,
                place,
                (client, path),
                &about,
                said,
                &mut cursor,
                output,
                span,
                &mut described,
            )
            .await?;
            turn = turn.filter(|turn| lines.at() - turn <= READ_AGAIN);
            let from = reader.open_from().into_iter().chain(turn).min();
            cursor.advance(from.unwrap_or(u64::MAX).min(lines.at()).max(cursor.at));
            cursor.looked = if from.is_none() { lines.looked() } else { 0 };
            // A turn that is read from its beginning on says so itself.
            cursor.is_here = turn.is_none() && share.as_ref().is_some_and(Share::is_here);
            cursor.keep(engine, project, &source, path, &reader).await?;
            progress(lines.at() - begins);
        }
        if is_last {
            // Half a line at the end is no work left: its rest is not written yet.
            let done = lines.at() + lines.looked();
            output.bytes_left += if is_over { all.saturating_sub(done) } else { 0 };
            break;
        }
    }
    output.bytes += lines.at() - begins;
    count(reader.counts(), output);
    if reader.open_from().is_some_and(|from| lines.at() + lines.looked() - from > WAITED) {
        // The call was broken off with its session, or the next step would begin where this one did.
        let about = reader.about().clone();
        let mut rest = reader.finish();
        if let Some(share) = &mut share {
            rest = share.take(rest);
        }
        let rest = rest.into_iter().map(|said| (lines.at().saturating_sub(1), said)).collect();
        let origin = &mut described;
        store(engine, project, place, (client, path), &about, rest, &mut cursor, output, span, origin)
            .await?;
        cursor.advance(lines.at());
        cursor.looked = lines.looked();
        cursor.is_here = share.as_ref().is_some_and(Share::is_here);
        cursor.keep(engine, project, &source, path, &reader).await?;
    }
    if matches!(whose, Whose::Hooked(_)) {
        visited.tell(engine, client, path);
    }
    Ok(())
}

#[derive(Default)]
struct Batch {
    /// With where the line begins that each ended with.
    said: Vec<(u64, Entry)>,
    bytes: usize,
}

impl Batch {
    fn take(&mut self, end: u64, said: Vec<Entry>) {
        self.bytes += said.iter().map(|said| said.text.len()).sum::<usize>();
        self.said.extend(said.into_iter().map(|said| (end, said)));
    }
}

fn count(counts: &Counts, output: &mut Imported) {
    output.unreadable += counts.unreadable + counts.cut;
    output.private += counts.private;
    for (kind, count) in &counts.unknown {
        redact::add(&mut output.unknown, kind, *count);
    }
}

/// Stores what was said, and where the session comes from the first time.
#[expect(clippy::too_many_arguments, reason = "where, what, and what to add to")]
async fn store(
    engine: &Engine,
    project: &OpenProject,
    place: &Place,
    (client, path): (Client, &Path),
    about: &About,
    said: Vec<(u64, Entry)>,
    cursor: &mut Cursor,
    output: &mut Imported,
    span: &mut Span,
    described: &mut Option<Origin>,
) -> Result<()> {
    if said.is_empty() {
        return Ok(());
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let session = SessionId::read(&project.redactor, "session", about.session.as_deref().unwrap_or(&stem))?;
    let pauses = KeptOut::of(engine, project);
    cursor.first = cursor.first.or_else(|| said.iter().find_map(|(_, said)| pauses::began(said)));
    let title = about.title.as_deref().filter(|_| !pauses.title(cursor.first, about.last));
    let work_tree = about.worktree.as_deref().and_then(|directory| place.work_tree(directory));
    let origin = Origin {
        client: Some(client.word().to_owned()),
        worktree: work_tree.as_ref().map(|root| root.to_string_lossy().into_owned()),
        title: title.map(|title| project.redactor.redact(title).text.into_owned()),
        aliases: about.aliases.iter().map(|alias| project.redactor.redact(alias).text.into_owned()).collect(),
    };
    let ignored = &engine.config().ignored;
    // A fork begins with a copy of what it was forked from, under the same ids.
    let ids = said.iter().map(|(_, said)| said.key.clone()).filter(|key| key.len() >= UNIQUE).collect();
    let copied = project.store.known_elsewhere(&project.scope, &session, ids).await?;
    let mut drafts = Vec::with_capacity(said.len());
    let mut kept = cursor.kept();
    for (end, said) in said {
        if copied.contains(&said.key) {
            output.already_stored += 1;
            continue;
        }
        let time = said.time.or(said.since).unwrap_or_else(|| engine.now());
        let size = said.text.len();
        let is_tool = said.role == Role::Tool;
        let is_too_much =
            kept.all + size > ALL_KEPT || (is_tool && kept.tools + size > TOOLS_KEPT) || size > LONGEST_TEXT;
        let files = said.files.iter().filter_map(|file| place.relative(file, said.worktree.as_deref()));
        let files: Vec<String> = files.map(|(file, _)| file).collect();
        let is_unwanted =
            pauses.said(&said, cursor.first) || ignored.session(session.as_str()) || ignored.any_path(&files);
        if is_unwanted || is_too_much {
            output.left_out += 1;
            output.too_much += usize::from(!is_unwanted);
            continue;
        }
        let more = Kept { all: size, tools: if is_tool { size } else { 0 } };
        kept.add(more);
        cursor.keeps(end, more);
        span.widen(time);
        let mut draft = draft(said, &session, time, files, place);
        draft.work.writes.retain(|write| !ignored.path(&write.path));
        drafts.push(draft);
    }
    // Reflogs expire; then the branch's last commit before is the likeliest.
    let unknown = drafts.iter_mut().filter(|draft| draft.head_sha.is_none() && draft.branch.is_some());
    let unknown: Vec<&mut Draft> = unknown.collect();
    let places = unknown.iter().map(|draft| (draft.branch.clone().unwrap_or_default(), draft.time)).collect();
    let found = project.store.commits_before(&project.scope, places).await?;
    for (draft, sha) in unknown.into_iter().zip(found) {
        draft.head_sha = sha;
    }
    let remembered = remember(
        &project.store,
        &project.scope,
        &project.redactor,
        None,
        drafts,
        engine.now(),
        || engine.random(),
        |_| {},
    )
    .await?;
    output.imported += remembered.receipt.count(Outcome::Stored);
    output.already_stored +=
        remembered.receipt.count(Outcome::AlreadyStored) + remembered.receipt.count(Outcome::Conflict);
    output.repeated += remembered.receipt.count(Outcome::Repeated);
    output.forgotten += remembered.receipt.count(Outcome::Forgotten);
    output.pending += remembered.receipt.pending;
    for (rule, count) in remembered.redactions {
        redact::add(&mut output.redactions, &rule, count);
    }
    if described.as_ref() != Some(&origin) {
        project.store.describe_session(&project.scope, &session, origin.clone()).await?;
        *described = Some(origin);
    }
    Ok(())
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

/// Returns where clients keep their files; errors where there is no home directory.
pub(crate) fn places(engine: &Engine) -> Result<Places> {
    engine.config().clients.clone().ok_or_else(|| {
        Error::bad_input("there is no home directory, so clients can't be found").hint("set HOME")
    })
}
