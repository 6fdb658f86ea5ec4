//! Operations of the command line: setup, imports and maintenance of the store.

pub mod backup;
pub mod demo;
pub mod doctor;
pub mod exchange;
pub mod export;
pub mod gc;
pub mod growth;
pub mod import_git;
pub mod import_messages;
pub mod import_preview;
pub mod import_sessions;
pub mod index;
pub mod init;
pub mod projects;
pub mod stats;
pub mod team;
