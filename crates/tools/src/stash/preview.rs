//! A segment of the stash in the form in which answers show it: its properties, and the beginning of its text or the
//! piece that fits best.

use schemars::JsonSchema;
use serde::Serialize;

use crate::memory::authors::by;
use tiro_base::envelope;
use tiro_base::memory::{Memory, Millis, Role, marked};
use tiro_base::scope::AuthorId;
use tiro_base::times::show_time;
use tiro_recall::stash::profile::Parts;
use tiro_store::StashedMemory;

/// A segment, without the whole of its text.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Preview {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The beginning of its text, or the piece that fits the query best.
    pub text: String,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its number in that conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// The speaker of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// When it was stashed, RFC 3339. Left out if it is not in the stash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stashed_at: Option<String>,
    /// When it expires, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The tokens (o200k) of its whole text.
    pub tokens: i64,
    /// The cosine of its best piece with the query; left out if it has no embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// How it was ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// The steps from the segment that the walk began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<usize>,
    /// The segments that it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The segments that refer to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub referenced_by: Vec<String>,
    /// Its first line in the text of the answer, without the closing bracket.
    #[serde(skip)]
    head: String,
}

/// A score and its parts.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Score {
    /// The sum of the parts.
    pub sum: f64,
    /// From how well words and meaning fit the query.
    pub relevance: f64,
    /// From the age of the text.
    pub age: f64,
    /// From the time since it was stashed.
    pub stash_age: f64,
}

impl From<Parts> for Score {
    fn from(parts: Parts) -> Score {
        let Parts { relevance, age, stash_age } = parts;
        Score {
            sum: rounded(parts.sum()),
            relevance: rounded(relevance),
            age: rounded(age),
            stash_age: rounded(stash_age),
        }
    }
}

/// Returns `value` with three decimal places.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Preview {
    /// Returns the preview of `memory`, which shows `text`. `stashed` is its state in the stash, if it is there.
    pub(super) fn new(
        (memory, reader): (&Memory, &AuthorId),
        stashed: Option<&StashedMemory>,
        text: &str,
        now: Millis,
    ) -> Preview {
        let speaker = memory.speaker.clone().or(memory.role.map(Role::as_str).map(str::to_owned));
        let time = |at: Millis| show_time(at);
        let mut preview = Preview {
            id: memory.id.to_string(),
            kind: memory.kind.to_string(),
            text: marked(text.to_owned(), memory.is_damaged),
            session_id: memory.session.as_ref().map(ToString::to_string),
            number: memory.ordinal,
            speaker,
            author: memory.author.other_than(reader),
            topic: stashed.map_or(memory.topic.clone(), |stashed| stashed.topic.clone()),
            source: memory.path.clone(),
            time: time(memory.time),
            stashed_at: stashed.map(|stashed| time(stashed.stashed_at)),
            expires_at: stashed.filter(|it| !it.is_protected).and_then(|it| it.expires_at).map(time),
            tokens: memory.tokens,
            ..Preview::default()
        };
        preview.head = preview.line(memory, stashed, now);
        preview
    }

    /// Returns the first line in the text of the answer, without the closing bracket.
    fn line(&self, memory: &Memory, stashed: Option<&StashedMemory>, now: Millis) -> String {
        let mut line = format!("[{} {}", self.id, self.kind);
        if let Some(speaker) = &self.speaker {
            line += &format!(" {}", envelope::name(speaker));
        }
        line += &by(self.author.as_deref());
        if let Some(session) = &self.session_id {
            let number = self.number.map_or(String::new(), |number| format!("#{number}"));
            line += &format!(", session {}{number}", envelope::name(session));
        }
        if let Some(source) = &self.source {
            line += &format!(", {}", envelope::name(source));
        }
        if let Some(topic) = &self.topic {
            line += &format!(", topic {}", envelope::name(topic));
        }
        line += &format!(", {} old", age(now.saturating_sub(memory.time)));
        match stashed {
            Some(stashed) => {
                line += &format!(", stashed {} ago", age(now.saturating_sub(stashed.stashed_at)));
                if let Some(expires) = stashed.expires_at.filter(|_| !stashed.is_protected) {
                    line += &format!(", expires in {}", age(expires.saturating_sub(now)));
                }
                if stashed.is_protected {
                    line += ", protected";
                }
            }
            None => line += ", not in the stash",
        }
        line + &format!(", {} tokens", memory.tokens)
    }

    /// Returns the preview as lines of the answer.
    pub(super) fn lines(&self) -> String {
        let mut head = self.head.clone();
        if let Some(hops) = self.hops {
            head += &format!(", {hops} hops away");
        }
        if let Some(score) = &self.score {
            let Score { sum, relevance, age, stash_age } = score;
            head += &format!(", score {sum} = relevance {relevance} + age {age} + stash age {stash_age}");
        }
        if let Some(similarity) = self.similarity {
            head += &format!(", similarity {similarity}");
        }
        let mut lines = format!("{head}]\n{}\n", envelope::quoted(self.text.trim()));
        for (what, ids) in [("refers to", &self.references), ("referenced by", &self.referenced_by)] {
            if !ids.is_empty() {
                lines += &format!("[{what} {}]\n", ids.join(", "));
            }
        }
        lines
    }
}

/// Returns a duration in the largest unit of which it has at least one, such as `3 days`.
fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    let (count, unit) = match seconds {
        ..60 => return "under a minute".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
