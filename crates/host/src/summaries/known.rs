//! The data of a session. It comes from one read of the store. Other data is read when it is needed.
//!
//! A context needs many parts of a session. They are read at once, in the state of a single moment. Only data that this
//! read didn't include, such as older messages, is read separately. Work between calls reads each part when it needs
//! it.

use std::collections::HashMap;

use crate::project::OpenProject;
use crate::summaries::messages;
use tiro_base::error::Result;
use tiro_base::memory::{Level, MemoryKey};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_store::{ContextParts, ContextQuery, MessageRow, SegmentRow, SummaryRow};

/// The known data of a session.
pub struct Known<'p> {
    /// The project.
    pub project: &'p OpenProject,
    /// The session.
    pub session: &'p SessionId,
    /// The data that was read at once, without the texts.
    parts: Option<ContextParts>,
    /// The texts that were read at once. Each says whether it is damaged.
    texts: HashMap<MemoryKey, (String, bool)>,
}

impl<'p> Known<'p> {
    /// Returns a session of which nothing was read yet.
    pub fn unread(project: &'p OpenProject, session: &'p SessionId) -> Known<'p> {
        Known { project, session, parts: None, texts: HashMap::new() }
    }

    /// Reads all data from which a context of the session is chosen, in one read. The second value contains the parts
    /// that no function of [`Known`] returns.
    pub async fn read(
        project: &'p OpenProject,
        session: &'p SessionId,
        query: ContextQuery,
    ) -> Result<(Known<'p>, ContextParts)> {
        let mut parts = project.store.context_parts(&project.scope, session, query).await?;
        let texts = std::mem::take(&mut parts.texts).into_iter();
        let texts = texts.map(|(key, text, is_damaged)| (key, (text, is_damaged))).collect();
        let own = ContextParts {
            noted: parts.noted,
            from: parts.from,
            segments: std::mem::take(&mut parts.segments),
            summaries: std::mem::take(&mut parts.summaries),
            messages: std::mem::take(&mut parts.messages),
            ..ContextParts::default()
        };
        Ok((Known { project, session, parts: Some(own), texts }, parts))
    }

    /// Returns the ordinal of the last message from which facts were extracted; -1 if there is none.
    pub async fn noted(&self) -> Result<i64> {
        match &self.parts {
            Some(parts) => Ok(parts.noted),
            None => self.project.store.noted(&self.project.scope, self.session).await,
        }
    }

    /// Returns the closed segments that are stored, in order.
    pub async fn segments(&self) -> Result<Vec<SegmentRow>> {
        match &self.parts {
            Some(parts) => Ok(parts.segments.clone()),
            None => self.project.store.segments(&self.project.scope, self.session).await,
        }
    }

    /// Returns the stored summaries at the level, in the order of their messages.
    pub async fn summaries(&self, level: Level) -> Result<Vec<SummaryRow>> {
        match &self.parts {
            Some(parts) => {
                let of_level = parts.summaries.iter().filter(|row| row.summary.level == level);
                Ok(of_level.cloned().collect())
            }
            None => self.project.store.summaries(&self.project.scope, self.session, Some(level)).await,
        }
    }

    /// Returns the living messages from the ordinal `from` on, in order.
    pub async fn messages(&self, from: i64) -> Result<Vec<MessageRow>> {
        match &self.parts {
            Some(parts) if parts.from <= from => {
                let begins = parts.messages.partition_point(|row| row.ordinal < from);
                Ok(parts.messages[begins..].to_vec())
            }
            _ => self.project.store.session_messages(&self.project.scope, self.session, from).await,
        }
    }

    /// Returns the names of the conversation's authors, if it has others than `reader`. Only if one of them said
    /// something lately, all messages are read.
    pub async fn others(&self, reader: &AuthorId) -> Result<Option<String>> {
        let is_other = |row: &MessageRow| row.author != *reader;
        match self.parts.as_ref().is_some_and(|parts| parts.messages.iter().any(is_other)) {
            true => Ok(messages::others(&self.messages(0).await?, reader)),
            false => Ok(None),
        }
    }

    /// Returns the rows with their texts as [`messages::texts`] does.
    pub async fn texts(&self, rows: &[MessageRow]) -> Result<Vec<(MessageRow, String)>> {
        let known = |row: &MessageRow| {
            let (text, is_damaged) = self.texts.get(&row.key)?.clone();
            Some((MessageRow { is_damaged, ..row.clone() }, text))
        };
        match rows.iter().map(known).collect() {
            Some(read) => Ok(read),
            None => messages::texts(self.project, rows).await,
        }
    }
}
