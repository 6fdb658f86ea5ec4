//! A value that is opened when it is first needed, and is opened anew when it is no longer valid.

use tokio::sync::OnceCell;

use tiro_base::error::Result;

/// A value that the first call opens. When it is no longer valid, the next call opens a new one.
///
/// Earlier values stay in memory, because calls may still borrow them. So a value that is no longer valid should use
/// few resources.
pub struct Latest<T> {
    first: Cell<T>,
}

type Cell<T> = OnceCell<Box<Opened<T>>>;

struct Opened<T> {
    value: T,
    next: Cell<T>,
}

impl<T> Default for Latest<T> {
    fn default() -> Latest<T> {
        Latest { first: OnceCell::new() }
    }
}

impl<T> Latest<T> {
    /// Returns the value that was opened last, even if it is no longer valid.
    pub fn last(&self) -> Option<&T> {
        let mut last = None;
        let mut cell = &self.first;
        while let Some(opened) = cell.get() {
            last = Some(&opened.value);
            cell = &opened.next;
        }
        last
    }

    /// Returns the last value if it is valid, according to `holds`; otherwise opens a new one with `open`. If several
    /// calls come at the same time, one of them opens the value. The others check the value before they use it: the
    /// opening may have begun before they came.
    pub async fn get_or_open(
        &self,
        holds: impl Fn(&T) -> bool,
        open: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<&T> {
        let mut cell = &self.first;
        let mut open = Some(open);
        loop {
            if let Some(opened) = cell.get() {
                if !opened.next.initialized() && holds(&opened.value) {
                    return Ok(&opened.value);
                }
                cell = &opened.next;
                continue;
            }
            let opened = cell
                .get_or_try_init(async || {
                    let open = open.take().expect("the loop ends after `open` was called");
                    Ok::<_, tiro_base::error::Error>(Box::new(Opened {
                        value: open().await?,
                        next: OnceCell::new(),
                    }))
                })
                .await?;
            if open.is_none() {
                return Ok(&opened.value);
            }
        }
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
            latest.get_or_open(holds, async || Ok(now.load(Ordering::Relaxed))).await.copied()
        };
        let (first, second) = tokio::join!(slow, waiting);
        assert_eq!((*first.unwrap(), second.unwrap()), (1, 2));
    }
}
