//! The settings: the only place that reads the environment.
//!
//! A setting is read once, at the door, and carried as a value from there on.
#![expect(clippy::disallowed_methods, reason = "this is the place")]

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use globset::{Glob, GlobSet};

use crate::clients::Places;
use crate::error::{Context, Error, Kind, Result};
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
    /// Where clients keep their files; `None` without a home directory.
    pub clients: Option<Places>,
    /// What is not to be remembered.
    pub ignored: Ignored,
    /// Whether this is a build machine's run, which nobody wants remembered: `CI`.
    pub ci: bool,
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
        let home = platform.as_ref().map(|platform| platform.home_dir().to_owned());
        let clients = home.clone().map(|home| Places {
            claude_code: path("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
            codex: path("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            gemini: path("GEMINI_CLI_HOME").unwrap_or_else(|| home.clone()).join(".gemini"),
            home,
        });
        let words = |name: &str| set(name).and_then(|text| text.into_string().ok()).unwrap_or_default();
        Ok(Config {
            clients,
            ignored: Ignored::new(&words("TIRO_IGNORE_SESSIONS"), &words("TIRO_IGNORE_PATHS"))?,
            model_dir: path("TIRO_MODEL_DIR").unwrap_or_else(|| data_dir.join("models")),
            data_dir,
            project: project
                .map(Path::to_owned)
                .or_else(|| path("TIRO_PROJECT"))
                .or_else(|| path("CLAUDE_PROJECT_DIR")),
            current_dir: std::env::current_dir().ok(),
            home,
            owner: OwnerId::new(owner()),
            timings: set("TIRO_TIMINGS").is_some_and(|value| value != "0"),
            ci: set("CI").is_some_and(|value| value != "0" && value != "false"),
            log: set("TIRO_LOG").and_then(|log| log.into_string().ok()).unwrap_or_else(|| "warn".into()),
        })
    }
}

impl Config {
    /// Returns where this program lies: what clients and hooks are told to run.
    ///
    /// Errors with [`Kind::Io`] where the operating system doesn't say.
    pub fn program(&self) -> Result<PathBuf> {
        let program =
            std::env::current_exe().context(Kind::Io, || "cannot tell where this program lies".into())?;
        // After an update in place the old file is shown as deleted.
        let text = program.to_string_lossy();
        Ok(text.strip_suffix(" (deleted)").map_or(program.clone(), PathBuf::from))
    }
}

/// Patterns of what is not to be remembered.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    sessions: GlobSet,
    paths: GlobSet,
}

impl Ignored {
    /// Reads patterns separated by commas: of sessions' names, and of paths relative to the project.
    ///
    /// Errors with [`Kind::BadInput`] naming a pattern that is none.
    pub fn new(sessions: &str, paths: &str) -> Result<Ignored> {
        let set = |name: &str, patterns: &str| {
            let mut set = GlobSet::builder();
            for pattern in patterns.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()) {
                set.add(
                    Glob::new(pattern)
                        .context(Kind::BadInput, || format!("`{pattern}` in {name} is no pattern"))?,
                );
            }
            set.build().context(Kind::BadInput, || format!("the patterns in {name} are too many"))
        };
        Ok(Ignored {
            sessions: set("TIRO_IGNORE_SESSIONS", sessions)?,
            paths: set("TIRO_IGNORE_PATHS", paths)?,
        })
    }

    /// Returns whether a session of that name is not to be remembered.
    pub fn session(&self, name: &str) -> bool {
        self.sessions.is_match(name)
    }

    /// Returns whether what touches these files is not to be remembered.
    pub fn any_path(&self, files: &[String]) -> bool {
        files.iter().any(|file| self.paths.is_match(file))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_what_is_ignored() {
        let ignored = Ignored::new("scratch-*", "secrets/**, *.pem").unwrap();
        assert!(ignored.session("scratch-1") && !ignored.session("work"));
        let any = |file: &str| ignored.any_path(&["src/a.rs".to_owned(), file.to_owned()]);
        assert!(any("secrets/x/y.txt") && any("keys/a.pem") && !any("src/b.rs"));
        let error = Ignored::new("", "a[").unwrap_err();
        assert!(error.to_string().contains("a["), "{error}");
    }
}
