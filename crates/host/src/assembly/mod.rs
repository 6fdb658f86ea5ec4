//! Assembles contexts. For a question and a budget, chooses the passages of one conversation or of all conversations.
//!
//! The rules of choosing within a conversation are in `context`, which is pure. This module reads and searches the
//! store. [`within_session`] and [`across_sessions`] choose [`passages`], from which an operation builds its answer.

pub mod across_sessions;
mod choice;
mod filling;
pub mod marks;
pub mod order;
pub mod passages;
pub mod quote;
mod relevant;
mod repeats;
mod replies;
mod standing;
mod whole_sessions;
pub mod within_session;

use serde::{Deserialize, Serialize};

use tiro_base::filter::Filter;
use tiro_base::scope::{Scope, SessionId};

/// The kinds of content in a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncludeLevel {
    /// Only summaries.
    Summary,
    /// Summaries and messages.
    #[default]
    Mixed,
    /// Only messages.
    Full,
}

/// The checked arguments of a call.
pub struct ContextRequest {
    /// The question.
    pub query: String,
    /// The conversation that the question belongs to, if the caller names one.
    pub session: Option<SessionId>,
    /// The sessions that may be read.
    pub scope: Scope,
    /// Restricts the times of the messages.
    pub filter: Filter,
    /// The kinds of content in the context.
    pub level: IncludeLevel,
    /// The budget in tokens.
    pub budget: usize,
}
