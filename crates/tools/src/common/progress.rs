//! How a long call tells its client how far it is.

use std::sync::Arc;

/// Tells the client of a call how far the call is. Clones tell the same client.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(String) + Send + Sync>>);

impl Progress {
    /// Returns the progress of a call whose client gets each message by `tell`, which must not block.
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Progress {
        Progress(Some(Arc::new(tell)))
    }

    /// Tells the client `message`: a short phrase without secrets, such as "reading 12 files".
    pub fn tell(&self, message: impl Into<String>) {
        if let Some(tell) = &self.0 {
            tell(message.into());
        }
    }
}
