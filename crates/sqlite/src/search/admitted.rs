//! The chunks that a scope and a filter admit, cached by each process.
//!
//! The searches by words and by meaning need the same list, and so does the next page. Reading it takes longer than
//! searching a few thousand chunks.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::error::Result;
use crate::read::conditions::Conditions;
use tiro_base::filter::Filter;
use tiro_base::scope::Scope;

/// The most lists that are cached. Arbitrary: a list has eight bytes for each chunk.
const MOST: usize = 4;

/// The lists that were asked for last, the latest last, as of `version`.
#[derive(Default)]
pub(crate) struct AdmittedChunks {
    version: (i64, i64),
    lists: Vec<(Scope, Filter, Arc<[i64]>)>,
}

impl AdmittedChunks {
    /// Returns the chunks that `scope` and `filter` admit, in ascending order, as the reading transaction sees them.
    pub fn of(&mut self, connection: &Connection, scope: &Scope, filter: &Filter) -> Result<Arc<[i64]>> {
        let version = version(connection, scope)?;
        if version != self.version {
            *self = AdmittedChunks { version, ..AdmittedChunks::default() };
        }
        let known = |(of, by, _): &(Scope, Filter, Arc<[i64]>)| of == scope && by == filter;
        if let Some(place) = self.lists.iter().position(known) {
            let list = self.lists.remove(place);
            let chunks = list.2.clone();
            self.lists.push(list);
            return Ok(chunks);
        }
        let chunks: Arc<[i64]> = read(connection, scope, filter)?.into();
        if self.lists.len() == MOST {
            self.lists.remove(0);
        }
        self.lists.push((scope.clone(), filter.clone(), chunks.clone()));
        Ok(chunks)
    }
}

/// Returns the version of the owner's memories and of the stash.
fn version(connection: &Connection, scope: &Scope) -> Result<(i64, i64)> {
    let memories: Option<i64> = connection
        .prepare_cached("SELECT version FROM versions WHERE owner = ?1")?
        .query_row([scope.tenant.as_str()], |row| row.get(0))
        .optional()?;
    let stash: Option<i64> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'stash_version'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    // Stores of different owners may have the same numbers, so a list is found by its scope too.
    Ok((memories.unwrap_or_default(), stash.unwrap_or_default()))
}

fn read(connection: &Connection, scope: &Scope, filter: &Filter) -> Result<Vec<i64>> {
    let conditions = Conditions::of_scope(connection, scope)?.narrowed(filter);
    let sql = format!(
        "SELECT c.seq FROM memories m JOIN chunks c ON c.memory = m.seq WHERE {} ORDER BY c.seq",
        conditions.sql
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(conditions.values), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
