//! Operations that assemble contexts and make summaries.

mod answer;
pub mod get_context_summary;
pub mod get_relevant_snippets;
pub mod retrieve_context;
pub mod summarize_all;
pub mod summarize_commits;
pub mod summarize_conversation;
