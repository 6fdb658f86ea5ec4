//! Reads a conversation for `tiro show`: its summary or its messages, and the commits to which it led.

use serde::Serialize;

use super::Args;
use super::brief::{Brief, briefs, escaped, line};
use crate::context::summarize_conversation::{self, Detail as Level};
use tiro_base::envelope;
use tiro_base::error::{self, Error, Result, quoted};
use tiro_base::memory::{Millis, marked};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_base::times;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::levels::Depth;
use tiro_host::summaries::messages;
use tiro_store::{About, MessageRow};

/// The most messages that are shown at once. Arbitrary: more than a person reads.
const MOST_MESSAGES: usize = 2000;

/// A conversation.
#[derive(Debug, Serialize)]
pub struct Conversation {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The session's name.
    pub session_id: String,
    /// The title that its client gave it, or the beginning of the user's first message.
    pub title: Option<String>,
    /// Its authors, if it has others than the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The client program in which the conversation took place.
    pub client: Option<String>,
    /// The branch that was last checked out in it.
    pub branch: Option<String>,
    /// The time of its first memory.
    pub first: String,
    /// The time of its last memory.
    pub last: String,
    /// The number of its messages.
    pub messages: usize,
    /// The tokens of these messages (o200k).
    pub tokens: usize,
    /// Its summary; `None` if its messages are shown.
    pub summary: Option<String>,
    /// The commits to which the conversation led, the latest first.
    pub commits: Vec<Brief>,
    /// Its messages, if `args` ask for them.
    pub said: Vec<Message>,
    /// Other remarks, each a sentence without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A message.
#[derive(Debug, Serialize)]
pub struct Message {
    /// Its number in the conversation.
    pub number: i64,
    /// Its id.
    pub id: String,
    /// The speaker's name or role.
    pub speaker: String,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was said, RFC 3339.
    pub time: String,
    /// Its text.
    pub text: String,
}

/// Reads the conversation `session`: its summary, or its messages if `args` ask for them.
///
/// Errors with [`BadInput`](error::Kind::BadInput) if `args` has arguments that only apply to a memory.
pub async fn read(
    engine: &Engine,
    caller: &WritingCaller,
    project: &OpenProject,
    session: &SessionId,
    args: &Args,
) -> Result<Conversation> {
    check(session, args)?;
    let rows = messages::range(project, session, (None, None), (None, None)).await;
    // A session without messages can still contain facts.
    let rows = match rows {
        Err(error) if error.kind() == error::Kind::NotFound => Vec::new(),
        rows => rows?,
    };
    let mut shown = about(project, session, &rows).await?;
    let is_part = args.from.is_some() || args.to.is_some();
    let level = match args.level {
        Some(Depth::Messages) => None,
        Some(Depth::Brief) => Some(Level::Brief),
        Some(Depth::Standard) => Some(Level::Standard),
        Some(Depth::Detailed) => Some(Level::Detailed),
        None if is_part => None,
        None => Some(Level::Brief),
    };
    if let Some(level) = level.filter(|_| !rows.is_empty()) {
        let args = summarize_conversation::Args {
            session_id: session.to_string(),
            level: Some(level),
            from: args.from,
            to: args.to,
            focus: args.focus.clone(),
            // `tiro show` sends nothing to a model.
            use_provider: Some(false),
            ..Default::default()
        };
        let made = summarize_conversation::run(engine, caller, args).await?;
        shown.summary = Some(made.summary);
        shown.notices.extend(made.notices);
        return Ok(shown);
    }
    if args.focus.is_some() {
        return Err(Error::bad_input("`focus` chooses what a summary is about, but this shows messages")
            .hint("leave it out, or choose a level: brief, standard or detailed"));
    }
    add_messages(project, rows, args, &mut shown).await?;
    Ok(shown)
}

/// Errors if `args` has an argument that only applies to a memory.
fn check(session: &SessionId, args: &Args) -> Result<()> {
    let of_memories = [
        ("collapse", args.collapse, "goes one level up from a message or a summary"),
        ("before", args.before.is_some(), "shows messages before a memory"),
        ("after", args.after.is_some(), "shows messages after a memory"),
        ("cursor", args.cursor.is_some(), "continues a long text"),
    ];
    if let Some((name, _, what)) = of_memories.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Error::bad_input(format!(
            "`{name}` {what}, but `{}` is a conversation",
            quoted(session.as_str())
        ))
        .hint("--from and --to choose messages of a conversation; SESSION#NUMBER opens one of them"));
    }
    Ok(())
}

/// Returns the conversation's properties and commits, without its summary and messages. `rows` are all its messages.
async fn about(project: &OpenProject, session: &SessionId, rows: &[MessageRow]) -> Result<Conversation> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let own = Scope { sessions: Sessions::Only(vec![session.clone()]), ..scope.clone() };
    let listed = store.sessions(&own, 0, 1).await?.pop();
    let About { title, client, .. } =
        store.about_sessions(scope, vec![session.clone()]).await?.pop().unwrap_or_default();
    let time = |time: Option<Millis>| times::show_time(time.unwrap_or_default());
    let commits = store.commits_of(scope, session).await?;
    let mut notices = Vec::new();
    let commits = briefs(store, scope, commits, "that it led to", &mut notices).await?;
    Ok(Conversation {
        caution: envelope::CAUTION,
        session_id: escaped(session.as_str()),
        title: title.as_deref().and_then(line),
        author: messages::others(rows, &scope.reader),
        client,
        branch: listed.as_ref().and_then(|row| row.branch.as_deref().map(escaped)),
        first: time(listed.as_ref().map(|row| row.first)),
        last: time(listed.as_ref().map(|row| row.last)),
        messages: rows.len(),
        tokens: rows.iter().map(|row| usize::try_from(row.tokens).unwrap_or(0)).sum(),
        summary: None,
        commits,
        said: Vec::new(),
        notices,
    })
}

/// Adds to `shown` the messages from `args.from` to `args.to`, at most [`MOST_MESSAGES`].
async fn add_messages(
    project: &OpenProject,
    mut rows: Vec<MessageRow>,
    args: &Args,
    shown: &mut Conversation,
) -> Result<()> {
    let is_within =
        |number: i64| args.from.is_none_or(|from| number >= from) && args.to.is_none_or(|to| number <= to);
    rows.retain(|row| is_within(row.ordinal));
    if let Some(next) = rows.get(MOST_MESSAGES) {
        shown
            .notices
            .push(format!("the conversation continues: `--from {}` shows the next messages", next.ordinal));
        rows.truncate(MOST_MESSAGES);
    }
    let texts = messages::texts(project, &rows).await?;
    shown.said = texts
        .into_iter()
        .map(|(row, text)| Message {
            number: row.ordinal,
            id: row.id.to_string(),
            speaker: escaped(row.speaker.as_deref().or(row.role.map(|role| role.as_str())).unwrap_or("?")),
            author: row.author.other_than(&project.scope.reader),
            time: times::show_time(row.time),
            text: escaped(&marked(text, row.is_damaged)),
        })
        .collect();
    Ok(())
}
