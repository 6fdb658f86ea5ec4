//! Subcommands that connect Tiro to projects, agents, models and providers, and subcommands that describe Tiro.

pub mod completions;
pub mod demo;
pub mod doctor;
pub mod import;
pub mod init;
pub mod man;
pub mod model;
pub mod pause;
pub mod projects;
pub mod provider;
