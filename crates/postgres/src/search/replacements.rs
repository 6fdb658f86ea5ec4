//! Reads which memories and commits later ones replaced, as of one moment.

use super::places::places;
use crate::PostgresStore;
use crate::links::stand_ins;
use crate::read::memories::memories;
use crate::read::messages::checked_texts;
use crate::statements::statements_in;
use crate::superseded::superseded;
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{ReplacementQuery, Replacements};

impl PostgresStore {
    pub(crate) async fn replacements(
        &self,
        scope: &Scope,
        query: ReplacementQuery,
    ) -> error::Result<Replacements> {
        read!(self, scope, tx => {
            let ReplacementQuery { commits, memories: asked, with_statements, texts, with_holding } = &query;
            let stand_ins = stand_ins(&tx, commits.clone()).await?;
            let mut keys = asked.clone();
            for (_, (by, _)) in &stand_ins {
                if !keys.contains(by) {
                    keys.push(*by);
                }
            }
            let statements = match with_statements {
                true => statements_in(&tx, scope, &keys).await?,
                false => Vec::new(),
            };
            let superseded = superseded(&tx, scope, &keys).await?;
            let mut by: Vec<MemoryKey> = superseded.iter().map(|each| each.by_key).collect();
            by.sort_unstable();
            by.dedup();
            let holding = match with_holding {
                true => memories(&tx, scope, &by).await?,
                false => Vec::new(),
            };
            by.extend(stand_ins.iter().map(|(_, (by, _))| *by));
            by.sort_unstable();
            by.dedup();
            let texts = checked_texts(&tx, scope, texts).await?;
            Ok(Replacements {
                texts: texts.into_iter().map(|(key, text, _)| (key, text)).collect(),
                holding,
                places: places(&tx, scope, &by).await?,
                stand_ins,
                superseded,
                statements,
            })
        })
    }
}
