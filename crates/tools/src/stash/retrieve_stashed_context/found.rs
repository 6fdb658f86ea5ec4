//! What a call finds in the stash, before it is fitted into an answer.

use super::group::Group;
use crate::stash::preview::Preview;

/// What a call found.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundSegments {
    /// The segments found.
    pub previews: Vec<Preview>,
    /// The groups listed.
    pub groups: Vec<Group>,
    /// Whether the call lists the stash.
    pub lists: bool,
    /// How many segments were found, or are in the stash.
    pub total: usize,
    /// The tokens of the segments of a list.
    pub tokens: i64,
    /// How many groups come before the page.
    pub offset: usize,
    /// Whether there are groups after the page.
    pub has_more: bool,
    /// How many chunks have no embedding.
    pub pending: usize,
    /// Whether the text mentions that.
    pub says_pending: bool,
    /// Notices.
    pub notices: Vec<String>,
}

impl FoundSegments {
    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}
