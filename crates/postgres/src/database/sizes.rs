//! Lets the server know how large the tables have become.
//!
//! The server plans a statement by what it knows of the tables. It looks at them by itself, but not at once: if a
//! hundred thousand memories arrive in a minute, it still takes the tables for small, reads all rows of an owner for each
//! one that it looks for, and takes minutes longer. So after some hundreds of new memories, a process lets the server
//! look at the tables that have doubled since it looked last. A failure doesn't matter: the server looks by itself later.

use std::sync::atomic::Ordering;

use super::Database;
use crate::error::Result;

/// After how many new memories of a process the sizes are compared. Arbitrary: comparing takes a millisecond.
const EVERY: usize = 400;

/// How many pages a table has at least that has grown. Arbitrary: about 100 memories.
const FEWEST_PAGES: i32 = 8;

impl Database {
    /// Counts `stored` new memories, and lets the server look at the tables that have grown, if it is time for that.
    pub(crate) async fn grew(&self, stored: usize) {
        let since = &self.inner.stored;
        if since.fetch_add(stored, Ordering::Relaxed) + stored < EVERY {
            return;
        }
        since.store(0, Ordering::Relaxed);
        if let Err(error) = self.look_at_sizes().await {
            tracing::debug!(%error, "the database doesn't look at its tables");
        }
    }

    /// Lets the server look at the tables that have doubled since it looked last.
    async fn look_at_sizes(&self) -> Result<()> {
        let connection = self.connection().await?;
        let grown = "SELECT string_agg(quote_ident(c.relname), ', ') FROM pg_class c
                     WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r'
                         AND pg_relation_size(c.oid) / current_setting('block_size')::int
                             > greatest(2 * c.relpages, $2)";
        let grown = connection.prepare_cached(grown).await?;
        let schema = format!("\"{}\"", self.schema());
        let row = connection.query_one(&grown, &[&schema, &FEWEST_PAGES]).await?;
        if let Some(tables) = row.try_get::<_, Option<String>>(0)? {
            // A table that the server or another process looks at now is left out.
            connection.batch_execute(&format!("ANALYZE (SKIP_LOCKED) {tables}")).await?;
        }
        Ok(())
    }
}
