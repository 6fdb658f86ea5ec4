//! The names of sessions.

use tiro_base::error::{Error, Result};
use tiro_base::scope::SessionId;
use tiro_redact::Redactor;

/// Reads `name`, the value of the argument `argument`, as the name of a session. A secret in `name` is replaced by a
/// mark. The mark is the same each time, so the memories saved under this name are still found.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if `name` can't be the name of a session.
pub fn session_id(redactor: &Redactor, argument: &str, name: &str) -> Result<SessionId> {
    let name = redactor.redact(name).text;
    SessionId::parse(&name).ok_or_else(|| {
        Error::bad_input(format!(
            "`{argument}` is empty, longer than 200 bytes or contains control characters"
        ))
        .hint("use a short plain name, such as `auth-refactor`")
    })
}
