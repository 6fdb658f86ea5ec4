//! Shows whatever has a name to a person: a memory, a commit, a conversation, a summary, a quarter.
//!
//! What has an id is opened as `expand_detail` opens it, with what a person asks next beside it: what it refers to, what
//! refers to it, and the conversations behind a commit. A conversation is named by its name, its beginning or its title.

use serde::Serialize;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::envelope;
use crate::error::{self, Error, Result, quoted};
use crate::filter::Filter;
use crate::humanize::{self, counted};
use crate::memory::{Kind, Memory, MemoryId, MemoryKey, Millis};
use crate::project::OpenProject;
use crate::retrieve::query;
use crate::scope::{Scope, SessionId};
use crate::store::{About, Store};
use crate::summaries::levels::{self, Depth};
use crate::summaries::messages;
use crate::times;
use crate::tools::context::summarize_conversation::{self, Detail as Level};
use crate::tools::memory::expand_detail::{self, Output as Detail};

/// Messages that are shown at most at once. Arbitrary: more than anybody reads.
const MOST_MESSAGES: usize = 2000;

/// Memories and commits that are listed beside something at most.
const MOST_BESIDE: usize = 20;

/// Sessions that a name that fits several is said to fit, at most.
const MOST_NAMED: usize = 6;

/// Bytes of the line that names a memory.
const LINE: usize = 160;

/// What is to be shown, and how.
#[derive(Debug, Default)]
pub struct Args {
    /// An id, `SESSION#NUMBER`, the beginning of a commit's id, a session's name or title, or a quarter.
    pub id: String,
    /// How much is shown of a conversation, or of a memory.
    pub level: Option<Depth>,
    /// One level up.
    pub collapse: bool,
    /// Only what has to do with this topic.
    pub focus: Option<String>,
    /// Messages before it, 2 if left out.
    pub before: Option<usize>,
    /// Messages after it, 2 if left out.
    pub after: Option<usize>,
    /// The first message of a conversation.
    pub from: Option<i64>,
    /// The last message of a conversation.
    pub to: Option<i64>,
    /// Where the answer before said that it goes on.
    pub cursor: Option<String>,
}

/// What is shown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Output {
    /// A memory, a commit, a summary or a quarter.
    Memory(Box<Opened>),
    /// A conversation.
    Session(Box<Conversation>),
}

/// A memory and what stands beside it.
#[derive(Debug, Serialize)]
pub struct Opened {
    /// What `expand_detail` answers.
    #[serde(flatten)]
    pub detail: Detail,
    /// The line that names it.
    pub title: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// Its place in its conversation.
    pub number: Option<i64>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The file it speaks of.
    pub path: Option<String>,
    /// Its tag.
    pub topic: Option<String>,
    /// Whether it was marked important.
    pub important: bool,
    /// Whether it belongs to all projects.
    pub is_owners: bool,
    /// What it refers to.
    pub refers_to: Vec<Brief>,
    /// What refers to it.
    pub referred_to_by: Vec<Brief>,
}

/// A memory in a line.
#[derive(Debug, Serialize)]
pub struct Brief {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: String,
    /// The commit's id, or the client's id of a message.
    pub source_id: Option<String>,
    /// When it was made.
    pub time: String,
    /// How it begins.
    pub line: String,
}

/// A conversation.
#[derive(Debug, Serialize)]
pub struct Conversation {
    /// How to take what is quoted.
    pub caution: &'static str,
    /// Its name.
    pub session_id: String,
    /// What it is about.
    pub title: Option<String>,
    /// The program it was held in.
    pub client: Option<String>,
    /// The branch it was last seen on.
    pub branch: Option<String>,
    /// The time of its first memory.
    pub first: String,
    /// The time of its last memory.
    pub last: String,
    /// Its messages.
    pub messages: usize,
    /// Their tokens (o200k).
    pub tokens: usize,
    /// The conversation in short; absent where it has no summary and its messages are shown.
    pub summary: Option<String>,
    /// The commits it led to, the latest first.
    pub commits: Vec<Brief>,
    /// Its messages, where they are asked for.
    pub said: Vec<Said>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A message.
#[derive(Debug, Serialize)]
pub struct Said {
    /// Its place in the conversation.
    pub number: i64,
    /// Its id.
    pub id: String,
    /// Who spoke.
    pub speaker: String,
    /// When.
    pub time: String,
    /// What was said.
    pub text: String,
}

/// Finds what is meant and reads what is shown of it.
///
/// Errors with [`NotFound`](crate::error::Kind::NotFound) where nothing is called so, and with
/// [`BadInput`](crate::error::Kind::BadInput) where several are.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let project = caller.project(engine).await?;
    let text = args.id.trim();
    if text.is_empty() {
        return Err(Error::bad_input("`id` is empty").hint("give an id, a session's name or a commit"));
    }
    let (store, scope) = (&project.store, &project.scope);
    let name = project.redactor.redact(text).text.into_owned();
    let called = store.sessions_called(scope, &name, MOST_NAMED).await?;
    let is_whole_name = called.first().is_some_and(|session| session.as_str() == name);
    if is_whole_name {
        return conversation(engine, caller, project, called[0].clone(), &args).await;
    }
    if is_id(project, text)? {
        match opened(engine, caller, project, text, &args).await {
            // A title may look like the place of a message: `Fix the crash of #2819`.
            Err(error) if error.kind() == error::Kind::NotFound && !called.is_empty() => {}
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
            Some(memory) => opened(engine, caller, project, memory.id.as_str(), &args).await,
            None => Err(Error::not_found(format!("{text} is not summed up"))
                .hint("`tiro gc --quarters` sums up each quarter that is over")),
        };
    }
    match &called[..] {
        [] => Err(Error::not_found(format!("nothing is called `{}`", quoted(text))).hint(
            "`tiro search` shows ids; `tiro sessions` the names and titles of conversations; a commit goes by seven \
             digits or more of its id",
        )),
        [one] => conversation(engine, caller, project, one.clone(), &args).await,
        several => {
            let names: Vec<String> = several.iter().map(SessionId::to_string).collect();
            let more = if several.len() == MOST_NAMED { " and maybe more" } else { "" };
            Err(Error::bad_input(format!("`{}` names {}{more}", quoted(text), humanize::some(&names)))
                .hint("give more of the name"))
        }
    }
}

/// Tells whether `text` is the id of something: of a memory, a message or a commit.
fn is_id(project: &OpenProject, text: &str) -> Result<bool> {
    let is_commit = matches!(query::commit_ids(text)[..], [name] if name == text);
    let is_place = levels::place(&project.redactor, "id", text)?.is_some();
    Ok(is_commit || is_place || MemoryId::read("id", text).is_ok())
}

/// Tells whether `text` is the name of a quarter: `2026-Q1`.
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
            "`{name}` chooses messages of a conversation, and `{}` is none",
            quoted(id)
        ))
        .hint(
            "--before and --after show the messages around one; a conversation goes by its name or title",
        ));
    }
    let args = expand_detail::Args {
        id: id.to_owned(),
        level: args.level,
        collapse: args.collapse,
        focus: args.focus.clone(),
        before: args.before,
        after: args.after,
        // A person reads as much as there is.
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
        refers_to: Vec::new(),
        referred_to_by: Vec::new(),
    };
    let Some((store, scope, memory)) = find(engine, project, &opened.detail.id).await? else {
        // A summary is no memory: all there is to know of it stands in the answer.
        return Ok(Output::Memory(Box::new(opened)));
    };
    let refers_to = store.refers_to(scope, memory.seq).await?;
    let mut referred_to_by = store.references(scope, memory.seq).await?;
    referred_to_by.retain(|seq| !refers_to.contains(seq));
    let notices = &mut opened.detail.notices;
    opened.refers_to = briefs(store, scope, refers_to, "that it refers to", notices).await?;
    opened.referred_to_by = briefs(store, scope, referred_to_by, "that refer to it", notices).await?;
    let shown = |text: Option<String>| text.map(|text| escaped(&text));
    opened.speaker = shown(memory.speaker.or(memory.role.map(|role| role.to_string())));
    (opened.title, opened.branch, opened.path) =
        (shown(memory.title), shown(memory.branch), shown(memory.path));
    (opened.topic, opened.number) = (shown(memory.topic), memory.ordinal);
    (opened.important, opened.is_owners) = (memory.marked, !std::ptr::eq(store, &project.store));
    Ok(Output::Memory(Box::new(opened)))
}

/// Returns the memory called `id` with the store it is in; `None` where none is.
async fn find<'e>(
    engine: &'e Engine,
    project: &'e OpenProject,
    id: &str,
) -> Result<Option<(&'e Store, &'e Scope, Memory)>> {
    let id = MemoryId::read("id", id)?;
    let owners = &engine.installation().await?.registry;
    for (store, scope) in [(&project.store, &project.scope), (owners.memories(), owners.scope())] {
        if let Some(memory) = store.memory(scope, &id).await? {
            return Ok(Some((store, scope, memory)));
        }
    }
    Ok(None)
}

/// Returns the first of some memories in a line each; a notice says how many `which` are left out.
async fn briefs(
    store: &Store,
    scope: &Scope,
    mut seqs: Vec<MemoryKey>,
    which: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Brief>> {
    let left_out = seqs.len().saturating_sub(MOST_BESIDE);
    if left_out > 0 {
        notices.push(format!(
            "{} {which} left out: {MOST_BESIDE} are listed at most",
            counted(left_out, "memory", "memories")
        ));
    }
    seqs.truncate(MOST_BESIDE);
    Ok(store.memories(scope, seqs).await?.into_iter().map(brief).collect())
}

fn brief(memory: Memory) -> Brief {
    Brief {
        id: memory.id.to_string(),
        kind: memory.kind.to_string(),
        source_id: memory.source_id.as_deref().map(escaped),
        time: times::show_time(memory.time),
        line: memory.title.as_deref().and_then(line).or_else(|| line(&memory.text)).unwrap_or_default(),
    }
}

async fn conversation(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    session: SessionId,
    args: &Args,
) -> Result<Output> {
    let of_memories = [
        ("collapse", args.collapse, "goes one level up from a message or a summary"),
        ("before", args.before.is_some(), "shows messages before one"),
        ("after", args.after.is_some(), "shows messages after one"),
        ("cursor", args.cursor.is_some(), "goes on with a long text"),
    ];
    if let Some((name, _, what)) = of_memories.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Error::bad_input(format!(
            "`{name}` {what}, and `{}` is a conversation",
            quoted(session.as_str())
        ))
        .hint("--from and --to choose messages of a conversation; SESSION#NUMBER opens one of them"));
    }
    let (store, scope) = (&project.store, &project.scope);
    let rows = messages::range(project, &session, (None, None), (None, None)).await;
    // One can hold facts alone.
    let rows = match rows {
        Err(error) if error.kind() == error::Kind::NotFound => Vec::new(),
        rows => rows?,
    };
    let own = Scope { sessions: crate::scope::Sessions::Only(vec![session.clone()]), ..scope.clone() };
    let listed = store.sessions(&own, 0, 1).await?.pop();
    let About { title, client } =
        store.about_sessions(scope, vec![session.clone()]).await?.pop().unwrap_or_default();
    let time = |time: Option<Millis>| times::show_time(time.unwrap_or_default());
    let commits = store.commits_of(scope, &session).await?;
    let mut notices = Vec::new();
    let commits = briefs(store, scope, commits, "that it led to", &mut notices).await?;
    let mut shown = Conversation {
        caution: envelope::CAUTION,
        session_id: escaped(session.as_str()),
        title: title.as_deref().and_then(line),
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
    };
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
            // Looking costs nothing and sends nothing.
            use_provider: Some(false),
            ..Default::default()
        };
        let made = summarize_conversation::run(engine, caller, args).await?;
        shown.summary = Some(made.summary);
        shown.notices.extend(made.notices);
        return Ok(Output::Session(Box::new(shown)));
    }
    if args.focus.is_some() {
        return Err(Error::bad_input(
            "`focus` is what a summary is about, and messages are shown as they are",
        )
        .hint("leave it out, or choose a level: brief, standard or detailed"));
    }
    let mut rows = rows;
    let is_within =
        |number: i64| args.from.is_none_or(|from| number >= from) && args.to.is_none_or(|to| number <= to);
    rows.retain(|row| is_within(row.ordinal));
    if let Some(next) = rows.get(MOST_MESSAGES) {
        shown.notices.push(format!("the conversation goes on: `--from {}` shows what follows", next.ordinal));
        rows.truncate(MOST_MESSAGES);
    }
    let texts = messages::texts(project, &rows).await?;
    shown.said = texts
        .into_iter()
        .map(|(row, text)| Said {
            number: row.ordinal,
            id: row.id.to_string(),
            speaker: escaped(row.speaker.as_deref().or(row.role.map(|role| role.as_str())).unwrap_or("?")),
            time: times::show_time(row.time),
            text: escaped(&text),
        })
        .collect();
    Ok(Output::Session(Box::new(shown)))
}

fn escaped(text: &str) -> String {
    envelope::escape(text).into_owned()
}

/// Returns the first line of `text` that says something, cut at the end of a word; `None` where none does.
pub(crate) fn line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| line.contains(char::is_alphanumeric))?;
    let line = envelope::one_line(line);
    if line.len() <= LINE {
        return Some(line.into_owned());
    }
    let cut = &line[..line.floor_char_boundary(LINE)];
    let cut = cut.rfind(' ').map_or(cut, |space| &cut[..space]);
    Some(format!("{}…", cut.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_first_that_says_something() {
        assert_eq!(line("\n---\n  The cache.\nMore.").as_deref(), Some("The cache."));
        assert_eq!(line(" \n*\n"), None);
        let long = line(&"word ".repeat(60)).unwrap();
        assert!(long.ends_with("word…") && long.len() <= LINE + 3, "{long}");
        assert_eq!(line(&"語".repeat(200)).unwrap().chars().count(), LINE / 3 + 1);
    }

    #[test]
    fn quarters_have_a_year_and_a_number() {
        assert!(is_quarter("2026-Q1") && is_quarter("1999-Q4"));
        for text in ["2026-Q0", "2026-Q5", "26-Q1", "2026-q1", "2026Q1", "", "-Q1"] {
            assert!(!is_quarter(text), "{text}");
        }
    }
}
