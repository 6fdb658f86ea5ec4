//! Segments: runs of messages of a session that are summarised together.

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns;
use crate::error::Result;
use crate::owners::{SessionRef, is_named};
use crate::read::find::find_session;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Level, MemoryId};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::stale;
use tiro_store::{SegmentRow, SessionKey, SummarisedSegment, source_hash};

impl PostgresStore {
    pub(crate) async fn segments(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Vec<SegmentRow>> {
        read!(self, scope, tx => {
            match find_session(&tx, scope, session).await? {
                Some(session) => segments(&tx, session).await,
                None => Ok(Vec::new()),
            }
        })
    }

    pub(crate) async fn add_segments(
        &self,
        scope: &Scope,
        session: &SessionId,
        segments: Vec<SegmentRow>,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, session).await? else { return Ok(()) };
            let row = tx
                .only(
                    "SELECT coalesce(max(number), -1) + 1, coalesce(max(last), -1) + 1 FROM segments
                     WHERE owner = $1 AND session = $2",
                    &[&session.owner, &session.seq],
                )
                .await?;
            let closed = stale::closed(row.try_get(0)?, row.try_get(1)?, &segments);
            if closed.is_empty() {
                return Ok(());
            }
            let numbers: Vec<i64> = closed.iter().map(|(number, ..)| *number).collect();
            let (firsts, lasts): (Vec<i64>, Vec<i64>) = closed.iter().map(|(_, first, last)| (first, last)).unzip();
            tx.execute(
                "INSERT INTO segments (owner, session, number, first, last, messages, tokens)
                 SELECT $1, $2, u.number, u.first, u.last, count(m.seq), coalesce(sum(m.tokens), 0)::bigint
                 FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS u (number, first, last)
                 LEFT JOIN memories m ON m.owner = $1 AND m.session = $2 AND m.ordinal BETWEEN u.first AND u.last
                     AND m.tombstoned_at IS NULL
                 GROUP BY u.number, u.first, u.last",
                &[&session.owner, &session.seq, &numbers, &firsts, &lasts],
            )
            .await?;
            Ok(())
        })
    }

    pub(crate) async fn summarised_segments(&self, scope: &Scope) -> error::Result<Vec<SummarisedSegment>> {
        let tokens = |level: Level| {
            format!(
                "(SELECT u.tokens FROM summaries u WHERE u.owner = g.owner AND u.session = g.session
                  AND u.first = g.first AND u.last = g.last AND u.level = '{level}' ORDER BY u.version DESC LIMIT 1)"
            )
        };
        let [brief, standard, detailed] = [Level::Brief, Level::Standard, Level::Detailed].map(tokens);
        let sql = format!(
            "SELECT g.number, g.first, g.last, g.messages, g.tokens, g.session, {brief}, {standard}, {detailed}
             FROM segments g JOIN sessions s ON s.owner = g.owner AND s.seq = g.session
             WHERE g.owner = ANY ($1) AND g.messages > 0 AND {} ORDER BY g.session, g.number",
            is_named("$2")
        );
        read!(self, scope, tx => {
            let rows = tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine]).await?;
            let summarised = |row: &Row| {
                Ok(SummarisedSegment {
                    segment: segment(row)?,
                    session: SessionKey::from_store(row.try_get(5)?),
                    summaries: [row.try_get(6)?, row.try_get(7)?, row.try_get(8)?],
                })
            };
            rows.iter().map(summarised).collect()
        })
    }
}

/// Returns the closed segments of the session, in order.
pub(crate) async fn segments(tx: &Transaction, session: SessionRef) -> Result<Vec<SegmentRow>> {
    let sql = "SELECT number, first, last, messages, tokens FROM segments
               WHERE owner = $1 AND session = $2 ORDER BY number";
    let rows = tx.rows(sql, &[&session.owner, &session.seq]).await?;
    rows.iter().map(segment).collect()
}

/// Returns the [`source_hash`] of the living messages of the session from the ordinal `first` to `last`.
pub(crate) async fn hash_of_range(
    tx: &Transaction,
    session: SessionRef,
    first: i64,
    last: i64,
) -> Result<[u8; 32]> {
    let sql = "SELECT id FROM memories WHERE owner = $1 AND session = $2 AND ordinal BETWEEN $3 AND $4
                   AND tombstoned_at IS NULL ORDER BY ordinal";
    let rows = tx.rows(sql, &[&session.owner, &session.seq, &first, &last]).await?;
    let ids: Vec<MemoryId> = rows.iter().map(|row| columns::id(row, 0)).collect::<Result<_>>()?;
    Ok(source_hash(&ids))
}

/// Reads a segment from its columns, in the order of [`SegmentRow`].
fn segment(row: &Row) -> Result<SegmentRow> {
    Ok(SegmentRow {
        number: row.try_get(0)?,
        first: row.try_get(1)?,
        last: row.try_get(2)?,
        messages: row.try_get(3)?,
        tokens: row.try_get(4)?,
    })
}
