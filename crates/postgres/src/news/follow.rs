//! Hears what other processes of an installation tell of stores.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Key, channel, listener};
use crate::database::Database;
use tiro_store::NextChange;

/// Returns a future that is ready once the store may have changed after this call. The first call opens the connection
/// that listens in the database `first`.
pub(crate) fn next_change(first: &Database, key: Key) -> NextChange {
    let news = first.news();
    let mut changed = news.follow(key);
    if !news.is_started.swap(true, Ordering::Relaxed) {
        let listening = listener::listen(Arc::downgrade(news), first.config(), channel(first.schema()));
        first.in_background(listening);
    }
    Box::pin(async move {
        if changed.changed().await.is_err() {
            // The database was closed.
            std::future::pending::<()>().await;
        }
    })
}
