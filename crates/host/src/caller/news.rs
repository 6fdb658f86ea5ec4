//! Notices about the files in use. Each is reported once, in an answer or next to the output of a command.

use std::sync::atomic::Ordering;

use super::Caller;
use crate::engine::Engine;

impl Caller {
    /// Returns the notices about the files in use that were not returned before. They say, for example, that another
    /// store was opened, that permissions which let others read were removed, or that something could not be stored.
    pub fn take_news(&self, engine: &Engine) -> Option<String> {
        let mut news = engine.take_notices();
        news.append(&mut self.state.notices.take());
        (!news.is_empty()).then(|| news.join(" "))
    }

    /// Records that this process serves tools. From then on, the answers of read-only tools report the notices too. A
    /// command prints them next to its output instead.
    pub fn serves_tools(&self) {
        self.state.serves_tools.store(true, Ordering::Relaxed);
    }

    /// Returns the notices for the answer of a read-only tool.
    pub fn take_news_for_reading(&self, engine: &Engine) -> Option<String> {
        self.state.serves_tools.load(Ordering::Relaxed).then(|| self.take_news(engine)).flatten()
    }

    /// Keeps a notice for the next answer that can report it, and logs it.
    pub fn add_notice(&self, notice: String) {
        self.state.notices.add(notice);
    }
}
