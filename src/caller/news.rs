//! Notices of what happened to the files in use, said once: by an answer, or beside the output of a command.

use std::sync::atomic::Ordering;

use super::Caller;
use crate::engine::Engine;

impl Caller {
    /// Returns, once, what happened to the files in use: another store was opened than before, permissions that let others
    /// read were taken away, or something could not be stored.
    pub fn take_news(&self, engine: &Engine) -> Option<String> {
        let mut news = engine.take_notices();
        news.append(&mut self.notices.take());
        (!news.is_empty()).then(|| news.join(" "))
    }

    /// Notes that tools are served: then answers of tools that only read say the news too. A command prints them beside its
    /// own output.
    pub fn serves_tools(&self) {
        self.serves_tools.store(true, Ordering::Relaxed);
    }

    /// Returns the news for the answer of a tool that only reads.
    pub fn take_news_for_reading(&self, engine: &Engine) -> Option<String> {
        self.serves_tools.load(Ordering::Relaxed).then(|| self.take_news(engine)).flatten()
    }

    /// Keeps a notice for the next answer that can say it, and logs it.
    pub fn tell(&self, notice: String) {
        self.notices.add(notice);
    }
}
