//! Makes the schema, and brings it up to date.
//!
//! Migrations are numbered and only added. `meta` has the number of the last one, and the oldest versions of the schema
//! with which programs may read and write it: after a migration that only adds, replicas of an older version go on.

use super::{Database, ROLE};
use crate::error::{Error, Result};
use tiro_base::error::Kind;

/// The migrations, oldest first.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_store.sql"),
    include_str!("../../migrations/0002_triggers.sql"),
    include_str!("../../migrations/0003_rows.sql"),
    include_str!("../../migrations/0004_registry.sql"),
    include_str!("../../migrations/0005_members.sql"),
    include_str!("../../migrations/0006_databases.sql"),
    include_str!("../../migrations/0007_exchange.sql"),
    include_str!("../../migrations/0008_searches.sql"),
    include_str!("../../migrations/0009_removal.sql"),
];

/// The oldest schema version that a program must know to read and to write a database with the newest schema.
const OLDEST_KNOWN: i64 = 8;

/// The oldest version of PostgreSQL that is supported: 16.
const OLDEST_SERVER: i32 = 160_000;

/// The key of the lock under which one process migrates.
const LOCK: i64 = 0x7469_726f;

/// Returns the statements by which a superuser becomes the role that owns the tables.
pub(super) fn become_role() -> String {
    format!(
        "DO $$ BEGIN
             IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE} NOLOGIN; END IF;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
         SET ROLE {ROLE};"
    )
}

/// Brings the schema up to date. Several processes may call it at once.
///
/// Errors with [`Kind::Store`] if the server is too old, if `pgvector` is missing, if row security doesn't bind the user,
/// or if a newer Tiro changed the schema so that this program may not use it.
pub(super) async fn migrate(database: &Database) -> Result<()> {
    let mut connection = database.connect().await?;
    let schema = database.schema();
    let sql = "SELECT current_setting('server_version_num')::int, rolsuper OR rolbypassrls
        FROM pg_roles WHERE rolname = current_user";
    let row = connection.query_one(sql, &[]).await?;
    if row.get::<_, i32>(0) < OLDEST_SERVER {
        return Err(Error::new(Kind::Store, "this version of PostgreSQL is too old")
            .hint("use PostgreSQL 16 or newer"));
    }
    if row.get(1) {
        let message = "row security doesn't bind the user of the database, so it doesn't keep readers apart";
        return Err(Error::new(Kind::Store, message).hint(format!(
            "connect as a user without such rights; the role `{ROLE}` must not be a superuser either"
        )));
    }
    let version = version(&connection, schema).await?;
    if version == MIGRATIONS.len() as i64 {
        return Ok(());
    }
    if version == 0 {
        prepare(&connection, schema).await?;
    }
    let transaction = connection.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let version = self::version(transaction.client(), schema).await?;
    for (number, sql) in (0_i64..).zip(MIGRATIONS).skip(version as usize) {
        transaction.batch_execute(sql).await.map_err(|error| {
            Error::new(Kind::Store, format!("the database can't be brought to version {}", number + 1))
                .source(error)
        })?;
    }
    let newest = MIGRATIONS.len() as i64;
    transaction
        .execute(
            "INSERT INTO meta (key, value) VALUES ('version', $1), ('oldest_known', $2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[&newest, &OLDEST_KNOWN],
        )
        .await?;
    Ok(transaction.commit().await?)
}

/// Returns the version of the schema; 0 if there is none.
async fn version(client: &tokio_postgres::Client, schema: &str) -> Result<i64> {
    // `to_regclass` might answer from what the connection knew before it waited for the lock.
    let there = "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'meta')";
    let row = client.query_one(there, &[&schema]).await?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client
        .query_one(
            "SELECT coalesce(max(value) FILTER (WHERE key = 'version'), 0),
                 coalesce(max(value) FILTER (WHERE key = 'oldest_known'), 0) FROM meta",
            &[],
        )
        .await?;
    let (version, oldest_known): (i64, i64) = (row.get(0), row.get(1));
    if version > MIGRATIONS.len() as i64 && oldest_known > MIGRATIONS.len() as i64 {
        return Err(
            Error::new(Kind::Store, "the database was upgraded by a newer Tiro").hint("upgrade this server")
        );
    }
    Ok(version.min(MIGRATIONS.len() as i64))
}

/// Makes the schema and the extension, as the user of the connection, who may do what the role may not.
async fn prepare(connection: &tokio_postgres::Client, schema: &str) -> Result<()> {
    let row = connection.query_one("SELECT session_user <> current_user", &[]).await?;
    let is_role = row.get::<_, bool>(0);
    if is_role {
        connection.batch_execute("RESET ROLE").await?;
    }
    // Several processes may do this at once; all but one get an error, and look again.
    let authorization = if is_role { format!("AUTHORIZATION {ROLE}") } else { String::new() };
    let statements = [
        "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public".to_owned(),
        format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\" {authorization}"),
    ];
    let mut failed = None;
    for sql in statements {
        for _ in 0..3 {
            failed = connection.batch_execute(&sql).await.err();
            if failed.is_none() {
                break;
            }
        }
        if let Some(error) = failed.take() {
            let hint = "the user of the database must be allowed to make the extension `vector` (pgvector) and a schema; \
                 or a superuser makes both before";
            return Err(Error::new(Kind::Store, "the database can't be prepared").source(error).hint(hint));
        }
    }
    if is_role {
        connection.batch_execute(&format!("SET ROLE {ROLE}")).await?;
    }
    Ok(())
}
