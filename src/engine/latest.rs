//! What is opened when it is first needed, and opened anew where it no longer holds.

use tokio::sync::OnceCell;

use crate::error::Result;

/// A value that is opened when it is first asked for, and again when the one before doesn't hold any more.
///
/// Who works with an earlier one can go on: it is kept, since it may be borrowed. An earlier one should cost little then.
pub(crate) struct Latest<T> {
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
    /// Returns the last one that was opened, whether it holds or not.
    pub(crate) fn last(&self) -> Option<&T> {
        let mut last = None;
        let mut cell = &self.first;
        while let Some(opened) = cell.get() {
            last = Some(&opened.value);
            cell = &opened.next;
        }
        last
    }

    /// Returns the last one that was opened where it holds, and what `open` gives otherwise. Of several calls at once one
    /// opens it; those that waited for it look whether it holds, since it may be of a moment before they came.
    pub(crate) async fn get_or_open(
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
                    let open = open.take().expect("it is called once: what it gives is returned");
                    Ok::<_, crate::error::Error>(Box::new(Opened {
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

    /// A repository was cloned again while an idle server opened its project: the call that waited for it was answered from a
    /// project of the moment before.
    #[tokio::test]
    async fn who_waited_for_another_looks_whether_what_it_opened_holds() {
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
