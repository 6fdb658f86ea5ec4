//! Makes the answer, which has at most [`LONGEST`] tokens in each form that the caller reads.

use schemars::JsonSchema;
use serde::Serialize;

use super::FoundSegments;
use crate::common::tool::Answer;
use crate::stash::preview::Preview;
use tiro_base::envelope;
use tiro_base::error::partial;
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::Form;

/// The maximum number of tokens (o200k) of an answer, because clients cut off tool results after 25,000 tokens.
const LONGEST: usize = 20_000;

/// The answer of the call.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The segments, the best or nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Preview>,
    /// What the stash holds, if the call has no query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// How many segments the search found, or the stash holds.
    pub total_found: usize,
    /// The tokens of this answer (o200k): of its text, or of its JSON if the caller reads that and it has more.
    pub tokens_used: usize,
    /// How many segments or groups did not fit.
    pub dropped: usize,
    /// How many chunks of the project have no embedding yet; only keywords find them.
    pub pending: usize,
    /// The cursor of the next page of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Remarks about what the answer lacks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// The answer as text.
    #[serde(skip)]
    rendered: String,
}

/// The segments of one topic and session.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Group {
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How many segments there are.
    pub segments: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// When the last of them was stashed, RFC 3339.
    pub last_stashed: String,
    /// The segments that were stashed last: their ids and the beginnings of their texts.
    pub examples: Vec<Example>,
}

/// A segment of a group.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Example {
    /// Its id.
    pub id: String,
    /// The beginning of its text.
    pub text: String,
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}

/// Returns the answer with as many segments and groups as fit.
pub(super) fn fit(mut found: FoundSegments, form: Form, secret: &[u8; 32]) -> Output {
    let mut dropped = 0;
    loop {
        let output = answer(&found, dropped, form, secret);
        if output.tokens_used <= LONGEST {
            return output;
        }
        if found.previews.pop().is_none() && found.groups.pop().is_none() {
            return output;
        }
        dropped += 1;
    }
}

fn answer(found: &FoundSegments, dropped: usize, form: Form, secret: &[u8; 32]) -> Output {
    let next = found.offset + found.groups.len();
    let has_next = found.lists && (found.has_more || dropped > 0) && !found.groups.is_empty();
    let mut output = Output {
        caution: envelope::CAUTION,
        segments: found.previews.clone(),
        groups: found.groups.clone(),
        total_found: found.total,
        tokens_used: LONGEST,
        dropped,
        pending: found.pending,
        next_cursor: has_next.then(|| next.to_string()),
        notices: found.notices.clone(),
        rendered: String::new(),
    };
    output.rendered = rendered(found, &output, secret);
    output.tokens_used = Answer::cost(form, &output.rendered, &output);
    output
}

fn rendered(found: &FoundSegments, output: &Output, secret: &[u8; 32]) -> String {
    let body: String = match found.lists {
        true => found.groups.iter().map(Group::lines).collect(),
        false => found.previews.iter().map(Preview::lines).collect(),
    };
    let mut text = partial::line(&found.notices);
    text += &match (found.lists, body.is_empty()) {
        (true, true) => partial::nothing(&found.notices, "The stash is empty.").to_owned(),
        (false, true) => partial::nothing(&found.notices, "Nothing in the stash fits.").to_owned(),
        (true, false) => {
            let segments = counted(found.total as u64, "segment", "segments");
            let tokens = thousands(found.tokens);
            format!(
                "The stash holds {segments} of {tokens} tokens.\n{}merge_stashed_context brings back segments by id; \
                 retrieve_stashed_context with a query searches them.",
                envelope::wrap(secret, &body)
            )
        }
        (false, false) => envelope::wrap(secret, &body) + "merge_stashed_context brings back segments by id.",
    };
    if output.dropped > 0 {
        text += &format!("\n{} more did not fit.", output.dropped);
    }
    if let Some(cursor) = &output.next_cursor {
        text += &format!("\nMore with cursor `{cursor}`.");
    }
    if found.says_pending {
        let one = "piece has no embedding yet; only keywords find it";
        let several = "pieces have no embedding yet; only keywords find them";
        text += &format!("\n{}.", counted(found.pending as u64, one, several));
    }
    partial::others(&found.notices).for_each(|notice| text += &format!("\nNote: {notice}."));
    text
}

impl Group {
    /// Returns the group as lines of the answer.
    fn lines(&self) -> String {
        let name = |what: &str, name: &Option<String>| match name {
            Some(name) => format!("{what} {}", envelope::name(name)),
            None => format!("no {what}"),
        };
        let mut lines = format!(
            "[{}, {}: {}, {} tokens, last stashed {}]\n",
            name("topic", &self.topic),
            name("session", &self.session_id),
            counted(self.segments, "segment", "segments"),
            thousands(self.tokens),
            self.last_stashed
        );
        for example in &self.examples {
            lines += &format!("{} {}\n", example.id, envelope::quoted(&example.text));
        }
        lines
    }
}
