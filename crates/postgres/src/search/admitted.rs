//! Which of the ranked chunks scope and filter admit.

use std::collections::{HashMap, HashSet};

use crate::columns::{is_answer, memory_key, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::read::conditions::{Which, narrow, of_scope};
use crate::transactions::Transaction;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind, MemoryKey};
use tiro_base::scope::Scope;

/// How many chunks are looked up first; each further time, it is four times as many. Arbitrary: a little more than a
/// search reads in a store without forgotten memories.
const FIRST: usize = 600;

/// An admitted chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub memory: MemoryKey,
    pub group: Group,
    /// Whether the memory is a long answer.
    pub is_answer: bool,
}

/// The chunks that were looked up so far.
pub(super) struct Admitted<'a> {
    tx: &'a Transaction,
    scope: &'a Scope,
    filter: &'a Filter,
    /// The admitted ones among them; `None` for the others.
    known: HashMap<i64, Option<Chunk>>,
    next: usize,
}

impl<'a> Admitted<'a> {
    /// Returns the chunks that scope and filter admit, of which none is looked up yet.
    pub fn new(tx: &'a Transaction, scope: &'a Scope, filter: &'a Filter) -> Admitted<'a> {
        Admitted { tx, scope, filter, known: HashMap::new(), next: FIRST }
    }

    /// Returns the first of `chunks`; `None` if it isn't admitted. The chunks after it are looked up with it.
    pub async fn first(&mut self, mut chunks: impl Iterator<Item = i64>) -> Result<Option<Chunk>> {
        let Some(first) = chunks.next() else { return Ok(None) };
        if !self.known.contains_key(&first) {
            let most = self.next;
            self.look_up([first].into_iter().chain(chunks), most).await?;
            self.next *= 4;
        }
        Ok(self.of(first))
    }

    /// Returns a chunk that was looked up; `None` if it isn't admitted.
    pub fn of(&self, chunk: i64) -> Option<Chunk> {
        self.known.get(&chunk).copied().flatten()
    }

    /// Looks up those of `chunks` that are not known yet, but no more than `most`.
    pub async fn look_up(&mut self, chunks: impl Iterator<Item = i64>, most: usize) -> Result<()> {
        let chunks: Vec<i64> = chunks.filter(|chunk| !self.known.contains_key(chunk)).take(most).collect();
        if chunks.is_empty() {
            return Ok(());
        }
        let mut sql = Sql::new(format!(
            "SELECT c.seq, m.seq, m.kind, {} FROM chunks c
             JOIN memories m ON m.owner = c.owner AND m.seq = c.memory WHERE ",
            is_answer()
        ));
        of_scope(self.tx, self.scope, Which::Living, &mut sql).await?;
        narrow(self.tx, self.filter, &mut sql).await?;
        let (parts, seqs) = (sql.bind(self.tx.seen.parts.clone()), sql.bind(chunks.clone()));
        sql.push(&format!(" AND c.owner = ANY ({parts}) AND c.seq = ANY ({seqs})"));
        self.known.extend(chunks.into_iter().map(|chunk| (chunk, None)));
        for row in self.tx.query(&sql).await? {
            if let Some(kind) = Kind::parse(row.try_get(2)?) {
                let memory = memory_key(&row, 1)?;
                let admitted = Chunk { memory, group: kind.group(), is_answer: row.try_get(3)? };
                self.known.insert(row.try_get(0)?, Some(admitted));
            }
        }
        Ok(())
    }

    /// Returns all chunks that scope and filter admit, if there are at most `most`.
    pub async fn all(&self, most: usize) -> Result<Option<HashSet<i64>>> {
        let mut sql = Sql::new(
            "SELECT c.seq FROM memories m JOIN chunks c ON c.owner = m.owner AND c.memory = m.seq WHERE ",
        );
        of_scope(self.tx, self.scope, Which::Living, &mut sql).await?;
        narrow(self.tx, self.filter, &mut sql).await?;
        let limit = sql.bind(number(most + 1));
        sql.push(&format!(" LIMIT {limit}"));
        let rows = self.tx.query(&sql).await?;
        let chunks = rows.iter().map(|row| row.try_get(0)).collect::<Result<HashSet<i64>, _>>()?;
        Ok(Some(chunks).filter(|chunks| chunks.len() <= most))
    }
}
