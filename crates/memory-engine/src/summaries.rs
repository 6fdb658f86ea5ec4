//! Summaries of ranges of messages, of sessions and of quarters.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{Conversation, Session, State};
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Level, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::stale::{Standin, Standing, standin};
use tiro_store::{
    ConversationRow, LevelCount, Outcome, PreparedMemory, Saved, SessionKey, SummarisedSegment, Summary,
    SummaryRow, source_hash,
};

/// How far in the future a due date may be: a year and a day.
const FARTHEST: Millis = 366 * 24 * 60 * 60 * 1000;

impl MemoryStore {
    /// Does as [`WriteSummaries::save_summary`](tiro_store::WriteSummaries::save_summary).
    pub(crate) async fn save_summary(&self, scope: &Scope, summary: Summary, now: Millis) -> Result<Saved> {
        self.save_version(scope, summary, Millis::MIN, now).await
    }

    /// Does as [`WriteSummaries::save_version`](tiro_store::WriteSummaries::save_version).
    pub(crate) async fn save_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> Result<Saved> {
        self.write(scope, |state| {
            let (key, row) = match state.place(scope, summary, since, now) {
                Ok(place) => place,
                Err(saved) => return Ok(saved),
            };
            let id = row.id.clone();
            if let Some(session) = state.session_mut(Some(key)) {
                session.summaries.push(row);
            }
            state.touch(&scope.tenant, [key]);
            Ok(Saved::Made(id))
        })
    }

    /// Does as [`ReadSummaries::foresee_version`](tiro_store::ReadSummaries::foresee_version).
    pub(crate) async fn foresee_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
    ) -> Result<Saved> {
        self.read(scope, |state| {
            Ok(match state.place(scope, summary, since, 0) {
                Ok((_, row)) => Saved::Made(row.id),
                Err(saved) => saved,
            })
        })
    }

    /// Does as [`ReadSummaries::summaries`](tiro_store::ReadSummaries::summaries).
    pub(crate) async fn summaries(
        &self,
        scope: &Scope,
        session: &SessionId,
        level: Option<Level>,
    ) -> Result<Vec<SummaryRow>> {
        self.read(scope, |state| {
            Ok(state.session(scope, session).map(|(_, session)| of_level(session, level)).unwrap_or_default())
        })
    }

    /// Does as [`ReadSummaries::summary`](tiro_store::ReadSummaries::summary).
    pub(crate) async fn summary(&self, scope: &Scope, id: &MemoryId) -> Result<Option<SummaryRow>> {
        self.read(scope, |state| {
            let own = state.sessions.values().filter(|session| session.owner == scope.tenant);
            let seen = own.filter(|session| state.find_session(scope, &session.name).is_some());
            Ok(seen.flat_map(|session| &session.summaries).find(|row| row.id == *id).cloned())
        })
    }

    /// Does as [`ReadSummaries::conversation`](tiro_store::ReadSummaries::conversation).
    pub(crate) async fn conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Option<ConversationRow>> {
        self.read(scope, |state| {
            let session = state.session(scope, session);
            let Some((_, Session { conversation: Some(conversation), .. })) = session else {
                return Ok(None);
            };
            let &Conversation { memory, last, made_at, .. } = conversation;
            let memory = state.memories.get(&memory).filter(|memory| memory.is_living());
            Ok(memory.map(|memory| ConversationRow { id: memory.id.clone(), last, made_at }))
        })
    }

    /// Does as [`WriteSummaries::save_conversation`](tiro_store::WriteSummaries::save_conversation).
    pub(crate) async fn save_conversation(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        last: i64,
        source_hash: [u8; 32],
        now: Millis,
    ) -> Result<Saved> {
        self.write(scope, |state| {
            let Some(name) = &memory.draft.session else { return Ok(Saved::SourcesChanged) };
            let session = state.required_session(scope, name)?;
            if state.hash_of_range(session, 0, last) != source_hash {
                return Ok(Saved::SourcesChanged);
            }
            let due = match standin(state.standing(session), &memory.id, last) {
                Standin::Stays(id) => return Ok(Saved::AlreadyMade(id)),
                Standin::First => None,
                Standin::Replaces { due } => {
                    state.remove_conversation(session);
                    due
                }
            };
            let is_private = state.sessions.get(&session).is_some_and(|session| session.is_private);
            if state.save_one(scope, &memory, Some(session), is_private, now)? != Outcome::Stored {
                return Ok(Saved::AlreadyMade(memory.id));
            }
            let key = state.key_in(&scope.tenant, &memory.id, is_private);
            if let Some((key, session)) = key.zip(state.session_mut(Some(session))) {
                session.conversation = Some(Conversation { memory: key, last, made_at: now, due });
            }
            state.end_retirement_by(session, &memory.id);
            Ok(Saved::Made(memory.id))
        })
    }

    /// Does as [`WriteSummaries::save_quarter`](tiro_store::WriteSummaries::save_quarter).
    pub(crate) async fn save_quarter(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        now: Millis,
    ) -> Result<Outcome> {
        self.write(scope, |state| {
            let topic = &memory.draft.topic;
            let (is_private, _) = state.place_of(scope, &memory.draft);
            let former = state.owned(&scope.tenant).filter(|(_, other)| {
                other.is_derived_summary()
                    && other.is_private == is_private
                    && topic.is_some()
                    && other.topic == *topic
                    && other.id != memory.id
            });
            let former: Vec<MemoryKey> = former.map(|(key, _)| key).collect();
            former.into_iter().for_each(|key| state.remove(key));
            state.save_one(scope, &memory, None, is_private, now)
        })
    }

    /// Does as [`ReadSummaries::quarter_is_retired`](tiro_store::ReadSummaries::quarter_is_retired).
    pub(crate) async fn quarter_is_retired(&self, scope: &Scope, topic: &str) -> Result<bool> {
        self.read(scope, |state| {
            let own = state.sessions.values().filter(|session| session.owner == scope.tenant);
            let retired: BTreeSet<&MemoryId> = own.filter_map(|session| session.retired.as_ref()).collect();
            let mut quarters = state
                .owned(&scope.tenant)
                .filter(|(_, memory)| memory.is_derived_summary() && memory.topic.as_deref() == Some(topic));
            Ok(quarters.any(|(_, memory)| memory.references.iter().any(|id| retired.contains(id))))
        })
    }

    /// Does as [`WriteSummaries::postpone_conversation`](tiro_store::WriteSummaries::postpone_conversation).
    pub(crate) async fn postpone_conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
        due: Millis,
    ) -> Result<()> {
        self.write(scope, |state| {
            let session = state.find_session(scope, session);
            let conversation = state.session_mut(session).and_then(|session| session.conversation.as_mut());
            if let Some(conversation) = conversation {
                conversation.due = Some(due);
            }
            Ok(())
        })
    }

    /// Does as [`ReadSummaries::due_conversations`](tiro_store::ReadSummaries::due_conversations).
    pub(crate) async fn due_conversations(
        &self,
        scope: &Scope,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<SessionId>> {
        self.read(scope, |state| {
            // A date that is too far ahead was written while the clock was wrong, so it counts as due.
            let is_due = |due: &Millis| *due <= now || *due > now.saturating_add(FARTHEST);
            let own = state.sessions.iter().filter(|(_, session)| session.owner == scope.tenant);
            let due = own.filter_map(|(key, session)| {
                Some((session.conversation.as_ref()?.due.filter(is_due)?, *key, session.name.clone()))
            });
            let due = due.filter(|(.., name)| state.find_session(scope, name).is_some());
            Ok(due.collect::<BTreeSet<_>>().into_iter().map(|(.., name)| name).take(limit).collect())
        })
    }

    /// Does as [`ReadSummaries::summary_counts`](tiro_store::ReadSummaries::summary_counts).
    pub(crate) async fn summary_counts(&self, scope: &Scope) -> Result<Vec<LevelCount>> {
        self.read(scope, |state| {
            let mut counts: BTreeMap<(Level, String), LevelCount> = BTreeMap::new();
            for (key, session) in state.sessions.iter().filter(|(_, session)| session.owner == scope.tenant) {
                for SummaryRow { summary, .. } in newest(session) {
                    let new = LevelCount {
                        level: summary.level,
                        provider: summary.provider.clone(),
                        summaries: 0,
                        tokens: 0,
                        source_tokens: 0,
                    };
                    let count = counts.entry((summary.level, summary.provider.clone())).or_insert(new);
                    count.summaries += 1;
                    count.tokens += summary.tokens;
                    count.source_tokens += state.source_tokens(*key, session, summary);
                }
            }
            Ok(counts.into_values().collect())
        })
    }

    /// Does as [`ReadSummaries::summarised_segments`](tiro_store::ReadSummaries::summarised_segments).
    pub(crate) async fn summarised_segments(&self, scope: &Scope) -> Result<Vec<SummarisedSegment>> {
        self.read(scope, |state| {
            let own = state.sessions.iter().filter(|(_, session)| session.owner == scope.tenant);
            let rows = own.flat_map(|(key, session)| {
                let newest = newest(session);
                let with_messages = session.segments.iter().filter(|segment| segment.messages > 0);
                with_messages.map(move |segment| {
                    let tokens = |level| {
                        let mut of = newest
                            .iter()
                            .map(|row| &row.summary)
                            .filter(|summary| (summary.first, summary.last) == (segment.first, segment.last));
                        of.find(|summary| summary.level == level).map(|summary| summary.tokens)
                    };
                    let summaries = [Level::Brief, Level::Standard, Level::Detailed].map(tokens);
                    SummarisedSegment { session: *key, segment: segment.clone(), summaries }
                })
            });
            Ok(rows.collect())
        })
    }
}

/// Returns the newest version of each summary of the session at the level; at all levels if it is `None`.
pub fn of_level(session: &Session, level: Option<Level>) -> Vec<SummaryRow> {
    let is_wanted = |row: &&&SummaryRow| level.is_none_or(|level| row.summary.level == level);
    let newest = newest(session);
    let mut rows: Vec<SummaryRow> = newest.iter().filter(is_wanted).map(|row| (*row).clone()).collect();
    // Levels come in the order of their words.
    rows.sort_by_key(|row| (row.summary.first, row.summary.last, row.summary.level.as_str()));
    rows
}

/// Returns the newest version of each summary of the session.
pub fn newest(session: &Session) -> Vec<&SummaryRow> {
    let is_newest = |row: &&SummaryRow| !session.summaries.iter().any(|other| is_newer(other, row));
    session.summaries.iter().filter(is_newest).collect()
}

/// Returns whether `other` is a later version of `row`.
pub fn is_newer(other: &SummaryRow, row: &SummaryRow) -> bool {
    let of = |summary: &Summary| (summary.first, summary.last, summary.level);
    of(&other.summary) == of(&row.summary) && other.version > row.version
}

impl State {
    /// Returns the hash of the living messages in a range of a session.
    fn hash_of_range(&self, session: SessionKey, first: i64, last: i64) -> [u8; 32] {
        let messages = self.messages(session);
        let in_range = messages.iter().filter(|(_, ordinal, _)| (first..=last).contains(ordinal));
        source_hash(in_range.map(|(.., memory)| &memory.id))
    }

    /// Returns the row to store for a summary, with its session. If nothing is to be stored, the error is the answer.
    fn place(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> Result<(SessionKey, SummaryRow), Saved> {
        let (key, session) = self.session(scope, &summary.session).ok_or(Saved::SourcesChanged)?;
        // The range is cut at the end of the session, so that later messages don't fall into it.
        let last = summary.last.min(session.last);
        let summary = Summary { session: session.name.clone(), last, ..summary };
        if self.hash_of_range(key, summary.first, last) != summary.source_hash {
            return Err(Saved::SourcesChanged);
        }
        let range = |summary: &Summary| (summary.first, summary.last, summary.level);
        let of_range = || session.summaries.iter().filter(|row| range(&row.summary) == range(&summary));
        let is_same = |row: &&SummaryRow| {
            let Summary { provider, model, source_hash, text, .. } = &row.summary;
            (provider, model, source_hash) == (&summary.provider, &summary.model, &summary.source_hash)
                && (row.made_at >= since || *text == summary.text)
        };
        if let Some(made) = of_range().filter(is_same).max_by_key(|row| row.version) {
            return Err(Saved::AlreadyMade(made.id.clone()));
        }
        let version = of_range().map(|row| row.version).max().unwrap_or(0) + 1;
        let sources = blake3::Hash::from(summary.source_hash).to_hex();
        let Summary { first, level, provider, model, .. } = &summary;
        let name = format!("{level} {first} {last} {version} {sources} {provider} {model}");
        let id = MemoryId::derive(Kind::Summary, Some(&session.name), &name);
        Ok((key, SummaryRow { id, version, made_at: now, summary }))
    }

    /// Returns what decides whether another memory replaces the one that summarises the session.
    fn standing(&self, session: SessionKey) -> Option<Standing> {
        let conversation = self.sessions.get(&session)?.conversation.as_ref()?;
        let memory = self.memories.get(&conversation.memory)?;
        Some(Standing { id: memory.id.clone(), last: conversation.last, due: conversation.due })
    }

    /// Makes the summaries of quarters that replaced a retired session refer to the memory that summarises it now.
    fn end_retirement_by(&mut self, session: SessionKey, id: &MemoryId) {
        let Some(session) = self.session_mut(Some(session)) else { return };
        let (Some(retired), owner) = (session.retired.take(), session.owner.clone()) else { return };
        for memory in self.memories.values_mut().filter(|memory| memory.owner == owner) {
            if memory.references.contains(&retired) && retired != *id {
                memory.references.remove(&retired);
                if memory.is_derived_summary() {
                    memory.references.insert(id.clone());
                }
            }
        }
    }

    /// Returns the tokens of the messages that a summary was made of.
    fn source_tokens(&self, key: SessionKey, session: &Session, summary: &Summary) -> i64 {
        let segment = session.segments.iter().find(|segment| Some(segment.number) == summary.segment);
        let range = summary.first..=summary.last;
        let tokens = || {
            let messages = self.messages(key).into_iter();
            messages.filter(|(_, ordinal, _)| range.contains(ordinal)).map(|(.., memory)| memory.tokens).sum()
        };
        segment.map_or_else(tokens, |segment| segment.tokens)
    }
}
