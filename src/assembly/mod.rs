//! Assembles contexts: what of a conversation, or of all, is shown for a question within a budget.
//!
//! [`within_session`] and [`across_sessions`] choose [`passages`]; an operation makes an answer of what was chosen.

pub(crate) mod across_sessions;
mod choice;
pub(crate) mod passages;
mod relevant;
pub(crate) mod within_session;

use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::scope::{Scope, SessionId};

/// What a context is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncludeLevel {
    /// Summaries alone.
    Summary,
    /// Summaries and messages.
    #[default]
    Mixed,
    /// Messages alone.
    Full,
}

/// A call whose arguments were read.
pub(crate) struct Asked {
    /// The question.
    pub query: String,
    /// The conversation it is asked in.
    pub session: Option<SessionId>,
    /// What may be looked at.
    pub scope: Scope,
    /// When it was said.
    pub filter: Filter,
    /// What the context is made of.
    pub level: IncludeLevel,
    /// Its tokens.
    pub budget: usize,
}
