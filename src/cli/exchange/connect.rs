//! `tiro connect`: connects the project with the server of a team. The key comes from stdin or a variable, because
//! arguments are seen by other programs and kept by shells.

use std::process::ExitCode;

use crate::cli::ask;
use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::exchange::connect::Asked;
use tiro_tools::operate::exchange::connect;

/// The arguments of `tiro connect`.
#[derive(clap::Args)]
pub struct Args {
    /// The address of the server, such as `https://memory.example.org`; without it, the connection is shown
    #[arg(value_name = "URL", conflicts_with = "off")]
    address: Option<String>,
    /// The project's name on the server [default: that of the project here]
    #[arg(long, value_name = "NAME", requires = "address")]
    name: Option<String>,
    /// Also exchange what is private, for your other machines; no other user sees it
    #[arg(long, requires = "address")]
    private: bool,
    /// Remove the connection and its key
    #[arg(long)]
    off: bool,
}

/// Connects the project, or shows or removes its connection.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    if args.off {
        let output = connect::disconnect(engine, caller).await?;
        return out.answer(&output, &output.text());
    }
    let Some(address) = &args.address else {
        let output = connect::state(engine, caller).await?;
        return out.answer(&output, &output.text());
    };
    let asked = Asked { address, project: args.name.as_deref(), is_private: args.private };
    let key = key(engine)?;
    let output = connect::connect(engine, caller, asked, &key).await?;
    out.answer(&output, &output.text())
}

/// Returns the key from the variable TIRO_KEY, or else from stdin.
fn key(engine: &Engine) -> Result<String> {
    if let Some(key) = &engine.config().server_key {
        return Ok(key.0.clone());
    }
    let key = ask::secret("Your key for the server:")?;
    match key.trim() {
        "" => Err(connect::no_key()),
        key => Ok(key.to_owned()),
    }
}
