//! Puts segments of context aside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::given::{self, Segment};
use super::named;
use crate::common;
use tiro_base::error::{Error, Result};
use tiro_base::humanize::{self, counted, thousands};
use tiro_base::memory::Millis;
use tiro_base::times::day;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_redact::{Redaction, redactions};
use tiro_store::{StashCause, Stashing};

/// The name of the tool in MCP.
pub const NAME: &str = "stash_context";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Stash context";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Puts context aside, all or nothing: stored messages and memories by id, or texts. \
    merge_stashed_context brings it back. For facts to keep use store_memory.";

/// The longest expiry in days. Arbitrary: a hundred years.
const LONGEST_EXPIRY: f64 = 36_500.0;
/// The milliseconds of a day.
const DAY: f64 = 86_400_000.0;
/// The maximum number of ids that the answer lists.
const MOST_LISTED: usize = 200;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Ids, SESSION#3, SESSION#0-49.
    pub segment_ids: Option<Vec<String>>,
    /// Texts of the caller's own window.
    #[schemars(description = "")]
    pub segments: Option<Vec<Segment>>,
    /// Never if left out.
    #[schemars(description = "")]
    pub expires_in_days: Option<f64>,
    /// Whether they never expire.
    #[schemars(description = "")]
    pub protected: Option<bool>,
    /// Tag to find them by.
    #[schemars(description = "")]
    pub topic: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How many segments this call stashed.
    pub stashed: usize,
    /// How many of the segments were in the stash before.
    pub already_stashed: usize,
    /// Their ids, in the order given; at most 200.
    pub segment_ids: Vec<String>,
    /// The tokens (o200k) of all these segments.
    pub tokens: i64,
    /// The tokens (o200k) that they took in the last contexts that retrieve_context assembled of their sessions. The next
    /// ones leave them out.
    pub tokens_freed: i64,
    /// The day on which they expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// References that name no memory. They are stored anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_references: Vec<String>,
    /// Secrets replaced, by rule.
    #[schemars(with = "Vec<Value>")]
    pub redactions: Vec<Redaction>,
    /// How many chunks have no embedding yet: searches find them by words, not by meaning.
    pub pending: usize,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Stashes the segments in one transaction. It is durable when the call returns.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let Args { segment_ids, segments, expires_in_days, protected, topic } = args;
    let (names, segments) = (segment_ids.unwrap_or_default(), segments.unwrap_or_default());
    if names.is_empty() && segments.is_empty() {
        return Err(Error::bad_input("neither `segment_ids` nor `segments` is given")
            .hint("name stored messages, such as SESSION#0-49, or give texts"));
    }
    if names.len() + segments.len() > named::MOST {
        let (count, most) = (names.len() + segments.len(), named::MOST);
        return Err(Error::bad_input(format!("{count} segments in one call, more than {most}"))
            .hint("nothing was stashed; divide them among several calls"));
    }
    let now = engine.now();
    let expires_at = expires_in_days.map(|days| expiry(days, now)).transpose()?;
    let topic = topic.as_deref().map(|topic| common::short("topic", topic)).transpose()?;
    let project = caller.begin_project(engine).await?;
    let topic = topic.map(|topic| project.redactor.redact(&topic).text.into_owned());
    let (by_value, mut notices) = (segments.len(), Vec::new());
    let named = named::ids(engine, caller, "segment_ids", &names).await?;
    let count = named.len() + by_value;
    let given = given::read(engine, caller, &project, segments, topic.as_deref()).await?;

    let stashing = Stashing {
        named,
        given: given.memories,
        cause: StashCause::Call,
        expires_at,
        is_protected: protected,
        topic,
    };
    let receipt = project.store.stash(&project.scope, stashing, now).await?;
    engine.wrote();

    let stashed = receipt.outcomes.iter().filter(|(_, is_new)| *is_new).count();
    let repeated = count - receipt.outcomes.len();
    if repeated > 0 {
        let one = "segment was given twice; it is stashed once";
        notices.push(counted(repeated, one, "segments were given more than once; each is stashed once"));
    }
    if by_value > 0 {
        notices.push(
            "texts stay in your own window until you drop them there; tokens_freed counts only contexts \
             that Tiro assembles"
                .to_owned(),
        );
    }
    if receipt.outcomes.len() > MOST_LISTED {
        notices.push(format!(
            "segment_ids lists the first {MOST_LISTED} of {}; retrieve_stashed_context lists all",
            receipt.outcomes.len()
        ));
    }
    notices.extend(caller.opened_project(engine).and_then(|project| project.trouble.clone()));
    Ok(Output {
        stashed,
        already_stashed: receipt.outcomes.len() - stashed,
        segment_ids: receipt.outcomes.iter().take(MOST_LISTED).map(|(id, _)| id.to_string()).collect(),
        tokens: receipt.tokens,
        tokens_freed: receipt.freed,
        expires: expires_at.filter(|_| protected != Some(true)).map(day),
        unknown_references: given.unknown_references,
        redactions: redactions(given.redactions),
        pending: receipt.pending,
        notices,
    })
}

/// Returns the time that is `days` days after `now`.
fn expiry(days: f64, now: Millis) -> Result<Millis> {
    if !(days > 0.0 && days <= LONGEST_EXPIRY) {
        let message = format!("`expires_in_days` is {days}: not between 0 and {LONGEST_EXPIRY}");
        return Err(Error::bad_input(message)
            .hint("nothing was stashed; give the days from now on, or leave it out to keep the segments"));
    }
    Ok(now.saturating_add((days * DAY) as Millis))
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Stashed {} of {} {}; {} tokens leave the assembled context.",
            counted(self.stashed, "segment", "segments"),
            thousands(self.tokens),
            if self.tokens == 1 { "token" } else { "tokens" },
            thousands(self.tokens_freed)
        );
        if self.already_stashed > 0 {
            text += &format!("\n{} in the stash already.", counted(self.already_stashed, "was", "were"));
        }
        if let Some(day) = &self.expires {
            text += &format!("\nThey expire on {day}.");
        }
        text += &format!("\nIds: {}.", humanize::some(&self.segment_ids));
        if !self.unknown_references.is_empty() {
            text += &format!("\nNo memory is called {}.", humanize::some(&self.unknown_references));
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
