//! Says why lines of a file are as they are: which commit wrote them, and what was said when they were written.

mod behind;
mod groups;
pub mod listing;
mod making;
mod others;
mod page;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use self::groups::Group;
use self::page::{Frame, fit};
use crate::common;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::summaries::messages;
use tiro_intake::{Capture, LinesAsked};

pub use self::page::{Explained, Output, Reason};

/// The name of the tool in MCP.
pub const NAME: &str = "explain_lines";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Explain lines of code";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Says why lines of a file are as they are: who wrote them in which commit, what was \
    asked and decided then, and how sure that is. For questions about no certain lines use search_project_memory.";

/// The budget of an answer, in tokens, if the call names none.
const MAX_TOKENS: usize = 1500;

/// The smallest budget, in tokens: enough for the envelope and one group.
const LEAST_TOKENS: usize = 200;

/// The largest budget, in tokens: clients cut off tool results after 25,000 tokens.
const MOST_TOKENS: usize = 20_000;

/// How long one answer reads the history. Arbitrary: clients wait for a minute, and hundreds of thousands of commits
/// are read in this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// The file.
    #[schemars(description = "")]
    pub path: String,
    /// Like 12 or 12-20; all if left out.
    pub lines: Option<String>,
    /// The commit whose version is meant; the file as it is now if left out.
    pub rev: Option<String>,
    /// 1500 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
}

/// Finds the origins of the lines, and what was said when they were written.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let (budget, clamped) =
        common::max_tokens(caller, args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let asked = asked(&args)?;
    let capture = caller.capture(engine);
    let mut notices = capture.catch_up().await;
    notices.extend(clamped);
    let project = caller.project(engine).await?;
    let mut origins =
        capture.line_origins(asked).await.map_err(|error| match args.path.rsplit_once(':') {
            Some((_, lines))
                if !is_number(lines) && matches!(error.kind(), Kind::NotFound | Kind::BadInput) =>
            {
                error.hint("name the lines by numbers, as in `src/a.rs:12` or `src/a.rs:12-20`")
            }
            _ => error,
        })?;
    notices.append(&mut origins.notices);
    let groups = behind::with_writers(&project, groups::of(&origins), engine.now()).await?;
    let mut explained: Vec<Explained> = Vec::new();
    // An answer within its budget has room for fewer groups than this.
    let room = budget / Group::LEAST_TOKENS + 1;
    for group in groups.iter().take(room) {
        let next = behind::explain(&project, group).await?;
        match explained.iter_mut().find(|other| other.has_same_reason(&next)) {
            Some(same) => same.take_lines(next),
            None => explained.push(next),
        }
    }
    let left_out = groups.len().saturating_sub(room);
    let without = caller.running_session(engine, &project, &project.scope);
    let others = others::found(&project, &groups, &explained, without).await?;
    let secret = engine.installation().await?.secret;
    let frame =
        Frame { path: origins.path, count: origins.count, left_out, budget, form: caller.form(), secret };
    messages::blocking(move || fit(frame, explained, others, notices)).await
}

/// Reads the arguments. The lines may stand after the path, as in `src/a.rs:12-20`.
fn asked(args: &Args) -> Result<LinesAsked> {
    let given = args.path.trim();
    if given.is_empty() {
        return Err(Error::bad_input("`path` is empty").hint("name a file of the project"));
    }
    let lines = args.lines.as_deref().map(str::trim).filter(|lines| !lines.is_empty());
    let (path, lines) = match (lines, given.rsplit_once(':')) {
        (None, Some((path, lines))) if is_number(lines) => (path, Some(lines)),
        (lines, _) => (given, lines),
    };
    let lines = lines.map(range).transpose()?;
    let rev = args.rev.as_deref().map(str::trim).filter(|rev| !rev.is_empty());
    Ok(LinesAsked { path: path.to_owned(), lines, rev: rev.map(str::to_owned), patience: Some(PATIENCE) })
}

/// Returns whether a text after a path may name lines.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Reads `12`, `12-20`, `12,20` or `L12-L20`.
fn range(text: &str) -> Result<(usize, usize)> {
    let bounds: Vec<&str> =
        text.split(['-', ',', ':', '–']).map(str::trim).filter(|part| !part.is_empty()).collect();
    let number = |part: &str| {
        part.trim_start_matches(['L', 'l', '#', '[']).trim_end_matches(']').parse::<usize>().ok()
    };
    let read = match bounds[..] {
        [only] => number(only).map(|line| (line, line)),
        [first, last] => number(first).zip(number(last)),
        _ => None,
    };
    read.ok_or_else(|| {
        Error::bad_input(format!("`lines` is no line and no range of lines: `{}`", quoted(text)))
            .hint("write one line as 12, several as 12-20")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_after_the_path_or_on_their_own() {
        let read = |path: &str, lines: Option<&str>| {
            let args = Args { path: path.into(), lines: lines.map(str::to_owned), ..Args::default() };
            asked(&args).map(|asked| (asked.path, asked.lines)).map_err(|error| error.with_hint())
        };
        let file = |lines| Ok(("src/a.rs".to_owned(), lines));
        assert_eq!(read("src/a.rs", None), file(None));
        assert_eq!(read(" src/a.rs:12 ", None), file(Some((12, 12))));
        assert_eq!(read("src/a.rs:12-20", Some("")), file(Some((12, 20))));
        for lines in ["3-9", "3,9", "L3-L9", "[3, 9]", "3 - 9"] {
            assert_eq!(read("src/a.rs", Some(lines)), file(Some((3, 9))), "{lines}");
        }
        assert_eq!(read("C:file", None), Ok(("C:file".to_owned(), None)));
        for lines in ["x", "3-9-12", "-", "9999999999999999999999"] {
            assert!(read("a", Some(lines)).unwrap_err().contains("12-20"), "{lines}");
        }
        assert!(read(" ", None).unwrap_err().contains("`path` is empty"));
    }
}
