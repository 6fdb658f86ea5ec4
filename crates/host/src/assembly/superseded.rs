//! Marks the superseded passages of a context, and first shows the statements that are valid instead.
//!
//! The line of a superseded message or fact names the memory that replaced it. For each such memory, a line before the
//! other passages repeats the statement that is valid now, with its date. If the question asks about the past, the
//! passages stay in the order of time and are only marked.

use std::collections::{HashMap, HashSet};

use crate::assembly::ContextRequest;
use crate::assembly::passages::{Chosen, Part, Passage, cost};
use crate::project::OpenProject;
use tiro_base::budget::Budget;
use tiro_base::error::Result;
use tiro_base::memory::{self, Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::times::day;
use tiro_digest::context::facts::Voice;
use tiro_digest::context::render;
use tiro_digest::statements::Question;
use tiro_recall::retrieve::superseded::{asks_for_history, concerns, outdated};
use tiro_store::{ReplacementQuery, Replacements, Superseded};
use tiro_text::tokens;

/// The maximum number of valid statements that are shown first, in each of the two parts of a context. Arbitrary.
const MOST_SHOWN: usize = 6;

/// If a question asks for a value, this many messages of persons are moved to the front. Arbitrary.
const MOST_LATEST: usize = 5;

/// The part of the budget for the valid statements is the budget divided by this number. Arbitrary.
const SHARE: usize = 8;

/// The maximum number of tokens of a valid statement. Arbitrary: a long sentence.
const LONGEST: usize = 80;

/// Marks the superseded passages of `chosen`, and adds the statements that are valid instead.
pub async fn mark(project: &OpenProject, asked: &ContextRequest, chosen: &mut Chosen) -> Result<()> {
    let by_time = asks_for_history(&asked.query);
    let key = |passage: &Passage| Some(passage.shows.as_ref()?.key);
    let keys: Vec<MemoryKey> = chosen.stable.iter().chain(&chosen.live).filter_map(key).collect();
    let replaced = replaced(project, asked, &keys).await?;
    let outdated = if by_time { Vec::new() } else { outdated(&replaced, &asked.query, &keys) };
    // The part that doesn't depend on the question shows only replacements that don't depend on the question either.
    let stable = marked(Vec::new(), &replaced, &mut chosen.stable, |_| true);
    let is_asked = |superseded: &Superseded| concerns(&asked.query, superseded);
    let live = marked(outdated, &replaced, &mut chosen.live, is_asked);
    let mut shown: HashSet<MemoryId> = HashSet::new();
    let stable = holding(stable, &mut shown);
    let live = if by_time { Vec::new() } else { holding(live, &mut shown) };
    chosen.stable.splice(0..0, current(asked, stable, &replaced));
    if by_time {
        return Ok(());
    }
    if !Question::read(&asked.query).is_empty() {
        latest_first(&mut chosen.live);
    }
    chosen.live.splice(0..0, current(asked, live, &replaced));
    Ok(())
}

/// Reads the memories and statements that replaced the memories `keys`.
async fn replaced(project: &OpenProject, asked: &ContextRequest, keys: &[MemoryKey]) -> Result<Replacements> {
    let mut memories: Vec<MemoryKey> = Vec::with_capacity(keys.len());
    let mut known: HashSet<MemoryKey> = HashSet::new();
    memories.extend(keys.iter().filter(|key| known.insert(**key)));
    let with_statements = !asks_for_history(&asked.query) && !Question::read(&asked.query).is_empty();
    match memories.is_empty() {
        true => Ok(Replacements::default()),
        false => {
            let query = ReplacementQuery {
                memories,
                with_statements,
                with_holding: true,
                ..ReplacementQuery::default()
            };
            project.store.replacements(&asked.scope, query).await
        }
    }
}

/// Moves the most important messages of persons before the other passages, the latest first. `passages` begins with the
/// most important passage. So the newest value comes before older values, even if it is unknown that it replaced them.
fn latest_first(passages: &mut [Passage]) {
    let is_persons = |passage: &&mut Passage| {
        let voice = passage.shows.as_ref().map(|shown| &shown.voice);
        passage.part == Part::Relevant && matches!(voice, Some(Voice::Person(_)))
    };
    let mut best: Vec<&mut Passage> = passages.iter_mut().filter(is_persons).take(MOST_LATEST).collect();
    best.sort_by_key(|passage| std::cmp::Reverse((passage.place.0, passage.place.2)));
    for (number, passage) in best.into_iter().enumerate() {
        passage.place = (Millis::MIN, String::new(), i64::MIN + 1 + number as i64);
    }
}

/// Marks the passages that `outdated` lists as superseded, and those that `replaced` lists and `is_asked` accepts.
/// Returns the replacements that were marked, those of `outdated` first.
fn marked(
    outdated: Vec<Superseded>,
    replaced: &Replacements,
    passages: &mut [Passage],
    is_asked: impl Fn(&Superseded) -> bool,
) -> Vec<Superseded> {
    let places: HashMap<MemoryKey, usize> = passages
        .iter()
        .enumerate()
        .filter_map(|(place, passage)| Some((passage.shows.as_ref()?.key, place)))
        .collect();
    let stored = replaced.superseded.iter().filter(|each| is_asked(each)).cloned();
    let mut found: Vec<Superseded> = Vec::new();
    for superseded in outdated.into_iter().chain(stored) {
        let Some(place) = places.get(&superseded.memory) else { continue };
        if found.iter().any(|known| known.memory == superseded.memory && known.by == superseded.by) {
            continue;
        }
        if !found.iter().any(|known| known.memory == superseded.memory) {
            let passage = &mut passages[*place];
            passage.line = with_mark(&passage.line, &mark_of(&superseded, &passage.place.1));
            passage.cost = cost(&passage.line);
        }
        found.push(superseded);
    }
    found
}

/// Returns the mark for a superseded memory of the session `session`. The mark names the memory that replaced it.
fn mark_of(superseded: &Superseded, session: &str) -> String {
    let is_near = superseded.by_session.as_ref().is_some_and(|by| by.as_str() == session);
    let by = match superseded.by_ordinal.filter(|_| is_near) {
        Some(ordinal) => format!("#{ordinal}"),
        None => superseded.by.to_string(),
    };
    format!("superseded by {by} on {}", day(superseded.by_time))
}

/// Inserts a mark after the beginning of a line. In a message it follows the speaker's name, and in a fact it is within
/// the brackets.
fn with_mark(line: &str, mark: &str) -> String {
    let at = match line.starts_with('#') {
        true => line.find(": ").map(|at| (at, format!(" ({mark})"))),
        false => line.find(']').map(|at| (at, format!(", {mark}"))),
    };
    let Some((at, mark)) = at else { return line.to_owned() };
    format!("{}{mark}{}", &line[..at], &line[at..])
}

/// Chooses those of `superseded` whose replacing memories are to be shown. Each replacing memory is shown once, and
/// only if nothing replaced it in turn.
fn holding(superseded: Vec<Superseded>, shown: &mut HashSet<MemoryId>) -> Vec<Superseded> {
    let replaced: HashSet<MemoryKey> = superseded.iter().map(|each| each.memory).collect();
    superseded
        .into_iter()
        .filter(|each| !replaced.contains(&each.by_key))
        .filter(|each| shown.insert(each.by.clone()))
        .take(MOST_SHOWN)
        .collect()
}

/// Returns passages that show the statements that are valid now in place of the superseded statements. `replaced`
/// contains the memories with these statements.
fn current(asked: &ContextRequest, superseded: Vec<Superseded>, replaced: &Replacements) -> Vec<Passage> {
    let mut budget = Budget::new(asked.budget / SHARE);
    let mut passages: Vec<Passage> = superseded
        .into_iter()
        .filter_map(|each| {
            let mut memories = replaced.holding.iter().chain(&replaced.stating);
            let memory = memories.find(|memory| memory.key == each.by_key)?;
            Some(passage(&each, memory))
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

/// Returns the passage of the statement that is valid now.
fn passage(superseded: &Superseded, memory: &Memory) -> Passage {
    let text = statement(superseded, memory);
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str)).unwrap_or_default();
    let source = match (memory.ordinal, &memory.session) {
        (Some(ordinal), Some(session)) => format!("{} {name} in {session}#{ordinal}", day(memory.time)),
        _ => format!("{} {}", day(memory.time), memory.id),
    };
    let line = render::fact("now", source.trim(), tokens::truncate(text, LONGEST));
    let line = memory::marked(line, memory.is_damaged);
    let place = (Millis::MIN, String::new(), i64::MIN);
    Passage { part: Part::Facts, head: String::new(), place, cost: cost(&line), line, shows: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::passages::Shown;

    #[test]
    fn the_latest_of_the_best_messages_come_first_for_a_question_about_a_value() {
        let passage = |ordinal: i64, name: &str| {
            let line = render::message(ordinal, name, "so", None);
            let head = render::head("s", "2026-03-01");
            let voice = Voice::of(Role::parse(name).or(Some(Role::User)), Some(name));
            let shows = Some(Shown { key: MemoryKey::from_store(ordinal), time: 5, voice });
            let place = (5, "s".into(), ordinal);
            Passage { part: Part::Relevant, head, place, cost: cost(&line), line, shows }
        };
        let mut passages =
            vec![passage(3, "user"), passage(4, "assistant"), passage(9, "user"), passage(1, "Ines")];
        latest_first(&mut passages);
        passages.sort_by(|a, b| a.place.cmp(&b.place));
        let lines: Vec<&str> = passages.iter().map(|passage| passage.line.trim()).collect();
        assert_eq!(lines, ["#9 user: so", "#3 user: so", "#1 Ines: so", "#4 assistant: so"]);
    }

    #[test]
    fn a_mark_stands_after_the_name_of_the_speaker() {
        assert_eq!(
            with_mark("#12 Ada: So: yes.\n", "superseded by #14"),
            "#12 Ada (superseded by #14): So: yes.\n"
        );
        assert_eq!(with_mark("[fact m1] So.\n", "superseded by m2"), "[fact m1, superseded by m2] So.\n");
    }
}
