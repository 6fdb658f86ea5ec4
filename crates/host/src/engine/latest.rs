//! A value that is opened when it is first needed, and is opened again when it is no longer valid.

use std::sync::{Mutex, PoisonError};

use tiro_base::error::Result;

/// A value that is opened by the first call. When it is no longer valid, the next call opens a new value. Calls get
/// clones, which should be cheap and share the open resource. The resource is closed when the last call that uses it
/// ends.
pub struct Latest<T> {
    value: Mutex<Option<T>>,
    /// The lock that is held while a value is checked and opened, so that only one call at a time opens it.
    opening: tokio::sync::Mutex<()>,
}

impl<T> Default for Latest<T> {
    fn default() -> Latest<T> {
        Latest { value: Mutex::new(None), opening: tokio::sync::Mutex::new(()) }
    }
}

impl<T: Clone> Latest<T> {
    /// Returns the value that was opened last, even if it is no longer valid.
    pub fn last(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes the value and returns it. The next call opens a new value.
    pub fn let_go(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the last value if `holds` says that it is valid; otherwise opens a new value with `open`. If several
    /// calls come at the same time, one of them opens the value. The others check the value before they use it, because
    /// its opening may have begun before they came.
    pub async fn get_or_open(
        &self,
        holds: impl Fn(&T) -> bool,
        open: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        let last = || self.last().filter(|value| holds(value));
        if let Some(value) = last() {
            return Ok(value);
        }
        let _opening = self.opening.lock().await;
        if let Some(value) = last() {
            return Ok(value);
        }
        let value = open().await?;
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// Guards against a former fault: a call waited while the idle server opened the project. The project was replaced
    /// during this time, but the call was answered from the old one.
    #[tokio::test]
    async fn a_call_that_waited_checks_the_value_that_another_opened() {
        let (latest, now, go) =
            (Arc::new(Latest::<u32>::default()), Arc::new(AtomicU32::new(1)), Notify::new());
        let holds = |value: &u32| *value == now.load(Ordering::Relaxed);
        let slow = latest.get_or_open(holds, async || {
            let value = now.load(Ordering::Relaxed);
            go.notified().await;
            Ok(value)
        });
        let waiting = async {
            tokio::task::yield_now().await;
            now.store(2, Ordering::Relaxed);
            go.notify_one();
            latest.get_or_open(holds, async || Ok(now.load(Ordering::Relaxed))).await
        };
        let (first, second) = tokio::join!(slow, waiting);
        assert_eq!((first.unwrap(), second.unwrap()), (1, 2));
    }
}
