//! Stores two things: the statements in memories, so that later values can replace earlier ones, and the facts that
//! were extracted from messages.

use std::collections::{BTreeMap, HashMap};

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{memory_key, number, size};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::exchange::CAME;
use crate::owners::session_called;
use crate::read::conditions::{Which, of_scope};
use crate::read::find::find_session;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{NewStatement, Statement, SubjectKey};

impl PostgresStore {
    pub(crate) async fn add_statements(
        &self,
        scope: &Scope,
        statements: Vec<NewStatement>,
        noted: Option<(SessionId, i64)>,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            add(&tx, &statements).await?;
            if let Some((session, ordinal)) = &noted
                && let Some(session) = session_called(&tx, session).await?
            {
                let sql = "UPDATE sessions SET noted = greatest(noted, $3) WHERE owner = $1 AND seq = $2";
                tx.execute(sql, &[&session.owner, &session.seq, ordinal]).await?;
            }
            Ok(())
        })
    }

    pub(crate) async fn noted(&self, scope: &Scope, session: &SessionId) -> error::Result<i64> {
        read!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, session).await? else { return Ok(-1) };
            let sql = "SELECT noted FROM sessions WHERE owner = $1 AND seq = $2";
            Ok(tx.only(sql, &[&session.owner, &session.seq]).await?.try_get(0)?)
        })
    }

    pub(crate) async fn remove_extracts(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> error::Result<usize> {
        write!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, session).await? else { return Ok(0) };
            let sql = format!("DELETE FROM memories WHERE owner = $1 AND seq IN (
                    SELECT m.seq FROM memories m JOIN sessions s ON s.owner = m.owner AND s.seq = m.session
                        JOIN exchange x ON x.owner = m.owner AND x.memory = m.seq
                    WHERE m.owner = $1 AND m.session = $2 AND s.noted < 0 AND m.ordinal IS NULL
                        AND m.provenance = 'derived' AND m.kind IN ('fact', 'decision') AND NOT m.marked
                        AND m.importance IS NULL AND m.tombstoned_at IS NULL AND NOT {CAME}
                        AND NOT EXISTS (SELECT FROM superseded r WHERE r.owner = m.owner AND r.memory = m.seq)
                        AND NOT EXISTS (SELECT FROM superseded r WHERE r.newer_owner = m.owner AND r.newer = m.seq)
                    ORDER BY m.seq LIMIT $3)");
            let removed = tx.execute(&sql, &[&session.owner, &session.seq, &number(limit)]).await?;
            Ok(usize::try_from(removed).unwrap_or(usize::MAX))
        })
    }
}

/// Returns the statements of the living memories of the scope with these keys, in order of the keys.
pub(crate) async fn statements_in(
    tx: &Transaction,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<Vec<Statement>> {
    let mut sql = Sql::new(
        "SELECT t.memory, t.number, t.start_byte, t.end_byte, t.voice, t.value, t.words, t.time, t.subject
         FROM statements t JOIN memories m ON m.owner = t.owner AND m.seq = t.memory WHERE ",
    );
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let parts = sql.bind(tx.seen.parts.clone());
    let seqs = sql.bind(keys.iter().map(|key| key.in_store()).collect::<Vec<i64>>());
    sql.push(&format!(
        " AND t.owner = ANY ({parts}) AND t.memory = ANY ({seqs}) ORDER BY t.memory, t.number"
    ));
    let mut found: HashMap<MemoryKey, Vec<Statement>> = HashMap::new();
    for row in &tx.query(&sql).await? {
        let statement = stated(row)?;
        found.entry(statement.memory).or_default().push(statement);
    }
    Ok(keys.iter().filter_map(|key| found.get(key)).flatten().cloned().collect())
}

/// A statement that is stored, or about to be.
struct Known {
    seq: i64,
    owner: i64,
    subject: Option<i64>,
    /// The new statement, if it is not stored yet.
    new: Option<Statement>,
    is_changed: bool,
}

/// Stores statements, each with the subject that it shares with another statement.
async fn add(tx: &Transaction, statements: &[NewStatement]) -> Result<()> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut keys: Vec<i64> = statements.iter().map(|new| new.statement.memory.in_store()).collect();
    keys.extend(statements.iter().filter_map(|new| Some(new.same_as?.0.in_store())));
    // The part of each memory, and whether the memory is living.
    let mut memories: HashMap<MemoryKey, (i64, bool)> = HashMap::new();
    let sql =
        "SELECT seq, owner, tombstoned_at IS NULL FROM memories WHERE owner = ANY ($1) AND seq = ANY ($2)";
    for row in tx.rows(sql, &[&tx.seen.parts, &keys]).await? {
        memories.insert(memory_key(&row, 0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let mut known: BTreeMap<(MemoryKey, i64), Known> = BTreeMap::new();
    let sql = "SELECT memory, number, seq, owner, subject FROM statements
               WHERE owner = ANY ($1) AND memory = ANY ($2)";
    for row in tx.rows(sql, &[&tx.seen.parts, &keys]).await? {
        let (seq, owner, subject) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        let stored = Known { seq, owner, subject, new: None, is_changed: false };
        known.insert((memory_key(&row, 0)?, row.try_get(1)?), stored);
    }
    let sql = "SELECT nextval('keys') FROM generate_series(1, $1::bigint)";
    let seqs = tx.rows(sql, &[&number(statements.len())]).await?;
    for (NewStatement { statement, same_as }, seq) in statements.iter().zip(&seqs) {
        let Some((owner, is_living)) = memories.get(&statement.memory).copied() else { continue };
        // A private statement doesn't replace a shared one, because others would notice this.
        let other = same_as.and_then(|other| known.get_mut(&other)).filter(|other| other.owner == owner);
        let subject = other.map(|other| {
            other.is_changed |= other.subject.is_none();
            *other.subject.get_or_insert(other.seq)
        });
        let place = (statement.memory, statement.number);
        if is_living && !known.contains_key(&place) {
            let new = Some(statement.clone());
            known.insert(place, Known { seq: seq.try_get(0)?, owner, subject, new, is_changed: false });
        }
    }
    save(tx, known.into_values()).await
}

/// Stores what is new or has a new subject among `known`.
async fn save(tx: &Transaction, known: impl Iterator<Item = Known>) -> Result<()> {
    let mut changed: Vec<(i64, i64)> = Vec::new();
    let mut new: Vec<(Known, Statement)> = Vec::new();
    for mut known in known {
        match known.new.take() {
            Some(statement) => new.push((known, statement)),
            None if known.is_changed => changed.push((known.owner, known.seq)),
            None => {}
        }
    }
    if !changed.is_empty() {
        let (owners, seqs): (Vec<i64>, Vec<i64>) = changed.into_iter().unzip();
        tx.execute(
            "UPDATE statements t SET subject = t.seq FROM unnest($1::bigint[], $2::bigint[]) u (owner, seq)
             WHERE t.owner = u.owner AND t.seq = u.seq",
            &[&owners, &seqs],
        )
        .await?;
    }
    if new.is_empty() {
        return Ok(());
    }
    insert(tx, &new).await
}

/// Inserts the rows of new statements.
async fn insert(tx: &Transaction, new: &[(Known, Statement)]) -> Result<()> {
    /// Returns a column of numbers.
    fn numbers(new: &[(Known, Statement)], each: fn(&Known, &Statement) -> i64) -> Vec<i64> {
        new.iter().map(|(known, statement)| each(known, statement)).collect()
    }
    /// Returns a column of words.
    fn words(new: &[(Known, Statement)], each: fn(&Statement) -> &String) -> Vec<&str> {
        new.iter().map(|(_, statement)| each(statement).as_str()).collect()
    }
    let subjects: Vec<Option<i64>> = new.iter().map(|(known, _)| known.subject).collect();
    tx.execute(
        "INSERT INTO statements (owner, seq, memory, number, start_byte, end_byte, voice, value, words, time, subject)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
             $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[])",
        &[
            &numbers(new, |known, _| known.owner),
            &numbers(new, |known, _| known.seq),
            &numbers(new, |_, statement| statement.memory.in_store()),
            &numbers(new, |_, statement| statement.number),
            &numbers(new, |_, statement| number(statement.start)),
            &numbers(new, |_, statement| number(statement.end)),
            &words(new, |statement| &statement.voice),
            &words(new, |statement| &statement.value),
            &words(new, |statement| &statement.words),
            &numbers(new, |_, statement| statement.time),
            &subjects,
        ],
    )
    .await?;
    Ok(())
}

fn stated(row: &Row) -> Result<Statement> {
    Ok(Statement {
        memory: memory_key(row, 0)?,
        number: row.try_get(1)?,
        start: size(row, 2)?,
        end: size(row, 3)?,
        voice: row.try_get(4)?,
        value: row.try_get(5)?,
        words: row.try_get(6)?,
        time: row.try_get(7)?,
        subject: row.try_get::<_, Option<i64>>(8)?.map(SubjectKey::from_store),
    })
}
