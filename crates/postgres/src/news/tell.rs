//! Tells all processes of an installation that a store changed.

use deadpool_postgres::Object;

use super::{Key, NEWEST, channel};
use crate::database::Database;
use crate::error::Result;

/// Tells all processes, soon, that `parts` of a store in `database` were written.
pub(crate) fn tell(database: &Database, key: Key, parts: &[i64]) {
    let Some(first) = database.first() else { return };
    let Some(wait) = first.news().note(key, parts) else { return };
    let (database, through) = (database.clone(), first.clone());
    first.in_background(async move {
        tokio::time::sleep(wait).await;
        if let Err(error) = tell_now(&database, &through, key).await {
            tracing::debug!(%error, "the other processes are not told of a change");
        }
    });
}

/// Tells all processes that a store changed, if a peer would see that: other writes, such as vectors, don't concern it.
async fn tell_now(database: &Database, first: &Database, key: Key) -> Result<()> {
    let news = first.news();
    let newest = newest(database, &news.take(key)).await?;
    if !news.is_new(key, newest) {
        return Ok(());
    }
    // Who follows the store in this process needs no notice, which a pooler may keep back.
    news.wake(key);
    let (channel, text) = (channel(first.schema()), key.text());
    // The lock of `NOTIFY` is held until the end of the transaction, which therefore waits for no disk.
    let notify =
        format!("BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_notify('{channel}', '{text}'); COMMIT");
    let connection = first.connection().await?;
    kept_if(connection.batch_execute(&notify).await, connection)
}

/// Returns the number of the newest change in `parts` of a store.
async fn newest(database: &Database, parts: &[i64]) -> Result<i64> {
    let owners = parts.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let connection = database.connection().await?;
    let newest = async {
        let begin = format!("BEGIN READ ONLY; SET LOCAL tiro.owners = '{owners}'");
        connection.batch_execute(&begin).await?;
        let statement = connection.prepare_cached(NEWEST).await?;
        let newest = connection.query_one(&statement, &[&parts]).await?.try_get(0)?;
        connection.batch_execute("COMMIT").await?;
        Ok(newest)
    };
    let newest = newest.await;
    kept_if(newest, connection)
}

/// Gives the connection back to its pool if `done` succeeded. Otherwise its transaction may be open, and it is closed.
fn kept_if<T>(done: Result<T, tokio_postgres::Error>, connection: Object) -> Result<T> {
    if done.is_err() {
        drop(Object::take(connection));
    }
    Ok(done?)
}
