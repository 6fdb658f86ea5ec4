//! A database for a look: `tiro serve --try` starts a PostgreSQL of its own, which is removed when the server ends.
//!
//! A shell holds the server of PostgreSQL (`keep.sh`) and ends it when its input is closed. The input is a pipe from this
//! process, so the operating system closes it, however this process ends: by a signal, by `kill -9`, or in an orderly
//! way. Ctrl-C reaches only this process, because the shell is in a group of its own.
//!
//! Nothing of the user's memory is touched: the data directory is a throw-away one, too. Otherwise, the server would take
//! what hooks left for the user's own memory, and lose it.

#![expect(clippy::disallowed_methods, reason = "the user asks for a database of its own")]
#![cfg_attr(not(unix), allow(dead_code, unused_imports, reason = "there is no such database on other systems"))]

#[cfg(unix)]
mod server;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cli::print;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_host::config::{Config, DatabaseUrl};

/// The script that keeps the server.
const KEEPER: &str = include_str!("keep.sh");

/// How long the end of the database may take. It takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running database. It is stopped and removed when the value is dropped.
pub struct Trial {
    keeper: Child,
    /// Has the data directory and the folder of the database.
    _root: TempDir,
}

impl Drop for Trial {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let began = Instant::now();
        while matches!(self.keeper.try_wait(), Ok(None)) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Starts a throw-away database, and makes `config` use it and a throw-away data directory.
///
/// # Errors
///
/// [`Kind::NotFound`] if there is no PostgreSQL with pgvector; [`Kind::Store`] if it can't be started.
#[cfg(unix)]
pub fn start(config: &mut Config) -> Result<Trial> {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    let server = server::find(config)?;
    let cannot = || "cannot make a folder for a throw-away database".to_owned();
    let root = tempfile::Builder::new().prefix("tiro-try-").tempdir().context(Kind::Io, cannot)?;
    let (data, database) = (root.path().join("data"), root.path().join("database"));
    for (folder, mode) in [(&data, 0o700), (&database, 0o700)] {
        std::fs::create_dir(folder).context(Kind::Io, cannot)?;
        std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).context(Kind::Io, cannot)?;
    }
    if let Some(user) = &server.user {
        // The other user passes through the folder, but can't list it.
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o711)).context(Kind::Io, cannot)?;
        chown(&database, Some(user.id), Some(user.group)).context(Kind::Io, cannot)?;
    }
    let mut command = server::command(Path::new("/bin/sh"), server.user.as_ref());
    command.arg("-c").arg(KEEPER).arg("sh").arg(&server.bin).arg(&database).arg(root.path());
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let keeper = command.spawn().context(Kind::Io, || "cannot start a shell".to_owned())?;
    let mut trial = Trial { keeper, _root: root };
    trial.await_start(&server.bin)?;
    let url = format!("postgres://postgres@{}/postgres", percent_encoded(&database));
    print::aside(&format!(
        "The memory is in a throw-away PostgreSQL, which ends with this server. Other commands use it too if they begin \
         with:\nTIRO_DATA_DIR='{}' TIRO_DATABASE={url}\n",
        data.display()
    ));
    config.data_dir = data;
    config.database = Some(DatabaseUrl(url));
    // Answers of another database may be there.
    config.valkey = None;
    Ok(trial)
}

/// Errors with [`Kind::BadInput`].
#[cfg(not(unix))]
pub fn start(_config: &mut Config) -> Result<Trial> {
    Err(Error::bad_input("`--try` works only on Linux, macOS and their like")
        .hint("give the address of a database in TIRO_DATABASE"))
}

impl Trial {
    /// Waits until the database can be used.
    #[cfg(unix)]
    fn await_start(&mut self, bin: &Path) -> Result<()> {
        let mut output = BufReader::new(self.keeper.stdout.take().expect("stdout is piped"));
        let mut said = String::new();
        let read = output.read_line(&mut said);
        read.context(Kind::Io, || "cannot read from the throw-away database".to_owned())?;
        if said == "ready\n" {
            return Ok(());
        }
        // The other lines only tell more.
        let _ = output.read_to_string(&mut said);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let message =
            format!("the PostgreSQL in `{}` can't be started: {}", quoted(bin.display()), quoted(&said));
        Err(Error::new(Kind::Store, message).hint("name the folder of another one in TIRO_TRY_POSTGRES"))
    }
}

/// Returns a path as the host in the address of a database.
#[cfg(unix)]
fn percent_encoded(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let bytes = path.as_os_str().as_bytes();
    let encoded = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    };
    bytes.iter().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_folder_becomes_a_host() {
        assert_eq!(percent_encoded(Path::new("/tmp/a-b_c.1/é @")), "%2Ftmp%2Fa-b_c.1%2F%C3%A9%20%40");
    }
}
