//! `evals updates`: whether a context shows the newest of several values, before the older ones, and marks those.
//!
//! The questions are those about updated knowledge of BEAM, whose annotations name the messages with the original and with
//! the updated information. The newest value is in a context if a number, date or name of the answer stands there with the
//! words that surround it in the updated message. An older message is marked if its line says `superseded`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::budget::Suite;
use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::stats::{Goal, Report, print_table};
use crate::suite::Message;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl, made of BEAM chats
    #[arg(long)]
    suite: PathBuf,
    /// Directory with the BEAM chats and their probing questions
    #[arg(long)]
    chats: PathBuf,
    /// Budget of the contexts in tokens
    #[arg(long, default_value_t = 4000)]
    budget: usize,
    /// Only these conversations
    #[arg(long)]
    only: Vec<String>,
    /// Directory with a data directory for each conversation, which is kept for the next run
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// A question about a value that was updated.
struct Question {
    text: String,
    answer: String,
    /// The ids of the messages with the original information.
    older: Vec<String>,
    /// The ids of the messages with the updated information.
    newer: Vec<String>,
}

/// What a text shows of a question.
#[derive(Default)]
struct Shown {
    has_newest: bool,
    is_first: bool,
    /// How many older messages are shown, and how many of them are marked.
    older: (usize, usize),
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut suite = Suite::read(&args.suite)?;
    suite.conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    let mut rows = vec![
        ["question", "newest", "first", "older marked", "in a search: newest", "first", "older marked"]
            .map(String::from)
            .to_vec(),
    ];
    let (mut contexts, mut searches) = (Vec::new(), Vec::new());
    for (name, (messages, _)) in &suite.conversations {
        let questions = questions(&args.chats, name)?;
        let root = tempfile::tempdir().context("making a temporary directory")?;
        let kept = args.keep.as_ref().map(|keep| keep.join(name));
        let is_filled = kept.as_ref().is_some_and(|kept| kept.exists());
        let place = Place::create(kept.as_deref().unwrap_or(root.path()))?;
        let mut server = tiro.serve(&place, Era::Session)?;
        if !is_filled {
            calls::save_messages(&mut server, messages)?;
        }
        let project = calls::path_text(&place.project)?.to_owned();
        let _ = tiro.run(&place, &["index", "--project", &project], calls::LONG);
        calls::settle(tiro, &place, &mut server)?;
        for question in &questions {
            let (context, search) = ask(&mut server, question, messages, args.budget)?;
            let cell = |is: bool| if is { "yes" } else { "no" }.to_owned();
            let mut row = vec![format!("{name}: {}", question.text.chars().take(60).collect::<String>())];
            for shown in [&context, &search] {
                row.extend([
                    cell(shown.has_newest),
                    cell(shown.is_first),
                    format!("{} of {}", shown.older.1, shown.older.0),
                ]);
            }
            rows.push(row);
            contexts.push(context);
            searches.push(search);
        }
    }
    if contexts.is_empty() {
        bail!("no questions about updates in `{}`", args.chats.display());
    }
    print_table(&rows);
    println!();
    let mut report = Report::default();
    let share = |shown: &[Shown], is: &dyn Fn(&Shown) -> bool| {
        100.0 * shown.iter().filter(|shown| is(shown)).count() as f64 / shown.len().max(1) as f64
    };
    let marked = |shown: &[Shown]| {
        let all: usize = shown.iter().map(|shown| shown.older.0).sum();
        let marked: usize = shown.iter().map(|shown| shown.older.1).sum();
        100.0 * marked as f64 / all.max(1) as f64
    };
    report.aim(
        "newest value in the context",
        share(&contexts, &|each| each.has_newest),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim(
        "newest before older values",
        share(&contexts, &|each| each.is_first),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim("older messages marked", marked(&contexts), "%", Goal::AtLeast(80.0));
    report.add("newest value in a search", share(&searches, &|each| each.has_newest), "%");
    report.add("newest before older values, search", share(&searches, &|each| each.is_first), "%");
    report.add("older messages marked, search", marked(&searches), "%");
    report.add("questions", contexts.len() as f64, "");
    report.detail = json!({"budget": args.budget});
    Ok(report)
}

/// Returns the questions about updates of the conversation `beam-N`.
fn questions(chats: &Path, name: &str) -> Result<Vec<Question>> {
    let number = name.rsplit('-').next().unwrap_or_default();
    let path = chats.join(number).join("probing_questions/probing_questions.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
    let all: Value = serde_json::from_str(&text).with_context(|| format!("reading `{}`", path.display()))?;
    let mut found = Vec::new();
    for each in all["knowledge_update"].as_array().into_iter().flatten() {
        let sources = &each["source_chat_ids"];
        let newer = ids(&sources["updated_info"]);
        let older = ids(&sources["original_info"]).into_iter().filter(|id| !newer.contains(id)).collect();
        let text = |field: &str| each[field].as_str().unwrap_or_default().to_owned();
        if !newer.is_empty() {
            found.push(Question { text: text("question"), answer: text("answer"), older, newer });
        }
    }
    Ok(found)
}

fn ids(value: &Value) -> Vec<String> {
    match value {
        Value::Number(number) => vec![number.to_string()],
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(ids).collect(),
        _ => Vec::new(),
    }
}

/// Asks for a context and for a search, and returns what each shows.
fn ask(
    server: &mut Server,
    question: &Question,
    messages: &[Message],
    budget: usize,
) -> Result<(Shown, Shown)> {
    let arguments = json!({"query": question.text, "max_tokens": budget});
    let context = server.tool("retrieve_context", arguments)?.text();
    let search = calls::search(server, &question.text, 10)?.text();
    let of = |ids: &[String]| -> Vec<&str> {
        messages
            .iter()
            .filter(|message| ids.contains(&message.id))
            .map(|message| message.text.as_str())
            .collect()
    };
    let (newer, older) = (of(&question.newer), of(&question.older));
    Ok((shown(&context, question, &newer, &older), shown(&search, question, &newer, &older)))
}

/// How many characters before a value must stand in the text, too.
const AROUND: usize = 20;

/// How many characters of the beginning of an older message identify it.
const BEGINNING: usize = 60;

fn shown(text: &str, question: &Question, newer: &[&str], older: &[&str]) -> Shown {
    let newest = newer
        .iter()
        .flat_map(|message| windows(message, &question.answer))
        .filter_map(|it| text.find(it))
        .min();
    let places: Vec<usize> = older
        .iter()
        .filter_map(|message| {
            let message = message.trim();
            let beginning = &message[..message.floor_char_boundary(BEGINNING)];
            // A summary may repeat the beginning; the message itself counts if it is shown.
            let is_line = |place: &usize| {
                let line = &text[text[..*place].rfind('\n').map_or(0, |at| at + 1)..*place];
                line.starts_with('#') || line.is_empty()
            };
            let places = || text.match_indices(beginning).map(|(place, _)| place);
            places().find(is_line).or_else(|| places().next())
        })
        .collect();
    let is_marked = |place: &&usize| {
        // The mark stands between the beginning of the line, or the line before it, and the text.
        let before = &text[..**place];
        let from = before
            .rfind("\n#")
            .or_else(|| before.rfind("\n[message"))
            .or_else(|| before.rfind('\n'))
            .unwrap_or(0);
        let after = &text[**place..];
        let until = after.find("\n[message").or_else(|| after.find("\n#")).unwrap_or(after.len());
        before[from..].contains("superseded") || after[..until].contains("[superseded")
    };
    Shown {
        has_newest: newest.is_some(),
        is_first: newest.is_some_and(|newest| places.iter().all(|place| newest < *place)),
        older: (places.len(), places.iter().filter(is_marked).count()),
    }
}

/// Returns the parts of a message around the numbers of the answer, or around its longest words if it has no number.
fn windows<'m>(message: &'m str, answer: &str) -> Vec<&'m str> {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, ',' | '.' | '%' | '$' | ':');
    let words = answer.split(|c: char| !is_inner(c)).map(|word| word.trim_matches([',', '.', ':']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut values: Vec<&str> =
        words.iter().copied().filter(|word| word.contains(|c: char| c.is_ascii_digit())).collect();
    if values.is_empty() {
        values = words.into_iter().filter(|word| word.len() > 4).collect();
    }
    values
        .iter()
        .filter_map(|value| {
            let at = message
                .find(value)
                .or_else(|| message.to_ascii_lowercase().find(&value.to_ascii_lowercase()))?;
            let start = message.floor_char_boundary(at.saturating_sub(AROUND));
            let end = at + value.len();
            Some(message[start..end].split('\n').max_by_key(|line| line.len()).unwrap_or_default().trim())
        })
        .filter(|window| window.len() > 5)
        .collect()
}
