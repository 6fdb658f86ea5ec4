//! What tells the kinds that a pattern cannot tell: a scanner each, called where a literal of theirs stands.

pub(super) mod checksums;
pub(super) mod cookies;
pub(super) mod credentials;
pub(super) mod documents;
pub(super) mod keys;
pub(super) mod phrases;
