//! Subcommands that run Tiro: the server, hooks, and work on the stored data.

mod background;
pub mod bench;
pub mod extract_text;
pub mod gc;
pub mod hook;
pub mod index;
pub mod open;
pub mod serve;
pub mod serve_http;
pub mod stats;
