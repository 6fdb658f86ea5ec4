//! How far imports of histories came.

use rusqlite::OptionalExtension;

use crate::error::Result;
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::Store;

impl Store {
    /// Returns where the import of `source` stands, as its last `set_import_cursor` left it.
    pub async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>> {
        let source = source.to_owned();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached("SELECT cursor FROM imports WHERE owner = ?1 AND source = ?2")?
                .query_row((scope.owner.as_str(), source), |row| row.get(0))
                .optional()?)
        })
        .await
    }

    /// Records where the import of `source` stands.
    pub async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        now: Millis,
    ) -> Result<()> {
        let (source, cursor) = (source.to_owned(), cursor.to_owned());
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO imports (owner, source, cursor, at) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((scope.owner.as_str(), source, cursor, now))?;
            Ok(())
        })
        .await
    }
}
