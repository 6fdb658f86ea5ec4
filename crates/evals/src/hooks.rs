//! `evals hooks`: how much time hooks add to a client that runs them, and to `git commit`.
//!
//! The hook is started as its client starts it, as a process with a payload on its stdin, and timed, once with an
//! intact store and once with broken ones. It must always end with status 0 and print nothing. Then commits are made
//! alternately in two equal repositories, one of which has the hook that `tiro init` writes. After each commit, a
//! running server is at once asked for it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::calls::path_text;
use crate::client::{Era, Place, Tiro};
use crate::peer;
use crate::stats::{Goal, Report, median, percentile};
use crate::talk::{Repo, Session, feed};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Runs of the hook in each state of the store
    #[arg(long, default_value_t = 300)]
    runs: usize,
    /// Commits with the hook, and as many without
    #[arg(long, default_value_t = 100)]
    commits: usize,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let place = Place::create(&root)?;
    let repo = Repo::create(&place.project)?;
    repo.append("a.txt", "a\n")?;
    repo.commit(0, &["a.txt".into()], "Begin")?;
    tiro.run(&place, &["import", "git"], crate::calls::LONG)?;
    let session = Session::new(&place.home(), 1, &repo.path, "main")?;
    session.say(1_700_000_000, "user", "why does it rattle?")?;

    let mut report = Report::default();
    let mut wrong = 0;
    let mut rounds = Vec::new();
    for (name, state) in states(&place, &root)? {
        let mut milliseconds = Vec::with_capacity(args.runs);
        let mut unheard = 0;
        let writers = if state.is_locked { lock(&state.place)? } else { Vec::new() };
        for _ in 0..args.runs.max(1) {
            let run = state.once(tiro, &session)?;
            milliseconds.push(run.milliseconds);
            wrong += usize::from(!run.is_quiet);
            unheard += usize::from(state.leaves && !run.has_left);
        }
        drop(writers);
        report.add(format!("hook, {name}, p50"), percentile(&milliseconds, 0.50), "ms");
        report.aim(format!("hook, {name}, p99"), percentile(&milliseconds, 0.99), "ms", Goal::AtMost(100.0));
        if state.leaves {
            report.add(format!("hook, {name}: given up in time, nothing left"), unheard as f64, "");
        }
        rounds.push(json!({"state": name, "ms": milliseconds}));
    }
    report.must_be_zero("hooks that failed or spoke", wrong);
    let pointer = pointer(tiro, &place, &session, &root)?;
    report.aim("pointer at the beginning of a session", pointer, "tokens", Goal::AtMost(150.0));
    let commits = commits(args, tiro, &place, &repo, &root, &mut report)?;
    report.detail = json!({"hooks": rounds, "commits": commits});
    Ok(report)
}

/// A state of the store when a hook runs.
struct State {
    place: Place,
    /// Whether the hook can write to the spool.
    leaves: bool,
    is_absent: bool,
    is_full: bool,
    is_locked: bool,
}

struct Run {
    milliseconds: f64,
    is_quiet: bool,
    has_left: bool,
}

/// Returns the states, each with its name.
fn states(place: &Place, root: &Path) -> Result<Vec<(&'static str, State)>> {
    let state = |data_dir: &Path, leaves| State {
        place: Place { data_dir: data_dir.to_owned(), project: place.project.clone() },
        leaves,
        is_absent: false,
        is_full: false,
        is_locked: false,
    };
    let broken = root.join("broken");
    std::fs::create_dir_all(&broken)?;
    std::fs::write(broken.join("owner.db"), "no database ".repeat(1000))?;
    std::fs::write(broken.join("spool"), "no folder")?;
    Ok(vec![
        ("store idle", state(&place.data_dir, true)),
        ("data directory absent", State { is_absent: true, ..state(&root.join("absent"), true) }),
        ("data directory broken", state(&broken, false)),
        ("disk full", State { is_full: true, ..state(&place.data_dir, false) }),
        ("store locked by a writer", State { is_locked: true, ..state(&place.data_dir, true) }),
    ])
}

/// Returns connections that keep the databases of `place` locked until they are dropped.
fn lock(place: &Place) -> Result<Vec<Connection>> {
    let mut stores = vec![place.data_dir.join("owner.db")];
    for project in std::fs::read_dir(place.data_dir.join("projects"))? {
        stores.push(project?.path().join("tiro.db"));
    }
    let held = |store| -> Result<Connection> {
        let connection = Connection::open(store)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(connection)
    };
    stores.into_iter().map(held).collect()
}

impl State {
    fn once(&self, tiro: &Tiro, session: &Session) -> Result<Run> {
        if self.is_absent && self.place.data_dir.exists() {
            std::fs::remove_dir_all(&self.place.data_dir)?;
        }
        let spool = self.place.data_dir.join("spool");
        if spool.is_dir() {
            std::fs::remove_dir_all(&spool)?;
        }
        let mut command = tiro.command(&self.place, &["hook", "claude-code"]);
        if self.is_full {
            // The file size limit is 0, and the signal for exceeding it is ignored, so that writing fails as on a full
            // disk.
            let ours = command;
            command = Command::new("sh");
            command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(ours.get_program());
            command.args(ours.get_args());
            command.current_dir(&self.place.project);
            command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
            for (name, _) in ours.get_envs().filter(|(_, value)| value.is_none()) {
                command.env_remove(name);
            }
        }
        let started = Instant::now();
        let output = feed(command, &session.payload("Stop"))?;
        let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
        let is_quiet = output.status.success() && output.stdout.is_empty() && output.stderr.is_empty();
        let folders = std::fs::read_dir(&spool).into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok()).flatten().flatten();
        let has_left = files.into_iter().any(|file| file.path().extension().is_some_and(|it| it == "json"));
        Ok(Run { milliseconds, is_quiet, has_left })
    }
}

/// Returns how many tokens the model gets when a session begins.
fn pointer(tiro: &Tiro, place: &Place, session: &Session, root: &Path) -> Result<f64> {
    // The text also says how much is remembered by now.
    let mut server = tiro.serve(place, Era::Session)?;
    session.hook(tiro, place)?;
    crate::calls::search(&mut server, "rattle", 5)?;
    server.close()?;
    for _ in 0..100 {
        let output = feed(tiro.command(place, &["hook", "claude-code"]), &session.payload("SessionStart"))?;
        let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        let text = answer["hookSpecificOutput"]["additionalContext"].as_str();
        let text = text.with_context(|| format!("no pointer in {answer}"))?;
        let (file, list) = (root.join("pointer.txt"), root.join("files.txt"));
        std::fs::write(&file, text)?;
        std::fs::write(&list, format!("{}\n", file.display()))?;
        let counted = peer::bench(tiro, place, &["tokens", "--files", path_text(&list)?, "--rounds", "1"])?;
        return peer::numbers(&counted, "counts").first().copied().context("nothing was counted");
    }
    bail!("the hook of the beginning of a session says nothing")
}

/// Makes commits alternately with the hook and without it, and asks a server for each of them.
fn commits(
    args: &Args,
    tiro: &Tiro,
    place: &Place,
    repo: &Repo,
    root: &Path,
    report: &mut Report,
) -> Result<Value> {
    let plain = Repo::create(&root.join("plain"))?;
    tiro.run(place, &["init", "--yes", "--no-backfill"], crate::calls::LONG)?;
    if !repo.path.join(".git/hooks/post-commit").is_file() {
        bail!("`tiro init` wrote no hook");
    }
    let mut server = tiro.serve(place, Era::Session)?;
    crate::calls::search(&mut server, "begin", 5)?;
    let (mut with, mut without, mut found_after) = (Vec::new(), Vec::new(), Vec::new());
    let mut missing = 0;
    for round in 0..args.commits.max(1) {
        let subject = format!("Turn the crank{round}x once more");
        let one = |repo: &Repo| -> Result<f64> {
            repo.append("crank.txt", &format!("{round}\n"))?;
            repo.git(0, &["add", "crank.txt"])?;
            let mut command = repo.command(0, &["commit", "--quiet", "-m", &subject]);
            // The hook finds its memory through the environment of `git commit`.
            command.env("TIRO_DATA_DIR", &place.data_dir).env("HOME", place.home());
            let started = Instant::now();
            let output = command.output().context("starting `git`")?;
            let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
            if !output.status.success() || !output.stderr.is_empty() {
                bail!("`git commit` said: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(milliseconds)
        };
        // Which repository comes first alternates too.
        if round % 2 == 0 {
            without.push(one(&plain)?);
        }
        with.push(one(repo)?);
        let started = Instant::now();
        let answer = crate::calls::search(&mut server, &subject, 5)?;
        found_after.push(started.elapsed().as_secs_f64() * 1000.0);
        let is_found = answer.hits().iter().any(|hit| hit["text"].as_str().unwrap_or("").contains(&subject));
        missing += usize::from(!is_found);
        if round % 2 == 1 {
            without.push(one(&plain)?);
        }
    }
    report.add("git commit without the hook, median", median(&without), "ms");
    report.aim("more with it, median", median(&with) - median(&without), "ms", Goal::AtMost(10.0));
    report.must_be_zero("commits that the next call did not find", missing);
    report.add("commit to found by the next call, p50", percentile(&found_after, 0.50), "ms");
    let slowest = percentile(&found_after, 1.0);
    report.aim("commit to found by the next call, max", slowest, "ms", Goal::AtMost(1000.0));
    Ok(json!({"with_ms": with, "without_ms": without, "found_ms": found_after}))
}
