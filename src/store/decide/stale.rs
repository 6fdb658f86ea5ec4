//! Whether a write adds to the memories, summaries and segments that are stored already.

use crate::memory::{MemoryId, Millis};
use crate::store::{Outcome, SegmentRow};

/// Returns the outcome of storing a memory whose id is `stored` or purged; `None` where the id is new.
pub fn outcome(stored: Option<Known>, is_purged: bool) -> Option<Outcome> {
    match stored {
        Some(Known { is_forgotten: true, .. }) => Some(Outcome::Forgotten),
        Some(Known { is_same: true, .. }) => Some(Outcome::AlreadyStored),
        Some(_) => Some(Outcome::Conflict),
        None => is_purged.then_some(Outcome::Forgotten),
    }
}

/// A memory that is stored under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Whether its text is the one that is to be stored.
    pub is_same: bool,
    /// Whether it is forgotten.
    pub is_forgotten: bool,
}

/// The memory that summarises a session, with the fields that decide whether another replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its id.
    pub id: MemoryId,
    /// The ordinal of the last message that it was made of.
    pub last: i64,
    /// When it is to be made again, where more was said since.
    pub due: Option<Millis>,
}

/// The effect of a new memory that summarises a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standin {
    /// It is the first.
    First,
    /// It replaces the one before, and is due when `due` says.
    Replaces {
        /// When it is to be made again.
        due: Option<Millis>,
    },
    /// The one with this id says as much, or more, and stays.
    Stays(MemoryId),
}

/// Returns the effect of the memory `id`, made of the messages up to `last`, where `known` summarises the session.
///
/// One that is made of the same messages, with another text, stays due when the one before was.
pub fn standin(known: Option<Standing>, id: &MemoryId, last: i64) -> Standin {
    match known {
        None => Standin::First,
        Some(known) if known.id == *id || known.last > last => Standin::Stays(known.id),
        Some(known) => Standin::Replaces { due: known.due.filter(|_| known.last == last) },
    }
}

/// Returns which of the `offered` segments are closed, each as its number, its first and its last ordinal, where the next number
/// is `next` and the next message is at `from`.
///
/// Segments never change: another process closed a segment whose number is taken. A segment begins where the one before ends,
/// so that a message which is forgotten now and comes back later is in one too. One that leaves a gap, or ends before it begins,
/// ends the list.
pub fn closed(mut next: i64, mut from: i64, offered: &[SegmentRow]) -> Vec<(i64, i64, i64)> {
    let mut closed = Vec::new();
    for segment in offered {
        if segment.number < next {
            continue;
        }
        if segment.number > next || segment.last < from {
            break;
        }
        closed.push((segment.number, from, segment.last));
        (next, from) = (segment.number + 1, segment.last + 1);
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Kind;

    #[test]
    fn what_is_known_is_not_stored_again() {
        let known = |is_same, is_forgotten| Some(Known { is_same, is_forgotten });
        for (stored, is_purged, expected) in [
            (None, false, None),
            (None, true, Some(Outcome::Forgotten)),
            (known(true, false), false, Some(Outcome::AlreadyStored)),
            (known(false, false), false, Some(Outcome::Conflict)),
            (known(true, true), false, Some(Outcome::Forgotten)),
            (known(false, true), false, Some(Outcome::Forgotten)),
        ] {
            assert_eq!(outcome(stored, is_purged), expected, "{stored:?} {is_purged}");
        }
    }

    #[test]
    fn one_made_of_more_stands_for_a_session() {
        let id = |name: &str| MemoryId::derive(Kind::Conversation, None, name);
        let known = |name, last, due| Some(Standing { id: id(name), last, due });
        for (known, expected) in [
            (None, Standin::First),
            (known("new", 5, None), Standin::Stays(id("new"))),
            (known("old", 6, None), Standin::Stays(id("old"))),
            (known("old", 5, Some(9)), Standin::Replaces { due: Some(9) }),
            (known("old", 4, Some(9)), Standin::Replaces { due: None }),
        ] {
            assert_eq!(standin(known.clone(), &id("new"), 5), expected, "{known:?}");
        }
    }

    #[test]
    fn segments_follow_one_another_without_a_gap() {
        let segment = |number, first, last| SegmentRow { number, first, last, messages: 0, tokens: 0 };
        for (next, from, offered, expected) in [
            (0, 0, vec![segment(0, 0, 4), segment(1, 5, 9)], vec![(0, 0, 4), (1, 5, 9)]),
            (1, 5, vec![segment(0, 0, 4), segment(1, 7, 9)], vec![(1, 5, 9)]),
            (1, 5, vec![segment(2, 5, 9)], vec![]),
            (1, 5, vec![segment(1, 2, 4)], vec![]),
        ] {
            assert_eq!(closed(next, from, &offered), expected, "{next} {from} {offered:?}");
        }
    }
}
