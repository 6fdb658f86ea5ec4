//! What a search is narrowed to, before it searches and never after.
//!
//! Every field that is set must hold. The store turns a filter into conditions; nothing above it writes SQL.

use crate::memory::{Group, Kind, Millis};

/// Conditions on memories, all of which must hold; the sessions are part of the scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these kinds; `None` is every kind but artifacts.
    pub kinds: Option<Vec<Kind>>,
    /// Only what was made on this branch.
    pub branch: Option<String>,
    /// Only what speaks of this file or of files beneath this directory, relative to the project.
    pub path: Option<String>,
    /// Only what carries this tag.
    pub topic: Option<String>,
    /// Only what the client calls by this id.
    pub source_id: Option<String>,
    /// Only what was made at or after this time.
    pub since: Option<Millis>,
    /// Only what was made before this time.
    pub until: Option<Millis>,
}

impl Filter {
    /// Returns the groups that can hold what the filter admits, in order.
    pub fn groups(&self) -> Vec<Group> {
        let admits = |group: &&Group| match &self.kinds {
            Some(kinds) => kinds.iter().any(|kind| kind.group() == **group),
            None => **group != Group::Artifact,
        };
        Group::ALL.iter().filter(admits).copied().collect()
    }

    /// Tells whether it narrows the time.
    pub fn has_range(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Tells whether what was made at `time` is admitted, as far as the time decides.
    pub fn is_within(&self, time: Millis) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
    }

    /// Tells whether anything beside the group decides what is admitted.
    pub fn narrows(&self, group: Group) -> bool {
        let Filter { kinds, branch, path, topic, source_id, since, until } = self;
        let part_of_group = kinds
            .as_ref()
            .is_some_and(|kinds| Kind::ALL.iter().any(|kind| kind.group() == group && !kinds.contains(kind)));
        part_of_group
            || [branch, path, topic, source_id].iter().any(|field| field.is_some())
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
