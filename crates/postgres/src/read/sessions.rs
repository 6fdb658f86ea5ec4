//! The sessions of a project.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{self, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::{SessionRef, is_named, sessions};
use crate::read::conditions::{Which, of_scope};
use crate::read::find::{find_session, find_sessions};
use crate::transactions::{Transaction, read, write};
use crate::write::nul::storable_text;
use tiro_base::error;
use tiro_base::memory::{Millis, marked};
use tiro_base::scope::{Scope, SessionId, Visibility};
use tiro_store::{About, HEADLESS, LeftSession, Origin, SessionRow};

/// The title of the session `s`. The title is the one that the client gave. The title of the memory that summarises the
/// session is used if there is none, or if the topic of this memory is the client's title. Only messages have ordinals, so
/// the messages of the session are not read.
pub(crate) const TITLE: &str = "coalesce((
    SELECT c.title FROM memories c
    WHERE c.owner = s.owner AND c.session = s.seq AND c.ordinal IS NULL AND c.kind = 'conversation'
        AND c.title IS NOT NULL AND c.tombstoned_at IS NULL
        AND coalesce(nullif(btrim(s.title), ''), c.topic, '') = coalesce(c.topic, '')
    ORDER BY c.seq LIMIT 1), nullif(btrim(s.title), ''))";

/// The key of the memory that summarises the session `s`, if this memory has a title.
const TITLED: &str = "(
    SELECT c.seq FROM memories c
    WHERE c.owner = s.owner AND c.session = s.seq AND c.ordinal IS NULL AND c.kind = 'conversation'
        AND c.title IS NOT NULL AND c.tombstoned_at IS NULL ORDER BY c.seq LIMIT 1)";

/// The key of the user's first message in the session `s`.
const FIRST: &str = "(
    SELECT u.seq FROM memories u
    WHERE u.owner = s.owner AND u.session = s.seq AND u.kind = 'message' AND u.role = 'user'
        AND u.tombstoned_at IS NULL ORDER BY u.ordinal LIMIT 1)";

/// The number of characters of the user's first message that are used in place of a title. Arbitrary.
const OPENING_CHARACTERS: usize = 500;

/// The beginning of the user's first message in the session `s`, for a session without a title.
const OPENING: &str = "(
    SELECT left(u.text, 500) FROM memories u
    WHERE u.owner = s.owner AND u.session = s.seq AND u.kind = 'message' AND u.role = 'user'
        AND u.tombstoned_at IS NULL ORDER BY u.ordinal LIMIT 1)";

impl PostgresStore {
    pub(crate) async fn sessions(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
    ) -> error::Result<Vec<SessionRow>> {
        read!(self, scope, tx => {
            let admitted = sessions(&tx, scope).await?;
            let admitted: Option<Vec<i64>> =
                admitted.map(|sessions| sessions.iter().map(|session| session.seq).collect());
            let sql = format!(
                "SELECT s.name, s.memories, s.tokens, s.first_time, s.last_time, s.branch, s.head_sha
                 FROM sessions s
                 WHERE s.owner = ANY ($1) AND s.memories > 0 AND {}
                     AND ($3::bigint[] IS NULL OR s.seq = ANY ($3))
                 ORDER BY lower(coalesce(s.client, '')) LIKE '%{HEADLESS}', s.last_time DESC, s.name
                 LIMIT $4 OFFSET $5",
                is_named("$2")
            );
            let rows = tx
                .rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &admitted, &number(limit), &number(offset)])
                .await?;
            rows.iter().map(session_row).collect()
        })
    }

    pub(crate) async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<(Option<String>, Option<String>)> {
        read!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, session).await? else { return Ok((None, None)) };
            let sql = "SELECT branch, head_sha FROM sessions WHERE owner = $1 AND seq = $2";
            let row = tx.only(sql, &[&session.owner, &session.seq]).await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        })
    }

    pub(crate) async fn about_sessions(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
    ) -> error::Result<Vec<About>> {
        read!(self, scope, tx => {
            let found = find_sessions(&tx, scope, &sessions).await?;
            let known = about(&tx, &found).await?;
            let about = |session: Option<SessionRef>| {
                session.and_then(|session| known.get(&session).cloned()).unwrap_or_default()
            };
            Ok(found.into_iter().map(about).collect())
        })
    }

    pub(crate) async fn sessions_called(
        &self,
        scope: &Scope,
        text: &str,
        limit: usize,
    ) -> error::Result<Vec<SessionId>> {
        read!(self, scope, tx => {
            let ways = [
                "s.name = $1",
                "EXISTS (SELECT FROM session_aliases a
                     WHERE a.owner = s.owner AND a.session = s.seq AND a.alias = $1)",
                "starts_with(s.name, $1)",
                &format!("strpos(lower(coalesce({TITLE}, {OPENING})), lower($1)) > 0"),
            ];
            for way in ways {
                let mut sql = Sql::new("SELECT s.name FROM sessions s WHERE ");
                // The ways name the text as the first parameter.
                sql.bind(text.to_owned());
                let (parts, mine) = (sql.bind(tx.seen.parts.clone()), sql.bind(tx.seen.mine));
                // Names are compared once for each session, not for each of its memories.
                sql.push(&format!(
                    "s.owner = ANY ({parts}) AND s.memories > 0 AND {} AND {way}
                     AND EXISTS (SELECT FROM memories m WHERE m.owner = s.owner AND m.session = s.seq AND ",
                    is_named(&mine)
                ));
                of_scope(&tx, scope, Which::Living, &mut sql).await?;
                let limit = sql.bind(number(limit));
                sql.push(&format!(") ORDER BY s.last_time DESC, s.name LIMIT {limit}"));
                let names = tx.query(&sql).await?;
                if !names.is_empty() {
                    return names.iter().map(|row| columns::word(row, 0, SessionId::parse)).collect();
                }
            }
            Ok(Vec::new())
        })
    }

    pub(crate) async fn known_elsewhere(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: Vec<String>,
    ) -> error::Result<HashSet<String>> {
        read!(self, scope, tx => {
            let sql = format!(
                "SELECT u.id FROM unnest($1::text[]) u (id)
                 JOIN memories m ON m.owner = ANY ($2) AND m.source_id = u.id
                 JOIN sessions s ON s.owner = m.owner AND s.seq = m.session
                 WHERE s.name <> $4 AND {named}
                 UNION SELECT u.id FROM unnest($1::text[]) u (id)
                 JOIN repeats r ON r.owner = ANY ($2) AND r.key = u.id
                 JOIN memories m ON m.owner = r.owner AND m.seq = r.memory
                 JOIN sessions s ON s.owner = m.owner AND s.seq = m.session
                 WHERE s.name <> $4 AND {named}",
                named = is_named("$3")
            );
            let rows = tx.rows(&sql, &[&ids, &tx.seen.parts, &tx.seen.mine, &session.as_str()]).await?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
        })
    }

    pub(crate) async fn left_sessions(
        &self,
        scope: &Scope,
        before: Millis,
    ) -> error::Result<Vec<LeftSession>> {
        read!(self, scope, tx => {
            let sql = format!(
                "SELECT s.name, s.memories, s.last_time FROM sessions s
                 WHERE s.owner = ANY ($1) AND s.memories > 0 AND s.last_time < $3 AND {}
                     AND NOT EXISTS (SELECT FROM commit_sessions l
                         WHERE l.session_owner = s.owner AND l.session = s.seq)
                     AND NOT EXISTS (SELECT FROM memories m
                         WHERE m.owner = s.owner AND m.session = s.seq AND m.tombstoned_at IS NULL
                             AND (m.marked OR EXISTS (SELECT FROM commit_parents p
                                 WHERE p.owner = ANY ($1) AND p.sha = m.head_sha)))
                 ORDER BY s.last_time, s.name",
                is_named("$2")
            );
            let rows = tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &before]).await?;
            let left = |row: &Row| {
                Ok(LeftSession {
                    session: columns::word(row, 0, SessionId::parse)?,
                    memories: row.try_get(1)?,
                    last: row.try_get(2)?,
                })
            };
            rows.iter().map(left).collect()
        })
    }

    pub(crate) async fn describe_session(
        &self,
        scope: &Scope,
        session: &SessionId,
        mut origin: Origin,
    ) -> error::Result<()> {
        let texts = [&mut origin.client, &mut origin.worktree, &mut origin.title];
        let texts = texts.into_iter().flatten().chain(&mut origin.aliases);
        texts.for_each(|text| *text = storable_text(std::mem::take(text)));
        write!(self, scope, tx => {
            let owner = part_of(&tx, scope, session, origin.visibility).await?;
            let row = tx
                .only(
                    "INSERT INTO sessions AS s (owner, name, client, worktree, title) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (owner, name) DO UPDATE SET client = coalesce($3, s.client),
                         worktree = coalesce($4, s.worktree), title = coalesce($5, s.title)
                     RETURNING seq",
                    &[&owner, &session.as_str(), &origin.client, &origin.worktree, &origin.title],
                )
                .await?;
            if !origin.aliases.is_empty() {
                tx.execute(
                    "INSERT INTO session_aliases (owner, alias, session)
                     SELECT DISTINCT $1::bigint, u.alias, $2::bigint FROM unnest($3::text[]) u (alias)
                     ON CONFLICT (owner, alias) DO UPDATE SET session = excluded.session",
                    &[&owner, &row.try_get::<_, i64>(0)?, &origin.aliases],
                )
                .await?;
            }
            Ok(())
        })
    }
}

/// Returns the part that contains the session `name`. For a new session, returns the part that fits the requested
/// visibility, or the shared part if no visibility is requested.
async fn part_of(tx: &Transaction, scope: &Scope, name: &SessionId, said: Option<Visibility>) -> Result<i64> {
    let is_private = match said {
        Some(visibility) => visibility == Visibility::Private,
        None => {
            let sql = "SELECT FROM sessions WHERE owner = $1 AND name = $2";
            tx.exists(sql, &[&tx.seen.mine, &name.as_str()]).await?
        }
    };
    if is_private { tx.private_part(scope, scope.reader.as_str()).await } else { Ok(tx.seen.shared) }
}

/// Returns the titles and clients of the sessions.
async fn about(tx: &Transaction, sessions: &[Option<SessionRef>]) -> Result<HashMap<SessionRef, About>> {
    let (owners, seqs): (Vec<i64>, Vec<i64>) =
        sessions.iter().flatten().map(|session| (session.owner, session.seq)).unzip();
    let sql = format!(
        "SELECT s.owner, s.seq, nullif(btrim(s.title), ''), s.client, m.title, m.text, m.text_hash
         FROM unnest($1::bigint[], $2::bigint[]) u (owner, seq)
         JOIN sessions s ON s.owner = u.owner AND s.seq = u.seq
         -- Row security compares before a key is looked up, unless the key is a column: then all memories would be read.
         LEFT JOIN LATERAL (SELECT coalesce({TITLED}, {FIRST}) AS seq OFFSET 0) t ON true
         LEFT JOIN memories m ON m.owner = s.owner AND m.seq = t.seq
             AND (nullif(btrim(s.title), '') IS NULL OR m.topic = nullif(btrim(s.title), ''))"
    );
    let mut known = HashMap::new();
    for row in tx.rows(&sql, &[&owners, &seqs]).await? {
        let session = SessionRef { owner: row.try_get(0)?, seq: row.try_get(1)? };
        let given: Option<String> = row.try_get(2)?;
        let mut about = About { title: given.clone(), given, client: row.try_get(3)? };
        if let Some(text) = row.try_get::<_, Option<&str>>(5)? {
            let is_damaged =
                blake3::hash(text.as_bytes()).as_bytes().as_slice() != row.try_get::<_, &[u8]>(6)?;
            let title: Option<String> = row.try_get(4)?;
            let title = title.unwrap_or_else(|| text.chars().take(OPENING_CHARACTERS).collect());
            about.title = Some(marked(title, is_damaged));
        }
        known.insert(session, about);
    }
    Ok(known)
}

fn session_row(row: &Row) -> Result<SessionRow> {
    Ok(SessionRow {
        id: columns::word(row, 0, SessionId::parse)?,
        memories: row.try_get(1)?,
        tokens: row.try_get(2)?,
        first: row.try_get(3)?,
        last: row.try_get(4)?,
        branch: row.try_get(5)?,
        head_sha: row.try_get(6)?,
    })
}
