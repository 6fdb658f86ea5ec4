//! The user's standing instructions and preferences, with which a context begins.
//!
//! They hold whatever the question is, so a search finds few of them. Other decisions are left to the search. Only what
//! the user said counts: nothing from a file, a tool or a model.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::assembly::ContextRequest;
use crate::assembly::passages::{Part, Passage, Shown, cost, fact_line};
use crate::project::OpenProject;
use tiro_base::budget::Budget;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, Millis, Provenance, Role};
use tiro_digest::context::facts::is_standing;
use tiro_digest::statements::stems;
use tiro_digest::tuning::contexts::{PASSAGE, STANDING_SHARE};

/// The latest notes of a project that are read. Arbitrary: far more than a context shows.
const MOST_READ: usize = 300;

/// The heading above the instructions.
const HEAD: &str = "[what the user wants]\n";

/// Returns the passages of the user's standing instructions and preferences. Those that share words with the question
/// come first, then the latest. Together they take at most [`STANDING_SHARE`] of the budget. Superseded ones are marked
/// later, with the other passages. Also returns their memories.
pub async fn standing(project: &OpenProject, asked: &ContextRequest) -> Result<(Vec<Passage>, Vec<Memory>)> {
    let (store, scope) = (project.store.as_ref(), &asked.scope);
    let filter = Filter {
        kinds: Some(vec![Kind::Decision, Kind::Fact]),
        without: asked.filter.without.clone(),
        ..Filter::default()
    };
    let mut own = store.list(scope, &filter, None, MOST_READ).await?;
    own.retain(is_users);
    let asked_for = stems(&asked.query);
    let shared = |memory: &Memory| stems(&memory.text).intersection(&asked_for).count();
    own.sort_by_cached_key(|memory| (Reverse(shared(memory)), Reverse(memory.time), memory.id.clone()));
    let mut known: HashSet<String> = HashSet::new();
    own.retain(|memory| known.insert(memory.text.to_lowercase()));
    let mut budget = Budget::new((asked.budget as f64 * STANDING_SHARE) as usize);
    if own.is_empty() || !budget.spend(cost(HEAD)) {
        return Ok(Default::default());
    }
    let mut passages: Vec<Passage> = Vec::new();
    own.retain(|memory| {
        let passage = passage(memory, passages.len());
        let fits = budget.spend(passage.cost);
        passages.extend(fits.then_some(passage));
        fits
    });
    Ok((passages, own))
}

/// Returns whether it is a standing instruction or a preference that the user said or stored.
fn is_users(memory: &Memory) -> bool {
    let is_extract = memory.provenance == Provenance::Derived && memory.kind == Kind::Decision;
    let is_said = memory.role == Some(Role::User) && is_extract;
    let is_users = is_said || memory.provenance == Provenance::UserSaid;
    !memory.is_damaged && is_users && is_standing(&memory.text)
}

/// Returns the passage of a standing instruction. `number` instructions come before it.
fn passage(memory: &Memory, number: usize) -> Passage {
    let line = fact_line(memory, PASSAGE);
    let place = (Millis::MIN, String::new(), i64::MIN + 1_000 + number as i64);
    Passage {
        part: Part::Facts,
        head: HEAD.to_owned(),
        place,
        cost: cost(&line),
        line,
        shows: Some(Shown::of(memory)),
    }
}
