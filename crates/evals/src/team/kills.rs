//! Whether an acknowledged write is lost when replicas and the database are killed.
//!
//! Users write without a pause. Now and then, a replica is killed and started again, or a command that the caller names
//! kills the database and starts it again. A write without an answer is repeated, as a client does. Every text has a
//! mark of its own. At the end, the mark of each acknowledged write must be in the database exactly once, and a search of
//! its author must find it.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::Sizes;
use super::ground::{Ground, names};
use super::http::{Caller, Kinds};
use crate::client::{Tiro, run_to_end};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Report, percentile};

/// How long a write is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the database may take to be started again.
const RESTART: Duration = Duration::from_secs(120);

/// How many users write.
const WRITERS: usize = 6;

/// What was seen of the writes.
#[derive(Default)]
struct Seen {
    /// The marks of acknowledged writes, each with the number of its author.
    acknowledged: Vec<(usize, String)>,
    given_up: usize,
    repeated: usize,
    kinds: Kinds,
    milliseconds: Vec<f64>,
}

/// Measures, and adds the figures. `restart` is the command that kills the database and starts it again. If no kill hits
/// a write, there are more of them.
pub fn measure(
    sizes: &Sizes,
    restart: Option<&str>,
    url: &str,
    tiro: &Tiro,
    report: &mut Report,
) -> Result<()> {
    let ground = Ground::new("kills", url, tiro)?;
    if restart.is_some() && ground.database()?.texts("SHOW fsync")? != ["on"] {
        bail!(
            "the database doesn't sync its writes (fsync is off), so it may lose them: start it with DURABLE=1"
        );
    }
    let callers = ground.callers(&names(WRITERS))?;
    let mut replicas = ground.replicas(sizes.replicas)?;
    let ports: Vec<AtomicU16> = replicas.iter().map(|replica| AtomicU16::new(replica.port)).collect();
    let (seen, is_over) = (Mutex::new(Seen::default()), AtomicBool::new(false));
    let corpus = Corpus::new(sizes.seed);
    let mut random = Random::new(sizes.seed);
    let (kills, restarts) = std::thread::scope(|scope| {
        for (number, caller) in callers.iter().enumerate() {
            let (seen, is_over, ports, corpus) = (&seen, &is_over, &ports, &corpus);
            scope.spawn(move || write(number, caller, ports, corpus, is_over, seen));
        }
        let mut kill = || {
            let (mut kills, mut restarts) = (0, Vec::new());
            for number in 0..3 * sizes.kills {
                let is_hit = seen.lock().expect("no holder panics").kinds.of("no answer") > 0;
                if number >= sizes.kills && is_hit {
                    break;
                }
                kills += 1;
                std::thread::sleep(Duration::from_secs_f64(0.2 + 0.8 * random.unit()));
                let which = number % replicas.len();
                replicas[which].kill();
                replicas[which] = ground.replica(ports[which].load(Ordering::Relaxed))?;
                let Some(command) = restart.filter(|_| number < sizes.kills) else { continue };
                std::thread::sleep(Duration::from_secs_f64(0.2 + 0.8 * random.unit()));
                let began = Instant::now();
                run_restart(command)?;
                restarts.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            // The writers end with writes that no kill disturbs.
            std::thread::sleep(Duration::from_secs(1));
            anyhow::Ok((kills, restarts))
        };
        let done = kill();
        is_over.store(true, Ordering::Relaxed);
        done
    })?;
    let seen = seen.into_inner().expect("no holder panics");
    report.add("kills of a replica under writes", f64::from(kills), "");
    report.add("kills of the database under writes", restarts.len() as f64, "");
    if !restarts.is_empty() {
        report.add("  until it was started again, p50", percentile(&restarts, 0.5), "ms");
    }
    report.add("acknowledged writes", seen.acknowledged.len() as f64, "");
    report.add("  repeated, since the first had no answer", seen.repeated as f64, "");
    report.add("  p99", percentile(&seen.milliseconds, 0.99), "ms");
    if seen.acknowledged.is_empty() || (sizes.kills > 0 && seen.repeated == 0) {
        bail!("nothing was written, or no kill hit a write: nothing was tested");
    }
    report.must_be_zero("writes given up", seen.given_up);
    look_up(&ground, &callers, &seen, report)?;
    super::add_kinds(report, &seen.kinds);
    Ok(())
}

fn run_restart(command: &str) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    let (status, _, stderr) = run_to_end(shell, RESTART)?;
    if !status.success() {
        bail!("the command that restarts the database ended with {status}: {}", stderr.trim());
    }
    Ok(())
}

/// Writes until the kills are over.
fn write(
    number: usize,
    caller: &Caller,
    ports: &[AtomicU16],
    corpus: &Corpus,
    is_over: &AtomicBool,
    seen: &Mutex<Seen>,
) {
    let mut random = Random::new(number as u64);
    for count in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mark = format!("mark{number}x{count}");
        let text = format!("{mark} {}", corpus.text(count, number, 20));
        let arguments = json!({"text": text, "type": "fact"});
        let began = Instant::now();
        let mut tries = 0;
        let is_acknowledged = loop {
            let port = random.pick(ports).load(Ordering::Relaxed);
            let outcome = caller.call(port, "store_memory", arguments.clone(), PATIENCE);
            seen.lock().expect("no holder panics").kinds.add(&outcome);
            tries += 1;
            if outcome.result().is_some() {
                break true;
            }
            if began.elapsed() > PATIENCE {
                break false;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut seen = seen.lock().expect("no holder panics");
        seen.repeated += usize::from(tries > 1);
        match is_acknowledged {
            true => {
                seen.acknowledged.push((number, mark));
                seen.milliseconds.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            false => seen.given_up += 1,
        }
    }
}

/// Looks up every acknowledged write, in the database and by a search. The search is by words alone, because a mark means
/// nothing: with a model, other texts may be as near to it.
fn look_up(ground: &Ground, callers: &[Caller], seen: &Seen, report: &mut Report) -> Result<()> {
    let replica = ground.replica_without_model()?;
    let texts = ground
        .database()?
        .texts("SELECT split_part(text, ' ', 1) FROM tiro.memories WHERE tombstoned_at IS NULL")
        .context("reading what was stored")?;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    texts.iter().for_each(|mark| *counts.entry(mark.as_str()).or_default() += 1);
    let count = |mark: &str| counts.get(mark).copied().unwrap_or(0);
    let lost = seen.acknowledged.iter().filter(|(_, mark)| count(mark) == 0).count();
    let twice = counts.values().filter(|count| **count > 1).count();
    let is_found = |(number, mark): &&(usize, String)| {
        let arguments = json!({"query": mark, "k": 3});
        let outcome = callers[*number].insist(replica.port, "search_project_memory", &arguments, PATIENCE);
        outcome.structured()["hits"].to_string().contains(&format!("{mark} "))
    };
    let unfound = seen.acknowledged.iter().filter(|write| !is_found(write)).count();
    report.must_be_zero("acknowledged writes lost", lost);
    report.must_be_zero("writes stored twice", twice);
    report.must_be_zero("acknowledged writes that a search doesn't find", unfound);
    Ok(())
}
