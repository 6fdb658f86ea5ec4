//! A group of the list: the segments of one topic and session.

use schemars::JsonSchema;
use serde::Serialize;

use tiro_base::envelope;
use tiro_base::humanize::{counted, thousands};

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

impl Group {
    /// Returns the group as lines of the answer.
    pub(super) fn lines(&self) -> String {
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
