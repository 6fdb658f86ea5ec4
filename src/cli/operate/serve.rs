//! `tiro serve`: runs the MCP server, on stdin and stdout or over HTTP.

use std::process::ExitCode;
use std::sync::Arc;

use super::background::{close, finish, work_while_idle};
use super::serve_http;
use crate::cli::print::Out;
use crate::cli::trial::{self, Trial};
use crate::server;
use tiro_base::error::{Error, Result};
use tiro_host::caller::{Form, Toolsets, WritingCaller};
use tiro_host::config::Config;
use tiro_host::engine::Engine;

/// The arguments of `tiro serve`.
#[derive(clap::Args)]
pub struct Args {
    /// Serve only these groups of tools: memory, consult, context, stash, separated by commas
    #[arg(long, value_name = "NAMES")]
    toolsets: Option<Toolsets>,

    /// For programs: return each answer also as JSON data (`structuredContent`), and describe it in the list of tools
    #[arg(long)]
    structured: bool,

    #[command(flatten)]
    http: serve_http::HttpArgs,
}

impl Args {
    /// Starts a throw-away database if the user asks for one, and makes `config` use it. `is_given` says whether an
    /// argument names another database.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if both are asked for.
    pub fn trial(&self, config: &mut Config, is_given: bool) -> Result<Option<Trial>> {
        match (self.http.is_trial(), is_given) {
            (false, _) => Ok(None),
            (true, false) => trial::start(config).map(Some),
            (true, true) => Err(Error::bad_input("`--try` starts a database of its own")
                .hint("leave `--try` or `--database` out")),
        }
    }
}

/// Serves until stdin is closed, or over HTTP until a signal, and does pending work in the background.
pub fn run(engine: Arc<Engine>, caller: WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let form = if args.structured { Form::Both } else { Form::Text };
    let toolsets = args.toolsets.unwrap_or_default();
    let caller = Arc::new(caller.with_toolsets(toolsets.clone()).with_form(form));
    if args.http.address().is_some() {
        return serve_http::run(engine, caller, toolsets, &args.http, out);
    }
    work_while_idle(&engine, &caller);
    let served = server::run_stdio(&engine, &caller);
    finish(&engine, std::slice::from_ref(&caller));
    close(engine, vec![caller]);
    served.map(|()| ExitCode::SUCCESS)
}
