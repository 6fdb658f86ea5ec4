//! `evals gate`: how many true summaries by a model are accepted, and how many false ones.
//!
//! A suite is a folder with `messages.jsonl` and `summaries.jsonl`, which has a true summary of each session. False
//! summaries are made from the true ones. A mock model answers with each of them, and the program decides: an answer
//! is accepted if the summary that `summarize_conversation` returns is the mock's.

mod falsify;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use self::falsify::{Fault, falsify};
use crate::client::{Era, Place, Server, Tiro};
use crate::random::Random;
use crate::stats::{Goal, Report};
use crate::suite::{self, Message};
use crate::{calls, mock};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and summaries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// File to write each answer and the decision to
    #[arg(long)]
    out: Option<PathBuf>,
    /// The level of detail of the summaries that are asked for
    #[arg(long, default_value = "detailed")]
    level: String,
    /// Use only each session whose number divided by this has no remainder
    #[arg(long, default_value_t = 1)]
    every: usize,
}

/// A line of `summaries.jsonl`: a true summary.
#[derive(Debug, Deserialize)]
struct Summary {
    #[serde(default)]
    project: String,
    session: String,
    text: String,
}

/// How many tokens an answer has in addition to the summary, as the tool counts them.
const FRAME: usize = 180;

/// The share of true summaries to accept, and the share of false ones, in percent.
const TRUE: f64 = 95.0;
const FALSE: f64 = 5.0;

/// How many answers were accepted, and of how many.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    accepted: usize,
    all: usize,
}

impl Share {
    fn add(&mut self, is_accepted: bool) {
        self.accepted += usize::from(is_accepted);
        self.all += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.accepted as f64 / self.all.max(1) as f64
    }
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let messages = suite::read_lines::<Message>(&args.suite.join("messages.jsonl"))?;
    let summaries = suite::read_lines::<Summary>(&args.suite.join("summaries.jsonl"))?;
    let mut sessions: BTreeMap<(&str, &str), Vec<Message>> = BTreeMap::new();
    for message in &messages {
        sessions.entry((&message.project, &message.session)).or_default().push(message.clone());
    }
    let mut projects: BTreeMap<&str, Vec<&Summary>> = BTreeMap::new();
    for summary in &summaries {
        projects.entry(&summary.project).or_default().push(summary);
    }
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let tiro = tiro.without_model(root.path())?;
    let answer: Arc<Mutex<String>> = Arc::default();
    let port = {
        let answer = Arc::clone(&answer);
        mock::start(move || answer.lock().expect("no thread panics with the answer").clone())?
    };
    let config = root.path().join("config.toml");
    std::fs::write(&config, config_of(port))?;
    let mut tiro = tiro;
    tiro.environment.push(("TIRO_CONFIG".into(), calls::path_text(&config)?.into()));
    let mut random = Random::new(1);
    let (mut accepted_true, mut accepted) = (Share::default(), BTreeMap::<Fault, Share>::new());
    let mut decided: Vec<Value> = Vec::new();
    let mut number = 0;
    for (name, summaries) in &projects {
        let folder = root.path().join(format!("p{}", decided.len()));
        std::fs::create_dir_all(&folder)?;
        let mut server = tiro.serve(&Place::create(&folder)?, Era::Session)?;
        for (place, summary) in summaries.iter().enumerate() {
            number += 1;
            if number % args.every.max(1) != 0 {
                continue;
            }
            let key = (*name, summary.session.as_str());
            let messages = sessions.get(&key).with_context(|| format!("no messages of {key:?}"))?;
            let other = summaries[(place + 1) % summaries.len()];
            let other = (other.session != summary.session).then_some(other.text.as_str());
            let texts = std::iter::once((None, Some(summary.text.clone()))).chain(
                Fault::ALL
                    .map(|fault| (Some(fault), falsify(fault, &summary.text, other, messages, &mut random))),
            );
            for (round, (fault, text)) in texts.enumerate() {
                let Some(text) = text else { continue };
                answer.lock().expect("no thread panics with the answer").clone_from(&text);
                // Each round has a session of its own, since a summary that was accepted before would come from the cache.
                let session = format!("{} {round}", summary.session);
                let own: Vec<Message> = messages
                    .iter()
                    .map(|each| Message { session: session.clone(), ..each.clone() })
                    .collect();
                calls::save_messages(&mut server, &own)?;
                let (is_accepted, why) = decide(&mut server, &session, &args.level, &text)?;
                match fault {
                    None => accepted_true.add(is_accepted),
                    Some(fault) => accepted.entry(fault).or_default().add(is_accepted),
                }
                let kind = fault.map_or("true", Fault::name);
                decided.push(json!({"project": name, "session": summary.session, "kind": kind,
                    "accepted": is_accepted, "why": why, "text": text}));
            }
        }
    }
    if let Some(path) = &args.out {
        suite::write_lines(path, &decided)?;
    }
    let mut report = Report::default();
    report.add("true summaries", accepted_true.all as f64, "");
    report.aim("true, accepted", accepted_true.percent(), "%", Goal::AtLeast(TRUE));
    let mut all = Share::default();
    for share in accepted.values() {
        (all.accepted, all.all) = (all.accepted + share.accepted, all.all + share.all);
    }
    report.add("false summaries", all.all as f64, "");
    report.aim("false, accepted", all.percent(), "%", Goal::AtMost(FALSE));
    for (fault, share) in &accepted {
        let name = format!("{} ({}), accepted", fault.name(), share.all);
        report.aim(name, share.percent(), "%", Goal::AtMost(FALSE));
    }
    report.detail = json!({"level": args.level});
    Ok(report)
}

fn config_of(port: u16) -> String {
    format!(
        "default_provider = 'mock'\n[providers.mock]\nservice = 'openai-compatible'\n\
         endpoint = 'http://127.0.0.1:{port}/v1'\nmodel = 'm'\nprice = {{ input = 0, output = 0 }}\n\
         window = 200000\nuses = ['summarize']\n"
    )
}

/// Returns whether the program accepts `text` as the summary of the session, and its notices.
fn decide(server: &mut Server, session: &str, level: &str, text: &str) -> Result<(bool, String)> {
    // There is room for the whole text: a token has at least one byte and rarely fewer than three.
    let most = FRAME + (text.len() / 3 + 100).max(200);
    let arguments = json!({"session_id": session, "level": level, "max_tokens": most});
    let answer = server.tool("summarize_conversation", arguments)?;
    let fields = answer.structured();
    let notices = fields["notices"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok((fields["provider"] == "mock", notices.collect::<Vec<_>>().join("; ")))
}
