//! Reads the sessions of a backup, with their segments and summaries, and its forgotten memories.

use rusqlite::{OptionalExtension, params};

use super::{BackupReader, LATEST, LONGEST_NAME, MOST_BESIDE, SqliteBackup, read};
use crate::connection::blocking;
use crate::error::Result;
use crate::read::segments;
use tiro_base::error;
use tiro_base::memory::{Level, MemoryId, Millis, Provenance};
use tiro_base::scope::{SessionId, Visibility};
use tiro_store::{ForeignConversation, ForeignDepth, ForeignForgotten, ForeignSession, Origin, Summary};

/// The longest summary that is read, in bytes. Arbitrary: about ten times the longest summary that Tiro makes.
const LONGEST_SUMMARY: usize = 1 << 20;

impl SqliteBackup {
    /// Returns the next sessions of the backup, or `None` after the last. If `depth` is not the same as in the previous
    /// call, begins with the first session again.
    pub async fn next_sessions(&mut self, depth: ForeignDepth) -> error::Result<Option<Vec<ForeignSession>>> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let (reader, page) = blocking(move || {
            let page = reader.sessions(depth)?;
            Ok((reader, page))
        })
        .await?;
        self.reader = Some(reader);
        Ok(page)
    }

    /// Returns the purged ids and the operations of the backup, and the sessions that were forgotten because of their
    /// age.
    pub async fn forgotten(&mut self) -> error::Result<ForeignForgotten> {
        let Some(reader) = self.reader.take() else { return Ok(ForeignForgotten::default()) };
        let (reader, forgotten) = blocking(move || {
            let forgotten = reader.forgotten()?;
            Ok((reader, forgotten))
        })
        .await?;
        self.reader = Some(reader);
        Ok(forgotten)
    }
}

impl BackupReader {
    fn sessions(&mut self, depth: ForeignDepth) -> Result<Option<Vec<ForeignSession>>> {
        /// How many sessions a page has. Arbitrary.
        const PAGE: i64 = 20;
        if self.session.0 != Some(depth) {
            self.session = (Some(depth), i64::MIN);
        }
        let sql = format!(
            "SELECT seq, name, branch, head_sha, {},
                 (SELECT p.owner <> ?1 FROM main.sessions p WHERE p.seq = sessions.seq)
             FROM sessions WHERE owner = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            if self.has("session_aliases") { "client, worktree, title" } else { "NULL, NULL, NULL" }
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(read)?;
        let rows = statement
            .query_map(params![self.owners.owner, self.session.1, PAGE], |row| {
                let text = |place: usize| -> rusqlite::Result<Option<String>> {
                    let text = row.get_ref(place)?.as_str().ok();
                    Ok(text.filter(|text| text.len() <= LONGEST_NAME).map(str::to_owned))
                };
                let visibility = row.get::<_, bool>(7)?.then_some(Visibility::Private);
                let origin = Origin {
                    visibility,
                    client: text(4)?,
                    worktree: text(5)?,
                    title: text(6)?,
                    ..Origin::default()
                };
                Ok((row.get::<_, i64>(0)?, text(1)?, text(2)?, text(3)?, origin))
            })
            .map_err(read)?
            .collect::<rusqlite::Result<Vec<_>>>()
            .map_err(read)?;
        drop(statement);
        let Some((last, ..)) = rows.last() else { return Ok(None) };
        self.session.1 = *last;
        let mut sessions = Vec::new();
        for (seq, name, branch, head_sha, origin) in rows {
            let Some(session) = name.as_deref().and_then(SessionId::parse) else { continue };
            let head_sha = head_sha.filter(|sha| is_sha(sha));
            let mut found = ForeignSession {
                session,
                origin,
                branch,
                head_sha,
                segments: Vec::new(),
                summaries: Vec::new(),
                conversation: None,
            };
            match depth {
                ForeignDepth::Origin if self.has("session_aliases") => {
                    found.origin.aliases =
                        self.strings("alias FROM session_aliases WHERE session = ?1", seq)?;
                }
                ForeignDepth::Made if self.has("summaries") => self.made(seq, &mut found)?,
                _ => {}
            }
            sessions.push(found);
        }
        Ok(Some(sessions))
    }

    /// Adds the segments and summaries of the session in the row `seq`.
    fn made(&self, seq: i64, found: &mut ForeignSession) -> Result<()> {
        let mut closed = self.connection.prepare_cached(
            "SELECT number, first, last, messages, tokens FROM segments WHERE session = ?1 ORDER BY number LIMIT ?2",
        )?;
        let rows = closed.query_map((seq, MOST_BESIDE as i64), segments::segment)?;
        found.segments = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        let mut summaries = self.connection.prepare_cached(
            "SELECT segment, level, first, last, messages, text, tokens, provider, model, quality, cited, source_hash,
                 made_at
             FROM summaries WHERE session = ?1 AND owner = ?2 AND octet_length(text) <= ?3
                 AND max(octet_length(provider), octet_length(model)) <= ?4 AND octet_length(cited) <= ?3
             ORDER BY first, last, level, version LIMIT ?5",
        )?;
        let limits = (LONGEST_SUMMARY as i64, LONGEST_NAME as i64, MOST_BESIDE as i64);
        let rows =
            summaries.query_map(params![seq, self.owners.owner, limits.0, limits.1, limits.2], |row| {
                let level = row.get::<_, String>(1)?;
                let (quality, made_at): (f64, Millis) = (row.get(9)?, row.get(12)?);
                let Some(level) = Level::parse(&level) else { return Ok(None) };
                let summary = Summary {
                    session: found.session.clone(),
                    segment: row.get(0)?,
                    level,
                    first: row.get(2)?,
                    last: row.get(3)?,
                    messages: row.get(4)?,
                    text: row.get(5)?,
                    tokens: row.get(6)?,
                    provider: row.get(7)?,
                    model: row.get(8)?,
                    quality: if quality.is_finite() { quality.clamp(0.0, 1.0) } else { 0.0 },
                    provenance: Provenance::Derived,
                    cited: row.get::<_, String>(10)?.split(' ').filter_map(|it| it.parse().ok()).collect(),
                    source_hash: row.get(11)?,
                };
                Ok(Some((summary, made_at.clamp(0, LATEST))))
            })?;
        found.summaries =
            rows.filter_map(Result::transpose).collect::<rusqlite::Result<_>>().map_err(read)?;
        let conversation: Option<(i64, i64, Millis)> = self
            .connection
            .prepare_cached("SELECT memory, last, made_at FROM conversations WHERE session = ?1")?
            .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()
            .map_err(read)?;
        let Some((memory, last, made_at)) = conversation else { return Ok(()) };
        let Some(memory) = self.at(memory)? else { return Ok(()) };
        let source_hash = segments::hash_of_range(&self.connection, seq, 0, last)?;
        let made_at = made_at.clamp(0, LATEST);
        found.conversation = Some(ForeignConversation { memory, last, source_hash, made_at });
        Ok(())
    }

    fn forgotten(&self) -> Result<ForeignForgotten> {
        /// The maximum number of purged ids that are read. The same limit applies to operations. Arbitrary: about ten
        /// times the number of ids after a purge of a whole store.
        const MOST: i64 = 1_000_000;
        let mut forgotten = ForeignForgotten::default();
        if !self.has("purged") || !self.has("operations") {
            return Ok(forgotten);
        }
        let mut purged = self.connection.prepare_cached("SELECT id FROM purged WHERE owner = ?1 LIMIT ?2")?;
        let rows = purged.query_map((&self.owners.owner, MOST), |row| {
            Ok(row.get_ref(0)?.as_str().ok().and_then(MemoryId::parse))
        })?;
        forgotten.purged =
            rows.filter_map(Result::transpose).collect::<rusqlite::Result<_>>().map_err(read)?;
        let mut operations = self.connection.prepare_cached(
            "SELECT id, at, undone_at FROM operations WHERE owner IN (?1, ?3) AND kind IN ('forget', 'expire') AND octet_length(id) <= 64
             ORDER BY at LIMIT ?2",
        )?;
        let rows = operations.query_map((&self.owners.owner, MOST, &self.owners.private), |row| {
            let (id, at, undone): (String, Millis, Option<Millis>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((id, at.clamp(0, LATEST), undone.map(|at| at.clamp(0, LATEST))))
        })?;
        forgotten.operations = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        forgotten.operations.retain(|(id, ..)| is_operation(id));
        self.retired(&mut forgotten)?;
        Ok(forgotten)
    }
}

/// Returns whether a text can be the id of an operation: 1 to 64 ASCII letters and digits.
pub(super) fn is_operation(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns whether `text` is the id of a commit.
pub(super) fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
