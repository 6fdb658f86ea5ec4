//! Describes in words where a provider runs.

use crate::config::Configured;

/// Returns where `configured` runs, such as `this machine`.
pub fn place(configured: &Configured) -> String {
    match configured.is_local() {
        true => "this machine".into(),
        false => configured.provider.host(),
    }
}
