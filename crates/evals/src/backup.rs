//! `evals backup`: how long a backup takes while a server writes, compared with an idle store.
//!
//! The store is filled with synthetic conversations and backed up several times while nothing writes. Then it is backed
//! up as many times again while a server stores messages at a fixed rate. During each backup, the length of the store's
//! log is watched, since a reader prevents it from shrinking. The target folder is watched too, since the file may get
//! its name only once it is complete. SQLite checks each backup, and the backup is compared with the writes that were
//! acknowledged before it began.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::calls::{self, LONG};
use crate::client::{Era, Place, Tiro};
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, median, percentile};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Messages in the store
    #[arg(long, default_value_t = 60_000)]
    messages: usize,
    /// Messages stored per second during the backups with writes
    #[arg(long, default_value_t = 50)]
    rate: usize,
    /// Backups without writes, and as many with writes
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How many messages one call stores while the store is filled.
const BATCH: usize = 500;

/// The largest log of the store with which the measurement passes, in MiB: as much as such writes produce in half a
/// minute.
const LONGEST_LOG: f64 = 64.0;

/// One backup.
struct Made {
    seconds: f64,
    longest_log: u64,
    /// Whether the file got its name before it was complete.
    was_early: bool,
    memories: usize,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let corpus = Corpus::new(args.seed);
    let mut server = tiro.serve(&place, Era::Session)?;
    for from in (0..args.messages).step_by(BATCH) {
        let messages: Vec<_> =
            (from..(from + BATCH).min(args.messages)).map(|index| corpus.message(index)).collect();
        calls::save_messages(&mut server, &messages)?;
    }
    server.close()?;
    let store = store(&place)?;
    let size = std::fs::metadata(&store)?.len();
    let back_up = |number: usize| back_up(tiro, &place, &store, root.path(), number);
    let quiet = (0..args.rounds).map(back_up).collect::<Result<Vec<Made>>>()?;

    let (stop, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (busy, missing, writes) = thread::scope(|scope| -> Result<_> {
        let writer = scope.spawn(|| write(args, tiro, &place, &corpus, &stop, &acknowledged));
        let before = quiet.last().map_or(0, |made| made.memories);
        let mut missing = 0;
        let mut busy = Vec::new();
        let done = (0..args.rounds).try_for_each(|number| {
            let known = acknowledged.load(Ordering::SeqCst);
            let made = back_up(args.rounds + number)?;
            missing += (before + known).saturating_sub(made.memories);
            busy.push(made);
            Ok::<(), anyhow::Error>(())
        });
        stop.store(true, Ordering::SeqCst);
        let writes = writer.join().expect("the writer does not panic");
        done?;
        Ok((busy, missing, writes?))
    })?;

    let seconds = |made: &[Made]| made.iter().map(|made| made.seconds).collect::<Vec<f64>>();
    let longest = busy.iter().map(|made| made.longest_log).max().unwrap_or(0);
    let (calm, pressed) = (median(&seconds(&quiet)), median(&seconds(&busy)));
    let mut report = Report::default();
    report.add("store", size as f64 / 1e6, "MB");
    report.add("a backup without writes, median", calm, "s");
    report.add(format!("a backup at {} writes a second, median", args.rate), pressed, "s");
    report.aim("  against quiet", pressed / calm, "x", Goal::AtMost(2.0));
    report.add("  the longest", percentile(&seconds(&busy), 1.0), "s");
    report.add("writes a second, reached", writes.rate, "/s");
    report.add_spread("a write meanwhile", &writes.milliseconds, "ms");
    report.aim("log of the store, longest", longest as f64 / 1_048_576.0, "MiB", Goal::AtMost(LONGEST_LOG));
    report.must_be_zero("acknowledged before and not in the backup", missing);
    let early = quiet.iter().chain(&busy).filter(|made| made.was_early).count();
    report.must_be_zero("backups that had their name before they were whole", early);
    report.detail = json!({
        "messages": args.messages, "rate": args.rate, "seed": args.seed,
        "quiet_s": seconds(&quiet), "busy_s": seconds(&busy),
    });
    Ok(report)
}

/// Returns the path of the store of the only project.
fn store(place: &Place) -> Result<PathBuf> {
    let mut folders = std::fs::read_dir(place.data_dir.join("projects"))?;
    let folder = folders.next().context("nothing was stored")??;
    Ok(folder.path().join("tiro.db"))
}

/// Makes a backup, watches the log and the folder while it runs, and checks the file.
fn back_up(tiro: &Tiro, place: &Place, store: &Path, root: &Path, number: usize) -> Result<Made> {
    let target = root.join(format!("backup-{number}.db"));
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    let mut command = tiro.command(place, &["backup", calls::path_text(&target)?]);
    let started = Instant::now();
    let mut running = command.spawn().context("starting the backup")?;
    let (mut longest_log, mut seen) = (0, None);
    let status = loop {
        longest_log = longest_log.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
        if seen.is_none() && target.exists() {
            seen = Some(count(&target));
        }
        if let Some(status) = running.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() || started.elapsed() > LONG {
        bail!("the backup ended with {status} after {seconds:.0} s");
    }
    let memories = count(&target).context("the backup is not whole")?;
    let was_early = seen.is_some_and(|seen| seen.map_or(true, |seen| seen != memories));
    std::fs::remove_file(&target)?;
    Ok(Made { seconds, longest_log, was_early, memories })
}

/// Returns the number of memories in a backup. Errors if SQLite finds the backup damaged.
fn count(backup: &Path) -> Result<usize> {
    let database = Connection::open_with_flags(backup, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let state: String = database.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if state != "ok" {
        bail!("{state}");
    }
    let count: i64 = database.query_row("SELECT count(*) FROM memories", [], |row| row.get(0))?;
    Ok(count as usize)
}

/// The writes that the server acknowledged.
struct Writes {
    rate: f64,
    milliseconds: Vec<f64>,
}

/// Stores messages at a fixed rate until it is stopped.
fn write(
    args: &Args,
    tiro: &Tiro,
    place: &Place,
    corpus: &Corpus,
    stop: &AtomicBool,
    acknowledged: &AtomicUsize,
) -> Result<Writes> {
    let mut server = tiro.serve(place, Era::Session)?;
    let mut milliseconds = Vec::new();
    let began = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        let due = Duration::from_secs_f64(milliseconds.len() as f64 / args.rate.max(1) as f64);
        thread::sleep(due.saturating_sub(began.elapsed()));
        let message = corpus.message(args.messages + milliseconds.len());
        let started = Instant::now();
        calls::save_messages(&mut server, &[message])?;
        milliseconds.push(started.elapsed().as_secs_f64() * 1000.0);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    let rate = milliseconds.len() as f64 / began.elapsed().as_secs_f64();
    server.close()?;
    Ok(Writes { rate, milliseconds })
}
