//! Makes statements, contexts and summaries from the texts of conversations and commits.
//!
//! - [`statements`]: values that people state, and which later one replaces which
//! - [`context`]: facts, segments, tiers and importance, from which a conversation's context is chosen
//! - [`summarize`]: summaries, by rules or by a model, and whether a model's summary is true ([`summarize::quality`])
//! - [`tuning`]: the numbers of these
//!
//! This crate never reads a store or asks a model: it makes prompts, and judges answers.
//!
//! Invariants: the same messages and the same `now` give the same bytes; a budget of tokens is never exceeded.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod context;
pub mod statements;
pub mod summarize;
pub mod tuning;
