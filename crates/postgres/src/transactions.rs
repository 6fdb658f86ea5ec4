//! Runs reads and writes in transactions.
//!
//! A read is one transaction that sees the store as it was at one moment. A write is one transaction that first locks
//! its store, and that is durable when the call returns. If the connection is lost before the commit, or if two
//! transactions waited for each other, the transaction is run again.
//!
//! The lock is that of the shared part's row. It is weak enough for rows that refer to the part, so that leases and
//! cached answers are written meanwhile.

use std::time::{Duration, Instant};

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::PostgresStore;
use crate::database::Database;
use crate::database::seen::{Seen, seen};
use crate::error::{Error, Result};
use crate::news::Key;
use crate::news::tell::tell;
use tiro_base::error::Kind;
use tiro_base::scope::{ProjectId, Scope};

/// How long a write waits for other writers, and how long it is repeated.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// An open transaction, and the parts of the store that its reader sees. If it is dropped before its end, its
/// connection is closed, and the server undoes it.
pub(crate) struct Transaction {
    connection: Option<Object>,
    /// The parts of the store.
    pub seen: Seen,
    /// What the other processes are told after the commit.
    told: Option<(Database, Key)>,
}

/// Whether the effect of a write must be on the disk when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It must.
    Synced,
    /// It may be lost in a crash of the database server: a cache, a lease.
    Unsynced,
}

/// Runs a block in the transaction that `$begin` begins, and again if that may help. The block may be run several times,
/// so it must not give away what it captured.
macro_rules! transact {
    ($begin:expr, $tx:ident => $work:block) => {{
        let mut tries = crate::transactions::Tries::new();
        loop {
            let done: crate::error::Result<_> = match $begin.await {
                Ok($tx) => {
                    let done: crate::error::Result<_> = async { $work }.await;
                    match done {
                        Ok(value) => $tx.end().await.map(|()| value),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            };
            match done {
                Err(error) if tries.again(&error).await => {}
                done => break done.map_err(tiro_base::error::Error::from),
            }
        }
    }};
}

/// Runs a block in a transaction that reads: `read!(store, scope, tx => { ... Ok(value) })`. The block gets the
/// transaction as `tx` and ends with a result.
macro_rules! read {
    ($store:expr, $scope:expr, $tx:ident => $work:block) => {
        crate::transactions::transact!($store.begin_read($scope), $tx => $work)
    };
}

/// Runs a block in a transaction that writes: `write!(store, scope, tx => { ... Ok(value) })`. The block may be run
/// several times, so it must not give away what it captured.
macro_rules! write {
    ($store:expr, $scope:expr, $tx:ident => $work:block) => {
        crate::transactions::write!($store, $scope, crate::transactions::Durability::Synced, $tx => $work)
    };
    ($store:expr, $scope:expr, $durability:expr, $tx:ident => $work:block) => {
        crate::transactions::transact!($store.begin_write($scope, $durability), $tx => $work)
    };
}

/// Like [`write!`], for rows beside the memories: see [`PostgresStore::begin_light`].
macro_rules! write_light {
    ($store:expr, $scope:expr, $durability:expr, $tx:ident => $work:block) => {
        crate::transactions::transact!(
            $store.begin_light($scope, $durability, crate::transactions::PATIENCE),
            $tx => $work
        )
    };
}

pub(crate) use {read, transact, write, write_light};

/// Decides whether a transaction is run again.
pub(crate) struct Tries {
    began: Instant,
    count: u32,
}

impl Tries {
    pub fn new() -> Tries {
        Tries { began: Instant::now(), count: 0 }
    }

    /// Returns whether to try again after `error`, and waits before.
    pub async fn again(&mut self, error: &Error) -> bool {
        /// The first pause; each further one is twice as long.
        const FIRST: Duration = Duration::from_millis(20);
        if !error.is_passing() || self.began.elapsed() >= PATIENCE {
            return false;
        }
        tokio::time::sleep(FIRST * 2_u32.pow(self.count.min(6))).await;
        self.count += 1;
        true
    }
}

impl PostgresStore {
    /// Begins a transaction that sees the store as it is now. Rows of other parts than those that the reader sees don't
    /// exist for it.
    pub(crate) async fn begin_read(&self, scope: &Scope) -> Result<Transaction> {
        self.admit(scope)?;
        let database = self.database();
        let connection = database.connection().await?;
        let seen = seen(database, &connection, scope).await?;
        let owners = joined(&seen.parts);
        let begin =
            format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL tiro.owners = '{owners}'");
        connection.batch_execute(&begin).await?;
        Ok(Transaction::begun(connection, seen))
    }

    /// Begins a transaction that writes to the store, as soon as no other one does. It sees all parts of the store,
    /// because what is derived from a memory is forgotten with it, whoever can see it. The statements themselves name
    /// the parts that they change.
    pub(crate) async fn begin_write(&self, scope: &Scope, durability: Durability) -> Result<Transaction> {
        self.admit(scope)?;
        let database = self.database();
        let connection = database.connection().await?;
        let seen = self.seen_for_writing(&connection, scope).await?;
        let begin = begin(durability, PATIENCE);
        connection.batch_execute(&begin).await?;
        let mut transaction = Transaction::begun(connection, seen);
        transaction
            // A lock that lets others refer to the row, so that leases and caches needn't wait.
            .execute("SELECT FROM owners WHERE seq = $1 FOR NO KEY UPDATE", &[&transaction.seen.turn])
            .await?;
        transaction.see_store().await?;
        // Nobody follows the memories that belong to no project.
        if durability == Durability::Synced && scope.project != ProjectId::owner_wide() {
            transaction.told = Some((database.clone(), Key::of(&scope.tenant, &scope.project)));
        }
        Ok(transaction)
    }

    /// Begins a transaction that writes rows beside the memories: leases, and what a reader keeps for its own use, such as
    /// cached answers. It waits for no write of memories, however long that takes, and several such transactions run at
    /// once. So each statement must be right by itself: it locks the rows that it decides about. Waits for a row at most
    /// `patience`.
    pub(crate) async fn begin_light(
        &self,
        scope: &Scope,
        durability: Durability,
        patience: Duration,
    ) -> Result<Transaction> {
        self.admit(scope)?;
        let connection = self.database().connection().await?;
        let seen = self.seen_for_writing(&connection, scope).await?;
        let owners = joined(&seen.parts);
        let begin = begin(durability, patience) + &format!("SET LOCAL tiro.owners = '{owners}'");
        connection.batch_execute(&begin).await?;
        Ok(Transaction::begun(connection, seen))
    }

    /// Waits until a write could begin, but no longer than `patience`.
    pub(crate) async fn await_turn(&self, scope: &Scope, patience: Duration) -> tiro_base::error::Result<()> {
        let until = tokio::time::timeout(patience, self.begin_write(scope, Durability::Unsynced));
        match until.await {
            Ok(begun) => Ok(begun?.end().await?),
            Err(_) => Err(tiro_base::error::Error::new(Kind::Busy, "another process writes to the store")),
        }
    }
}

/// Returns the statements that begin a transaction which writes.
fn begin(durability: Durability, patience: Duration) -> String {
    let commit = match durability {
        Durability::Synced => "",
        Durability::Unsynced => "SET LOCAL synchronous_commit = off;",
    };
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {}; {commit}",
        patience.as_millis()
    )
}

/// Returns the numbers, separated by commas.
pub(crate) fn joined(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

impl Transaction {
    /// Returns a transaction on the connection, which has begun it.
    pub fn begun(connection: Object, seen: Seen) -> Transaction {
        Transaction { connection: Some(connection), seen, told: None }
    }

    /// Lets the transaction see all parts of the store. For a transaction that reads, which sees only the parts of its
    /// reader otherwise; its statements must then name the parts that they read.
    pub async fn see_store(&self) -> Result<()> {
        self.execute(
            "SELECT set_config('tiro.owners', string_agg(o.seq::text, ','), true)
             FROM owners s JOIN owners o ON o.tenant = s.tenant AND o.project = s.project WHERE s.seq = $1",
            &[&self.seen.shared],
        )
        .await?;
        Ok(())
    }

    fn connection(&self) -> &Object {
        self.connection.as_ref().expect("the connection is taken only by `end` and `drop`")
    }

    /// Returns the rows of a query. Several queries can be on their way at once.
    pub async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
        let connection = self.connection();
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query(&statement, params).await?)
    }

    /// Returns the first row of a query, if there is one.
    pub async fn row(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    /// Returns the only row of a query that always has one.
    pub async fn only(&self, sql: &str, params: Params<'_>) -> Result<Row> {
        let connection = self.connection();
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query_one(&statement, params).await?)
    }

    /// Returns whether a query has rows.
    pub async fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool> {
        Ok(!self.rows(sql, params).await?.is_empty())
    }

    /// Runs a statement; returns how many rows it changed.
    pub async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64> {
        let connection = self.connection();
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.execute(&statement, params).await?)
    }

    /// Returns the rows of a query with the parameters that were bound to it.
    pub async fn query(&self, query: &crate::database::sql::Sql) -> Result<Vec<Row>> {
        self.rows(query.text(), &query.params()).await
    }

    /// Commits. If the connection is lost while it commits, nobody knows whether the changes are stored, so the
    /// transaction is not run again by itself. Afterwards, the other processes are told.
    pub async fn end(mut self) -> Result<()> {
        let connection = self.connection.take().expect("it is taken only here and by `drop`");
        match connection.batch_execute("COMMIT").await {
            Ok(()) => {
                if let Some((database, key)) = self.told.take() {
                    tell(&database, key, &self.seen.parts);
                }
                Ok(())
            }
            Err(error) => {
                drop(Object::take(connection));
                let unknown = error.is_closed();
                let error = Error::from(error);
                if unknown || error.kind() == Kind::Store {
                    let message = "the database was lost during the commit: the write may be stored or not";
                    return Err(Error::new(Kind::Store, message)
                        .source(error)
                        .hint("repeat the call: what is stored already is not stored twice"));
                }
                Err(error)
            }
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
