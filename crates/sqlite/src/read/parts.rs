//! The parts of a store. A store has one part with the shared memories of the tenant; each author can have a part with
//! private memories.
//!
//! The column `owner` of a row names its part (`migrations/0014_authors.sql`). The column contains the tenant, or the
//! tenant and an author. So an SQL statement that names only the tenant can't find private rows, even if the programmer
//! forgot about them. Statements see both parts in two ways:
//!
//! - A read gets views that shadow the tables on its connection ([`show`]). The views contain the shared rows and the
//!   private rows of the reader, as if all rows were the tenant's. The views are made within the snapshot and disappear
//!   with it. A store without private rows, as on one's own machine, gets no views.
//! - A write names the part that it changes: the part of a draft ([`of_draft`]), the part of a session
//!   ([`of_session`]), or each part that the reader sees ([`seen`]).
//!
//! A session and everything made of it are in the same part, so a range of messages is never partly private. If an
//! author has a private session with the name of a shared session, the name means the private session for this author,
//! and the shared session for others.
//!
//! Rows that a reader stores for its own use, such as cached answers, cursors and operations, are in the reader's own
//! part ([`own`]).

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::Result;
use tiro_base::memory::{Draft, Kind};
use tiro_base::scope::{AuthorId, Scope, SessionId, Sessions, TenantId, Visibility};

/// The character between the names of a tenant and of an author.
pub(crate) const BETWEEN: char = '\u{1f}';

/// The key in `meta` that exists if the store has, or had, private rows.
const MARK: &str = "private";

/// The tables with an owner. The views of these tables contain the rows of the parts that the reader sees.
const OWNED: &[&str] = &[
    "session_aliases",
    "commit_ids",
    "purged",
    "summaries",
    "statements",
    "stashed",
    "blobs",
    "memory_counts",
    "stored_counts",
    "owner_counts",
    "stash_groups",
];

/// Tables without an owner, each with the condition that the reader sees the row `t`. Other tables without an owner are
/// only read together with a memory or a session.
const BESIDE: &[(&str, &str)] = &[
    ("memory_references", "t.memory IN (SELECT seq FROM temp.memories)"),
    ("operation_memories", "t.memory IN (SELECT seq FROM temp.memories)"),
    ("commit_sessions", "t.session IN (SELECT seq FROM temp.sessions)"),
    ("summary_attempts", "t.session IN (SELECT seq FROM temp.sessions)"),
    (
        "pending",
        "EXISTS (SELECT 1 FROM main.chunks c JOIN temp.memories m ON m.seq = c.memory WHERE c.seq = t.chunk)",
    ),
    (
        "vectors",
        "EXISTS (SELECT 1 FROM main.chunks c JOIN temp.memories m ON m.seq = c.memory WHERE c.seq = t.chunk)",
    ),
];

/// Returns the name of the private part of `author`. In a [`world`] without a shared part, there is no other part.
fn private_of(tenant: &TenantId, author: &AuthorId) -> String {
    match names(tenant.as_str()) {
        (_, Some(_)) => tenant.as_str().to_owned(),
        (tenant, None) => format!("{tenant}{BETWEEN}{}", author.as_str()),
    }
}

/// Returns the scope with which the statements of a call work. If what the tenant shares is hidden from the reader, the
/// scope is that of the reader's private part, as if this part were a store of its own: so no statement finds rows of
/// another part.
pub(crate) fn world(scope: &Scope) -> Scope {
    if scope.hides_shared() { within(scope, private(scope)) } else { scope.clone() }
}

/// Returns the name of the private part of the scope's reader.
pub(crate) fn private(scope: &Scope) -> String {
    private_of(&scope.tenant, &scope.reader)
}

/// Returns the name of the part for rows that the reader stores for its own use. If the reader is the tenant, the part
/// is the shared one.
pub(crate) fn own(scope: &Scope) -> String {
    if scope.is_own() { scope.tenant.as_str().to_owned() } else { private(scope) }
}

/// Returns the tenant of the part called `owner` and, if this part is private, its author.
pub(crate) fn names(owner: &str) -> (&str, Option<&str>) {
    owner.split_once(BETWEEN).map_or((owner, None), |(tenant, author)| (tenant, Some(author)))
}

/// Returns the names of the shared part and of the reader's private part. The scope may also be the scope of one of
/// these two parts. If the shared part is hidden, returns the name of the private part twice.
pub(crate) fn both(scope: &Scope) -> [String; 2] {
    if scope.hides_shared() {
        return [private(scope), private(scope)];
    }
    match names(scope.tenant.as_str()) {
        (tenant, Some(_)) => [tenant.to_owned(), scope.tenant.as_str().to_owned()],
        (tenant, None) => [tenant.to_owned(), private(scope)],
    }
}

/// Returns the SQL condition that `column` names any part, shared or private, of the tenant `?number`. The parameter may
/// also name one of these parts.
pub(crate) fn of_tenant(column: &str, number: usize) -> String {
    let tenant = tenant_of(&format!("?{number}"));
    format!("({column} = {tenant} OR ({column} > {tenant} || char(31) AND {column} < {tenant} || char(32)))")
}

/// Returns SQL that gives the name of the private part of the author in a column, who is the tenant if the column is empty.
/// The other column names any part of the same tenant.
pub(crate) fn private_of_author(part: &str, author: &str) -> String {
    let tenant = tenant_of(part);
    format!("{tenant} || char(31) || coalesce({author}, {tenant})")
}

/// Returns the SQL condition that both columns name parts of the same tenant.
pub(crate) fn of_one_tenant(one: &str, other: &str) -> String {
    format!("{} = {}", tenant_of(one), tenant_of(other))
}

/// Returns SQL that gives the tenant of the part that is named by `part`.
fn tenant_of(part: &str) -> String {
    format!("substr({part}, 1, instr({part} || char(31), char(31)) - 1)")
}

/// Returns the scope of the part called `owner`.
fn within(scope: &Scope, owner: impl Into<String>) -> Scope {
    Scope { tenant: TenantId::new(owner), ..scope.clone() }
}

/// Reads the author of a memory from the columns with its part and its author. The author is the tenant if there is
/// none in the second column.
pub(crate) fn author(row: &Row<'_>, (owner, author): (usize, usize)) -> rusqlite::Result<AuthorId> {
    row.get::<_, Option<String>>(author)?.map_or_else(
        || Ok(AuthorId::new(names(&row.get::<_, String>(owner)?).0)),
        |name| Ok(AuthorId::new(name)),
    )
}

/// Returns whether the store has private rows of any author.
pub(crate) fn has_private(connection: &Connection) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([MARK])?)
}

/// Returns the scope of the part `owner`. If this part is private, records in `meta` that there is a private part.
fn entered(connection: &Connection, scope: &Scope, owner: String) -> Result<Scope> {
    if names(&owner).1.is_some() {
        connection
            .prepare_cached("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, 1)")?
            .execute([MARK])?;
    }
    Ok(within(scope, owner))
}

/// Makes the views of a reading connection, if the store has private rows.
///
/// The views must not outlive the transaction in which they are made.
pub(crate) fn show(connection: &Connection, scope: &Scope) -> Result<()> {
    if !has_private(connection)? {
        return Ok(());
    }
    let quote = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let (tenant, private) = (quote(scope.tenant.as_str()), quote(&private(scope)));
    let seen = format!("t.owner IN ({tenant}, {private})");
    // While the reader has a private session with this name, the name doesn't mean the shared session.
    let is_named = format!(
        "{seen} AND (t.owner = {private} OR NOT EXISTS (
             SELECT 1 FROM main.sessions p WHERE p.owner = {private} AND p.name = t.name))"
    );
    let mut views =
        view(connection, "memories", &tenant, &seen)? + &view(connection, "sessions", &tenant, &is_named)?;
    for table in OWNED {
        views += &view(connection, table, &tenant, &seen)?;
    }
    for (table, which) in BESIDE {
        views += &view(connection, table, &tenant, which)?;
    }
    views += &format!(
        "CREATE TEMP VIEW versions AS SELECT {tenant} AS owner, sum(t.version) AS version FROM main.versions t
         WHERE {seen} HAVING count(*) > 0;"
    );
    connection.pragma_update(None, "query_only", false)?;
    let made = connection.execute_batch(&views);
    connection.pragma_update(None, "query_only", true)?;
    Ok(made?)
}

/// Returns the statement that makes a view of a table. The view contains the rows `t` that meet the condition `which`,
/// and names the tenant as their owner.
fn view(connection: &Connection, table: &str, tenant: &str, which: &str) -> Result<String> {
    let mut statement = connection.prepare_cached("SELECT name FROM pragma_table_info(?1, 'main')")?;
    let columns: Vec<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if columns.is_empty() {
        // Optional tables may be missing from a backup.
        return Ok(String::new());
    }
    let column = |name: &String| match name.as_str() {
        "owner" => format!("{tenant} AS owner"),
        name => format!("t.\"{name}\""),
    };
    let columns = columns.iter().map(column).collect::<Vec<_>>().join(", ");
    Ok(format!("CREATE TEMP VIEW \"{table}\" AS SELECT {columns} FROM main.\"{table}\" t WHERE {which};\n"))
}

/// Returns the clause by which a query over `memories AS m` uses an index, or nothing while the connection has views, because
/// a view has no index of its own.
pub(crate) fn indexed_by(connection: &Connection, index: &str) -> Result<String> {
    Ok(if has_views(connection)? { String::new() } else { format!("INDEXED BY {index}") })
}

/// Returns whether the connection has views, made by [`show`].
fn has_views(connection: &Connection) -> Result<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM sqlite_temp_schema WHERE type = 'view'")?.exists([])?)
}

/// Returns the scopes of the parts that the reader sees: the shared part, followed by the reader's private part, if
/// there is one. If a name means a private session of the reader, the scope of the shared part leaves the name out.
///
/// On a connection with views, returns only the scope itself, which covers both parts.
pub(crate) fn seen(connection: &Connection, scope: &Scope) -> Result<Vec<Scope>> {
    if scope.hides_shared() || !has_private(connection)? || has_views(connection)? {
        return Ok(vec![scope.clone()]);
    }
    let mine = within(scope, private(scope));
    let mut shared = scope.clone();
    if let Sessions::Only(names) = &mut shared.sessions {
        let mut left = Vec::new();
        for name in names.drain(..) {
            if in_part(connection, mine.tenant.as_str(), &name)?.is_none() {
                left.push(name);
            }
        }
        *names = left;
    }
    Ok(vec![shared, mine])
}

/// Returns the row of the session in a part whose name (not an alias) is `name`.
fn in_part(connection: &Connection, owner: &str, name: &SessionId) -> Result<Option<i64>> {
    Ok(connection
        .prepare_cached("SELECT seq FROM sessions WHERE owner = ?1 AND name = ?2")?
        .query_row((owner, name.as_str()), |row| row.get(0))
        .optional()?)
}

/// Returns the row of the session whose name (not an alias) is `name`. The session is the reader's private session, if
/// there is one, or a shared session.
pub(crate) fn session_called(
    connection: &Connection,
    scope: &Scope,
    name: &SessionId,
) -> Result<Option<i64>> {
    match in_part(connection, &private(scope), name)? {
        Some(found) => Ok(Some(found)),
        None => in_part(connection, scope.tenant.as_str(), name),
    }
}

/// Returns the scope of the part that contains the session `name`. For a new session, returns the part that fits the
/// requested visibility, or the shared part if no visibility is requested.
pub(crate) fn of_session(
    connection: &Connection,
    scope: &Scope,
    name: &SessionId,
    said: Option<Visibility>,
) -> Result<Scope> {
    let mine = private(scope);
    let is_private = match said {
        _ if scope.hides_shared() => true,
        Some(visibility) => visibility == Visibility::Private,
        None => in_part(connection, &mine, name)?.is_some(),
    };
    if is_private { entered(connection, scope, mine) } else { Ok(scope.clone()) }
}

/// Returns the scope of the part that has the row `session`.
pub(crate) fn of_row(connection: &Connection, scope: &Scope, session: i64) -> Result<Scope> {
    let owner: String = connection
        .prepare_cached("SELECT owner FROM sessions WHERE seq = ?1")?
        .query_row([session], |row| row.get(0))?;
    Ok(within(scope, owner))
}

/// The place where a draft is stored.
pub(crate) struct Place {
    /// The scope of the part.
    pub part: Scope,
    /// The session. `None` also if the memory is shared but its session is private.
    pub session: Option<SessionId>,
}

/// Returns the place where a draft must be stored. If the draft names no visibility, it is as private as its session
/// and its sources.
pub(crate) fn of_draft(connection: &Connection, scope: &Scope, draft: &Draft) -> Result<Place> {
    let session = draft.session.clone();
    let author = draft.author.as_ref().unwrap_or(&scope.reader);
    let mine = private_of(&scope.tenant, author);
    if scope.hides_shared() || draft.visibility == Some(Visibility::Private) {
        return Ok(Place { part: entered(connection, scope, mine)?, session });
    }
    if !has_private(connection)? {
        return Ok(Place { part: scope.clone(), session });
    }
    let is_in_private = match &session {
        Some(session) => in_part(connection, &mine, session)?.is_some(),
        None => false,
    };
    if draft.visibility.is_none() {
        let mut sources = connection.prepare_cached("SELECT 1 FROM memories WHERE owner = ?1 AND id = ?2")?;
        let mut is_private = is_in_private;
        for id in &draft.references {
            is_private = is_private || sources.exists((&mine, id.as_str()))?;
        }
        if is_private {
            return Ok(Place { part: within(scope, mine), session });
        }
    }
    // A shared memory must not name a private session.
    let is_named = draft.kind == Kind::Message || !is_in_private;
    Ok(Place { part: scope.clone(), session: session.filter(|_| is_named) })
}

/// Returns the row of the memory `id` in the parts that the reader sees. The private part is searched first.
pub(crate) fn row_of(connection: &Connection, scope: &Scope, id: &str) -> Result<Option<(i64, bool)>> {
    for owner in [private(scope).as_str(), scope.tenant.as_str()] {
        let found = connection
            .prepare_cached("SELECT seq, tombstoned_at IS NULL FROM memories WHERE owner = ?1 AND id = ?2")?
            .query_row((owner, id), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the rows that the reader doesn't see. Such rows are forgotten together with their sources, but not reported to
/// the reader.
pub(crate) fn hidden(
    connection: &Connection,
    scope: &Scope,
    rows: impl Iterator<Item = i64>,
) -> Result<HashSet<i64>> {
    let mut hidden = HashSet::new();
    if !has_private(connection)? || has_views(connection)? {
        return Ok(hidden);
    }
    let mine = private(scope);
    let mut owner = connection.prepare_cached("SELECT owner FROM memories WHERE seq = ?1")?;
    for row in rows {
        let owner: Option<String> = owner.query_row([row], |row| row.get(0)).optional()?;
        let is_hidden = |owner: String| owner != mine && (scope.hides_shared() || names(&owner).1.is_some());
        if owner.is_some_and(is_hidden) {
            hidden.insert(row);
        }
    }
    Ok(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use tiro_base::filter::Filter;
    use tiro_base::scope::ProjectId;
    use tiro_conformance::fixture::message;
    use tiro_store::{Flavour, WriteMemories};

    /// Stores a message of `author` with a visibility.
    async fn say(store: &SqliteStore, scope: &Scope, visibility: Visibility) {
        let mut said = message("auth", &format!("{visibility:?}"));
        said.draft.visibility = Some(visibility);
        store.save(scope, vec![said], 1).await.unwrap();
    }

    /// Returns the plan of a query for the memories of a session, as a reading connection makes it.
    async fn plan(store: &SqliteStore, scope: &Scope) -> (bool, Vec<String>) {
        let planned = store.read(scope, |_, connection, scope| {
            let sql = "EXPLAIN QUERY PLAN SELECT m.text FROM memories m JOIN sessions s ON s.seq = m.session
                       WHERE m.owner = ?1 AND s.name = 'auth'";
            let mut statement = connection.prepare(sql)?;
            let steps = statement.query_map([scope.tenant.as_str()], |row| row.get("detail"))?;
            Ok((has_views(connection)?, steps.collect::<Result<_, _>>()?))
        });
        planned.await.unwrap()
    }

    /// On one's own machine, reads must stay as they are.
    #[tokio::test]
    async fn a_read_gets_views_only_if_something_is_private_and_only_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let scope = Scope::own(TenantId::new("ines"), project);
        let empty = plan(&store, &scope).await;
        assert!(!empty.0);
        say(&store, &scope, Visibility::Project).await;
        assert_eq!(plan(&store, &scope).await, empty);
        let petra = scope.read_by(AuthorId::new("petra"));
        say(&store, &petra, Visibility::Private).await;
        for reader in [&scope, &petra] {
            assert!(plan(&store, reader).await.0);
            // The connection is used again.
            let left = store.read_all(reader, |_, connection, _| {
                let rows =
                    connection.query_row("SELECT count(*) FROM memories", [], |row| row.get::<_, i64>(0));
                Ok((has_views(connection)?, rows?))
            });
            assert_eq!(left.await.unwrap(), (false, 2));
        }
    }

    /// A tenant whose name is the name of a part would read somebody else's private memories.
    #[tokio::test]
    async fn nobody_calls_himself_a_part_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let team = Scope::own(TenantId::new("team"), project.clone());
        let petra = team.read_by(AuthorId::new("petra"));
        say(&store, &petra, Visibility::Private).await;
        let thief = Scope::own(TenantId::new(private(&petra)), project);
        for scope in [&thief, &team.read_by(AuthorId::new(private(&petra)))] {
            let read = store.list(scope, &Filter::default(), None, 10).await;
            assert_eq!(read.unwrap_err().kind(), tiro_base::error::Kind::BadInput);
            let mut said = message("auth", "mine");
            said.draft.visibility = Some(Visibility::Private);
            assert!(store.save(scope, vec![said], 1).await.is_err());
        }
    }

    #[test]
    fn a_part_has_the_names_of_its_tenant_and_its_author() {
        assert_eq!(names("ines"), ("ines", None));
        let (tenant, author) = (TenantId::new("team"), AuthorId::new("petra"));
        assert_eq!(names(&private_of(&tenant, &author)), ("team", Some("petra")));
    }
}
