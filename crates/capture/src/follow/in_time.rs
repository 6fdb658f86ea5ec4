//! Runs work with git on a thread and waits for it for a limited time.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout_at;

use tiro_git::Stop;

/// Sets its stop flag when it is dropped, so that the thread ends when nobody waits for its result any longer.
struct Waiting(Stop);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work` on another thread and returns its result, or `None` if it isn't done by `until`.
///
/// If it isn't done, `work` is asked to stop through its [`Stop`]. Its thread is left running, because a thread that is
/// blocked in the operating system can't be ended. The thread doesn't belong to the async runtime, so the process can
/// end without waiting for the thread.
pub async fn in_time<T: Send + 'static>(
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
    async fn work_that_never_ends_is_left_behind_with_its_stop_set() {
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
