//! Summarises the conversations of each past quarter.
//!
//! The summary of a quarter is one memory that a search finds. Its sentences are chosen from the memories that
//! represent the conversations, and it refers to these memories. The conversations and messages are not changed. The
//! summary is removed when the user forgets one of the conversations. If `tiro gc` removes conversations because of
//! their age, the summary stays, and is not made again from the remaining conversations.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use crate::summaries::messages::{blocking, count};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::humanize::counted;
use tiro_base::memory::{DAMAGED, Draft, Identity, Kind, Level, Memory, MemoryId, Provenance, Role};
use tiro_base::times;
use tiro_digest::summarize::{self, Source};
use tiro_digest::tuning::summaries::{QUARTER_SESSIONS, QUARTER_TOKENS};
use tiro_intake::prepare;
use tiro_store::{Outcome, source_hash};

/// The number of memories of conversations that are read at once.
const PAGE: usize = 500;

/// A quarter that was summarised. In a dry run, a quarter that would be summarised.
#[derive(Debug, Serialize)]
pub struct Quarter {
    /// The name of the quarter, such as `2026-Q1`.
    pub quarter: String,
    /// The number of conversations that ended in the quarter.
    pub conversations: usize,
    /// The number of tokens (o200k) of the summary; 0 in a dry run.
    pub tokens: usize,
}

/// Summarises each past quarter whose conversations have changed since the quarter's last summary. Returns these
/// quarters.
pub async fn sum_up(engine: &Engine, project: &WritableProject, dry_run: bool) -> Result<Vec<Quarter>> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut done = Vec::new();
    for (quarter, conversations) in over(engine, project).await? {
        let ids: Vec<MemoryId> = conversations.iter().map(|each| each.id.clone()).collect();
        let key = format!("{quarter} {}", blake3::Hash::from(source_hash(&ids)).to_hex());
        if store.memory(scope, &MemoryId::derive(Kind::Summary, None, &key)).await?.is_some() {
            continue;
        }
        let topic = format!("quarter {quarter}");
        if store.quarter_is_retired(scope, &topic).await? {
            continue;
        }
        let mut summed = Quarter { quarter, conversations: ids.len(), tokens: 0 };
        if !dry_run {
            let time = conversations.last().map_or(0, |last| last.time);
            let summary = blocking(move || in_short(&conversations)).await?;
            let text = format!("{}, {} conversations: {summary}", summed.quarter, summed.conversations);
            let mut draft = Draft::new(Kind::Summary, Provenance::Derived, text, time);
            draft.identity = Identity::Named(key);
            draft.title = Some(summed.quarter.clone());
            draft.topic = Some(topic);
            draft.references = ids;
            let redactor = &project.redactor;
            let (memory, _) = prepare::prepare(redactor, draft, &mut || engine.random());
            summed.tokens = usize::try_from(memory.tokens).unwrap_or(0);
            // If a conversation was forgotten after it was read, the next run summarises the quarter without it.
            if store.save_quarter(scope, memory, engine.now()).await? == Outcome::Forgotten {
                continue;
            }
        }
        done.push(summed);
    }
    Ok(done)
}

/// Returns the past quarters, the earliest first. Each comes with the memories that represent its conversations.
async fn over(engine: &Engine, project: &OpenProject) -> Result<BTreeMap<String, Vec<Memory>>> {
    let filter = Filter { kinds: Some(vec![Kind::Conversation]), ..Filter::default() };
    let this = times::quarter(engine.now());
    let mut quarters: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = project.store.list(&project.scope, &filter, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key);
        for memory in page {
            let quarter = times::quarter(memory.time);
            // An exchange with a consulted assistant is a part of its session, and the session has its own memory.
            if quarter < this && memory.speaker.is_none() {
                quarters.entry(quarter).or_default().push(memory);
            }
        }
    }
    quarters.retain(|_, conversations| conversations.len() >= QUARTER_SESSIONS);
    for conversations in quarters.values_mut() {
        conversations.sort_by(|a, b| (a.time, &a.id).cmp(&(b.time, &b.id)));
    }
    Ok(quarters)
}

/// Returns a summary of the conversations. The sentences of each conversation follow its name.
fn in_short(conversations: &[Memory]) -> String {
    let sources: Vec<Source<'_>> = conversations
        .iter()
        .zip(0..)
        .map(|(memory, ordinal)| Source {
            ordinal,
            speaker: memory.session.as_ref().map_or("", |session| session.as_str()),
            role: Role::Assistant,
            time: memory.time,
            // Nothing is concluded from a damaged text.
            text: if memory.is_damaged { "" } else { &memory.text },
            corrected: &[],
        })
        .collect();
    let text = summarize::extract(&sources, Level::Detailed, QUARTER_TOKENS, "", &count).text;
    match conversations.iter().filter(|memory| memory.is_damaged).count() {
        0 => text,
        damaged => {
            format!("{text}\n[{} left out; {DAMAGED}]", counted(damaged, "conversation", "conversations"))
        }
    }
}
