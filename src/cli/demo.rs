//! `tiro demo`.
use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;

#[derive(clap::Args)]
pub struct Args {}

pub async fn run(_engine: &Engine, _args: Args, _out: Out) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
