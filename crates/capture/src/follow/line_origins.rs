//! Finds the commits from which the lines of a file came.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use crate::sources::Sources;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::humanize::counted;
use tiro_git::{BlameQuery, Blamed, LARGEST_BLAMED, Origin, Repository, Sha, line_hash};
use tiro_intake::{LineOrigin, LineOrigins, LineRun, LinesAsked, OriginCommit, ReadIntake};

/// How many lines before and after the lines that were asked for tell which change wrote them. Arbitrary: about one
/// function.
const AROUND: usize = 12;

/// How many bytes of a run of lines are passed on. Arbitrary: about a hundred lines.
const MOST_TEXT: usize = 4 << 10;

/// The shortest abbreviation of a commit's id that is looked up, as in git.
const SHORTEST_ID: usize = 4;

/// Returns the origins of the lines that `asked` names. `path` is the path in the repository. `content` is the content
/// of the file as it is now; `None` if the version of a commit is meant, or if there is no file.
///
/// Errors as [`Capture::line_origins`](tiro_intake::Capture::line_origins) does.
pub async fn find(
    (sources, intake): (&Sources, &dyn ReadIntake),
    asked: LinesAsked,
    path: String,
    content: Option<Vec<u8>>,
) -> Result<LineOrigins> {
    let Some(repository) = sources.repository.clone() else {
        let why = sources.trouble.clone().unwrap_or_else(|| "it is in no git repository".to_owned());
        let message = format!("the lines of `{}` have no history: {why}", quoted(&path));
        return Err(Error::new(Kind::NotFound, message));
    };
    // The abbreviation of an id can be completed by the ids that the memory knows.
    let is_abbreviation = |rev: &String| {
        (SHORTEST_ID..40).contains(&rev.len()) && rev.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let known = match asked.rev.as_ref().filter(|rev| is_abbreviation(rev)) {
        Some(rev) => {
            let mut known = intake.known_commits().await?;
            known.retain(|sha| sha.starts_with(&rev.to_lowercase()));
            known
        }
        None => Vec::new(),
    };
    let redactor = sources.redactor.clone();
    let read = move || {
        let mut origins = origins(&repository, &asked, &path, content, &known)?;
        for commit in origins.commits.values_mut() {
            commit.message = redactor.redact(&commit.message).text.into_owned();
            commit.author = redactor.redact(&commit.author).text.into_owned();
        }
        for run in &mut origins.runs {
            run.text = redactor.redact(&run.text).text.into_owned();
        }
        Ok(origins)
    };
    tokio::task::spawn_blocking(read).await.expect("looking for origins does not panic")
}

fn origins(
    repository: &Repository,
    asked: &LinesAsked,
    path: &str,
    content: Option<Vec<u8>>,
    known: &[String],
) -> Result<LineOrigins> {
    let commit = commit(repository, asked.rev.as_deref(), known)?;
    let content = content.filter(|_| asked.rev.is_none());
    let text = match &content {
        Some(content) => Cow::Borrowed(content),
        None => Cow::Owned(of_commit(repository, &commit, path)?),
    };
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let wanted = wanted(asked.lines, lines.len(), path)?;
    let query = BlameQuery { commit, path, content: content.as_deref(), lines: wanted.clone() };
    let until = asked.patience.map(|patience| Instant::now() + patience);
    let runs = repository.blame(&query, &mut |_| until.is_none_or(|until| Instant::now() < until))?;
    let mut origins = LineOrigins { path: path.to_owned(), count: lines.len(), ..LineOrigins::default() };
    origins.notices = notices(&runs, until.is_some_and(|until| Instant::now() >= until));
    origins.commits = commits(repository, &runs, until);
    let before = &lines[wanted.start.saturating_sub(AROUND)..wanted.start];
    let after = &lines[wanted.end..lines.len().min(wanted.end + AROUND)];
    origins.around = before.iter().chain(after).filter_map(|line| hash(line)).collect();
    origins.runs = runs.into_iter().map(|run| line_run(run, &lines)).collect();
    Ok(origins)
}

/// Returns the commit that `rev` names, or the one that is checked out. `known` are the ids that begin with `rev`.
fn commit(repository: &Repository, rev: Option<&str>, known: &[String]) -> Result<Sha> {
    let Some(rev) = rev else {
        return repository.head()?.commit.ok_or_else(|| {
            Error::new(Kind::NotFound, "the repository has no commit yet, so no line has a history")
        });
    };
    if let Some(found) = repository.commit_called(rev)? {
        return Ok(found);
    }
    match known {
        [only] => only.parse(),
        [] => Err(Error::new(Kind::NotFound, format!("there is no commit `{}`", quoted(rev)))
            .hint("name a branch, a tag or the id of a commit, or leave `rev` out")),
        several => Err(Error::bad_input(format!("`{}` begins {} ids", quoted(rev), several.len()))
            .hint("name more digits of the id")),
    }
}

fn of_commit(repository: &Repository, commit: &Sha, path: &str) -> Result<Vec<u8>> {
    let Some(blob) = repository.blob_at(commit, path)? else {
        let message = format!("commit `{commit}` has no file `{}`", quoted(path));
        return Err(Error::new(Kind::NotFound, message).hint(
            "name a file of the repository; if it was renamed or deleted, name an earlier commit as `rev`",
        ));
    };
    repository.content(&blob, LARGEST_BLAMED).ok_or_else(|| {
        Error::bad_input(format!("`{}` can't be read, or has more than {LARGEST_BLAMED} bytes", quoted(path)))
    })
}

/// Returns the lines that are asked for, beginning with 0.
fn wanted(lines: Option<(usize, usize)>, count: usize, path: &str) -> Result<Range<usize>> {
    let Some((first, last)) = lines else { return Ok(0..count) };
    if first == 0 || last < first {
        return Err(Error::bad_input(format!("the lines {first} to {last} are no lines of a file"))
            .hint("the first line is 1, and the last one is not before the first"));
    }
    if first > count {
        let count = counted(count as i64, "line", "lines");
        return Err(Error::bad_input(format!("`{}` has {count}, so there is no line {first}", quoted(path))));
    }
    Ok(first - 1..last.min(count))
}

fn notices(runs: &[Blamed], is_late: bool) -> Vec<String> {
    let mut notices = Vec::new();
    let lines = |is_it: fn(&Origin) -> bool| {
        runs.iter().filter(|run| is_it(&run.origin)).map(|run| run.lines.len()).sum::<usize>() as i64
    };
    let unknown = lines(|origin| *origin == Origin::Unknown);
    if unknown > 0 {
        let why = match is_late {
            true => "the history is long, and the time for one answer is over",
            false => "an object of the repository can't be read",
        };
        let lines = counted(unknown, "line", "lines");
        notices.push(format!("the commit of {lines} was not found: {why}"));
    }
    let boundary = lines(|origin| matches!(origin, Origin::Boundary(_)));
    if boundary > 0 {
        let lines = counted(boundary, "line is", "lines are");
        notices
            .push(format!("{lines} older than this shallow clone; `git fetch --unshallow` fetches the rest"));
    }
    notices
}

fn commits(
    repository: &Repository,
    runs: &[Blamed],
    until: Option<Instant>,
) -> BTreeMap<String, OriginCommit> {
    let mut reader = repository.reader(&|_| false);
    let mut commits = BTreeMap::new();
    for run in runs {
        let (Origin::Commit(sha) | Origin::Boundary(sha)) = run.origin else { continue };
        let name = sha.to_string();
        if commits.contains_key(&name) {
            continue;
        }
        if let Ok(detail) = reader.header(&sha) {
            let time = detail.author_time.seconds.saturating_mul(1000);
            let is_missing = |parent| repository.blob_at(parent, &run.path).is_ok_and(|blob| blob.is_none());
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            let makes_file = !is_late && detail.parents.first().is_none_or(is_missing);
            let (author, message) = (detail.author.name, detail.message.text);
            commits.insert(name, OriginCommit { author, time, message, makes_file });
        }
    }
    commits
}

fn hash(line: &[u8]) -> Option<u32> {
    line_hash(true, &String::from_utf8_lossy(line))
}

fn line_run(run: Blamed, lines: &[&[u8]]) -> LineRun {
    let Blamed { lines: range, origin, path, .. } = run;
    let origin = match origin {
        Origin::Commit(sha) => LineOrigin::Commit(sha.to_string()),
        Origin::Boundary(sha) => LineOrigin::Boundary(sha.to_string()),
        Origin::Uncommitted => LineOrigin::Uncommitted,
        Origin::Unknown => LineOrigin::Unknown,
    };
    let own = lines.get(range.clone()).unwrap_or_default();
    let mut text = String::new();
    for line in own {
        if text.len() + line.len() > MOST_TEXT {
            break;
        }
        text += &String::from_utf8_lossy(line);
    }
    let hashes = own.iter().map(|line| hash(line)).collect();
    LineRun { lines: range.start + 1..range.end + 1, origin, path, text, hashes }
}
