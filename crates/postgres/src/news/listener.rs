//! The connection that listens. It is beside the pool, and opened again when it was lost, after pauses that grow.
//!
//! A pooler that gives each transaction another connection of the server can't serve it. Then nothing arrives, and those
//! who follow a store look by themselves.

use std::sync::Weak;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio_postgres::{AsyncMessage, Config};

use super::{Key, News};
use crate::database::tls;
use crate::error::{Error, Result};
use tiro_base::error::Kind;

/// The pause after the connection was lost. It doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause. Those who follow a store look by themselves as often.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long `LISTEN` may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens on `channel` until the news are gone.
pub(super) async fn listen(news: Weak<News>, mut config: Config, channel: String) {
    // A connection that a firewall forgot would stay silent for ever.
    config.keepalives_idle(Duration::from_secs(60)).keepalives_interval(Duration::from_secs(10));
    config.keepalives_retries(3);
    let mut pause = FIRST_PAUSE;
    while news.strong_count() > 0 {
        let mut is_listening = false;
        if let Err(error) = until_lost(&news, &config, &channel, &mut is_listening).await {
            tracing::debug!(%error, "no changes of other processes are heard now");
        }
        pause = if is_listening { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        tokio::time::sleep(pause).await;
    }
}

/// Listens on a new connection until it is lost. Sets `is_listening` once notices arrive.
async fn until_lost(
    news: &Weak<News>,
    config: &Config,
    channel: &str,
    is_listening: &mut bool,
) -> Result<()> {
    let (client, mut connection) = config.connect(tls()?).await?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let sql = format!("LISTEN \"{channel}\"");
    let mut listening = std::pin::pin!(tokio::time::timeout(PATIENCE, client.batch_execute(&sql)));
    loop {
        tokio::select! {
            begun = listening.as_mut(), if !*is_listening => {
                begun.map_err(|_| Error::new(Kind::Busy, "the database doesn't begin to send notices"))??;
                *is_listening = true;
                let Some(news) = news.upgrade() else { return Ok(()) };
                // Nobody heard what was told until now.
                news.wake_all();
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notice))) => {
                    let Some(news) = news.upgrade() else { return Ok(()) };
                    if let Some(key) = Key::read(notice.payload()) {
                        news.wake(key);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Error::new(Kind::Store, "the database ended the connection")),
            },
        }
    }
}
