//! Spending on models: limits, planned calls and amounts. Also records of requests to models, without their texts.

use std::collections::HashSet;

use tiro_base::memory::{Millis, words};
use tiro_base::money::Money;

words! {
    /// The purpose of a request to a model.
    Purpose {
        /// A question to an assistant, in a thread.
        Consultation = "consultation",
        /// The results of the functions that an assistant called, sent with the conversation so far.
        Functions = "functions",
        /// The summary of messages of a conversation.
        Summary = "summary",
        /// The summary of a commit.
        Commit = "commit",
        /// Embeddings of stored texts.
        Texts = "texts",
        /// The embedding of a question, which a search compares with texts.
        Question = "question",
        /// A test of a provider.
        Test = "test",
    }
}

/// The purpose of a request, and the sources of its content. It contains no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matter {
    /// What it is for.
    pub purpose: Purpose,
    /// The session that the request belongs to.
    pub session: Option<String>,
    /// The assistant of the thread that the request belongs to.
    pub assistant: Option<String>,
    /// The memories and files whose content is sent.
    pub sources: Sources,
}

impl Matter {
    /// Returns the matter of a request that belongs to no session. Its content comes from `sources`.
    pub fn of(purpose: Purpose, sources: Sources) -> Matter {
        Matter { purpose, session: None, assistant: None, sources }
    }
}

/// The memories and files whose content is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The ids of the memories.
    pub memories: Vec<String>,
    /// The paths of the files. Files below the project's root have paths relative to the root.
    pub files: Vec<String>,
}

impl Sources {
    /// Returns `memories` as sources.
    pub fn memories(memories: impl IntoIterator<Item = String>) -> Sources {
        Sources { memories: memories.into_iter().collect(), files: Vec::new() }.each_once()
    }

    /// Adds those sources of `more` that are not contained yet.
    pub fn add(&mut self, more: Sources) {
        self.memories.extend(more.memories);
        self.files.extend(more.files);
        *self = std::mem::take(self).each_once();
    }

    /// Returns the sources without repetitions, in the order of their first mention.
    pub fn each_once(self) -> Sources {
        let once = |names: Vec<String>| {
            let mut seen = HashSet::new();
            names.into_iter().filter(|name| seen.insert(name.clone())).collect()
        };
        Sources { memories: once(self.memories), files: once(self.files) }
    }
}

/// The limits on spending; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendLimits {
    /// The limit for one call.
    pub call: Option<Money>,
    /// The limit for one provider on one day.
    pub provider_day: Option<Money>,
    /// The limit for one day, for all providers together.
    pub day: Option<Money>,
    /// The limit for one project, for all days together.
    pub project: Option<Money>,
    /// The limit for all projects together, over all days.
    pub total: Option<Money>,
}

/// A call to a provider that is about to be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The id of the project that the call is for.
    pub project: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// The highest possible cost of one request of the call.
    pub most: Money,
    /// The limits that apply to it.
    pub limits: SpendLimits,
    /// The call's deadline.
    pub until: Millis,
    /// What is sent.
    pub parcel: Parcel,
}

/// The content of one request, and its receiver.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The purpose of the request, and the sources of its content.
    pub matter: Matter,
    /// The host of the provider, or words that say that the provider is on this machine.
    pub place: String,
    /// Whether the provider is on this machine.
    pub is_local: bool,
    /// The tokens, at most.
    pub tokens: i64,
    /// The number of places in which a secret is replaced.
    pub secrets: i64,
}

/// An amount that is reserved for one call, until [`Registry::settle`](crate::Registry::settle) is
/// called. Only engines make and change it.
#[derive(Debug)]
pub struct Reservation {
    /// Its number.
    pub id: i64,
    /// The day of the call, in days since 1970 UTC.
    pub day: i64,
    /// What was planned.
    pub planned: Planned,
    /// The reserved amount.
    pub held: Money,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Its cost.
    pub cost: Money,
    /// How many times the request of the call was sent.
    pub requests: i64,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
    /// Whether it failed.
    pub has_failed: bool,
}

/// A request that was sent, with its repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentRow {
    /// When it was first sent.
    pub at: Millis,
    /// The project's id.
    pub project: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// The host of the provider, or words that say that the provider is on this machine.
    pub place: String,
    /// Whether the provider is on this machine.
    pub is_local: bool,
    /// The word for the purpose of the request (see [`Purpose`]).
    pub purpose: String,
    /// How many times it was sent.
    pub requests: i64,
    /// Tokens sent, in all repetitions together. An upper bound while [`answered`](SentRow::answered) is `None`.
    pub tokens: i64,
    /// Tokens received.
    pub received: i64,
    /// The number of places in which a secret was replaced.
    pub secrets: i64,
    /// Whether an answer came. `None` if the outcome is not known yet, or never will be known because the process died.
    pub answered: Option<bool>,
    /// The number of memories that the content came from.
    pub memories: i64,
    /// The number of files that the content came from.
    pub files: i64,
    /// The session that the request belonged to.
    pub session: Option<String>,
    /// The assistant of its thread.
    pub assistant: Option<String>,
    /// The names of the memories and files. `None` after they were purged.
    pub sources: Option<Sources>,
}

/// Conditions for listing sent requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentFilter {
    /// Only requests to the provider with this name.
    pub provider: Option<String>,
    /// Only requests since this time.
    pub since: Option<Millis>,
    /// The maximum number of requests; the newest are listed.
    pub limit: usize,
}

/// The spending of one project on one model on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingRow {
    /// The day, as the number of days since 1970-01-01 UTC.
    pub day: i64,
    /// The project's id.
    pub project: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// Calls made.
    pub calls: i64,
    /// Calls that failed.
    pub failed: i64,
    /// The amount spent.
    pub spent: Money,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
}
