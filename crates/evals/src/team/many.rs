//! How much memory and time a replica takes that many users called in many projects.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::Sizes;
use super::ground::{Ground, names};
use super::http::{Caller, Kinds};
use crate::calls::path_text;
use crate::client::Tiro;
use crate::stats::{Goal, Report, percentile};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many users call at the same time.
const AT_ONCE: usize = 8;

/// How long a replica is watched that nobody calls, in seconds.
const IDLE: f64 = 10.0;

/// Measures, and adds the figures.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let ground = Ground::new("many", url, tiro)?;
    let callers = ground.callers(&names(sizes.callers))?;
    // The first command makes the tables.
    let begin = ["add", "A project begins.", "--project", path_text(&ground.place.project)?];
    ground.tiro.run(&ground.place, &begin, PATIENCE)?;
    register(&ground, sizes.projects)?;
    let replica = ground.replica(0)?;
    let first = callers.first().context("there are users")?;
    first.insist(replica.port, "search_project_memory", &json!({"query": "anything"}), PATIENCE);
    let before = (replica.resident_mib(), replica.processor_seconds());
    let calls = sizes.callers.max(sizes.projects);
    let seen: Vec<(Kinds, Vec<f64>)> = std::thread::scope(|scope| {
        let work = |worker: usize| {
            let (callers, port) = (&callers, replica.port);
            scope.spawn(move || {
                let (mut kinds, mut milliseconds) = (Kinds::default(), Vec::new());
                for number in (worker..calls).step_by(AT_ONCE) {
                    let path = format!("/mcp/{:016x}", number % sizes.projects + 1);
                    let caller = Caller { path, ..callers[number % callers.len()].clone() };
                    let began = std::time::Instant::now();
                    let arguments = json!({"query": "what was decided about the harbor"});
                    kinds.add(&caller.insist(port, "search_project_memory", &arguments, PATIENCE));
                    milliseconds.push(began.elapsed().as_secs_f64() * 1000.0);
                }
                (kinds, milliseconds)
            })
        };
        let workers: Vec<_> = (0..AT_ONCE).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let milliseconds: Vec<f64> = seen.iter().flat_map(|(_, milliseconds)| milliseconds.clone()).collect();
    let after = (replica.resident_mib(), replica.processor_seconds());
    std::thread::sleep(Duration::from_secs_f64(IDLE));
    let idle = replica.processor_seconds();
    let (Some(resident), Some(grown)) = (before.0, after.0) else { bail!("there is no /proc to read") };
    report.add("users who called one replica", callers.len() as f64, "");
    report.add("projects in which they called", sizes.projects as f64, "");
    let failed: usize = seen.iter().map(|(kinds, _)| kinds.all() - kinds.of("ok")).sum();
    report.must_be_zero("  calls without an answer", failed);
    report.add("  first search of a user in a project, p50", percentile(&milliseconds, 0.5), "ms");
    report.add("  resident memory before", resident, "MiB");
    report.aim("  resident memory after", grown, "MiB", Goal::AtMost(400.0));
    let used = |later: Option<f64>, earlier: Option<f64>| Some(later? - earlier?);
    let share = 100.0 * used(idle, after.1).unwrap_or(f64::NAN) / IDLE;
    report.aim("  processor while nobody calls", share, "% of a core", Goal::AtMost(10.0));
    if let Some((kinds, _)) = seen.iter().find(|(kinds, _)| kinds.all() > kinds.of("ok")) {
        super::add_kinds(report, kinds);
    }
    Ok(())
}

/// Registers projects with the ids 1, 2, ..., each with a directory, and shares them with all users.
fn register(ground: &Ground, count: usize) -> Result<()> {
    let database = ground.database()?;
    let tenant = database.texts("SELECT DISTINCT tenant FROM tiro.projects")?;
    let [tenant] = &tenant[..] else { bail!("one owner has projects, not {}", tenant.len()) };
    let root = ground.directory("projects")?;
    for number in 1..=count {
        std::fs::create_dir_all(root.join(format!("p{number}")))?;
    }
    let root = path_text(&root)?;
    database.run(&format!(
        "INSERT INTO tiro.teams (tenant, name, made) VALUES ('{tenant}', 'everybody', 0);
         INSERT INTO tiro.team_members (tenant, team, username)
             SELECT DISTINCT '{tenant}', 'everybody', name FROM tiro.user_keys;
         INSERT INTO tiro.projects (tenant, id, name, created)
             SELECT '{tenant}', lpad(to_hex(n), 16, '0'), 'p' || n, 0 FROM generate_series(1, {count}) n;
         INSERT INTO tiro.shares (tenant, project, team, may_write, kinds)
             SELECT '{tenant}', lpad(to_hex(n), 16, '0'), 'everybody', true, 'fact' FROM generate_series(1, {count}) n;
         INSERT INTO tiro.places (tenant, path, project, seen)
             SELECT '{tenant}', '{root}/p' || n, lpad(to_hex(n), 16, '0'), 0 FROM generate_series(1, {count}) n"
    ))
}
