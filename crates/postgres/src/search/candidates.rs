//! Reads the candidates of a search with the data that ranking needs.
//!
//! A failed statement ends its transaction. So if a part fails, the others are read again in a new transaction without
//! it. A search in which nothing fails costs nothing more.

use std::collections::{BTreeMap, HashMap};

use super::admitted::Admitted;
use super::dense::{cosines, dense};
use super::lexical::lexical;
use super::places::places;
use crate::PostgresStore;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::links::commit_named;
use crate::transactions::{Transaction, read};
use crate::write::pending::pending;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{
    CandidateQuery, Candidates, ChunkKey, DenseCandidate, LexicalCandidate, Neighbour, Vocabulary,
};

impl PostgresStore {
    pub(crate) async fn candidates(&self, scope: &Scope, query: CandidateQuery) -> error::Result<Candidates> {
        let mut failed: HashMap<Part, error::Error> = HashMap::new();
        loop {
            let read: error::Result<Result<Parts, (Part, Error)>> = read!(self, scope, tx => {
                match Parts::read(self.database(), &tx, scope, &query, &failed).await {
                    // The whole is read again.
                    Err((_, error)) if error.is_passing() => Err(error),
                    read => Ok(read),
                }
            });
            match read? {
                Ok(parts) => return Ok(parts.told(&query, failed)),
                Err((part, error)) => drop(failed.insert(part, error.into())),
            }
        }
    }
}

/// A part of a search that may fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Words,
    Near,
    Named,
    /// The cosines of the embedding with this number.
    Cosines(usize),
    Places,
    Pending,
}

/// The parts of a search result. Those that failed before are empty.
#[derive(Default)]
struct Parts {
    words: (Vec<LexicalCandidate>, Vocabulary),
    near: Vec<DenseCandidate>,
    named: Vec<(MemoryKey, ChunkKey)>,
    cosines: Vec<Vec<(ChunkKey, f64)>>,
    places: Vec<Neighbour>,
    pending: usize,
}

impl Parts {
    /// Reads all parts that did not fail before. If one fails now, returns which.
    async fn read(
        database: &Database,
        tx: &Transaction,
        scope: &Scope,
        query: &CandidateQuery,
        failed: &HashMap<Part, error::Error>,
    ) -> Result<Parts, (Part, Error)> {
        fn of<T>(part: Part, read: Result<T>) -> Result<T, (Part, Error)> {
            read.map_err(|error| (part, error))
        }
        let is_wanted = |part: Part| !failed.contains_key(&part);
        let mut parts = Parts::default();
        let mut admitted = Admitted::new(tx, scope, &query.filter);
        if is_wanted(Part::Words) {
            parts.words = of(Part::Words, lexical(database, tx, query, &mut admitted).await)?;
        }
        if is_wanted(Part::Near) {
            for (space, embedding) in &query.embeddings {
                let asked = (scope, query);
                let near = dense(database, tx, asked, &mut admitted, (space, embedding)).await;
                parts.near.extend(of(Part::Near, near)?);
            }
        }
        if is_wanted(Part::Named) {
            for id in &query.commits {
                parts.named.extend(of(Part::Named, commit_named(tx, scope, id).await)?);
            }
        }
        let mut found: BTreeMap<ChunkKey, MemoryKey> = BTreeMap::new();
        found.extend(parts.words.0.iter().map(|each| (each.chunk, each.memory)));
        found.extend(parts.near.iter().map(|each| (each.chunk, each.memory)));
        found.extend(parts.named.iter().map(|(memory, chunk)| (*chunk, *memory)));
        let chunks: Vec<ChunkKey> = found.keys().copied().collect();
        for (number, (space, embedding)) in query.embeddings.iter().enumerate() {
            let part = Part::Cosines(number);
            parts.cosines.push(match is_wanted(part) {
                true => of(part, cosines(tx, space, embedding, &chunks).await)?,
                false => Vec::new(),
            });
        }
        let mut memories: Vec<MemoryKey> = found.into_values().collect();
        memories.sort_unstable();
        memories.dedup();
        if is_wanted(Part::Places) {
            parts.places = of(Part::Places, places(tx, scope, &memories).await)?;
        }
        if is_wanted(Part::Pending) {
            parts.pending = of(Part::Pending, pending(tx).await)?;
        }
        Ok(parts)
    }

    /// Returns the result of the store, in which the parts that failed are errors.
    fn told(self, query: &CandidateQuery, mut failed: HashMap<Part, error::Error>) -> Candidates {
        let mut told = |part: Part| failed.remove(&part).map_or(Ok(()), Err);
        let cosines = (0..query.embeddings.len()).map(|number| told(Part::Cosines(number)));
        let cosines: Vec<error::Result<()>> = cosines.collect();
        Candidates {
            words: told(Part::Words).map(|()| self.words),
            near: told(Part::Near).map(|()| self.near),
            named: told(Part::Named).map(|()| self.named),
            cosines: cosines.into_iter().zip(self.cosines).map(|(told, own)| told.map(|()| own)).collect(),
            places: told(Part::Places).map(|()| self.places),
            pending: told(Part::Pending).ok().map(|()| self.pending),
        }
    }
}
