//! What a registry notes under a key: the secret, the copies of projects, when providers may be asked again, and the
//! day of the ledger.

use super::PostgresRegistry;
use crate::error::Result;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::ProjectId;
use tiro_store::ProjectRow;

/// The key of the installation's secret.
const SECRET: &str = "secret";

/// Returns the key under which the original of the copied project `copy` is noted.
pub(super) fn copy_key(copy: &ProjectId) -> String {
    format!("copy:{}", copy.as_str())
}

impl PostgresRegistry {
    /// Returns what is noted under `key`.
    pub(super) async fn note(&self, tx: &Transaction, key: &str) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT value FROM notes WHERE tenant = $1 AND key = $2";
        let row = tx.row(sql, &[&self.tenant(), &key]).await?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Returns the number that is noted under `key`.
    pub(super) async fn noted_number(&self, tx: &Transaction, key: &str) -> Result<Option<i64>> {
        let bytes = self.note(tx, key).await?;
        Ok(bytes.and_then(|bytes| Some(i64::from_be_bytes(bytes.try_into().ok()?))))
    }

    /// Notes `value` under `key`.
    pub(super) async fn put_note(&self, tx: &Transaction, key: &str, value: &[u8]) -> Result<()> {
        tx.execute(
            "INSERT INTO notes (tenant, key, value) VALUES ($1, $2, $3)
             ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value",
            &[&self.tenant(), &key, &value],
        )
        .await?;
        Ok(())
    }

    /// Removes what is noted under `key`.
    pub(super) async fn remove_note(&self, tx: &Transaction, key: &str) -> Result<()> {
        tx.execute("DELETE FROM notes WHERE tenant = $1 AND key = $2", &[&self.tenant(), &key]).await?;
        Ok(())
    }

    pub(crate) async fn note_retry_after(&self, provider: &str, until: Millis) -> error::Result<()> {
        let key = retry_key(provider);
        write!(self, &self.scope, tx => { self.put_note(&tx, &key, &until.to_be_bytes()).await })
    }

    pub(crate) async fn retry_after(&self, provider: &str) -> error::Result<Option<Millis>> {
        let key = retry_key(provider);
        read!(self, &self.scope, tx => { self.noted_number(&tx, &key).await })
    }

    pub(crate) async fn secret(&self, fresh: [u8; 32]) -> error::Result<[u8; 32]> {
        let known: error::Result<_> = read!(self, &self.scope, tx => { self.note(&tx, SECRET).await });
        if let Some(secret) = known?.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
            return Ok(secret);
        }
        write!(self, &self.scope, tx => {
            match self.note(&tx, SECRET).await?.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
                Some(first) => Ok(first),
                None => {
                    self.put_note(&tx, SECRET, &fresh).await?;
                    Ok(fresh)
                }
            }
        })
    }

    pub(crate) async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> error::Result<()> {
        let key = copy_key(copy);
        write!(self, &self.scope, tx => { self.put_note(&tx, &key, original.as_str().as_bytes()).await })
    }

    pub(crate) async fn original(&self, copy: &ProjectId) -> error::Result<Option<ProjectRow>> {
        let key = copy_key(copy);
        let noted: error::Result<_> = read!(self, &self.scope, tx => { self.note(&tx, &key).await });
        let id = noted?.and_then(|bytes| ProjectId::parse(&String::from_utf8(bytes).ok()?));
        match id {
            Some(id) => self.by_id(&id).await,
            None => Ok(None),
        }
    }
}

/// Returns the key of the time until which a provider is left alone.
fn retry_key(provider: &str) -> String {
    format!("left_alone:{provider}")
}
