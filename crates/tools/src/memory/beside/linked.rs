//! Lists the conversations that led to a commit, and the commits that a conversation led to.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::{beginning_in_bytes, short_sha};
use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Memory};
use tiro_base::scope::{Scope, SessionId};
use tiro_base::times::day;
use tiro_store::ReadStore;

/// The maximum number of links that are shown for a memory. Arbitrary: a long session leads to dozens of commits.
const MOST: usize = 6;

/// The maximum number of bytes that are shown of a title or subject. Arbitrary: about a line.
pub const LONGEST_TITLE: usize = 120;

/// A confidence of at least this value is not shown, because it would be rounded to 100%.
const CERTAIN: f64 = 0.995;

/// A session that led to a commit, or a commit that a session led to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Linked {
    /// session or commit.
    pub kind: &'static str,
    /// The argument `id` of expand_detail that opens it.
    pub open: String,
    /// The session's name, or the commit's full SHA.
    pub name: String,
    /// The session's title, or the commit's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The day of the message that `open` names, or of the commit.
    pub date: String,
    /// The confidence of the link, 0.5 to 1.
    pub confidence: f64,
    /// How many links of the memory are not shown. Only the last shown link has this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
}

impl Linked {
    /// Returns the line that names the session or commit and the argument that opens it.
    pub fn line(&self) -> String {
        let title = self.title.as_deref().map(|title| format!(" \"{}\"", envelope::name(title)));
        let title = title.unwrap_or_default();
        let open = envelope::name(&self.open);
        let more = self.more.map_or(String::new(), |more| format!("; and {more} more"));
        let sure = sure(self.confidence);
        match self.kind {
            "session" => {
                let name = envelope::name(&self.name);
                format!(
                    "[said in session {name}{title}, {}{sure}; expand_detail opens {open}{more}]\n",
                    self.date
                )
            }
            _ => format!(
                "[led to commit {open}{title}, {}{sure}; expand_detail opens {open}{more}]\n",
                self.date
            ),
        }
    }
}

/// Returns the sessions that led to `memory` if it is a commit, otherwise the commits that its session led to.
pub async fn of(store: &dyn ReadStore, scope: &Scope, memory: &Memory) -> Result<Vec<Linked>> {
    let escaped = |text: &str| envelope::escape(text).into_owned();
    let title = |text: &str| {
        let text = beginning_in_bytes(text.trim(), LONGEST_TITLE);
        (!text.is_empty()).then(|| escaped(&text))
    };
    if memory.kind == Kind::Commit {
        let found = store.sessions_behind(scope, vec![memory.key]).await?.pop().unwrap_or_default();
        let all = found.len();
        let sessions = found.iter().map(|(session, _)| session.clone()).collect();
        let rows = store.behind(scope, sessions, memory.time).await?;
        let confidence = |of: &SessionId| {
            found.iter().find(|(session, _)| session == of).map_or(0.0, |(_, sure)| rounded(*sure))
        };
        let linked = rows.into_iter().take(MOST).map(|row| Linked {
            kind: "session",
            open: format!("{}#{}", escaped(row.session.as_str()), row.ordinal),
            name: escaped(row.session.as_str()),
            title: row.title.as_deref().and_then(title),
            date: day(row.time),
            confidence: confidence(&row.session),
            more: None,
        });
        return Ok(with_more(linked.collect(), all));
    }
    let Some(session) = &memory.session else { return Ok(Vec::new()) };
    let (rows, all) =
        store.linked_commits(scope, session, memory.head_sha.clone(), memory.time, MOST).await?;
    let linked = rows.into_iter().map(|row| Linked {
        kind: "commit",
        open: row.sha.as_deref().map_or(row.id.to_string(), |sha| escaped(short_sha(sha))),
        name: row.sha.as_deref().map(escaped).unwrap_or_default(),
        title: title(&row.subject),
        date: day(row.time),
        confidence: rounded(row.confidence),
        more: None,
    });
    Ok(with_more(linked.collect(), all))
}

/// Returns the words for a confidence, such as `, 80% sure`. Returns an empty text for 99.5% or more.
pub fn sure(confidence: f64) -> String {
    if confidence >= CERTAIN { String::new() } else { format!(", {:.0}% sure", confidence * 100.0) }
}

/// Returns a confidence with two decimals.
pub fn rounded(confidence: f64) -> f64 {
    (confidence * 100.0).round() / 100.0
}

fn with_more(mut linked: Vec<Linked>, all: usize) -> Vec<Linked> {
    let more = all.saturating_sub(linked.len());
    if let Some(last) = linked.last_mut().filter(|_| more > 0) {
        last.more = Some(more);
    }
    linked
}
