//! Finding the key of a provider: in a variable, or in a file that nobody else can read. It is read for each call and never
//! kept.

use std::fs;
use std::path::Path;

use crate::error::{Context, Error, Kind, Result};
use crate::llm::Key;

/// The largest file that can hold a key, in bytes. Arbitrary.
const LARGEST_KEY: u64 = 16 << 10;

/// Finds a key; `None` where there is none to send. It is asked for each call.
///
/// Errors with [`Kind::BadInput`] where the variable is not set, or others can read the file.
pub fn key(key: &Key) -> Result<Option<String>> {
    match key {
        Key::None => Ok(None),
        Key::Variable(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
            _ => Err(Error::bad_input(format!("the variable {name}, which is to hold the key, is not set"))
                .hint("set it where Tiro is started: a client's configuration has a place for it")),
        },
        Key::File(path) => from_file(path).map(Some),
    }
}

fn from_file(path: &Path) -> Result<String> {
    let shown = path.display();
    let metadata =
        fs::metadata(path).context(Kind::BadInput, || format!("cannot read the key in `{shown}`"))?;
    if !metadata.is_file() || metadata.len() > LARGEST_KEY {
        return Err(Error::bad_input(format!("`{shown}` is no file that holds a key")));
    }
    if is_shared(&metadata) {
        return Err(Error::bad_input(format!("`{shown}` holds a key, and others can read it"))
            .hint(format!("chmod 600 {shown}")));
    }
    let text =
        fs::read_to_string(path).context(Kind::BadInput, || format!("cannot read the key in `{shown}`"))?;
    match text.trim() {
        "" => Err(Error::bad_input(format!("`{shown}` is empty, and is to hold a key"))),
        key => Ok(key.to_owned()),
    }
}

#[cfg(unix)]
fn is_shared(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_shared(_: &fs::Metadata) -> bool {
    false
}
