//! Shares projects with teams, and lists what is shared.

use serde::Serialize;

use super::{audit, teams};
use crate::common;
use tiro_base::error::{Error, Kind as ErrorKind, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::Kind;
use tiro_base::scope::{ProjectId, Scope, Visibility};
use tiro_host::engine::Engine;
use tiro_store::{ProjectRow, Registry, ShareRow, usually_shared};

use super::super::projects;

/// The answer of `tiro share`.
#[derive(Serialize)]
pub struct Shared {
    /// The id of the project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// The team; absent if the project is no longer shared with any team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// `read`, `write`, or `off` if it is no longer shared.
    pub access: &'static str,
    /// The kinds that are shared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Whether the project was made by this command.
    pub created: bool,
}

/// The answer of `tiro share list`.
#[derive(Serialize)]
pub struct Listed {
    /// What is shared, by project and team.
    pub shares: Vec<Listing>,
}

/// A project that is shared with a team, as the list shows it.
#[derive(Serialize)]
pub struct Listing {
    /// The id of the project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// The team.
    pub team: String,
    /// `read` or `write`.
    pub access: &'static str,
    /// The kinds that are shared.
    pub kinds: Vec<String>,
}

/// Shares the project `which` with a team. A project of this name is made if there is none. `kinds` are the names of the
/// kinds to share, or `all`; without them, those shared so far, or notes and commits.
///
/// Errors with [`ErrorKind::NotFound`] if there is no such team, and with [`ErrorKind::BadInput`] if the project's shared
/// part has memories of other kinds, because the members would see them.
pub async fn share(
    engine: &Engine,
    which: &str,
    team: &str,
    may_write: bool,
    kinds: Option<&[String]>,
) -> Result<Shared> {
    let registry = engine.begin_installation().await?.registry;
    if !registry.teams().await?.iter().any(|row| row.name == team) {
        return Err(teams::unknown(team));
    }
    let named = kinds.map(read_kinds).transpose()?;
    let (row, created) = project(engine, registry.as_ref(), which).await?;
    let before = registry.shares().await?.into_iter().find(|share| share.project == row.id);
    let kinds = named.or_else(|| before.map(|share| share.kinds)).unwrap_or_else(usually_shared);
    refuse_others(engine, registry.as_ref(), &row, &kinds).await?;
    let share = ShareRow { project: row.id.clone(), team: team.to_owned(), may_write, kinds: kinds.clone() };
    let is_shared = registry.share(share).await?;
    let error = (!is_shared).then(|| {
        Error::not_found(format!("the project `{}` is not registered any more", quoted(&row.name)))
            .hint("open it in its directory, or share a project of another name")
    });
    audit::note_command(engine, "share", Some(&row.id), &[team], error.as_ref()).await?;
    match error {
        Some(error) => Err(error),
        None => Ok(Shared {
            project: row.id.as_str().to_owned(),
            name: row.name,
            team: Some(team.to_owned()),
            access: access(may_write),
            kinds: words(&kinds),
            created,
        }),
    }
}

/// Ends that the project `which` is shared with `team`, or with any team. Its memories stay.
///
/// Errors with [`ErrorKind::NotFound`] if there is no such project, or it isn't shared so.
pub async fn unshare(engine: &Engine, which: &str, team: Option<&str>) -> Result<Shared> {
    let registry = engine.begin_installation().await?.registry;
    let row = projects::find(engine, which).await?;
    let was_shared = registry.unshare(&row.id, team).await?;
    let error = (!was_shared).then(|| {
        let with = team.map_or("any team".to_owned(), |team| format!("the team `{}`", quoted(team)));
        Error::not_found(format!("the project `{}` is not shared with {with}", quoted(&row.name)))
            .hint("`tiro share list` shows what is shared")
    });
    let names: Vec<&str> = team.into_iter().collect();
    audit::note_command(engine, "share off", Some(&row.id), &names, error.as_ref()).await?;
    match error {
        Some(error) => Err(error),
        None => Ok(Shared {
            project: row.id.as_str().to_owned(),
            name: row.name,
            team: team.map(str::to_owned),
            access: "off",
            kinds: Vec::new(),
            created: false,
        }),
    }
}

/// Returns what is shared with which teams.
pub async fn list(engine: &Engine) -> Result<Listed> {
    let registry = engine.installation().await?.registry;
    let names = registry.all().await?;
    let listing = |share: ShareRow| Listing {
        name: names
            .iter()
            .find(|row| row.id == share.project)
            .map(|row| row.name.clone())
            .unwrap_or_default(),
        project: share.project.as_str().to_owned(),
        team: share.team,
        access: access(share.may_write),
        kinds: words(&share.kinds),
    };
    Ok(Listed { shares: registry.shares().await?.into_iter().map(listing).collect() })
}

/// Returns the project called `which`, and whether it was made now.
async fn project(engine: &Engine, registry: &dyn Registry, which: &str) -> Result<(ProjectRow, bool)> {
    match projects::find(engine, which).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return Ok((found?, false)),
    }
    let is_plain = which.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if which.is_empty() || which.len() > 64 || !is_plain || ProjectId::parse(which).is_some() {
        return Err(Error::not_found(format!("no project is called `{}`", quoted(which)))
            .hint("the name of a new project has up to 64 letters, digits and `.`, `_`, `-`"));
    }
    let fresh = ProjectId::from_random(engine.random());
    let row = registry.register(&fresh, which, engine.now()).await?;
    registry.store(&row.id).await?;
    Ok((row, true))
}

/// Errors with [`ErrorKind::BadInput`] if the shared part of the project has living memories of kinds that would not be
/// shared. They were stored before the project was shared, and its members would see them.
async fn refuse_others(
    engine: &Engine,
    registry: &dyn Registry,
    row: &ProjectRow,
    kinds: &[Kind],
) -> Result<()> {
    let Some(store) = registry.existing_store(&row.id).await? else { return Ok(()) };
    let others: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| !kinds.contains(kind)).collect();
    let scope = Scope::own(engine.config().owner.clone(), row.id.clone());
    let mut found = Vec::new();
    for kind in others {
        let filter = Filter { kinds: Some(vec![kind]), ..Filter::default() };
        let mut after = None;
        loop {
            let page = store.list(&scope, &filter, after, 100).await?;
            if page.iter().any(|memory| memory.visibility != Visibility::Private) {
                found.push(kind);
                break;
            }
            match page.last() {
                Some(last) => after = Some(last.key),
                None => break,
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let (name, kinds) = (quoted(&row.name), words(&found).join(", "));
    Err(Error::bad_input(format!("the project `{name}` has memories of other kinds, which the team would see: {kinds}"))
        .hint(format!(
            "share these kinds too, with `--kinds` or `--kinds all`; or share another project, such as `{name}-team`"
        )))
}

/// Reads the names of kinds, or `all`.
fn read_kinds(names: &[String]) -> Result<Vec<Kind>> {
    if let [all] = names
        && all.trim() == "all"
    {
        return Ok(Kind::ALL.to_vec());
    }
    let read: Vec<Kind> = names.iter().map(|name| common::kind("kinds", name)).collect::<Result<_>>()?;
    Ok(Kind::ALL.iter().copied().filter(|kind| read.contains(kind)).collect())
}

fn words(kinds: &[Kind]) -> Vec<String> {
    kinds.iter().map(|kind| kind.as_str().to_owned()).collect()
}

fn access(may_write: bool) -> &'static str {
    if may_write { "write" } else { "read" }
}

impl Shared {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Shared { project, name, team, access, kinds, created } = self;
        let with = team.as_ref().map_or("any team".to_owned(), |team| format!("the team {team}"));
        if *access == "off" {
            return format!(
                "Project {name} is no longer shared with {with}. What others stored there stays."
            );
        }
        let made = if *created {
            format!("No project was called {name}, so it is made, with the id {project}.\n")
        } else {
            String::new()
        };
        format!("{made}Project {name} is shared with {with}, to {access}: {}.", kinds.join(", "))
    }
}

impl Listed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.shares.is_empty() {
            return "Nothing is shared. `tiro share PROJECT --with TEAM --write` shares a project."
                .to_owned();
        }
        let line = |share: &Listing| {
            let Listing { project, name, team, access, kinds } = share;
            format!("{project} {name}  {team}  {access}: {}", kinds.join(", "))
        };
        self.shares.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
