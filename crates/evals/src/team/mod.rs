//! `evals team`: what a team server promises, with the real program over HTTP, several replicas and PostgreSQL.
//!
//! Each part has a database of its own on the server that `--database` names, which is removed at the end. The user of
//! the address must be a superuser, and the server one for tests. Users and keys are made by `tiro user add`.

mod database;
mod fill;
mod ground;
mod http;
mod isolation;
mod kills;
mod latency;
mod many;
mod mixed;
mod parity;
mod synced;
mod walls;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;

use self::http::Kinds;
use self::synced::{offline, volume};
use crate::client::Tiro;
use crate::stats::Report;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Measure little, within two minutes
    #[arg(long)]
    short: bool,
    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// Command that kills the database and starts it again; without it, only replicas are killed
    #[arg(long, value_name = "COMMAND")]
    restart_database: Option<String>,
    /// Memories of all users together
    #[arg(long)]
    memories: Option<usize>,
    /// Users who search, and who work at the same time
    #[arg(long)]
    owners: Option<usize>,
    /// Replicas
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// Databases over which the users who search are spread
    #[arg(long, default_value_t = 1)]
    databases: usize,
    /// Searches for each second
    #[arg(long)]
    rate: Option<f64>,
    /// How long searches and mixed calls last, in seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// How often a replica, and the database, is killed
    #[arg(long)]
    kills: Option<usize>,
    /// Memories of a machine that exchanges them
    #[arg(long)]
    machine_memories: Option<usize>,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Searches at a fixed rate, and how much a memory takes
    Latency,
    /// All kinds of calls at the same time
    Mixed,
    /// Kills under writes
    Kills,
    /// Texts of others in answers, and the row security alone
    Isolation,
    /// The answers of both engines
    Parity,
    /// The memory of a replica that many users called
    Many,
    /// Time and memory of exchanging many memories
    Sync,
    /// The answers of two machines of one person that worked without a network
    Machines,
}

/// How much is measured.
struct Sizes {
    memories: usize,
    owners: usize,
    replicas: usize,
    databases: usize,
    rate: f64,
    seconds: u64,
    /// The mean pause between two calls of a user in the mixed work, in seconds.
    pause: f64,
    kills: usize,
    /// Random calls of each user in each project.
    calls: usize,
    /// Messages and questions for both engines.
    messages: usize,
    compared: usize,
    /// Questions to two machines.
    questions: usize,
    /// Users and projects of one replica.
    callers: usize,
    projects: usize,
    /// Memories of a machine that exchanges them.
    machine: usize,
    /// Weeks that two machines work without a network.
    weeks: usize,
    seed: u64,
}

impl Args {
    fn sizes(&self) -> Sizes {
        let or = |given: Option<usize>, short, long| given.unwrap_or(if self.short { short } else { long });
        let seconds = if self.short { 8 } else { 120 };
        Sizes {
            memories: or(self.memories, 4000, 300_000),
            owners: or(self.owners, 20, 200),
            replicas: self.replicas.max(1),
            databases: self.databases.max(1),
            rate: self.rate.unwrap_or(if self.short { 10.0 } else { 30.0 }),
            seconds: self.seconds.unwrap_or(seconds),
            pause: 2.0,
            kills: or(self.kills, 3, 50),
            calls: or(None, 60, 3000),
            messages: or(None, 600, 20_000),
            compared: or(None, 50, 5000),
            questions: or(None, 50, 1000),
            callers: or(None, 30, 1000),
            projects: or(None, 60, 2000),
            machine: or(self.machine_memories, 2000, 100_000),
            weeks: or(None, 2, 6),
            seed: self.seed,
        }
    }
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let named = tiro.environment.iter().find(|(name, _)| name == "TIRO_DATABASE");
    let (_, url) = named.context("name a server of PostgreSQL by --database, as a superuser")?;
    let (sizes, mut report) = (args.sizes(), Report::default());
    let is_wanted = |part| args.parts.is_empty() || args.parts.contains(&part);
    let (mut leaks, mut different, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for part in Part::value_variants().iter().copied().filter(|part| is_wanted(*part)) {
        eprint!("{part:?}... ");
        let began = Instant::now();
        let done = match part {
            Part::Latency => latency::measure(&sizes, url, tiro, &mut report),
            Part::Mixed => mixed::measure(&sizes, url, tiro, &mut report),
            Part::Kills => kills::measure(&sizes, args.restart_database.as_deref(), url, tiro, &mut report),
            Part::Isolation => isolation::measure(&sizes, url, tiro, &mut report).map(|found| leaks = found),
            Part::Parity => parity::measure(&sizes, url, tiro, &mut report).map(|found| different = found),
            Part::Many => many::measure(&sizes, url, tiro, &mut report),
            Part::Machines => offline::measure(&sizes, url, tiro, &mut report).map(|found| apart = found),
            Part::Sync => volume::measure(&sizes, url, tiro, &mut report),
        };
        done.with_context(|| format!("measuring the part {part:?}"))?;
        eprintln!("{:.1} s", began.elapsed().as_secs_f64());
    }
    for leak in leaks.iter().chain(&different).chain(&apart).take(3) {
        eprintln!("{leak:#}");
    }
    report.detail = json!({"short": args.short, "seed": args.seed, "leaks": leaks, "different": different, "apart": apart});
    Ok(report)
}

/// Adds how often each kind of error was seen.
fn add_kinds(report: &mut Report, kinds: &Kinds) {
    for (kind, count) in kinds.0.iter().filter(|(kind, _)| *kind != "ok") {
        report.add(format!("  answered with: {kind}"), *count as f64, "");
    }
}
