//! Searches by words and by vectors.

use async_trait::async_trait;

use crate::{CandidateQuery, Candidates, ReplacementQuery, Replacements};
use tiro_base::error::Result;
use tiro_base::scope::Scope;
use tiro_text::words::Term;

/// Searches by words and by vectors.
#[async_trait]
pub trait Search: Send + Sync {
    /// Returns the candidates of a search, and all that ranking needs of them, as of one moment.
    ///
    /// Scope and filter apply before the best and the nearest chunks are chosen, of each group up to the limit of the
    /// query. English stemming and pruning of words happen here. Scores are BM25, with the counts of this store or with
    /// the weights of the query. Nearness is an approximate cosine; vectors of other spaces are ignored. Embeddings that
    /// other processes stored before this call began are included. The filter doesn't apply to the commits that the
    /// query names; a beginning of an id that no commit of the scope has, or more than one, names none.
    ///
    /// Errors only if nothing can be read; each part has its own error.
    async fn candidates(&self, scope: &Scope, query: CandidateQuery) -> Result<Candidates>;

    /// Returns what replaced the memories of the query, as of one moment.
    async fn replacements(&self, scope: &Scope, query: ReplacementQuery) -> Result<Replacements>;

    /// Returns, for each of `texts`, the share of `terms` that it contains, from 0 to 1. Each term is weighed
    /// by its `rarity`.
    ///
    /// Words are stemmed as the text index stems them.
    async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> Result<Vec<f64>>;
}
