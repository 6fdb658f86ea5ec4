//! `evals limits`: time, memory and file descriptors of large texts, many calls, and clients that do not read.
//!
//! The rate of embedding is in pieces per second of processor time, on one thread. The pieces are of the same kind but
//! are stored in different ways: as 300 memories, as a backlog of 100,000 memories, and as the beginning and the end of
//! one text of 100 MB. No call accepts a text of that length, but an older store may contain one, so the measurement
//! writes it directly into the store.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Goal, Report};

/// The sizes of the parts.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Memories beside the backlog
    #[arg(long, default_value_t = 100_000)]
    memories: usize,
    /// Megabytes of the large text
    #[arg(long, default_value_t = 100)]
    mb: usize,
    /// Seconds of embedding at the beginning and at the end of the large text
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Mixed calls to one server
    #[arg(long, default_value_t = 30_000)]
    calls: usize,
    /// Parallel searches
    #[arg(long, default_value_t = 2_000)]
    searches: usize,
    /// Only these parts: embedding, storing, mixed, searches, unread
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How many pieces are embedded to measure the base rate.
const PIECES: usize = 300;

/// The length of a piece in bytes: about that of a chunk of prose.
const PIECE: usize = 500;

/// The length in megabytes of the largest text that a call stores.
const LARGEST_MB: usize = 15;

/// How much more memory than an idle server embedding may use, in MiB.
const ROOM: f64 = 64.0;

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let mut report = Report::default();
    let wanted = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    let place = |name: &str| Place::create(&root.path().join(name));
    let idle = {
        let place = place("idle")?;
        let server = tiro.serve(&place, Era::Session)?;
        server.resident_mib().context("there is no /proc to read memory from")?
    };
    report.add("resident memory of an idle server", idle, "MiB");
    if wanted("embedding") {
        embedding(args, tiro, root.path(), idle, &mut report)?;
    }
    if wanted("storing") {
        storing(tiro, &place("storing")?, idle, &mut report)?;
    }
    if wanted("mixed") {
        mixed(args, tiro, &place("mixed")?, &mut report)?;
    }
    if wanted("searches") {
        searches(args, tiro, &place("searches")?, &mut report)?;
    }
    if wanted("unread") {
        unread(tiro, &place("unread")?, &mut report)?;
    }
    report.detail = json!({"memories": args.memories, "mb": args.mb, "calls": args.calls});
    Ok(report)
}

/// Returns about [`PIECE`] bytes of prose, different for each `index`.
fn piece(corpus: &Corpus, index: usize) -> String {
    let mut text = String::new();
    for next in 0.. {
        text += &corpus.message(index * 64 + next).text;
        text.push(' ');
        if text.len() >= PIECE {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(PIECE));
    text
}

fn embedding(args: &Args, tiro: &Tiro, root: &Path, idle: f64, report: &mut Report) -> Result<()> {
    ensure!(tiro.model_dir.is_some(), "embedding needs a model");
    let corpus = Corpus::new(20_260_101);
    // Without a model, storing embeds nothing.
    let lexical = tiro.without_model(root)?;
    let store_pieces = |place: &Place| -> Result<()> {
        let mut server = lexical.serve(place, Era::Session)?;
        for index in 0..PIECES {
            server.tool("store_memory", json!({"text": piece(&corpus, index)}))?;
        }
        server.close().map(drop)
    };

    let few = Place::create(&root.join("few"))?;
    store_pieces(&few)?;
    let first = index(tiro, &few, None)?;
    // The processor time of a process that has nothing to embed, which is subtracted.
    let start = index(tiro, &few, None)?.seconds;
    let rate = |run: &Indexed, pieces: i64| pieces as f64 / (run.seconds - start).max(0.001);
    let pieces = vectors(&few)?;
    let expected = rate(&first, pieces);
    report.add(format!("embedding {PIECES} memories"), expected, "pieces/s");
    let mut peak = first.peak;

    let many = Place::create(&root.join("many"))?;
    lexical.serve(&many, Era::Session)?.tool("store_memory", json!({"text": "one to copy"}))?;
    add_memories(&store(&many)?, args.memories, &corpus)?;
    store_pieces(&many)?;
    let run = index(tiro, &many, None)?;
    peak = peak.max(run.peak);
    let share = 100.0 * rate(&run, vectors(&many)?) / expected;
    report.aim(format!("  as the backlog of {}", args.memories), share, "%", Goal::AtLeast(90.0));

    let large = Place::create(&root.join("large"))?;
    lexical.serve(&large, Era::Session)?.tool("store_memory", json!({"text": "one to make large"}))?;
    make_large(&store(&large)?, args.mb, &corpus)?;
    for (name, is_end) in [("beginning", false), ("end", true)] {
        let before = vectors(&large)?;
        if is_end {
            let sql = "DELETE FROM pending WHERE chunk < (SELECT max(chunk) FROM pending) - 5000";
            Connection::open(store(&large)?)?.execute(sql, [])?;
        }
        let run = index(tiro, &large, Some(Duration::from_secs(args.seconds)))?;
        peak = peak.max(run.peak);
        let share = 100.0 * rate(&run, vectors(&large)? - before) / expected;
        report.aim(format!("  at the {name} of a text of {} MB", args.mb), share, "%", Goal::AtLeast(90.0));
    }
    report.aim("  at its peak beyond an idle server", peak - idle, "MiB", Goal::AtMost(ROOM));
    Ok(())
}

/// Time and memory of a run of `tiro index`.
struct Indexed {
    /// Processor time.
    seconds: f64,
    /// The most resident memory, in MiB.
    peak: f64,
}

/// Runs `tiro index` on one thread, to its end or for some time.
fn index(tiro: &Tiro, place: &Place, time: Option<Duration>) -> Result<Indexed> {
    let mut command = tiro.command(place, &["index", "--threads", "1"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("starting `tiro index`")?;
    let began = Instant::now();
    let mut indexed = Indexed { seconds: 0.0, peak: 0.0 };
    loop {
        // The last reading before the process ended counts as its total.
        if let Some((seconds, peak)) = taken(&child) {
            indexed = Indexed { seconds, peak: indexed.peak.max(peak) };
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "`tiro index` ended with {status}");
            return Ok(indexed);
        }
        if time.is_some_and(|time| began.elapsed() >= time) {
            child.kill()?;
            child.wait()?;
            return Ok(indexed);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns how many seconds of processor time a process took, and its peak resident memory in MiB.
fn taken(child: &Child) -> Option<(f64, f64)> {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<f64>().ok());
    Some((ticks / 100.0, peak.unwrap_or(0.0) / 1024.0))
}

/// Returns the store of the one project of `place`.
fn store(place: &Place) -> Result<PathBuf> {
    let mut folders = std::fs::read_dir(place.data_dir.join("projects"))?;
    Ok(folders.next().context("no project")??.path().join("tiro.db"))
}

fn vectors(place: &Place) -> Result<i64> {
    Ok(Connection::open(store(place)?)?.query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))?)
}

/// The beginning of a statement that copies a memory which a call has stored.
const COPY: &str = "INSERT INTO memories (owner, id, kind, provenance, time, stored_at, tokens, text_hash, text)
    SELECT owner, ?1, kind, provenance, time, stored_at, tokens, text_hash, ?2 FROM memories ORDER BY seq LIMIT 1";

/// Adds memories that are already embedded, each of one chunk.
fn add_memories(store: &Path, count: usize, corpus: &Corpus) -> Result<()> {
    let mut connection = Connection::open(store)?;
    let transaction = connection.transaction()?;
    for index in 0..count {
        let text = corpus.message(index).text;
        transaction.prepare_cached(COPY)?.execute(params![format!("m{index:013}"), text])?;
        let memory = transaction.last_insert_rowid();
        transaction
            .prepare_cached(
                "INSERT INTO chunks (memory, ordinal, start_byte, end_byte, tokens) VALUES (?1, 0, 0, ?2, 20)",
            )?
            .execute((memory, text.len() as i64))?;
    }
    transaction.execute("DELETE FROM pending", [])?;
    Ok(transaction.commit()?)
}

/// Adds one memory of `mb` megabytes without embeddings.
fn make_large(store: &Path, mb: usize, corpus: &Corpus) -> Result<()> {
    let pieces = mb * 1_000_000 / PIECE;
    let few: Vec<String> = (0..PIECES).map(|index| piece(corpus, index)).collect();
    let text: String = (0..pieces).map(|index| few[index % PIECES].as_str()).collect();
    let mut connection = Connection::open(store)?;
    let transaction = connection.transaction()?;
    transaction.execute(COPY, params!["m0000000000001", text])?;
    let memory = transaction.last_insert_rowid();
    transaction.execute("DELETE FROM pending", [])?;
    let mut start = 0;
    for index in 0..pieces {
        let end = start + few[index % PIECES].len();
        transaction
            .prepare_cached(
                "INSERT INTO chunks (memory, ordinal, start_byte, end_byte, tokens) VALUES (?1, ?2, ?3, ?4, 120)",
            )?
            .execute((memory, index as i64, start as i64, end as i64))?;
        start = end;
    }
    transaction.execute("INSERT INTO pending SELECT seq FROM chunks WHERE memory = ?1", [memory])?;
    Ok(transaction.commit()?)
}

fn storing(tiro: &Tiro, place: &Place, idle: f64, report: &mut Report) -> Result<()> {
    let corpus = Corpus::new(20_260_102);
    let text: String = (0..LARGEST_MB * 1_000_000 / PIECE).map(|index| piece(&corpus, index)).collect();
    let mut server = tiro.serve(place, Era::Session)?;
    let stored = server.tool("store_memory", json!({"text": text}))?;
    report.add(format!("storing a text of {LARGEST_MB} MB"), stored.ms() / 1000.0, "s");
    let peak = |server: &Server| server.peak_mib().context("there is no /proc to read memory from");
    report.add("  at its peak beyond an idle server", peak(&server)? - idle, "MiB");
    server.close()?;
    // The server embeds the text while it is idle.
    let mut server = tiro.serve(place, Era::Session)?;
    calls::search(&mut server, "pending", 1)?;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_secs(1));
        server.request("ping", json!({}))?;
    }
    report.aim(
        "  another server that embeds it, at its peak beyond an idle one",
        peak(&server)? - idle,
        "MiB",
        Goal::AtMost(ROOM),
    );
    Ok(())
}

/// Calls every tool of one server in turn, and compares its memory after the first thousand calls and at the end.
fn mixed(args: &Args, tiro: &Tiro, place: &Place, report: &mut Report) -> Result<()> {
    const FIRST: usize = 1000;
    let corpus = Corpus::new(20_260_103);
    let mut random = Random::new(7);
    let mut server = tiro.serve(place, Era::Session)?;
    let mut known: Vec<String> = Vec::new();
    let mut memory = Vec::new();
    let began = Instant::now();
    for call in 0..args.calls {
        let query = corpus.query(call, 1 + call / 3);
        let session = format!("session-{}", call / 400);
        let (tool, arguments) = match random.below(12) {
            0..=2 => {
                let text = corpus.message(call).text;
                let role = if call % 2 == 0 { "user" } else { "assistant" };
                let messages = json!([{"id": call.to_string(), "role": role, "text": text}]);
                ("save_messages", json!({"session_id": session, "messages": messages}))
            }
            3 => ("store_memory", json!({"text": corpus.message(call).text, "type": "decision"})),
            4..=6 => ("search_project_memory", json!({"query": query, "k": 10})),
            7 => ("retrieve_context", json!({"query": query, "session_id": session, "max_tokens": 2000})),
            8 => ("retrieve_context", json!({"query": query, "max_tokens": 2000})),
            9 if !known.is_empty() => {
                ("expand_detail", json!({"id": random.pick(&known), "max_tokens": 1000}))
            }
            10 if !known.is_empty() => ("mark_important", json!({"ids": [random.pick(&known)]})),
            _ => ("list_sessions", json!({})),
        };
        let answer = server.try_tool(tool, arguments)?;
        if let Some(ids) = answer.structured()["ids"].as_array() {
            known.extend(ids.iter().filter_map(|id| Some(id.as_str()?.to_owned())));
        }
        if (call + 1) % FIRST == 0 {
            memory.push(server.resident_mib().context("there is no /proc to read memory from")?);
            if (call + 1) % (5 * FIRST) == 0 {
                let (calls, seconds) = (call + 1, began.elapsed().as_secs_f64());
                eprintln!("{calls} calls in {seconds:.0} s, {:.1} MiB", memory.last().unwrap_or(&0.0));
            }
        }
    }
    let (Some(first), Some(last)) = (memory.first(), memory.last()) else { return Ok(()) };
    report.add(format!("{} mixed calls", args.calls), began.elapsed().as_secs_f64(), "s");
    report.add(format!("  resident memory after the first {FIRST}"), *first, "MiB");
    report.add("  resident memory after all", *last, "MiB");
    report.aim("  after all, against the first", last / first, "times", Goal::AtMost(1.2));
    Ok(())
}

/// Sends many searches in parallel, and counts the descriptors that stay open.
fn searches(args: &Args, tiro: &Tiro, place: &Place, report: &mut Report) -> Result<()> {
    let corpus = Corpus::new(20_260_104);
    let mut server = tiro.serve(place, Era::Session)?;
    let messages: Vec<_> = (0..2000).map(|index| corpus.message(index)).collect();
    calls::save_messages(&mut server, &messages)?;
    server.close()?;
    let mut asker = Asker::start(tiro, place)?;
    let began = Instant::now();
    let lines = (0..args.searches).map(|index| {
        let arguments = json!({"query": corpus.query(index, 2000), "k": 10});
        request(index + 1, "tools/call", json!({"name": "search_project_memory", "arguments": arguments}))
    });
    asker.feed(lines.collect());
    let answers = BufReader::new(asker.child.stdout.take().context("stdout is piped")?);
    let mut failed = 0;
    for line in answers.lines().skip(1).take(args.searches) {
        let answer: Value = serde_json::from_str(&line?)?;
        let notices = answer["result"]["structuredContent"]["notices"].to_string();
        failed += usize::from(answer["result"]["isError"] == true || notices.contains("no search by"));
    }
    report.add(format!("{} searches at once", args.searches), began.elapsed().as_secs_f64(), "s");
    report.must_be_zero("  that failed, or in part", failed);
    let open = std::fs::read_dir(format!("/proc/{}/fd", asker.child.id()))?.count();
    report.aim("  descriptors that are open then", open as f64, "", Goal::AtMost(64.0));
    let (_, peak) = taken(&asker.child).context("there is no /proc to read memory from")?;
    report.add("  resident memory at its peak", peak, "MiB");
    Ok(())
}

/// Sends requests without reading answers.
fn unread(tiro: &Tiro, place: &Place, report: &mut Report) -> Result<()> {
    let corpus = Corpus::new(20_260_105);
    let mut server = tiro.serve(place, Era::Session)?;
    let messages: Vec<_> = (0..500).map(|index| corpus.message(index)).collect();
    calls::save_messages(&mut server, &messages)?;
    server.close()?;
    let mut asker = Asker::start(tiro, place)?;
    let lines = (0..100_000).map(|index| match index % 2 {
        0 => request(index + 1, "tools/list", json!({})),
        _ => {
            let arguments = json!({"query": corpus.query(index, 500), "k": 20});
            request(index + 1, "tools/call", json!({"name": "search_project_memory", "arguments": arguments}))
        }
    });
    asker.feed(lines.collect());
    thread::sleep(Duration::from_secs(10));
    let (_, peak) = taken(&asker.child).context("the server is gone")?;
    report.aim("a client that asks and never reads: memory at its peak", peak, "MiB", Goal::AtMost(128.0));
    Ok(())
}

fn request(id: usize, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A server with a client that sends requests without waiting for answers. Dropping it kills the server.
struct Asker {
    child: Child,
}

impl Asker {
    fn start(tiro: &Tiro, place: &Place) -> Result<Asker> {
        let mut command = tiro.command(place, &["serve", "--structured"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Asker { child: command.spawn().context("starting a server")? })
    }

    /// Writes a handshake and `lines` on another thread, which keeps the input open.
    fn feed(&mut self, lines: Vec<String>) {
        let mut stdin = self.child.stdin.take().expect("stdin is piped, and fed once");
        let client = json!({"name": "evals", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = request(0, "initialize", hello);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        thread::spawn(move || {
            for line in [hello, ready].into_iter().chain(lines) {
                // The server was killed.
                if stdin.write_all(format!("{line}\n").as_bytes()).is_err() {
                    return;
                }
            }
            thread::park();
        });
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
