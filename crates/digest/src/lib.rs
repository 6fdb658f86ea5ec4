//! Makes statements, contexts and summaries from the texts of conversations and commits.
//!
//! - [`statements`]: values that people state, and which later value replaces which earlier one
//! - [`context`]: facts, segments, tiers and importance, from which a conversation's context is chosen
//! - [`reasons`]: the sentences that say why something was changed
//! - [`summarize`]: summaries by rules or by a model, and checks of the truth of a model's summary
//!   ([`summarize::quality`])
//! - [`tuning`]: the tuned numbers of these modules
//!
//! This crate never reads a store and never asks a model. It makes prompts and judges answers.
//!
//! Invariants: the same messages and the same `now` result in the same bytes; a budget of tokens is never exceeded.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod context;
pub mod reasons;
pub mod statements;
pub mod summarize;
pub mod tuning;
