//! `evals replay`: how often an answer comes from the cache, and whether a cached answer is ever older than its
//! sources.
//!
//! In the script, six conversations are finished and a seventh continues. In each turn the seventh conversation gets
//! two messages, then four questions are asked. Two of five questions are new. Half of the others repeat a question of
//! the same turn, as an agent does after losing its context, and the rest repeat a question of one of the last turns.
//! Half of the new questions are about the open conversation, three of ten are about a finished one, and the others are
//! about all. In every fifth turn a memory is forgotten, restored, marked or stored.
//!
//! Each answer is compared with that of a second server, which uses the same memory but has no cache. If they differ,
//! both servers are asked again once nothing is pending; if the answers still differ, the cached one counts as stale.
//! Each changed memory is asked for by its own words, within its conversation and across all. Both answers must show
//! the memory, but neither may show it while it is forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Answer, Era, Place, Server, Tiro};
use crate::corpus::{Corpus, SESSION};
use crate::random::Random;
use crate::stats::{Goal, Report};
use crate::suite::Message;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Turns of the conversation
    #[arg(long, default_value_t = 75)]
    turns: usize,
    /// Messages said before the first question
    #[arg(long, default_value_t = 200)]
    messages: usize,
    /// Seed of conversation and script
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The name of the open session.
const OPEN: &str = "open";

/// The number of finished conversations.
const FINISHED: usize = 6;

/// How many questions are asked in each turn.
const QUESTIONS: usize = 4;

/// The share of questions that are new.
const NEW: f64 = 0.4;

/// How many questions are kept so that later turns can repeat them.
const REMEMBERED: usize = 24;

/// How many turns lie between two changes of the memory.
const CHANGE_EVERY: usize = 5;

/// The longest wait until nothing is pending.
const PATIENCE: Duration = Duration::from_secs(120);

/// The scope of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Open,
    Finished(usize),
    All,
}

/// A question, and how often its sources had changed when it was last asked.
#[derive(Clone, Debug)]
struct Question {
    of: Of,
    text: String,
    turn: usize,
    asked_at: Option<usize>,
}

impl Question {
    fn arguments(&self) -> Value {
        match self.of {
            Of::Open => json!({"query": self.text, "session_id": OPEN, "max_tokens": 2000}),
            Of::Finished(number) => {
                json!({"query": self.text, "conversation_ids": [finished(number)], "max_tokens": 2000})
            }
            Of::All => json!({"query": self.text, "max_tokens": 2000}),
        }
    }
}

fn finished(number: usize) -> String {
    format!("finished-{number}")
}

/// The counts.
#[derive(Debug, Default)]
struct Counts {
    asked: usize,
    repeated: usize,
    unchanged: usize,
    hits: usize,
    unchanged_hits: usize,
    differed: usize,
    stale: usize,
    changes: usize,
    unseen_changes: usize,
    by_hit: BTreeMap<bool, Vec<f64>>,
}

/// Both servers, the state of the script, and the counts.
struct Replay<'a> {
    tiro: &'a Tiro,
    place: Place,
    corpus: Corpus,
    keeping: Server,
    fresh: Server,
    said: usize,
    /// How often each scope has changed.
    changed: BTreeMap<Of, usize>,
    hits: u64,
    counts: Counts,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let corpus = Corpus::new(args.seed);
    let mut keeping = tiro.serve(&place, Era::Session)?;
    for number in 0..FINISHED {
        let said = (number * SESSION..(number + 1) * SESSION)
            .map(|index| Message { session: finished(number), ..corpus.message(index) });
        calls::save_messages(&mut keeping, &said.collect::<Vec<_>>())?;
    }
    let fresh = tiro.serve_with(&place, Era::Session, &["--set", "context.cache_ttl=0"])?;
    let said = FINISHED * SESSION;
    let changed = BTreeMap::new();
    let counts = Counts::default();
    let mut replay = Replay { tiro, place, corpus, keeping, fresh, said, changed, hits: 0, counts };
    replay.say(args.messages)?;
    replay.settle()?;
    replay.hits = replay.noted_hits()?;
    let mut random = Random::new(args.seed);
    let mut asked: Vec<Question> = Vec::new();
    for turn in 0..args.turns {
        replay.say(2)?;
        for _ in 0..QUESTIONS {
            let question = replay.next_question(&mut random, &mut asked, turn);
            replay.ask(&mut asked[question])?;
        }
        if turn % CHANGE_EVERY == CHANGE_EVERY - 1 {
            replay.change(turn / CHANGE_EVERY)?;
        }
    }
    Ok(replay.report(args))
}

impl Replay<'_> {
    /// Saves the next `count` messages of the open conversation.
    fn say(&mut self, count: usize) -> Result<()> {
        let said = (self.said..self.said + count)
            .map(|index| Message { session: OPEN.into(), ..self.corpus.message(index) });
        calls::save_messages(&mut self.keeping, &said.collect::<Vec<_>>())?;
        self.said += count;
        self.changes(&[Of::Open]);
        Ok(())
    }

    fn changes(&mut self, what: &[Of]) {
        for of in what.iter().chain(&[Of::All]) {
            *self.changed.entry(*of).or_default() += 1;
        }
    }

    /// Waits until everything is embedded and summarised.
    fn settle(&mut self) -> Result<()> {
        calls::settle(self.tiro, &self.place, &mut self.keeping)?;
        let began = std::time::Instant::now();
        loop {
            let waits = json!({"query": "pending", "session_id": OPEN, "max_tokens": 500});
            if self.fresh.tool("retrieve_context", waits)?.pending() == Some(0) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "summaries stay pending");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the index in `asked` of the question that the script asks next.
    fn next_question(&self, random: &mut Random, asked: &mut Vec<Question>, turn: usize) -> usize {
        let this_turn: Vec<usize> = (0..asked.len()).filter(|place| asked[*place].turn == turn).collect();
        let is_new = random.chance(NEW) || asked.is_empty();
        if is_new {
            let of = match random.unit() {
                u if u < 0.5 => Of::Open,
                u if u < 0.8 => Of::Finished(random.below(FINISHED)),
                _ => Of::All,
            };
            let text = self.corpus.query(asked.len(), self.said);
            asked.push(Question { of, text, turn, asked_at: None });
            return asked.len() - 1;
        }
        let again = match random.chance(0.5) && !this_turn.is_empty() {
            true => *random.pick(&this_turn),
            false => asked.len() - 1 - random.below(asked.len().min(REMEMBERED)),
        };
        asked[again].turn = turn;
        again
    }

    fn ask(&mut self, question: &mut Question) -> Result<()> {
        let version = self.changed.get(&question.of).copied().unwrap_or(0);
        let is_unchanged = question.asked_at == Some(version);
        let is_repeated = question.asked_at.is_some();
        question.asked_at = Some(version);
        let answer = self.keeping.tool("retrieve_context", question.arguments())?;
        let hits = self.noted_hits()?;
        let is_hit = hits > self.hits;
        self.hits = hits;
        self.counts.asked += 1;
        self.counts.repeated += usize::from(is_repeated);
        self.counts.unchanged += usize::from(is_unchanged);
        self.counts.hits += usize::from(is_hit);
        self.counts.unchanged_hits += usize::from(is_hit && is_unchanged);
        self.counts.by_hit.entry(is_hit).or_default().push(answer.ms());
        self.compare(question.arguments(), &answer)
    }

    /// Compares an answer with that of the server without a cache.
    fn compare(&mut self, arguments: Value, answer: &Answer) -> Result<()> {
        let fresh = self.fresh.tool("retrieve_context", arguments.clone())?;
        if fresh.text() == answer.text() && fresh.structured() == answer.structured() {
            return Ok(());
        }
        // If they differ, a message was embedded or summarised between the two answers, or the first answer was stale.
        self.counts.differed += 1;
        self.settle()?;
        let again = self.keeping.tool("retrieve_context", arguments.clone())?;
        let fresh = self.fresh.tool("retrieve_context", arguments.clone())?;
        if fresh.text() != again.text() {
            self.counts.stale += 1;
            eprintln!("stale: {arguments}\n--- cached\n{}\n--- fresh\n{}", again.text(), fresh.text());
        }
        self.hits = self.noted_hits()?;
        Ok(())
    }

    /// Changes the memory, and checks that the answers before and after it are right.
    fn change(&mut self, number: usize) -> Result<()> {
        self.settle()?;
        let message = self.corpus.message(self.said - 1 - 7 * (number % 5));
        let words = message.text.split_whitespace().take(12).collect::<Vec<_>>().join(" ");
        let ask = json!({"query": words, "session_id": OPEN, "max_tokens": 1500});
        let across = json!({"query": words, "max_tokens": 1500});
        let begins: String = message.text.chars().take(30).collect();
        let hits = self.keeping.tool("search_project_memory", json!({"query": words, "k": 5}))?;
        let hit = hits.hits().iter().find(|hit| hit["source_id"] == json!(message.id));
        let id = hit.context("a message isn't found by its words")?["id"].clone();
        // Each question is asked twice, so that the second answer comes from the cache.
        for arguments in [&ask, &across] {
            self.keeping.tool("retrieve_context", arguments.clone())?;
        }
        // Returns which of the two answers contain a text.
        let shows = |replay: &mut Self, text: &str| -> Result<[bool; 2]> {
            let mut shown = [false; 2];
            for (shown, arguments) in shown.iter_mut().zip([&ask, &across]) {
                let answer = replay.keeping.tool("retrieve_context", arguments.clone())?;
                *shown = answer.text().contains(text);
                replay.compare(arguments.clone(), &answer)?;
            }
            Ok(shown)
        };
        let (what, seen, expected) = match number % 3 {
            0 => {
                let before = shows(self, &begins)?;
                let forgotten = self.keeping.tool("forget_context", json!({"ids": [id]}))?;
                let gone = shows(self, &begins)?;
                let operation = forgotten.structured()["operation"].clone();
                self.keeping.tool("forget_context", json!({"undo": operation}))?;
                let after = shows(self, &begins)?;
                (
                    "forgotten and brought back",
                    vec![before, gone, after],
                    vec![[true; 2], [false; 2], [true; 2]],
                )
            }
            1 => {
                self.keeping.tool("mark_important", json!({"ids": [id]}))?;
                ("marked", vec![shows(self, &begins)?], vec![[true; 2]])
            }
            _ => {
                let text = format!("{words}: settled again, number {number}");
                let store = json!({"text": text, "type": "decision", "session_id": OPEN});
                self.keeping.tool("store_memory", store)?;
                ("stored", vec![shows(self, &format!("settled again, number {number}"))?], vec![[true; 2]])
            }
        };
        let is_seen = seen == expected;
        if !is_seen {
            eprintln!(
                "what was {what} isn't seen: {words:?}, within and across {seen:?} instead of {expected:?}"
            );
        }
        self.counts.changes += 1;
        self.counts.unseen_changes += usize::from(!is_seen);
        self.changes(&[Of::Open]);
        self.hits = self.noted_hits()?;
        Ok(())
    }

    /// Returns how many answers from the cache the store has counted.
    fn noted_hits(&self) -> Result<u64> {
        // The command runs without the model, since loading it takes longer than all the rest.
        let without_model = Tiro { model_dir: None, ..self.tiro.clone() };
        let stats = without_model.run(
            &self.place,
            &["stats", "--json", "--project", calls::path_text(&self.place.project)?],
            Duration::from_secs(60),
        )?;
        let stats: Value = serde_json::from_str(&stats)?;
        Ok(stats["cache"]["hits"].as_u64().unwrap_or(0))
    }

    fn report(self, args: &Args) -> Report {
        let counts = self.counts;
        let mut report = Report::default();
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        report.add("questions", counts.asked as f64, "");
        report.add("  asked again", share(counts.repeated, counts.asked), "%");
        report.add("  asked again, nothing changed since", share(counts.unchanged, counts.asked), "%");
        report.add("answered from the cache, of all", share(counts.hits, counts.asked), "%");
        report.add("answered from the cache, of those asked again", share(counts.hits, counts.repeated), "%");
        report.aim(
            "answered from the cache, of those where nothing changed",
            share(counts.unchanged_hits, counts.unchanged),
            "%",
            Goal::AtLeast(60.0),
        );
        report.add("answers that changed between two servers", counts.differed as f64, "");
        report.must_be_zero("stale answers", counts.stale);
        report.add(
            "times something was forgotten, brought back, marked or stored",
            counts.changes as f64,
            "",
        );
        report.must_be_zero("of them not seen in the next answer", counts.unseen_changes);
        for (is_hit, ms) in &counts.by_hit {
            report.add_spread(if *is_hit { "from the cache" } else { "assembled" }, ms, "ms");
        }
        report.detail = json!({"turns": args.turns, "messages": args.messages, "seed": args.seed,
            "questions": QUESTIONS, "new": NEW, "finished": FINISHED});
        report
    }
}
