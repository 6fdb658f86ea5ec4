//! Functions that the operations share: they read arguments and write answers.

pub mod arguments;
pub mod schema;
pub mod subcommands;
pub mod tool;

use std::borrow::Cow;
use std::path::Path;

use tiro_base::error::{Error, Result, partial, quoted};
use tiro_base::filter::Filter;
use tiro_base::humanize::counted;
use tiro_base::memory::{Kind, LONGEST_TEXT, Millis, Role};
use tiro_base::scope::{Scope, Visibility};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_recall::retrieve::cues;
use tiro_redact::Redaction;
use tiro_store::ProjectRow;
use tiro_text::tokens;

/// The longest name, title or id in an argument, in bytes. Arbitrary.
const SHORT: usize = 500;

/// Returns the budget of an answer in tokens. The budget is `asked`. If `asked` is `None`, it is `usual` clamped to the
/// range from `least` to `most`. If `asked` is greater than `most`, the budget is `most`, and a notice says so.
///
/// Errors if `asked` is below `least`, because no answer fits into so few tokens. The budget is limited to `most`
/// because clients would cut off a longer answer. It is also limited to the number of tokens that the caller's client
/// shows.
pub fn max_tokens(
    caller: &Caller,
    asked: Option<usize>,
    usual: usize,
    least: usize,
    most: usize,
) -> Result<(usize, Option<String>)> {
    let most = most.min(caller.most_tokens()).max(least);
    match asked.unwrap_or(usual.clamp(least, most)) {
        less if less < least => {
            Err(Error::bad_input(format!("argument `max_tokens` is {less}, out of range"))
                .hint(format!("give {least} or more")))
        }
        more if more > most => {
            Ok((most, Some(format!("max_tokens is {most} at most, since clients cut longer answers"))))
        }
        budget => Ok((budget, None)),
    }
}

/// If the question names today or yesterday and the call gives no range of times, restricts `filter` to this day and
/// returns a notice.
pub fn only_day(query: &str, filter: &mut Filter, now: Millis) -> Option<String> {
    let days = cues::asks_for_day(query).filter(|_| !filter.has_range())?;
    let (since, until) = (times::days_ago(days, now), times::days_ago(days - 1, now));
    (filter.since, filter.until) = (Some(since), Some(until));
    Some(format!("only {} was searched, which the question names", times::day(since)))
}

/// Words that agents use instead of a kind's name, each with the kind that it means.
const ALSO_CALLED: [(&str, Kind); 16] = [
    ("finding", Kind::Research),
    ("insight", Kind::Research),
    ("learning", Kind::Research),
    ("lesson", Kind::Research),
    ("preference", Kind::Fact),
    ("note", Kind::Fact),
    ("observation", Kind::Fact),
    ("information", Kind::Fact),
    ("code", Kind::CodeBlock),
    ("snippet", Kind::CodeBlock),
    ("file", Kind::FileContent),
    ("error", Kind::ErrorLog),
    ("log", Kind::ErrorLog),
    ("task", Kind::TaskState),
    ("todo", Kind::TaskState),
    ("chat", Kind::Message),
];

/// Returns the kind that `word` means. `word` is the name of a kind or one of the words in [`ALSO_CALLED`], in any
/// case, in the singular or plural. Errors for any other word.
pub fn kind(argument: &str, word: &str) -> Result<Kind> {
    let known = |word: &str| {
        let also = || ALSO_CALLED.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        Kind::parse(word).or_else(also)
    };
    let plain = plain(word);
    let singular = || match plain.strip_suffix("ies") {
        Some(stem) => known(&format!("{stem}y")),
        None => known(plain.strip_suffix('s')?),
    };
    known(&plain).or_else(singular).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::bad_input(format!("`{argument}` is not a kind: `{}`", quoted(word)))
            .hint(format!("use {}", known.join(", ")))
    })
}

/// Words that clients use instead of a role's name, each with the role that it means.
const ROLES: [(&str, Role); 10] = [
    ("human", Role::User),
    ("ai", Role::Assistant),
    ("model", Role::Assistant),
    ("agent", Role::Assistant),
    ("bot", Role::Assistant),
    ("function", Role::Tool),
    ("tool_result", Role::Tool),
    ("tool_call", Role::Tool),
    ("tool_use", Role::Tool),
    ("developer", Role::System),
];

/// Returns the role that `word` means. `word` is the name of a role or one of the words in [`ROLES`], in any case.
/// Errors for any other word.
pub fn role(argument: &str, word: &str) -> Result<Role> {
    let plain = plain(word);
    let also = || ROLES.iter().find(|(name, _)| *name == plain).map(|(_, role)| *role);
    Role::parse(&plain).or_else(also).ok_or_else(|| {
        Error::bad_input(format!("`{argument}` is not a role: `{}`", quoted(word)))
            .hint("use user, assistant, tool or system")
    })
}

/// Returns `word` in lower case, with underscores in place of spaces and hyphens.
pub fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace([' ', '-'], "_")
}

/// Errors if `importance` is not between 0 and 1.
pub fn importance(importance: Option<f64>) -> Result<()> {
    match importance.filter(|importance| !(0.0..=1.0).contains(importance)) {
        Some(other) => Err(Error::bad_input(format!("`importance` is {other}, not between 0 and 1"))
            .hint("give a number such as 0.8")),
        None => Ok(()),
    }
}

/// Errors if `text` is longer than [`LONGEST_TEXT`].
pub fn whole(argument: &str, text: &str) -> Result<()> {
    if text.len() <= LONGEST_TEXT {
        return Ok(());
    }
    let (bytes, most) = (text.len(), LONGEST_TEXT >> 20);
    Err(Error::bad_input(format!("`{argument}` has {bytes} bytes; a memory has at most {most} MB"))
        .hint("save it in parts, or only the important part; nothing was stored"))
}

/// Returns `text`, a name, title or id, without surrounding white space. Errors if it is empty or longer than 500
/// bytes.
pub fn short(argument: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > SHORT {
        return Err(Error::bad_input(format!("`{argument}` is empty or longer than {SHORT} bytes"))
            .hint("shorten it, or leave it out"));
    }
    Ok(text.to_owned())
}

/// Returns the notice for a project without memories. The notice names the calls that store the first memories. If the
/// project is a copy of another project, the notice instead says how to share the original's memory.
pub async fn nothing_yet(engine: &Engine, project: &OpenProject) -> Result<String> {
    let registry = &engine.installation().await?.registry;
    let original = match &project.original {
        Some(original) => Some(original.clone()),
        None => registry.original(&project.scope.project).await?,
    };
    if let Some(original) = original {
        let (copied, way_out) = (copied_from(&original), share(&original, &project.root));
        return Ok(format!("nothing is remembered of this project yet: it is {copied}; {way_out}"));
    }
    let import =
        if project.repository.is_some() { ", and `tiro import git` imports its commits" } else { "" };
    Ok(format!(
        "nothing is remembered of this project yet; save_messages and store_memory store the first memories{import}"
    ))
}

/// Returns the phrase that describes a project as a copy of `original`.
pub fn copied_from(original: &ProjectRow) -> String {
    let place = original.places.first().map(|place| place.strip_suffix("/.git").unwrap_or(place));
    let place = place.map_or(String::new(), |place| format!(" in {place}"));
    format!("a copy of {}{place}, but with its own memory", original.name)
}

/// Returns a sentence that says how the copy in `root` can share the memory of `original`.
pub fn share(original: &ProjectRow, root: &Path) -> String {
    let (id, root) = (original.id.as_str(), root.display());
    format!("`tiro projects link {id} {root}` lets it share the memory of the original")
}

/// Returns the first ten digits of a commit's id, as answers for people show it.
pub fn short_sha(sha: &str) -> &str {
    sha.get(..10).unwrap_or(sha)
}

/// Returns the line that says how much of its budget an answer takes.
pub fn spent(used: usize, budget: usize) -> String {
    format!("\n{used} of {budget} tokens.")
}

/// Returns the branch and the commit that are checked out. A value is `None` if it is unknown.
pub fn head(project: &OpenProject) -> (Option<String>, Option<String>) {
    let head = project.repository.as_ref().and_then(|repository| repository.head().ok());
    head.map_or((None, None), |head| (head.branch, head.commit.map(|sha| sha.to_string())))
}

/// Returns who sees what the scope's reader stores for all projects: on one's own machine the default, which is everyone
/// of the tenant. What an author with a personal key stores there is private.
pub fn visibility(scope: &Scope) -> Option<Visibility> {
    (!scope.is_own()).then_some(Visibility::Private)
}

/// Returns lines to append to an answer: the secrets that were replaced, the number of chunks without an embedding, and
/// the notices. A line without content is left out. Notices about [missing](partial) content are in the first line of
/// the answer instead.
pub fn footnotes(redactions: &[Redaction], pending: usize, notices: &[String]) -> String {
    let mut text = String::new();
    if !redactions.is_empty() {
        let shown: Vec<String> =
            redactions.iter().map(|each| format!("{} {}", each.count, each.rule)).collect();
        text += &format!("\nSecrets replaced: {}.", shown.join(", "));
    }
    if pending > 0 {
        let one = "piece has no embedding yet; only keywords find it";
        let several = "pieces have no embedding yet; only keywords find them";
        text += &format!("\n{}.", counted(pending, one, several));
    }
    for notice in partial::others(notices) {
        text += &format!("\nNote: {notice}.");
    }
    text
}

/// Returns the beginning of `text`, with at most `tokens` tokens. The cut is moved back to the end of a word, unless
/// that would drop more than half of the beginning.
pub fn beginning(text: &str, tokens: usize) -> &str {
    let cut = tokens::truncate(text, tokens);
    if cut.len() == text.len() || text[cut.len()..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace) {
        Some(end) if end >= cut.len() / 2 => cut[..end].trim_end(),
        _ => cut,
    }
}

/// Returns `text` if it has at most `bytes` bytes. Otherwise returns its beginning, cut after a whole word if possible,
/// followed by ` …`.
pub fn beginning_in_bytes(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let cut = &text[..text.floor_char_boundary(bytes)];
    let end = cut.rfind(char::is_whitespace).filter(|end| *end >= cut.len() / 2).unwrap_or(cut.len());
    Cow::Owned(format!("{} …", cut[..end].trim_end()))
}
