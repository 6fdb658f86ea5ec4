//! The views, one file each. A view is a function of the engine, the caller and the request. It calls operations, and
//! shows their answers; what it shows is a pure function of them.

pub mod file;
pub mod memory;
pub mod privacy;
pub mod project;
pub mod search;
pub mod session;
pub mod stash;
pub mod threads;
pub mod timeline;
