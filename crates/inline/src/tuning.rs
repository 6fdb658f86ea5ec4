//! Numbers that were tuned, and are read in this crate or by those above it.

/// The share of the window that outdated copies of files and diffs may take before all files are sent again. The design
/// gives a third; shown by `evals resend`.
pub const STALE_SHARE: f64 = 1.0 / 3.0;
