//! The connections to a database, and its schema.
//!
//! Connections are opened when they are needed, kept in a pool, and driven by a thread of the pool's own, so that calls
//! of any runtime can use them. One that was lost meanwhile is noticed when its next statement fails, which is then run
//! again on another one.
//!
//! The schema is made or brought up to date by the first process that needs it; others wait. If the user of the
//! database is a superuser, the role [`ROLE`] does all the work, because row security doesn't bind superusers.

mod migrate;
pub(crate) mod seen;
mod sizes;
pub(crate) mod sql;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use deadpool_postgres::{Hook, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};
use crate::news::News;
use crate::search::counts::Counts;
use crate::search::graphs::Graphs;
use tiro_base::error::{Kind, quoted};
use tiro_valkey::Valkey;

/// The role that owns the tables, if the user of the database is a superuser.
const ROLE: &str = "tiro";

/// The name of the schema with Tiro's tables.
const SCHEMA: &str = "tiro";

/// The most connections that a process opens. Arbitrary: about as many as a database server has cores; more callers wait
/// for their turn.
const MOST_CONNECTIONS: usize = 16;

/// How long a call waits for a connection. As long as a write waits for other writers.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a read may take, in milliseconds.
const LONGEST_READ_MS: u64 = 60_000;

/// A database with the stores of many tenants. A clone shares the connections.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    /// How a connection beside the pool is made.
    config: Config,
    schema: String,
    place: String,
    /// Whether the schema is known to be up to date.
    is_ready: tokio::sync::OnceCell<()>,
    /// The numbers of known parts of stores, by tenant, project and author. They never change.
    owners: Mutex<HashMap<(String, String, String), i64>>,
    /// How many documents contain a stem.
    counts: Counts,
    /// Which lists of vectors have an index.
    graphs: Graphs,
    /// How many memories this process stored since it last looked how large the tables are.
    stored: AtomicUsize,
    /// The first database of the installation, unless this is the only one.
    first: OnceLock<Weak<Inner>>,
    /// What the processes of the installation tell each other through this database.
    news: Arc<News>,
    /// What the servers share beside the database.
    shared_cache: OnceLock<Valkey>,
    /// The id of the database.
    id: tokio::sync::OnceCell<i64>,
    /// Drives the connections. It is taken when the value is dropped.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // An ordinary shutdown would block, which is not allowed in a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Database {
    /// Returns the database at `url`, such as `postgres://user:password@host:5432/name`. Nothing is connected yet.
    ///
    /// Errors with [`Kind::BadInput`] if `url` is not the address of a database.
    pub fn at(url: &str) -> tiro_base::error::Result<Database> {
        Ok(Database::in_schema(url, SCHEMA)?)
    }

    /// Returns the database at `url`, with the tables in the schema `schema`.
    pub(crate) fn in_schema(url: &str, schema: &str) -> Result<Database> {
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let message = "the address of the database is not understood";
            Error::new(Kind::BadInput, message)
                .source(error)
                .hint("write it as `postgres://USER:PASSWORD@HOST:5432/DATABASE`")
        })?;
        config.application_name("tiro").connect_timeout(PATIENCE).keepalives_idle(Duration::from_secs(60));
        let place = place(&config);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tiro-postgres")
            .enable_all()
            .build()
            .map_err(|error| Error::new(Kind::Io, "cannot start a thread for connections").source(error))?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let settings = format!(
            "SET search_path = \"{schema}\", public; SET statement_timeout = {LONGEST_READ_MS};
             SET idle_in_transaction_session_timeout = {LONGEST_READ_MS};"
        );
        let set_up = Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(async move {
                let row =
                    client.query_one("SELECT rolsuper FROM pg_roles WHERE rolname = current_user", &[]).await;
                let is_super = row.and_then(|row| row.try_get::<_, bool>(0));
                let role = match is_super {
                    Ok(true) => migrate::become_role(),
                    Ok(false) => String::new(),
                    Err(error) => return Err(deadpool_postgres::HookError::Backend(error)),
                };
                let done = client.batch_execute(&(role + &settings)).await;
                done.map_err(deadpool_postgres::HookError::Backend)
            })
        });
        let pool = Pool::builder(Manager::from_config(config.clone(), tls()?, recycling))
            .max_size(MOST_CONNECTIONS)
            // The connection that was used last has the statements prepared, and their plans.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .post_create(set_up)
            .build()
            .map_err(|error| Error::new(Kind::Store, "cannot make a pool of connections").source(error))?;
        let inner = Inner {
            pool,
            config,
            schema: schema.to_owned(),
            place,
            is_ready: tokio::sync::OnceCell::new(),
            owners: Mutex::default(),
            counts: Counts::default(),
            graphs: Graphs::default(),
            stored: AtomicUsize::new(0),
            first: OnceLock::new(),
            news: Arc::default(),
            shared_cache: OnceLock::new(),
            id: tokio::sync::OnceCell::new(),
            runtime: Some(runtime),
        };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// Returns where the database is, without the user's password.
    pub fn place(&self) -> &str {
        &self.inner.place
    }

    /// Returns the name of the schema with the tables.
    pub(crate) fn schema(&self) -> &str {
        &self.inner.schema
    }

    /// Returns a connection to the database, whose schema is up to date.
    pub(crate) async fn connection(&self) -> Result<Object> {
        self.inner.is_ready.get_or_try_init(|| migrate::migrate(self)).await?;
        self.connect().await
    }

    /// Returns a connection to the database, whatever its schema is.
    pub(crate) async fn connect(&self) -> Result<Object> {
        let pool = self.inner.pool.clone();
        let Some(runtime) = &self.inner.runtime else { return Err(ended()) };
        // The connection is driven by the runtime in which it is opened.
        match runtime.spawn(async move { pool.get().await }).await {
            Ok(connection) => Ok(connection?),
            Err(_) => Err(ended()),
        }
    }

    /// Runs `work` to its end, on the thread of the connections, for what can't be asynchronous. The program must never
    /// wait like this: all of its threads would wait for connections that calls hold which no thread continues.
    #[cfg(test)]
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let Some(runtime) = &self.inner.runtime else { return Err(ended()) };
        let (done, is_done) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            // The receiver waits until this is sent.
            let _ = done.send(work.await);
        });
        is_done.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the number of the part of a store, if this process knows it.
    pub(crate) fn known_owner(&self, tenant: &str, project: &str, author: &str) -> Option<i64> {
        let known = self.inner.owners.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(tenant.to_owned(), project.to_owned(), author.to_owned())).copied()
    }

    /// Remembers the number of the part of a store. The part must be committed.
    pub(crate) fn remember_owner(&self, (tenant, project, author): (&str, &str, &str), owner: i64) {
        /// More are forgotten at once. Arbitrary: some megabytes.
        const MOST: usize = 100_000;
        let mut known = self.inner.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert((tenant.to_owned(), project.to_owned(), author.to_owned()), owner);
    }

    /// Returns the cache of how many documents contain a stem.
    pub(crate) fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// Returns which lists of vectors have an index.
    pub(crate) fn graphs(&self) -> &Graphs {
        &self.inner.graphs
    }

    /// Runs `work` on the thread of the connections, while the caller goes on. It ends with the process.
    pub(crate) fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.inner.runtime {
            drop(runtime.spawn(work));
        }
    }

    /// Makes `first` the first database of the installation.
    pub(crate) fn come_after(&self, first: &Database) {
        // It is set once, when the program starts.
        let _ = self.inner.first.set(Arc::downgrade(&first.inner));
    }

    /// Returns the first database of the installation, through which its processes tell each other of changes; `None` if it
    /// was closed.
    pub(crate) fn first(&self) -> Option<Database> {
        match self.inner.first.get() {
            Some(first) => first.upgrade().map(|inner| Database { inner }),
            None => Some(self.clone()),
        }
    }

    /// Returns what the processes of the installation tell each other through this database.
    pub(crate) fn news(&self) -> &Arc<News> {
        &self.inner.news
    }

    /// Returns how a connection beside the pool is made.
    pub(crate) fn config(&self) -> Config {
        self.inner.config.clone()
    }

    /// Lets all servers of the database share cached answers in `valkey`.
    pub(crate) fn share_cache(&self, valkey: Valkey) {
        // It is set once, when the program starts.
        let _ = self.inner.shared_cache.set(valkey);
    }

    /// Returns where the servers share cached answers, if they do.
    pub(crate) fn shared_cache(&self) -> Option<&Valkey> {
        self.inner.shared_cache.get()
    }

    /// Returns the id of the database, which no other database has.
    pub(crate) async fn id(&self) -> Result<i64> {
        let read = async || -> Result<i64> {
            let connection = self.connection().await?;
            Ok(connection.query_one("SELECT value FROM meta WHERE key = 'id'", &[]).await?.try_get(0)?)
        };
        self.inner.id.get_or_try_init(read).await.copied()
    }

    /// Closes all connections that no call uses.
    pub(crate) fn close(&self) {
        self.inner.pool.retain(|_, _| false);
    }

    /// Returns whether no call uses a connection.
    pub(crate) fn is_idle(&self) -> bool {
        let status = self.inner.pool.status();
        status.size == status.available
    }
}

/// Returns what encrypts connections, if the server can: `sslmode` in the address asks for it (`require`) or forbids it
/// (`disable`). The server's certificate is checked as the system does.
pub(crate) fn tls() -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let cannot = |error: rustls::Error| Error::new(Kind::Io, "cannot set up TLS").source(error);
    let versions =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(cannot)?.with_platform_verifier().map_err(cannot)?;
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// Returns the error of a call on a database that was closed.
fn ended() -> Error {
    Error::new(Kind::Store, "the connections to the database were closed")
}

/// Returns the host, the port and the name of the database.
fn place(config: &Config) -> String {
    use tokio_postgres::config::Host;
    let host = config.get_hosts().first().map_or("localhost".to_owned(), |host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let name = config.get_dbname().unwrap_or_default();
    quoted(format!("postgres://{host}:{port}/{name}")).to_string()
}
