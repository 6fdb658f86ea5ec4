//! The states of entries in the queue of summaries: which entries are due, and how a request or a failure changes
//! an entry.

use super::leases::has_ended;
use tiro_base::memory::Millis;

/// The farthest that a stored date may lie in the future, in milliseconds: a day. A later date was written with a wrong
/// clock.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;

/// The number of tries after which an entry counts as failed.
const TRIES: i64 = 5;

/// The stored state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// It waits.
    Pending,
    /// A process works on it.
    Processing,
    /// Its summary was made.
    Completed,
    /// No more tries are made.
    Failed,
}

impl QueueState {
    /// Returns the word that the state is stored as.
    pub fn as_str(self) -> &'static str {
        match self {
            QueueState::Pending => "pending",
            QueueState::Processing => "processing",
            QueueState::Completed => "completed",
            QueueState::Failed => "failed",
        }
    }

    /// Returns the state that is stored as `word`.
    pub fn parse(word: &str) -> Option<QueueState> {
        [QueueState::Pending, QueueState::Processing, QueueState::Completed, QueueState::Failed]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// The fields of an entry that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// Its state.
    pub state: QueueState,
    /// Whether the user asked for it.
    pub by_user: bool,
    /// How many times it was tried.
    pub tries: i64,
    /// When it may be tried again.
    pub not_before: Millis,
    /// When the lease of the process that works on the entry ends.
    pub expires: Millis,
}

/// The next step for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It stays as it is.
    Wait,
    /// It may be taken.
    Take,
    /// The entry counts as failed: no more tries are allowed, and the process of the last try did not finish it in
    /// time.
    GiveUp,
}

/// Returns the next step for `entry`. `now` is the caller's time. `clock` is the time of the store's clock, which is
/// used for leases.
pub fn next(entry: QueueEntry, now: Millis, clock: Millis) -> Next {
    match entry.state {
        QueueState::Pending if has_ended(entry.not_before, FARTHEST, now) => Next::Take,
        QueueState::Processing if entry.expires <= clock && entry.tries >= TRIES => Next::GiveUp,
        QueueState::Processing if has_ended(entry.expires, FARTHEST, clock) => Next::Take,
        _ => Next::Wait,
    }
}

/// Returns the state of an entry after a summary was requested. `known` is the entry before the request, if there was
/// one, and `not_before` is the time when the request is due.
pub fn requested(known: Option<QueueEntry>, by_user: bool, not_before: Millis) -> QueueEntry {
    let new = QueueEntry { state: QueueState::Pending, by_user, tries: 0, not_before, expires: 0 };
    let Some(known) = known else { return new };
    let by_user_ever = by_user || known.by_user;
    match known.state {
        QueueState::Processing => QueueEntry { by_user: by_user_ever, ..known },
        // An entry that waits after a failure keeps its date, unless the request comes from the user.
        QueueState::Pending if by_user => {
            QueueEntry { by_user: true, not_before: known.not_before.min(not_before), ..known }
        }
        QueueState::Pending => QueueEntry { by_user: by_user_ever, ..known },
        QueueState::Completed | QueueState::Failed => QueueEntry { by_user: by_user_ever, ..new },
    }
}

/// Returns the state of an entry that failed `tries` times.
pub fn after_failure(tries: i64) -> QueueState {
    if tries < TRIES { QueueState::Pending } else { QueueState::Failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: QueueEntry =
        QueueEntry { state: QueueState::Pending, by_user: false, tries: 1, not_before: 100, expires: 0 };
    const HELD: QueueEntry = QueueEntry { state: QueueState::Processing, expires: 100, ..PENDING };

    #[test]
    fn an_entry_is_taken_when_its_date_or_its_lease_is_over() {
        for (entry, now, clock, expected) in [
            (PENDING, 99, 0, Next::Wait),
            (PENDING, 100, 0, Next::Take),
            (QueueEntry { not_before: 99 + FARTHEST + 1, ..PENDING }, 99, 0, Next::Take),
            (HELD, 500, 99, Next::Wait),
            (HELD, 0, 100, Next::Take),
            (QueueEntry { tries: TRIES, ..HELD }, 0, 99, Next::Wait),
            (QueueEntry { tries: TRIES, ..HELD }, 0, 100, Next::GiveUp),
            (QueueEntry { tries: TRIES, expires: FARTHEST + 2, ..HELD }, 0, 1, Next::Take),
            (QueueEntry { state: QueueState::Completed, ..PENDING }, 500, 500, Next::Wait),
            (QueueEntry { state: QueueState::Failed, ..PENDING }, 500, 500, Next::Wait),
        ] {
            assert_eq!(next(entry, now, clock), expected, "{entry:?} at {now}, {clock}");
        }
    }

    #[test]
    fn a_request_comes_first_for_the_user_and_leaves_work_in_progress_alone() {
        let by_user = |entry: QueueEntry| QueueEntry { by_user: true, ..entry };
        let fresh =
            QueueEntry { state: QueueState::Pending, by_user: false, tries: 0, not_before: 50, expires: 0 };
        for (known, is_users, expected) in [
            (None, false, fresh),
            (None, true, by_user(fresh)),
            (Some(PENDING), false, PENDING),
            (Some(PENDING), true, QueueEntry { not_before: 50, ..by_user(PENDING) }),
            (Some(by_user(PENDING)), false, by_user(PENDING)),
            (Some(HELD), true, by_user(HELD)),
            (Some(QueueEntry { state: QueueState::Completed, ..PENDING }), false, fresh),
            (Some(QueueEntry { state: QueueState::Failed, ..by_user(PENDING) }), false, by_user(fresh)),
        ] {
            assert_eq!(requested(known, is_users, 50), expected, "{known:?}");
        }
    }

    #[test]
    fn tries_are_bounded_and_words_parse_as_they_print() {
        assert_eq!((after_failure(4), after_failure(5)), (QueueState::Pending, QueueState::Failed));
        for word in ["pending", "processing", "completed", "failed"] {
            assert_eq!(QueueState::parse(word).map(QueueState::as_str), Some(word));
        }
        assert_eq!(QueueState::parse("made"), None);
    }
}
