//! What callers have open, and which of it a process lets go when it is too much.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many callers of one process have a project open at once. Arbitrary: an open store has a few files and some megabytes
/// of caches, and people work on fewer projects at a time.
pub const MOST_OPEN: usize = 32;

/// Something that a caller has open, and opens again when it next needs it.
pub trait LetGo: Send + Sync {
    /// Lets go of what is open. It is closed when the last call that uses it ends.
    fn let_go(&self);
}

/// The callers that have a project open, the one that used its project last at the end. A caller that is gone closed its
/// project by itself.
#[derive(Default)]
pub struct Opened(Mutex<Vec<Weak<dyn LetGo>>>);

impl Opened {
    /// Notes that `caller` uses its project now. If more than [`MOST_OPEN`] callers have one open, those that used theirs
    /// longest ago let go of it.
    pub fn used(&self, caller: &Arc<dyn LetGo>) {
        let caller = Arc::downgrade(caller);
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&caller));
        list.push(caller);
        let surplus = list.len().saturating_sub(MOST_OPEN);
        let longest_ago: Vec<Weak<dyn LetGo>> = list.drain(..surplus).collect();
        drop(list);
        longest_ago.iter().filter_map(Weak::upgrade).for_each(|caller| caller.let_go());
    }
}
