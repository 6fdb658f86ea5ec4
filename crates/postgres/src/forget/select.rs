//! Selects the memories to forget: by id, session or filter.
//!
//! Forgetting selects only living memories. A purge also selects forgotten memories, which stay in the tables until they
//! are purged.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns;
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::{self, SessionRef};
use crate::read::conditions::{Which, narrow, of_scope};
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Forgotten, Reach, Selection};

/// How many texts of forgotten memories are read at once. Arbitrary: this takes some milliseconds.
const READ_AT_ONCE: i64 = 1_000;

impl PostgresStore {
    pub(crate) async fn selected(
        &self,
        scope: &Scope,
        selection: &Selection,
        reach: Reach,
    ) -> error::Result<Forgotten> {
        read!(self, scope, tx => {
            let rows = select_own(&tx, scope, selection, reach).await?;
            let rows = with_derived(&tx, &tx.seen.parts, rows, reach).await?;
            Ok(forgotten(&tx, String::new(), &rows))
        })
    }

    pub(crate) async fn forgotten_with(
        &self,
        scope: &Scope,
        words: Vec<String>,
        most: usize,
    ) -> error::Result<(Vec<(MemoryId, String)>, usize)> {
        let (mut found, mut others, mut after) = (Vec::new(), 0, i64::MIN);
        if words.is_empty() {
            return Ok((found, others));
        }
        loop {
            let rows: error::Result<Vec<(i64, MemoryId, String)>> = read!(self, scope, tx => {
                let mut sql = Sql::new(
                    "SELECT m.seq, m.id, concat_ws(chr(10), m.text, m.title, m.topic, m.speaker, m.path)
                     FROM memories m WHERE ",
                );
                of_scope(&tx, scope, Which::All, &mut sql).await?;
                let (after, limit) = (sql.bind(after), sql.bind(READ_AT_ONCE));
                sql.push(&format!(
                    " AND m.tombstoned_at IS NOT NULL AND m.seq > {after} ORDER BY m.seq LIMIT {limit}"
                ));
                let rows = tx.query(&sql).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, columns::id(row, 1)?, row.try_get(2)?))).collect()
            });
            let rows = rows?;
            let Some((last, ..)) = rows.last() else { return Ok((found, others)) };
            after = *last;
            for (_, id, text) in rows {
                let lower = text.to_lowercase();
                if !words.iter().all(|word| lower.contains(word)) {
                    continue;
                }
                match found.len() < most {
                    true => found.push((id, text)),
                    false => others += 1,
                }
            }
        }
    }

    pub(crate) async fn forgotten_at(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
    ) -> error::Result<Option<MemoryId>> {
        read!(self, scope, tx => {
            let Some(SessionRef { owner, seq }) = owners::session_called(&tx, session).await? else { return Ok(None) };
            let sql = "SELECT id FROM memories WHERE owner = $1 AND session = $2 AND ordinal = $3
                       AND tombstoned_at IS NOT NULL";
            tx.row(sql, &[&owner, &seq, &ordinal]).await?.map(|row| columns::id(&row, 0)).transpose()
        })
    }

    pub(crate) async fn is_purged(&self, scope: &Scope, id: &MemoryId) -> error::Result<bool> {
        read!(self, scope, tx => {
            let sql = "SELECT FROM purged WHERE owner = ANY ($1) AND id = $2";
            tx.exists(sql, &[&tx.seen.parts, &id.as_str()]).await
        })
    }
}

/// A memory that was selected.
#[derive(Clone, Debug)]
pub(crate) struct SelectedRow {
    pub owner: i64,
    pub seq: i64,
    pub id: MemoryId,
    pub tokens: i64,
    pub session: Option<i64>,
    pub ordinal: Option<i64>,
}

/// The columns of the memory `m` that [`selected_row`] reads.
pub(crate) const SELECTED: &str = "m.owner, m.seq, m.id, m.tokens, m.session, m.ordinal";

/// Reads a memory from the columns [`SELECTED`].
pub(crate) fn selected_row(row: &Row) -> Result<SelectedRow> {
    Ok(SelectedRow {
        owner: row.try_get(0)?,
        seq: row.try_get(1)?,
        id: columns::id(row, 2)?,
        tokens: row.try_get(3)?,
        session: row.try_get(4)?,
        ordinal: row.try_get(5)?,
    })
}

/// Returns the parts and the numbers of the rows, for `unnest`.
pub(crate) fn keys_of<'a>(rows: impl IntoIterator<Item = &'a SelectedRow>) -> (Vec<i64>, Vec<i64>) {
    rows.into_iter().map(|row| (row.owner, row.seq)).unzip()
}

/// Returns the sessions of the rows, each once.
pub(super) fn sessions_of(rows: &[SelectedRow]) -> Vec<SessionRef> {
    let mut sessions: Vec<SessionRef> =
        rows.iter().filter_map(|row| row.session.map(|seq| SessionRef { owner: row.owner, seq })).collect();
    sessions.sort_unstable_by_key(|session| (session.owner, session.seq));
    sessions.dedup();
    sessions
}

/// Returns the report about the rows. Private memories of others are left out.
pub(super) fn forgotten(tx: &Transaction, operation: String, rows: &[SelectedRow]) -> Forgotten {
    let seen = || rows.iter().filter(|row| tx.seen.parts.contains(&row.owner));
    Forgotten {
        operation,
        ids: seen().map(|row| row.id.clone()).collect(),
        tokens: seen().map(|row| row.tokens).sum(),
        sessions: Vec::new(),
    }
}

/// Returns the memories that the selection names and that the reader sees, in the order in which they were stored.
pub(super) async fn select(
    tx: &Transaction,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    select_by(tx, scope, selection, reach, None).await
}

/// Returns the memories that the selection names and that the reader may forget: those whose author is the reader, and
/// for some readers also shared memories of other authors.
pub(super) async fn select_own(
    tx: &Transaction,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    let author = (!scope.forgets_all()).then(|| scope.reader.as_str().to_owned());
    select_by(tx, scope, selection, reach, author).await
}

/// Returns the memories that the selection names and that the reader sees. If `author` is `Some`, only memories of this
/// author.
async fn select_by(
    tx: &Transaction,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
    author: Option<String>,
) -> Result<Vec<SelectedRow>> {
    let mut sql = Sql::new(format!("SELECT {SELECTED} FROM memories m WHERE "));
    let which = match reach {
        Reach::Living => Which::Living,
        Reach::Forgotten => Which::All,
    };
    of_scope(tx, scope, which, &mut sql).await?;
    match selection {
        Selection::Ids(ids) => {
            let ids = sql.bind(ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<String>>());
            sql.push(&format!(" AND m.id = ANY ({ids})"));
        }
        Selection::Session(session) => {
            let Some(session) = owners::session_called(tx, session).await? else { return Ok(Vec::new()) };
            let (owner, seq) = (sql.bind(session.owner), sql.bind(session.seq));
            // The memory that summarises the session is not selected: it is removed with the session's messages.
            sql.push(&format!(
                " AND m.owner = {owner} AND m.session = {seq} AND NOT EXISTS (
                     SELECT FROM conversations c WHERE c.owner = m.owner AND c.memory = m.seq)"
            ));
        }
        Selection::Matching(filter) => narrow(tx, filter, &mut sql).await?,
    }
    if let Some(author) = author {
        let author = sql.bind(author);
        sql.push(&format!(" AND m.author = {author}"));
    }
    sql.push(" ORDER BY m.seq");
    tx.query(&sql).await?.iter().map(selected_row).collect()
}

/// The SQL condition that the memory `m` is forgotten together with the memories that it references. A memory of the
/// kind `conversation`, which shortens an exchange with an assistant, counts as derived from its two messages, although
/// its words are a model's.
pub(crate) const IS_DERIVED: &str = "(m.provenance = 'derived' OR m.kind = 'conversation')";

/// Adds to `rows` the memories of `parts` within `reach` that are derived from a memory in `rows`, directly or through
/// others. In a transaction that writes, `parts` are all parts of the store, because such memories are forgotten whether
/// or not the reader sees them. Returns all rows, in the order in which their memories were stored.
///
/// An id is unique only within a part, and a client may choose it. So a memory is derived from the memory that its author
/// sees under the id: one in the author's private part, and only if there is none, one in the shared part.
pub(super) async fn with_derived(
    tx: &Transaction,
    parts: &[i64],
    mut rows: Vec<SelectedRow>,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    let mut known: HashSet<i64> = rows.iter().map(|row| row.seq).collect();
    let sql = format!(
        "SELECT DISTINCT {SELECTED} FROM unnest($4::bigint[], $2::text[]) AS s (owner, id)
         JOIN owners o ON o.seq = s.owner
         JOIN memory_references r ON r.owner = ANY ($1) AND r.target = s.id
         JOIN memories m ON m.owner = r.owner AND m.seq = r.memory
         WHERE {IS_DERIVED} AND (m.tombstoned_at IS NULL OR $3) AND (o.author = m.author OR o.author = '' AND NOT EXISTS (
             SELECT FROM owners a JOIN memories p ON p.owner = a.seq AND p.id = s.id
             WHERE a.tenant = o.tenant AND a.project = o.project AND a.author = m.author))"
    );
    let with_forgotten = reach == Reach::Forgotten;
    let mut next = 0;
    while next < rows.len() {
        let ids: Vec<&str> = rows[next..].iter().map(|row| row.id.as_str()).collect();
        let owners: Vec<i64> = rows[next..].iter().map(|row| row.owner).collect();
        let derived = tx.rows(&sql, &[&parts, &ids, &with_forgotten, &owners]).await?;
        next = rows.len();
        for row in &derived {
            let row = selected_row(row)?;
            if known.insert(row.seq) {
                rows.push(row);
            }
        }
    }
    rows.sort_unstable_by_key(|row| row.seq);
    Ok(rows)
}
