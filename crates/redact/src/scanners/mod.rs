//! Scanners for the kinds of secrets that a pattern can't describe. A scanner is called at each place where one of its
//! literals was found.

pub(super) mod checksums;
pub(super) mod cookies;
pub(super) mod credentials;
pub(super) mod documents;
pub(super) mod keys;
pub(super) mod phrases;
