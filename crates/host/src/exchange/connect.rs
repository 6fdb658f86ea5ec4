//! Connects a project with one of a server, and shows how a connection is doing.

use super::connection::{Connection, Progress};
use super::run::{clocks, place};
use crate::caller::WritingCaller;
use crate::engine::Engine;
use crate::principals::key::Key;
use crate::project::OpenProject;
use tiro_base::error::{Error, Result, quoted};
use tiro_sync::Trouble;
use tiro_sync::greeting::Project;
use tiro_sync::remote::Remote;
use tiro_sync::server::Server;

/// The most projects that an error lists. Arbitrary.
const MOST_LISTED: usize = 10;

/// A connection that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The address of the server.
    pub address: &'a str,
    /// The name or the id of the project on the server; `None` for the project that the address names, or the one that
    /// is called like the caller's project.
    pub project: Option<&'a str>,
    /// Whether memories that are private on the server are exchanged, too.
    pub is_private: bool,
}

/// A connection and how it is doing.
#[derive(Clone, Debug)]
pub struct Connected {
    /// The connection.
    pub connection: Connection,
    /// How far the exchange has come.
    pub progress: Progress,
    /// What the server says of the project, if it was asked.
    pub shared: Option<Project>,
}

/// Connects the caller's project. The server is asked whether it knows the key, and shares the project. Nothing is
/// exchanged yet. An earlier connection is replaced.
///
/// # Errors
///
/// [`BadInput`](tiro_base::error::Kind::BadInput) if the address or the key is wrong, or the clocks disagree,
/// [`NotFound`](tiro_base::error::Kind::NotFound) if the server shares no such project,
/// [`Server`](tiro_base::error::Kind::Server) if the server can't be reached or refuses.
pub async fn connect(
    engine: &Engine,
    caller: &WritingCaller,
    asked: Asked<'_>,
    key: &str,
) -> Result<Connected> {
    let server = Server::read(asked.address)?;
    let key = Key::parse(key.trim()).ok_or_else(|| {
        Error::bad_input("that is no key of a server")
            .hint("a key begins with `tiro_` and has 78 characters; who runs the server makes one with `tiro user add`")
    })?;
    // From now on, the key is found in every text.
    tiro_redact::remember(key.text());
    let remote = Remote::new(&server, key.text())?;
    let greeting = remote.greet().await.map_err(|trouble| match trouble {
        Trouble::Offline(_) => trouble.error(&server).hint(
            "nothing is connected; check the address, `http://` or `https://`, and whether the server runs",
        ),
        _ => trouble.error(&server),
    })?;
    let now = engine.now();
    clocks(&greeting, &server, now)?;
    let project = caller.begin_project(engine).await?;
    let name = asked.project.or(server.project()).unwrap_or(&project.name);
    let shared = find(&greeting.projects, name, &server)?.clone();
    let device = engine.random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut connection = Connection::new(server.to_string(), greeting.user, device, now);
    (connection.project, connection.name) = (shared.id.clone(), shared.name.clone());
    connection.is_private = asked.is_private;
    let place = place(engine, &project);
    place.store(&connection, key.text())?;
    Ok(Connected { progress: place.progress(&connection), connection, shared: Some(shared) })
}

/// Returns the connection of `project`, or `None` if there is none. Asks no server.
pub fn connected(engine: &Engine, project: &OpenProject) -> Result<Option<Connected>> {
    let place = place(engine, project);
    let connection = place.connection()?;
    Ok(connection.map(|connection| Connected {
        progress: place.progress(&connection),
        connection,
        shared: None,
    }))
}

/// Removes the connection of `project` and its key. What was exchanged stays. Returns whether there was a connection.
pub fn disconnect(engine: &Engine, project: &OpenProject) -> Result<bool> {
    place(engine, project).remove()
}

/// Returns the project with the name or the id `name`.
fn find<'a>(projects: &'a [Project], name: &str, server: &Server) -> Result<&'a Project> {
    let mut named = projects.iter().filter(|project| project.id == name || project.name == name);
    let found = named.next();
    let list = || {
        let mut names: Vec<String> =
            projects.iter().take(MOST_LISTED).map(|project| format!("`{}`", quoted(&project.name))).collect();
        if projects.len() > MOST_LISTED {
            names.push(format!("and {} more", projects.len() - MOST_LISTED));
        }
        names.join(", ")
    };
    match (found, named.next(), projects.is_empty()) {
        (Some(project), None, _) => Ok(project),
        (Some(_), Some(_), _) => {
            Err(Error::bad_input(format!("`{server}` shares several projects called `{}`", quoted(name)))
                .hint("name the project by its id, which `tiro projects list` shows on the server"))
        }
        (None, _, true) => Err(Error::not_found(format!("`{server}` shares no project with you"))
            .hint("the server's owner shares one with `tiro share PROJECT --with TEAM --write`")),
        (None, _, false) => {
            Err(Error::not_found(format!("`{server}` shares no project called `{}` with you", quoted(name)))
                .hint(format!("name one of these with `--name`: {}", list())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_found_by_its_name_or_its_id_and_otherwise_the_error_lists_some() {
        let server = Server::read("https://memory.test").unwrap();
        let project = |id: &str, name: &str| Project {
            id: id.into(),
            name: name.into(),
            may_write: true,
            kinds: Vec::new(),
        };
        let projects = [project("1", "web"), project("2", "api"), project("3", "api")];
        let found = |name: &str| find(&projects, name, &server).map(|project| project.id.as_str());
        assert_eq!(found("web").unwrap(), "1");
        assert_eq!(found("3").unwrap(), "3");
        assert!(found("api").unwrap_err().to_string().contains("several"));
        assert!(found("app").unwrap_err().with_hint().contains("`web`, `api`"));
        assert!(find(&[], "web", &server).unwrap_err().with_hint().contains("tiro share"));
        let many: Vec<Project> = (0..30).map(|number| project(&number.to_string(), "x")).collect();
        assert!(find(&many, "y", &server).unwrap_err().with_hint().contains("and 20 more"));
    }
}
