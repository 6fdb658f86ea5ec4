//! Keeps extracted texts, so that a repeated call continues where the budget of the previous call ended.
//!
//! The texts are kept only in memory. The kept texts are not redacted yet, so they must not be written to a disk.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{Extracted, Fault, Kind};
use tiro_base::thread::ContentHash;

/// The maximum number of bytes of kept texts: the same as the limit of a call.
const MOST_BYTES: usize = 64_000_000;

/// The maximum number of documents whose outcomes are kept. Arbitrary: more than the documents that people name in
/// calls.
const MOST: usize = 20_000;

/// How long a document's outcome is remembered if the parser ran out of time or memory. Afterwards, the document is
/// tried again, because a busy machine can cause such a failure too.
const TRUSTED: Duration = Duration::from_secs(3600);

/// The identity of a document: its format, and the hash of its bytes.
pub(super) type Key = (Kind, ContentHash);

/// The outcomes of documents, each under its key.
#[derive(Debug, Default)]
pub(super) struct Kept {
    outcomes: HashMap<Key, Known>,
    bytes: usize,
    /// The number of lookups and insertions so far.
    uses: u64,
}

#[derive(Debug)]
struct Known {
    outcome: Result<Extracted, Fault>,
    since: Instant,
    last_use: u64,
}

impl Kept {
    /// Returns the outcome of a document.
    pub fn get(&mut self, key: &Key, now: Instant) -> Option<Result<Extracted, Fault>> {
        self.uses += 1;
        let known = self.outcomes.get_mut(key)?;
        let may_pass = matches!(known.outcome, Err(Fault::TimedOut | Fault::Crashed));
        if may_pass && now.saturating_duration_since(known.since) > TRUSTED {
            return None;
        }
        known.last_use = self.uses;
        Some(known.outcome.clone())
    }

    /// Keeps the outcome of a document. If too much is kept, forgets the least recently used outcomes.
    pub fn put(&mut self, key: Key, outcome: &Result<Extracted, Fault>, now: Instant) {
        // A program that can't be started now may start later, so this outcome is not kept.
        if *outcome == Err(Fault::NotStarted) {
            return;
        }
        self.uses += 1;
        let known = Known { outcome: outcome.clone(), since: now, last_use: self.uses };
        self.bytes += known.size();
        let before = self.outcomes.insert(key, known);
        self.bytes -= before.map_or(0, |before| before.size());
        while self.bytes > MOST_BYTES || self.outcomes.len() > MOST {
            let Some(oldest) = self.outcomes.iter().min_by_key(|(_, known)| known.last_use) else { return };
            let oldest = *oldest.0;
            self.bytes -= self.outcomes.remove(&oldest).map_or(0, |known| known.size());
        }
    }
}

impl Known {
    fn size(&self) -> usize {
        self.outcome.as_ref().map_or(0, |extracted| extracted.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        (Kind::Pdf, ContentHash::of(&number.to_le_bytes()))
    }

    fn text(size: usize) -> Result<Extracted, Fault> {
        Ok(Extracted { text: "x".repeat(size), notes: Vec::new() })
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_is_forgotten_first() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let third = MOST_BYTES / 3;
        for number in 0..3 {
            kept.put(key(number), &text(third), now);
        }
        assert!(kept.get(&key(0), now).is_some());
        kept.put(key(3), &text(third), now);
        let known = |kept: &mut Kept| (0..4).map(|n| kept.get(&key(n), now).is_some()).collect::<Vec<_>>();
        assert_eq!(known(&mut kept), [true, false, true, true]);
        // The same document in the place of itself takes no more room.
        kept.put(key(3), &text(third), now);
        assert_eq!((known(&mut kept), kept.bytes), (vec![true, false, true, true], 3 * third));
        assert_eq!(kept.get(&(Kind::Docx, key(0).1), now), None, "another format has another text");
    }

    #[test]
    fn a_failure_that_may_pass_is_not_kept_for_long() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let faults = [Fault::TimedOut, Fault::Crashed, Fault::Malformed, Fault::NotStarted];
        for (number, fault) in faults.into_iter().enumerate() {
            kept.put(key(number), &Err(fault), now);
        }
        let known = |kept: &mut Kept, at: Instant| {
            (0..4).map(|n| kept.get(&key(n), at).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(known(&mut kept, now), [true, true, true, false]);
        assert_eq!(known(&mut kept, now + TRUSTED * 2), [false, false, true, false]);
    }
}
