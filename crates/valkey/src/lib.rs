//! What the servers of a team share beside their database: cached answers, and how often callers call. It is in Valkey
//! or Redis.
//!
//! Everything in it may be lost at any moment. A cached answer is made again. Without the common rates, each server
//! bounds its callers by itself. So no method fails: if Valkey doesn't answer in time, it is as if it had nothing, and it
//! isn't asked again for a second.
//!
//! The cached answers of a group are one hash, so that a purge removes them at once ([`Valkey::drop_group`]).
//!
//! It is not: a place for anything that must stay.

mod rate;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fred::clients::Client;
use fred::interfaces::{ClientLike, HashesInterface, KeysInterface, LuaInterface};
use fred::types::Builder;
use fred::types::config::{Config, ReconnectPolicy, TlsConnector, TlsHostMapping};
use rustls_platform_verifier::BuilderVerifierExt;

use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Millis;

pub use rate::Rate;

/// How long an answer of Valkey may take. Arbitrary: it takes a fraction of a millisecond in one data center, and making
/// a cached answer again takes about this long.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long Valkey is not asked after it failed to answer in time.
const QUIET: Duration = Duration::from_secs(1);

/// The longest time for which an answer is kept. A purge that can't reach Valkey leaves answers in it for this long.
const LONGEST_TTL: Millis = 60 * 60 * 1000;

/// The largest answer that is kept, in bytes. Arbitrary: contexts have some tens of kilobytes.
const LARGEST: usize = 1 << 20;

/// The most answers of a group. When there are as many, all are removed. Arbitrary: some tens of megabytes.
const MOST: usize = 1000;

/// Stores the field `ARGV[1]` of the hash `KEYS[1]`. Empties a hash with `ARGV[4]` fields before. The hash leaves
/// `ARGV[3]` milliseconds after its last change.
const PUT: &str = "if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1";

/// A connection to Valkey or Redis, which is opened again whenever it is lost. A clone shares it.
#[derive(Clone)]
pub struct Valkey {
    /// What all clones share.
    inner: Arc<Inner>,
}

/// A connection, and when it failed last.
struct Inner {
    /// The client, which opens the connection.
    client: Client,
    /// When [`Inner::quiet_until`] is counted from.
    began: Instant,
    /// Until when Valkey is not asked, in milliseconds since `began`.
    quiet_until: AtomicU64,
    /// Drives the connection. It is taken when the value is dropped.
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

impl Valkey {
    /// Returns a connection to the server at `url`, such as `redis://user:password@host:6379/0`, or `rediss://` with TLS.
    /// Doesn't wait for it.
    ///
    /// Errors with [`Kind::BadInput`] if `url` is not the address of a server.
    pub fn at(url: &str) -> Result<Valkey> {
        let not_understood = |error: fred::error::Error| {
            Error::bad_input("the address of Valkey is not understood")
                .source(error)
                .hint("write it as `redis://USER:PASSWORD@HOST:6379/0`, or with `rediss://` for TLS")
        };
        let mut config = Config::from_url(url).map_err(not_understood)?;
        if config.tls.is_some() {
            config.tls =
                Some(fred::types::config::TlsConfig { connector: tls()?, hostnames: TlsHostMapping::None });
        }
        config.fail_fast = false;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tiro-valkey")
            .enable_all()
            .build()
            .map_err(|error| Error::new(Kind::Io, "cannot start a thread for Valkey").source(error))?;
        let client = Builder::from_config(config)
            .with_connection_config(|connection| {
                connection.connection_timeout = Duration::from_secs(2);
                connection.internal_command_timeout = Duration::from_secs(2);
                connection.max_command_attempts = 1;
                connection.max_command_buffer_len = 1024;
            })
            .with_performance_config(|performance| performance.default_command_timeout = PATIENCE)
            .set_policy(ReconnectPolicy::new_exponential(0, 100, 5_000, 2))
            .build()
            .map_err(not_understood)?;
        let entered = runtime.enter();
        drop(client.connect());
        drop(entered);
        let quiet_until = AtomicU64::new(0);
        let inner = Inner { client, began: Instant::now(), quiet_until, runtime: Some(runtime) };
        Ok(Valkey { inner: Arc::new(inner) })
    }

    /// Returns the answer of the group that is cached under `key`, if it is not too old at the time `now`.
    pub async fn cached(&self, group: &str, key: [u8; 32], now: Millis) -> Option<String> {
        let client = self.client()?;
        let found: Option<Vec<u8>> = self.told(client.hget(group_key(group), key.as_slice()).await)?;
        let found = found?;
        let (expires, body) = found.split_first_chunk::<8>()?;
        (Millis::from_be_bytes(*expires) > now).then(|| String::from_utf8(body.to_vec()).ok())?
    }

    /// Caches an answer of the group under `key` for `ttl` milliseconds, but no longer than an hour.
    pub async fn cache(&self, group: &str, key: [u8; 32], body: &str, now: Millis, ttl: Millis) {
        let ttl = ttl.min(LONGEST_TTL);
        let Some(client) = self.client().filter(|_| body.len() <= LARGEST && ttl > 0) else { return };
        let value = [now.saturating_add(ttl).to_be_bytes().as_slice(), body.as_bytes()].concat();
        let arguments: Vec<fred::types::Value> = vec![
            fred::types::Value::Bytes(key.to_vec().into()),
            fred::types::Value::Bytes(value.into()),
            ttl.into(),
            (MOST as i64).into(),
        ];
        let _: Option<i64> = self.told(client.eval(PUT, group_key(group), arguments).await);
    }

    /// Removes all cached answers of the group. Returns whether Valkey said that they are gone; if not, they leave within
    /// an hour.
    pub async fn drop_group(&self, group: &str) -> bool {
        // It is asked also if it didn't answer a moment ago.
        let gone: Option<i64> = self.told(self.inner.client.del(group_key(group)).await);
        gone.is_some()
    }

    /// Returns the connection, unless it failed a moment ago.
    fn client(&self) -> Option<&Client> {
        let now = self.inner.began.elapsed().as_millis() as u64;
        (self.inner.quiet_until.load(Ordering::Relaxed) <= now).then_some(&self.inner.client)
    }

    /// Returns what Valkey answered. Doesn't ask it for a while after an error.
    fn told<T>(&self, answer: std::result::Result<T, fred::error::Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                let until = self.inner.began.elapsed() + QUIET;
                self.inner.quiet_until.store(until.as_millis() as u64, Ordering::Relaxed);
                tracing::debug!(%error, "valkey did not answer");
                None
            }
        }
    }
}

/// Returns the key of the hash with the answers of a group.
fn group_key(group: &str) -> String {
    format!("tiro:answers:{group}")
}

/// Returns what encrypts connections. The server's certificate is checked as the system does.
fn tls() -> Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let cannot = |error: rustls::Error| Error::new(Kind::Io, "cannot set up TLS").source(error);
    let versions =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(cannot)?.with_platform_verifier().map_err(cannot)?;
    Ok(TlsConnector::from(config.with_no_client_auth()))
}

#[cfg(test)]
mod tests;
