//! `evals updates`: whether a context shows the newest of several values, before the older ones, and marks those.
//!
//! The questions are those about updated knowledge of BEAM, whose annotations name the messages with the original and with
//! the updated information. The newest value is in a context if a number, date or name of the answer stands there with the
//! words that surround it in the updated message. An older message is marked if its line says `superseded`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::budget::{BUDGET, Suite};
use crate::calls;
use crate::client::{Answer, Era, Place, Server, Tiro};
use crate::passages::passages;
use crate::stats::{Goal, Report, mean, print_table, share_with_interval};
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
    #[arg(long, default_value_t = BUDGET)]
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
    /// Which marks are shown: whether each stands on a message that a question of the conversation lists as older.
    marks: Vec<bool>,
    /// How many tokens the answer says that it used.
    tokens: f64,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut suite = Suite::read(&args.suite)?;
    suite.conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    let mut rows = vec![
        [
            "question",
            "newest",
            "first",
            "older marked",
            "marks right",
            "in a search: newest",
            "first",
            "older marked",
            "marks right",
        ]
        .map(String::from)
        .to_vec(),
    ];
    let (mut contexts, mut searches) = (Vec::new(), Vec::new());
    for (name, (messages, _)) in &suite.conversations {
        let questions = questions(&args.chats, name)?;
        let outdated: HashSet<&str> =
            questions.iter().flat_map(|question| &question.older).map(String::as_str).collect();
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
            let (context, search) = ask(&mut server, question, messages, &outdated, args.budget)?;
            let cell = |is: bool| if is { "yes" } else { "no" }.to_owned();
            let mut row = vec![format!("{name}: {}", question.text.chars().take(60).collect::<String>())];
            for shown in [&context, &search] {
                row.extend([
                    cell(shown.has_newest),
                    cell(shown.is_first),
                    format!("{} of {}", shown.older.1, shown.older.0),
                    format!("{} of {}", right(&shown.marks), shown.marks.len()),
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
    let mut report = report(&contexts, &searches);
    report.detail = json!({"budget": args.budget});
    Ok(report)
}

/// Returns how many marks are right.
fn right(marks: &[bool]) -> usize {
    marks.iter().filter(|is_right| **is_right).count()
}

/// Makes the report of what the contexts and the searches show.
fn report(contexts: &[Shown], searches: &[Shown]) -> Report {
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
        share(contexts, &|each| each.has_newest),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim(
        "newest before older values",
        share(contexts, &|each| each.is_first),
        "%",
        Goal::AtLeast(95.0),
    );
    report.aim("older messages marked", marked(contexts), "%", Goal::AtLeast(80.0));
    report.add("newest value in a search", share(searches, &|each| each.has_newest), "%");
    report.add("newest before older values, search", share(searches, &|each| each.is_first), "%");
    report.add("older messages marked, search", marked(searches), "%");
    for (what, shown) in [("context", contexts), ("search", searches)] {
        let marks: Vec<bool> = shown.iter().flat_map(|shown| &shown.marks).copied().collect();
        let known = right(&marks);
        println!(
            "Marks in {what}: {known} of {} known to be right, {} %",
            marks.len(),
            share_with_interval(known, marks.len())
        );
        report.add(format!("marks, {what}"), marks.len() as f64, "");
        report.add(
            format!("marks on a message listed as older, {what} (lower bound of the precision)"),
            100.0 * known as f64 / marks.len().max(1) as f64,
            "%",
        );
        report.add(
            format!("tokens, {what}, mean"),
            mean(&shown.iter().map(|shown| shown.tokens).collect::<Vec<_>>()),
            "",
        );
    }
    println!();
    report.add("questions", contexts.len() as f64, "");
    report
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
    outdated: &HashSet<&str>,
    budget: usize,
) -> Result<(Shown, Shown)> {
    let arguments = json!({"query": question.text, "max_tokens": budget});
    let context = calls::patiently(server, "retrieve_context", arguments)?;
    let search = calls::search(server, &question.text, 10)?;
    let of = |ids: &[String]| -> Vec<&str> {
        messages
            .iter()
            .filter(|message| ids.contains(&message.id))
            .map(|message| message.text.as_str())
            .collect()
    };
    let (newer, older) = (of(&question.newer), of(&question.older));
    let tokens = |answer: &Answer| answer.structured()["tokens_used"].as_f64().unwrap_or(0.0);
    let text = context.text();
    let in_context = Shown {
        marks: marks_of_context(&text, messages, outdated),
        tokens: tokens(&context),
        ..shown(&text, question, &newer, &older)
    };
    let in_search = Shown {
        marks: marks_of_hits(search.hits(), outdated),
        tokens: tokens(&search),
        ..shown(&search.text(), question, &newer, &older)
    };
    Ok((in_context, in_search))
}

/// Returns whether each mark of a context stands on a message of `outdated`. The number of a message is its place in its
/// session, because the messages were saved in their order.
fn marks_of_context(context: &str, messages: &[Message], outdated: &HashSet<&str>) -> Vec<bool> {
    let found = passages(context);
    let marked = found.iter().filter(|passage| passage.superseded_by.is_some());
    let is_listed = |session: &str, ordinal: usize| {
        let mut own = messages.iter().filter(|message| message.session == session);
        own.nth(ordinal).is_some_and(|message| outdated.contains(message.id.as_str()))
    };
    marked.map(|passage| passage.session.zip(passage.ordinal).is_some_and(|(s, o)| is_listed(s, o))).collect()
}

/// Returns whether each marked hit is a message of `outdated`.
fn marks_of_hits(hits: &[Value], outdated: &HashSet<&str>) -> Vec<bool> {
    let marked = hits.iter().filter(|hit| hit["superseded"].is_object());
    marked.map(|hit| hit["source_id"].as_str().is_some_and(|id| outdated.contains(id))).collect()
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
        ..Shown::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_right_on_a_message_that_is_listed_as_older() {
        let message = |session: &str, id: &str| Message {
            project: String::new(),
            session: session.into(),
            id: id.into(),
            speaker: None,
            role: "user".into(),
            time: None,
            text: String::new(),
        };
        let messages = [message("a", "1"), message("b", "2"), message("a", "3"), message("a", "4")];
        let outdated = HashSet::from(["3"]);
        let context = "[data x]\n[a 2026-03-01]\n#1 user (superseded by #2 on 2026-03-02): So.\n\
            #2 user: No.\n[b 2026-03-01]\n#0 user (superseded by m1 on 2026-03-02): So.\n[/data x]\n";
        assert_eq!(marks_of_context(context, &messages, &outdated), [true, false]);
        let hits = [
            json!({"source_id": "3", "superseded": {"by": "m1", "date": "2026-03-02"}}),
            json!({"source_id": "3"}),
            json!({"source_id": "4", "superseded": {"by": "m1", "date": "2026-03-02"}}),
        ];
        assert_eq!(marks_of_hits(&hits, &outdated), [true, false]);
    }
}
