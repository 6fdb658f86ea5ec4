//! Operations on memories: searching, opening, storing, marking and forgetting them.

pub mod authors;
pub mod beside;
pub mod edit_memory;
mod elsewhere;
pub mod expand_detail;
pub mod explain_lines;
pub mod forget_context;
pub mod hits;
pub mod list_memories;
pub mod list_sessions;
pub mod mark_important;
pub mod named;
pub mod resources;
pub mod save_messages;
pub mod search_project_memory;
pub mod show;
pub mod store_memory;
pub mod timeline;
