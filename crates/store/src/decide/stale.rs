//! Decides whether to write a memory, a session's summary or a segment. A write can be unnecessary because of memories
//! that are already stored.

use crate::{Outcome, SegmentRow};
use tiro_base::memory::{MemoryId, Millis};

/// Returns the outcome of a write whose id the store already knows. `stored` is the memory that is stored under this
/// id, if any. `is_purged` is true if a memory with this id was purged. Returns `None` if the id is new, so that the
/// memory must be stored.
pub fn outcome(stored: Option<KnownMemory>, is_purged: bool) -> Option<Outcome> {
    match stored {
        Some(KnownMemory { is_forgotten: true, .. }) => Some(Outcome::Forgotten),
        Some(KnownMemory { is_same: true, .. }) => Some(Outcome::AlreadyStored),
        Some(_) => Some(Outcome::Conflict),
        None => is_purged.then_some(Outcome::Forgotten),
    }
}

/// A memory that is stored under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownMemory {
    /// Whether the text of the stored memory is the same as the text to write.
    pub is_same: bool,
    /// Whether it is forgotten.
    pub is_forgotten: bool,
}

/// The stored summary of a session, with the fields that decide whether a new summary replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its id.
    pub id: MemoryId,
    /// The ordinal of the last message that the summary was made from.
    pub last: i64,
    /// The time when the summary must be made again; `None` if the session has no newer messages.
    pub due: Option<Millis>,
}

/// The effect of a new memory that summarises a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standin {
    /// The summary is the first of the session.
    First,
    /// It replaces the stored summary.
    Replaces {
        /// The time when the new summary must be made again; `None` if the session has no newer messages.
        due: Option<Millis>,
    },
    /// The stored summary, which has this id, is kept: it is the same summary or covers more messages.
    Stays(MemoryId),
}

/// Returns the effect of storing the summary `id`, made from the messages up to `last`. `known` is the stored
/// summary of the session.
///
/// If the new summary covers the same messages as the stored summary but has a different text, the due date doesn't
/// change.
pub fn standin(known: Option<Standing>, id: &MemoryId, last: i64) -> Standin {
    match known {
        None => Standin::First,
        Some(known) if known.id == *id || known.last > last => Standin::Stays(known.id),
        Some(known) => Standin::Replaces { due: known.due.filter(|_| known.last == last) },
    }
}

/// Returns the segments of `offered` that must be closed, each as its number, first ordinal and last ordinal. `next` is
/// the next free number, and `from` is the first ordinal without a segment.
///
/// Segments never change: if the number of an offered segment is taken, another process has closed it already. A
/// segment begins right after the end of the previous one, so that a forgotten message that is restored later also
/// belongs to a segment. If an offered segment skips a number, or would end before it begins, the result ends before
/// this segment.
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
    use tiro_base::memory::Kind;

    #[test]
    fn known_memories_are_not_stored_again() {
        let known = |is_same, is_forgotten| Some(KnownMemory { is_same, is_forgotten });
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
    fn a_summary_of_more_messages_replaces_one_of_fewer() {
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
