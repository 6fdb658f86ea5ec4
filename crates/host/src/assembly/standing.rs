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
use tiro_base::scope::AuthorId;
use tiro_digest::context::facts::is_standing;
use tiro_digest::statements::stems;
use tiro_digest::tuning::contexts::{PASSAGE, STANDING_SHARE};

/// The latest notes of a project that are read. Arbitrary: far more than a context shows.
const MOST_READ: usize = 300;

/// The heading above the user's instructions.
const HEAD: &str = "[what the user wants]\n";

/// The heading above instructions that others shared, each of which names its author.
const HEAD_OF_OTHERS: &str = "[what others want]\n";

/// Returns the passages of standing instructions and preferences: the user's own, then those that others shared. Those
/// that share words with the question come first, then the latest. Together they take at most [`STANDING_SHARE`] of the
/// budget. Superseded ones are marked later, with the other passages. Also returns their memories.
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
    let is_others = |memory: &Memory| memory.author != scope.reader;
    own.sort_by_cached_key(|memory| {
        (is_others(memory), Reverse(shared(memory)), Reverse(memory.time), memory.id.clone())
    });
    let mut known: HashSet<String> = HashSet::new();
    own.retain(|memory| known.insert(memory.text.to_lowercase()));
    let mut budget = Budget::new((asked.budget as f64 * STANDING_SHARE) as usize);
    let mut passages: Vec<Passage> = Vec::new();
    own.retain(|memory| {
        let passage = passage(memory, &scope.reader, passages.len());
        let is_headed = passages.last().is_some_and(|last| last.head == passage.head);
        let head = if is_headed { 0 } else { cost(&passage.head) };
        let fits = budget.spend(passage.cost + head);
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

/// Returns the passage that shows `reader` a standing instruction. `number` instructions come before it.
fn passage(memory: &Memory, reader: &AuthorId, number: usize) -> Passage {
    let line = fact_line(memory, reader, PASSAGE);
    let place = (Millis::MIN, String::new(), i64::MIN + 1_000 + number as i64);
    Passage {
        part: Part::Facts,
        head: if memory.author == *reader { HEAD } else { HEAD_OF_OTHERS }.to_owned(),
        place,
        cost: cost(&line),
        line,
        shows: Some(Shown::of(memory)),
    }
}
