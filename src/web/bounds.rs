//! How much callers may ask at the same time and in a row, so that none of them slows the others down or fills the
//! memory.
//!
//! The decisions are pure: the time is an argument.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most calls of one caller at the same time.
    pub each: usize,
    /// The most calls of all callers at the same time.
    pub all: usize,
    /// The calls of one caller for each second, in the long run.
    pub rate: f64,
    /// The calls of one caller that may come at once after a pause.
    pub burst: f64,
}

impl Default for Limits {
    /// An agent asks a few calls at the same time, and a person may run several agents. Each call has a thread and up to
    /// some megabytes, so 64 calls take less than half a gigabyte. A loop that runs wild is slowed down to the pace at
    /// which one core answers searches.
    fn default() -> Limits {
        Limits { each: 16, all: 64, rate: 50.0, burst: 200.0 }
    }
}

impl Limits {
    /// Returns the bounds of the machines that wait for changes. A wait takes a connection and some kilobytes, so a person
    /// may have several machines with several projects each. Half of the connections are left for calls.
    pub fn of_waits() -> Limits {
        Limits { each: 32, all: 256, ..Limits::default() }
    }
}

/// The most callers that are remembered. Arbitrary: more than a team has. Beyond it, callers that are as if they had
/// never called are forgotten, and further ones wait.
const MOST_CALLERS: usize = 4096;

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// The caller has too many open calls.
    Open,
    /// The caller calls too often. The caller may call again after this time.
    Often(Duration),
    /// All callers together have too many open calls.
    Busy,
}

impl TooMuch {
    /// Returns the number of seconds after which the call may be repeated.
    pub fn retry_after(self) -> u64 {
        match self {
            TooMuch::Often(pause) => pause.as_secs() + 1,
            TooMuch::Open | TooMuch::Busy => 1,
        }
    }
}

/// The open calls of a server and the rates of its callers. Clones share them.
#[derive(Clone)]
pub struct Bounds {
    limits: Limits,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    open: usize,
    callers: HashMap<String, Pace>,
}

/// The right to one call. It ends when this value is dropped.
pub struct Permit {
    bounds: Bounds,
    caller: String,
}

impl Bounds {
    /// Returns bounds without open calls.
    pub fn new(limits: Limits) -> Bounds {
        Bounds { limits, state: Arc::default() }
    }

    /// Begins a call of `caller` at the time `now`, which is counted from any fixed moment.
    pub fn begin(&self, caller: &str, now: Duration) -> Result<Permit, TooMuch> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.callers.len() >= MOST_CALLERS && !state.callers.contains_key(caller) {
            state.callers.retain(|_, pace| !pace.is_rested(&self.limits, now));
            if state.callers.len() >= MOST_CALLERS {
                return Err(TooMuch::Busy);
            }
        }
        let is_busy = state.open >= self.limits.all;
        let pace = state.callers.entry(caller.to_owned()).or_insert_with(|| Pace::new(&self.limits, now));
        pace.begin(&self.limits, is_busy, now)?;
        state.open += 1;
        Ok(Permit { bounds: self.clone(), caller: caller.to_owned() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.bounds.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open -= 1;
        if let Some(pace) = state.callers.get_mut(&self.caller) {
            pace.open -= 1;
        }
    }
}

/// The open calls and the rate of one caller.
#[derive(Clone, Copy, Debug)]
struct Pace {
    open: usize,
    /// The number of calls that may come at once, at the time `at`.
    left: f64,
    at: Duration,
}

impl Pace {
    fn new(limits: &Limits, now: Duration) -> Pace {
        Pace { open: 0, left: limits.burst, at: now }
    }

    /// Returns the number of calls that may come at once now.
    fn left(&self, limits: &Limits, now: Duration) -> f64 {
        let rested = now.saturating_sub(self.at).as_secs_f64() * limits.rate;
        (self.left + rested).min(limits.burst)
    }

    /// Returns whether the caller is as if it had never called.
    fn is_rested(&self, limits: &Limits, now: Duration) -> bool {
        self.open == 0 && self.left(limits, now) >= limits.burst
    }

    fn begin(&mut self, limits: &Limits, is_busy: bool, now: Duration) -> Result<(), TooMuch> {
        (self.left, self.at) = (self.left(limits, now), self.at.max(now));
        if self.left < 1.0 {
            return Err(TooMuch::Often(Duration::from_secs_f64((1.0 - self.left) / limits.rate)));
        }
        self.left -= 1.0;
        if self.open >= limits.each {
            return Err(TooMuch::Open);
        }
        if is_busy {
            return Err(TooMuch::Busy);
        }
        self.open += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { each: 2, all: 3, rate: 2.0, burst: 4.0 };

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn calls_at_the_same_time_are_bounded_for_each_caller_and_in_all() {
        let bounds = Bounds::new(LIMITS);
        let begin = |caller: &str| bounds.begin(caller, at(0.0));
        let open = [begin("ana"), begin("ana")].map(Result::unwrap);
        assert_eq!(begin("ana").err(), Some(TooMuch::Open));
        let other = begin("ben").unwrap();
        assert_eq!(begin("ben").err(), Some(TooMuch::Busy));
        drop(other);
        assert!(begin("ben").is_ok());
        drop(open);
        assert!(bounds.begin("ana", at(10.0)).is_ok());
    }

    #[test]
    fn a_caller_who_calls_too_often_waits_and_others_do_not() {
        let bounds = Bounds::new(LIMITS);
        let begin = |caller: &str, now: f64| bounds.begin(caller, at(now)).map(drop);
        for _ in 0..4 {
            begin("ana", 0.0).unwrap();
        }
        assert_eq!(begin("ana", 0.0), Err(TooMuch::Often(at(0.5))));
        assert_eq!(begin("ana", 0.25), Err(TooMuch::Often(at(0.25))));
        begin("ben", 0.25).unwrap();
        begin("ana", 0.75).unwrap();
        for _ in 0..4 {
            begin("ana", 100.0).unwrap();
        }
        assert!(begin("ana", 100.0).is_err(), "a pause gives no more than the burst");
        assert_eq!(TooMuch::Often(at(0.5)).retry_after(), 1);
        // A clock that goes back gives nothing.
        assert!(begin("ana", 0.0).is_err());
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let bounds = Bounds::new(Limits { all: usize::MAX, ..LIMITS });
        for number in 0..MOST_CALLERS {
            bounds.begin(&number.to_string(), at(0.0)).map(drop).unwrap();
        }
        assert_eq!(bounds.begin("ana", at(0.0)).err(), Some(TooMuch::Busy));
        assert!(bounds.begin("ana", at(5.0)).is_ok());
        assert_eq!(bounds.state.lock().unwrap().callers.len(), 1);
    }
}
