//! Adds the messages without which others say too little: the question before a short answer, and the last reply to a
//! request that the question means.

use std::collections::HashSet;

use crate::assembly::ContextRequest;
use crate::assembly::filling::Filling;
use crate::assembly::passages::{Chosen, Part, Room, Shown, remembered};
use crate::project::OpenProject;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Memory, MemoryKey, Role};
use tiro_base::scope::AuthorId;
use tiro_digest::tuning::contexts::REPLY;

/// A message with fewer words than this is shown with the message before it. Arbitrary: "Yes, the second one."
const FEW_WORDS: usize = 6;

/// The maximum number of requests that are shown with their last replies. Arbitrary.
const MOST_REQUESTS: usize = 2;

/// Returns whether a message has so few words that it says nothing without the message before it.
pub fn is_short_answer(memory: &Memory) -> bool {
    memory.kind == Kind::Message && memory.text.split_whitespace().take(FEW_WORDS).count() < FEW_WORDS
}

/// Adds the messages before the short answers `answers`, as long as they fit. `known` are the messages that have their
/// own place.
pub async fn add_questions(
    project: &OpenProject,
    asked: &ContextRequest,
    answers: &[Memory],
    known: &HashSet<MemoryKey>,
    room: Room,
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<()> {
    if answers.is_empty() || filling.is_full() {
        return Ok(());
    }
    let keys = answers.iter().map(|answer| answer.key).collect();
    let (mut questions, _) = project.store.beside(&asked.scope, keys, None).await?;
    questions.retain(|memory| !known.contains(&memory.key) && !chosen.shows(memory.key));
    questions.retain(|memory| answers.iter().any(|answer| is_right_before(memory, answer)));
    for memory in &questions {
        add((memory, &asked.scope.reader), room.most(memory.role, memory.tokens), filling, chosen);
    }
    Ok(())
}

/// Adds the last reply to each of the first `requests`, which are messages of a user. What an assistant says last
/// before the user's next message is what came of the request.
pub async fn add_last_replies(
    project: &OpenProject,
    asked: &ContextRequest,
    requests: &[Memory],
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<()> {
    let (store, scope) = (project.store.as_ref(), &asked.scope);
    for request in requests.iter().take(MOST_REQUESTS) {
        let (Some(session), Some(ordinal)) = (&request.session, request.ordinal) else { continue };
        let rows = store.session_messages(scope, session, ordinal + 1).await?;
        let replies = rows.iter().take_while(|row| row.role != Some(Role::User));
        let Some(last) = replies.filter(|row| row.role == Some(Role::Assistant)).last() else { continue };
        if filling.is_full() || chosen.shows(last.key) {
            continue;
        }
        for memory in store.memories(scope, vec![last.key]).await? {
            add((&memory, &asked.scope.reader), REPLY, filling, chosen);
        }
    }
    Ok(())
}

/// Adds a message with at most `most` tokens of its text, or fewer if there is less room.
fn add((memory, reader): (&Memory, &AuthorId), most: usize, filling: &mut Filling, chosen: &mut Chosen) {
    let Some(session) = &memory.session else { return };
    let first = chosen.live.iter().find(|passage| passage.place.1 == session.as_str());
    let first = first.map_or(memory.time, |passage| passage.place.0);
    let at_most = |most: usize| {
        let mut passage = remembered(Part::Relevant, session, (memory, reader), 0..memory.text.len(), most);
        passage.place.0 = first;
        passage.shows = Some(Shown::of(memory));
        passage
    };
    filling.add(chosen, at_most(most), |left| Some(at_most(left.min(most))));
}

/// Returns whether `memory` is the message right before `answer` in the same session.
fn is_right_before(memory: &Memory, answer: &Memory) -> bool {
    memory.session == answer.session
        && memory.ordinal.zip(answer.ordinal).is_some_and(|(before, after)| before + 1 == after)
}
