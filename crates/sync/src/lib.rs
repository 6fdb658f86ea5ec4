//! What a developer's Tiro and a team's server say to each other: changes of memories, in pages, over HTTP.
//!
//! - [`server`]: the address of a server. A key travels only over TLS, or within one machine.
//! - [`remote`]: the requests. They keep to a deadline, follow no redirect, and receive a bounded answer.
//! - [`page`]: a page of lines: compressed, bounded, and with an end, so that half a page is noticed.
//! - [`mod@line`]: a line: one change of one memory. A line that can't be read spoils no other line.
//! - [`greeting`]: what the server says of itself, of its projects, and of each change that it got.
//!
//! Both sides use the same code to write and to read. Neither side trusts the other: a page may be hostile, a bomb, cut
//! off, or of a later version. A member that this version doesn't know is ignored. This crate opens no store, and
//! doesn't decide what may be stored.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod greeting;
pub mod line;
mod numbers;
pub mod page;
pub mod remote;
pub mod server;
mod trouble;

pub use trouble::Trouble;
