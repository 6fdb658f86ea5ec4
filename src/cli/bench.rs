//! `tiro bench`: times parts of the program on given data, for the evals to compare with peers.

use std::process::ExitCode;

use crate::engine::Engine;
use crate::error::Result;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(_engine: &Engine, _args: Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
