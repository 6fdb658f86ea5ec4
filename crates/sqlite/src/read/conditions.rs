//! Turns a scope and a filter into the conditions of a query over `memories AS m`.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use tiro_base::filter::{Expiry, Filter, Stash};
use tiro_base::scope::{Scope, SessionId, Sessions};

/// Conditions joined by AND, with the values of their `?` in order.
pub(crate) struct Conditions {
    pub sql: String,
    pub values: Vec<Value>,
}

impl Conditions {
    /// Returns the conditions that admit the living memories of the scope.
    pub fn of_scope(connection: &Connection, scope: &Scope) -> Result<Conditions> {
        let mut conditions = Conditions::with_forgotten(connection, scope)?;
        conditions.and("m.tombstoned_at IS NULL", []);
        Ok(conditions)
    }

    /// Returns the conditions that admit the memories of the scope, including forgotten ones.
    pub fn with_forgotten(connection: &Connection, scope: &Scope) -> Result<Conditions> {
        let owner = Value::from(scope.tenant.as_str().to_owned());
        let mut conditions = Conditions { sql: String::from("m.owner = ?"), values: vec![owner] };
        if let Some(sessions) = sessions(connection, scope)? {
            // The rows of the sessions are looked up once, before the query. In a query for one row, comparing the
            // names would take most of the time.
            let marks = vec!["?"; sessions.len()].join(", ");
            conditions.and(&format!("m.session IN ({marks})"), sessions.into_iter().map(Value::from));
        }
        Ok(conditions)
    }

    /// Narrows the conditions to the memories that `filter` admits.
    pub fn narrowed(mut self, filter: &Filter) -> Conditions {
        // The first condition of a scope is its owner.
        let owner = self.values[0].clone();
        let Filter { kinds, branch, path, topic, source_id, source, stash, since, until, without } = filter;
        if let Some(session) = without {
            let name = || Value::from(session.as_str().to_owned());
            self.and(
                "(m.session IS NULL OR m.session NOT IN (
                     SELECT seq FROM sessions WHERE owner = ? AND name = ?
                     UNION SELECT session FROM session_aliases WHERE owner = ? AND alias = ?))",
                [owner.clone(), name(), owner.clone(), name()],
            );
        }
        if let Some(kinds) = kinds {
            let marks = vec!["?"; kinds.len()].join(", ");
            self.and(
                &format!("m.kind IN ({marks})"),
                kinds.iter().map(|kind| kind.as_str().to_owned().into()),
            );
        }
        if let Some(branch) = branch {
            self.and("m.branch = ?", [branch.clone().into()]);
        }
        self.in_stash(*stash, topic.as_deref(), owner);
        if let Some(source) = source {
            self.and(
                "(m.source_id = ? OR m.seq IN (SELECT memory FROM memory_paths WHERE path = ?))",
                [source.clone().into(), source.clone().into()],
            );
        }
        if let Some(id) = source_id {
            // A commit that was rebased or cherry-picked has several ids. Answers show ten digits of an id. Fewer
            // digits could belong to several commits, so they are not accepted as the beginning of an id.
            let is_prefix = (10..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            let end = if is_prefix { format!("{id}g") } else { format!("{id}\0") };
            self.and(
                "(m.source_id = ? OR m.seq IN (SELECT memory FROM commit_ids WHERE sha >= ? AND sha < ?))",
                [id.clone().into(), id.clone().into(), end.into()],
            );
        }
        if let Some(path) = path {
            let path = path.trim_start_matches("./").trim_end_matches('/');
            // `0` follows `/` in ASCII, so the range contains exactly the paths below the directory.
            self.and(
                "m.seq IN (SELECT memory FROM memory_paths WHERE path = ? OR (path > ? AND path < ?))",
                [path.to_owned().into(), format!("{path}/").into(), format!("{path}0").into()],
            );
        }
        if let Some(since) = since {
            self.and("m.time >= ?", [(*since).into()]);
        }
        if let Some(until) = until {
            self.and("m.time < ?", [(*until).into()]);
        }
        self
    }

    /// Adds the conditions that a memory is in the stash, or is not left out of contexts because of the stash, and that
    /// it has the topic.
    fn in_stash(&mut self, stash: Option<Stash>, topic: Option<&str>, owner: Value) {
        match (stash, topic) {
            (Some(stash), topic) if stash.is_within() => {
                let living = match stash {
                    Stash::Unexpired(expiry) => format!(" AND {}", unexpired(expiry)),
                    _ => String::new(),
                };
                match topic {
                    Some(topic) => {
                        // The `+` keeps SQLite from reading all memories of the owner by their index.
                        self.sql = self.sql.replacen("m.owner = ?", "+m.owner = ?", 1);
                        self.and(
                            &format!("m.seq IN (SELECT x.memory FROM stashed x WHERE x.owner = ? AND x.topic = ?{living})"),
                            [owner.clone(), topic.to_owned().into()],
                        );
                    }
                    None => {
                        let sql = format!("EXISTS (SELECT 1 FROM stashed x WHERE x.memory = m.seq{living})");
                        self.and(&sql, []);
                    }
                }
            }
            (_, Some(topic)) => self.and("m.topic = ?", [topic.to_owned().into()]),
            (_, None) => {}
        }
        if stash == Some(Stash::Without) {
            let held = "EXISTS (SELECT 1 FROM stashed x WHERE x.memory = m.seq AND x.is_held_out)";
            self.and(&format!("NOT {held}"), []);
        }
    }

    fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.extend(values);
    }
}

/// Returns the SQL condition that the row `x`, the stash row of the memory `m`, is not expired. A memory also counts as
/// expired if it was stashed only because no summary covered it, and a summary covers it now.
pub(crate) fn unexpired(Expiry { now, made_before }: Expiry) -> String {
    // The two times are numbers, so they can be a part of the SQL text.
    format!(
        "(x.is_protected OR ((x.expires_at IS NULL OR x.expires_at > {now}) AND m.time >= {made_before}))
         AND NOT (x.cause = 'pruning' AND EXISTS (SELECT 1 FROM summaries u
             WHERE u.session = m.session AND m.ordinal BETWEEN u.first AND u.last))"
    )
}

/// Returns the row numbers of the sessions that the scope names by name or alias, in ascending order; `None` if
/// the scope has all sessions.
pub(crate) fn sessions(connection: &Connection, scope: &Scope) -> Result<Option<Vec<i64>>> {
    let Sessions::Only(ids) = &scope.sessions else { return Ok(None) };
    let marks = vec!["?"; ids.len()].join(", ");
    let owner_and_names = || std::iter::once(scope.tenant.as_str()).chain(ids.iter().map(SessionId::as_str));
    let sql = format!(
        "SELECT seq FROM sessions WHERE owner = ? AND name IN ({marks})
         UNION SELECT session FROM session_aliases WHERE owner = ? AND alias IN ({marks}) ORDER BY 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement
        .query_map(params_from_iter(owner_and_names().chain(owner_and_names())), |row| row.get(0))?;
    Ok(Some(rows.collect::<Result<_, _>>()?))
}
