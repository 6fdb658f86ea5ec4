//! Filters of a search. Filters are applied before the candidates are chosen, never after.

use crate::memory::{Group, Kind, Millis};
use crate::scope::SessionId;

/// Whether a search is limited to the stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stash {
    /// Only memories in the stash.
    Only,
    /// Only memories in the stash that are not expired.
    Unexpired(Expiry),
    /// Only memories that contexts don't leave out: memories in the stash can be left out of contexts.
    Without,
}

/// When a memory in the stash counts as expired: if its own time of expiry is not after `now`, or if it was made before
/// `made_before`. Protected memories never expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The present.
    pub now: Millis,
    /// The earliest time of a memory that does not expire by its age.
    pub made_before: Millis,
}

impl Stash {
    /// Returns whether a search is limited to the stash or a part of it.
    pub fn is_within(self) -> bool {
        matches!(self, Stash::Only | Stash::Unexpired(_))
    }
}

/// Conditions, all of which a memory must meet. The sessions to search are part of the scope, not of the filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these kinds. `None` means every kind except artifacts; in a search within the stash, it means every kind.
    pub kinds: Option<Vec<Kind>>,
    /// Only memories of this branch.
    pub branch: Option<String>,
    /// Only memories about this file, or about files in this directory, relative to the project.
    pub path: Option<String>,
    /// Only memories with this tag. Within the stash, the tag of a memory is the topic under which it was stashed.
    pub topic: Option<String>,
    /// Only memories to which the client gave this id.
    pub source_id: Option<String>,
    /// Only memories from this source: a file, or the id that the client gave.
    pub source: Option<String>,
    /// Whether the search is limited to the stash; `None` searches all memories.
    pub stash: Option<Stash>,
    /// Only memories from this time on.
    pub since: Option<Millis>,
    /// Only memories from before this time.
    pub until: Option<Millis>,
    /// Excludes the memories of this session. This is the session that runs now, so the model still has the session's
    /// messages.
    pub without: Option<SessionId>,
}

impl Filter {
    /// Returns the groups of the kinds that the filter admits, in order.
    pub fn groups(&self) -> Vec<Group> {
        let admits = |group: &&Group| match &self.kinds {
            Some(kinds) => kinds.iter().any(|kind| kind.group() == **group),
            None => self.stash.is_some_and(Stash::is_within) || **group != Group::Artifact,
        };
        Group::ALL.iter().filter(admits).copied().collect()
    }

    /// Returns whether the filter admits the whole stash.
    pub fn is_whole_stash(&self) -> bool {
        *self == Filter { stash: Some(Stash::Only), ..Filter::default() }
    }

    /// Returns whether the filter has a time range.
    pub fn has_range(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Returns whether the time range admits `time`.
    pub fn is_within(&self, time: Millis) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
    }

    /// Returns whether the filter excludes some memories of `group`.
    pub fn narrows(&self, group: Group) -> bool {
        // A filter that only leaves out a session (`without`) admits nearly everything, so searches don't treat it as
        // narrow.
        let Filter { kinds, branch, path, topic, source_id, source, stash, since, until, without: _ } = self;
        let part_of_group = kinds
            .as_ref()
            .is_some_and(|kinds| Kind::ALL.iter().any(|kind| kind.group() == group && !kinds.contains(kind)));
        part_of_group
            || [branch, path, topic, source_id, source].iter().any(|field| field.is_some())
            || stash.is_some()
            || since.is_some()
            || until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_are_searched_only_when_named() {
        assert!(!Filter::default().groups().contains(&Group::Artifact));
        let logs = Filter { kinds: Some(vec![Kind::ErrorLog]), ..Filter::default() };
        assert_eq!(logs.groups(), [Group::Artifact]);
        assert!(logs.narrows(Group::Artifact));
        let commits = Filter { kinds: Some(vec![Kind::Commit]), ..Filter::default() };
        assert!(!commits.narrows(Group::Commit));
    }
}
