//! Marks the superseded passages of a context, and first shows the statements that are valid instead.
//!
//! The line of a superseded message or fact names the memory that replaced it. For each such memory, a line before the
//! other passages repeats the statement that is valid now, with its date. If the question asks about the past, the
//! passages stay in the order of time and are only marked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::assembly::ContextRequest;
use crate::assembly::passages::{Chosen, Part, Passage, Shown, by, cost, with_mark};
use crate::project::OpenProject;
use tiro_base::budget::Budget;
use tiro_base::error::Result;
use tiro_base::memory::{self, Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::AuthorId;
use tiro_base::times::day;
use tiro_digest::context::render;
use tiro_recall::retrieve::cues::asks_for_order;
use tiro_recall::retrieve::superseded::{asks_for_history, is_asked};
use tiro_store::{ReplacementQuery, Replacements, Superseded};
use tiro_text::tokens;

/// The maximum number of valid statements that are shown first, in each of the two parts of a context. Arbitrary.
const MOST_SHOWN: usize = 6;

/// The part of the budget for the valid statements is the budget divided by this number. Arbitrary.
const SHARE: usize = 8;

/// The maximum number of tokens of a valid statement. Arbitrary: a long sentence.
const LONGEST: usize = 80;

/// Marks the superseded passages of `chosen`, and adds the statements that are valid instead.
pub async fn mark(project: &OpenProject, asked: &ContextRequest, chosen: &mut Chosen) -> Result<()> {
    let by_time = asks_for_history(&asked.query) || asks_for_order(&asked.query);
    let key = |passage: &Passage| Some(passage.shows.as_ref()?.key);
    let keys: Vec<MemoryKey> = chosen.stable.iter().chain(&chosen.live).filter_map(key).collect();
    let replaced = replaced(project, asked, &keys).await?;
    // The part that doesn't depend on the question shows only replacements that don't depend on the question either.
    let stable = marked(&replaced, &mut chosen.stable, |_| true);
    let live = marked(&replaced, &mut chosen.live, |superseded| is_asked(&asked.query, superseded));
    let mut shown: HashSet<MemoryId> = HashSet::new();
    let stable = holding(stable, &mut shown);
    let live = if by_time { Vec::new() } else { holding(live, &mut shown) };
    chosen.stable.splice(0..0, current(asked, stable, &replaced));
    if by_time {
        return Ok(());
    }
    if asked.session.is_none() {
        newest_first(&mut chosen.live);
    }
    chosen.live.splice(0..0, current(asked, live, &replaced));
    Ok(())
}

/// Reads the memories and statements that replaced the memories `keys`.
async fn replaced(project: &OpenProject, asked: &ContextRequest, keys: &[MemoryKey]) -> Result<Replacements> {
    let mut memories: Vec<MemoryKey> = Vec::with_capacity(keys.len());
    let mut known: HashSet<MemoryKey> = HashSet::new();
    memories.extend(keys.iter().filter(|key| known.insert(**key)));
    match memories.is_empty() {
        true => Ok(Replacements::default()),
        false => {
            let query = ReplacementQuery { memories, with_holding: true, ..ReplacementQuery::default() };
            project.store.replacements(&asked.scope, query).await
        }
    }
}

/// Orders the passages of conversations by time, the newest first: the conversation with the latest passage first, and
/// in each conversation the latest messages. So a new value comes before older values, even if nobody knows that it
/// replaced them. The replies right after a message stay with it. A summary comes before the messages of its conversation.
fn newest_first(passages: &mut [Passage]) {
    let time = |passage: &Passage| passage.shows.as_ref().map_or(passage.place.0, |shown| shown.time);
    let mut sessions: BTreeMap<String, Vec<&mut Passage>> = BTreeMap::new();
    for passage in passages.iter_mut().filter(|passage| !passage.place.1.is_empty()) {
        sessions.entry(passage.place.1.clone()).or_default().push(passage);
    }
    let mut sessions: Vec<Vec<&mut Passage>> = sessions.into_values().collect();
    sessions.sort_by_key(|own| Reverse(own.iter().map(|passage| time(passage)).max()));
    let mut number = 0;
    for mut own in sessions {
        own.sort_by_key(|passage| passage.place.2);
        let mut runs: Vec<Vec<&mut Passage>> = Vec::new();
        for passage in own {
            let ordinal = passage.place.2;
            let voice = |passage: &Passage| passage.shows.as_ref().map(|shown| shown.voice.clone());
            let follows = |run: &Vec<&mut Passage>| {
                run.last().is_some_and(|last| last.place.2 + 1 >= ordinal) && voice(run[0]) != voice(passage)
            };
            match runs.last_mut().filter(|run| ordinal > 0 && follows(run)) {
                Some(run) => run.push(passage),
                None => runs.push(vec![passage]),
            }
        }
        let is_summary = |run: &Vec<&mut Passage>| run[0].place.2 < 0;
        runs.sort_by_key(|run| (!is_summary(run), Reverse(run[0].place.2)));
        for passage in runs.into_iter().flatten() {
            passage.place = (Millis::MIN + 2, String::new(), number);
            number += 1;
        }
    }
}

/// Marks the passages that `replaced` lists and `is_asked` accepts as superseded. Returns the replacements that were
/// marked.
fn marked(
    replaced: &Replacements,
    passages: &mut [Passage],
    is_asked: impl Fn(&Superseded) -> bool,
) -> Vec<Superseded> {
    let places: HashMap<MemoryKey, usize> = passages
        .iter()
        .enumerate()
        .filter_map(|(place, passage)| Some((passage.shows.as_ref()?.key, place)))
        .collect();
    let mut found: Vec<Superseded> = Vec::new();
    for superseded in replaced.superseded.iter().filter(|each| is_asked(each)).cloned() {
        let Some(place) = places.get(&superseded.memory) else { continue };
        if found.iter().any(|known| known.memory == superseded.memory && known.by == superseded.by) {
            continue;
        }
        if !found.iter().any(|known| known.memory == superseded.memory) {
            let passage = &mut passages[*place];
            let shown = passage.shows.as_ref().expect("only passages that show a memory have a place");
            let mark = mark_of(&superseded, shown, &passage.place.1);
            passage.line = with_mark(&passage.line, &mark);
            passage.cost = cost(&passage.line);
        }
        found.push(superseded);
    }
    found
}

/// Returns the mark for the superseded memory `shown` of the session `session`. The mark names the memory that replaced it.
fn mark_of(superseded: &Superseded, shown: &Shown, session: &str) -> String {
    let is_near = superseded.by_session.as_ref().is_some_and(|by| by.as_str() == session);
    let by = match superseded.by_ordinal.filter(|_| is_near) {
        Some(ordinal) => format!("#{ordinal}"),
        None => superseded.by.to_string(),
    };
    let part = if superseded.statement.is_some_and(|(start, end)| end - start < shown.bytes) {
        "in part "
    } else {
        ""
    };
    format!("{part}superseded by {by} on {}", day(superseded.by_time))
}

/// Chooses those of `superseded` whose replacing memories are to be shown, the latest first. Each replacing memory is shown
/// once, and only if nothing replaced it in turn.
fn holding(superseded: Vec<Superseded>, shown: &mut HashSet<MemoryId>) -> Vec<Superseded> {
    let replaced: HashSet<MemoryKey> = superseded.iter().map(|each| each.memory).collect();
    let mut holding: Vec<Superseded> =
        superseded.into_iter().filter(|each| !replaced.contains(&each.by_key)).collect();
    // In the order of the store, they would stand differently on each machine.
    holding.sort_by_key(|each| Reverse(each.by_time));
    holding.into_iter().filter(|each| shown.insert(each.by.clone())).take(MOST_SHOWN).collect()
}

/// Returns passages that show the statements that are valid now in place of the superseded statements. `replaced`
/// contains the memories with these statements.
fn current(asked: &ContextRequest, superseded: Vec<Superseded>, replaced: &Replacements) -> Vec<Passage> {
    let mut budget = Budget::new(asked.budget / SHARE);
    let mut passages: Vec<Passage> = superseded
        .into_iter()
        .zip(i64::MIN..)
        .filter_map(|(each, number)| {
            let memory = replaced.holding.iter().find(|memory| memory.key == each.by_key)?;
            Some(passage(&each, memory, number, &asked.scope.reader))
        })
        .collect();
    passages.retain(|passage| budget.spend(passage.cost));
    passages
}

/// Returns the statement that is valid now, from the memory that contains it.
fn statement<'m>(superseded: &Superseded, memory: &'m Memory) -> &'m str {
    let (start, end) = superseded.by_statement.unwrap_or((0, memory.text.len()));
    memory.text.get(start..end).unwrap_or(&memory.text).trim()
}

/// Returns the passage that shows `reader` the statement that is valid now, at the place `number` of such passages.
fn passage(superseded: &Superseded, memory: &Memory, number: i64, reader: &AuthorId) -> Passage {
    let text = statement(superseded, memory);
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str)).unwrap_or_default();
    let source = match (memory.ordinal, &memory.session) {
        (Some(ordinal), Some(session)) => format!("{} {name} in {session}#{ordinal}", day(memory.time)),
        _ => format!("{} {}", day(memory.time), memory.id),
    };
    let line = render::fact("now", source.trim(), tokens::truncate(text, LONGEST));
    let line = memory::marked(by(line, &memory.author, reader), memory.is_damaged);
    let place = (Millis::MIN, String::new(), number);
    Passage { part: Part::Facts, head: String::new(), place, cost: cost(&line), line, shows: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_digest::context::facts::Voice;

    #[test]
    fn the_newest_messages_come_first_and_replies_stay_with_their_messages() {
        let passage = |session: &str, ordinal: i64| {
            let line = render::message(ordinal, "user", "so", None);
            let head = render::head(session, "2026-03-01");
            let time = 10 * i64::from(session == "new") + ordinal;
            // Messages with odd ordinals are replies.
            let voice = if ordinal % 2 == 0 { Voice::Person("user".into()) } else { Voice::Assistant };
            let key = MemoryKey::from_store(ordinal);
            let shows = (ordinal >= 0).then_some(Shown { key, time, voice, bytes: 2, subject: None });
            let place = (0, session.to_owned(), ordinal);
            Passage { part: Part::Relevant, head, place, cost: cost(&line), line, shows }
        };
        let mut passages = vec![
            passage("old", 3),
            passage("new", 4),
            passage("new", 9),
            passage("new", -1),
            passage("new", 5),
            passage("new", 6),
            passage("old", 0),
        ];
        newest_first(&mut passages);
        passages.sort_by(|a, b| a.place.cmp(&b.place));
        let order: Vec<String> = passages
            .iter()
            .map(|passage| format!("{}{}", &passage.head[1..4], passage.line.split(' ').next().unwrap()))
            .collect();
        assert_eq!(order, ["new#-1", "new#9", "new#6", "new#4", "new#5", "old#3", "old#0"]);
    }
}
