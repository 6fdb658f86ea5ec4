//! Calls that go on after their caller got the answer that they are still running.
//!
//! A call runs on a thread of its own. Its caller waits for a while; after that, the call continues, and a caller that
//! repeats the same `call_id` waits for it again. If the caller cancels while it waits, the call ends, and with it the
//! request to the provider. Calls that nobody waits for end with the process; an answer that is not recorded is lost,
//! and the thread of the call is as it was.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Consulted, Event, Listener};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::thread::ThreadName;

/// How many calls are kept before those that ended are dropped. Arbitrary.
const MOST_KEPT: usize = 64;

/// The identity of a call: its thread and its name.
type Key = (String, ThreadName, String);

/// How a call stands.
#[derive(Clone)]
pub enum Standing {
    /// It is still running; this is what it does, and how many bytes of the answer have arrived.
    Running(String, usize),
    /// It ended.
    Ended(Arc<Result<Consulted>>),
}

/// The calls of this process that are running, and those whose result nobody got yet.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<HashMap<Key, Call>>>);

#[derive(Clone)]
struct Call {
    asked: String,
    standing: watch::Receiver<Standing>,
    cancel: Arc<watch::Sender<bool>>,
}

/// Cancels the call when it is dropped while it waits.
struct Waiting {
    running: Running,
    key: Key,
    cancel: Option<Arc<watch::Sender<bool>>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.send_replace(true);
            // A repeated call begins anew.
            self.running.lock().remove(&self.key);
        }
    }
}

impl Running {
    /// Returns the instructions of the call; `None` if it is not known here.
    pub fn asked(&self, key: &Key) -> Option<String> {
        self.lock().get(key).map(|call| call.asked.clone())
    }

    /// Starts the call, unless it is running, and waits for it, but no longer than `patience`. `listener` is told what
    /// happens while this caller waits. `asked` are the instructions.
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
        // From here on, nobody waits for the call, so nothing cancels it.
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
        // The work waits for SQLite and the encoder, so it has a thread of its own.
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
            // Recorded answers are in the store, so only errors that nobody asked for are lost.
            calls.retain(|_, call| matches!(*call.standing.borrow(), Standing::Running(..)));
        }
        calls.insert(key.clone(), call.clone());
        call
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
