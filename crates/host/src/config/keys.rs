//! Reads the key of a provider from a variable, or from a file that only its owner can read. The key is read for each
//! call. It is remembered only so that it can be found in texts that are stored or sent (`tiro_redact::remember`). Also
//! lists the keys in the environment that no provider uses.

use std::fs::Metadata;
use std::path::Path;

use serde::Serialize;

use super::file::Sources;
use super::known::KNOWN;
use super::providers::Configured;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};
use tiro_llm::Key;

/// The largest file that can hold a key, in bytes. Arbitrary.
const LARGEST_KEY: u64 = 16 << 10;

/// Returns the key, or `None` if the provider needs none.
///
/// # Errors
///
/// [`Kind::BadInput`] if the variable is not set, or if other users can read the file.
pub fn key(key: &Key) -> Result<Option<String>> {
    let key = read(key)?;
    // From now on, the key is found in every text.
    key.iter().for_each(|key| tiro_redact::remember(key));
    Ok(key)
}

fn read(key: &Key) -> Result<Option<String>> {
    match key {
        Key::None => Ok(None),
        Key::Variable(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
            _ => Err(Error::bad_input(format!("the variable {name} for the key is not set"))
                .hint("set it where Tiro is started, for example in the client's configuration of servers")),
        },
        Key::File(path) => from_file(path).map(Some),
    }
}

/// A key in the environment that no provider uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnusedKey {
    /// The variable that contains the key.
    pub variable: &'static str,
    /// The name of the provider that would use it.
    pub provider: &'static str,
}

impl UnusedKey {
    /// Returns the command that configures an assistant with this key.
    pub fn command(&self) -> String {
        format!("tiro provider add {}", self.provider)
    }
}

impl Sources {
    /// Returns the keys in the environment that no provider in `providers` uses.
    pub fn unused_keys(&self, providers: &[Configured]) -> Vec<UnusedKey> {
        let unused = KNOWN.iter().filter_map(|known| {
            let variable = self.key_of(known)?;
            let is_used = providers.iter().any(|each| {
                each.provider.name == known.name || each.provider.key == Key::Variable(variable.into())
            });
            (!is_used).then_some(UnusedKey { variable, provider: known.name })
        });
        unused.collect()
    }
}

fn from_file(path: &Path) -> Result<String> {
    let shown = quoted(path.display());
    let failed = || format!("cannot read the key in `{shown}`");
    let opened = file::open(path, Links::Followed, LARGEST_KEY).context(Kind::BadInput, failed)?;
    if is_shared(&opened.metadata().context(Kind::BadInput, failed)?) {
        return Err(Error::bad_input(format!("`{shown}` contains a key, and others can read it"))
            .hint(format!("chmod 600 {shown}")));
    }
    let bytes = file::read_all(opened, LARGEST_KEY).context(Kind::BadInput, failed)?;
    let text = String::from_utf8(bytes).context(Kind::BadInput, failed)?;
    match text.trim() {
        "" => Err(Error::bad_input(format!("`{shown}` should contain a key, but is empty"))),
        key => Ok(key.to_owned()),
    }
}

#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_shared(_: &Metadata) -> bool {
    false
}
