//! Opens a passage of a source by its lines.

use super::{Index, Kept};
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_text::chunk::Chunk;
use tiro_text::tokens;

/// The maximum number of names that an error suggests. Arbitrary.
const MOST_SUGGESTED: usize = 3;

/// The maximum number of characters of a name that are compared. Arbitrary: even long paths differ in so many
/// characters.
const COMPARED: usize = 200;

/// Lines of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The name of the source.
    pub source: String,
    /// The numbers of the first and the last line that are shown.
    pub lines: (usize, usize),
    /// The number of lines of the source.
    pub count: usize,
    /// Whether wanted lines, or parts of lines, are missing.
    pub truncated: bool,
    /// The answer as the model gets it. It has at most the wanted number of tokens.
    pub text: String,
}

impl Index {
    /// Returns the lines from `first` to `last` of the source `name`, as text within `max_tokens`. If `last` is after
    /// the end, the lines up to the end are returned. If not all lines fit, the answer says with which line to
    /// continue.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such source. The hint contains
    /// the most similar names. Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the source has no
    /// such lines, or if not even one line fits.
    pub fn open(&self, name: &str, first: usize, last: usize, max_tokens: usize) -> Result<Passage> {
        let source =
            self.sources.iter().find(|source| source.name == name).ok_or_else(|| self.unknown(name))?;
        let count = source.lines.count();
        if first == 0 || first > last || first > count {
            let message = format!("no lines {first} to {last} in `{}`", quoted(&source.name));
            return Err(Error::bad_input(message).hint(format!("it has the lines 1 to {count}")));
        }
        let last = last.min(count);
        let whole = Chunk { start: 0, end: source.text.len() };
        let mut shown: Vec<(String, bool)> = Vec::new();
        let mut total = envelope::OVERHEAD_TOKENS;
        for number in first..=last {
            let line = source.lines.numbered(&source.text, number, whole);
            total += tokens::count(&line.0);
            if total > max_tokens {
                break;
            }
            shown.push(line);
        }
        while !shown.is_empty() {
            let end = first + shown.len() - 1;
            let text = self.passage(source, (first, end), last, &shown);
            if tokens::count(&text) <= max_tokens {
                let truncated = end < last || shown.iter().any(|(_, is_part)| *is_part);
                return Ok(Passage {
                    source: source.name.clone(),
                    lines: (first, end),
                    count,
                    truncated,
                    text,
                });
            }
            shown.pop();
        }
        let message = format!("line {first} of `{}` does not fit {max_tokens} tokens", quoted(&source.name));
        Err(Error::bad_input(message).hint("ask again with a larger max_tokens"))
    }

    fn passage(&self, source: &Kept, lines: (usize, usize), last: usize, shown: &[(String, bool)]) -> String {
        let count = source.lines.count();
        let frame = format!("[{}:{}-{} of {count}]\n", envelope::name(&source.name), lines.0, lines.1);
        let body: String = shown.iter().map(|(line, _)| line.as_str()).collect();
        let mut text = envelope::wrap(&self.secret, &(frame + &body));
        if lines.1 < last {
            text +=
                &format!("\nThe lines up to {last} did not fit max_tokens; go on with line {}.", lines.1 + 1);
        }
        text
    }

    /// Returns the error for a name that no source has.
    fn unknown(&self, name: &str) -> Error {
        let error = Error::not_found(format!("no source is named `{}`", quoted(name)));
        if self.sources.is_empty() {
            return error.hint("no text was attached");
        }
        let mut names: Vec<(usize, &str)> = self
            .sources
            .iter()
            .map(|source| (difference(name, &source.name), source.name.as_str()))
            .collect();
        names.sort_by_key(|(difference, _)| *difference);
        let nearest: Vec<String> =
            names.iter().take(MOST_SUGGESTED).map(|(_, name)| format!("`{}`", quoted(name))).collect();
        error.hint(format!("the most similar names are {}", nearest.join(", ")))
    }
}

/// Returns how different two names are. Names with the same ending are similar, because a path may be given without its
/// folders.
fn difference(wanted: &str, name: &str) -> usize {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let file = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    if wanted.ends_with(&name) || (!wanted.is_empty() && name.ends_with(&wanted)) {
        return 0;
    }
    edits(&file(&wanted), &file(&name)) * 4 + edits(&wanted, &name)
}

/// Returns how many characters must be inserted, removed or replaced to turn one text into the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (place, c) in from.chars().take(COMPARED).enumerate() {
        let mut before = row[0];
        row[0] = place + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = before + usize::from(*other != c);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
