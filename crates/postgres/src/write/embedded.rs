//! A cache of embeddings that a provider made, by the hashes of their texts.

use std::collections::HashMap;

use crate::PostgresStore;
use crate::transactions::{Durability, read, write_light};
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_sqlite::vectors::{decode_f16, encode_f16};

/// The maximum number of embeddings that are kept for an owner. Arbitrary: this many embeddings of 1,536 numbers take
/// 60 MB.
const MOST: i64 = 20_000;

impl PostgresStore {
    pub(crate) async fn cached_embeddings(
        &self,
        scope: &Scope,
        keys: Vec<[u8; 32]>,
    ) -> error::Result<Vec<Option<Vec<f32>>>> {
        read!(self, scope, tx => {
            let asked: Vec<&[u8]> = keys.iter().map(<[u8; 32]>::as_slice).collect();
            let sql = "SELECT key, embedding FROM embedding_cache WHERE owner = $1 AND key = ANY ($2)";
            let mut found: HashMap<Vec<u8>, Vec<f32>> = HashMap::new();
            for row in tx.rows(sql, &[&tx.own_known(scope), &asked]).await? {
                let embedding = decode_f16(row.try_get(1)?);
                found.extend(embedding.map(|embedding| (row.get(0), embedding)));
            }
            Ok(keys.iter().map(|key| found.get(key.as_slice()).cloned()).collect())
        })
    }

    pub(crate) async fn cache_embeddings(
        &self,
        scope: &Scope,
        entries: Vec<([u8; 32], Vec<f32>)>,
    ) -> error::Result<()> {
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
        let embeddings: Vec<Vec<u8>> = entries.iter().map(|(_, embedding)| encode_f16(embedding)).collect();
        write_light!(self, scope, Durability::Synced, tx => {
            let owner = tx.own(scope).await?;
            tx.execute(
                "INSERT INTO embedding_cache (owner, key, embedding)
                 SELECT $1, u.key, u.embedding FROM (
                     SELECT DISTINCT ON (key) * FROM unnest($2::bytea[], $3::bytea[])
                         WITH ORDINALITY AS e (key, embedding, place) ORDER BY key, place DESC) u
                 ORDER BY u.place
                 ON CONFLICT (owner, key) DO UPDATE SET embedding = excluded.embedding, seq = excluded.seq",
                &[&owner, &keys, &embeddings],
            )
            .await?;
            let sql = "DELETE FROM embedding_cache WHERE owner = $1 AND seq <= (
                           SELECT seq FROM embedding_cache WHERE owner = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
            tx.execute(sql, &[&owner, &MOST]).await?;
            Ok(())
        })
    }
}
