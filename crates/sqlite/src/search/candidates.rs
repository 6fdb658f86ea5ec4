//! Reads the candidates of a search with the data that ranking needs, and the memories that replaced others. Each of
//! these two reads uses one snapshot.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::dense::{cosines, dense};
use super::lexical::lexical;
use super::lexical::weighed::lexical_as;
use crate::error::{Error, Result};
use crate::links::stand_ins;
use crate::read::memories::{commit_named, memories, places};
use crate::read::segments::checked_texts;
use crate::statements::statements_in;
use crate::superseded::superseded;
use crate::write::pending::pending;
use crate::{Inner, SqliteStore};
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{
    CandidateQuery, Candidates, ChunkKey, DenseCandidate, LexicalCandidate, Neighbour, ReplacementQuery,
    Replacements, Vocabulary,
};

impl SqliteStore {
    pub(crate) async fn candidates(&self, scope: &Scope, query: CandidateQuery) -> error::Result<Candidates> {
        let read = move |inner: &Inner, connection: &Connection, scope: &Scope| {
            Ok(Parts::read(inner, connection, scope, &query))
        };
        self.read_parts(scope, read, Parts::told).await
    }

    pub(crate) async fn replacements(
        &self,
        scope: &Scope,
        query: ReplacementQuery,
    ) -> error::Result<Replacements> {
        self.read(scope, move |_, connection, scope| {
            let ReplacementQuery { commits, memories: mut keys, with_statements, texts, with_holding } =
                query;
            let stand_ins = stand_ins(connection, scope, commits)?;
            for (_, (by, _)) in &stand_ins {
                if !keys.contains(by) {
                    keys.push(*by);
                }
            }
            let statements = match with_statements {
                true => statements_in(connection, scope, &keys)?,
                false => Vec::new(),
            };
            let superseded = superseded(connection, scope, &keys)?;
            let mut by: Vec<MemoryKey> = superseded.iter().map(|each| each.by_key).collect();
            by.sort_unstable();
            by.dedup();
            let holding = if with_holding { by.clone() } else { Vec::new() };
            by.extend(stand_ins.iter().map(|(_, (by, _))| *by));
            by.sort_unstable();
            by.dedup();
            Ok(Replacements {
                texts: checked_texts(connection, scope, texts)?
                    .into_iter()
                    .map(|(key, text, _)| (key, text))
                    .collect(),
                holding: memories(connection, scope, holding)?,
                places: places(connection, scope, by)?,
                stand_ins,
                superseded,
                statements,
            })
        })
        .await
    }
}

/// The parts of a search result, with the errors of this engine.
struct Parts {
    words: Result<(Vec<LexicalCandidate>, Vocabulary)>,
    near: Result<Vec<DenseCandidate>>,
    named: Result<Vec<(MemoryKey, ChunkKey)>>,
    cosines: Vec<Result<Vec<(ChunkKey, f64)>>>,
    places: Result<Vec<Neighbour>>,
    pending: Option<usize>,
}

impl Parts {
    fn read(inner: &Inner, connection: &Connection, scope: &Scope, query: &CandidateQuery) -> Parts {
        let embeddings =
            || query.embeddings.iter().map(|(space, embedding)| (space.as_str(), embedding.as_slice()));
        let words = words(inner, connection, scope, query);
        let near = embeddings().try_fold(Vec::new(), |mut near, embedding| {
            near.extend(dense(inner, connection, scope, query, embedding)?);
            Ok(near)
        });
        let named = query.commits.iter().filter_map(|id| commit_named(connection, scope, id).transpose());
        let named: Result<Vec<(MemoryKey, ChunkKey)>> = named.collect();
        let mut found: BTreeMap<ChunkKey, MemoryKey> = BTreeMap::new();
        found.extend(words.iter().flat_map(|(words, _)| words).map(|each| (each.chunk, each.memory)));
        found.extend(near.iter().flatten().map(|each| (each.chunk, each.memory)));
        found.extend(named.iter().flatten().map(|(memory, chunk)| (*chunk, *memory)));
        let cosines =
            embeddings().map(|embedding| cosines(connection, embedding, found.keys().copied())).collect();
        let mut memories: Vec<MemoryKey> = found.into_values().collect();
        memories.sort_unstable();
        memories.dedup();
        let (places, pending) = (places(connection, scope, memories), pending(connection, scope).ok());
        Parts { words, near, named, cosines, places, pending }
    }

    /// Converts the parts into the result of the store. `explained` returns the real reason of an error.
    fn told(self, explained: &dyn Fn(Error) -> Error) -> Candidates {
        let explained = |error| error::Error::from(explained(error));
        Candidates {
            words: self.words.map_err(explained),
            near: self.near.map_err(explained),
            named: self.named.map_err(explained),
            cosines: self.cosines.into_iter().map(|cosines| cosines.map_err(explained)).collect(),
            places: self.places.map_err(explained),
            pending: self.pending,
        }
    }
}

/// Searches by words. Uses the weights of the query if the query has weights.
fn words(
    inner: &Inner,
    connection: &Connection,
    scope: &Scope,
    query: &CandidateQuery,
) -> Result<(Vec<LexicalCandidate>, Vocabulary)> {
    match &query.weights {
        _ if query.terms.is_empty() => Ok(Default::default()),
        Some(weights) => Ok((lexical_as(connection, scope, query, weights)?, weights.clone())),
        None => lexical(inner, connection, scope, query),
    }
}
