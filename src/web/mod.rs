//! Serving HTTP: what the MCP server and the pages have in common when they answer over a network.
//!
//! - [`address`]: where a server may listen
//! - [`connections`]: accepts connections, with limits of time and number; [`tls`] encrypts them
//! - [`peer`]: whose a connection is
//! - [`hosts`]: whether a request means this server
//! - [`bounds`]: how much a caller may ask, of this server; [`rates`]: of all servers
//! - [`body`]: bodies of a bounded size
//! - [`metrics`]: counts for monitoring programs, which [`health`] shows
//!
//! This module knows neither MCP nor the pages.

pub mod address;
pub mod body;
pub mod bounds;
pub mod connections;
pub mod health;
pub mod hosts;
pub mod metrics;
pub mod peer;
pub mod rates;
pub mod tls;

/// The routes of a server.
pub use axum::Router as Routes;
