//! Shows an error and what to do about it.

use axum::http::StatusCode;
use maud::html;
use serde_json::json;

use super::layout::{View, sentence};
use super::text::plain;
use tiro_base::error::{Error, Kind};
use tiro_tools::common::subcommands::without_tools;

/// Returns the page of an error, and the status of its answer.
pub fn page(error: &Error) -> (StatusCode, View) {
    error.log();
    let (message, hint) = texts(error);
    let body = html! {
        h1 { "That did not work" }
        p.error role="alert" { (plain(&message)) }
        @if let Some(hint) = hint { p { (plain(&hint)) } }
        p { a href="/" { "To the project" } }
    };
    (status(error.kind()), View::new("", "That did not work", body))
}

/// Returns an error as JSON, and the status of its answer.
pub fn in_json(error: &Error) -> (StatusCode, String) {
    error.log();
    (status(error.kind()), json!({ "error": texts(error).0 }).to_string())
}

/// Returns the message and the hint of an error as sentences. Names of tools become subcommands.
fn texts(error: &Error) -> (String, Option<String>) {
    let shown = |text: &str| sentence(&without_tools(text));
    (shown(&error.to_string()), error.way_out().map(shown))
}

fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::BadInput => StatusCode::BAD_REQUEST,
        Kind::NotFound | Kind::NoProject => StatusCode::NOT_FOUND,
        Kind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
