//! `tiro add`: stores a text.

use std::io::Read;
use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::{Context, Error, Kind, Result};
use tiro_base::memory::{LONGEST_TEXT, Provenance};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::memory::store_memory;

/// The arguments of `tiro add`.
#[derive(clap::Args)]
pub struct Args {
    /// The text; `-` reads it from stdin
    #[arg(required = true)]
    text: Vec<String>,
    /// The kind: fact, decision, finding, preference, task_state, code_block, error_log, …
    #[arg(long = "type", value_name = "KIND")]
    kind: Option<String>,
    /// A tag to filter by
    #[arg(long, visible_alias = "tag")]
    topic: Option<String>,
    /// `project`, or `owner` for all your projects
    #[arg(long, default_value = "project")]
    scope: String,
    /// The importance of the text, 0 to 1
    #[arg(long)]
    importance: Option<f64>,
    /// The session that the text belongs to
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The file that the text is about
    #[arg(long, value_name = "FILE")]
    source: Option<String>,
    /// Memories that the text refers to: ids, or SESSION#NUMBER for messages
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    references: Vec<String>,
    /// Memories that no longer hold because of this text: ids, or SESSION#NUMBER for messages
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    supersedes: Vec<String>,
}

/// Stores the text and prints its id.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let text = match &args.text[..] {
        [only] if only == "-" => from_stdin()?,
        words => words.join(" "),
    };
    let args = store_memory::Args {
        text,
        kind: args.kind,
        importance: args.importance,
        scope: Some(args.scope),
        session_id: args.session,
        references: Some(args.references),
        supersedes: Some(args.supersedes),
        topic: args.topic,
        source: args.source,
    };
    let output = store_memory::store(engine, caller, args, Provenance::UserSaid).await?;
    out.answer(&output, &output.text())
}

fn from_stdin() -> Result<String> {
    let mut bytes = Vec::new();
    // Reading stops one byte beyond the longest allowed text, which is enough to reject a longer one.
    let most = LONGEST_TEXT as u64 + 1;
    std::io::stdin()
        .take(most)
        .read_to_end(&mut bytes)
        .context(Kind::Io, || "cannot read the text from stdin".to_owned())?;
    String::from_utf8(bytes).map_err(|_| {
        Error::bad_input("the text on stdin is not UTF-8")
            .hint("convert it, for example with `iconv -t UTF-8`")
    })
}
