//! Stores cursors. A cursor says how much of a history an import has read.

use rusqlite::OptionalExtension;

use crate::SqliteStore;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

impl SqliteStore {
    pub(crate) async fn import_cursor(&self, scope: &Scope, source: &str) -> error::Result<Option<String>> {
        let source = source.to_owned();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached("SELECT cursor FROM imports WHERE owner = ?1 AND source = ?2")?
                .query_row((parts::own(scope), source), |row| row.get(0))
                .optional()?)
        })
        .await
    }

    pub(crate) async fn has_import_cursor(&self, scope: &Scope, end: &str) -> error::Result<bool> {
        let end = end.to_owned();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM imports WHERE owner = ?1 AND substr(source, -length(?2)) = ?2)",
                )?
                .query_row((parts::own(scope), end), |row| row.get(0))?)
        })
        .await
    }

    pub(crate) async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        now: Millis,
    ) -> error::Result<()> {
        let (source, cursor) = (source.to_owned(), cursor.to_owned());
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO imports (owner, source, cursor, at) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((parts::own(scope), source, cursor, now))?;
            Ok(())
        })
        .await
    }
}
