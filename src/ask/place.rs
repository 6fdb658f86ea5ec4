//! Where a provider is asked, in words.

use crate::config::Configured;

/// Returns where `configured` is asked.
pub(crate) fn place(configured: &Configured) -> String {
    match configured.is_local() {
        true => "this machine".into(),
        false => configured.provider.host(),
    }
}
