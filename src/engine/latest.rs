//! What is opened when it is first needed, and opened anew where it no longer holds.

use tokio::sync::OnceCell;

use crate::error::Result;

/// A value that is opened when it is first asked for, and again when the one before doesn't hold any more.
///
/// Who works with an earlier one can go on: it is kept, since it may be borrowed. An earlier one should cost little then.
pub(super) struct Latest<T> {
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
    pub(super) fn last(&self) -> Option<&T> {
        let mut last = None;
        let mut cell = &self.first;
        while let Some(opened) = cell.get() {
            last = Some(&opened.value);
            cell = &opened.next;
        }
        last
    }

    /// Returns the last one that was opened where it holds, and what `open` gives otherwise. Of several calls at once one
    /// opens it.
    pub(super) async fn get_or_open(
        &self,
        holds: impl Fn(&T) -> bool,
        open: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<&T> {
        let mut cell = &self.first;
        while let Some(opened) = cell.get() {
            if !opened.next.initialized() && holds(&opened.value) {
                return Ok(&opened.value);
            }
            cell = &opened.next;
        }
        let open = async || {
            Ok::<_, crate::error::Error>(Box::new(Opened { value: open().await?, next: OnceCell::new() }))
        };
        Ok(&cell.get_or_try_init(open).await?.value)
    }
}
