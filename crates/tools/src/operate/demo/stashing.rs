//! The part of the demonstration that stashes the older half of a conversation, finds it from another session, and
//! brings it back.

use std::time::Instant;

use serde::Serialize;

use crate::context::retrieve_context;
use crate::stash::{merge_stashed_context, retrieve_stashed_context, stash_context};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;

/// The maximum number of tokens of the contexts. The whole conversation fits.
const MAX_TOKENS: usize = 20_000;

/// The result of stashing the older half of a conversation.
#[derive(Debug, Serialize)]
pub struct Stashing {
    /// The conversation.
    pub session_id: String,
    /// The segments that were stashed, by name.
    pub segments: String,
    /// Tokens of the conversation's context before.
    pub tokens_before: usize,
    /// Tokens of its context without the stashed messages.
    pub tokens_after: usize,
    /// The number of tokens that stashing reported as freed.
    pub tokens_freed: i64,
    /// The question that was asked from a new session.
    pub question: String,
    /// The segments that were found, the best first. Each has its number and a short version of its text.
    pub found: Vec<(i64, String)>,
    /// Tokens of the segments that were brought back.
    pub tokens_added: usize,
    /// Whether the texts that were brought back are equal to the stored texts, byte for byte.
    pub is_equal: bool,
    /// The duration of all steps, in milliseconds.
    pub milliseconds: u64,
}

/// Stashes the older half of the conversation that contains the message `source`, asks `question` from a new session,
/// and brings the found segments back. Afterwards nothing is stashed. Returns `None` if no conversation contains the
/// message.
pub async fn stash(
    engine: &Engine,
    caller: &WritingCaller,
    question: &str,
    source: &str,
) -> Result<Option<Stashing>> {
    let began = Instant::now();
    let project = caller.project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let named = Filter { source_id: Some(source.to_owned()), ..Filter::default() };
    let found = store.list(scope, &named, None, 1).await?.pop();
    let Some(session) = found.and_then(|message| message.session) else { return Ok(None) };
    let messages = store.session_messages(scope, &session, 0).await?;
    let segments = format!("{session}#0-{}", (messages.len() / 2).saturating_sub(1));
    let tokens_before = context(engine, caller, session.as_str(), question).await?;
    let args = stash_context::Args { segment_ids: Some(vec![segments.clone()]), ..Default::default() };
    let stashed = stash_context::run(engine, caller, args).await?;
    let tokens_after = context(engine, caller, session.as_str(), question).await?;

    // The caller for another session in the same folder.
    let place = caller.in_directory(&project.root, false);
    let args = retrieve_stashed_context::Args {
        query: Some(question.to_owned()),
        top_k: Some(2),
        ..Default::default()
    };
    let hits = retrieve_stashed_context::run(engine, &place, args).await?.segments;
    let ids: Vec<String> = hits.iter().map(|hit| hit.id.clone()).collect();
    let found = hits.into_iter().map(|hit| (hit.number.unwrap_or(0), hit.text)).collect();
    let (mut tokens_added, mut is_equal) = (0, true);
    if !ids.is_empty() {
        let args = merge_stashed_context::Args { segment_ids: ids, ..Default::default() };
        let merged = merge_stashed_context::run(engine, &place, args).await?;
        tokens_added = merged.tokens_added;
        for segment in &merged.segments {
            let stored = messages.iter().find(|row| row.id.to_string() == segment.id).map(|row| row.key);
            let texts = store.texts(scope, stored.into_iter().collect()).await?;
            is_equal &= texts.iter().any(|(_, text)| *text == segment.text);
        }
    }
    merge_stashed_context::restore(engine, caller, std::slice::from_ref(&segments), false).await?;
    Ok(Some(Stashing {
        session_id: session.to_string(),
        segments,
        tokens_before,
        tokens_after,
        tokens_freed: stashed.tokens_freed,
        question: question.to_owned(),
        found,
        tokens_added,
        is_equal,
        milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Returns the tokens of the context of the conversation.
async fn context(engine: &Engine, caller: &Caller, session: &str, question: &str) -> Result<usize> {
    let args = retrieve_context::Args {
        query: question.to_owned(),
        session_id: Some(session.to_owned()),
        max_tokens: Some(MAX_TOKENS),
        ..retrieve_context::Args::default()
    };
    Ok(retrieve_context::run(engine, caller, args).await?.tokens_used)
}

impl Stashing {
    /// Returns the result as text. `first_words` shortens a message to one line.
    pub fn text(&self, first_words: fn(&str) -> String) -> String {
        let Stashing { segments, tokens_before, tokens_after, tokens_freed, .. } = self;
        let mut text = format!(
            "\nThe older half of a conversation, {segments}, is stashed.\n  Its context had {tokens_before} tokens, and \
             has {tokens_after} now; {tokens_freed} tokens of messages left it.\n  ? {}\n  Asked of the stash from a new \
             session:\n",
            self.question
        );
        for (place, (number, said)) in self.found.iter().enumerate() {
            text += &format!("  {}. [{}#{number}] {}\n", place + 1, self.session_id, first_words(said));
        }
        let equal = if self.is_equal { "equal to what was stored" } else { "not what was stored" };
        text + &format!(
            "  Brought back: {} tokens, byte for byte {equal}; {} ms\n",
            self.tokens_added, self.milliseconds
        )
    }
}
