//! The rates of callers over all servers of a team, where the servers share them in Valkey.
//!
//! Each server bounds its callers by itself ([`bounds`](super::bounds)). With three servers behind a proxy, a caller could
//! call three times as often. If Valkey is gone, it is as if the servers shared nothing.

#[cfg(feature = "team")]
use crate::web::bounds::Limits;
use crate::web::bounds::TooMuch;
use tiro_base::error::Result;
use tiro_host::config::Config;
#[cfg(feature = "team")]
use tiro_host::config::DatabaseUrl;
#[cfg(feature = "team")]
use tiro_valkey::{Rate, Valkey};

/// The common rates of the callers of several servers.
#[derive(Clone, Default)]
pub struct Rates {
    /// Valkey, and the name of the servers that share the rates.
    #[cfg(feature = "team")]
    shared: Option<(Valkey, String)>,
}

impl Rates {
    /// Returns the rates that the servers of the configured database share; those of this server alone if they share none.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the address of Valkey is not understood.
    #[cfg(feature = "team")]
    pub fn of(config: &Config) -> Result<Rates> {
        let Some(DatabaseUrl(url)) = &config.valkey else { return Ok(Rates::default()) };
        let database = config.database.as_ref().map_or("", |DatabaseUrl(url)| url.as_str());
        let group = blake3::hash(database.as_bytes()).to_hex()[..16].to_owned();
        Ok(Rates { shared: Some((Valkey::at(url)?, group)) })
    }

    /// Returns the rates of this server alone.
    #[cfg(not(feature = "team"))]
    pub fn of(_config: &Config) -> Result<Rates> {
        Ok(Rates::default())
    }

    /// Counts a call of `caller`.
    #[cfg(feature = "team")]
    pub async fn begin(&self, caller: &str) -> std::result::Result<(), TooMuch> {
        let Some((valkey, group)) = &self.shared else { return Ok(()) };
        let Limits { rate, burst, .. } = Limits::default();
        valkey
            .take(group, caller, Rate { rate, burst })
            .await
            .map_or(Ok(()), |wait| Err(TooMuch::Often(wait)))
    }

    /// Counts nothing.
    #[cfg(not(feature = "team"))]
    pub async fn begin(&self, _caller: &str) -> std::result::Result<(), TooMuch> {
        Ok(())
    }
}
