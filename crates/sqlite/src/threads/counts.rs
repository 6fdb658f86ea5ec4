//! A cache of token counts, so that the tokens of unchanged files are not counted again.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::OptionalExtension;

use crate::SqliteStore;
use crate::read::parts;
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_base::thread::ContentHash;
use tiro_store::tuning::TOKEN_COUNTS;

/// The maximum number of counts of all owners together.
const KEPT: i64 = if cfg!(test) { 1_000 } else { TOKEN_COUNTS };

/// The time that storing counts waits for other writers. Arbitrary: counting a few files again takes about this long.
const PATIENCE: Duration = Duration::from_millis(50);

impl SqliteStore {
    pub(crate) async fn token_counts(
        &self,
        scope: &Scope,
        hashes: &[ContentHash],
    ) -> error::Result<HashMap<ContentHash, u32>> {
        let hashes = hashes.to_vec();
        self.read(scope, move |_, connection, scope| {
            let sql = "SELECT tokens FROM file_tokens WHERE owner = ?1 AND hash = ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let mut counts = HashMap::with_capacity(hashes.len());
            for hash in hashes {
                let found = statement.query_row((parts::own(scope), hash.0), |row| row.get(0)).optional()?;
                counts.extend(found.map(|tokens: u32| (hash, tokens)));
            }
            Ok(counts)
        })
        .await
    }

    pub(crate) async fn note_token_counts(
        &self,
        scope: &Scope,
        counts: &[(ContentHash, u32)],
    ) -> error::Result<()> {
        let counts = counts.to_vec();
        let noted = self.write_lightly(scope, PATIENCE, move |connection, scope| {
            let mut statement = connection.prepare_cached(
                "INSERT INTO file_tokens (owner, hash, tokens) VALUES (?1, ?2, ?3)
                 ON CONFLICT (owner, hash) DO UPDATE SET tokens = ?3",
            )?;
            for (hash, tokens) in counts {
                statement.execute((parts::own(scope), hash.0, tokens))?;
            }
            // Rows are numbered in the order in which they were added.
            connection
                .prepare_cached(
                    "DELETE FROM file_tokens WHERE seq <= (SELECT max(seq) FROM file_tokens) - ?1",
                )?
                .execute([KEPT])?;
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::debug!(%error, "cannot note token counts");
        }
        Ok(())
    }
}
