//! Finds the session, memory or commit that a text names. A session is named by its name, an alias, the beginning of the
//! name, or the title.

use std::sync::Arc;

use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize;
use tiro_base::memory::{Memory, MemoryId};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_intake::session_id;
use tiro_store::ReadStore;

/// The maximum number of sessions that the error lists if a text names several.
const MOST_NAMED: usize = 6;

/// The sessions that a text names.
pub struct Named {
    text: String,
    /// The text with secrets replaced, because names are stored in this form.
    name: String,
    matching: Vec<SessionId>,
}

/// Returns the sessions of the project that `text` names.
pub async fn sessions(project: &OpenProject, text: &str) -> Result<Named> {
    let text = text.trim().to_owned();
    let name = project.redactor.redact(&text).text.into_owned();
    let matching = project.store.sessions_called(&project.scope, &name, MOST_NAMED).await?;
    Ok(Named { text, name, matching })
}

/// Returns the session whose whole name is `text`. Unlike [`sessions`], reads no titles, which takes long in a project of
/// thousands of sessions.
pub async fn whole(project: &OpenProject, text: &str) -> Result<Option<SessionId>> {
    let name = project.redactor.redact(text.trim()).text.into_owned();
    let Some(session) = SessionId::parse(&name) else { return Ok(None) };
    let only = Scope { sessions: Sessions::Only(vec![session]), ..project.scope.clone() };
    let found = project.store.sessions(&only, 0, 1).await?.pop();
    Ok(found.map(|row| row.id).filter(|session| session.as_str() == name))
}

/// Returns the sessions that `texts` name; all sessions if there are none. A text that names no session stays a name, so
/// that the caller can report it.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if a text names several sessions, or can't be a name. The
/// error names `argument`.
pub async fn all(project: &OpenProject, argument: &str, texts: &[String]) -> Result<Sessions> {
    if texts.is_empty() {
        return Ok(Sessions::All);
    }
    let mut named = Vec::with_capacity(texts.len());
    for text in texts {
        let matching = sessions(project, text).await?;
        named.push(match matching.one()? {
            Some(one) => one.clone(),
            None => session_id(&project.redactor, argument, text)?,
        });
    }
    Ok(Sessions::Only(named))
}

/// Returns the full name of what `text` names in short: a commit by `HEAD`, a branch or a tag, a memory by the first
/// four characters or more of its id, and a message by the beginning of its session's name, as in `fix#3`. Returns any
/// other text unchanged.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if a short name means several things.
pub async fn in_full(engine: &Engine, caller: &Caller, text: &str) -> Result<String> {
    let project = caller.project(engine).await?;
    let text = text.trim();
    if whole(&project, text).await?.is_some() {
        return Ok(text.to_owned());
    }
    if let Some((name, number)) = text.rsplit_once('#').filter(|(_, number)| number.parse::<i64>().is_ok()) {
        // A title can look like a message's number: `Fix the crash of #2819`.
        if !sessions(&project, text).await?.is_empty() {
            return Ok(text.to_owned());
        }
        let matching = sessions(&project, name).await?;
        return Ok(matching.one()?.map_or(text.to_owned(), |session| format!("{session}#{number}")));
    }
    if is_beginning(text) {
        let owners = &engine.installation().await?.registry;
        let mut ids = project.store.ids_beginning(&project.scope, text, MOST_NAMED).await?;
        ids.extend(owners.memories().ids_beginning(&project.scope.owner_wide(), text, MOST_NAMED).await?);
        match &ids[..] {
            [] => {}
            [id] => return Ok(id.to_string()),
            several => {
                let names: Vec<String> = several.iter().take(MOST_NAMED).map(ToString::to_string).collect();
                return Err(Error::bad_input(format!("`{text}` matches {}", humanize::some(&names)))
                    .hint("give more of the id"));
            }
        }
    }
    let sha = match &project.repository {
        Some(repository) => repository.commit_called(text)?,
        None => None,
    };
    Ok(sha.map_or(text.to_owned(), |sha| sha.to_string()))
}

/// Does as [`in_full`] for each of `texts`.
pub async fn all_in_full(engine: &Engine, caller: &Caller, texts: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        all.push(in_full(engine, caller, text).await?);
    }
    Ok(all)
}

/// Returns the name of the session that `text` names by its name, an alias, the beginning of its name, or its title.
/// Returns `text` if there is no such session.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if several sessions match.
pub async fn session(engine: &Engine, caller: &Caller, text: &str) -> Result<String> {
    let matching = sessions(&*caller.project(engine).await?, text).await?;
    Ok(matching.one()?.map_or(text.to_owned(), ToString::to_string))
}

/// Does as [`session`] if there is a text.
pub async fn optional_session(
    engine: &Engine,
    caller: &Caller,
    text: Option<String>,
) -> Result<Option<String>> {
    match text {
        Some(text) => session(engine, caller, &text).await.map(Some),
        None => Ok(None),
    }
}

/// Does as [`session`] for each of `texts`.
pub async fn sessions_in_full(engine: &Engine, caller: &Caller, texts: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        all.push(session(engine, caller, text).await?);
    }
    Ok(all)
}

/// A memory, with its store and scope.
pub type Stored = (Arc<dyn ReadStore>, Scope, Memory);

/// Returns the memory with the id `id`: of the project, or else of the owner. Returns `None` if neither has it.
pub async fn memory(engine: &Engine, project: &OpenProject, id: &MemoryId) -> Result<Option<Stored>> {
    let owners = &engine.installation().await?.registry;
    let owners = (Arc::clone(owners.memories()) as Arc<dyn ReadStore>, project.scope.owner_wide());
    for (store, scope) in [(Arc::clone(&project.store), project.scope.clone()), owners] {
        if let Some(memory) = store.memory(&scope, id).await? {
            return Ok(Some((store, scope, memory)));
        }
    }
    Ok(None)
}

/// Returns whether `text` can be the beginning of the id of a memory, but not the whole id.
fn is_beginning(text: &str) -> bool {
    (4..14).contains(&text.len())
        && text.starts_with('m')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

impl Named {
    /// Returns the session whose whole name is the text, or else the only one that the text names. Returns `None` if the
    /// text names none.
    ///
    /// Errors as [`Named::only`] does.
    pub fn one(&self) -> Result<Option<&SessionId>> {
        let whole = self.matching.first().filter(|session| session.as_str() == self.name);
        if whole.is_some() { Ok(whole) } else { self.only() }
    }

    /// Returns whether the text names no session.
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty()
    }

    /// Returns the only session that the text names. Returns `None` if the text names none.
    ///
    /// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if it names several.
    pub fn only(&self) -> Result<Option<&SessionId>> {
        if let [] | [_] = &self.matching[..] {
            return Ok(self.matching.first());
        }
        let names: Vec<String> = self.matching.iter().map(SessionId::to_string).collect();
        let more = if names.len() == MOST_NAMED { " and maybe more" } else { "" };
        Err(Error::bad_input(format!("`{}` matches {}{more}", quoted(&self.text), humanize::some(&names)))
            .hint("give more of the name"))
    }
}
