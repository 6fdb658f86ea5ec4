//! Records the lines that the last context of each session shows, so that stashing can report how many tokens it frees.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::PostgresStore;
use crate::error::Result;
use crate::owners::SessionRef;
use crate::read::find::named;
use crate::transactions::{Durability, Transaction, read, write};
use tiro_base::error;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::ShownLine;

/// A heading of the last context of a session: part, session, number.
type Heading = (i64, i64, i64);

/// The time that recording a context waits for other writers. Arbitrary.
const PATIENCE: Duration = Duration::from_millis(500);

impl PostgresStore {
    pub(crate) async fn record_assembly(
        &self,
        scope: &Scope,
        session: &SessionId,
        key: [u8; 32],
        lines: Vec<ShownLine>,
    ) -> error::Result<()> {
        let is_known: error::Result<bool> = read!(self, scope, tx => {
            let Some(session) = session_of(&tx, session).await? else { return Ok(true) };
            let sql = "SELECT FROM assemblies WHERE owner = $1 AND session = $2 AND key = $3";
            tx.exists(sql, &[&session.owner, &session.seq, &&key[..]]).await
        });
        if is_known? {
            return Ok(());
        }
        let (store, scope, name) = (self.clone(), scope.clone(), session.clone());
        let written = tokio::spawn(async move {
            write!(store, &scope, Durability::Unsynced, tx => {
                match session_of(&tx, &name).await? {
                    Some(session) => record(&tx, session, &key, &lines).await,
                    None => Ok(()),
                }
            })
        });
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(written)) => written,
            // It is recorded later, or the program ends.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}

/// Returns the session with the name or alias `name`, whether the scope admits it or not.
async fn session_of(tx: &Transaction, name: &SessionId) -> Result<Option<SessionRef>> {
    let found = named(tx, std::slice::from_ref(name)).await?;
    Ok(found.into_iter().flatten().next().map(|(session, _)| session))
}

async fn record(tx: &Transaction, session: SessionRef, key: &[u8; 32], lines: &[ShownLine]) -> Result<()> {
    let place: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&session.owner, &session.seq];
    tx.execute("DELETE FROM assembly_lines WHERE owner = $1 AND session = $2", &place).await?;
    tx.execute(
        "INSERT INTO assemblies (owner, session, key) VALUES ($1, $2, $3)
         ON CONFLICT (owner, session) DO UPDATE SET key = excluded.key",
        &[&session.owner, &session.seq, &&key[..]],
    )
    .await?;
    let column = |of: fn(&ShownLine) -> i64| lines.iter().map(of).collect::<Vec<i64>>();
    // A memory has one row, also if several lines show it.
    tx.execute(
        "INSERT INTO assembly_lines (owner, session, memory_owner, memory, tokens, heading, heading_tokens)
         SELECT $1, $2, m.owner, m.seq, sum(u.tokens)::bigint, (array_agg(u.heading ORDER BY u.place))[1],
             (array_agg(u.heading_tokens ORDER BY u.place))[1]
         FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
             WITH ORDINALITY AS u (memory, tokens, heading, heading_tokens, place)
         JOIN memories m ON m.owner = ANY ($3) AND m.seq = u.memory
         GROUP BY m.owner, m.seq",
        &[
            &session.owner,
            &session.seq,
            &tx.seen.parts,
            &column(|line| line.memory.in_store()),
            &column(|line| line.tokens),
            &column(|line| line.heading),
            &column(|line| line.heading_tokens),
        ],
    )
    .await?;
    Ok(())
}

/// Returns the tokens that `memories` (part, session, memory) took in the last contexts of their sessions: the tokens of
/// their lines, and of headings that no other line needs. Afterwards, these memories no longer count as shown.
pub(super) async fn free(tx: &Transaction, memories: &[(i64, i64, i64)]) -> Result<i64> {
    let owners: Vec<i64> = memories.iter().map(|(owner, ..)| *owner).collect();
    let sessions: Vec<i64> = memories.iter().map(|(_, session, _)| *session).collect();
    let seqs: Vec<i64> = memories.iter().map(|(.., memory)| *memory).collect();
    let lines = tx
        .rows(
            "DELETE FROM assembly_lines l USING unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (owner, session, memory)
             WHERE l.owner = u.owner AND l.session = u.session AND l.memory_owner = u.owner AND l.memory = u.memory
             RETURNING l.owner, l.session, l.heading, l.heading_tokens, l.tokens",
            &[&owners, &sessions, &seqs],
        )
        .await?;
    let mut freed: HashMap<(i64, i64), i64> = HashMap::new();
    let mut headings: HashMap<Heading, i64> = HashMap::new();
    for line in &lines {
        let (owner, session) = (line.get(0), line.get(1));
        *freed.entry((owner, session)).or_default() += line.get::<_, i64>(4);
        headings.insert((owner, session, line.get(2)), line.get(3));
    }
    let needed = needed(tx, headings.keys()).await?;
    for (heading, tokens) in headings.iter().filter(|(heading, _)| !needed.contains(heading)) {
        *freed.entry((heading.0, heading.1)).or_default() += tokens;
    }
    // The next context will be different, even if it is assembled with the same key. So the key is removed.
    let changed = freed.iter().filter(|(_, freed)| **freed > 0);
    let (owners, sessions): (Vec<i64>, Vec<i64>) = changed.map(|(session, _)| *session).unzip();
    tx.execute(
        "UPDATE assemblies a SET key = '' FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, session)
         WHERE a.owner = u.owner AND a.session = u.session",
        &[&owners, &sessions],
    )
    .await?;
    Ok(freed.values().sum())
}

/// Returns those of the headings that still have a line.
async fn needed(tx: &Transaction, headings: impl Iterator<Item = &Heading>) -> Result<HashSet<Heading>> {
    let (mut owners, mut sessions, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (owner, session, number) in headings {
        owners.push(*owner);
        sessions.push(*session);
        numbers.push(*number);
    }
    let rows = tx
        .rows(
            "SELECT u.owner, u.session, u.heading
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (owner, session, heading)
             WHERE EXISTS (SELECT FROM assembly_lines l
                 WHERE l.owner = u.owner AND l.session = u.session AND l.heading = u.heading)",
            &[&owners, &sessions, &numbers],
        )
        .await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
}
