//! The settings: the only place that reads the environment.
//!
//! A setting is read once, at the door, and carried as a value from there on.
#![expect(clippy::disallowed_methods, reason = "this is the place")]

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::error::{Error, Kind, Result};
use crate::scope::OwnerId;

/// What the environment says. Nothing is opened or created by reading it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where databases are kept: `TIRO_DATA_DIR`, else `tiro` in the platform's data directory.
    pub data_dir: PathBuf,
    /// Where models are kept: `TIRO_MODEL_DIR`, else `models` in the data directory.
    pub model_dir: PathBuf,
    /// The project named by `--project`, `TIRO_PROJECT` or `CLAUDE_PROJECT_DIR`.
    pub project: Option<PathBuf>,
    /// The working directory, where there still is one.
    pub current_dir: Option<PathBuf>,
    /// The home directory, which is never a project.
    pub home: Option<PathBuf>,
    /// The operating system's user.
    pub owner: OwnerId,
    /// Whether answers tell how long their stages took: `TIRO_TIMINGS`.
    pub timings: bool,
    /// What is logged to stderr: `TIRO_LOG`, in the syntax of `tracing`; `warn` by default.
    pub log: String,
}

impl Config {
    /// Reads the environment; `project` is the command line's `--project`.
    ///
    /// Errors with [`Kind::BadInput`] where there is neither a home nor `TIRO_DATA_DIR`.
    pub fn from_environment(project: Option<&Path>) -> Result<Config> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let platform = etcetera::choose_base_strategy().ok();
        let data_dir = path("TIRO_DATA_DIR")
            .or_else(|| platform.as_ref().map(|platform| platform.data_dir().join("tiro")))
            .ok_or_else(|| {
                Error::new(Kind::BadInput, "there is no home directory to keep memories in")
                    .hint("set HOME, or name a directory in TIRO_DATA_DIR")
            })?;
        let data_dir = std::path::absolute(&data_dir).unwrap_or(data_dir);
        Ok(Config {
            model_dir: path("TIRO_MODEL_DIR").unwrap_or_else(|| data_dir.join("models")),
            data_dir,
            project: project
                .map(Path::to_owned)
                .or_else(|| path("TIRO_PROJECT"))
                .or_else(|| path("CLAUDE_PROJECT_DIR")),
            current_dir: std::env::current_dir().ok(),
            home: platform.map(|platform| platform.home_dir().to_owned()),
            owner: OwnerId::new(owner()),
            timings: set("TIRO_TIMINGS").is_some_and(|value| value != "0"),
            log: set("TIRO_LOG").and_then(|log| log.into_string().ok()).unwrap_or_else(|| "warn".into()),
        })
    }
}

/// Returns the name of the operating system's user: its number, since names can be reassigned.
#[cfg(unix)]
fn owner() -> String {
    format!("uid:{}", rustix::process::geteuid().as_raw())
}

/// Returns the name of the operating system's user.
#[cfg(not(unix))]
fn owner() -> String {
    let name = std::env::var("USERNAME").unwrap_or_else(|_| "owner".into());
    format!("user:{name}")
}
