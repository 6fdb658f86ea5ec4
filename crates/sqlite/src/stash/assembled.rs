//! Records the lines that the last context of each session shows, so that stashing can report how many tokens it frees.

use std::collections::HashMap;

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::error::Result;
use crate::read::segments::named;
use tiro_base::error;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::ShownLine;

/// The time that recording a context waits for other writers. Arbitrary.
const PATIENCE: Duration = Duration::from_millis(500);

impl SqliteStore {
    pub(crate) async fn record_assembly(
        &self,
        scope: &Scope,
        session: &SessionId,
        key: [u8; 32],
        lines: Vec<ShownLine>,
    ) -> error::Result<()> {
        let name = session.clone();
        let is_known = self
            .read(scope, move |_, connection, scope| {
                let known: Option<Vec<u8>> = match named(connection, scope, &name)? {
                    Some((session, _)) => connection
                        .prepare_cached("SELECT key FROM assemblies WHERE session = ?1")?
                        .query_row([session], |row| row.get(0))
                        .optional()?,
                    None => return Ok(true),
                };
                Ok(known.is_some_and(|known| known == key))
            })
            .await?;
        if is_known {
            return Ok(());
        }
        let name = session.clone();
        let written = self.write_unsynced(scope, move |connection, scope| {
            let Some((session, _)) = named(connection, scope, &name)? else { return Ok(()) };
            record(connection, session, key, &lines)
        });
        tokio::time::timeout(PATIENCE, written).await.unwrap_or(Ok(()))
    }
}

fn record(connection: &Connection, session: i64, key: [u8; 32], lines: &[ShownLine]) -> Result<()> {
    connection.prepare_cached("DELETE FROM assembly_lines WHERE session = ?1")?.execute([session])?;
    connection
        .prepare_cached(
            "INSERT INTO assemblies (session, key) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET key = ?2",
        )?
        .execute(params![session, key])?;
    for line in lines {
        connection
            .prepare_cached(
                "INSERT INTO assembly_lines (session, memory, tokens, heading, heading_tokens)
                 SELECT ?1, seq, ?3, ?4, ?5 FROM memories WHERE seq = ?2
                 ON CONFLICT DO UPDATE SET tokens = tokens + ?3",
            )?
            .execute(params![
                session,
                line.memory.in_store(),
                line.tokens,
                line.heading,
                line.heading_tokens
            ])?;
    }
    Ok(())
}

/// Returns the tokens that `memories` took in the last context of their session: the tokens of their lines, and of
/// headings that no other line needs. Afterwards, these memories no longer count as shown.
pub(super) fn free(connection: &Connection, session: i64, memories: &[i64]) -> Result<i64> {
    let (mut freed, mut headings) = (0, HashMap::new());
    for memory in memories {
        let line: Option<(i64, i64, i64)> = connection
            .prepare_cached(
                "DELETE FROM assembly_lines WHERE session = ?1 AND memory = ?2 RETURNING tokens, heading, heading_tokens",
            )?
            .query_row((session, memory), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        if let Some((tokens, heading, heading_tokens)) = line {
            freed += tokens;
            headings.insert(heading, heading_tokens);
        }
    }
    for (heading, tokens) in headings {
        let is_needed: bool = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM assembly_lines WHERE session = ?1 AND heading = ?2)",
            )?
            .query_row((session, heading), |row| row.get(0))?;
        freed += if is_needed { 0 } else { tokens };
    }
    // The next context will be different, even if it is assembled with the same key. So the key is removed.
    if freed > 0 {
        connection
            .prepare_cached("UPDATE assemblies SET key = x'' WHERE session = ?1")?
            .execute([session])?;
    }
    Ok(freed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{LOOK_AGAIN, lock};
    use tiro_base::scope::{ProjectId, TenantId};
    use tiro_store::Flavour;

    /// The record was once skipped while another call of the process was writing, so stashing reported that no tokens
    /// were freed.
    #[tokio::test]
    async fn a_context_is_recorded_also_while_another_call_writes() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let scope = Scope::own(TenantId::new("ines"), project);
        let session = SessionId::parse("press").unwrap();
        let add = store.write(&scope, |connection, scope| {
            connection.execute(
                "INSERT INTO sessions (owner, name) VALUES (?1, 'press')",
                [scope.tenant.as_str()],
            )?;
            Ok(())
        });
        add.await.unwrap();
        let (begun, is_begun) = std::sync::mpsc::channel();
        let writing = {
            let store = store.clone();
            std::thread::spawn(move || {
                let _writer = lock(&store.inner.writer);
                begun.send(()).unwrap();
                std::thread::sleep(PATIENCE / 5);
            })
        };
        is_begun.recv().unwrap();
        store.record_assembly(&scope, &session, [1; 32], Vec::new()).await.unwrap();
        writing.join().unwrap();
        let count = async || {
            let count = store.read(&scope, |_, connection, _| {
                Ok(connection.query_row("SELECT count(*) FROM assemblies", [], |row| row.get::<_, i64>(0))?)
            });
            count.await.unwrap()
        };
        // On a busy machine, the other call may write for longer than the method waits.
        for _ in 0..10_000 {
            if count().await > 0 {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        panic!("it is not recorded");
    }
}
