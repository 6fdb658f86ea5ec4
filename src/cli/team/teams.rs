//! `tiro team`: makes, lists and changes teams.

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::engine::Engine;
use tiro_tools::operate::team::teams;

/// The arguments of `tiro team`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a team, with which projects can be shared
    Create {
        /// The name of the team
        team: String,
    },
    /// Remove a team; nothing is shared with it any more
    Remove {
        /// The name of the team
        team: String,
    },
    /// List the teams and their users
    List,
    /// Add a user to a team
    Add {
        /// The name of the team
        team: String,
        /// The user's name
        user: String,
    },
    /// Remove a user from a team
    Leave {
        /// The name of the team
        team: String,
        /// The user's name
        user: String,
    },
}

/// Runs the subcommand and prints its answer.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let changed = match args.action {
        Action::List => {
            let output = teams::list(engine).await?;
            return out.answer(&output, &output.text());
        }
        Action::Create { team } => teams::create(engine, &team).await?,
        Action::Remove { team } => teams::remove(engine, &team).await?,
        Action::Add { team, user } => teams::add(engine, &team, &user).await?,
        Action::Leave { team, user } => teams::leave(engine, &team, &user).await?,
    };
    out.answer(&changed, &changed.text())
}
