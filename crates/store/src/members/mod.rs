//! The users of a server, in the registry of its owner.

mod values;

use async_trait::async_trait;

pub use self::values::{
    Access, AuditFilter, AuditRow, KeyChange, KeyRow, ProjectRights, Rights, ShareRow, TeamChange, TeamRow,
    usually_shared,
};
use tiro_base::error::Result;
use tiro_base::scope::ProjectId;

/// The users of a server: their keys, their teams, the projects that are shared with teams, and the record of calls.
///
/// [The crate](crate) says what all methods promise.
#[async_trait]
pub trait Members: Send + Sync {
    /// Returns every key, also those that are not valid any more, by name and the time when it was made.
    async fn keys(&self) -> Result<Vec<KeyRow>>;

    /// Returns the key with this hash, whether it is valid or not.
    async fn key_with_hash(&self, hash: &str) -> Result<Option<KeyRow>>;

    /// Changes the keys as [`decide::keys`](crate::decide::keys) decides. Returns the keys that were changed, a new key
    /// last.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if a key is added for a user who has one, and
    /// with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no key to revoke. Nothing is changed then.
    async fn change_keys(&self, change: KeyChange) -> Result<Vec<KeyRow>>;

    /// Returns every team, by name.
    async fn teams(&self) -> Result<Vec<TeamRow>>;

    /// Changes the teams. Returns false if nothing had to change, or if there is no such team. What was shared with a
    /// removed team is no longer shared with it, also not with a later team of the same name.
    async fn change_teams(&self, change: TeamChange) -> Result<bool>;

    /// Returns which projects are shared with which teams, by project and team.
    async fn shares(&self) -> Result<Vec<ShareRow>>;

    /// Shares a project with a team, or changes how it is shared. The kinds count for all teams of the project. Returns
    /// false if there is no such team or no such project; then nothing is changed.
    async fn share(&self, share: ShareRow) -> Result<bool>;

    /// Ends that the project is shared with `team`, or with any team. Returns whether it was shared.
    async fn unshare(&self, project: &ProjectId, team: Option<&str>) -> Result<bool>;

    /// Returns the projects that are shared with the teams of `user`, by name, then by id, with what the teams together
    /// may do there.
    async fn rights(&self, user: &str) -> Result<Vec<ProjectRights>>;

    /// Adds a call to the record of calls. The oldest calls are removed if there are more than
    /// [`MOST_CALLS`](crate::decide::keys::MOST_CALLS). The last calls may be missing after a power failure.
    async fn note_call(&self, call: AuditRow) -> Result<()>;

    /// Returns the recorded calls that `filter` admits, the newest first.
    async fn calls(&self, filter: AuditFilter) -> Result<Vec<AuditRow>>;
}
