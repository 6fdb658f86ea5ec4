//! Addresses for programs that watch a server: whether it lives and can answer, and its counts.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use super::metrics::{self, Metrics};

/// The time in which the store must answer. Arbitrary.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks whether the store answers.
pub type Ready = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Returns the routes that say whether the process lives (`/healthz`) and whether the store answers (`/readyz`). They
/// say nothing else, so everyone may ask.
pub fn routes(ready: Ready) -> Router {
    let is_ready = async move || match tokio::time::timeout(PATIENCE, ready()).await {
        Ok(true) => (StatusCode::OK, "ready\n"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store doesn't answer\n"),
    };
    Router::new().route("/healthz", get(async || "alive\n")).route("/readyz", get(is_ready))
}

/// Returns the route of the counts (`/metrics`).
pub fn counts(metrics: Metrics) -> Router {
    let text = async move || ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.text()).into_response();
    Router::new().route("/metrics", get(text))
}
