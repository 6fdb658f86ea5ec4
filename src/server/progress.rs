//! Sends progress notifications to a client that asked for them.
//!
//! A call reports its progress from its own thread. A channel passes the messages to the thread that writes. If the
//! client reads slowly, messages are dropped, because later messages replace them. No message is sent after the answer.

use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::mpsc;

use tiro_tools::Progress;

/// The shortest time between two notifications of a call. Arbitrary: people read no faster.
const PAUSE: Duration = Duration::from_millis(250);

/// The maximum number of messages that wait to be sent. Arbitrary.
const WAITING: usize = 8;

/// The notifications of one call.
pub(super) struct Notifications {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    messages: mpsc::Receiver<String>,
}

/// Returns the progress of the call in `context`, and the notifications that the progress causes. If the client didn't
/// send a progress token, the progress does nothing.
pub(super) fn progress(context: &RequestContext<RoleServer>) -> (Progress, Option<Notifications>) {
    let Some(token) = context.meta.get_progress_token() else { return (Progress::default(), None) };
    let (sender, messages) = mpsc::channel(WAITING);
    // If the channel is full, the message is dropped.
    let progress = Progress::new(move |message| drop(sender.try_send(message)));
    (progress, Some(Notifications { peer: context.peer.clone(), token, messages }))
}

/// Waits for `work`, and sends its notifications during this time.
pub(super) async fn while_telling<T>(
    notifications: Option<Notifications>,
    work: impl Future<Output = T>,
) -> T {
    let Some(Notifications { peer, token, mut messages }) = notifications else { return work.await };
    let mut work = std::pin::pin!(work);
    let (mut count, mut last): (u32, Option<Instant>) = (0, None);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return result,
            Some(message) = messages.recv() => {
                if last.is_some_and(|last| last.elapsed() < PAUSE) {
                    continue;
                }
                (count, last) = (count + 1, Some(Instant::now()));
                let told = ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(message);
                // An error is ignored: if the client is gone, the call ends in another way.
                drop(peer.notify_progress(told).await);
            }
        }
    }
}
