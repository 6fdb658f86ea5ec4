//! Whether two machines of one person answer alike that worked without a network and then met.
//!
//! For some weeks, both work on their own. At the end of each week they exchange with the server until nothing is new.
//! Then both are asked the same questions.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::Sizes;
use super::answers::{self, Differences};
use super::week::Worker;
use super::{Crew, Machine};
use crate::calls::{self, path_text};
use crate::client::Tiro;
use crate::corpus::Corpus;
use crate::stats::Report;

/// The kinds that the project shares. Everything else is exchanged privately. A note that is shared doesn't say in which
/// conversation it was made, so where notes are shared, a machine shows them without their session, by design.
const SHARED: &str = "commit";

/// The branch of the repositories.
const BRANCH: &str = "main";

/// How often both machines exchange at most until nothing is new.
const ROUNDS: usize = 6;

/// Measures, and adds the figures. The differences are returned.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<Vec<Value>> {
    let mut crew = Crew::new("machines", SHARED, url, tiro)?;
    let (one, two) = (Machine::new(tiro)?, Machine::new(tiro)?);
    let origin = crew.ground.directory("origin.git")?;
    clone([&one, &two], &origin)?;
    crew.connect(&one)?;
    crew.connect(&two)?;
    let corpus = Corpus::new(sizes.seed);
    let mut workers =
        [Worker::new(&one, "a", &corpus, sizes.seed), Worker::new(&two, "b", &corpus, sizes.seed)];
    let (mut most_rounds, mut unsettled) = (0, 0);
    for week in 0..sizes.weeks {
        crew.stop();
        for worker in &mut workers {
            worker.week(week)?;
        }
        merge([&one, &two])?;
        crew.start()?;
        match settle([&one, &two], tiro)? {
            Some(rounds) => most_rounds = most_rounds.max(rounds),
            None => unsettled += 1,
        }
    }
    let found = answers::compare([&one, &two], sizes.questions, sizes.seed)?;
    add(sizes, &workers, report);
    report.add("  exchanges of both until nothing was new, most", most_rounds as f64, "");
    report.must_be_zero("  weeks after which something was always new", unsettled);
    let Differences { hits, memories, searches, contexts } = found;
    report.add("questions to both machines", sizes.questions as f64, "");
    report.add("  hits", hits as f64, "");
    report.must_be_zero("  memories that only one has, or in another state", memories.len());
    report.must_be_zero("  questions with other hits, order or scores", searches.len());
    report.must_be_zero("  contexts with other lines", contexts.len());
    Ok(memories.into_iter().chain(searches).chain(contexts).collect())
}

/// Adds what was done in the weeks.
fn add(sizes: &Sizes, workers: &[Worker<'_>], report: &mut Report) {
    report.add("weeks that two machines worked without a network", sizes.weeks as f64, "");
    let kinds: std::collections::BTreeSet<&str> =
        workers.iter().flat_map(|worker| worker.done.keys().copied()).collect();
    for kind in kinds {
        let count: usize = workers.iter().filter_map(|worker| worker.done.get(kind)).sum();
        report.add(format!("  {kind}"), count as f64, "");
    }
}

/// Makes the repositories of both machines, with the same first commit.
fn clone(machines: [&Machine; 2], origin: &Path) -> Result<()> {
    calls::git(origin, &["init", "--quiet", "--bare", "--initial-branch", BRANCH])?;
    for machine in machines {
        let repository = &machine.place.project;
        calls::git(repository, &["init", "--quiet", "--initial-branch", BRANCH])?;
        calls::git(repository, &["remote", "add", "origin", path_text(origin)?])?;
        for (key, value) in [("user.name", "Ana"), ("user.email", "ana@example.org")] {
            calls::git(repository, &["config", key, value])?;
        }
    }
    let [one, two] = machines.map(|machine| &machine.place.project);
    calls::git(one, &["commit", "--quiet", "--allow-empty", "-m", "Begin"])?;
    calls::git(one, &["push", "--quiet", "origin", BRANCH])?;
    calls::git(two, &["pull", "--quiet", "origin", BRANCH])?;
    Ok(())
}

/// Merges the commits of both machines. Their files have different names, so nothing conflicts.
fn merge([one, two]: [&Machine; 2]) -> Result<()> {
    calls::git(&one.place.project, &["push", "--quiet", "origin", BRANCH])?;
    calls::git(&two.place.project, &["pull", "--quiet", "--no-rebase", "--no-edit", "origin", BRANCH])?;
    calls::git(&two.place.project, &["push", "--quiet", "origin", BRANCH])?;
    calls::git(&one.place.project, &["pull", "--quiet", "--ff-only", "origin", BRANCH])?;
    Ok(())
}

/// Lets both machines do what is left to do, and exchange until nothing is new for either. Returns how often they
/// exchanged, or `None` if something was always new.
fn settle(machines: [&Machine; 2], tiro: &Tiro) -> Result<Option<usize>> {
    for round in 1..=ROUNDS {
        let mut is_new = false;
        for machine in machines {
            if tiro.has_model() {
                calls::index(&machine.tiro, &machine.place).context("summarising and embedding")?;
            }
            let answer = machine.sync()?.answer;
            let count = |way: &str, what: &str| answer[way][what].as_u64().unwrap_or(0);
            is_new |= ["sent", "received"].iter().any(|way| count(way, "added") + count(way, "changed") > 0);
        }
        if !is_new {
            return Ok(Some(round));
        }
    }
    Ok(None)
}
