//! Keeps calls that continue after their caller was told that they are still running.
//!
//! A call runs on its own thread. Its caller waits for a while. After that, the call continues, and a caller that
//! repeats the same `call_id` waits for it again. If the caller cancels while it waits, the call and its request to the
//! provider end. Calls that nobody waits for end with the process. If their answer is not recorded by then, it is lost,
//! and the thread of the conversation is unchanged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Consulted, Event, Listener};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::thread::ThreadName;

/// The number of calls that are kept. If there are more, calls that have ended are dropped. Arbitrary.
const MOST_KEPT: usize = 64;

/// The identity of a call: its thread and its name.
type Key = (String, ThreadName, String);

/// The state of a call.
#[derive(Clone)]
pub enum Standing {
    /// The call is still running. The text describes its current step, and the number is the bytes of the answer that
    /// have arrived.
    Running(String, usize),
    /// The call has ended.
    Ended(Arc<Result<Consulted>>),
}

/// The running calls of this process, and the calls whose results were not fetched yet.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<HashMap<Key, Call>>>);

#[derive(Clone)]
struct Call {
    asked: String,
    standing: watch::Receiver<Standing>,
    cancel: Arc<watch::Sender<bool>>,
}

/// Cancels the call if it is dropped during the wait.
struct Waiting {
    running: Running,
    key: Key,
    cancel: Option<Arc<watch::Sender<bool>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.send_replace(true);
            // If the call is repeated, it starts again.
            self.running.lock().remove(&self.key);
        }
    }
}

impl Running {
    /// Returns the instructions of the call. Returns `None` if this process doesn't know the call.
    pub fn asked(&self, key: &Key) -> Option<String> {
        self.lock().get(key).map(|call| call.asked.clone())
    }

    /// Starts the call unless it is running, and waits for it, but at most for `patience`. `listener` gets the events
    /// during this time. `asked` are the instructions.
    pub async fn call(
        &self,
        key: Key,
        asked: &str,
        patience: Duration,
        listener: Listener,
        work: impl FnOnce(Listener) -> std::pin::Pin<Box<dyn Future<Output = Result<Consulted>> + Send>>,
    ) -> Standing {
        let known = self.lock().get(&key).cloned();
        let call = known.unwrap_or_else(|| self.start(&key, asked, work));
        let cancel = Some(Arc::clone(&call.cancel));
        let mut waiting = Waiting { running: self.clone(), key: key.clone(), cancel };
        let mut standing = call.standing.clone();
        let ended = async {
            let mut told = String::new();
            loop {
                let now = standing.borrow_and_update().clone();
                match now {
                    Standing::Ended(_) => return now,
                    Standing::Running(doing, bytes) => {
                        let said = if bytes > 0 { format!("{doing}; {bytes} bytes answered") } else { doing };
                        if said != told {
                            listener(Event::Doing(said.clone()));
                            told = said;
                        }
                    }
                }
                if standing.changed().await.is_err() {
                    let lost = Error::new(Kind::Io, "the call broke off, which is a bug in Tiro");
                    return Standing::Ended(Arc::new(Err(lost)));
                }
            }
        };
        let outcome = tokio::time::timeout(patience, ended).await;
        // From here on, nobody waits for the call, so it is not cancelled.
        waiting.cancel = None;
        match outcome {
            Ok(ended) => {
                self.lock().remove(&key);
                ended
            }
            Err(_) => call.standing.borrow().clone(),
        }
    }

    fn start(
        &self,
        key: &Key,
        asked: &str,
        work: impl FnOnce(Listener) -> std::pin::Pin<Box<dyn Future<Output = Result<Consulted>> + Send>>,
    ) -> Call {
        let (sender, standing) = watch::channel(Standing::Running("the call begins".to_owned(), 0));
        let (cancel, mut is_cancelled) = watch::channel(false);
        let sender = Arc::new(sender);
        let telling = Arc::clone(&sender);
        let listener: Listener = Arc::new(move |event| {
            telling.send_if_modified(|standing| {
                let Standing::Running(doing, bytes) = standing else { return false };
                match event {
                    Event::Doing(now) => *doing = now,
                    Event::Text(text) => *bytes += text.len(),
                }
                true
            });
        });
        let work = work(listener);
        let runtime = tokio::runtime::Handle::current();
        // The work waits for SQLite and the encoder, so it runs on its own thread.
        drop(tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                let outcome = tokio::select! {
                    biased;
                    _ = is_cancelled.wait_for(|is_cancelled| *is_cancelled) => {
                        Err(Error::new(Kind::Busy, "the call was cancelled; nothing was recorded"))
                    }
                    outcome = work => outcome,
                };
                sender.send_replace(Standing::Ended(Arc::new(outcome)));
            });
        }));
        let call = Call { asked: asked.to_owned(), standing, cancel: Arc::new(cancel) };
        let mut calls = self.lock();
        if calls.len() >= MOST_KEPT {
            // Recorded answers are in the store. So only errors that nobody fetched are lost.
            calls.retain(|_, call| matches!(*call.standing.borrow(), Standing::Running(..)));
        }
        calls.insert(key.clone(), call.clone());
        call
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
