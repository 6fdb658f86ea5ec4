//! What a server answers: who it is, which projects there are, and what became of each change that it got.

use serde::{Deserialize, Serialize};

/// The header with the version of the format, in requests and in answers. An answer without it isn't of a Tiro that can
/// sync.
pub const HEADER: &str = "tiro-sync";

/// The answer of `GET /sync`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of Tiro.
    pub tiro: String,
    /// The newest format that the server speaks.
    pub format: u32,
    /// The oldest format that the server speaks.
    pub oldest_format: u32,
    /// The id of the server's memory. A replaced database has another id.
    pub server: String,
    /// The name under which the server stores what the key's user saves.
    pub user: String,
    /// The server's time, in milliseconds since 1970 UTC.
    pub now: i64,
    /// Whether a machine may wait for changes. Servers of older versions don't know this request.
    #[serde(default)]
    pub waits: bool,
    /// The projects that the user may see.
    #[serde(default)]
    pub projects: Vec<Project>,
}

/// A project of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// Whether the user may share memories there.
    pub may_write: bool,
    /// The kinds of memories that are shared there.
    pub kinds: Vec<String>,
}

/// The answer to a machine that waits for changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// Whether there are changes. Otherwise there were none for a while.
    pub changed: bool,
}

/// The answer to a page of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// What became of each line, in order.
    pub outcomes: Vec<Became>,
    /// How many pages the server had counted for the device before, as in [`End`](crate::page::End).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Became {
    /// The outcome: `stored`, `changed`, `known`, `conflict` or `refused`. A later version may say another word.
    pub outcome: String,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Became {
    /// Returns the outcome `word`.
    pub fn of(word: &str) -> Became {
        Became { outcome: word.to_owned(), why: None }
    }

    /// Returns that the change is refused because of `why`.
    pub fn refused(why: impl Into<String>) -> Became {
        Became { outcome: "refused".to_owned(), why: Some(why.into()) }
    }
}
