//! What many users get who search, read and write at the same time, each with pauses, over several replicas.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::Sizes;
use super::ground::{Ground, names};
use super::http::{Caller, Kinds};
use crate::client::Tiro;
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Report, percentile};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was seen of the calls.
#[derive(Default)]
struct Seen {
    milliseconds: BTreeMap<&'static str, Vec<f64>>,
    kinds: Kinds,
}

/// A user at work.
struct Work<'a> {
    caller: &'a Caller,
    ports: &'a [u16],
    corpus: &'a Corpus,
    number: usize,
    random: Random,
    /// The id of a memory of the user.
    stored: Option<String>,
}

/// Measures, and adds the figures.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let ground = Ground::new("mixed", url, tiro)?;
    let callers = ground.callers(&names(sizes.owners))?;
    let replicas = ground.replicas(sizes.replicas)?;
    let ports: Vec<u16> = replicas.iter().map(|replica| replica.port).collect();
    let corpus = Corpus::new(sizes.seed);
    let seen = Mutex::new(Seen::default());
    let start = Instant::now();
    let end = start + Duration::from_secs(sizes.seconds);
    std::thread::scope(|scope| {
        for (number, caller) in callers.iter().enumerate() {
            let random = Random::new(sizes.seed ^ ((number as u64 + 1) << 32));
            let mut work = Work { caller, ports: &ports, corpus: &corpus, number, random, stored: None };
            let seen = &seen;
            scope.spawn(move || {
                work.pause(sizes.pause);
                while Instant::now() < end {
                    work.step(seen);
                    work.pause(sizes.pause);
                }
            });
        }
    });
    let elapsed = start.elapsed().as_secs_f64();
    let seen = seen.into_inner().expect("no holder panics");
    report.add("mixed calls", seen.kinds.all() as f64, "");
    report.add("  of users at the same time", callers.len() as f64, "");
    report.add("  for each second", seen.kinds.all() as f64 / elapsed, "");
    for (tool, milliseconds) in &seen.milliseconds {
        report.add(format!("  {tool}, p50"), percentile(milliseconds, 0.50), "ms");
        report.add(format!("  {tool}, p99"), percentile(milliseconds, 0.99), "ms");
    }
    // The server may ask to wait. Any other error is one.
    let excused = ["ok", "HTTP 429", "HTTP 503"].map(|kind| seen.kinds.of(kind)).iter().sum::<usize>();
    report.must_be_zero("  errors other than that the server asks to wait", seen.kinds.all() - excused);
    super::add_kinds(report, &seen.kinds);
    Ok(())
}

impl Work<'_> {
    /// Waits for `seconds` on average.
    fn pause(&mut self, seconds: f64) {
        std::thread::sleep(Duration::from_secs_f64(2.0 * seconds * self.random.unit()));
    }

    fn step(&mut self, seen: &Mutex<Seen>) {
        let (tool, arguments) = self.choose();
        let port = *self.random.pick(self.ports);
        let began = Instant::now();
        let outcome = self.caller.call(port, tool, arguments, PATIENCE);
        let elapsed = began.elapsed().as_secs_f64() * 1000.0;
        match (tool, outcome.structured()["id"].as_str()) {
            ("store_memory", Some(id)) => self.stored = Some(id.to_owned()),
            ("forget_context", _) => self.stored = None,
            _ => {}
        }
        let mut seen = seen.lock().expect("no holder panics");
        seen.kinds.add(&outcome);
        seen.milliseconds.entry(tool).or_default().push(elapsed);
    }

    fn choose(&mut self) -> (&'static str, Value) {
        let index = self.random.below(1_000_000);
        let session = format!("session-{}-{}", self.number, self.random.below(3));
        let message = |part: usize| {
            let id = format!("m{index}-{part}");
            json!({"id": id, "role": "user", "text": self.corpus.text(index + part, self.number, 40)})
        };
        let question = self.corpus.query(index, 1000);
        match self.random.below(20) {
            0..9 => ("search_project_memory", json!({"query": question, "k": 10})),
            9..13 => {
                let messages: Vec<Value> = (0..1 + index % 4).map(message).collect();
                ("save_messages", json!({"session_id": session, "messages": messages}))
            }
            13..15 => {
                ("store_memory", json!({"text": self.corpus.text(index, self.number, 20), "type": "fact"}))
            }
            15..17 => ("retrieve_context", json!({"query": question})),
            17..19 => ("list_sessions", json!({})),
            _ => match &self.stored {
                Some(id) => ("forget_context", json!({"ids": [id]})),
                None => ("list_sessions", json!({})),
            },
        }
    }
}
