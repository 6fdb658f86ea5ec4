//! Selects the memories to forget: by id, session or filter.
//!
//! Forgetting selects only living memories. A purge also selects forgotten memories, which stay in the file until they
//! are purged.

use std::collections::HashSet;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::forgotten;
use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::read::conditions::Conditions;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Forgotten, Reach, Selection};

/// How many texts of forgotten memories are read at once. Arbitrary: this takes some milliseconds.
const READ_AT_ONCE: i64 = 1_000;

impl SqliteStore {
    pub(crate) async fn selected(
        &self,
        scope: &Scope,
        selection: &Selection,
        reach: Reach,
    ) -> error::Result<Forgotten> {
        let selection = selection.clone();
        self.read(scope, move |_, connection, scope| {
            let rows = select_own(connection, scope, &selection, reach)?;
            let rows = with_derived(connection, scope, rows, reach)?;
            forgotten(connection, scope, String::new(), &rows)
        })
        .await
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
            let rows: Vec<(i64, MemoryId, String)> = self
                .read(scope, move |_, connection, scope| {
                    let conditions = Conditions::with_forgotten(connection, scope)?;
                    let sql = format!(
                        "SELECT m.seq, m.id, concat_ws(char(10), m.text, m.title, m.topic, m.speaker, m.path)
                         FROM memories m
                         WHERE {} AND m.tombstoned_at IS NOT NULL AND m.seq > ? ORDER BY m.seq LIMIT ?",
                        conditions.sql
                    );
                    let values = conditions.values.into_iter().chain([after.into(), READ_AT_ONCE.into()]);
                    let mut statement = connection.prepare_cached(&sql)?;
                    let rows = statement.query_map(params_from_iter(values), |row| {
                        let selected = columns::id(row, 1)?;
                        Ok((row.get(0)?, selected, row.get(2)?))
                    })?;
                    Ok(rows.collect::<Result<_, _>>()?)
                })
                .await?;
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
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let sql = "SELECT m.id FROM sessions s JOIN memories m ON m.session = s.seq AND m.ordinal = ?3
                       WHERE s.owner = ?1 AND s.name = ?2 AND m.tombstoned_at IS NOT NULL";
            let mut statement = connection.prepare_cached(sql)?;
            let values = (scope.tenant.as_str(), session.as_str(), ordinal);
            Ok(statement.query_row(values, |row| columns::id(row, 0)).optional()?)
        })
        .await
    }
}

/// A memory that was selected.
pub(crate) struct SelectedRow {
    pub seq: i64,
    pub id: MemoryId,
    pub tokens: i64,
    pub session: Option<i64>,
    pub ordinal: Option<i64>,
}

pub(crate) fn selected_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<SelectedRow> {
    let id: String = row.get(1)?;
    let id = MemoryId::parse(&id).ok_or_else(|| {
        let message = format!("the store holds the impossible id `{id}`");
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, message.into())
    })?;
    Ok(SelectedRow { seq: row.get(0)?, id, tokens: row.get(2)?, session: row.get(3)?, ordinal: row.get(4)? })
}

/// Returns the memories that the selection names and that the reader sees, in the order in which they were stored.
pub(super) fn select(
    connection: &Connection,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    select_where(connection, scope, selection, reach, "true")
}

/// Returns the memories that the selection names and that the reader may forget: those whose author is the reader, and
/// for some readers also shared memories of other authors.
pub(super) fn select_own(
    connection: &Connection,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    if scope.forgets_all() {
        return select(connection, scope, selection, reach);
    }
    let reader = scope.reader.as_str().replace('\'', "''");
    select_where(connection, scope, selection, reach, &format!("m.author = '{reader}'"))
}

/// Returns the memories that the selection names and that meet a condition, from all parts that the reader sees.
fn select_where(
    connection: &Connection,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
    which: &str,
) -> Result<Vec<SelectedRow>> {
    let parts = parts::seen(connection, scope)?;
    let mut rows = Vec::new();
    for part in &parts {
        // If the reader has a private session of this name, the shared session of the same name is not meant.
        if let Selection::Session(session) = selection
            && parts.len() > 1
            && parts::session_called(connection, scope, session)?
                != parts::session_called(connection, part, session)?
        {
            continue;
        }
        rows.extend(select_in(connection, part, selection, reach, which)?);
    }
    rows.sort_unstable_by_key(|row| row.seq);
    Ok(rows)
}

/// Returns the memories of a part that the selection names and that meet a condition, in the order they were stored.
fn select_in(
    connection: &Connection,
    scope: &Scope,
    selection: &Selection,
    reach: Reach,
    and: &str,
) -> Result<Vec<SelectedRow>> {
    let mut conditions = match reach {
        Reach::Living => Conditions::of_scope(connection, scope)?,
        Reach::Forgotten => Conditions::with_forgotten(connection, scope)?,
    };
    let which = match selection {
        Selection::Ids(ids) => {
            conditions.values.extend(ids.iter().map(|id| Value::from(id.as_str().to_owned())));
            format!("m.id IN ({})", vec!["?"; ids.len()].join(", "))
        }
        Selection::Session(session) => {
            conditions.values.extend([
                Value::from(scope.tenant.as_str().to_owned()),
                Value::from(session.as_str().to_owned()),
            ]);
            // The memory that summarises the session is not selected: it is removed with the session's
            // messages.
            "m.session = (SELECT seq FROM sessions WHERE owner = ? AND name = ?)
                 AND m.seq NOT IN (SELECT memory FROM conversations)"
                .to_owned()
        }
        Selection::Matching(filter) => {
            conditions = conditions.narrowed(filter);
            "true".to_owned()
        }
    };
    let sql = format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM memories m WHERE {} AND {which} AND {and} ORDER BY m.seq",
        conditions.sql
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(conditions.values), selected_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The SQL condition that the memory `m` is forgotten together with the memories that it references. A memory of the
/// kind `conversation`, which shortens an exchange with an assistant, counts as derived from its two messages, although
/// its words are a model's.
pub(crate) const IS_DERIVED: &str = "(m.provenance = 'derived' OR m.kind = 'conversation')";

/// Adds to `rows` the memories within `reach` that are derived from a memory in `rows`, directly or through others.
/// Such memories are added whether or not the reader sees them. Returns all rows, in the order in which their memories
/// were stored.
///
/// An id is unique only within a part, and a client may choose it. So a memory is derived from the memory that its author
/// sees under the id: one in the author's private part, and only if there is none, one in the shared part.
pub(super) fn with_derived(
    connection: &Connection,
    scope: &Scope,
    mut rows: Vec<SelectedRow>,
    reach: Reach,
) -> Result<Vec<SelectedRow>> {
    let mut known: HashSet<i64> = rows.iter().map(|row| row.seq).collect();
    // The join begins with the reference. A join that began with the owner would visit every memory for each row.
    let private = parts::private_of_author("m.owner", "m.author");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal
         FROM memories s CROSS JOIN memory_references r ON r.target = s.id CROSS JOIN memories m ON m.seq = r.memory
         WHERE s.seq = ?1 AND {} AND {IS_DERIVED} AND (m.tombstoned_at IS NULL OR ?3)
             AND (s.owner = {private} OR instr(s.owner, char(31)) = 0
                 AND NOT EXISTS (SELECT 1 FROM memories p WHERE p.owner = {private} AND p.id = s.id))",
        parts::of_tenant("m.owner", 2)
    ))?;
    let with_forgotten = reach == Reach::Forgotten;
    let mut next = 0;
    while let Some(row) = rows.get(next) {
        let derived = statement.query_map((row.seq, scope.tenant.as_str(), with_forgotten), selected_row)?;
        let derived: Vec<SelectedRow> = derived.collect::<Result<_, _>>()?;
        rows.extend(derived.into_iter().filter(|row| known.insert(row.seq)));
        next += 1;
    }
    rows.sort_unstable_by_key(|row| row.seq);
    Ok(rows)
}
