//! Finds the session that a text names. The text may be the session's name, an alias, the beginning of the name, or the
//! title.

use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize;
use tiro_base::scope::SessionId;
use tiro_host::project::OpenProject;

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

impl Named {
    /// Returns the session whose whole name is the text.
    pub fn whole(&self) -> Option<&SessionId> {
        self.matching.first().filter(|session| session.as_str() == self.name)
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
