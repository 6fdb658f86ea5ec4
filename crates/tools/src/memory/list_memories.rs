//! Lists memories, the latest first, without a query.

use serde::Serialize;

use crate::common;
use crate::memory::beside::{behind, replaced};
use crate::memory::hits::SupersededBy;
use crate::memory::named;
use crate::memory::show;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::{Memory, Millis, marked};
use tiro_base::scope::{AuthorId, Scope, Sessions};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::Capture;
use tiro_store::ReadStore;

/// The most memories on a page.
const PAGE: usize = 200;

/// The arguments of `tiro list`.
#[derive(Debug, Default)]
pub struct Args {
    /// Only these kinds, such as message or commit; all kinds if empty.
    pub kinds: Vec<String>,
    /// Only memories of these sessions, by name, beginning of a name, or title; all if empty.
    pub sessions: Vec<String>,
    /// Only memories of this branch.
    pub branch: Option<String>,
    /// Only memories with this tag.
    pub topic: Option<String>,
    /// Only memories about this file or directory.
    pub path: Option<String>,
    /// Only memories from this time on.
    pub since: Option<String>,
    /// Only memories until this time; a day is included.
    pub until: Option<String>,
    /// The most memories on the page, 1 to 200; 30 if `None`.
    pub limit: Option<usize>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

/// The result of `tiro list`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The memories, the latest first.
    pub memories: Vec<Listed>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// A memory in a list.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// When it was said, made or committed, RFC 3339.
    pub time: String,
    /// Its title, or the first line of its text that says something.
    pub line: String,
    /// The speaker of a message or the author of a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The session that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its number in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// The commit's full SHA, or the id that a client gave a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The tokens of its text (o200k).
    pub tokens: i64,
    /// Whether it was marked important.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub important: bool,
    /// Whether it belongs to the owner, and so to all projects.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_owners: bool,
    /// What replaced it, or one of its statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededBy>,
}

/// Reads a page of memories of the project, and of the owner unless sessions are named.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if an argument can't be read.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let limit = args.limit.unwrap_or(30);
    if !(1..=PAGE).contains(&limit) {
        return Err(Error::bad_input(format!("`limit` is not between 1 and {PAGE}: {limit}")));
    }
    let from = args.cursor.as_deref().map(cursor).transpose()?;
    let mut notices = match from {
        None => caller.capture(engine).catch_up().await,
        Some(_) => Vec::new(),
    };
    let project = caller.project(engine).await?;
    let filter = filter(&args, engine.now())?;
    let sessions = named::all(&project, "sessions", &args.sessions).await?;
    let scope = Scope { sessions, ..project.scope.clone() };
    let owners = &engine.installation().await?.registry;
    let owners_scope = project.scope.owner_wide();
    let mut places: Vec<(&dyn ReadStore, &Scope)> = vec![(project.store.as_ref(), &scope)];
    if scope.sessions == Sessions::All {
        places.push((owners.memories().as_ref(), &owners_scope));
    }
    let mut found: Vec<(usize, Memory)> = Vec::new();
    for (place, (store, scope)) in places.iter().enumerate() {
        let before = from.as_ref().map(|from| from.of(place));
        found
            .extend(read(*store, scope, &filter, before, limit + 1).await?.into_iter().map(|it| (place, it)));
    }
    // Of two memories of the same time, the project's comes first.
    found.sort_by_key(|(place, memory)| (std::cmp::Reverse(memory.time), *place));
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = has_more.then(|| Cursor::after(&found, from.as_ref()).to_string());
    if found.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, &project).await?);
    }
    let mut superseded = Vec::new();
    for (place, (store, scope)) in places.iter().enumerate() {
        let own: Vec<&Memory> =
            found.iter().filter(|(of, _)| *of == place).map(|(_, memory)| memory).collect();
        superseded.push(replaced::of(*store, scope, &own).await?);
    }
    let listed = |(place, memory): (usize, Memory)| {
        let superseded = superseded[place].remove(&memory.key);
        listed(memory, superseded, place > 0, caller.author())
    };
    let memories = found.into_iter().map(listed).collect();
    Ok(Output { memories, next_cursor, notices })
}

/// Returns the memories of `store` after the place `before`, the latest first.
async fn read(
    store: &dyn ReadStore,
    scope: &Scope,
    filter: &Filter,
    before: Option<Place>,
    limit: usize,
) -> Result<Vec<Memory>> {
    // Keys of memories have no form outside of a store, so the memories of the last time are read again, and those that
    // were shown are left out.
    let Some(Place { time, count }) = before else { return store.latest(scope, filter, limit).await };
    let until = filter.until.map_or(time.saturating_add(1), |until| until.min(time.saturating_add(1)));
    let filter = Filter { until: Some(until), ..filter.clone() };
    let mut found = store.latest(scope, &filter, limit + count).await?;
    let shown = found.iter().take_while(|memory| memory.time == time).count().min(count);
    found.drain(..shown);
    found.truncate(limit);
    Ok(found)
}

/// Where a page ended in a store: the time of the last memory, and how many memories of this time were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    time: Millis,
    count: usize,
}

/// Where a page ended in the project's and in the owner's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor([Place; 2]);

impl Cursor {
    fn of(&self, place: usize) -> Place {
        self.0[place]
    }

    /// Returns the cursor after the page `found`, which began at `from`.
    fn after(found: &[(usize, Memory)], from: Option<&Cursor>) -> Cursor {
        Cursor([0, 1].map(|place| {
            let before = from.map_or(Place { time: Millis::MAX, count: 0 }, |from| from.of(place));
            let own = || found.iter().filter(|(of, _)| *of == place).map(|(_, memory)| memory.time);
            let Some(time) = own().next_back() else { return before };
            let count = own().filter(|other| *other == time).count();
            Place { time, count: if time == before.time { count + before.count } else { count } }
        }))
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [project, owner] = self.0;
        write!(f, "{}.{}.{}.{}", project.time, project.count, owner.time, owner.count)
    }
}

fn cursor(text: &str) -> Result<Cursor> {
    let numbers: Option<Vec<i64>> = text.trim().split('.').map(|part| part.parse().ok()).collect();
    let place = |time: i64, count: i64| Some(Place { time, count: usize::try_from(count).ok()? });
    let read = match numbers.as_deref() {
        Some(&[time, count, owners_time, owners_count]) => {
            place(time, count).zip(place(owners_time, owners_count))
        }
        _ => None,
    };
    read.map(|(project, owner)| Cursor([project, owner])).ok_or_else(|| {
        Error::bad_input(format!("`cursor` was not returned by this list: `{}`", quoted(text)))
            .hint("leave it out to start at the beginning")
    })
}

fn filter(args: &Args, now: Millis) -> Result<Filter> {
    let kinds = args.kinds.iter().map(|word| common::kind("kinds", word)).collect::<Result<Vec<_>>>()?;
    let short =
        |name, text: &Option<String>| text.as_deref().map(|text| common::short(name, text)).transpose();
    let (since, until) =
        times::range(("since", args.since.as_deref()), ("until", args.until.as_deref()), now)?;
    Ok(Filter {
        kinds: (!kinds.is_empty()).then_some(kinds),
        branch: short("branch", &args.branch)?,
        topic: short("topic", &args.topic)?,
        path: short("path", &args.path)?,
        since,
        until,
        ..Filter::default()
    })
}

fn listed(memory: Memory, superseded: Option<SupersededBy>, is_owners: bool, reader: &AuthorId) -> Listed {
    let escaped = |text: &str| envelope::escape(text).into_owned();
    let line = memory.title.as_deref().and_then(show::line).or_else(|| show::line(&memory.text));
    Listed {
        id: memory.id.to_string(),
        kind: memory.kind.to_string(),
        time: times::show_time(memory.time),
        line: marked(line.unwrap_or_default(), memory.is_damaged),
        speaker: behind::speaker(&memory),
        author: memory.author.other_than(reader),
        session_id: memory.session.as_ref().map(|session| escaped(session.as_str())),
        number: memory.ordinal,
        source_id: memory.source_id.as_deref().map(escaped),
        topic: memory.topic.as_deref().map(escaped),
        tokens: memory.tokens,
        important: memory.marked,
        is_owners,
        superseded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor_of =
            Cursor([Place { time: 1_772_357_400_000, count: 3 }, Place { time: i64::MAX, count: 0 }]);
        assert_eq!(cursor(&cursor_of.to_string()).unwrap(), cursor_of);
        for text in ["", "7", "1.2.3", "1.2.3.x", "1.-2.3.4", "1.2.3.4.5"] {
            assert!(cursor(text).unwrap_err().to_string().contains("`cursor`"), "{text}");
        }
    }
}
