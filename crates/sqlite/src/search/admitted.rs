//! The chunks that a scope and a filter admit, cached by each process.
//!
//! The search by words, the search by meaning, and the next page of results need the same list. Reading the list takes
//! longer than searching a few thousand chunks.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::error::Result;
use crate::read::conditions::Conditions;
use tiro_base::filter::Filter;
use tiro_base::scope::Scope;

/// The maximum number of cached lists. Arbitrary: the number is small because a list takes eight bytes for each chunk.
const MOST: usize = 4;

/// The lists that were used most recently, the latest one last. They are valid for `version`.
#[derive(Default)]
pub(crate) struct AdmittedChunks {
    version: (i64, i64),
    lists: Vec<(Scope, Filter, Arc<[i64]>)>,
}

impl AdmittedChunks {
    /// Returns the chunks that `scope` and `filter` admit in the snapshot of `connection`, in ascending order.
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
    // Different owners may have the same version numbers, so the scope is also compared when a list is looked up.
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
