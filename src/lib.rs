//! A memory of conversations and commits for coding agents, with an MCP server and a command line.
//!
//! This crate has the two entry points, [`server`] (MCP) and [`cli`]. The entry points only translate requests into
//! calls, and results into answers. The layers below this crate are separate crates. `tests/it/tidy/` checks that each
//! crate imports only crates of lower layers:
//!
//! - operations, each in a file of its own, in folders by toolset: `tiro-tools`
//! - work that several operations share, and everything that a process has open: `tiro-host`
//! - steps of operations: `tiro-recall` (the write path, the read path, the stash), `tiro-inline` (the files in a
//!   prompt), `tiro-digest` (statements, facts, summaries), `tiro-capture` (turns histories into drafts)
//! - effects: `tiro-store` (the interface of a store, which `tiro-sqlite` implements), `tiro-embed`, `tiro-git`,
//!   `tiro-files`, `tiro-llm`
//! - text: `tiro-text`
//! - words and values: `tiro-base`, `tiro-redact`

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

mod cli;
mod lossy;
mod pages;
mod server;
mod web;

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
