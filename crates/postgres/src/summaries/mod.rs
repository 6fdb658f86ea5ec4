//! Summaries of ranges of messages, and the memory that summarises a whole session.
//!
//! A summary is stored only if the living messages of its range are still exactly the messages that it was made of. The
//! summary is removed when one of these messages is forgotten. Summaries of segments aren't indexed, since searches
//! find their messages. The memory that summarises a whole session, of kind `conversation`, is indexed.

mod conversations;
mod queue;
pub(crate) mod segments;

use std::collections::HashSet;

use tokio_postgres::Row;

use self::segments::hash_of_range;
use crate::PostgresStore;
use crate::columns;
use crate::error::Result;
use crate::owners::{SessionRef, is_named};
use crate::read::find::{find_session, named};
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Kind, Level, MemoryId, Millis, Provenance};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::{LevelCount, Saved, Summary, SummaryRow};

/// The columns of a summary `u` and of its session `s`, in the order in which [`summary`] reads them.
pub(crate) const COLUMNS: &str =
    "u.id, s.name, u.segment, u.level, u.first, u.last, u.messages, u.text, u.tokens, u.provider,
    u.model, u.quality, u.version, u.made_at, u.provenance, u.cited, u.source_hash";

/// The condition that no later version of the summary `u` exists.
const NEWEST: &str = "NOT EXISTS (SELECT FROM summaries o WHERE o.owner = u.owner AND o.session = u.session
    AND o.first = u.first AND o.last = u.last AND o.level = u.level AND o.version > u.version)";

impl PostgresStore {
    pub(crate) async fn save_summary(
        &self,
        scope: &Scope,
        summary: Summary,
        now: Millis,
    ) -> error::Result<Saved> {
        self.save_version(scope, summary, Millis::MIN, now).await
    }

    pub(crate) async fn save_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> error::Result<Saved> {
        write!(self, scope, tx => {
            match place(&tx, scope, &summary, since).await? {
                Insertion::Known(saved) => Ok(saved),
                Insertion::New(session, last) => {
                    insert_version(&tx, session, &Summary { last, ..summary.clone() }, now).await
                }
            }
        })
    }

    pub(crate) async fn foresee_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
    ) -> error::Result<Saved> {
        read!(self, scope, tx => {
            Ok(match place(&tx, scope, &summary, since).await? {
                Insertion::Known(saved) => saved,
                Insertion::New(session, last) => {
                    Saved::Made(next_id(&tx, session, &Summary { last, ..summary.clone() }).await?.1)
                }
            })
        })
    }

    pub(crate) async fn summaries(
        &self,
        scope: &Scope,
        session: &SessionId,
        level: Option<Level>,
    ) -> error::Result<Vec<SummaryRow>> {
        read!(self, scope, tx => {
            match find_session(&tx, scope, session).await? {
                Some(session) => summaries(&tx, session, level).await,
                None => Ok(Vec::new()),
            }
        })
    }

    pub(crate) async fn summary(&self, scope: &Scope, id: &MemoryId) -> error::Result<Option<SummaryRow>> {
        let sql = format!(
            "SELECT {COLUMNS}, u.owner, u.session
             FROM summaries u JOIN sessions s ON s.owner = u.owner AND s.seq = u.session
             WHERE u.owner = ANY ($1) AND u.id = $2 AND {}",
            is_named("$3")
        );
        read!(self, scope, tx => {
            for row in tx.rows(&sql, &[&tx.seen.parts, &id.as_str(), &tx.seen.mine]).await? {
                let found = summary(&row)?;
                let session = SessionRef { owner: row.try_get(17)?, seq: row.try_get(18)? };
                if find_session(&tx, scope, &found.summary.session).await? == Some(session) {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        })
    }

    pub(crate) async fn summary_counts(&self, scope: &Scope) -> error::Result<Vec<LevelCount>> {
        let sql = format!(
            "SELECT u.level, u.provider, count(*), sum(u.tokens)::bigint,
                 coalesce(sum(coalesce(
                     (SELECT g.tokens FROM segments g
                      WHERE g.owner = u.owner AND g.session = u.session AND g.number = u.segment),
                     (SELECT sum(m.tokens) FROM memories m WHERE m.owner = u.owner AND m.session = u.session
                      AND m.ordinal BETWEEN u.first AND u.last AND m.tombstoned_at IS NULL))), 0)::bigint
             FROM summaries u WHERE u.owner = ANY ($1) AND {NEWEST}
             GROUP BY u.level, u.provider ORDER BY u.provider COLLATE \"C\""
        );
        read!(self, scope, tx => {
            let level_count = |row: &Row| {
                Ok(LevelCount {
                    level: columns::word(row, 0, Level::parse)?,
                    provider: row.try_get(1)?,
                    summaries: row.try_get(2)?,
                    tokens: row.try_get(3)?,
                    source_tokens: row.try_get(4)?,
                })
            };
            let rows = tx.rows(&sql, &[&tx.seen.parts]).await?;
            let mut counts: Vec<LevelCount> = rows.iter().map(level_count).collect::<Result<_>>()?;
            counts.sort_by_key(|count| count.level);
            Ok(counts)
        })
    }
}

/// Returns the newest version of each summary of the session at the level, or at all levels if the level is `None`.
pub(crate) async fn summaries(
    tx: &Transaction,
    session: SessionRef,
    level: Option<Level>,
) -> Result<Vec<SummaryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summaries u JOIN sessions s ON s.owner = u.owner AND s.seq = u.session
         WHERE u.owner = $1 AND u.session = $2 AND ($3::text IS NULL OR u.level = $3) AND {NEWEST}
         ORDER BY u.first, u.last, u.level COLLATE \"C\""
    );
    let rows = tx.rows(&sql, &[&session.owner, &session.seq, &level.map(Level::as_str)]).await?;
    rows.iter().map(summary).collect()
}

/// Returns the sessions that the names in the scope mean for the reader; `None` if the scope has all sessions.
async fn admitted(tx: &Transaction, scope: &Scope) -> Result<Option<HashSet<SessionRef>>> {
    let Sessions::Only(names) = &scope.sessions else { return Ok(None) };
    let found = named(tx, names).await?.into_iter().flatten();
    Ok(Some(found.map(|(session, _)| session).collect()))
}

/// The decision whether a summary must be inserted.
enum Insertion {
    /// The summary is not inserted, and the field has the result.
    Known(Saved),
    /// The summary is inserted for this session, with this last message.
    New(SessionRef, i64),
}

/// Decides whether the summary must be inserted.
async fn place(tx: &Transaction, scope: &Scope, summary: &Summary, since: Millis) -> Result<Insertion> {
    let Summary { first, level, .. } = *summary;
    // The session may have been purged after the summary was made.
    let Some(session) = find_session(tx, scope, &summary.session).await? else {
        return Ok(Insertion::Known(Saved::SourcesChanged));
    };
    // The range is cut at the end of the session, so that later messages don't fall into it.
    let sql = "SELECT least(last, $3) FROM sessions WHERE owner = $1 AND seq = $2";
    let last: i64 = tx.only(sql, &[&session.owner, &session.seq, &summary.last]).await?.try_get(0)?;
    if hash_of_range(tx, session, first, last).await? != summary.source_hash {
        return Ok(Insertion::Known(Saved::SourcesChanged));
    }
    let made = tx
        .row(
            "SELECT id FROM summaries
             WHERE owner = $1 AND session = $2 AND first = $3 AND last = $4 AND level = $5 AND provider = $6
                 AND model = $7 AND source_hash = $8 AND (made_at >= $9 OR text = $10)
             ORDER BY version DESC LIMIT 1",
            &[
                &session.owner,
                &session.seq,
                &first,
                &last,
                &level.as_str(),
                &summary.provider,
                &summary.model,
                &&summary.source_hash[..],
                &since,
                &summary.text,
            ],
        )
        .await?;
    Ok(match made {
        Some(row) => Insertion::Known(Saved::AlreadyMade(columns::id(&row, 0)?)),
        None => Insertion::New(session, last),
    })
}

/// Returns the number of the next version for the summary's range and level, and the id of that version.
async fn next_id(tx: &Transaction, session: SessionRef, summary: &Summary) -> Result<(i64, MemoryId)> {
    let Summary { first, last, level, .. } = *summary;
    let row = tx
        .only(
            "SELECT s.name, (SELECT coalesce(max(u.version), 0) + 1 FROM summaries u
                 WHERE u.owner = s.owner AND u.session = s.seq AND u.first = $3 AND u.last = $4 AND u.level = $5)
             FROM sessions s WHERE s.owner = $1 AND s.seq = $2",
            &[&session.owner, &session.seq, &first, &last, &level.as_str()],
        )
        .await?;
    let (name, version): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
    let sources = blake3::Hash::from(summary.source_hash).to_hex();
    let key = format!("{level} {first} {last} {version} {sources} {} {}", summary.provider, summary.model);
    Ok((version, MemoryId::derive(Kind::Summary, SessionId::parse(name).as_ref(), &key)))
}

/// Inserts the summary as the next version for its range and level. The range must not go beyond the end of the
/// session.
async fn insert_version(
    tx: &Transaction,
    session: SessionRef,
    summary: &Summary,
    now: Millis,
) -> Result<Saved> {
    let (version, id) = next_id(tx, session, summary).await?;
    let cited: Vec<String> = summary.cited.iter().map(i64::to_string).collect();
    tx.execute(
        "INSERT INTO summaries (owner, id, session, segment, level, first, last, messages, version, provider, model,
             quality, provenance, made_at, source_hash, cited, tokens, text)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        &[
            &session.owner,
            &id.as_str(),
            &session.seq,
            &summary.segment,
            &summary.level.as_str(),
            &summary.first,
            &summary.last,
            &summary.messages,
            &version,
            &summary.provider,
            &summary.model,
            &summary.quality,
            &summary.provenance.as_str(),
            &now,
            &&summary.source_hash[..],
            &cited.join(" "),
            &summary.tokens,
            &summary.text,
        ],
    )
    .await?;
    Ok(Saved::Made(id))
}

/// Reads a summary from the columns [`COLUMNS`].
pub(crate) fn summary(row: &Row) -> Result<SummaryRow> {
    let source_hash: &[u8] = row.try_get(16)?;
    Ok(SummaryRow {
        id: columns::id(row, 0)?,
        version: row.try_get(12)?,
        made_at: row.try_get(13)?,
        summary: Summary {
            session: columns::word(row, 1, SessionId::parse)?,
            segment: row.try_get(2)?,
            level: columns::word(row, 3, Level::parse)?,
            first: row.try_get(4)?,
            last: row.try_get(5)?,
            messages: row.try_get(6)?,
            text: row.try_get(7)?,
            tokens: row.try_get(8)?,
            provider: row.try_get(9)?,
            model: row.try_get(10)?,
            quality: row.try_get(11)?,
            provenance: columns::word(row, 14, Provenance::parse)?,
            cited: row
                .try_get::<_, &str>(15)?
                .split(' ')
                .filter_map(|ordinal| ordinal.parse().ok())
                .collect(),
            source_hash: source_hash.try_into().unwrap_or_default(),
        },
    })
}
