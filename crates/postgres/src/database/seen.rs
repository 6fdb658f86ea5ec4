//! The parts of a store that a reader sees.

use deadpool_postgres::Client;

use super::Database;
use crate::PostgresStore;
use crate::error::Result;
use tiro_base::scope::Scope;

/// The number of a part that doesn't exist. No row has it.
pub(crate) const NO_OWNER: i64 = 0;

/// The parts of a store that a reader sees.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The part that the tenant shares; [`NO_OWNER`] if nothing was written to the store yet. If this part is hidden from
    /// the reader, it is the reader's private part, which then has everything.
    pub shared: i64,
    /// The reader's private part; [`NO_OWNER`] if there is none.
    pub mine: i64,
    /// The part by whose row writers of the store take turns: the one that the tenant shares.
    pub turn: i64,
    /// Both parts, each once, for `owner = ANY ($n)`. Never empty.
    pub parts: Vec<i64>,
}

impl Seen {
    fn new(turn: i64, shared: i64, mine: i64) -> Seen {
        let mut parts = vec![shared, mine];
        // Lists read part by part, and would have everything twice.
        parts.dedup();
        Seen { shared, mine, turn, parts }
    }
}

/// Returns the parts that the scope's reader sees.
pub(crate) async fn seen(database: &Database, client: &Client, scope: &Scope) -> Result<Seen> {
    let (tenant, project, reader) = (scope.tenant.as_str(), scope.project.as_str(), scope.reader.as_str());
    let authors = ["", reader];
    let mut found = authors.map(|author| database.known_owner(tenant, project, author));
    if found.contains(&None) {
        let sql = "SELECT author, seq FROM owners WHERE tenant = $1 AND project = $2 AND author = ANY ($3)";
        let statement = client.prepare_cached(sql).await?;
        for row in client.query(&statement, &[&tenant, &project, &&authors[..]]).await? {
            let (author, owner): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
            database.remember_owner((tenant, project, author), owner);
            for (place, _) in authors.iter().enumerate().filter(|(_, own)| **own == author) {
                found[place] = Some(owner);
            }
        }
    }
    let [shared, mine] = found.map(|owner| owner.unwrap_or(NO_OWNER));
    Ok(Seen::new(shared, if scope.hides_shared() { mine } else { shared }, mine))
}

impl PostgresStore {
    /// Like [`seen`], but makes the shared part if there is none, so that it can be locked. Also makes the private part of
    /// a reader from whom the shared part is hidden.
    pub(crate) async fn seen_for_writing(&self, client: &Client, scope: &Scope) -> Result<Seen> {
        let database = self.database();
        let seen = seen(database, client, scope).await?;
        if seen.turn != NO_OWNER && seen.shared != NO_OWNER {
            return Ok(seen);
        }
        make(client, scope, "").await?;
        if scope.hides_shared() {
            make(client, scope, scope.reader.as_str()).await?;
        }
        self::seen(database, client, scope).await
    }
}

/// Makes a part, unless it exists.
async fn make(client: &Client, scope: &Scope, author: &str) -> Result<()> {
    client
        .execute(
            "INSERT INTO owners (tenant, project, author) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            &[&scope.tenant.as_str(), &scope.project.as_str(), &author],
        )
        .await?;
    Ok(())
}
