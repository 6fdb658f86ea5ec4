//! Scopes. A scope names a tenant, a project, sessions and a reader, and so decides which memories a call can access.
//!
//! Every call to the store takes a scope. No call can read memories of another tenant. A store has the memories of only
//! one project, and a search states which sessions it covers. A scope always names the reader, because only the author
//! sees private memories. No default scope mixes projects or sessions, and none reads for everybody.

use std::borrow::Cow;
use std::fmt;

use crate::envelope;

/// The tenant to whom a store belongs: a person, or a team that shares memories. If the server runs on stdio, the
/// tenant is the user of the operating system.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(String);

impl TenantId {
    /// Returns the tenant called `name`, a name that the operating system or an authentication gave.
    pub fn new(name: impl Into<String>) -> TenantId {
        TenantId(name.into())
    }

    /// Returns the name as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The author or the reader of memories: a person, or a program that acts for a person. On one's own machine, the
/// author is the tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuthorId(String);

impl AuthorId {
    /// Returns the author called `name`, a name that the operating system or an authentication gave.
    pub fn new(name: impl Into<String>) -> AuthorId {
        AuthorId(name.into())
    }

    /// Returns the name as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as answers show it, escaped. The owner of a server has no key, and so no name there but that of
    /// a user of the server's machine, which means nothing to others.
    pub fn shown(&self) -> Cow<'_, str> {
        match ["uid:", "user:"].iter().any(|system| self.0.starts_with(system)) {
            true => Cow::Borrowed("the server's owner"),
            false => envelope::escape(&self.0),
        }
    }

    /// Returns the name as answers show it. Returns `None` if the author is `reader`, who needs no name for their own
    /// memories.
    pub fn other_than(&self, reader: &AuthorId) -> Option<String> {
        (self != reader).then(|| self.shown().into_owned())
    }
}

/// Who sees a memory.
///
/// Within one store, a memory is either private or shared. Shared memories have [`Visibility::Tenant`] in the store of
/// memories that belong to no project ([`ProjectId::owner_wide`]), and [`Visibility::Project`] in other stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// Only its author.
    Private,
    /// Everyone of the tenant who may read the project.
    Project,
    /// Everyone of the tenant.
    Tenant,
}

/// The random id of a project: 16 lower-case hexadecimal digits, kept in the git common directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectId(String);

impl ProjectId {
    /// Returns the id that stands for "no project": memories with it belong to the tenant as a whole.
    pub fn owner_wide() -> ProjectId {
        ProjectId("owner".into())
    }

    /// Returns the visibility of shared memories in the store of this project.
    pub fn shared(&self) -> Visibility {
        if *self == ProjectId::owner_wide() { Visibility::Tenant } else { Visibility::Project }
    }

    /// Returns `text` as an id, or `None` if it isn't 16 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<ProjectId> {
        let text = text.trim();
        let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 16 && text.bytes().all(digits)).then(|| ProjectId(text.into()))
    }

    /// Returns the id made of 8 random bytes.
    pub fn from_random(bytes: [u8; 8]) -> ProjectId {
        ProjectId(format!("{:016x}", u64::from_be_bytes(bytes)))
    }

    /// Returns the id as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a conversation, which the agent chooses: 1 to 200 bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// The longest name, in bytes. Arbitrary: long enough for a path or two UUIDs.
    const MAX_BYTES: usize = 200;

    /// Returns `name` as a session id, or `None` if it is empty, is too long or contains control characters.
    pub fn parse(name: &str) -> Option<SessionId> {
        let name = name.trim();
        let fits = !name.is_empty() && name.len() <= SessionId::MAX_BYTES;
        (fits && !name.chars().any(char::is_control)).then(|| SessionId(name.into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The sessions that a call covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Every session of the project, and memories without a session.
    All,
    /// Only these sessions; memories without a session are excluded.
    Only(Vec<SessionId>),
}

/// Whether a reader sees what the tenant shares in a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shared {
    /// Yes.
    #[default]
    Seen,
    /// No: for the reader, the store holds only what the reader keeps private there. What the reader writes is private.
    Hidden,
}

/// Which shared memories a reader other than the tenant may forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Forgets {
    /// Those of which the reader is the author.
    #[default]
    Own,
    /// Those of all authors.
    Everyones,
}

/// The memories that a call may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant, whose store it is.
    pub tenant: TenantId,
    /// The author who reads, or who writes the memories that are written with this scope.
    pub reader: AuthorId,
    /// The project.
    pub project: ProjectId,
    /// The sessions.
    pub sessions: Sessions,
    /// Whether the reader sees what the tenant shares. The tenant always does.
    pub shared: Shared,
    /// Which shared memories the reader may forget. The tenant may forget all.
    pub forgets: Forgets,
}

impl Scope {
    /// Returns the scope of all sessions of `project` on the machine of `user`, who is both the tenant and the reader.
    pub fn own(user: TenantId, project: ProjectId) -> Scope {
        let reader = AuthorId::new(user.as_str());
        let (shared, forgets) = (Shared::default(), Forgets::default());
        Scope { tenant: user, reader, project, sessions: Sessions::All, shared, forgets }
    }

    /// Returns the same scope for another reader of the tenant.
    pub fn read_by(&self, reader: AuthorId) -> Scope {
        Scope { reader, ..self.clone() }
    }

    /// Returns the same scope without what the tenant shares. For the tenant, nothing is hidden.
    pub fn hidden(&self) -> Scope {
        Scope { shared: Shared::Hidden, ..self.clone() }
    }

    /// Returns the scope of the tenant's memories that belong to no project, for the same reader. Only the tenant sees
    /// those; others see there only what they keep private.
    pub fn owner_wide(&self) -> Scope {
        Scope { project: ProjectId::owner_wide(), sessions: Sessions::All, ..self.hidden() }
    }

    /// Returns whether the reader doesn't see what the tenant shares.
    pub fn hides_shared(&self) -> bool {
        self.shared == Shared::Hidden && !self.is_own()
    }

    /// Returns whether the reader may forget shared memories of any author.
    pub fn forgets_all(&self) -> bool {
        self.is_own() || self.forgets == Forgets::Everyones
    }

    /// Returns whether the reader is the tenant, as on one's own machine.
    pub fn is_own(&self) -> bool {
        self.reader.as_str() == self.tenant.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_id_is_sixteen_hex_digits() {
        assert!(ProjectId::parse("0123456789abcdef\n").is_some());
        for bad in ["", "0123456789ABCDEF", "0123456789abcde", "../../etc/passwd", "0123456789abcdefg"] {
            assert!(ProjectId::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_session_id_has_no_control_characters_and_an_end() {
        assert_eq!(SessionId::parse(" auth refactor ").unwrap().as_str(), "auth refactor");
        assert!(SessionId::parse("").is_none());
        assert!(SessionId::parse("a\u{0}b").is_none());
        assert!(SessionId::parse(&"x".repeat(201)).is_none());
    }
}
