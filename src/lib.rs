//! A memory of conversations and commits for coding agents: an MCP server and a command line.
//!
//! The modules are listed in rows, from the entry points downwards. `tests/it/tidy/` checks that the modules of a row
//! import only those of rows below it:
//!
//! - doors, which only translate requests into calls and results into answers: [`server`] (MCP), [`cli`]
//! - operations, one file each, in folders by toolset: [`tools`]
//! - workings, which several operations use: [`idle`], [`ingest`], [`assembly`], [`summaries`], [`consult`], [`ask`]
//! - open things: [`caller`] (who calls, and its project), [`engine`] (what the process has open), [`project`], [`config`]
//! - steps of operations: [`remember`] (the write path), [`retrieve`] (the read path), [`import`] (histories to drafts),
//!   [`context`] (the parts of a conversation to show), [`summarize`], [`inline`] (what a prompt contains of files),
//!   [`ephemeral`] (an index of one call's texts), [`stash`] (order and merging of stashed segments)
//! - effects: [`store`], [`embed`], [`git`], [`files`], [`clients`], [`llm`], [`spool`]
//! - files that only this user can access: [`private`]
//! - text: [`chunk`], [`tokens`], [`statements`]
//! - words and values: [`memory`], [`money`], [`scope`], [`filter`], [`budget`], [`redact`], [`envelope`], [`error`], [`mod@file`],
//!   [`humanize`], [`mod@thread`], [`times`], [`tuning`], [`words`]

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

mod ask;
mod assembly;
mod blocks;
mod budget;
mod caller;
mod chunk;
mod cli;
mod clients;
mod config;
mod consult;
mod context;
mod embed;
mod encoding;
mod engine;
mod envelope;
mod ephemeral;
mod error;
mod file;
mod files;
mod filter;
mod git;
mod humanize;
mod idle;
mod import;
mod ingest;
mod inline;
mod llm;
mod lossy;
mod memory;
mod money;
mod parallel;
mod private;
mod project;
mod redact;
mod remember;
mod retrieve;
mod scope;
mod server;
mod spool;
mod stash;
mod statements;
mod store;
mod summaries;
mod summarize;
mod thread;
mod times;
mod tokens;
mod tools;
mod tuning;
mod words;

pub use cli::main;

/// The items that the tests in `tests/` use. No other items are public, so that the compiler reports unused code.
#[doc(hidden)]
pub mod testing {
    pub use crate::config::{External, Options, Sources, Use};
    pub use crate::files::{
        Budget, DocumentKind, Extractor, Fault, Form, Limits, Note, Read, Reading, Refusal, Roots, gather,
    };
    pub use crate::memory::{Draft, Kind, Provenance};
    pub use crate::redact::{Redactor, rules};
    pub use crate::remember::prepare;
    pub use crate::scope::{OwnerId, ProjectId, Scope};
    pub use crate::store::{Flavour, Foreign, ForeignPart, Store};
    pub use crate::tokens::count;
}
