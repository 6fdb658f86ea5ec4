//! The operations of the toolset `consult`: asking other models, and describing the threads with them.

pub mod chat;
pub mod count_tokens;
pub mod describe_session;
mod functions;
pub mod preview;
pub mod reset_session;
pub mod show_thread;
