//! Searches by words and by vectors.

use async_trait::async_trait;

use crate::{ChunkKey, DenseCandidate, LexicalCandidate, Vocabulary};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::Group;
use tiro_base::scope::Scope;
use tiro_text::words::Term;

/// Searches by words and by vectors.
#[async_trait]
pub trait Search: Send + Sync {
    /// Returns, for each of `groups`, up to `limit` living chunks that contain some of `terms`. The chunks of
    /// all groups are in one list, the best first. Also returns how common `terms` are in the store.
    ///
    /// `terms` are words as the user wrote them, with their stems in other languages than English, or phrases. English
    /// stemming and pruning happen here. Scope and filter
    /// apply before the best chunks are chosen. Scores are BM25 with the counts of this store.
    async fn lexical(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        terms: Vec<Term>,
        limit: usize,
    ) -> Result<(Vec<LexicalCandidate>, Vocabulary)>;

    /// Searches a small store as [`Search::lexical`] does, but weighs words by `weights`, the counts of another
    /// store.
    async fn lexical_as(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        terms: Vec<Term>,
        weights: Vocabulary,
        limit: usize,
    ) -> Result<Vec<LexicalCandidate>>;

    /// Returns the living chunks that are nearest to `embedding` by approximate cosine, up to `limit` for each
    /// of `groups`.
    ///
    /// Scope and filter apply before the nearest chunks are chosen. `space` names the vector space of
    /// `embedding`; vectors of other spaces are ignored. Embeddings that other processes stored before this
    /// call began are included.
    async fn dense(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        space: &str,
        embedding: &[f32],
        limit: usize,
    ) -> Result<Vec<DenseCandidate>>;

    /// Returns the exact cosine of `embedding` with each of `chunks` that has a vector of `space`, the nearest
    /// chunk first.
    ///
    /// `chunks` must come from searches of the same scope: the store doesn't check their owners again.
    async fn cosines(
        &self,
        scope: &Scope,
        space: &str,
        embedding: &[f32],
        chunks: Vec<ChunkKey>,
    ) -> Result<Vec<(ChunkKey, f64)>>;

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
