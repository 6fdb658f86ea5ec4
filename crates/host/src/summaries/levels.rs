//! Opens a summary for `expand_detail` step by step, down to its messages, and collapses messages into summaries.
//!
//! A range of messages has four depths: brief, standard, detailed, and the messages themselves. Opening goes one depth
//! down, towards the messages. Collapsing goes one depth up. A missing summary is made now and stored later. Collapsing
//! a message shows the summary of its segment.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::known::Known;
use crate::summaries::make::{self, Keeping};
use crate::summaries::wanted::Wanted;
use crate::summaries::{keep, messages, segments};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::{Kind, Level, Memory, MemoryId, MemoryKey, Provenance, Role, marked};
use tiro_base::scope::{AuthorId, Scope, SessionId, Visibility};
use tiro_capture::import;
use tiro_digest::summarize::{self, Source};
use tiro_intake::session_id;
use tiro_recall::retrieve::query;
use tiro_redact::Redactor;
use tiro_store::{MessageRow, Summary};

/// The maximum number of messages of a range that are shown. To see the other messages, the caller requests a shorter
/// range. Arbitrary: far more than anyone reads at once.
const MOST_MESSAGES: usize = 3000;

/// While the segment of a message isn't closed, this many messages before the message and after it are shown.
/// Arbitrary: together they are about as many as a segment has.
const BESIDE: i64 = 10;

/// How much of a range is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// The shortest summary.
    Brief,
    /// A summary of medium length.
    Standard,
    /// The longest summary.
    Detailed,
    /// The messages themselves, in full.
    Messages,
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level().map_or("messages", Level::as_str))
    }
}

impl Depth {
    fn level(self) -> Option<Level> {
        match self {
            Depth::Brief => Some(Level::Brief),
            Depth::Standard => Some(Level::Standard),
            Depth::Detailed => Some(Level::Detailed),
            Depth::Messages => None,
        }
    }

    /// Returns the depth of a summary of `level`.
    pub fn of(level: Level) -> Depth {
        match level {
            Level::Brief => Depth::Brief,
            Level::Standard => Depth::Standard,
            Level::Detailed => Depth::Detailed,
        }
    }

    /// Returns the next depth towards the messages.
    pub fn deeper(self) -> Depth {
        match self {
            Depth::Brief => Depth::Standard,
            Depth::Standard => Depth::Detailed,
            Depth::Detailed | Depth::Messages => Depth::Messages,
        }
    }

    fn shallower(self) -> Depth {
        match self {
            Depth::Messages => Depth::Detailed,
            Depth::Detailed => Depth::Standard,
            Depth::Standard | Depth::Brief => Depth::Brief,
        }
    }
}

/// The way in which a range is shown.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The requested depth, if there is one.
    pub level: Option<Depth>,
    /// Whether to go one depth up.
    pub collapse: bool,
    /// The topic to concentrate on; empty for everything.
    pub focus: String,
}

impl Walk {
    /// Returns whether the caller requests anything other than the full text.
    pub fn leads_away(&self) -> bool {
        self.level.is_some() || self.collapse || !self.focus.is_empty()
    }
}

/// Returns the session and the ordinal if `text` has the form `SESSION#ORDINAL`, otherwise `None`.
///
/// Errors if either part is invalid. The error names `argument`.
pub fn place(redactor: &Redactor, argument: &str, text: &str) -> Result<Option<(SessionId, i64)>> {
    let Some((name, ordinal)) = text.trim().rsplit_once('#') else { return Ok(None) };
    let Ok(ordinal) = ordinal.parse::<i64>() else { return Ok(None) };
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some((session_id(redactor, argument, name)?, ordinal)))
}

/// Returns the message with `ordinal` in the session, if there is one.
pub async fn message(project: &OpenProject, session: &SessionId, ordinal: i64) -> Result<Option<Memory>> {
    let found = project.store.surroundings(&project.scope, session, ordinal, 0, 0).await?;
    Ok(found.into_iter().find(|memory| memory.ordinal == Some(ordinal)))
}

/// Returns two lists. The first contains the ids of the memories to which `texts` refer, by id or as `SESSION#ORDINAL`.
/// The second contains each `SESSION#ORDINAL` for which there is no message.
pub async fn ids(
    engine: &Engine,
    caller: &Caller,
    argument: &str,
    texts: &[String],
) -> Result<(Vec<MemoryId>, Vec<String>)> {
    let redactor = &caller.project(engine).await?.redactor;
    let (mut ids, mut unknown) = (Vec::with_capacity(texts.len()), Vec::new());
    for text in texts {
        let Some((session, ordinal)) = place(redactor, argument, text)? else {
            ids.push(MemoryId::read(argument, text)?);
            continue;
        };
        match message(&*caller.project(engine).await?, &session, ordinal).await? {
            Some(memory) => ids.push(memory.id),
            None => unknown.push(quoted(format!("{session}#{ordinal}"))),
        }
    }
    Ok((ids, unknown))
}

/// Returns the messages that the summary with `id` covers, at the depth that `walk` requests. Returns `None` if there
/// is no such summary.
pub async fn summary(engine: &Engine, caller: &Caller, id: &MemoryId, walk: &Walk) -> Result<Option<Memory>> {
    let project = caller.project(engine).await?;
    let stored = project.store.summary(&project.scope, id).await?.map(|row| row.summary);
    let summary = match stored {
        Some(summary) => Some(summary),
        None => keep::left(caller, &project, id).await?,
    };
    let Some(Summary { session, level, first, last, text, .. }) = summary else { return Ok(None) };
    let at = Depth::of(level);
    let wanted = match walk {
        Walk { level: Some(level), .. } => *level,
        Walk { collapse: true, .. } => at.shallower(),
        Walk { focus, .. } if !focus.is_empty() => at,
        _ => at.deeper(),
    };
    let rows = make::range(&project, &session, (Some(first), Some(last)), (None, None)).await?;
    // The summary already has the requested depth.
    if wanted == at && walk.focus.is_empty() {
        return Ok(Some(shown(id.clone(), &project.scope, &session, &rows, wanted, &text)));
    }
    Ok(Some(at_depth(engine, caller, id.clone(), session, rows, wanted, &walk.focus).await?))
}

/// Returns the messages of `session` at the depth that `walk` requests. If it requests none, returns a short version.
pub async fn session(engine: &Engine, caller: &Caller, session: &SessionId, walk: &Walk) -> Result<Memory> {
    let project = caller.project(engine).await?;
    let rows = make::range(&project, session, (None, None), (None, None)).await?;
    let depth = walk.level.unwrap_or(Depth::Brief);
    at_depth(engine, caller, rows[0].id.clone(), session.clone(), rows, depth, &walk.focus).await
}

/// Returns the segment that contains the message `memory`, at the depth that `walk` requests. If `memory` is not a
/// message, returns it with its text shortened to that depth.
pub async fn around(engine: &Engine, caller: &Caller, memory: Memory, walk: &Walk) -> Result<Memory> {
    let project = caller.project(engine).await?;
    let depth = walk.level.unwrap_or(if walk.collapse { Depth::Detailed } else { Depth::Messages });
    let (Some(session), Some(ordinal)) = (memory.session.clone(), memory.ordinal) else {
        return in_short(&project, memory, depth, &walk.focus).await;
    };
    let segments::Closed { segments, waiting, .. } =
        segments::closed(&Known::unread(&project, &session)).await?;
    let segment = segments.iter().find(|segment| (segment.first..=segment.last).contains(&ordinal));
    let open = segments.last().map_or(0, |last| last.last + 1);
    let range = match segment {
        Some(segment) => (Some(segment.first), Some(segment.last)),
        // If the message is in no closed segment, the messages around it are used instead.
        None if waiting > 0 => (Some((ordinal - BESIDE).max(open)), Some(ordinal + BESIDE)),
        None => (Some(open), None),
    };
    let rows = make::range(&project, &session, range, (None, None)).await?;
    at_depth(engine, caller, memory.id, session, rows, depth, &walk.focus).await
}

/// Returns `memory`, which is not a message, with its text shortened to `depth`. If a model has written a summary of a
/// commit, this summary is the shortened text.
async fn in_short(project: &OpenProject, memory: Memory, depth: Depth, focus: &str) -> Result<Memory> {
    let Some(level) = depth.level() else { return Ok(memory) };
    if !speaks_of(focus, &memory.text) {
        return Err(nothing_of(focus));
    }
    if memory.kind == Kind::Commit && level != Level::Detailed && focus.is_empty() {
        let (store, scope) = (project.store.as_ref(), &project.scope);
        if let Some(id) = store.summary_of_commit(scope, &memory.id).await?
            && let Some(Memory { text, tokens, provenance, .. }) = store.memory(scope, &id).await?
        {
            return Ok(Memory { text, tokens, provenance, ..memory });
        }
    }
    let focus = focus.to_owned();
    messages::blocking(move || {
        // The reason for a commit is in its message, not in the list of changes.
        let text = match (memory.kind, level) {
            (Kind::Commit, Level::Brief | Level::Standard) => import::git::split(&memory.text).0,
            _ => &memory.text,
        };
        let source = Source {
            ordinal: 0,
            speaker: "",
            role: Role::Assistant,
            time: memory.time,
            text,
            corrected: &[],
        };
        let most = summarize::length(level, messages::count(text));
        let text = summarize::extract(&[source], level, most, &focus, &messages::count).text;
        Memory { tokens: messages::count(&text) as i64, text, ..memory }
    })
    .await
}

async fn at_depth(
    engine: &Engine,
    caller: &Caller,
    id: MemoryId,
    session: SessionId,
    rows: Vec<MessageRow>,
    depth: Depth,
    focus: &str,
) -> Result<Memory> {
    let project = caller.project(engine).await?;
    let texts = match depth == Depth::Messages || !focus.is_empty() {
        true => messages::texts(&project, &rows[..rows.len().min(MOST_MESSAGES)]).await?,
        false => Vec::new(),
    };
    if !focus.is_empty() && !texts.iter().any(|(_, text)| speaks_of(focus, text)) {
        return Err(nothing_of(focus));
    }
    if let Some(level) = depth.level() {
        let wanted = Wanted {
            session: session.clone(),
            rows: rows.clone(),
            level,
            max_tokens: None,
            focus: focus.to_owned(),
            by_model: false,
        };
        let made = make::make(engine, caller, &project, wanted, Keeping::Later).await?;
        let id = made.id.as_deref().and_then(MemoryId::parse).unwrap_or(id);
        return Ok(shown(id, &project.scope, &session, &rows, depth, &made.text));
    }
    let mut body = String::new();
    let sources = messages::sources(&texts);
    for (source, (row, text)) in sources.iter().zip(&texts).filter(|(_, (_, text))| speaks_of(focus, text)) {
        let line = format!("#{} {}: {}", source.ordinal, source.speaker, text.trim());
        body += &(marked(line, row.is_damaged) + "\n");
    }
    if rows.len() > MOST_MESSAGES {
        body += "(The range continues: summarize_conversation can summarise a part of it.)\n";
    }
    Ok(shown(id, &project.scope, &session, &rows, depth, &body))
}

/// Returns whether `text` contains a word of `focus`, or `focus` is empty.
fn speaks_of(focus: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    focus.is_empty() || query::terms(focus).iter().any(|word| text.contains(word.as_str()))
}

fn nothing_of(focus: &str) -> Error {
    Error::not_found(format!("it contains no word of `{}`", quoted(focus))).hint("leave `focus` out")
}

/// Returns a memory that shows a range at `depth`. Its first line states the depth and the range, and `text` follows.
/// The memory is made for the reader of the scope. Its author is that of the messages, or the names of several.
fn shown(
    id: MemoryId,
    scope: &Scope,
    session: &SessionId,
    rows: &[MessageRow],
    depth: Depth,
    text: &str,
) -> Memory {
    let (first, last) = (&rows[0], &rows[rows.len() - 1]);
    let text = format!("{depth} of #{} to #{}\n{}", first.ordinal, last.ordinal, text.trim_end());
    Memory {
        id,
        key: MemoryKey::NOT_STORED,
        kind: Kind::Summary,
        provenance: Provenance::lowest(rows.iter().map(|row| row.provenance)),
        author: messages::others(rows, &scope.reader).map_or(scope.reader.clone(), AuthorId::new),
        visibility: Visibility::Private,
        tokens: messages::count(&text) as i64,
        text,
        session: Some(session.clone()),
        ordinal: None,
        role: None,
        speaker: None,
        title: None,
        topic: None,
        source_id: None,
        path: None,
        branch: None,
        head_sha: None,
        time: last.time,
        importance: None,
        marked: false,
        indexed: None,
        is_damaged: false,
    }
}
