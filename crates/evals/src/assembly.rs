//! Measures how long an agent waits for the context of one long session, once if it is assembled and once if it comes
//! from the cache.
//!
//! This is a part of `evals latency`. First the session is embedded and its segments are summarised. Each question is
//! asked twice: the first time it is new, so that no cache helps, and the second time the cache answers.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, percentile};
use crate::suite::Message;

/// The session's name.
const SESSION: &str = "long";

/// The longest wait for summaries.
const PATIENCE: Duration = Duration::from_secs(600);

/// Builds the session in `place`, asks the questions, and adds the times to the report.
pub fn measure(
    messages: usize,
    questions: usize,
    tiro: &Tiro,
    place: &Place,
    corpus: &Corpus,
    report: &mut Report,
) -> Result<()> {
    let mut server = tiro.serve(place, Era::Session)?;
    for start in (0..messages).step_by(1000) {
        let said = (start..messages.min(start + 1000))
            .map(|index| Message { session: SESSION.into(), ..corpus.message(index) });
        calls::save_messages(&mut server, &said.collect::<Vec<_>>())?;
    }
    server.close()?;
    calls::index(tiro, place)?;
    let mut server = tiro.serve(place, Era::Session)?;
    let began = Instant::now();
    while let Some(pending @ 1..) = ask(&mut server, "what waits?")?.pending() {
        if began.elapsed() > PATIENCE {
            bail!("{pending} summaries stay pending");
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    report.add(format!("summarising {messages} messages"), began.elapsed().as_secs_f64(), "s");
    let (mut assembled, mut cached) = (Vec::new(), Vec::new());
    let mut differing = 0;
    for index in 0..questions {
        let question = corpus.query(index, messages);
        let first = ask(&mut server, &question)?;
        let again = ask(&mut server, &question)?;
        differing += usize::from(first.text() != again.text());
        assembled.push(first.ms());
        cached.push(again.ms());
    }
    let name = format!("assembly of {messages} messages");
    report.aim(format!("{name}, p50"), percentile(&assembled, 0.50), "ms", Goal::AtMost(40.0));
    report.aim(format!("{name}, p99"), percentile(&assembled, 0.99), "ms", Goal::AtMost(150.0));
    report.aim("the same from the cache, p50", percentile(&cached, 0.50), "ms", Goal::AtMost(5.0));
    report.add("the same from the cache, p99", percentile(&cached, 0.99), "ms");
    report.must_be_zero("answers from the cache that differ", differing);
    Ok(())
}

fn ask(server: &mut Server, question: &str) -> Result<crate::client::Answer> {
    server.tool("retrieve_context", json!({"query": question, "session_id": SESSION}))
}
