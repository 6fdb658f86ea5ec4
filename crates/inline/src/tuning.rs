//! The tuned numbers that this crate and the crates above it use.

/// The share of the window that outdated copies of files and diffs may take before all files are sent again. The design
/// proposes a third; shown by `evals resend`.
pub const STALE_SHARE: f64 = 1.0 / 3.0;
