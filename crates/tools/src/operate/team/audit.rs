//! The record of calls: who did what with whose memories. It contains no texts.
//!
//! A server notes each call over HTTP when it has ended, and commands note changes of keys, teams and shares. The ids are
//! those that the answer of a call names.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::MemoryId;
use tiro_base::scope::{AuthorId, ProjectId};
use tiro_base::times;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_store::{AuditFilter, AuditRow};

use super::super::projects;
use crate::memory::authors;

/// The most ids that are kept of a call. Arbitrary: more than a page of hits.
const MOST_IDS: usize = 50;

/// The most calls that a list shows, unless another number is asked for.
const PAGE: usize = 1000;

/// The answer of `tiro audit`.
#[derive(Serialize)]
pub struct Listed {
    /// The calls, the newest first.
    pub calls: Vec<Call>,
    /// Whether there may be older calls than those listed.
    pub truncated: bool,
}

/// A call, as the list shows it.
#[derive(Serialize)]
pub struct Call {
    /// When it ended, RFC 3339.
    pub time: String,
    /// The name of the user.
    pub user: String,
    /// The tool or the command.
    pub verb: String,
    /// The id of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The ids of the memories, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<String>,
    /// How many memories there were.
    pub count: i64,
    /// The authors of these memories; of a command, the users and teams that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// `ok`, or the kind of the error.
    pub outcome: String,
}

/// The arguments of `tiro audit`.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// Only calls since then, such as `7d` or a date.
    pub since: Option<String>,
    /// Only calls of this user.
    pub user: Option<String>,
    /// Only calls in this project, an id or a name.
    pub project: Option<String>,
    /// At most this many calls.
    pub limit: Option<usize>,
}

/// Returns the recorded calls.
///
/// Errors with [`Kind::BadInput`] if `since` is no time, and with [`Kind::NotFound`] if there is no such project.
pub async fn list(engine: &Engine, args: Args) -> Result<Listed> {
    let Args { since, user, project, limit } = args;
    let (since, _) = times::range(("since", since.as_deref()), ("until", None), engine.now())?;
    let project = match project {
        None => None,
        Some(which) => Some(projects::find(engine, &which).await?.id.as_str().to_owned()),
    };
    let limit = limit.unwrap_or(PAGE);
    let filter = AuditFilter { since, user, project, limit };
    let rows = engine.installation().await?.registry.calls(filter).await?;
    let call = |row: AuditRow| Call {
        time: times::show_time(row.at),
        user: row.user,
        verb: row.verb,
        project: row.project,
        memories: row.memories,
        count: row.count,
        authors: row.authors,
        outcome: row.outcome,
    };
    Ok(Listed { truncated: rows.len() == limit, calls: rows.into_iter().map(call).collect() })
}

/// Notes a command of the owner that names the users and teams `names`. `error` is why it failed.
pub(super) async fn note_command(
    engine: &Engine,
    verb: &str,
    project: Option<&ProjectId>,
    names: &[&str],
    error: Option<&Error>,
) -> Result<()> {
    let call = AuditRow {
        at: engine.now(),
        user: engine.config().owner.as_str().to_owned(),
        verb: verb.to_owned(),
        project: project.map(|id| id.as_str().to_owned()),
        memories: Vec::new(),
        count: 0,
        authors: names.iter().map(|name| (*name).to_owned()).collect(),
        outcome: outcome(error).to_owned(),
    };
    engine.begin_installation().await?.registry.note_call(call).await
}

/// Notes a call over HTTP of `caller`, which had these fields as its answer, or failed. A call that can't be noted is
/// answered nevertheless, and logged.
pub async fn note_call(
    engine: &Engine,
    caller: &WritingCaller,
    verb: &str,
    answer: std::result::Result<&Map<String, Value>, &str>,
) {
    let author = caller.author().as_str();
    let mut touched = answer.map_or_else(|_| Touched::default(), Touched::of);
    let project = caller.opened_project(engine);
    if let Err(error) = touched.find_authors(project.as_deref().map(|project| &**project), author).await {
        tracing::warn!(%error, verb, "the authors are missing in the record of a call");
    }
    let project = project.map(|project| project.scope.project.as_str().to_owned());
    let call = AuditRow {
        at: engine.now(),
        user: author.to_owned(),
        verb: verb.to_owned(),
        project,
        count: i64::try_from(touched.ids.len()).unwrap_or(i64::MAX),
        memories: touched.ids.iter().take(MOST_IDS).map(MemoryId::to_string).collect(),
        authors: touched.authors.into_iter().collect(),
        outcome: answer.err().unwrap_or("ok").to_owned(),
    };
    let noted = match engine.begin_installation().await {
        Ok(installation) => installation.registry.note_call(call).await,
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        tracing::warn!(%error, verb, "a call is missing in the record of calls");
    }
}

/// Returns how a call ended, in a word.
fn outcome(error: Option<&Error>) -> &'static str {
    match error.map(Error::kind) {
        None => "ok",
        Some(Kind::BadInput) => "bad_input",
        Some(Kind::NotFound) => "not_found",
        Some(_) => "failed",
    }
}

/// The memories that an answer names, and their authors.
#[derive(Debug, Default, PartialEq)]
struct Touched {
    ids: Vec<MemoryId>,
    authors: BTreeSet<String>,
}

impl Touched {
    /// Returns the memories in the fields of an answer, and the authors that it lists.
    fn of(fields: &Map<String, Value>) -> Touched {
        let mut touched = Touched::default();
        touched.read(fields);
        let mut known = BTreeSet::new();
        touched.ids.retain(|id| known.insert(id.clone()));
        touched
    }

    fn read(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("authors", Value::Array(authors)) => {
                    self.authors.extend(authors.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                (_, Value::String(text)) => self.ids.extend(MemoryId::parse(text)),
                (_, Value::Array(values)) => {
                    for value in values {
                        match value {
                            Value::String(text) => self.ids.extend(MemoryId::parse(text)),
                            Value::Object(fields) => self.read(fields),
                            _ => {}
                        }
                    }
                }
                (_, Value::Object(fields)) => self.read(fields),
                _ => {}
            }
        }
    }

    /// Adds the authors of the memories in `project` that are kept of the call. What isn't there any more has the authors that
    /// the answer lists, and otherwise belongs to `caller`.
    async fn find_authors(&mut self, project: Option<&OpenProject>, caller: &str) -> Result<()> {
        let kept = &self.ids[..self.ids.len().min(MOST_IDS)];
        let mut missing = kept.len();
        if let Some(OpenProject { store, scope, .. }) = project {
            let memories = authors::living(store.as_ref(), scope, kept).await?;
            missing = missing.saturating_sub(memories.len());
            self.authors.extend(memories.into_iter().map(|memory| memory.author.shown().into_owned()));
        }
        if missing > 0 && self.authors.is_empty() {
            self.authors.insert(caller.to_owned());
        }
        Ok(())
    }
}

impl Listed {
    /// Returns the answer as text: a line for each call.
    pub fn text(&self) -> String {
        if self.calls.is_empty() {
            return "No calls are recorded.".to_owned();
        }
        let line = |call: &Call| {
            let Call { time, user, verb, project, count, authors, outcome, .. } = call;
            let user = AuthorId::new(user.as_str());
            let user = user.shown();
            let project = project.as_ref().map_or(String::new(), |id| format!(" in {id}"));
            let of = if authors.is_empty() { String::new() } else { format!(" of {}", authors.join(", ")) };
            let what = if *count > 0 { format!(", {count} memories{of}") } else { of };
            let outcome = if outcome == "ok" { String::new() } else { format!(": {outcome}") };
            format!("{time}  {user}  {verb}{project}{what}{outcome}")
        };
        let mut text = self.calls.iter().map(line).collect::<Vec<_>>().join("\n");
        if self.truncated {
            text += &format!("\nThe newest {} calls; `--limit` shows more.", self.calls.len());
        }
        text
    }

    /// Returns the calls as JSON, one to a line.
    pub fn lines(&self) -> String {
        let line = |call: &Call| serde_json::to_string(call).expect("a call is JSON");
        self.calls.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_memories_of_an_answer_are_counted_once() {
        let (one, two) = ("m0123456789abc", "m1123456789abc");
        let touched = |value: Value| {
            let Touched { ids, authors } = Touched::of(value.as_object().unwrap());
            (ids.iter().map(MemoryId::to_string).collect::<Vec<_>>(), authors.into_iter().collect::<Vec<_>>())
        };
        let hits = json!({
            "hits": [
                {"id": one, "author": "ben", "text": "it is m1123456789abc"},
                {"id": two, "superseded": {"by": one}},
            ],
            "covered": ["all"],
        });
        assert_eq!(touched(hits), (vec![one.into(), two.into()], vec![]));
        let forgotten = json!({"done": "forgotten", "ids": [one], "authors": ["ben"]});
        assert_eq!(touched(forgotten), (vec![one.into()], vec!["ben".into()]));
        assert_eq!(touched(json!({"hits": [], "author": "ben"})), (vec![], vec![]));
    }

    #[tokio::test]
    async fn what_is_nowhere_belongs_to_the_caller_unless_the_answer_says_whose_it_is() {
        let found = async |value: Value| {
            let mut touched = Touched::of(value.as_object().unwrap());
            touched.find_authors(None, "ana").await.unwrap();
            touched.authors.into_iter().collect::<Vec<_>>()
        };
        let id = "m0123456789abc";
        assert_eq!(found(json!({"id": id})).await, ["ana"]);
        assert_eq!(found(json!({"ids": [id], "authors": ["ben"]})).await, ["ben"]);
        assert!(found(json!({"hits": []})).await.is_empty());
    }
}
