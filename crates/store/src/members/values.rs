//! The users of a server: their keys, their teams, what is shared with the teams, and the record of calls.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use tiro_base::error::{Error, quoted};
use tiro_base::memory::{Group, Kind, Millis};
use tiro_base::scope::ProjectId;

/// What a user may do. Each also includes what the earlier ones include.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Search and read what the user may see.
    Read,
    /// Also store, mark, stash and forget.
    #[default]
    Write,
    /// Also configure the providers of the server, and forget what others share.
    Admin,
}

impl Access {
    /// Returns the word by which it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Admin => "admin",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Access {
    type Err = Error;

    fn from_str(name: &str) -> Result<Access, Error> {
        match name {
            "read" => Ok(Access::Read),
            "write" => Ok(Access::Write),
            "admin" => Ok(Access::Admin),
            other => Err(Error::bad_input(format!("there is no scope `{}`", quoted(other)))
                .hint("choose read, write or admin")),
        }
    }
}

/// A personal key, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The public id.
    pub id: String,
    /// The name of the user.
    pub name: String,
    /// What the user may do with it.
    pub access: Access,
    /// The hash of the key, in hexadecimal digits.
    pub hash: String,
    /// When it was made.
    pub made: Millis,
    /// When it expires, if it does.
    pub expires: Option<Millis>,
    /// When it was revoked.
    pub revoked: Option<Millis>,
    /// The beginning of the day, in UTC, on which it was used last.
    pub used: Option<Millis>,
}

impl KeyRow {
    /// Returns whether the key is valid at the time `now`, in a word.
    pub fn state(&self, now: Millis) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now => "expired",
            (None, _) => "valid",
        }
    }
}

/// A change of the keys.
#[derive(Clone, Debug)]
pub enum KeyChange {
    /// Adds a key, unless its user has a valid one at the time when it is made.
    Add(KeyRow),
    /// Revokes the keys of a user, or the key with an id.
    Revoke {
        /// The name of the user, or the id of a key.
        which: String,
        /// The time.
        now: Millis,
    },
    /// Revokes like [`KeyChange::Revoke`], and adds a key for the same user with the same access. It is valid for as
    /// long as the latest of the revoked keys was, counted from `now`.
    Replace {
        /// The name of the user, or the id of a key.
        which: String,
        /// The id of the new key.
        id: String,
        /// The hash of the new key.
        hash: String,
        /// The time.
        now: Millis,
    },
    /// Records that a key was used on a day.
    Use {
        /// The id of the key.
        id: String,
        /// The beginning of the day.
        day: Millis,
    },
}

/// A team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamRow {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub made: Millis,
    /// The names of its users, in order.
    pub members: Vec<String>,
}

/// A change of the teams.
#[derive(Clone, Debug)]
pub enum TeamChange {
    /// Makes a team without members.
    Create {
        /// The name of the team.
        team: String,
        /// The time.
        now: Millis,
    },
    /// Removes a team. Nothing is shared with it any more.
    Remove {
        /// The name of the team.
        team: String,
    },
    /// Adds a user to a team.
    Add {
        /// The name of the team.
        team: String,
        /// The name of the user.
        user: String,
    },
    /// Removes a user from a team.
    Leave {
        /// The name of the team.
        team: String,
        /// The name of the user.
        user: String,
    },
}

/// A project that is shared with a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareRow {
    /// The project.
    pub project: ProjectId,
    /// The name of the team.
    pub team: String,
    /// Whether the members of the team may share memories in the project.
    pub may_write: bool,
    /// The kinds of the memories that are shared. They are the same for all teams of a project.
    pub kinds: Vec<Kind>,
}

/// Returns the kinds that are shared unless others are named: notes, commits and documents of the repository, but nothing
/// of a conversation.
pub fn usually_shared() -> Vec<Kind> {
    let is_shared = |kind: &Kind| matches!(kind.group(), Group::Commit | Group::Note | Group::Document);
    Kind::ALL.iter().copied().filter(is_shared).collect()
}

/// What a user may do in a project that is shared with one of the user's teams.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rights {
    /// Whether the user may share memories there, and change what is shared.
    pub may_write: bool,
    /// The kinds of the memories that are shared. What the user saves of other kinds is private.
    pub kinds: Vec<Kind>,
}

/// A project that a user sees, and the user's rights there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRights {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub name: String,
    /// The rights.
    pub rights: Rights,
}

/// A call in the record of calls: who did what with whose memories. It has no text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditRow {
    /// When it ended.
    pub at: Millis,
    /// The name of the user; the name of the tenant for the owner.
    pub user: String,
    /// The tool or the command.
    pub verb: String,
    /// The id of the project, if the call had one.
    pub project: Option<String>,
    /// The ids of the first memories that were read, written or forgotten.
    pub memories: Vec<String>,
    /// How many memories there were.
    pub count: i64,
    /// The names of the authors of these memories, in order.
    pub authors: Vec<String>,
    /// How it ended: `ok`, or the kind of the error.
    pub outcome: String,
}

/// Which calls of the record are wanted.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only calls at this time or later.
    pub since: Option<Millis>,
    /// Only calls of this user.
    pub user: Option<String>,
    /// Only calls in the project with this id.
    pub project: Option<String>,
    /// At most this many calls.
    pub limit: usize,
}
