//! Tiro manages what language models get to see: a memory of conversations and commits that any agent can search.
//!
//! The map, doors first; a row imports only rows below it, which `tests/it/tidy.rs` checks:
//!
//! - doors, wire only: [`server`] (MCP), [`cli`]
//! - operations: [`tools`], one file each, in folders by toolset
//! - workings, which several operations compose: [`idle`], [`ingest`], [`assembly`], [`summaries`], [`ask`]
//! - opened: [`caller`] (who calls, and its project), [`engine`] (what the process has open), [`project`], [`config`]
//! - what is done: [`remember`] (the write path), [`retrieve`] (the read path), [`import`] (histories to drafts),
//!   [`context`] (what of a conversation is shown), [`summarize`]
//! - effects: [`store`], [`embed`], [`git`], [`clients`], [`llm`], [`spool`]
//! - files for one user alone: [`private`]
//! - text: [`chunk`], [`tokens`]
//! - words and values: [`memory`], [`money`], [`scope`], [`filter`], [`budget`], [`redact`], [`envelope`], [`error`], [`mod@file`],
//!   [`humanize`], [`times`], [`tuning`]

pub mod ask;
pub mod assembly;
pub mod budget;
pub mod caller;
pub mod chunk;
pub mod cli;
pub mod clients;
pub mod config;
pub mod context;
pub mod embed;
pub mod engine;
pub mod envelope;
pub mod error;
pub mod file;
pub mod filter;
pub mod git;
pub mod humanize;
pub mod idle;
pub mod import;
pub mod ingest;
pub mod llm;
pub mod memory;
pub mod money;
pub mod private;
pub mod project;
pub mod redact;
pub mod remember;
pub mod retrieve;
pub mod scope;
pub mod server;
pub mod spool;
pub mod store;
pub mod summaries;
pub mod summarize;
pub mod times;
pub mod tokens;
pub mod tools;
pub mod tuning;
