//! The budget of a call for extracting the texts of documents. The budget covers all documents of the call, and ends
//! with the call.
//!
//! A document of a few kilobytes can keep a parser busy for as long as the parser may run, and a folder can have any
//! number of such documents. So every reading of a file needs the budget of its call. Through the budget, the reading
//! threads also learn that the call has ended and nobody waits for their results.
//!
//! Texts that are known from earlier calls take no time, but their bytes count, because they are redacted and their
//! tokens are counted again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tiro_base::humanize::{bytes, thousands};

/// The limits of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// The maximum total time for extracting texts.
    pub time: Duration,
    /// The maximum number of documents from which texts are extracted.
    pub documents: usize,
    /// The maximum number of bytes of these documents together.
    pub bytes_in: u64,
    /// The maximum number of bytes of the texts of all documents together.
    pub bytes_out: u64,
}

/// With these limits, a call ends within a minute on two cores. The limit on texts is the number of bytes that can be
/// searched in a call.
impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            time: Duration::from_secs(45),
            documents: 2000,
            bytes_in: 512_000_000,
            bytes_out: 64_000_000,
        }
    }
}

/// The part of the call's budget that was used up, so that a document was not read. `Display` completes "was not read,
/// because …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exhausted {
    /// Other documents used up the time of the call. A call has this many seconds.
    Time(u64),
    /// This many documents were read already.
    Documents(usize),
    /// The other documents have nearly this many bytes.
    BytesIn(u64),
    /// The other texts have nearly this many bytes.
    BytesOut(u64),
    /// The call has ended.
    Ended,
}

impl Exhausted {
    /// Returns what to try next.
    pub(super) fn way_out(self) -> Option<&'static str> {
        match self {
            Exhausted::Time(_) | Exhausted::Documents(_) | Exhausted::BytesIn(_) => {
                Some("repeat the call, which goes on from here, or name fewer documents")
            }
            Exhausted::BytesOut(_) => Some("name fewer documents, or copy the parts that matter"),
            Exhausted::Ended => None,
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exhausted::Time(seconds) => write!(f, "the documents of a call get {seconds} s"),
            Exhausted::Documents(most) => {
                write!(f, "a call extracts the text of {} documents", thousands(*most as u64))
            }
            Exhausted::BytesIn(most) => write!(f, "the documents of a call may have {}", bytes(*most)),
            Exhausted::BytesOut(most) => {
                write!(f, "the texts of the documents of a call may have {}", bytes(*most))
            }
            Exhausted::Ended => f.write_str("the call has ended"),
        }
    }
}

/// The budget of a call. Clones share the same budget.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    allowance: Allowance,
    has_ended: AtomicBool,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    documents: usize,
    bytes_in: u64,
    bytes_out: u64,
    /// The total time during which at least one text was being extracted, without the time since `since`.
    time: Duration,
    /// The time since which at least one text is being extracted.
    since: Option<Instant>,
    at_once: usize,
}

impl Budget {
    /// Returns the budget of a call that begins.
    pub fn new(allowance: Allowance) -> Budget {
        Budget(Arc::new(Shared { allowance, ..Shared::default() }))
    }

    /// Returns a value that ends the budget when it is dropped. Callers keep the value in the future that runs the
    /// call.
    #[must_use]
    pub fn ends_with_call(&self) -> Ending {
        Ending(self.clone())
    }

    /// Returns whether the call has ended.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Relaxed)
    }

    /// Begins to extract the text of a document of `size` bytes.
    ///
    /// # Errors
    ///
    /// The part of the budget that is used up.
    pub(super) fn begin(&self, size: usize) -> Result<DocumentTurn<'_>, Exhausted> {
        let Allowance { time, documents, bytes_in, .. } = self.0.allowance;
        let mut spent = self.spent();
        let now = Instant::now();
        let taken =
            spent.time + spent.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let left = time.saturating_sub(taken);
        let exhausted = match () {
            () if self.has_ended() => Some(Exhausted::Ended),
            () if left.is_zero() => Some(Exhausted::Time(time.as_secs())),
            () if spent.documents >= documents => Some(Exhausted::Documents(documents)),
            () if spent.bytes_in + size as u64 > bytes_in => Some(Exhausted::BytesIn(bytes_in)),
            () => None,
        };
        if let Some(exhausted) = exhausted {
            return Err(exhausted);
        }
        spent.documents += 1;
        spent.bytes_in += size as u64;
        spent.at_once += 1;
        spent.since.get_or_insert(now);
        Ok(DocumentTurn { budget: self, until: now + left })
    }

    /// Takes the bytes of a text of `size` bytes from the budget.
    ///
    /// # Errors
    ///
    /// [`Exhausted::BytesOut`].
    pub(super) fn take(&self, size: usize) -> Result<(), Exhausted> {
        let most = self.0.allowance.bytes_out;
        let mut spent = self.spent();
        if spent.bytes_out + size as u64 > most {
            return Err(Exhausted::BytesOut(most));
        }
        spent.bytes_out += size as u64;
        Ok(())
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.0.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An extraction that is running. The time of the extraction ends when this value is dropped.
pub(super) struct DocumentTurn<'b> {
    budget: &'b Budget,
    /// The moment when the time of the budget is over.
    pub until: Instant,
}

impl DocumentTurn<'_> {
    /// Errors if the call has ended or its time is over.
    pub fn check(&self) -> Result<(), Exhausted> {
        match () {
            () if self.budget.has_ended() => Err(Exhausted::Ended),
            () if Instant::now() >= self.until => {
                Err(Exhausted::Time(self.budget.0.allowance.time.as_secs()))
            }
            () => Ok(()),
        }
    }
}

impl Drop for DocumentTurn<'_> {
    fn drop(&mut self) {
        let mut spent = self.budget.spent();
        spent.at_once -= 1;
        if spent.at_once == 0
            && let Some(since) = spent.since.take()
        {
            spent.time += since.elapsed();
        }
    }
}

/// Ends the budget of a call when it is dropped.
#[derive(Debug)]
pub struct Ending(Budget);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.0.has_ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Allowance =
        Allowance { time: Duration::from_secs(3600), documents: 2, bytes_in: 100, bytes_out: 50 };

    fn refused(budget: &Budget, size: usize) -> Option<Exhausted> {
        budget.begin(size).err()
    }

    #[test]
    fn each_part_of_a_budget_ends() {
        let budget = Budget::new(SMALL);
        assert_eq!(refused(&budget, 101), Some(Exhausted::BytesIn(100)));
        assert_eq!(refused(&budget, 60), None);
        assert_eq!(refused(&budget.clone(), 60), Some(Exhausted::BytesIn(100)), "a clone is the same budget");
        assert_eq!(refused(&budget, 40), None);
        assert_eq!(refused(&budget, 0), Some(Exhausted::Documents(2)));
        assert_eq!((budget.take(50), budget.take(1)), (Ok(()), Err(Exhausted::BytesOut(50))));
        let hurried = Budget::new(Allowance { time: Duration::ZERO, ..SMALL });
        assert_eq!(refused(&hurried, 1), Some(Exhausted::Time(0)));
    }

    #[test]
    fn time_counts_once_while_several_texts_are_extracted_and_not_between_them() {
        let budget = Budget::new(Allowance { documents: 9, ..SMALL });
        let begin = || budget.begin(1).unwrap();
        let (first, second) = (begin(), begin());
        // Both share what is left, so they end at the same time.
        assert!(second.until.duration_since(first.until) < Duration::from_secs(1));
        drop(first);
        assert!(budget.spent().since.is_some());
        drop(second);
        assert!(budget.spent().since.is_none());
        let taken = budget.spent().time;
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(budget.spent().time, taken);
    }

    #[test]
    fn it_ends_with_its_call() {
        let budget = Budget::default();
        let ending = budget.ends_with_call();
        let turn = budget.begin(1).unwrap();
        assert_eq!(turn.check(), Ok(()));
        drop(ending);
        assert_eq!(turn.check(), Err(Exhausted::Ended));
        assert_eq!(refused(&budget, 1), Some(Exhausted::Ended));
    }
}
