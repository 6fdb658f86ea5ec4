//! Marks the notes of a context that name code which changed, or which is gone, since they were made.

use crate::assembly::passages::{Chosen, Passage, cost, with_mark};
use crate::caller::Caller;
use crate::engine::Engine;
use tiro_digest::context::render;
use tiro_intake::{Capture, Freshness, Subject};

/// Marks the passages that depend on the question and show such notes. The other passages stay the same until a segment
/// closes, so they are not marked. Returns false if there was no time to compare everything with git.
pub async fn mark(engine: &Engine, caller: &Caller, chosen: &mut Chosen) -> bool {
    let subject = |passage: &Passage| passage.shows.as_ref()?.subject.clone();
    let subjects: Vec<Subject> = chosen.live.iter().filter_map(subject).collect();
    if subjects.is_empty() {
        return true;
    }
    let named = chosen.live.iter_mut().filter(|passage| subject(passage).is_some());
    let standing = caller.capture(engine).standing(subjects).await;
    let mut is_known = true;
    for (passage, standing) in named.zip(standing) {
        match standing.freshness {
            Freshness::Gone | Freshness::FileChanged if !standing.names.is_empty() => {
                let is_gone = standing.freshness == Freshness::Gone;
                passage.line = with_mark(&passage.line, &render::stale(is_gone, &standing.names));
                passage.cost = cost(&passage.line);
            }
            Freshness::Unknown => is_known = false,
            _ => {}
        }
    }
    is_known
}
