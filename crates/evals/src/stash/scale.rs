//! How long a search of a large stash takes, and how long stashing with embedding takes, compared with
//! sentence-transformers and Chroma.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::peer::{self, PeerArgs};
use crate::stats::{Goal, Report, median, percentile};
use crate::suite;

/// How many segments a call stashes.
const AT_ONCE: usize = 1_000;
/// How many words a segment has.
const WORDS: usize = 40;
/// How many segments are stashed with embedding.
const EMBEDDED: usize = 1_000;
/// How many searches are timed.
const SEARCHES: usize = 200;

/// Measures and returns the report.
pub(super) fn run(segments: usize, peer: &PeerArgs, tiro: &Tiro) -> Result<Report> {
    let mut report = Report::default();
    stashing(peer, tiro, &mut report)?;
    searching(segments, tiro, &mut report)?;
    Ok(report)
}

/// Returns the text of a segment; every hundredth has the topic `rare`.
fn segment(corpus: &Corpus, index: usize) -> Value {
    let kind = ["decision", "error_log", "debug_output", "research", "code_block"][index % 5];
    json!({"text": corpus.text(index, index / 50, WORDS), "type": kind})
}

fn stash(server: &mut Server, corpus: &Corpus, range: std::ops::Range<usize>) -> Result<()> {
    let topic = |rare: bool| if rare { "rare" } else { "common" };
    for rare in [true, false] {
        let own = range.clone().filter(|index| index.is_multiple_of(100) == rare);
        let segments: Vec<Value> = own.map(|index| segment(corpus, index)).collect();
        if !segments.is_empty() {
            server.tool("stash_context", json!({"segments": segments, "topic": topic(rare)}))?;
        }
    }
    Ok(())
}

/// Times searches of a stash of `segments` segments.
fn searching(segments: usize, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let corpus = Corpus::new(11);
    let mut server = tiro.serve(&place, Era::Session)?;
    for start in (0..segments).step_by(AT_ONCE) {
        stash(&mut server, &corpus, start..segments.min(start + AT_ONCE))?;
    }
    server.close()?;
    calls::index(tiro, &place)?;
    let mut server = tiro.serve(&place, Era::Session)?;
    let patience = Instant::now();
    loop {
        let answer = server.tool("retrieve_stashed_context", json!({"query": "what waits?"}))?;
        match answer.pending() {
            Some(pending @ 1..) if patience.elapsed() > Duration::from_secs(600) => {
                bail!("{pending} chunks stay pending")
            }
            Some(1..) => std::thread::sleep(Duration::from_secs(1)),
            _ => break,
        }
    }
    for (name, filters, goal) in [
        ("retrieve", json!({}), 15.0),
        ("retrieve with a filter that admits 1%", json!({"topic": "rare"}), 6.0),
    ] {
        let mut ms = Vec::with_capacity(SEARCHES);
        for index in 0..SEARCHES {
            let query = corpus.query(index, segments);
            let answer =
                server.tool("retrieve_stashed_context", json!({"query": query, "filters": filters}))?;
            ms.push(answer.ms());
        }
        // The first searches fill caches.
        let warm = &ms[SEARCHES / 10..];
        let name = format!("{name}, {segments} segments");
        report.aim(format!("{name}, p50"), percentile(warm, 0.5), "ms", Goal::AtMost(goal));
        report.add(format!("{name}, p95"), percentile(warm, 0.95), "ms");
    }
    if let Some(mib) = server.resident_mib() {
        report.add("memory of the server", mib, "MiB");
    }
    Ok(())
}

/// Times the stashing of a thousand segments until all of them are embedded, in turn with the peer.
fn stashing(peer: &PeerArgs, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let corpus = Corpus::new(13);
    let texts = root.path().join("texts.jsonl");
    suite::write_lines(&texts, (0..EMBEDDED).map(|index| segment(&corpus, index)))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..peer.rounds.max(1) {
        let own = root.path().join(format!("round-{round}"));
        std::fs::create_dir(&own)?;
        let place = Place::create(&own)?;
        let mut server = tiro.serve(&place, Era::Session)?;
        // Neither side counts the time to load the model.
        let first = server.tool("stash_context", json!({"segments": [{"text": "warm up"}]}))?;
        let first = first.structured()["segment_ids"][0].clone();
        server.tool("retrieve_stashed_context", json!({"query": "warm up"}))?;
        if server
            .tool("retrieve_stashed_context", json!({"query": "warm"}))?
            .text()
            .contains("lexical search only")
        {
            bail!("stashing is timed with embedding: install the model, or name its folder with --model-dir");
        }
        let began = Instant::now();
        // As the peer, the segments have types and no topic.
        let segments: Vec<Value> = (0..EMBEDDED).map(|index| segment(&corpus, index)).collect();
        server.tool("stash_context", json!({"segments": segments}))?;
        // The server embeds what was stashed between calls.
        loop {
            // This call reads one segment and embeds nothing.
            let left =
                server.tool("retrieve_stashed_context", json!({"from_segment": first, "max_hops": 0}))?;
            if left.pending() == Some(0) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        ours.push(began.elapsed().as_secs_f64());
        server.close()?;
        if !peer.alone {
            let answer = peer.run("stash.py", &["--texts", calls::path_text(&texts)?])?;
            theirs.push(peer::last_round(&answer)?);
        }
    }
    report.add(format!("stashing {EMBEDDED} segments, embedded"), median(&ours), "s");
    if !peer.alone {
        report.add("sentence-transformers and Chroma", median(&theirs), "s");
        report.aim("times faster", median(&theirs) / median(&ours), "×", Goal::AtLeast(2.5));
    }
    Ok(())
}
