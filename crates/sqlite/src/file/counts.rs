//! The counts that triggers keep beside the memories (`migrations/0017_counts.sql`): checks them, and counts anew.
//!
//! A page that lists sessions, the stash or sizes reads these counts, so it doesn't read every memory.

use rusqlite::Connection;

use crate::error::Result;

/// A table of counts: its columns, and the query that counts everything anew.
struct Table {
    name: &'static str,
    columns: &'static str,
    counted: &'static str,
}

/// The tables of counts, except the counts of sessions, which are in the rows of the sessions. `LIMIT -1` keeps SQLite
/// from sorting the texts themselves, of which only the lengths count.
const TABLES: [Table; 4] = [
    Table {
        name: "memory_counts",
        columns: "owner, kind, day, memories, derived, bytes, tokens, forgotten",
        counted: "SELECT owner, kind, time / 86400000 - (time % 86400000 < 0), sum(tombstoned_at IS NULL),
                sum(tombstoned_at IS NULL AND provenance = 'derived'),
                sum(iif(tombstoned_at IS NULL, bytes, 0)),
                sum(iif(tombstoned_at IS NULL, tokens, 0)), sum(tombstoned_at IS NOT NULL)
            FROM (SELECT owner, kind, time, tombstoned_at, provenance, tokens, octet_length(text) AS bytes
                FROM memories LIMIT -1) GROUP BY 1, 2, 3",
    },
    Table {
        name: "stored_counts",
        columns: "owner, stored_at, memories",
        counted: "SELECT owner, stored_at, count(*) FROM memories WHERE tombstoned_at IS NULL GROUP BY 1, 2",
    },
    Table {
        name: "owner_counts",
        columns: "owner, embedded, pending, repeats",
        counted: "SELECT owner, sum(embedded), sum(pending), sum(repeats) FROM (
                SELECT m.owner AS owner, count(*) AS embedded, 0 AS pending, 0 AS repeats FROM vectors v
                    JOIN chunks c ON c.seq = v.chunk JOIN memories m ON m.seq = c.memory GROUP BY 1
                UNION ALL SELECT m.owner, 0, count(*), 0 FROM pending p
                    JOIN chunks c ON c.seq = p.chunk JOIN memories m ON m.seq = c.memory GROUP BY 1
                UNION ALL SELECT m.owner, 0, 0, count(*) - count(DISTINCT r.memory) FROM repeats r
                    JOIN memories m ON m.seq = r.memory GROUP BY 1)
            GROUP BY 1 HAVING sum(embedded) + sum(pending) + sum(repeats) > 0",
    },
    Table {
        name: "stash_groups",
        columns: "owner, topic, session, memories, tokens, last",
        counted:
            "SELECT s.owner, s.topic, m.session, count(*), sum(m.tokens), max(s.stashed_at)
            FROM stashed s JOIN memories m ON m.seq = s.memory WHERE m.tombstoned_at IS NULL GROUP BY 1, 2, 3",
    },
];

/// Selects the sessions whose counts differ from their memories.
const SESSIONS: &str = "SELECT s.seq, count(m.seq) AS memories, coalesce(sum(m.tokens), 0) AS tokens,
        min(m.time) AS first_time, max(m.time) AS last_time
    FROM sessions s LEFT JOIN memories m ON m.session = s.seq AND m.tombstoned_at IS NULL GROUP BY s.seq
    HAVING (s.memories, s.tokens) <> (count(m.seq), coalesce(sum(m.tokens), 0))
        OR s.first_time IS NOT min(m.time) OR s.last_time IS NOT max(m.time)";

/// Returns how many rows of counts differ from what they count. Reads all memories.
pub(crate) fn off(connection: &Connection) -> Result<i64> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let mut off = count(&format!("SELECT count(*) FROM ({SESSIONS})"))?;
    off += count(
        "SELECT count(*) FROM stashed s JOIN memories m ON m.seq = s.memory WHERE s.session IS NOT m.session",
    )?;
    for Table { name, columns, counted } in TABLES {
        // An owner without chunks has no row, or a row of zeros.
        let rows = match name {
            "owner_counts" => format!("SELECT {columns} FROM {name} WHERE embedded OR pending OR repeats"),
            _ => format!("SELECT {columns} FROM {name}"),
        };
        let wrong = format!("SELECT * FROM ({rows}) EXCEPT SELECT * FROM ({counted})");
        let missing = format!("SELECT * FROM ({counted}) EXCEPT SELECT * FROM ({rows})");
        off += count(&format!(
            "SELECT max((SELECT count(*) FROM ({wrong})), (SELECT count(*) FROM ({missing})))"
        ))?;
    }
    Ok(off)
}

/// Counts everything anew.
pub(crate) fn count_anew(connection: &Connection) -> Result<()> {
    connection.execute(
        "UPDATE stashed SET session = m.session FROM memories m
         WHERE m.seq = stashed.memory AND stashed.session IS NOT m.session",
        [],
    )?;
    connection.execute(
        &format!(
            "UPDATE sessions SET memories = c.memories, tokens = c.tokens, first_time = c.first_time,
                 last_time = c.last_time FROM ({SESSIONS}) c WHERE c.seq = sessions.seq"
        ),
        [],
    )?;
    for Table { name, columns, counted } in TABLES {
        connection.execute(&format!("DELETE FROM {name}"), [])?;
        connection.execute(&format!("INSERT INTO {name} ({columns}) {counted}"), [])?;
    }
    Ok(())
}
