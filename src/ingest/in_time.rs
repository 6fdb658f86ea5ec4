//! Lets git work beside a call that waits only so long.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::git::Stop;

/// Sets its stop when nobody waits any more, for whichever reason.
struct Waiting(Stop);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work` on a thread of its own and returns what it returns, or `None` where that isn't there by `until`.
///
/// Then `work` is told to stop and left to itself: what the operating system holds up can't be ended, only left behind. The
/// thread is none of the runtime's, so that a process can end without waiting for it.
pub(crate) async fn in_time<T: Send + 'static>(
    until: Option<Instant>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Option<T> {
    let waiting = Waiting(Stop::default());
    let stop = waiting.0.clone();
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = sender.send(work(&stop));
    });
    match until {
        None => receiver.await.ok(),
        Some(until) => timeout_at(until.into(), receiver).await.ok()?.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_never_ends_is_left_behind_and_told_so() {
        let (sender, ended) = mpsc::channel();
        let until = Instant::now() + Duration::from_millis(50);
        let done = in_time(Some(until), move |stop| {
            while !stop.is_set() {
                std::thread::sleep(Duration::from_millis(5));
            }
            sender.send(()).unwrap();
        });
        assert_eq!(done.await, None);
        assert!(ended.recv_timeout(Duration::from_secs(20)).is_ok());
        assert_eq!(in_time(None, |stop| stop.is_set()).await, Some(false));
    }
}
