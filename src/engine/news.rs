//! What happened to the files that are used, said once: by an answer, or beside the output of a command.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Engine;

impl Engine {
    /// Returns, once, what happened to the files that are used: another store is open than before, what others could
    /// read was closed, or something was not stored.
    pub fn take_news(&self) -> Option<String> {
        let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        (!news.is_empty()).then(|| news.join(" "))
    }

    /// Notes that tools are served: the answers of those that only read say the news, too. A command prints them beside its own.
    pub fn serves_tools(&self) {
        self.serves_tools.store(true, Ordering::Relaxed);
    }

    /// Returns the news for an answer of what only reads.
    pub fn take_news_for_reading(&self) -> Option<String> {
        self.serves_tools.load(Ordering::Relaxed).then(|| self.take_news()).flatten()
    }

    /// Keeps what the next answer that can says, and logs it.
    pub fn tell(&self, news: String) {
        tracing::warn!("{news}");
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(news);
    }
}
