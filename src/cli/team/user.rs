//! `tiro user`: makes, lists, revokes and replaces personal keys.

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::engine::Engine;
use tiro_host::principals::Access;
use tiro_tools::operate::team::users;

/// The arguments of `tiro user`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a key for a user of the server, and show it once
    Add {
        /// The user's name, under which they save
        name: String,
        /// What the user may do: read, write, or admin, who may also configure providers
        #[arg(long, value_name = "SCOPE", default_value_t)]
        scope: Access,
        /// How long the key is valid, such as 90d [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List the keys
    List,
    /// Revoke keys; a running server refuses them at once
    Revoke {
        /// The user's name, or the id of a key
        which: String,
    },
    /// Replace a user's key by a new one, and show it once
    Rotate {
        /// The user's name, or the id of a key
        which: String,
    },
}

/// Runs the subcommand and prints its answer.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::Add { name, scope, expires } => {
            let output = users::add(engine, &name, scope, expires.as_deref()).await?;
            out.answer(&output, &output.text())
        }
        Action::List => {
            let output = users::list(engine).await?;
            out.answer(&output, &output.text())
        }
        Action::Revoke { which } => {
            let output = users::revoke(engine, &which).await?;
            out.answer(&output, &output.text())
        }
        Action::Rotate { which } => {
            let output = users::rotate(engine, &which).await?;
            out.answer(&output, &output.text())
        }
    }
}
