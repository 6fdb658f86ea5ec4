//! Reads what changed in a store, for a peer.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::content;
use super::giving::{Giving, state};
use crate::columns;
use crate::error::Result;
use crate::read::memories;
use crate::read::parts;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange::{self, Stamp};
use tiro_store::tuning::PAGE_OF_CHANGES;
use tiro_store::{Change, Changes, ExchangedState, WantedChanges};

/// A row of `exchange` or `absent`.
struct Numbered {
    number: i64,
    /// The memory; `None` if it is not here.
    memory: Option<i64>,
    owner: String,
    /// The id of a memory that is not here.
    id: Option<String>,
}

/// Returns up to `limit` changes after the number `after`.
pub(super) fn page(
    connection: &Connection,
    scope: &Scope,
    name: Option<&AuthorId>,
    wanted: &WantedChanges,
    after: i64,
    limit: usize,
) -> Result<Changes> {
    let [shared, mine] = parts::both(scope);
    let owners = match (wanted.with_private, scope.hides_shared()) {
        (true, true) => vec![mine],
        (true, false) => vec![mine, shared],
        (false, true) => Vec::new(),
        (false, false) => vec![shared],
    };
    let giving = Giving { connection, scope, name, wanted, owners: &owners };
    let newest: i64 = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'changed'")?
        .query_row([], |row| row.get(0))?;
    let after = if after > newest { 0 } else { after };
    let rows = giving.rows(after, limit)?;
    let is_whole = rows.len() < limit;
    let last = rows.last().map_or(after, |row| row.number);
    let mut page = Changes { changes: Vec::new(), next: last.max(after), is_last: is_whole };
    let mut bytes = 0;
    let all = rows.len();
    for (place, row) in rows.into_iter().enumerate() {
        let number = row.number;
        if let Some(change) = giving.change(row)? {
            bytes += size_of::<Change>() + change.content.as_ref().map_or(0, |content| content.bytes());
            page.changes.push(change);
        }
        if bytes >= PAGE_OF_CHANGES && place + 1 < all {
            return Ok(Changes { next: number, is_last: false, ..page });
        }
    }
    if is_whole {
        page.next = newest.max(page.next);
    }
    Ok(page)
}

impl Giving<'_> {
    /// Returns the next rows that the peer wants, in the order of their numbers. Each part of the query reads an index in
    /// order.
    fn rows(&self, after: i64, limit: usize) -> Result<Vec<Numbered>> {
        if self.owners.is_empty() {
            return Ok(Vec::new());
        }
        let kinds: Vec<String> = self.wanted.kinds.iter().map(|kind| format!("'{kind}'")).collect();
        let kinds = kinds.join(", ");
        let which = |table: &str, owner: usize| {
            format!(
                "{table}.owner = ?{owner} AND {table}.changed > ?1 AND {table}.kind IN ({kinds})
                 AND (?3 IS NULL OR {table}.changed_by IS NOT ?3)"
            )
        };
        // To a server, only what was extracted from the reader's own words on this machine is sent.
        let is_second_hand = match self.name {
            None => "false",
            Some(_) => {
                "EXISTS (SELECT 1 FROM memories m JOIN memory_references f ON f.memory = m.seq
                     JOIN memories r ON r.owner = m.owner AND r.id = f.target JOIN exchange x ON x.memory = r.seq
                     WHERE m.seq = e.memory AND m.provenance = 'derived' AND m.author IS NULL
                         AND e.exchange_id IS NOT m.id AND (r.author IS NOT NULL OR x.exchange_id = r.id))"
            }
        };
        let parts = (4..).take(self.owners.len()).flat_map(|owner| {
            [
                format!(
                    "SELECT e.changed AS changed, e.memory, e.owner, NULL FROM exchange e
                     WHERE {} AND NOT EXISTS (SELECT 1 FROM stashed s WHERE s.memory = e.memory AND s.is_given)
                         AND (e.kind NOT IN ('conversation', 'summary') OR EXISTS (
                             SELECT 1 FROM memories m WHERE m.seq = e.memory AND m.provenance <> 'derived'))
                         AND NOT {is_second_hand}",
                    which("e", owner)
                ),
                format!("SELECT a.changed AS changed, NULL, a.owner, a.id FROM absent a WHERE {}", which("a", owner)),
            ]
        });
        let parts: Vec<String> = parts.collect();
        let sql = format!("{} ORDER BY changed LIMIT ?2", parts.join(" UNION ALL "));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let read = |row: &Row<'_>| {
            Ok(Numbered { number: row.get(0)?, memory: row.get(1)?, owner: row.get(2)?, id: row.get(3)? })
        };
        let (limit, peer) = (limit as i64, self.wanted.peer.as_deref());
        let rows = match self.owners {
            [one] => statement.query_map(params![after, limit, peer, one], read)?,
            [one, other, ..] => statement.query_map(params![after, limit, peer, one, other], read)?,
            [] => return Ok(Vec::new()),
        };
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn change(&self, row: Numbered) -> Result<Option<Change>> {
        match row.memory {
            Some(memory) => self.present(row.number, memory),
            None => self.absent(&row),
        }
    }

    /// Returns the change of a memory that is here.
    fn present(&self, number: i64, memory: i64) -> Result<Option<Change>> {
        let sql = format!(
            "SELECT {}, e.marked_at, e.forgotten_at, e.exchange_id FROM exchange e JOIN memories m ON m.seq = e.memory
             LEFT JOIN sessions s ON s.seq = m.session WHERE e.memory = ?1",
            columns::MEMORY
        );
        let found = self
            .connection
            .prepare_cached(&sql)?
            .query_row([memory], |row| {
                let memory = memories::memory(row)?;
                let state = ExchangedState {
                    is_marked: memory.marked,
                    importance: memory.importance,
                    marked_at: Stamp::from_number(row.get("marked_at")?),
                    is_forgotten: row.get::<_, Option<i64>>("tombstoned_at")?.is_some(),
                    forgotten_at: Stamp::from_number(row.get("forgotten_at")?),
                    is_purged: false,
                };
                Ok((memory, state, row.get::<_, Option<String>>("exchange_id")?))
            })
            .optional()?;
        let Some((mut memory, state, travelling)) = found else { return Ok(None) };
        let is_own = memory.author == self.scope.reader;
        memory.id = self.id_of(&memory.id, memory.kind, &memory.author, travelling.as_deref());
        memory.author = self.author_of(&memory.author);
        let with_sessions = self.wanted.kinds.contains(&Kind::Message);
        memory.session = memory.session.filter(|_| with_sessions);
        if let (Some(name), true) = (self.name, is_own) {
            memory.session = memory.session.map(|session| exchange::sent_session(name, &session));
        }
        let is_given = state.is_living() && !memory.is_damaged && (is_own || self.name.is_none());
        Ok(Some(Change {
            number,
            id: memory.id.clone(),
            kind: memory.kind,
            author: memory.author.clone(),
            visibility: memory.visibility,
            state,
            content: if is_given { Some(Box::new(content::read(self, memory)?)) } else { None },
        }))
    }

    /// Returns the change of a memory that is not here.
    fn absent(&self, row: &Numbered) -> Result<Option<Change>> {
        let found = self
            .connection
            .prepare_cached(
                "SELECT kind, author, is_marked, importance, marked_at, is_forgotten, forgotten_at, is_purged, exchange_id
                 FROM absent WHERE owner = ?1 AND id = ?2",
            )?
            .query_row((&row.owner, &row.id), |found| {
                let author: Option<String> = found.get(1)?;
                Ok((found.get::<_, String>(0)?, author, state(found)?, found.get::<_, Option<String>>(8)?))
            })
            .optional()?;
        let Some((kind, author, state, travelling)) = found else { return Ok(None) };
        let id = row.id.as_deref().and_then(MemoryId::parse);
        let Some((kind, id)) = Kind::parse(&kind).zip(id) else { return Ok(None) };
        let author = AuthorId::new(author.as_deref().unwrap_or(parts::names(self.scope.tenant.as_str()).0));
        let is_private = parts::names(&row.owner).1.is_some();
        Ok(Some(Change {
            number: row.number,
            id: self.id_of(&id, kind, &author, travelling.as_deref()),
            kind,
            author: self.author_of(&author),
            visibility: if is_private { Visibility::Private } else { self.scope.project.shared() },
            state,
            content: None,
        }))
    }
}
