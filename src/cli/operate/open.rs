//! `tiro open`: shows what is remembered in the browser.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::background::{close, finish, work_while_idle};
use crate::cli::print::{self, Out};
use crate::pages::Pages;
use crate::{pages, server};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_host::caller::{Form, WritingCaller};
use tiro_host::engine::Engine;

/// The arguments of `tiro open`.
#[derive(clap::Args)]
pub struct Args {
    /// A directory whose project is shown, or a file whose lines are explained [default: the project of the working
    /// directory]
    path: Option<PathBuf>,
    /// Print the address instead of opening a browser
    #[arg(long)]
    no_browser: bool,
    /// Listen on this port [default: any free port]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// End when nobody used the pages for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, hide = true)]
    idle: u64,
}

/// Serves the pages until Ctrl-C, or until nobody used them for an hour.
pub fn run(engine: Arc<Engine>, caller: WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let (caller, page) = place(&engine, caller, args.path.as_deref())?;
    let caller = Arc::new(caller.with_form(Form::Text));
    // The address is printed only if there is something to show.
    caller.directory()?;
    let bound = pages::bind(args.port)?;
    let port = bound.address().port();
    let pages = Pages::new(Arc::clone(&engine), Arc::clone(&caller), port, engine.random());
    let address = pages.address(&page);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context(Kind::Io, || "cannot start".to_owned())?;
    work_while_idle(&engine, &caller);
    // Whoever has read the address may end the server.
    let stop = {
        let _within = runtime.enter();
        server::termination()
    };
    let shows = !args.no_browser && open::that_detached(&address).is_ok();
    let how = if shows { "Opened in the browser" } else { "Open this address in a browser of this machine" };
    print::aside(&format!("{how}. It works once; Ctrl-C ends it.\n"));
    match out.json {
        true => out.line(&serde_json::json!({ "address": address }).to_string())?,
        false => out.line(&address)?,
    }
    let idle = Duration::from_secs(args.idle.max(1));
    let served = runtime.block_on(pages::serve(bound, pages, idle, stop));
    runtime.shutdown_background();
    finish(&engine, std::slice::from_ref(&caller));
    close(engine, vec![caller]);
    served.map(|()| ExitCode::SUCCESS)
}

/// Returns the caller in the directory that `path` names or in which its file is, and the page to open.
///
/// Errors with [`Kind::BadInput`] if there is nothing at `path`.
fn place(engine: &Engine, caller: WritingCaller, path: Option<&Path>) -> Result<(WritingCaller, String)> {
    let Some(path) = path else { return Ok((caller, "/".to_owned())) };
    let path = match &engine.config().current_dir {
        Some(directory) => directory.join(path),
        None => path.to_owned(),
    };
    if !path.exists() {
        return Err(Error::bad_input(format!("there is no file or directory `{}`", quoted(path.display())))
            .hint("name a directory of a project, or a file in one"));
    }
    if path.is_dir() {
        let is_named = caller.named().is_some();
        return Ok((caller.in_directory(&path, is_named), "/".to_owned()));
    }
    let page = pages::address("/file", &[("path", &path.to_string_lossy())]);
    Ok(match path.parent() {
        Some(parent) => (caller.in_directory(parent, false), page),
        None => (caller, page),
    })
}
