//! Sums up the conversations of each quarter that is over.
//!
//! It is one memory that a search finds, chosen from those that stand for the conversations, to which it refers. They and
//! what was said in them stay as they are. It leaves with the first of them that the user forgets; where `tiro gc` forgets
//! them by their age it stays, and is not made anew without them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::Engine;
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Draft, Identity, Kind, Level, Memory, MemoryId, Provenance, Role};
use crate::project::OpenProject;
use crate::remember;
use crate::store::{Outcome, source_hash};
use crate::summaries::messages::{blocking, count};
use crate::summarize::{self, Source};
use crate::times;
use crate::tuning::summaries::{QUARTER_SESSIONS, QUARTER_TOKENS};

/// Conversations read at once.
const PAGE: usize = 500;

/// A quarter that was, or would be, summed up.
#[derive(Debug, Serialize)]
pub struct Quarter {
    /// Such as `2026-Q1`.
    pub quarter: String,
    /// How many conversations ended in it.
    pub conversations: usize,
    /// The tokens (o200k) of what sums them up; 0 of a dry run.
    pub tokens: usize,
}

/// Sums up each quarter before this one whose conversations are not those that were summed up before; returns which.
pub(crate) async fn sum_up(engine: &Engine, project: &OpenProject, dry_run: bool) -> Result<Vec<Quarter>> {
    let (store, scope) = (&project.store, &project.scope);
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
            let told = blocking(move || in_short(&conversations)).await?;
            let text = format!("{}, {} conversations: {told}", summed.quarter, summed.conversations);
            let mut draft = Draft::new(Kind::Summary, Provenance::Derived, text, time);
            draft.identity = Identity::Named(key);
            draft.title = Some(summed.quarter.clone());
            draft.topic = Some(topic);
            draft.references = ids;
            let redactor = &project.redactor;
            let (memory, _) = remember::prepare(redactor, draft, &mut || engine.random());
            summed.tokens = usize::try_from(memory.tokens).unwrap_or(0);
            // Something of it was forgotten meanwhile: the next time it is summed up without.
            if store.save_quarter(scope, memory, engine.now()).await? == Outcome::Forgotten {
                continue;
            }
        }
        done.push(summed);
    }
    Ok(done)
}

/// Returns the quarters that are over with what stands for their conversations, earliest first.
async fn over(engine: &Engine, project: &OpenProject) -> Result<BTreeMap<String, Vec<Memory>>> {
    let filter = Filter { kinds: Some(vec![Kind::Conversation]), ..Filter::default() };
    let this = times::quarter(engine.now());
    let mut quarters: BTreeMap<String, Vec<Memory>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = project.store.list(&project.scope, &filter, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.seq);
        for memory in page {
            let quarter = times::quarter(memory.time);
            if quarter < this {
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

/// Returns what the conversations come down to, each sentence behind the name of its conversation.
fn in_short(conversations: &[Memory]) -> String {
    let sources: Vec<Source<'_>> = conversations
        .iter()
        .zip(0..)
        .map(|(memory, ordinal)| Source {
            ordinal,
            speaker: memory.session.as_ref().map_or("", |session| session.as_str()),
            role: Role::Assistant,
            time: memory.time,
            text: &memory.text,
        })
        .collect();
    summarize::extract(&sources, Level::Detailed, QUARTER_TOKENS, "", &count).text
}
