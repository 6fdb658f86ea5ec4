//! Reads and records data about sessions.

use std::collections::HashSet;

use async_trait::async_trait;

use crate::{
    About, ActivityRow, ContextParts, ContextQuery, GrownSession, LeftSession, MessageRow, Origin,
    SessionRow, SourceState,
};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, SessionId};

/// Reads data about sessions.
#[async_trait]
pub trait ReadSessions: Send + Sync {
    /// Returns up to `limit` sessions of the scope that have living memories, the latest first. Sessions that a script
    /// ran come last. The first `offset` sessions are left out.
    async fn sessions(&self, scope: &Scope, offset: usize, limit: usize) -> Result<Vec<SessionRow>>;

    /// Returns how much was said in each session of the scope, for each quarter of an hour. Only living messages that
    /// `filter` admits count. The result is ordered by session and time.
    async fn activity(&self, scope: &Scope, filter: &Filter) -> Result<Vec<ActivityRow>>;

    /// Returns the branch and the commit that were last checked out in the session. The branch and the commit are
    /// `None` if there is no such session.
    async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<(Option<String>, Option<String>)>;

    /// Returns the title and client of each of `sessions`, in order. The title and the client are empty for a session
    /// that is not in the scope.
    async fn about_sessions(&self, scope: &Scope, sessions: Vec<SessionId>) -> Result<Vec<About>>;

    /// Returns up to `limit` sessions that `text` names and that have living memories in the scope, the latest first. A
    /// session is named if its name or an alias is `text`. If there is no such session, all sessions whose name begins
    /// with `text` are named. If no session's name does, all sessions whose title contains `text`, ignoring case, are
    /// named.
    async fn sessions_called(&self, scope: &Scope, text: &str, limit: usize) -> Result<Vec<SessionId>>;

    /// Returns the living messages of the session from `from_ordinal` on, in order. The list is empty if there is no
    /// such session.
    async fn session_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        from_ordinal: i64,
    ) -> Result<Vec<MessageRow>>;

    /// Returns the data from which a context of the session is chosen, as of one moment. The result is empty if there
    /// is no such session.
    async fn context_parts(
        &self,
        scope: &Scope,
        session: &SessionId,
        query: ContextQuery,
    ) -> Result<ContextParts>;

    /// Returns those of `ids` that are stored in sessions other than `session`. `ids` are the ids that clients
    /// gave their messages.
    async fn known_elsewhere(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: Vec<String>,
    ) -> Result<HashSet<String>>;

    /// Returns the version of the scope, and whether it has memories.
    ///
    /// If a caller reads the version first and memories afterwards, its result is current as long as the version stays
    /// the same.
    async fn source_state(&self, scope: &Scope) -> Result<SourceState>;

    /// Returns up to `limit` sessions of the scope whose messages changed since [`WriteSessions::worked_off`] was last
    /// called for the session. The sessions that changed longest ago come first.
    async fn grown_sessions(&self, scope: &Scope, limit: usize) -> Result<Vec<GrownSession>>;

    /// Returns the sessions whose last living memory is older than `before`, the oldest session first. Sessions
    /// that led to a commit or have a marked memory are left out.
    async fn left_sessions(&self, scope: &Scope, before: Millis) -> Result<Vec<LeftSession>>;
}

/// Records data about sessions.
#[async_trait]
pub trait WriteSessions: Send + Sync {
    /// Stores the client, work tree, title and aliases of a session. The session is created if it is new. If several
    /// sessions take the same alias, the alias belongs to the last of them.
    async fn describe_session(&self, scope: &Scope, session: &SessionId, origin: Origin) -> Result<()>;

    /// Records that the segments and summaries of the session are up to date. Does nothing if messages of the session
    /// changed after `grown` was read.
    async fn worked_off(&self, scope: &Scope, grown: GrownSession) -> Result<()>;
}
