//! Shows a memory, a commit, a conversation, a summary or a quarter to a person.
//!
//! A memory is shown in the same way as by `expand_detail`. In addition, the memories that it refers to and those that
//! refer to it are shown, and for a commit, the conversations that led to it. A conversation is found by its name, the
//! beginning of its name, or its title.

mod brief;
mod conversation;
pub mod page;

use serde::Serialize;

use self::brief::{briefs, escaped};
use crate::memory::expand_detail::{self, Output as Detail};
use crate::memory::named;

use tiro_base::error::{self, Error, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::SessionId;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::levels::{self, Depth};
use tiro_recall::retrieve::query;

pub use self::brief::Brief;
pub use self::brief::line;
pub use self::conversation::Conversation;

/// The arguments of `tiro show`.
#[derive(Debug, Default)]
pub struct Args {
    /// An id, `SESSION#NUMBER`, the beginning of a commit's id, a session's name or title, or a quarter.
    pub id: String,
    /// The level of detail: for a conversation, its summary or its messages; for a summary, the level to open.
    pub level: Option<Depth>,
    /// Whether to open the level above `id` instead of `id`.
    pub collapse: bool,
    /// Limits a summary to this topic.
    pub focus: Option<String>,
    /// The number of messages to show before the opened one; 2 if `None`.
    pub before: Option<usize>,
    /// The number of messages to show after the opened one; 2 if `None`.
    pub after: Option<usize>,
    /// In a conversation, the number of the first message to show.
    pub from: Option<i64>,
    /// In a conversation, the number of the last message to show.
    pub to: Option<i64>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

/// The result of `tiro show`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Output {
    /// A memory, a commit, a summary or a quarter.
    Memory(Box<Opened>),
    /// A conversation.
    Session(Box<Conversation>),
}

/// A memory with its properties and references.
#[derive(Debug, Serialize)]
pub struct Opened {
    /// The answer of `expand_detail`.
    #[serde(flatten)]
    pub detail: Detail,
    /// Its title.
    pub title: Option<String>,
    /// The speaker of a message or the author of a commit.
    pub speaker: Option<String>,
    /// Its number in its conversation.
    pub number: Option<i64>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The file that it is about.
    pub path: Option<String>,
    /// Its tag.
    pub topic: Option<String>,
    /// Whether it was marked important.
    pub important: bool,
    /// Whether it belongs to the owner, and so to all projects.
    pub is_owners: bool,
    /// The memories that it replaced, the latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<Brief>,
    /// The memories that it refers to.
    pub refers_to: Vec<Brief>,
    /// The memories that refer to it.
    pub referred_to_by: Vec<Brief>,
}

/// Finds and reads the thing that `args.id` names. If `args.id` fits several things, a session with exactly this name
/// takes precedence, then an id, then a session whose name or title contains it.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if nothing has this name, and with
/// [`BadInput`](tiro_base::error::Kind::BadInput) if several sessions match it.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let project = caller.project(engine).await?;
    let text = args.id.trim();
    if text.is_empty() {
        return Err(Error::bad_input("`id` is empty").hint("give an id, a session's name or a commit"));
    }
    let (store, scope) = (project.store.as_ref(), &project.scope);
    if let Some(whole) = named::whole(&project, text).await? {
        return session(engine, caller, &project, &whole, &args).await;
    }
    if is_id(&project, text)? {
        match opened(engine, caller, &project, text, &args).await {
            // A title can look like a message's number: `Fix the crash of #2819`.
            Err(error) if error.kind() == error::Kind::NotFound => {
                let matching = named::sessions(&project, text).await?;
                let one = matching.only()?.ok_or(error)?;
                return session(engine, caller, &project, one, &args).await;
            }
            done => return done,
        }
    }
    if is_quarter(text) {
        let filter = Filter {
            kinds: Some(vec![Kind::Summary]),
            topic: Some(format!("quarter {text}")),
            ..Filter::default()
        };
        return match store.list(scope, &filter, None, 1).await?.pop() {
            Some(memory) => opened(engine, caller, &project, memory.id.as_str(), &args).await,
            None => Err(Error::not_found(format!("quarter {text} has no summary"))
                .hint("`tiro gc --quarters` summarises each quarter that is over")),
        };
    }
    match named::sessions(&project, text).await?.only()? {
        None => Err(Error::not_found(format!("nothing is called `{}`", quoted(text))).hint(
            "`tiro search` shows ids; `tiro sessions` shows the names and titles of conversations; to name \
             a commit, give seven digits or more of its id",
        )),
        Some(one) => session(engine, caller, &project, one, &args).await,
    }
}

async fn session(
    engine: &Engine,
    caller: &WritingCaller,
    project: &OpenProject,
    session: &SessionId,
    args: &Args,
) -> Result<Output> {
    let shown = conversation::read(engine, caller, project, session, args).await?;
    Ok(Output::Session(Box::new(shown)))
}

/// Returns whether `text` has the form of an id: of a memory, a message or a commit.
fn is_id(project: &OpenProject, text: &str) -> Result<bool> {
    let is_commit = matches!(query::commit_ids(text)[..], [name] if name == text);
    let is_place = levels::place(&project.redactor, "id", text)?.is_some();
    Ok(is_commit || is_place || MemoryId::read("id", text).is_ok())
}

/// Returns whether `text` is the name of a quarter: `2026-Q1`.
fn is_quarter(text: &str) -> bool {
    let [year @ .., b'-', b'Q', quarter] = text.as_bytes() else { return false };
    year.len() == 4 && year.iter().all(u8::is_ascii_digit) && (b'1'..=b'4').contains(quarter)
}

async fn opened(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    id: &str,
    args: &Args,
) -> Result<Output> {
    let of_conversations = [("from", args.from.is_some()), ("to", args.to.is_some())];
    if let Some((name, _)) = of_conversations.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::bad_input(format!(
            "`{name}` chooses messages of a conversation, but `{}` is not a conversation",
            quoted(id)
        ))
        .hint(
            "--before and --after show the messages around it; to show a conversation, give its name or title",
        ));
    }
    let args = expand_detail::Args {
        id: id.to_owned(),
        level: args.level,
        collapse: args.collapse,
        focus: args.focus.clone(),
        before: args.before,
        after: args.after,
        // A person gets an answer of the largest allowed budget.
        max_tokens: Some(expand_detail::MOST_TOKENS),
        cursor: args.cursor.clone(),
    };
    let detail = expand_detail::run(engine, caller, args).await?;
    let mut opened = Opened {
        detail,
        title: None,
        speaker: None,
        number: None,
        branch: None,
        path: None,
        topic: None,
        important: false,
        is_owners: false,
        supersedes: Vec::new(),
        refers_to: Vec::new(),
        referred_to_by: Vec::new(),
    };
    let Some((store, scope, memory)) =
        named::memory(engine, project, &MemoryId::read("id", &opened.detail.id)?).await?
    else {
        // A summary is not a memory, so it has no further properties.
        return Ok(Output::Memory(Box::new(opened)));
    };
    let refers_to = store.refers_to(&scope, memory.key).await?;
    let mut referred_to_by = store.references(&scope, memory.key).await?;
    referred_to_by.retain(|key| !refers_to.contains(key));
    let notices = &mut opened.detail.notices;
    opened.refers_to = briefs(store.as_ref(), &scope, refers_to, "that it refers to", notices).await?;
    opened.referred_to_by =
        briefs(store.as_ref(), &scope, referred_to_by, "that refer to it", notices).await?;
    let mut supersedes = store.supersedes(&scope, memory.key).await?;
    supersedes.reverse();
    opened.supersedes = briefs(store.as_ref(), &scope, supersedes, "that it replaced", notices).await?;
    let shown = |text: Option<String>| text.map(|text| escaped(&text));
    opened.speaker = shown(memory.speaker.or(memory.role.map(|role| role.to_string())));
    (opened.title, opened.branch, opened.path) =
        (shown(memory.title), shown(memory.branch), shown(memory.path));
    (opened.topic, opened.number) = (shown(memory.topic), memory.ordinal);
    (opened.important, opened.is_owners) = (memory.marked, scope.project != project.scope.project);
    Ok(Output::Memory(Box::new(opened)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_have_a_year_and_a_number() {
        assert!(is_quarter("2026-Q1") && is_quarter("1999-Q4"));
        for text in ["2026-Q0", "2026-Q5", "26-Q1", "2026-q1", "2026Q1", "", "-Q1"] {
            assert!(!is_quarter(text), "{text}");
        }
    }
}
