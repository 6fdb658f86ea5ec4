//! A cache of embeddings that a provider made, by the hashes of their texts.

use rusqlite::{OptionalExtension, params};

use crate::SqliteStore;
use crate::read::parts;
use crate::vectors::{decode_f16, encode_f16};
use tiro_base::error;
use tiro_base::scope::Scope;

/// The maximum number of embeddings that are kept for an owner. Arbitrary: this many embeddings of 1,536 numbers take
/// 60 MB.
const MOST: i64 = 20_000;

impl SqliteStore {
    pub(crate) async fn cached_embeddings(
        &self,
        scope: &Scope,
        keys: Vec<[u8; 32]>,
    ) -> error::Result<Vec<Option<Vec<f32>>>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection
                .prepare_cached("SELECT embedding FROM embedding_cache WHERE owner = ?1 AND key = ?2")?;
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                let blob: Option<Vec<u8>> =
                    statement.query_row(params![parts::own(scope), key], |row| row.get(0)).optional()?;
                found.push(blob.and_then(|blob| decode_f16(&blob)));
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn cache_embeddings(
        &self,
        scope: &Scope,
        entries: Vec<([u8; 32], Vec<f32>)>,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let owner = parts::own(scope);
            let mut insert = connection.prepare_cached(
                "INSERT OR REPLACE INTO embedding_cache (owner, key, embedding) VALUES (?1, ?2, ?3)",
            )?;
            for (key, embedding) in &entries {
                insert.execute(params![owner, key, encode_f16(embedding)])?;
            }
            connection
                .prepare_cached(
                    "DELETE FROM embedding_cache WHERE owner = ?1 AND seq <= (
                         SELECT seq FROM embedding_cache WHERE owner = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute(params![owner, MOST])?;
            Ok(())
        })
        .await
    }
}
