//! Stores cursors. A cursor says how much of a history an import has read.

use crate::PostgresStore;
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

impl PostgresStore {
    pub(crate) async fn import_cursor(&self, scope: &Scope, source: &str) -> error::Result<Option<String>> {
        read!(self, scope, tx => {
            let sql = "SELECT cursor FROM imports WHERE owner = $1 AND source = $2";
            let row = tx.row(sql, &[&tx.own_known(scope), &source]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }

    pub(crate) async fn has_import_cursor(&self, scope: &Scope, end: &str) -> error::Result<bool> {
        read!(self, scope, tx => {
            let sql = "SELECT FROM imports WHERE owner = $1 AND right(source, length($2)) = $2 LIMIT 1";
            tx.exists(sql, &[&tx.own_known(scope), &end]).await
        })
    }

    pub(crate) async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        now: Millis,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            tx.execute(
                "INSERT INTO imports (owner, source, cursor, at) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (owner, source) DO UPDATE SET cursor = excluded.cursor, at = excluded.at",
                &[&tx.own(scope).await?, &source, &cursor, &now],
            )
            .await?;
            Ok(())
        })
    }
}
