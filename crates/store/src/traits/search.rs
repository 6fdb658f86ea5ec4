//! Searches by words and by vectors.

use async_trait::async_trait;

use crate::{CandidateQuery, Candidates, ReplacementQuery, Replacements};
use tiro_base::error::Result;
use tiro_base::scope::Scope;
use tiro_text::words::Term;

/// Searches by words and by vectors.
#[async_trait]
pub trait Search: Send + Sync {
    /// Returns the candidates of a search and the data that ranking needs about them. All candidates are read at the
    /// same moment.
    ///
    /// Scope and filter are applied first. After that, the best chunks by words and the nearest chunks by vectors are
    /// chosen, in each group up to the limit of the query. English stemming and pruning of words happen here. Scores
    /// are BM25, with the counts of this store or with the weights of the query. The term of a query of one term counts
    /// twice in a chunk's own text, as opposed to its context. Nearness is an approximate cosine;
    /// vectors of other spaces are ignored. Embeddings that other processes stored before this call began are included.
    /// The filter doesn't apply to the commits that the query names. The beginning of an id names a commit only if
    /// exactly one commit of the scope has this beginning.
    ///
    /// Returns an error only if nothing can be read. If something can be read, each part of the result has its own
    /// error.
    async fn candidates(&self, scope: &Scope, query: CandidateQuery) -> Result<Candidates>;

    /// Returns the memories and commits that replaced those of the query, as of one moment.
    async fn replacements(&self, scope: &Scope, query: ReplacementQuery) -> Result<Replacements>;

    /// Returns up to `limit` words of the text index that are longer than `beginning` and begin with it, those in the most
    /// documents first. Words are stemmed. They are of all memories of the store, also of those that the scope doesn't
    /// have, so they may only be searched for, and never be shown.
    async fn completions(&self, scope: &Scope, beginning: &str, limit: usize) -> Result<Vec<String>>;

    /// Returns, for each of `texts`, the share of `terms` in it, from 0 to 1. Each term is weighted by its `rarity`.
    ///
    /// Words are stemmed in the same way as in the text index.
    async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> Result<Vec<f64>>;
}
