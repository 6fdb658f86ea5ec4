//! A cache of token counts, so that the tokens of unchanged files are not counted again.

use std::collections::HashMap;
use std::time::Duration;

use super::{count, hash};
use crate::PostgresStore;
use crate::error::Result;
use crate::transactions::{Durability, read};
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_base::thread::ContentHash;
use tiro_store::tuning::TOKEN_COUNTS;

/// The maximum number of counts of an owner.
const KEPT: i64 = if cfg!(test) { 1_000 } else { TOKEN_COUNTS };

/// The time that storing counts waits for other writers. Arbitrary: counting a few files again takes about this long.
const PATIENCE: Duration = Duration::from_millis(50);

impl PostgresStore {
    pub(crate) async fn token_counts(
        &self,
        scope: &Scope,
        hashes: &[ContentHash],
    ) -> error::Result<HashMap<ContentHash, u32>> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
        read!(self, scope, tx => {
            let sql = "SELECT hash, tokens FROM file_tokens WHERE owner = $1 AND hash = ANY ($2)";
            let rows = tx.rows(sql, &[&tx.own_known(scope), &hashes]).await?;
            rows.iter().map(|row| Ok((hash(row, 0)?, count(row, 1)?))).collect()
        })
    }

    pub(crate) async fn note_token_counts(
        &self,
        scope: &Scope,
        counts: &[(ContentHash, u32)],
    ) -> error::Result<()> {
        if let Err(error) = self.store_token_counts(scope, counts).await {
            tracing::debug!(%error, "cannot note token counts");
        }
        Ok(())
    }

    async fn store_token_counts(&self, scope: &Scope, counts: &[(ContentHash, u32)]) -> Result<()> {
        let (hashes, tokens): (Vec<&[u8]>, Vec<i64>) =
            counts.iter().map(|(hash, tokens)| (&hash.0[..], i64::from(*tokens))).unzip();
        let tx = self.begin_light(scope, Durability::Unsynced, PATIENCE).await?;
        let owner = tx.own(scope).await?;
        tx.execute(
            "INSERT INTO file_tokens (owner, hash, tokens)
             SELECT $1, u.hash, u.tokens FROM (
                 SELECT DISTINCT ON (hash) * FROM unnest($2::bytea[], $3::bigint[])
                     WITH ORDINALITY AS c (hash, tokens, place) ORDER BY hash, place DESC) u
             ORDER BY u.place
             ON CONFLICT (owner, hash) DO UPDATE SET tokens = excluded.tokens",
            &[&owner, &hashes, &tokens],
        )
        .await?;
        // Rows are numbered in the order in which they were added.
        let sql = "DELETE FROM file_tokens WHERE owner = $1 AND seq <= (
                       SELECT seq FROM file_tokens WHERE owner = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
        tx.execute(sql, &[&owner, &KEPT]).await?;
        tx.end().await
    }
}
