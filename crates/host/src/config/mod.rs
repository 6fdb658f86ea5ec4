//! Reads settings. Only this module reads the environment and the configuration file.
//!
//! Settings are read once, at the start of the process, and then passed on as values. Only the settings and prices of
//! providers are read again, for each question to a model, because the file may change while a server runs.
#![expect(clippy::disallowed_methods, reason = "only this module reads the environment")]

mod edit;
mod encoding;
mod endpoint;
mod file;
mod keys;
mod known;
mod options;
mod program;
mod providers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;

pub use edit::{Change, Edit, change, remove};
pub use encoding::Encoding;
pub use endpoint::{host, is_loopback};
pub use file::Sources;
pub use keys::{UnusedKey, key};
pub use known::{own_keys, usual_endpoint, usual_name, usual_service};
pub use options::{External, List, Options, Setting};
pub use providers::{CHAT_PREFIX, Configured, Limits, Origin, Use, is_provider, is_variable, purpose};

use tiro_base::error::{Context, Error, Kind, Result};
use tiro_base::scope::TenantId;
use tiro_capture::clients::Places;
use tiro_capture::sources::Ignored;

/// The settings of a process. Reading the settings from the environment and the configuration file opens no store and
/// creates nothing.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory of databases: `TIRO_DATA_DIR`, otherwise `tiro` in the platform's data directory.
    pub data_dir: PathBuf,
    /// The database that has the stores in place of files: `TIRO_DATABASE`.
    pub database: Option<DatabaseUrl>,
    /// The Valkey or Redis in which the servers of a team share cached answers and the rates of callers: `TIRO_VALKEY`.
    pub valkey: Option<DatabaseUrl>,
    /// The key for a server that the project shall be connected with: `TIRO_KEY`.
    pub server_key: Option<ServerKey>,
    /// The folder of the programs of PostgreSQL that `tiro serve --try` starts: `TIRO_TRY_POSTGRES`.
    pub trial_postgres: Option<PathBuf>,
    /// The directory of models: `TIRO_MODEL_DIR`, otherwise `models` in the data directory.
    pub model_dir: PathBuf,
    /// The project named by `--project`, `TIRO_PROJECT` or `CLAUDE_PROJECT_DIR`.
    pub project: Option<PathBuf>,
    /// Whether the user named the project, by `--project` or `TIRO_PROJECT`. `CLAUDE_PROJECT_DIR` doesn't count,
    /// because a client sets this variable to the directory in which the client is started, whatever directory this is.
    pub is_project_named: bool,
    /// The id of the user who ran `sudo`: `SUDO_UID`.
    pub sudo_user: Option<u32>,
    /// The working directory, if it still exists.
    pub current_dir: Option<PathBuf>,
    /// The home directory, which is never a project itself.
    pub home: Option<PathBuf>,
    /// The operating system's user.
    pub owner: TenantId,
    /// The command that shows long output: `TIRO_PAGER`, otherwise `PAGER`. If the variable is empty, the value is empty,
    /// too.
    pub pager: Option<String>,
    /// The command that edits a text: `VISUAL`, otherwise `EDITOR`.
    pub editor: Option<String>,
    /// Whether answers list the duration of each stage: `TIRO_TIMINGS`.
    pub timings: bool,
    /// The directories of clients' files; `None` if there is no home directory.
    pub clients: Option<Places>,
    /// The options, as they were read at the start.
    pub options: Options,
    /// The sources from which the options are read.
    pub sources: Sources,
    /// The reason why the options could not be read. In this case, `options` contains the defaults.
    pub fault: Option<Arc<Error>>,
    /// Patterns of sessions and files that are not remembered.
    pub ignored: Ignored,
    /// Whether this is an automated build, whose work is not remembered: the variable `CI`.
    pub ci: bool,
    /// The filter of the log on stderr: `TIRO_LOG`, in the syntax of `tracing`. Without it the filter is `warn`.
    pub log: String,
}

/// The address of a database, or of Valkey. It may have a password, so `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(pub String);

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl")
    }
}

/// A key for a server. `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerKey(pub String);

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKey")
    }
}

impl Config {
    /// Returns settings for a test, without clients or options. Data, models and the working directory lie in
    /// `folder`.
    pub fn of_test(folder: &Path) -> Config {
        Config {
            data_dir: folder.join("data"),
            database: None,
            valkey: None,
            server_key: None,
            trial_postgres: None,
            model_dir: folder.join("models"),
            project: None,
            is_project_named: false,
            sudo_user: None,
            current_dir: Some(folder.to_owned()),
            home: None,
            owner: TenantId::new("test"),
            pager: None,
            editor: None,
            timings: false,
            clients: None,
            options: Options::default(),
            sources: Sources::default(),
            fault: None,
            ignored: Ignored::default(),
            ci: false,
            log: String::new(),
        }
    }

    /// Returns the directory that the user named as the project at the start of the process.
    pub fn named_project(&self) -> Option<&Path> {
        self.project.as_deref().filter(|_| self.is_project_named)
    }

    /// Reads the environment and the configuration file. `project` is the argument of `--project`, `set` are the
    /// arguments of `--set`.
    ///
    /// If the options contain a mistake, it is returned in the field `fault`, so that the caller decides whether to
    /// stop.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if there is neither a home directory nor `TIRO_DATA_DIR`.
    pub fn from_environment(project: Option<&Path>, set: Vec<(String, String)>) -> Result<Config> {
        let mut config = Config::without_options(project)?;
        let given =
            |name: String| std::env::var(&name).ok().filter(|text| !text.is_empty()).map(|text| (name, text));
        let named = Options::ALL.iter().flat_map(Setting::variables).chain(known::other_variables());
        config.sources.variables = named.filter_map(given).collect();
        let keys = known::key_variables().filter(|name| given((*name).to_owned()).is_some());
        config.sources.keys = keys.map(str::to_owned).collect();
        config.sources.set = set;
        config.server_key.iter().for_each(|key| tiro_redact::remember(&key.0));
        let read = config.sources.options().and_then(|options| {
            // This call remembers the keys, so that they are found in every text. A key that can't be read is reported
            // when it is needed.
            for each in config.sources.providers(&options)? {
                let _ = key(&each.provider.key);
            }
            Ok((
                Ignored::new(&options.ignore_sessions.0, &options.ignore_paths.0, options.ignore_headless)?,
                options,
            ))
        });
        match read {
            Ok((ignored, options)) => (config.ignored, config.options) = (ignored, options),
            Err(error) => config.fault = Some(Arc::new(error)),
        }
        Ok(config)
    }

    /// Reads only the directories and the user from the environment. Hooks need nothing else, and must work even if
    /// the configuration file is invalid.
    ///
    /// # Errors
    ///
    /// The errors of [`Config::from_environment`].
    pub fn without_options(project: Option<&Path>) -> Result<Config> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let platform = etcetera::choose_base_strategy().ok();
        let data_dir = path("TIRO_DATA_DIR")
            .or_else(|| platform.as_ref().map(|platform| platform.data_dir().join("tiro")))
            .ok_or_else(|| {
                Error::new(Kind::BadInput, "no home directory for Tiro's data is known")
                    .hint("set HOME, or name a directory in TIRO_DATA_DIR")
            })?;
        let data_dir = std::path::absolute(&data_dir).unwrap_or(data_dir);
        let home = platform.as_ref().map(|platform| platform.home_dir().to_owned());
        let clients =
            platform.as_ref().map(|platform| (platform.home_dir().to_owned(), platform.config_dir()));
        let clients = clients.map(|(home, config)| Places {
            config,
            claude_code: path("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
            codex: path("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            gemini: path("GEMINI_CLI_HOME").unwrap_or_else(|| home.clone()).join(".gemini"),
            home,
        });
        let in_home = || platform.as_ref().map(|platform| platform.config_dir().join("tiro/config.toml"));
        Ok(Config {
            clients,
            options: Options::default(),
            sources: Sources { file: path("TIRO_CONFIG").or_else(in_home), ..Sources::default() },
            fault: None,
            ignored: Ignored::default(),
            model_dir: path("TIRO_MODEL_DIR").unwrap_or_else(|| data_dir.join("models")),
            data_dir,
            valkey: set("TIRO_VALKEY").and_then(|url| url.into_string().ok()).map(DatabaseUrl),
            database: set("TIRO_DATABASE").and_then(|url| url.into_string().ok()).map(DatabaseUrl),
            server_key: set("TIRO_KEY").and_then(|key| key.into_string().ok()).map(ServerKey),
            trial_postgres: path("TIRO_TRY_POSTGRES"),
            project: project
                .map(Path::to_owned)
                .or_else(|| path("TIRO_PROJECT"))
                .or_else(|| path("CLAUDE_PROJECT_DIR")),
            is_project_named: project.is_some() || path("TIRO_PROJECT").is_some(),
            sudo_user: set("SUDO_UID").and_then(|user| user.to_str()?.parse().ok()),
            current_dir: std::env::current_dir().ok(),
            home,
            owner: TenantId::new(owner()),
            pager: std::env::var("TIRO_PAGER").or_else(|_| std::env::var("PAGER")).ok(),
            editor: ["VISUAL", "EDITOR"].into_iter().find_map(|name| set(name)?.into_string().ok()),
            timings: set("TIRO_TIMINGS").is_some_and(|value| value != "0"),
            ci: set("CI").is_some_and(|value| value != "0" && value != "false"),
            log: set("TIRO_LOG").and_then(|log| log.into_string().ok()).unwrap_or_else(|| "warn".into()),
        })
    }
}

impl Config {
    /// Returns the files of the user's own git configuration. A later file overrides an earlier one. The files may be
    /// missing.
    pub fn git_settings(&self) -> Vec<PathBuf> {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(file) = path("GIT_CONFIG_GLOBAL") {
            return vec![file];
        }
        let home = |folder: &str| self.home.as_ref().map(|home| home.join(folder));
        let folder = path("XDG_CONFIG_HOME").or_else(|| home(".config"));
        folder.map(|folder| folder.join("git/config")).into_iter().chain(home(".gitconfig")).collect()
    }

    /// Returns the path of this program, for the configuration of clients and hooks. If there is a stable path that
    /// leads to the program, this path is returned.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the operating system doesn't report the path.
    pub fn program(&self) -> Result<PathBuf> {
        let typed = std::env::var_os("PWD").map(PathBuf::from).filter(|typed| {
            let place = |path: &Path| std::fs::canonicalize(path).ok();
            typed.is_absolute() && self.current_dir.as_deref().is_some_and(|real| place(real) == place(typed))
        });
        let directories: Vec<PathBuf> = typed.into_iter().chain(self.current_dir.clone()).collect();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let name = std::env::args_os().next();
        let started =
            program::Started { name: name.as_deref(), directories: &directories, folders: &folders };
        Ok(program::stable(&real_program()?, &started))
    }

    /// Returns whether starting `path` starts this program, directly or through links or a shim.
    pub fn is_started_by(&self, path: &Path) -> bool {
        let real = real_program().map(|real| std::fs::canonicalize(&real).unwrap_or(real));
        real.is_ok_and(|real| program::leads_to(path, &real))
    }
}

/// Returns the path of the file that this process runs.
fn real_program() -> Result<PathBuf> {
    let program =
        std::env::current_exe().context(Kind::Io, || "cannot find the path of this program".into())?;
    // If the program was updated after it was started, Linux reports that its file is deleted.
    let text = program.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or(program.clone(), PathBuf::from))
}

/// Returns the id of the operating system's user. The name is not used, because it could be reassigned.
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
