//! Makes, lists and changes teams, with which projects can be shared.

use serde::Serialize;

use super::audit;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::times;
use tiro_host::engine::Engine;
use tiro_host::principals::keys::check_name;
use tiro_store::{TeamChange, TeamRow};

/// The answer of `tiro team list`.
#[derive(Serialize)]
pub struct Listed {
    /// The teams, by name.
    pub teams: Vec<Listing>,
}

/// A team, as the list shows it.
#[derive(Serialize)]
pub struct Listing {
    /// Its name.
    pub name: String,
    /// The day on which it was made.
    pub made: String,
    /// The names of its users.
    pub members: Vec<String>,
}

/// The answer of the commands that change a team.
#[derive(Serialize)]
pub struct Changed {
    /// What was done: `created`, `removed`, `added` or `left`.
    pub done: &'static str,
    /// The name of the team.
    pub team: String,
    /// The name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// Returns every team.
pub async fn list(engine: &Engine) -> Result<Listed> {
    let rows = engine.installation().await?.registry.teams().await?;
    let listing = |row: TeamRow| Listing { name: row.name, made: times::day(row.made), members: row.members };
    Ok(Listed { teams: rows.into_iter().map(listing).collect() })
}

/// Makes a team without members.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the name can't be used or is in use.
pub async fn create(engine: &Engine, team: &str) -> Result<Changed> {
    check_name(team)?;
    let exists = || {
        Error::bad_input(format!("there is a team `{}`", quoted(team)))
            .hint("`tiro team add TEAM USER` adds users to it")
    };
    let change = TeamChange::Create { team: team.to_owned(), now: engine.now() };
    changed(engine, "created", ("team create", team, None), change, exists).await
}

/// Removes a team. What was shared with it is no longer shared with its members.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is none.
pub async fn remove(engine: &Engine, team: &str) -> Result<Changed> {
    let change = TeamChange::Remove { team: team.to_owned() };
    changed(engine, "removed", ("team remove", team, None), change, || unknown(team)).await
}

/// Adds a user to a team. The user needs a valid key, so that a mistyped name is noticed.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such team or no valid key of this
/// name, and with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the user is in the team.
pub async fn add(engine: &Engine, team: &str, user: &str) -> Result<Changed> {
    let (registry, now) = (engine.installation().await?.registry, engine.now());
    let teams = registry.teams().await?;
    let row = teams.iter().find(|row| row.name == team).ok_or_else(|| unknown(team))?;
    let is_member = || Error::bad_input(format!("`{}` is in the team `{}`", quoted(user), quoted(team)));
    if row.members.iter().any(|member| member == user) {
        return Err(is_member());
    }
    let keys = registry.keys().await?;
    if !keys.iter().any(|key| key.name == user && key.state(now) == "valid") {
        return Err(Error::not_found(format!("nobody called `{}` has a valid key", quoted(user)))
            .hint(format!("`tiro user add {}` makes one, `tiro user list` shows all", quoted(user))));
    }
    let change = TeamChange::Add { team: team.to_owned(), user: user.to_owned() };
    changed(engine, "added", ("team add", team, Some(user)), change, is_member).await
}

/// Removes a user from a team. From the next request on, the user no longer sees what is shared with the team.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such team, or the user is not in it.
pub async fn leave(engine: &Engine, team: &str, user: &str) -> Result<Changed> {
    let teams = engine.installation().await?.registry.teams().await?;
    let members = teams.into_iter().find(|row| row.name == team).map(|row| row.members);
    let refused = || match &members {
        None => unknown(team),
        Some(members) => {
            let is_in = if members.is_empty() { "nobody is".to_owned() } else { members.join(", ") };
            Error::not_found(format!("`{}` is not in the team `{}`", quoted(user), quoted(team)))
                .hint(format!("in it: {}", quoted(is_in)))
        }
    };
    let change = TeamChange::Leave { team: team.to_owned(), user: user.to_owned() };
    changed(engine, "left", ("team leave", team, Some(user)), change, refused).await
}

/// Makes the change and notes it. `refused` is the error if nothing had to change.
async fn changed(
    engine: &Engine,
    done: &'static str,
    (verb, team, user): (&str, &str, Option<&str>),
    change: TeamChange,
    refused: impl FnOnce() -> Error,
) -> Result<Changed> {
    let registry = engine.begin_installation().await?.registry;
    let is_changed = registry.change_teams(change).await?;
    let error = (!is_changed).then(refused);
    let names: Vec<&str> = std::iter::once(team).chain(user).collect();
    audit::note_command(engine, verb, None, &names, error.as_ref()).await?;
    match error {
        Some(error) => Err(error),
        None => Ok(Changed { done, team: team.to_owned(), user: user.map(str::to_owned) }),
    }
}

/// Returns the error that there is no such team.
pub(super) fn unknown(team: &str) -> Error {
    Error::not_found(format!("there is no team `{}`", quoted(team)))
        .hint("`tiro team list` shows the teams, `tiro team create TEAM` makes one")
}

impl Listed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.teams.is_empty() {
            return "No teams yet. `tiro team create TEAM` makes one.".to_owned();
        }
        let line = |team: &Listing| match team.members.is_empty() {
            true => format!("{}: nobody yet", team.name),
            false => format!("{}: {}", team.name, team.members.join(", ")),
        };
        self.teams.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Changed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Changed { done, team, user } = self;
        match (*done, user) {
            ("added", Some(user)) => format!("{user} is in the team {team}."),
            ("left", Some(user)) => format!("{user} left the team {team}."),
            ("created", _) => format!("Team {team} is made. `tiro team add {team} USER` adds users."),
            _ => format!("Team {team} is removed."),
        }
    }
}
