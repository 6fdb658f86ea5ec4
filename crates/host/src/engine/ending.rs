//! Work that the process finishes before it ends, because it is paid for: a request to a provider, and storing its answer.

use tokio::sync::watch;

/// How many pieces of such work run, and whether new ones may begin.
#[derive(Clone, Copy, Default)]
struct EndingState {
    running: usize,
    is_ending: bool,
}

/// Counts the pieces of work that run.
#[derive(Default)]
pub struct Ending(watch::Sender<EndingState>);

/// A piece of work that runs. It is over when this is dropped.
pub struct Running<'a>(&'a Ending);

impl Ending {
    /// Begins a piece of work. Returns `None` once the process is ending.
    pub fn begin(&self) -> Option<Running<'_>> {
        let begins = self.0.send_if_modified(|state| {
            state.running += usize::from(!state.is_ending);
            !state.is_ending
        });
        begins.then(|| Running(self))
    }

    /// Lets nothing new begin, and returns when nothing runs any more.
    pub async fn finish(&self) {
        self.0.send_modify(|state| state.is_ending = true);
        let mut state = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = state.wait_for(|state| state.running == 0).await;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_waits_for_what_runs_and_lets_nothing_new_begin() {
        let ending = Ending::default();
        let running = ending.begin().unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), ending.finish()).await.is_err());
        assert!(ending.begin().is_none());
        drop(running);
        ending.finish().await;
    }
}
