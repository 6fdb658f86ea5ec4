//! Makes the items of each kind from an imported project.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use serde_json::{Value, json};

use super::Args;
use super::form::Item;
use crate::calls;
use crate::client::Server;
use crate::facts::holds_words;
use crate::imported::{Asked, Exported, Imported};
use crate::passages::passages;

/// The kinds of items.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Marks of superseded memories among hits and in contexts
    Marks,
    /// Extracted facts and decisions
    Facts,
    /// Statements of summaries
    Summaries,
    /// Titles of sessions
    Titles,
    /// Hits of searches
    Hits,
    /// Whole contexts
    Contexts,
}

/// The number of messages before and after a fact's message that the form shows. Arbitrary.
const AROUND: usize = 2;

/// The number of a session's requests that the form shows beside its title. Arbitrary.
const REQUESTS: usize = 4;

/// The endings of names that are taken for files. Arbitrary: those that are frequent in repositories.
const ENDINGS: &str =
    "c cc cpp cs css go h html java js json jsx lock md mdc py rb rs sh sql toml ts tsx txt yaml yml";

/// The number of files that the form shows beside a title. Arbitrary.
const FILES: usize = 8;

impl Kind {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Marks => "marks",
            Kind::Facts => "facts",
            Kind::Summaries => "summaries",
            Kind::Titles => "titles",
            Kind::Hits => "hits",
            Kind::Contexts => "contexts",
        }
    }

    /// Returns what a reader is asked.
    pub fn asks(self) -> &'static str {
        match self {
            Kind::Marks => "Is the older text really out of date because of the newer one?",
            Kind::Facts => {
                "Is this really a fact or decision, in the sense of its message, and clear without it?"
            }
            Kind::Summaries => {
                "Does the session really say this, in this sense, and is it clear without the session?"
            }
            Kind::Titles => "Does the title say what the session is about?",
            Kind::Hits => "Is the hit about the question? It is useful if it helps to answer it.",
            Kind::Contexts => {
                "Is the answer to the question in the context? It is useful if the context also has little else."
            }
        }
    }
}

/// Returns all items of `kind`. Adds the tokens of each context that is asked for to `tokens`.
pub fn items(kind: Kind, args: &Args, imported: &mut Imported, tokens: &mut Vec<f64>) -> Result<Vec<Item>> {
    match kind {
        Kind::Facts => Ok(facts(imported)),
        Kind::Summaries => summaries(imported),
        Kind::Titles => titles(imported),
        Kind::Hits | Kind::Contexts | Kind::Marks => {
            let questions = imported.questions(args.questions, args.seed)?;
            let mut items = Vec::new();
            let mut seen = BTreeSet::new();
            for asked in &questions {
                if kind != Kind::Hits {
                    let arguments = json!({"query": asked.0, "max_tokens": args.budget});
                    let answer = calls::patiently(&mut imported.server, "retrieve_context", arguments)?;
                    tokens.push(answer.structured()["tokens_used"].as_f64().unwrap_or(0.0));
                    match kind {
                        Kind::Contexts => items.push(item(asked, [("context".into(), answer.text())])),
                        _ => items.extend(marks_of_context(
                            asked,
                            &answer.text(),
                            &mut imported.server,
                            &mut seen,
                        )?),
                    }
                }
                if kind != Kind::Contexts {
                    let answer = calls::search(&mut imported.server, &asked.0, args.k)?;
                    match kind {
                        Kind::Hits => items.extend(hits(asked, answer.hits())),
                        _ => items.extend(marks_of_hits(
                            asked,
                            answer.hits(),
                            &mut imported.server,
                            &mut seen,
                        )?),
                    }
                }
            }
            Ok(items)
        }
    }
}

/// Returns an item that begins with the question and its known answer.
fn item(asked: &Asked, parts: impl IntoIterator<Item = (String, String)>) -> Item {
    let mut all = vec![("question".to_owned(), asked.0.clone())];
    all.extend(asked.1.iter().map(|answer| ("known answer".to_owned(), answer.clone())));
    all.extend(parts);
    Item { parts: all }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn hits(asked: &Asked, hits: &[Value]) -> Vec<Item> {
    let one = |(place, hit): (usize, &Value)| {
        let name = format!("hit {} of {}: {}", place + 1, hits.len(), described(hit));
        item(asked, [(name, text(hit, "text").to_owned())])
    };
    hits.iter().enumerate().map(one).collect()
}

/// Returns the kind, the session, the speaker and the time of a memory.
fn described(memory: &Value) -> String {
    let fields = ["kind", "session_id", "speaker", "role", "time"].map(|field| text(memory, field));
    fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Makes an item for each hit that is marked as superseded, unless `seen` has the mark already.
fn marks_of_hits(
    asked: &Asked,
    hits: &[Value],
    server: &mut Server,
    seen: &mut BTreeSet<(String, String)>,
) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for hit in hits.iter().filter(|hit| hit["superseded"].is_object()) {
        let by = text(&hit["superseded"], "by");
        if seen.insert((text(hit, "id").to_owned(), by.to_owned())) {
            let older = (format!("older, a hit: {}", described(hit)), text(hit, "text").to_owned());
            items.push(item(asked, [older, opened(server, "newer", by)?]));
        }
    }
    Ok(items)
}

/// Makes an item for each passage that is marked as superseded, unless `seen` has the mark already.
fn marks_of_context(
    asked: &Asked,
    context: &str,
    server: &mut Server,
    seen: &mut BTreeSet<(String, String)>,
) -> Result<Vec<Item>> {
    let all = passages(context);
    let mut items = Vec::new();
    for passage in &all {
        let Some(by) = passage.superseded_by else { continue };
        let by = match (by.strip_prefix('#'), passage.session) {
            (Some(number), Some(session)) => format!("{session}#{number}"),
            _ => by.to_owned(),
        };
        let id = match (passage.session, passage.ordinal) {
            (Some(session), Some(number)) => memory_id(server, &format!("{session}#{number}"))?,
            _ => passage.text.to_owned(),
        };
        let newer_id = memory_id(server, &by)?;
        if seen.insert((id, newer_id)) {
            let place = [passage.session, passage.day].map(Option::unwrap_or_default).join(", ");
            let older = (format!("older, in a context: {place}"), passage.text.to_owned());
            let mut parts = vec![older, opened(server, "newer", &by)?];
            // The context repeats the valid statements before its other passages.
            let valid = all.iter().filter(|each| each.text.starts_with("[now "));
            parts.extend(valid.map(|each| ("shown as valid in this context".into(), each.text.to_owned())));
            items.push(item(asked, parts));
        }
    }
    Ok(items)
}

/// Returns the id of the memory that `name` names, or `name` if there is none.
fn memory_id(server: &mut Server, name: &str) -> Result<String> {
    let answer = server.try_tool("expand_detail", json!({"id": name, "max_tokens": 2000}))?;
    let id = text(answer.structured(), "id");
    Ok(if answer.is_error() || id.is_empty() { name } else { id }.to_owned())
}

/// Opens the memory that `name` names, and returns it as a part of an item.
fn opened(server: &mut Server, label: &str, name: &str) -> Result<(String, String)> {
    let answer = server.try_tool("expand_detail", json!({"id": name, "max_tokens": 8000}))?;
    if answer.is_error() {
        return Ok((format!("{label}: {name}"), "(not found)".into()));
    }
    let memory = answer.structured();
    Ok((format!("{label}: {name}, {}", described(memory)), text(memory, "text").to_owned()))
}

/// Makes an item for each fact and decision, with its message and the messages around that.
fn facts(imported: &Imported) -> Vec<Item> {
    let sessions = imported.sessions();
    let is_fact = |memory: &&Exported| {
        memory.provenance == "derived" && matches!(memory.kind.as_str(), "fact" | "decision")
    };
    let one = |fact: &Exported| {
        let session = fact.session_id.as_deref().unwrap_or_default();
        let messages = sessions.get(session).map_or(&[][..], Vec::as_slice);
        let second = |time: &str| time.get(..19).map(str::to_owned);
        let found = messages.iter().position(|message| {
            second(&message.time) == second(&fact.time) && holds_words(&fact.text, &message.text)
        });
        let mut parts = vec![(format!("{}, {session}", fact.kind), fact.text.clone())];
        match found {
            None => parts.push(("its message".into(), "(not found)".into())),
            Some(place) => {
                let range = place.saturating_sub(AROUND)..(place + AROUND + 1).min(messages.len());
                parts.extend(range.map(|each| {
                    said(messages[each], each, if each == place { "its message" } else { "near" })
                }));
            }
        }
        Item { parts }
    };
    imported.memories.iter().filter(is_fact).map(one).collect()
}

fn said(message: &Exported, number: usize, label: &str) -> (String, String) {
    let who = message.speaker.as_deref().or(message.role.as_deref()).unwrap_or_default();
    (format!("{label}: #{number} {who}, {}", message.time), message.text.clone())
}

/// Makes an item for each statement of the sessions' summaries, with the messages that it cites.
fn summaries(imported: &mut Imported) -> Result<Vec<Item>> {
    let sessions: BTreeMap<String, Vec<Exported>> = (imported.sessions().into_iter())
        .map(|(name, messages)| (name.to_owned(), messages.into_iter().cloned().collect()))
        .collect();
    let mut items = Vec::new();
    for (name, messages) in &sessions {
        let arguments = json!({"session_id": name, "level": "standard", "use_provider": false});
        let answer = imported.server.try_tool("summarize_conversation", arguments)?;
        if answer.is_error() {
            continue;
        }
        for (statement, cited) in statements(text(answer.structured(), "summary")) {
            let mut parts = vec![("session".to_owned(), name.clone()), ("statement".to_owned(), statement)];
            let cited = cited.into_iter().filter(|number| *number < messages.len());
            parts.extend(cited.map(|number| said(&messages[number], number, "cited")));
            items.push(Item { parts });
        }
    }
    Ok(items)
}

/// Divides a summary into statements, each with the numbers of the messages that it cites. A statement ends after its
/// citation, such as `(#7)`, or with its line.
fn statements(summary: &str) -> Vec<(String, Vec<usize>)> {
    let mut found = Vec::new();
    for line in summary.lines() {
        let mut rest = line.trim();
        while !rest.is_empty() {
            let citation =
                rest.find("(#").and_then(|start| Some((start, start + rest[start..].find(')')? + 1)));
            let (start, end) = citation.unwrap_or((rest.len(), rest.len()));
            let numbers = rest[start..end]
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|number| number.parse().ok());
            let statement = rest[..start].trim().trim_start_matches(['-', ' ']).to_owned();
            if !statement.is_empty() {
                found.push((statement, numbers.collect()));
            }
            rest = rest[end..].trim_start();
        }
    }
    found
}

/// Makes an item for each title, with the first requests and the files of its session.
fn titles(imported: &mut Imported) -> Result<Vec<Item>> {
    let mut titles: Vec<(String, String)> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut arguments = json!({"limit": 50});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let answer = imported.server.tool("list_sessions", arguments)?;
        let listed = answer.structured()["sessions"].as_array().cloned().unwrap_or_default();
        titles.extend(
            listed.iter().map(|each| (text(each, "session_id").to_owned(), text(each, "title").to_owned())),
        );
        cursor = answer.structured()["next_cursor"].clone();
        if cursor.is_null() || listed.is_empty() {
            break;
        }
    }
    titles.sort();
    let sessions = imported.sessions();
    let one = |(session, title): &(String, String)| {
        let messages = sessions.get(session.as_str()).map_or(&[][..], Vec::as_slice);
        let requests =
            messages.iter().filter(|message| message.role.as_deref() == Some("user")).take(REQUESTS);
        let first_lines: Vec<&str> = requests
            .filter_map(|message| message.text.lines().find(|line| !line.trim().is_empty()))
            .collect();
        let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        let parts = [
            ("title", title.clone()),
            ("session", session.clone()),
            ("first lines of the user", first_lines.join("\n")),
            ("files", files(&texts).join("\n")),
        ];
        Item { parts: parts.map(|(name, text)| (name.to_owned(), text)).into() }
    };
    Ok(titles.iter().map(one).collect())
}

/// Returns the files that the texts name most often.
fn files(texts: &[&str]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    for word in texts.iter().flat_map(|text| text.split(|c| !is_inner(c))) {
        let word = word.trim_matches(['.', '-']);
        let Some((stem, ending)) = word.rsplit_once('.') else { continue };
        if stem.contains(char::is_alphabetic) && ENDINGS.split(' ').any(|known| known == ending) {
            *counts.entry(word).or_insert(0) += 1;
        }
    }
    let mut counted: Vec<(&str, usize)> = counts.into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counted.into_iter().take(FILES).map(|(file, count)| format!("{file} ({count})")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_divided_after_each_citation() {
        let summary = "Goal: add it. (#0)\nWorked on: two things\n  → It is done. (#7, #9) It works. (#8)\n";
        let wanted = [
            ("Goal: add it.", vec![0]),
            ("Worked on: two things", vec![]),
            ("→ It is done.", vec![7, 9]),
            ("It works.", vec![8]),
        ];
        let found = statements(summary);
        assert_eq!(found, wanted.map(|(text, cited)| (text.to_owned(), cited)));
    }

    #[test]
    fn files_are_named_by_how_often_they_occur() {
        let found = files(&["See src/a.rs and `src/a.rs`, e.g. docs/b.md.", "src/a.rs: 1.5, list.get"]);
        assert_eq!(found, ["src/a.rs (3)", "docs/b.md (1)"]);
    }
}
