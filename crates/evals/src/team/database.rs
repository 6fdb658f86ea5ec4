//! Looks into a database of PostgreSQL, and makes one that is removed at the end.

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// A connection to a database, by the user that its address names.
pub struct Database {
    runtime: Runtime,
    client: Client,
}

/// A database that is removed when the value is dropped.
pub struct ThrowAway {
    server: String,
    name: String,
    /// The address of the database.
    pub url: String,
}

impl Database {
    /// Connects to the database at `url`.
    pub fn at(url: &str) -> Result<Database> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime
            .block_on(tokio_postgres::connect(url, NoTls))
            .context("connecting to the database that --database names")?;
        runtime.spawn(connection);
        Ok(Database { runtime, client })
    }

    /// Runs statements.
    pub fn run(&self, sql: &str) -> Result<()> {
        self.runtime.block_on(self.client.batch_execute(sql)).with_context(|| format!("running `{sql}`"))
    }

    /// Returns the rows of a query, with each value as text.
    pub fn rows(&self, sql: &str) -> Result<Vec<SimpleQueryRow>> {
        let answer = self.runtime.block_on(self.client.simple_query(sql));
        let messages = answer.with_context(|| format!("running `{sql}`"))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// Returns the first column of a query.
    pub fn texts(&self, sql: &str) -> Result<Vec<String>> {
        let rows = self.rows(sql)?;
        Ok(rows.iter().map(|row| row.get(0).unwrap_or_default().to_owned()).collect())
    }

    /// Returns the only value of a query, which is a number.
    pub fn number(&self, sql: &str) -> Result<i64> {
        let texts = self.texts(sql)?;
        let first = texts.first().with_context(|| format!("`{sql}` gave no row"))?;
        first.parse().with_context(|| format!("`{sql}` gave `{first}`"))
    }

    /// Returns how many rows a statement changes; 0 if it is refused because other rows refer to them. Nothing stays
    /// changed.
    pub fn would_change(&self, sql: &str) -> Result<u64> {
        self.run("SAVEPOINT before")?;
        let changed = self.runtime.block_on(self.client.execute(sql, &[]));
        self.run("ROLLBACK TO SAVEPOINT before")?;
        match changed {
            // The rows of the own owner are referred to, so nothing can be said of others.
            Err(error) if error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => Ok(0),
            changed => changed.with_context(|| format!("running `{sql}`")),
        }
    }
}

impl ThrowAway {
    /// Makes a database with this name on the server that `url` names.
    pub fn create(url: &str, name: &str) -> Result<ThrowAway> {
        let (start, old) = url.rsplit_once('/').context("--database names no database")?;
        if !start.contains("//") {
            bail!("the address of the database ends with its name, as in `postgres://USER@HOST:5432/NAME`");
        }
        let settings = old.split_once('?').map_or(String::new(), |(_, settings)| format!("?{settings}"));
        let server = Database::at(url)?;
        server.run(&format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)"))?;
        server.run(&format!("CREATE DATABASE \"{name}\""))?;
        Ok(ThrowAway {
            server: url.to_owned(),
            name: name.to_owned(),
            url: format!("{start}/{name}{settings}"),
        })
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        let removed = Database::at(&self.server).and_then(|server| {
            server.run(&format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name))
        });
        if let Err(error) = removed {
            eprintln!("the database `{}` is left: {error:#}", self.name);
        }
    }
}
