//! Reads what changed in a store, for a peer.

use std::collections::HashMap;

use super::content;
use super::giving::{Giving, STATE, state};
use crate::columns::{self, MEMORY, MEMORY_FROM, number, word};
use crate::error::Result;
use crate::news::NEWEST;
use crate::transactions::Transaction;
use tiro_base::memory::{Kind, Memory};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange;
use tiro_store::tuning::PAGE_OF_CHANGES;
use tiro_store::{Change, Changes, ExchangedMemory, WantedChanges};

/// A row of `exchange` or `absent`.
struct Numbered {
    number: i64,
    owner: i64,
    /// The memory; `None` if it is not here.
    memory: Option<i64>,
    /// The id of a memory that is not here.
    id: Option<String>,
    /// How many bytes its text has.
    bytes: i64,
}

/// Returns up to `limit` changes after the number `after`.
pub(super) async fn page(
    tx: &Transaction,
    scope: &Scope,
    name: Option<&AuthorId>,
    wanted: &WantedChanges,
    after: i64,
    limit: usize,
) -> Result<Changes> {
    let owners = match (wanted.with_private, scope.hides_shared()) {
        (true, true) => vec![tx.seen.mine],
        (true, false) => tx.seen.parts.clone(),
        (false, true) => Vec::new(),
        (false, false) => vec![tx.seen.shared],
    };
    let giving = Giving { tx, scope, name, wanted, owners };
    let last: i64 = tx.only("SELECT last_value FROM keys", &[]).await?.get(0);
    let after = if after > last { 0 } else { after };
    let mut rows = giving.rows(after, limit).await?;
    let (mut is_last, mut bytes) = (rows.len() < limit, 0);
    let within = rows.iter().take_while(|row| {
        let fits = bytes < PAGE_OF_CHANGES as i64;
        bytes += row.bytes;
        fits
    });
    let within = within.count();
    if within < rows.len() {
        rows.truncate(within);
        is_last = false;
    }
    let next = match is_last {
        true => giving.newest().await?.max(after),
        false => rows.last().map_or(after, |row| row.number),
    };
    let mut changes = giving.present(&rows).await?;
    changes.extend(giving.absent(&rows).await?);
    changes.sort_by_key(|change| change.number);
    Ok(Changes { changes, next, is_last })
}

impl Giving<'_> {
    /// Returns the number of the latest change that this transaction sees.
    async fn newest(&self) -> Result<i64> {
        Ok(self.tx.only(NEWEST, &[&self.owners]).await?.try_get(0)?)
    }

    /// Returns the next rows that the peer wants, in the order of their numbers. Each part of the query reads an index in
    /// order.
    async fn rows(&self, after: i64, limit: usize) -> Result<Vec<Numbered>> {
        let kinds: Vec<&str> = self.wanted.kinds.iter().map(|kind| kind.as_str()).collect();
        let which = |table: &str| {
            format!(
                "{table}.owner = o AND {table}.changed > $2 AND {table}.kind = ANY ($4)
                 AND ($5::text IS NULL OR {table}.changed_by IS DISTINCT FROM $5) ORDER BY {table}.changed LIMIT $3"
            )
        };
        let sql = format!(
            "SELECT r.changed, r.owner, r.memory, r.id, coalesce((SELECT octet_length(m.text)::bigint FROM memories m
                 WHERE m.owner = r.owner AND m.seq = r.memory), 0)
             FROM unnest($1::bigint[]) o CROSS JOIN LATERAL (
                 (SELECT x.changed, x.owner, x.memory, NULL::text AS id FROM exchange x
                  WHERE NOT EXISTS (SELECT FROM stashed s
                          WHERE s.owner = x.owner AND s.memory = x.memory AND s.is_given)
                      AND (x.kind NOT IN ('conversation', 'summary') OR EXISTS (SELECT FROM memories m
                          WHERE m.owner = x.owner AND m.seq = x.memory AND m.provenance <> 'derived'))
                      AND NOT EXISTS (SELECT FROM memories m
                          JOIN memory_references f ON f.owner = m.owner AND f.memory = m.seq
                          JOIN memories r ON r.owner = m.owner AND r.id = f.target
                          JOIN exchange y ON y.owner = r.owner AND y.memory = r.seq
                          WHERE m.owner = x.owner AND m.seq = x.memory AND m.provenance = 'derived' AND m.author = $6
                              AND x.exchange_id IS DISTINCT FROM m.id
                              AND (r.author <> $6 OR y.exchange_id = r.id))
                      AND {})
                 UNION ALL (SELECT a.changed, a.owner, NULL, a.id FROM absent a WHERE {})) r
             ORDER BY r.changed LIMIT $3",
            which("x"),
            which("a")
        );
        let peer = self.wanted.peer.as_deref();
        // To a server, only what was extracted from the reader's own words on this machine is sent.
        let reader = self.name.map(|_| self.scope.reader.as_str());
        let rows =
            self.tx.rows(&sql, &[&self.owners, &after, &number(limit), &kinds, &peer, &reader]).await?;
        let numbered = |row: &tokio_postgres::Row| {
            Ok(Numbered {
                number: row.try_get(0)?,
                owner: row.try_get(1)?,
                memory: row.try_get(2)?,
                id: row.try_get(3)?,
                bytes: row.try_get(4)?,
            })
        };
        rows.iter().map(numbered).collect()
    }

    /// Returns the changes of the memories that are here.
    async fn present(&self, rows: &[Numbered]) -> Result<Vec<Change>> {
        let here = || rows.iter().filter_map(|row| Some((row.owner, row.memory?)));
        let (owners, seqs): (Vec<i64>, Vec<i64>) = here().unzip();
        if seqs.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: HashMap<i64, i64> =
            rows.iter().filter_map(|row| Some((row.memory?, row.number))).collect();
        let sql = format!(
            "SELECT {MEMORY}, m.marked, m.importance, x.marked_at, m.tombstoned_at IS NOT NULL, x.forgotten_at, false,
                 x.exchange_id
             FROM {MEMORY_FROM} JOIN exchange x ON x.owner = m.owner AND x.memory = m.seq
             JOIN unnest($1::bigint[], $2::bigint[]) AS u (owner, seq) ON m.owner = u.owner AND m.seq = u.seq"
        );
        /// The number of the first column after those of a memory.
        const FIRST: usize = 23;
        let (mut changes, mut given): (Vec<Change>, Vec<Memory>) = (Vec::new(), Vec::new());
        for row in self.tx.rows(&sql, &[&owners, &seqs]).await? {
            let mut memory = columns::memory(&row)?;
            let state = state(&row, FIRST)?;
            let travelling: Option<String> = row.try_get(FIRST + 6)?;
            let is_own = memory.author == self.scope.reader;
            memory.id = self.id_of(&memory.id, memory.kind, &memory.author, travelling.as_deref());
            memory.author = self.author_of(&memory.author);
            let with_sessions = self.wanted.kinds.contains(&Kind::Message);
            memory.session = memory.session.filter(|_| with_sessions);
            if let (Some(name), true) = (self.name, is_own) {
                memory.session = memory.session.map(|session| exchange::sent_session(name, &session));
            }
            let number = numbers.get(&memory.key.in_store()).copied().unwrap_or_default();
            changes.push(Change {
                number,
                id: memory.id.clone(),
                kind: memory.kind,
                author: memory.author.clone(),
                visibility: memory.visibility,
                state,
                content: None,
            });
            if state.is_living() && !memory.is_damaged && (is_own || self.name.is_none()) {
                given.push(memory);
            }
        }
        let contents = content::read(self, given).await?;
        let mut contents: HashMap<i64, ExchangedMemory> =
            contents.into_iter().map(|content| (content.memory.key.in_store(), content)).collect();
        let seqs: HashMap<i64, i64> = numbers.into_iter().map(|(seq, number)| (number, seq)).collect();
        for change in &mut changes {
            let content = seqs.get(&change.number).and_then(|seq| contents.remove(seq));
            change.content = content.map(Box::new);
        }
        Ok(changes)
    }

    /// Returns the changes of the memories that are not here.
    async fn absent(&self, rows: &[Numbered]) -> Result<Vec<Change>> {
        let absent = rows.iter().filter_map(|row| Some((row.owner, row.id.clone()?)));
        let (owners, ids): (Vec<i64>, Vec<String>) = absent.unzip();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT a.owner, a.id, a.kind, a.author, a.changed, a.exchange_id, {STATE}
             FROM absent a JOIN unnest($1::bigint[], $2::text[]) AS u (owner, id) ON a.owner = u.owner AND a.id = u.id"
        );
        let change = |row: &tokio_postgres::Row| {
            let kind = word(row, 2, Kind::parse)?;
            let author = AuthorId::new(row.try_get::<_, String>(3)?);
            let is_shared = row.try_get::<_, i64>(0)? == self.tx.seen.turn;
            Ok(Change {
                number: row.try_get(4)?,
                id: self.id_of(&columns::id(row, 1)?, kind, &author, row.try_get(5)?),
                kind,
                author: self.author_of(&author),
                visibility: if is_shared { self.scope.project.shared() } else { Visibility::Private },
                state: state(row, 6)?,
                content: None,
            })
        };
        self.tx.rows(&sql, &[&owners, &ids]).await?.iter().map(change).collect()
    }
}
