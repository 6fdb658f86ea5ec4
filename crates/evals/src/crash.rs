//! `evals crash`: whether an acknowledged write is lost, or a write stored twice, when servers are killed.
//!
//! Several servers write to one project in parallel. At random times a server is killed shortly before, while or after
//! it executes a write that was sent to it. Then the server is restarted, and the write is either given up or repeated
//! with the same keys, as a client does that got no answer. Some acknowledged writes are repeated too. Every text
//! contains a unique mark, and the final export is searched for the marks. The mark of an acknowledged write must be
//! there exactly once, that of a write that was given up at most once, and no call may be stored in part. Then SQLite
//! and `tiro doctor` check the files, and some marks are searched for through a server. `kill -9` tests the program and
//! not the disk, since the power stays on.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::calls::{self, LONG};
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Report, percentile};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Servers that write at the same time
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// Writes, over all servers
    #[arg(long, default_value_t = 10_000)]
    writes: usize,
    /// Writes during which the server is killed
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The beginning of every mark; a text index reads a mark as one word.
const MARK: &str = "mark";

/// How many words a text has after its mark: few, so that a hit shows the mark.
const WORDS: usize = 40;

/// How many acknowledged texts are searched for at the end.
const SEARCHED: usize = 300;

/// One call that writes.
struct Write {
    tool: &'static str,
    arguments: Value,
    /// The marks of the texts that it stores.
    marks: Vec<String>,
}

/// The results of the workers.
#[derive(Default)]
struct Seen {
    acknowledged: Vec<String>,
    /// The marks of acknowledged segments of the stash.
    stashed: Vec<String>,
    /// The marks of each write that was killed and not repeated.
    given_up: Vec<Vec<String>>,
    milliseconds: Vec<f64>,
    kills: usize,
    answered_before_kill: usize,
    repeated: usize,
    restarts_ms: Vec<f64>,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    if args.kills > args.writes {
        bail!("{} kills need as many writes, not {}", args.kills, args.writes);
    }
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut random = Random::new(args.seed);
    let mut fatal = HashSet::new();
    while fatal.len() < args.kills {
        fatal.insert(random.below(args.writes));
    }
    let ticket = AtomicUsize::new(0);
    let seen = Mutex::new(Seen::default());
    let started = Instant::now();
    thread::scope(|scope| {
        let (ticket, fatal, seen, place) = (&ticket, &fatal, &seen, &place);
        let workers: Vec<_> = (0..args.processes.max(1))
            .map(|number| {
                let work = Worker { number, args, tiro, place, fatal, ticket, seen };
                scope.spawn(move || work.run().with_context(|| format!("in process {number}")))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let elapsed = started.elapsed().as_secs_f64();
    check(args, tiro, &place, seen.into_inner().expect("no holder panics"), elapsed)
}

/// One writer and the server it talks to.
struct Worker<'a> {
    number: usize,
    args: &'a Args,
    tiro: &'a Tiro,
    place: &'a Place,
    fatal: &'a HashSet<usize>,
    ticket: &'a AtomicUsize,
    seen: &'a Mutex<Seen>,
}

impl Worker<'_> {
    fn run(&self) -> Result<()> {
        let mut random = Random::new(self.args.seed ^ ((self.number as u64 + 1) << 32));
        let corpus = Corpus::new(self.args.seed);
        let mut server = self.tiro.serve(self.place, Era::Session)?;
        // The usual time of a write. It is a geometric mean, so that a few slow writes don't make every kill late.
        let mut usual = 0.005f64;
        loop {
            let ticket = self.ticket.fetch_add(1, Ordering::Relaxed);
            if ticket >= self.args.writes {
                break;
            }
            let write = self.write(ticket, &corpus, &mut random);
            if self.fatal.contains(&ticket) {
                let delay = Duration::from_secs_f64(1.2 * usual * random.unit());
                let id =
                    server.send("tools/call", json!({"name": write.tool, "arguments": write.arguments}))?;
                thread::sleep(delay);
                let answered = server.kill().iter().any(|message| acknowledges(message, id));
                let started = Instant::now();
                server = self.tiro.serve(self.place, Era::Session)?;
                let restart = started.elapsed().as_secs_f64() * 1000.0;
                let gives_up = !answered && random.chance(0.2);
                let mut seen = self.seen.lock().expect("no holder panics");
                seen.kills += 1;
                seen.answered_before_kill += usize::from(answered);
                seen.restarts_ms.push(restart);
                if gives_up {
                    seen.given_up.push(write.marks);
                    continue;
                }
            }
            let answer = server.tool(write.tool, write.arguments.clone())?;
            usual = usual.powf(0.9) * answer.elapsed.as_secs_f64().powf(0.1);
            let repeats = random.chance(0.02);
            if repeats {
                server.tool(write.tool, write.arguments)?;
            }
            let mut seen = self.seen.lock().expect("no holder panics");
            if write.tool == "stash_context" {
                seen.stashed.extend(write.marks.iter().cloned());
            }
            seen.acknowledged.extend(write.marks);
            seen.milliseconds.push(answer.ms());
            seen.repeated += usize::from(repeats);
        }
        // Half of the servers end because their client ends; the others are killed, perhaps while they embed.
        if self.number.is_multiple_of(2) {
            server.close()?;
        } else {
            server.kill();
        }
        Ok(())
    }

    /// Makes a random write: a fact, one to four segments for the stash, or one to four messages in a new session or in a
    /// session that all writers share.
    fn write(&self, ticket: usize, corpus: &Corpus, random: &mut Random) -> Write {
        let mark = |part: usize| format!("{MARK}{}x{ticket}x{part}", self.number);
        let text = |part: usize| format!("{} {}", mark(part), corpus.text(ticket * 4 + part, ticket, WORDS));
        if random.chance(0.5) {
            let arguments = json!({"text": text(0), "type": "fact"});
            return Write { tool: "store_memory", arguments, marks: vec![mark(0)] };
        }
        if random.chance(0.5) {
            let count = 1 + random.below(4);
            let segments: Vec<Value> =
                (0..count).map(|part| json!({"text": text(part), "type": "research"})).collect();
            let arguments = json!({"segments": segments});
            return Write { tool: "stash_context", arguments, marks: (0..count).map(mark).collect() };
        }
        let count = 1 + random.below(4);
        let session = if random.chance(0.5) { "shared".into() } else { format!("own-{}", self.number) };
        let messages: Vec<Value> = (0..count)
            .map(|part| {
                let id = format!("m-{}-{ticket}-{part}", self.number);
                json!({"id": id, "role": "user", "text": text(part)})
            })
            .collect();
        let arguments = json!({"session_id": session, "messages": messages});
        Write { tool: "save_messages", arguments, marks: (0..count).map(mark).collect() }
    }
}

fn acknowledges(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("result").is_some() && message["result"]["isError"] != true
}

/// Exports everything and compares it with the acknowledged writes.
fn check(args: &Args, tiro: &Tiro, place: &Place, seen: Seen, elapsed: f64) -> Result<Report> {
    let mut server = tiro.serve(place, Era::Session).context("starting once more after the last kill")?;
    let unfound = unfound(&mut server, &seen.acknowledged, &mut Random::new(args.seed))?;
    drop(server);
    let project = calls::path_text(&place.project)?;
    let export = tiro.run(place, &["export", "--format", "jsonl", "--project", project], LONG)?;
    let (counts, memories) = count_marks(&export)?;
    let count = |mark: &String| counts.get(mark).copied().unwrap_or(0);
    let lost: Vec<&String> = seen.acknowledged.iter().filter(|mark| count(mark) == 0).collect();
    let doubled: Vec<&String> =
        counts.iter().filter(|(_, count)| **count > 1).map(|(mark, _)| mark).collect();
    let partial = |marks: &&Vec<String>| {
        let there = marks.iter().filter(|mark| count(mark) > 0).count();
        there != 0 && there != marks.len()
    };
    let halved: Vec<&Vec<String>> = seen.given_up.iter().filter(partial).collect();
    let stash = tiro.run(place, &["stash", "export", "--project", project], LONG)?;
    let (in_stash, _) = count_marks(&stash)?;
    let unstashed: Vec<&String> = seen.stashed.iter().filter(|mark| !in_stash.contains_key(*mark)).collect();
    let doctor = doctor_complaints(tiro, place)?;
    let damage = damage(&place.data_dir)?;

    let mut report = Report::default();
    report.must_be_zero("acknowledged and lost", lost.len());
    report.must_be_zero("segments acknowledged and not in the stash", unstashed.len());
    report.must_be_zero("stored twice", doubled.len());
    report.must_be_zero("calls stored in part", halved.len());
    report.must_be_zero("acknowledged and not found by a search", unfound.len());
    report.must_be_zero("complaints of `tiro doctor`", doctor.len());
    report.must_be_zero("complaints of SQLite", damage.len());
    report.add("memories acknowledged", seen.acknowledged.len() as f64, "");
    report.add("  of these segments of the stash", seen.stashed.len() as f64, "");
    report.add("memories in the export", memories as f64, "");
    report.add("servers killed in mid-write", seen.kills as f64, "");
    report.add("  of these with the answer already given", seen.answered_before_kill as f64, "");
    report.add("  of these given up", seen.given_up.len() as f64, "");
    report.add("acknowledged writes repeated", seen.repeated as f64, "");
    report.add_spread("a write over stdio", &seen.milliseconds, "ms");
    report.add("start after a kill, p50", percentile(&seen.restarts_ms, 0.5), "ms");
    report.add("writes", args.writes as f64 / elapsed, "/s");
    report.detail = json!({
        "processes": args.processes, "writes": args.writes, "seed": args.seed, "lost": lost,
        "doubled": doubled, "halved": halved, "unfound": unfound, "doctor": doctor, "sqlite": damage,
    });
    Ok(report)
}

/// Searches for some of the marks and returns those that no hit contains.
fn unfound(server: &mut Server, marks: &[String], random: &mut Random) -> Result<Vec<String>> {
    let mut unfound = Vec::new();
    for _ in 0..SEARCHED.min(marks.len()) {
        let mark = random.pick(marks);
        let answer = calls::search(server, mark, 20)?;
        let shows =
            |hit: &Value| hit["text"].as_str().is_some_and(|text| words(text).any(|word| word == mark));
        if !answer.hits().iter().any(shows) {
            unfound.push(mark.clone());
        }
    }
    Ok(unfound)
}

/// Returns whether a word is a mark: [`MARK`] and numbers with `x` between them.
fn is_mark(word: &str) -> bool {
    let numbers = word.strip_prefix(MARK).map(|rest| rest.split('x'));
    numbers.is_some_and(|mut parts| parts.all(|part| part.parse::<usize>().is_ok()))
}

/// Returns the words of a text as a text index divides it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns how often each mark occurs in an export, and the number of memories in it.
fn count_marks(export: &str) -> Result<(HashMap<String, usize>, usize)> {
    let mut counts = HashMap::new();
    let mut memories = 0;
    for line in export.lines().filter(|line| !line.trim().is_empty()) {
        let memory: Value = serde_json::from_str(line).context("the export has a line that is not JSON")?;
        let Some(text) = memory["text"].as_str() else { continue };
        memories += 1;
        for mark in words(text).filter(|word| is_mark(word)) {
            *counts.entry(mark.to_string()).or_insert(0) += 1;
        }
    }
    Ok((counts, memories))
}

/// Returns the failed checks of `tiro doctor --json`, except those of the model, which may be missing.
fn doctor_complaints(tiro: &Tiro, place: &Place) -> Result<Vec<String>> {
    let project = calls::path_text(&place.project)?;
    let (_, stdout, stderr) = tiro.run_to_end(place, &["doctor", "--json", "--project", project], LONG)?;
    let answer: Value = serde_json::from_str(&stdout)
        .with_context(|| format!("`tiro doctor --json` wrote no JSON: {stderr}"))?;
    let mut complaints = Vec::new();
    collect_failed(&answer, &mut complaints);
    complaints.retain(|complaint| !complaint.contains("model"));
    Ok(complaints)
}

/// Collects the innermost objects of a report, in any shape, that report a failure.
fn collect_failed(report: &Value, failed: &mut Vec<String>) {
    let inner: Vec<&Value> = match report {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => return,
    };
    let before = failed.len();
    inner.into_iter().for_each(|value| collect_failed(value, failed));
    let status = report["status"].as_str().unwrap_or("");
    let bad = report["ok"] == false || ["fail", "failed", "error", "bad", "damaged"].contains(&status);
    if bad && failed.len() == before {
        failed.push(report.to_string());
    }
}

/// Runs SQLite's checks of pages, references and text indexes on the databases in `directory`, and returns what they
/// report.
fn damage(directory: &Path) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            complaints.extend(damage(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "db") {
            let found = database_damage(&path).with_context(|| format!("checking `{}`", path.display()))?;
            complaints.extend(found.into_iter().map(|complaint| format!("{}: {complaint}", path.display())));
        }
    }
    Ok(complaints)
}

fn database_damage(path: &Path) -> Result<Vec<String>> {
    let database = Connection::open(path)?;
    let texts = |sql: &str| -> Result<Vec<String>> {
        let mut statement = database.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<Vec<String>, _>>()?)
    };
    let mut complaints = texts("PRAGMA integrity_check")?;
    complaints.retain(|complaint| complaint != "ok");
    complaints.extend(texts("SELECT 'broken reference from ' || \"table\" FROM pragma_foreign_key_check")?);
    let fts5 = "SELECT name FROM sqlite_schema WHERE lower(sql) LIKE 'create virtual table%using fts5%' AND lower(sql) NOT LIKE '%fts5vocab%'";
    for table in texts(fts5)? {
        let check = format!("INSERT INTO \"{table}\"(\"{table}\", rank) VALUES('integrity-check', 1)");
        if let Err(error) = database.execute(&check, []) {
            complaints.push(format!("text index `{table}`: {error}"));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_counted_over_the_whole_export() {
        let export =
            "{\"text\":\"mark1x2x0 hello\"}\n\n{\"text\":\"x mark1x2x0\"}\n{\"text\":\"mark1x2x01\"}\n";
        let (counts, memories) = count_marks(export).unwrap();
        assert_eq!((counts["mark1x2x0"], counts["mark1x2x01"], memories), (2, 1, 3));
    }

    #[test]
    fn failed_checks_are_found_in_any_shape() {
        let mut failed = Vec::new();
        let report =
            json!({"ok": false, "checks": [{"name": "a", "ok": true}, {"name": "b", "status": "failed"}]});
        collect_failed(&report, &mut failed);
        assert_eq!(failed, [json!({"name": "b", "status": "failed"}).to_string()]);
    }

    #[test]
    fn a_text_index_that_lost_a_row_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let database = Connection::open(directory.path().join("x.db")).unwrap();
        let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, text); INSERT INTO t VALUES(1, 'lantern');
            CREATE VIRTUAL TABLE f USING fts5(text, content='t', content_rowid='id');";
        database.execute_batch(schema).unwrap();
        assert_eq!(damage(directory.path()).unwrap().len(), 1);
        let repaired = "INSERT INTO f(f) VALUES('rebuild');
            CREATE VIRTUAL TABLE g USING fts5(text, content='', contentless_delete=1, tokenize='porter');
            INSERT INTO g(rowid, text) VALUES(1, 'lantern'), (2, 'harbor'); DELETE FROM g WHERE rowid = 1;";
        database.execute_batch(repaired).unwrap();
        assert_eq!(damage(directory.path()).unwrap(), Vec::<String>::new());
    }
}
