//! How long a search takes over HTTP, at a fixed rate of calls from many users over several replicas.
//!
//! Calls begin at fixed times, whether or not earlier ones were answered, and the time counts from the moment at which a
//! call should have begun. So a replica that stalls makes all calls late that fall into the stall.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::Sizes;
use super::fill;
use super::ground::{Ground, names};
use super::http::Kinds;
use crate::client::Tiro;
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, percentile};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many calls may be open at the same time, over all replicas. More would be refused.
const OPEN: usize = 160;

/// How many calls warm the replicas up.
const WARM: usize = 30;

/// What was seen of the calls.
#[derive(Default)]
struct Seen {
    milliseconds: Vec<f64>,
    kinds: Kinds,
    without_hits: usize,
}

/// Measures, and adds the figures.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let ground = Ground::with_databases(sizes.databases, "latency", url, tiro)?;
    let mut callers = ground.callers(&names(sizes.owners))?;
    let replicas = ground.replicas(sizes.replicas)?;
    let corpus = Corpus::new(sizes.seed);
    let each = sizes.memories.div_ceil(sizes.owners);
    let began = Instant::now();
    let databases = ground.spread(&callers)?;
    for ((database, path), callers) in
        databases.iter().zip(callers.chunks_mut(sizes.owners.div_ceil(databases.len())))
    {
        callers.iter_mut().for_each(|caller| caller.path.clone_from(path));
        fill::fill(database, &replicas[0], callers, each, &corpus, tiro.has_model())?;
    }
    report.add("databases", databases.len() as f64, "");
    report.add("memories", (each * sizes.owners) as f64, "");
    report.add("  of users", sizes.owners as f64, "");
    report.add("  filled in", began.elapsed().as_secs_f64(), "s");
    fill::sizes(&databases[0].0, report)?;

    let count = (sizes.rate * sizes.seconds as f64) as usize;
    let (ticket, seen) = (AtomicUsize::new(0), Mutex::new(Seen::default()));
    let ask = |index: usize| {
        let caller = &callers[index * 7 % callers.len()];
        let port = replicas[index % replicas.len()].port;
        let arguments = json!({"query": corpus.query(index, each), "k": 10});
        caller.call(port, "search_project_memory", arguments, PATIENCE)
    };
    (0..WARM).for_each(|index| drop(ask(count + index)));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..OPEN.min(count) {
            scope.spawn(|| {
                loop {
                    let index = ticket.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let due = start + Duration::from_secs_f64(index as f64 / sizes.rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let outcome = ask(index);
                    let elapsed = due.elapsed().as_secs_f64() * 1000.0;
                    let mut seen = seen.lock().expect("no holder panics");
                    seen.kinds.add(&outcome);
                    let hits = outcome.structured()["hits"].as_array().map_or(0, Vec::len);
                    seen.without_hits += usize::from(hits == 0);
                    seen.milliseconds.push(elapsed);
                }
            });
        }
    });
    let seen = seen.into_inner().expect("no holder panics");
    report.add("searches over HTTP", count as f64, "");
    report.add("  for each second", count as f64 / start.elapsed().as_secs_f64(), "");
    report.aim("  p50", percentile(&seen.milliseconds, 0.50), "ms", Goal::AtMost(60.0));
    report.aim("  p99", percentile(&seen.milliseconds, 0.99), "ms", Goal::AtMost(300.0));
    report.add("  max", percentile(&seen.milliseconds, 1.0), "ms");
    report.must_be_zero("  not answered", count - seen.kinds.of("ok"));
    report.add("  without a hit", seen.without_hits as f64, "");
    super::add_kinds(report, &seen.kinds);
    Ok(())
}
