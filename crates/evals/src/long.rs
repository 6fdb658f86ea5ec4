//! `evals long`: a conversation of a hundred thousand messages, and one with a message of five megabytes.
//!
//! An early message of the first conversation answers the question with words that occur nowhere else. Every answer
//! must contain that message, and opening it must return its text. Each call divides some thousand messages into
//! segments, so the contexts before all messages are divided are measured separately from those after. The program runs
//! without the model, since embedding would take minutes. Tokens are counted here and not taken from the answers. For
//! summaries, only the tokens of the summary itself are counted, since only they are limited.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::budget;
use crate::calls;
use crate::client::{Answer, Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, percentile};
use crate::suite::Message;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Messages of the long conversation
    #[arg(long, default_value_t = 100_000)]
    messages: usize,
    /// Megabytes of the long message
    #[arg(long, default_value_t = 5)]
    mb: usize,
    /// Questions asked while segments are being closed, and again afterwards
    #[arg(long, default_value_t = 20)]
    questions: usize,
    /// Tokens of an answer
    #[arg(long, default_value_t = crate::budget::BUDGET)]
    budget: usize,
}

/// The name of both sessions.
const SESSION: &str = "long";

/// The question and its answer.
const QUESTION: &str = "where did we decide to keep the vellichorometer?";
const DECISION: &str = "We decided to keep the vellichorometer in the north shed.";

/// A call that takes at least this time counts as slow and is listed. Arbitrary.
const SLOW: Duration = Duration::from_secs(3);

/// The longest wait until everything is summarised.
const PATIENCE: Duration = Duration::from_secs(900);

/// What is known of the answers, in the order of the calls.
#[derive(Default)]
struct Asked {
    answers: Vec<(String, Answer)>,
    /// Summaries, by call.
    summaries: Vec<(String, String)>,
    /// How many answers lack the decision that was asked for.
    missing: usize,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let tiro = &tiro.without_model(root.path())?;
    let mut report = Report::default();
    let mut asked = Asked::default();
    many_messages(args, tiro, &Place::create(&root.path().join("many"))?, &mut report, &mut asked)?;
    let place = Place::create(&root.path().join("large"))?;
    large_message(args, tiro, &place, &mut report, &mut asked)?;

    let counted = budget::count(tiro, &place, asked.answers.iter().map(|(_, answer)| answer))?;
    let mut over = 0;
    for (tokens, (call, _)) in counted.iter().zip(&asked.answers) {
        if tokens.iter().any(|tokens| *tokens > args.budget) {
            over += 1;
            eprintln!("{tokens:?} tokens as text and as JSON: {call}");
        }
    }
    for (call, summary) in &asked.summaries {
        let tokens = budget::count_text(tiro, &place, summary)?;
        if tokens > args.budget {
            over += 1;
            eprintln!("{tokens} tokens: {call}");
        }
    }
    report.add("answers in all", (asked.answers.len() + asked.summaries.len()) as f64, "");
    report.must_be_zero("answers over their budget", over);
    report.must_be_zero("answers without the message that was asked for", asked.missing);
    report.detail = json!({"messages": args.messages, "mb": args.mb, "budget": args.budget});
    Ok(report)
}

fn many_messages(
    args: &Args,
    tiro: &Tiro,
    place: &Place,
    report: &mut Report,
    asked: &mut Asked,
) -> Result<()> {
    let corpus = Corpus::new(20_260_101);
    let decided = args.messages / 50;
    let mut server = tiro.serve(place, Era::Session)?;
    let began = Instant::now();
    for start in (0..args.messages).step_by(1000) {
        let said = (start..args.messages.min(start + 1000)).map(|index| {
            let message = Message { session: SESSION.into(), ..corpus.message(index) };
            if index == decided { Message { text: DECISION.into(), ..message } } else { message }
        });
        calls::save_messages(&mut server, &said.collect::<Vec<_>>())?;
    }
    let saving = began.elapsed().as_secs_f64();
    report.add(format!("saving {} messages", args.messages), saving, "s");
    report.add("  at a rate of", args.messages as f64 / saving, "messages/s");

    let first = asked.context(&mut server, args.budget, QUESTION)?;
    report.aim("first context", first.ms(), "ms", Goal::AtMost(5000.0));
    let waiting = |server: &mut Server, answer: &Answer| -> Result<u64> {
        let embeddings = calls::search(server, "pending", 1)?.pending().unwrap_or(0);
        Ok(answer.pending().unwrap_or(0).saturating_sub(embeddings))
    };
    report.add("  messages and summaries that wait after it", waiting(&mut server, &first)? as f64, "");
    let mut rounds = Vec::new();
    for index in 0..args.questions {
        let question = format!("{QUESTION} {}", corpus.query(index, args.messages));
        rounds.push(asked.context(&mut server, args.budget, &question)?.ms());
    }
    add_spread(report, "contexts while some wait", &rounds);
    for level in ["brief", "standard", "detailed"] {
        let summary = asked.summary(&mut server, args.budget, level)?;
        report.aim(format!("summary, {level}"), summary.ms(), "ms", Goal::AtMost(5000.0));
    }
    let began = Instant::now();
    loop {
        let answer = asked.context(&mut server, args.budget, QUESTION)?;
        let waiting = waiting(&mut server, &answer)?;
        if waiting == 0 {
            break;
        }
        ensure!(began.elapsed() < PATIENCE, "{waiting} messages and summaries stay waiting");
        std::thread::sleep(Duration::from_millis(500));
    }
    report.add("until none waits", began.elapsed().as_secs_f64(), "s");
    let mut rounds = Vec::new();
    for index in args.questions..2 * args.questions {
        let question = format!("{QUESTION} {}", corpus.query(index, args.messages));
        rounds.push(asked.context(&mut server, args.budget, &question)?.ms());
    }
    add_spread(report, "contexts then", &rounds);
    let place = format!("{SESSION}#{decided}");
    let opened = asked.ask(&mut server, "expand_detail", json!({"id": place, "max_tokens": args.budget}))?;
    report.add("opening the message", opened.ms(), "ms");
    asked.missing += usize::from(!opened.text().contains(DECISION));
    report.aim("peak memory of the server", peak(&server)?, "MiB", Goal::AtMost(512.0));
    Ok(())
}

fn large_message(
    args: &Args,
    tiro: &Tiro,
    place: &Place,
    report: &mut Report,
    asked: &mut Asked,
) -> Result<()> {
    let line = "the same dull line of a log\n";
    let text = format!("{DECISION}\n{}", line.repeat(args.mb * 1_000_000 / line.len()));
    let messages = json!([{"id": "1", "role": "user", "text": text},
        {"id": "2", "role": "assistant", "text": "That is a long message."}]);
    let mut server = tiro.serve(place, Era::Session)?;
    let began = Instant::now();
    let saved = server.tool("save_messages", json!({"session_id": SESSION, "messages": messages}))?;
    if saved.structured()["saved"] != 2 {
        bail!("a message of {} MB was not saved: {}", args.mb, saved.text());
    }
    report.add(format!("saving a message of {} MB", args.mb), began.elapsed().as_secs_f64(), "s");
    let first = asked.context(&mut server, args.budget, QUESTION)?;
    report.aim("first context with it", first.ms(), "ms", Goal::AtMost(5000.0));
    let mut later = Vec::new();
    for number in 0..args.questions {
        later.push(asked.context(&mut server, args.budget, &format!("{QUESTION} {number}"))?.ms());
    }
    add_spread(report, "later contexts with it", &later);
    for level in ["brief", "standard", "detailed"] {
        let summary = asked.summary(&mut server, args.budget, level)?;
        report.aim(format!("summary with it, {level}"), summary.ms(), "ms", Goal::AtMost(5000.0));
        asked.missing += usize::from(!summary.text().contains("north shed"));
    }
    report.aim("peak memory of its server", peak(&server)?, "MiB", Goal::AtMost(512.0));
    Ok(())
}

impl Asked {
    /// Asks for a context, which must contain the decision.
    fn context(&mut self, server: &mut Server, budget: usize, question: &str) -> Result<Answer> {
        let arguments = json!({"query": question, "session_id": SESSION, "max_tokens": budget});
        let answer = self.ask(server, "retrieve_context", arguments)?;
        self.missing += usize::from(!answer.text().contains(DECISION));
        Ok(answer)
    }

    fn summary(&mut self, server: &mut Server, budget: usize, level: &str) -> Result<Answer> {
        let arguments = json!({"session_id": SESSION, "level": level, "max_tokens": budget});
        let (call, answer) = timed(server, "summarize_conversation", arguments)?;
        let summary = answer.structured()["summary"].as_str().context("an answer without a summary")?;
        self.summaries.push((call, summary.to_owned()));
        Ok(answer)
    }

    fn ask(&mut self, server: &mut Server, tool: &str, arguments: Value) -> Result<Answer> {
        let (call, answer) = timed(server, tool, arguments)?;
        self.answers.push((call, answer.clone()));
        Ok(answer)
    }
}

/// Makes a call and returns its name with the answer; a slow call is listed.
fn timed(server: &mut Server, tool: &str, arguments: Value) -> Result<(String, Answer)> {
    let call = format!("{tool} {arguments}");
    let answer = server.tool(tool, arguments)?;
    if answer.elapsed > SLOW {
        eprintln!("{:.0} ms: {call}", answer.ms());
    }
    Ok((call, answer))
}

fn add_spread(report: &mut Report, name: &str, ms: &[f64]) {
    report.add(format!("{name}, p50"), percentile(ms, 0.50), "ms");
    report.aim(format!("{name}, max"), percentile(ms, 1.0), "ms", Goal::AtMost(5000.0));
}

fn peak(server: &Server) -> Result<f64> {
    server.peak_mib().context("there is no /proc to read memory from")
}
