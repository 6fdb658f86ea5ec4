//! Reads a page of a file for people: its lines, each with the group that explains it.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::{Args, Explained, Output, run};
use tiro_base::encoding;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::LinesAsked;

/// The most lines of a page.
const MOST: usize = 500;

/// The maximum number of bytes that are shown of a line. Arbitrary: more than any screen is wide.
const LONGEST: usize = 400;

/// The tokens that the reasons of a page may take.
const TOKENS: usize = 12_000;

/// A page of a file.
#[derive(Debug, Serialize)]
pub struct Listing {
    /// The path of the file in the repository.
    pub path: String,
    /// How many lines the whole file has.
    pub lines_of_file: usize,
    /// The lines of the page, in order.
    pub lines: Vec<Line>,
    /// The groups to which the lines belong.
    pub groups: Vec<Explained>,
    /// Remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// A line.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Its number, beginning with 1.
    pub number: usize,
    /// Its text, with secrets replaced.
    pub text: String,
    /// The place of its group in `groups`; `None` if its origin is not shown.
    pub group: Option<usize>,
}

/// Reads up to `count` lines of the file `path`, beginning with line `from`. Without a repository, the lines have no
/// groups.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if the path policy refuses the file, or if it is not text.
pub async fn read(
    engine: &Engine,
    caller: &Caller,
    path: &str,
    from: usize,
    count: usize,
) -> Result<Listing> {
    // Paths of memories begin at the root of the project, wherever the caller is.
    let at_root = caller.root_of(engine).await?.join(path);
    let path = if at_root.exists() { at_root.to_string_lossy().into_owned() } else { path.to_owned() };
    let asked = LinesAsked { path, lines: None, rev: None, patience: None };
    let (path, bytes) = caller.own_file(engine, &asked).await?;
    let project = caller.project(engine).await?;
    let text = encoding::text(bytes).map_err(|_| {
        Error::bad_input(format!("`{}` is not text", quoted(&path))).hint("only text has lines")
    })?;
    let all: Vec<&str> = text.text.lines().collect();
    let last = all.len();
    let from = from.clamp(1, last.max(1));
    let shown = &all[(from - 1).min(last)..(from - 1 + count.clamp(1, MOST)).min(last)];
    let redact = |text: &str| project.redactor.redact(text).text.into_owned();
    // A secret may take several lines, also of several pages, which are then fewer lines after it was replaced. A line
    // that is not among them is a part of the secret.
    let whole = redact(&text.text);
    let kept: HashSet<&str> = whole.lines().collect();
    let line = |(place, line): (usize, &&str)| {
        let text = redact(line);
        let text = if kept.contains(text.as_str()) { shortened(&text) } else { "[secret]".to_owned() };
        Line { number: from + place, text, group: None }
    };
    let lines = shown.iter().enumerate().map(line).collect();
    let mut listing = Listing { path, lines_of_file: last, lines, groups: Vec::new(), notices: Vec::new() };
    if !listing.lines.is_empty() {
        explain(engine, caller, &mut listing).await?;
    }
    Ok(listing)
}

/// Returns the beginning of a line, with hidden characters as escapes.
fn shortened(line: &str) -> String {
    let cut = &line[..line.floor_char_boundary(LONGEST)];
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{more}", envelope::escape(cut))
}

/// Adds the groups to the lines.
async fn explain(engine: &Engine, caller: &Caller, listing: &mut Listing) -> Result<()> {
    let (first, last) = (listing.lines[0].number, listing.lines[listing.lines.len() - 1].number);
    let args = Args {
        path: caller.root_of(engine).await?.join(&listing.path).to_string_lossy().into_owned(),
        lines: Some(format!("{first}-{last}")),
        rev: None,
        max_tokens: Some(TOKENS),
    };
    let Output { groups, left_out, notices, .. } = match run(engine, caller, args).await {
        Ok(output) => output,
        // Without a repository, a file is shown as it is.
        Err(error) if error.kind() == tiro_base::error::Kind::NotFound => {
            listing.notices.push(error.with_hint());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (place, group) in groups.iter().enumerate() {
        group.runs.iter().cloned().flatten().for_each(|line| _ = group_of.insert(line, place));
    }
    listing.lines.iter_mut().for_each(|line| line.group = group_of.get(&line.number).copied());
    if left_out > 0 {
        listing.notices.push(format!("the reasons of {left_out} more groups of lines did not fit"));
    }
    listing.notices.extend(notices);
    listing.groups = groups;
    Ok(())
}
