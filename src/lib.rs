//! A memory of conversations and commits for coding agents: an MCP server and a command line.
//!
//! This crate has the doors, which only translate requests into calls and results into answers: [`server`] (MCP) and
//! [`cli`]. The rows of the house below them are crates; `tests/it/tidy/` checks that each imports only those below it:
//!
//! - operations, one file each, in folders by toolset: `tiro-tools`
//! - what several operations compose, and what a process has open: `tiro-host`
//! - steps of operations: `tiro-recall` (the write path, the read path, the stash), `tiro-inline` (the files in a
//!   prompt), `tiro-digest` (statements, facts, summaries), `tiro-capture` (histories to drafts)
//! - effects: `tiro-store` (the promises of a store, which `tiro-sqlite` keeps), `tiro-embed`, `tiro-git`,
//!   `tiro-files`, `tiro-llm`
//! - text: `tiro-text`
//! - words and values: `tiro-base`, `tiro-redact`

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

mod cli;
mod lossy;
mod server;

pub use cli::main;

/// The items that the tests in `tests/` use. No other items are public, so that the compiler reports unused code.
#[doc(hidden)]
pub mod testing {
    pub use tiro_base::memory::{Draft, Kind, Provenance};
    pub use tiro_base::scope::{ProjectId, Scope, TenantId};
    pub use tiro_files::{
        Budget, DocumentKind, Extractor, Fault, Form, Limits, Note, Read, Reading, Refusal, Roots, gather,
    };
    pub use tiro_host::config::{External, Options, Sources, Use};
    pub use tiro_intake::prepare::prepare;
    pub use tiro_redact::{Redactor, rules};
    pub use tiro_sqlite::{SqliteBackup, SqliteStore};
    pub use tiro_store::{Flavour, ForeignPart, Lifecycle, ReadRecords, WriteMemories};
    pub use tiro_text::tokens::count;
}
