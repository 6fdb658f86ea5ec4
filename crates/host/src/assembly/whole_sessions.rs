//! Adds lines to a context that each stand for a whole conversation.

use std::collections::HashMap;

use crate::assembly::ContextRequest;
use crate::assembly::filling::Filling;
use crate::assembly::order::{Conversation, Weighed, conversation};
use crate::assembly::passages::{Chosen, Part, Passage, cost};
use crate::assembly::quote::{self, quote};
use crate::project::OpenProject;
use crate::summaries::messages;
use tiro_base::error::Result;
use tiro_base::memory::{Level, Memory, MemoryKey, Millis, marked};
use tiro_base::scope::SessionId;
use tiro_base::times::day;
use tiro_digest::context::render;
use tiro_digest::summarize::{self, OPEN};
use tiro_digest::tuning::summaries::{ACROSS_SESSIONS, ACROSS_TOKENS};
use tiro_recall::retrieve::rank::Ranked;

/// The maximum number of messages of a conversation that are read for its summary. The latest messages are read.
const MOST_READ: usize = 300;

/// Adds a line for each of the latest `count` conversations, with its title and its topic. Returns their names and the
/// times of their first messages.
pub async fn latest(
    project: &OpenProject,
    asked: &ContextRequest,
    count: usize,
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<HashMap<SessionId, Millis>> {
    let (store, scope) = (project.store.as_ref(), &asked.scope);
    let without = &asked.filter.without;
    let mut rows = store.sessions(scope, 0, count + usize::from(without.is_some())).await?;
    rows.retain(|row| Some(&row.id) != without.as_ref());
    rows.truncate(count);
    rows.retain(|row| asked.filter.is_within(row.last));
    let about = store.about_sessions(scope, rows.iter().map(|row| row.id.clone()).collect()).await?;
    let mut listed = HashMap::new();
    for (row, about) in rows.into_iter().zip(about) {
        let made = match store.conversation(scope, &row.id).await? {
            Some(known) => {
                let memory = store.memory(scope, &known.id).await?;
                memory.map(|memory| marked(memory.text, memory.is_damaged)).unwrap_or_default()
            }
            None => String::new(),
        };
        let passage = |most: usize| {
            let title =
                quote::first_lines(about.title.as_deref().unwrap_or_default().trim(), ACROSS_TOKENS / 2);
            let title = title.lines().next().unwrap_or_default().to_owned();
            let (said, open) = made.rsplit_once(OPEN).unwrap_or((&made, ""));
            let mut brief = begin_and_end(said, most.min(ACROSS_TOKENS));
            if !open.is_empty() {
                brief += &format!(" {}{open}", OPEN.trim_start());
            }
            let text = if title.is_empty() || brief.is_empty() {
                title + &brief
            } else {
                format!("{title}: {brief}")
            };
            let line = render::session_summary(&text);
            let head = render::head(row.id.as_str(), &day(row.last));
            let place = (row.last, row.id.as_str().to_owned(), -1);
            (!text.is_empty()).then(|| Passage {
                part: Part::Summaries,
                head,
                place,
                cost: cost(&line),
                line,
                shows: None,
            })
        };
        if let Some(whole) = passage(usize::MAX) {
            filling.add(chosen, whole, passage);
            listed.insert(row.id.clone(), row.first);
        }
    }
    Ok(listed)
}

/// Returns the first request of an account, and its last request with the outcome, with about `most` tokens. Of another
/// summary, returns the first sentences.
fn begin_and_end(account: &str, most: usize) -> String {
    let begins = |line: &str| line.starts_with('#');
    let last = account.rmatch_indices('\n').find(|(at, _)| begins(&account[at + 1..])).map(|(at, _)| at + 1);
    let Some(last) = last.filter(|_| begins(account)) else {
        return quote(account, 0..account.len(), most).replace('\n', " ");
    };
    let first = account.lines().next().unwrap_or_default();
    let [first, last] = [first, &account[last..]]
        .map(|part| quote::first_lines(part, most / 2).split_whitespace().collect::<Vec<_>>().join(" "));
    format!("{first} … {last}")
}

/// Adds summaries of the conversations with the highest weights.
pub async fn summarise(
    project: &OpenProject,
    asked: &ContextRequest,
    hits: &[Ranked],
    sessions: &HashMap<Conversation, Weighed>,
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<()> {
    let named = named(project, asked, hits, sessions).await?;
    // If there are fewer conversations, each summary may be longer.
    let length = (asked.budget / named.len().clamp(1, ACROSS_SESSIONS)).clamp(ACROSS_TOKENS, 600);
    for (session, first) in named.into_iter().take(ACROSS_SESSIONS) {
        let rows = project.store.session_messages(&asked.scope, &session, 0).await?;
        let rows = &rows[rows.len().saturating_sub(MOST_READ)..];
        let read = messages::texts(project, rows).await?;
        let head = render::head(session.as_str(), &day(first));
        let most = length.saturating_sub(cost(&head) + 8);
        let (query, level) = (asked.query.clone(), if length > 150 { Level::Standard } else { Level::Brief });
        let extract = move || {
            let sources = messages::sources(&read);
            let text = summarize::extract(&sources, level, most, &query, &messages::count).text;
            messages::without_damaged(text, &read)
        };
        let text = messages::blocking(extract).await?;
        if text.is_empty() {
            continue;
        }
        let line = render::session_summary(&text);
        let place = (first, session.as_str().to_owned(), -1);
        let passage = Passage { part: Part::Summaries, head, place, cost: cost(&line), line, shows: None };
        if !filling.add(chosen, passage, |_| None) {
            *chosen.dropped.entry(Part::Summaries.as_str()).or_default() += 1;
        }
    }
    Ok(())
}

/// Returns the names of the conversations in the order of their weights, each with the time of its earliest hit.
async fn named(
    project: &OpenProject,
    asked: &ContextRequest,
    hits: &[Ranked],
    sessions: &HashMap<Conversation, Weighed>,
) -> Result<Vec<(SessionId, Millis)>> {
    let mut order: Vec<(&Conversation, &Weighed)> =
        sessions.iter().filter(|((store, _), _)| *store == 0).collect();
    order.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then_with(|| a.0.cmp(b.0)));
    let of = |session: Conversation| hits.iter().find(|hit| conversation(hit) == Some(session));
    let keys: HashMap<MemoryKey, Millis> = order
        .iter()
        .filter_map(|(session, weighed)| Some((of(**session)?.place.key, weighed.first)))
        .collect();
    let read: Vec<MemoryKey> =
        order.iter().filter_map(|(session, _)| Some(of(**session)?.place.key)).collect();
    let read = project.store.memories(&asked.scope, read).await?;
    let first = |memory: &Memory| keys.get(&memory.key).copied();
    Ok(read.into_iter().filter_map(|memory| Some((memory.session.clone()?, first(&memory)?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_in_short_begins_with_its_first_request_and_ends_with_its_last_outcome() {
        let account = "#0 user: Port the press.\n  → #3: The press runs.\n#4 user: Test it.\n#8 user: Oil the shaft.\n  → #9: It is oiled.";
        assert_eq!(
            begin_and_end(account, 200),
            "#0 user: Port the press. … #8 user: Oil the shaft. → #9: It is oiled."
        );
        assert_eq!(
            begin_and_end("Ada paints the barge. Bob helps.", 200),
            "Ada paints the barge. Bob helps."
        );
    }
}
