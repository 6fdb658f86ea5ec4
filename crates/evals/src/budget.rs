//! `evals budget`: for each budget, how much of the evidence for a question a context across all conversations
//! contains.
//!
//! Every conversation of the suite gets its own memory, which has the sessions of the conversation. A piece of evidence
//! counts if the answer contains its full text. Tokens are those of o200k. They are counted by `tiro bench tokens`,
//! which `evals tokens` compares with tiktoken, both for the text and for the JSON. Neither may exceed the budget,
//! since a client gives a model one of the two.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Answer, Era, Place, Server, Tiro};
use crate::peer;
use crate::score::ADVERSARIAL;
use crate::stats::{Goal, Report, median, percentile, print_table};
use crate::suite::{self, Message, Query};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// Budgets in tokens
    #[arg(long, value_delimiter = ',', default_values_t = [BUDGET])]
    budgets: Vec<usize>,
    /// Detail of the context: summary, mixed or full
    #[arg(long, default_value = "mixed")]
    level: String,
    /// Conversations to work on in parallel
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these conversations
    #[arg(long)]
    only: Vec<String>,
}

/// The budget of a context in tokens, unless a measurement is told another. The program's own default is the same.
pub const BUDGET: usize = 4000;

/// The goals for the evidence at a budget, in per cent, in conversations of two people.
const GOALS: &[(usize, f64)] = &[(1000, 84.0), (2000, 89.0), (4000, 93.0), (8000, 96.5)];

/// The goals for the evidence at a budget, in per cent, in chats of a user with an assistant.
const GOALS_OF_CHATS: &[(usize, f64)] = &[(1000, 48.0), (2000, 55.0), (4000, 65.0), (8000, 75.0)];

/// The budget at which the user's messages are counted.
const USERS_BUDGET: usize = BUDGET;

/// The category of questions about an order of events. Only suites of chats with an assistant have it.
const ORDER: &str = "event_ordering";

/// The figures of one answer.
pub struct Asked {
    /// The question's id.
    pub qid: String,
    /// The budget.
    pub budget: usize,
    /// The kind of question.
    pub category: String,
    /// The share of the question's evidence that the answer contains.
    pub kept: f64,
    /// The share of those pieces of evidence that the user said; `None` if the user said none of them.
    pub users: Option<f64>,
    /// The share of the answer's characters that are messages of the user, shown whole.
    pub user_share: f64,
    /// How many tokens the text has, and how many the JSON has.
    pub tokens: [usize; 2],
    /// How many tokens the answer says that it used.
    pub said: usize,
    /// How many tokens each part has, as the answer says.
    pub parts: BTreeMap<String, f64>,
    /// The time to the answer in milliseconds.
    pub ms: f64,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut suite = Suite::read(&args.suite)?;
    suite.conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    let conversations: Vec<(Vec<Message>, Vec<Query>)> = suite.conversations.into_values().collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            while let Some((messages, queries)) = conversations.get(next.fetch_add(1, Ordering::Relaxed)) {
                let asked = ask_all(messages, queries, args, tiro)?;
                done.lock().expect("no holder panics").extend(asked);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let asked = done.into_inner().expect("no holder panics");
    let mut report = Report::default();
    let mut rows = vec![header()];
    for budget in &args.budgets {
        let own: Vec<&Asked> = asked.iter().filter(|asked| asked.budget == *budget).collect();
        let (kept, used) = add_rows(&mut rows, &budget.to_string(), &own);
        let is_chat = own.iter().any(|each| each.category == ORDER);
        let goals = if is_chat { GOALS_OF_CHATS } else { GOALS };
        if *budget == USERS_BUDGET {
            add_users(&mut report, &own);
        }
        let goal = goals.iter().find(|(goal, _)| goal == budget && args.level == "mixed");
        match goal {
            Some((_, goal)) => {
                report.aim(format!("evidence kept at {budget}"), kept, "%", Goal::AtLeast(*goal))
            }
            None => report.add(format!("evidence kept at {budget}"), kept, "%"),
        }
        report.add(format!("  tokens at {budget}, mean"), used, "");
    }
    print_table(&rows);
    println!();
    let over = asked.iter().filter(|asked| asked.tokens.iter().any(|tokens| *tokens > asked.budget)).count();
    report.must_be_zero("answers over their budget", over);
    let wrong = asked.iter().filter(|asked| asked.tokens.iter().any(|tokens| *tokens > asked.said)).count();
    report.must_be_zero("answers that say too little of what they used", wrong);
    report.must_be_zero("questions that lose evidence with more budget", losing(&asked));
    let ms: Vec<f64> = asked.iter().map(|asked| asked.ms).collect();
    report.add_spread("assembly over stdio", &ms, "ms");
    report.add("answers", asked.len() as f64, "");
    report.detail = json!({"level": args.level, "budgets": args.budgets});
    Ok(report)
}

/// Reports how much of what the user said the answers contain.
fn add_users(report: &mut Report, asked: &[&Asked]) {
    let mean = |values: Vec<f64>| 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64;
    let answerable = || asked.iter().filter(|each| each.category != ADVERSARIAL);
    let users = mean(answerable().filter_map(|each| each.users).collect());
    let of_order: Vec<f64> =
        answerable().filter(|each| each.category == ORDER).filter_map(|each| each.users).collect();
    let name = |what: &str| format!("{what} at {USERS_BUDGET}");
    if of_order.is_empty() {
        report.add(name("the user's messages that are evidence"), users, "%");
    } else {
        report.aim(name("the user's messages that are evidence"), users, "%", Goal::AtLeast(82.0));
        report.aim(name("the same, questions about order"), mean(of_order), "%", Goal::AtLeast(60.0));
    }
    report.add(
        name("share of the user's words"),
        mean(answerable().map(|each| each.user_share).collect()),
        "%",
    );
}

/// Returns how many questions have an answer that contains less of their evidence than an answer with a smaller budget.
fn losing(asked: &[Asked]) -> usize {
    let mut by_question: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    for each in asked {
        by_question.entry(&each.qid).or_default().push(each);
    }
    let loses = |own: &mut Vec<&Asked>| {
        own.sort_by_key(|each| each.budget);
        own.windows(2).any(|pair| pair[0].kept > pair[1].kept)
    };
    by_question.values_mut().map(loses).filter(|loses| *loses).count()
}

/// The conversations of a suite.
pub struct Suite {
    /// The messages and questions of each conversation, by its name.
    pub conversations: BTreeMap<String, (Vec<Message>, Vec<Query>)>,
}

impl Suite {
    /// Reads `messages.jsonl` and `queries.jsonl` in `folder`.
    pub fn read(folder: &Path) -> Result<Suite> {
        let mut conversations: BTreeMap<String, (Vec<Message>, Vec<Query>)> = BTreeMap::new();
        for message in suite::read_lines::<Message>(&folder.join("messages.jsonl"))? {
            conversations.entry(message.project.clone()).or_default().0.push(message);
        }
        for query in suite::read_lines::<Query>(&folder.join("queries.jsonl"))? {
            conversations.entry(query.project.clone()).or_default().1.push(query);
        }
        Ok(Suite { conversations })
    }
}

fn ask_all(messages: &[Message], queries: &[Query], args: &Args, tiro: &Tiro) -> Result<Vec<Asked>> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    calls::save_messages(&mut server, messages)?;
    calls::settle(tiro, &place, &mut server)?;
    let texts = texts(messages);
    let mut answers = Vec::new();
    for query in queries {
        for budget in &args.budgets {
            let arguments = json!({"query": query.query, "max_tokens": budget, "include_level": args.level});
            let answer = ask(&mut server, arguments).with_context(|| format!("asking `{}`", query.qid))?;
            answers.push((query, *budget, answer));
        }
    }
    let tokens = count(tiro, &place, answers.iter().map(|(.., answer)| answer))?;
    let of_user: HashMap<&str, &str> = messages
        .iter()
        .filter(|message| message.role == "user")
        .map(|message| (message.id.as_str(), message.text.as_str()))
        .collect();
    let users = |query: &Query, text: &str| {
        let gold: Vec<String> =
            query.gold.iter().filter(|id| of_user.contains_key(id.as_str())).cloned().collect();
        let is_any = !gold.is_empty();
        is_any.then(|| kept(&Query { gold, ..query.clone() }, &of_user, text))
    };
    let asked = answers.iter().zip(tokens).map(|((query, budget, answer), tokens)| Asked {
        qid: query.qid.clone(),
        budget: *budget,
        category: query.category.clone(),
        kept: kept(query, &texts, &answer.text()),
        users: users(query, &answer.text()),
        user_share: share(&of_user, &answer.text()),
        tokens,
        said: answer.structured()["tokens_used"].as_u64().unwrap_or(0) as usize,
        parts: parts(answer),
        ms: answer.ms(),
    });
    Ok(asked.collect())
}

/// Assembles a context.
pub fn ask(server: &mut Server, arguments: Value) -> Result<Answer> {
    server.tool("retrieve_context", arguments)
}

/// Returns the texts of the messages by their ids.
pub fn texts(messages: &[Message]) -> HashMap<&str, &str> {
    messages.iter().map(|message| (message.id.as_str(), message.text.as_str())).collect()
}

/// Returns the share of the question's evidence whose full text is in `text`.
pub fn kept(query: &Query, texts: &HashMap<&str, &str>, text: &str) -> f64 {
    let mut gold: Vec<&String> = query.gold.iter().collect();
    gold.sort();
    gold.dedup();
    let found = gold.iter().filter(|id| texts.get(id.as_str()).is_some_and(|own| text.contains(own.trim())));
    found.count() as f64 / gold.len().max(1) as f64
}

/// Returns the share of the characters of `text` that are whole messages of `texts`.
pub fn share(texts: &HashMap<&str, &str>, text: &str) -> f64 {
    let shown = texts.values().map(|own| own.trim()).filter(|own| text.contains(own));
    shown.map(str::len).sum::<usize>() as f64 / text.len().max(1) as f64
}

/// Returns the tokens of each part, as the answer reports them.
pub fn parts(answer: &Answer) -> BTreeMap<String, f64> {
    let parts = answer.structured()["parts"].as_object().cloned().unwrap_or_default();
    parts.into_iter().filter_map(|(part, tokens)| Some((part, tokens.as_f64()?))).collect()
}

/// Counts the tokens of each answer's text and JSON.
pub fn count<'a>(
    tiro: &Tiro,
    place: &Place,
    answers: impl Iterator<Item = &'a Answer>,
) -> Result<Vec<[usize; 2]>> {
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let mut paths = Vec::new();
    for (number, answer) in answers.enumerate() {
        for (kind, text) in [("text", answer.text()), ("json", answer.structured().to_string())] {
            let path = folder.path().join(format!("{number}.{kind}"));
            std::fs::write(&path, text)?;
            paths.push(path);
        }
    }
    let list = folder.path().join("files.txt");
    std::fs::write(&list, paths.iter().map(|path| format!("{}\n", path.display())).collect::<String>())?;
    let list = calls::path_text(&list)?;
    let counted = peer::bench(tiro, place, &["tokens", "--files", list, "--rounds", "1"])?;
    let counts: Vec<usize> = peer::numbers(&counted, "counts").iter().map(|count| *count as usize).collect();
    anyhow::ensure!(counts.len() == paths.len(), "{} files counted of {}", counts.len(), paths.len());
    Ok(counts.chunks(2).map(|both| [both[0], both[1]]).collect())
}

/// Counts the tokens of a text.
pub fn count_text(tiro: &Tiro, place: &Place, text: &str) -> Result<usize> {
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let (path, list) = (folder.path().join("text"), folder.path().join("files.txt"));
    std::fs::write(&path, text)?;
    std::fs::write(&list, format!("{}\n", path.display()))?;
    let list = calls::path_text(&list)?;
    let counted = peer::bench(tiro, place, &["tokens", "--files", list, "--rounds", "1"])?;
    Ok(peer::numbers(&counted, "counts").first().copied().unwrap_or(0.0) as usize)
}

/// Returns the names of the columns that [`add_rows`] fills.
pub fn header() -> Vec<String> {
    ["budget", "category", "n", "kept %", "tokens p50", "max", "facts", "summaries", "recent", "relevant"]
        .map(String::from)
        .to_vec()
}

/// Adds a row for each category and one for all questions except the adversarial ones. Returns the evidence and the
/// tokens of that last row.
pub fn add_rows(rows: &mut Vec<Vec<String>>, name: &str, asked: &[&Asked]) -> (f64, f64) {
    let mut groups: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    for each in asked {
        groups.entry(&each.category).or_default().push(each);
        if each.category != ADVERSARIAL {
            groups.entry("~all").or_default().push(each);
        }
    }
    let mut all = (0.0, 0.0);
    for (category, own) in groups {
        let mean = |value: &dyn Fn(&Asked) -> f64| {
            own.iter().map(|each| value(each)).sum::<f64>() / own.len().max(1) as f64
        };
        let tokens: Vec<f64> = own.iter().map(|each| each.tokens[0].max(each.tokens[1]) as f64).collect();
        let kept = 100.0 * mean(&|each| each.kept);
        all = (kept, mean(&|each| each.tokens[0].max(each.tokens[1]) as f64));
        let mut row =
            vec![name.to_owned(), category.trim_start_matches('~').to_owned(), own.len().to_string()];
        row.push(format!("{kept:.1}"));
        row.push(format!("{:.0}", median(&tokens)));
        row.push(format!("{:.0}", percentile(&tokens, 1.0)));
        for part in ["facts", "summaries", "recent", "relevant"] {
            row.push(format!("{:.0}", mean(&|each| each.parts.get(part).copied().unwrap_or(0.0))));
        }
        rows.push(row);
    }
    all
}
