//! Updates the names of the authors of commits according to the repository's `.mailmap`.

use super::reindex::reindex_memories;
use crate::PostgresStore;
use crate::columns::{memory_key, number};
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{AuthorRow, Renamed};

impl PostgresStore {
    pub(crate) async fn commit_authors(
        &self,
        scope: &Scope,
        before: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<AuthorRow>> {
        let before = before.map_or(i64::MAX, MemoryKey::in_store);
        read!(self, scope, tx => {
            let sql = "SELECT seq, source_id, speaker FROM memories
                       WHERE owner = ANY ($1) AND kind = 'commit' AND provenance = 'git_commit' AND seq < $2
                           AND source_id IS NOT NULL AND tombstoned_at IS NULL
                       ORDER BY seq DESC LIMIT $3";
            let rows = tx.rows(sql, &[&tx.seen.parts, &before, &number(limit)]).await?;
            let author = |row: &tokio_postgres::Row| {
                Ok(AuthorRow { key: memory_key(row, 0)?, sha: row.try_get(1)?, author: row.try_get(2)? })
            };
            rows.iter().map(author).collect()
        })
    }

    pub(crate) async fn rename_authors(&self, scope: &Scope, renamed: Vec<Renamed>) -> error::Result<()> {
        let keys: Vec<i64> = renamed.iter().map(|renamed| renamed.key.in_store()).collect();
        let authors: Vec<&Option<String>> = renamed.iter().map(|renamed| &renamed.author).collect();
        let indexed: Vec<&Option<String>> = renamed.iter().map(|renamed| &renamed.indexed).collect();
        let tokens = renamed.iter().flat_map(|renamed| &renamed.tokens);
        let (chunks, tokens): (Vec<i64>, Vec<i64>) =
            tokens.map(|(chunk, tokens)| (chunk.in_store(), *tokens)).unzip();
        write!(self, scope, tx => {
            let updated = tx
                .rows(
                    "UPDATE memories m SET speaker = u.author, indexed = u.indexed
                     FROM unnest($2::bigint[], $3::text[], $4::text[]) AS u (seq, author, indexed)
                     WHERE m.owner = ANY ($1) AND m.seq = u.seq AND m.tombstoned_at IS NULL RETURNING m.owner, m.seq",
                    &[&tx.seen.parts, &keys, &authors, &indexed],
                )
                .await?;
            let (owners, seqs): (Vec<i64>, Vec<i64>) =
                updated.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1))).unzip();
            tx.execute(
                "UPDATE chunks c SET tokens = u.tokens FROM unnest($2::bigint[], $3::bigint[]) AS u (seq, tokens)
                 WHERE c.owner = ANY ($1) AND c.seq = u.seq AND c.memory = ANY ($4)",
                &[&tx.seen.parts, &chunks, &tokens, &seqs],
            )
            .await?;
            reindex_memories(&tx, &owners, &seqs).await
        })
    }
}
