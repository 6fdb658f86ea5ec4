//! Faults of searching memories.

use super::super::fixture::SPACE;
use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, MemoryKey};
use tiro_base::scope::Scope;
use tiro_store::*;
use tiro_text::words::Term;

impl BrokenStore {
    pub async fn candidates(&self, scope: &Scope, mut query: CandidateQuery) -> Result<Candidates> {
        let scope = &self.scope(scope);
        let is_late = self.is(Fault::FiltersAfterSearch);
        let filter = query.filter.clone();
        query.filter = if is_late { Filter::default() } else { self.filter(&filter) };
        if self.is(Fault::IgnoresGroups) {
            query.groups = Group::ALL.to_vec();
        }
        if self.is(Fault::IgnoresSpace) {
            query.embeddings.iter_mut().for_each(|(space, _)| *space = SPACE.into());
        }
        query.limit = self.limit(query.limit);
        let question = format!("near {scope:?} {:?}", query.embeddings);
        let mut found = self.inner.candidates(scope, query).await?;
        let (mut words, mut vocabulary) = found.words?;
        let mut near = found.near?;
        if is_late {
            let admitted = self.admitted(scope, &filter).await?;
            words.retain(|candidate| admitted.contains(&candidate.memory));
            near.retain(|candidate| admitted.contains(&candidate.memory));
        }
        if self.is(Fault::IndexesNothing) {
            words.clear();
        }
        if self.is(Fault::MiscountsWords) {
            vocabulary.counts.fill(0);
        }
        if self.is(Fault::RoundsCosines) {
            let all = found.cosines.iter_mut().filter_map(|cosines| cosines.as_mut().ok());
            all.flatten().for_each(|(_, cosine)| *cosine = cosine.round());
        }
        if self.is(Fault::LosesPlaces) {
            found.places = Ok(Vec::new());
        }
        let near = self.stale(Fault::ServesStaleCache, question, self.ordered(near));
        Ok(Candidates { words: Ok((self.ordered(words), vocabulary)), near: Ok(near), ..found })
    }

    pub async fn replacements(&self, scope: &Scope, query: ReplacementQuery) -> Result<Replacements> {
        let mut found = self.inner.replacements(&self.scope(scope), query).await?;
        if self.is(Fault::SupersedesNothing) {
            found.superseded.clear();
        }
        if self.is(Fault::LosesPlaces) {
            found.places.clear();
        }
        Ok(Replacements { statements: self.ordered(found.statements), ..found })
    }

    /// Returns the memories that the filter admits.
    async fn admitted(&self, scope: &Scope, filter: &Filter) -> Result<Vec<MemoryKey>> {
        let found = self.inner.list(scope, filter, None, 1000).await?;
        Ok(found.into_iter().map(|memory| memory.key).collect())
    }

    pub async fn completions(&self, scope: &Scope, beginning: &str, limit: usize) -> Result<Vec<String>> {
        let mut words = self.inner.completions(&self.scope(scope), beginning, self.limit(limit)).await?;
        if self.is(Fault::MiscountsWords) {
            words.reverse();
        }
        Ok(words)
    }

    pub async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> Result<Vec<f64>> {
        let mut shares = self.inner.shares(&self.scope(scope), terms, rarity, texts).await?;
        if self.is(Fault::MiscountsWords) {
            shares.fill(0.0);
        }
        Ok(shares)
    }
}
