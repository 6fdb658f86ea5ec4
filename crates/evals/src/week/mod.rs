//! `evals week`: how much of what the context of a question shows is about the question, in a repository with sessions.
//!
//! The repository is imported as README.md recommends: its commits, its sessions, then the embeddings. The questions
//! are made from commits and sessions ([`questions`]), so their answers are known. For each question, the table says how
//! many tokens the context has, how many tokens its shortest prefix with the answer has, and how many of its passages
//! are from the right commit or session. For a merge, the commits that it brought in are right, too.

pub mod questions;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::budget::BUDGET;
use crate::calls;
use crate::client::Tiro;
use crate::imported::{Imported, Input};
use crate::passages::{Passage, end_of, passages};
use crate::stats::{Report, interval, mean, print_table};
use crate::texts::Texts;

use questions::{Case, Source};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Questions to ask, at most
    #[arg(long, default_value_t = 30)]
    questions: usize,
    /// Decides which questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Budget of the contexts in tokens
    #[arg(long, default_value_t = BUDGET)]
    budget: usize,
}

/// What a context shows of an answer.
#[derive(Debug, PartialEq)]
struct Shown {
    /// Where the shortest prefix with the answer ends; `None` if the answer is not there.
    end: Option<usize>,
    /// How many passages are from the right source.
    right: usize,
    /// How many passages there are.
    all: usize,
}

/// A question that was asked.
struct Row {
    case: Case,
    shown: Shown,
    /// The number of the whole answer and of its prefix among the counted texts.
    texts: (usize, Option<usize>),
    ms: f64,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut report = Report::default();
    let mut rows = Vec::new();
    let mut table =
        vec![["question", "from", "tokens", "prefix", "right passages", "answer"].map(String::from).to_vec()];
    for (name, part) in &args.input.parts()? {
        let mut imported = args.input.import(name, part, tiro)?;
        let cases = imported.cases(args.questions, args.seed)?;
        let (own, tokens) = ask_all(args, tiro, &mut imported, cases)?;
        for row in own {
            let (whole, prefix) = (tokens[row.texts.0], row.texts.1.map(|text| tokens[text]));
            table.push(line(&row, whole, prefix));
            rows.push((row, whole as f64, prefix.map(|tokens| tokens as f64)));
        }
        for (what, seconds) in &imported.took {
            report.add(format!("{name}: {what}"), *seconds, "s");
        }
        report.add(format!("{name}: memories"), imported.memories.len() as f64, "");
    }
    ensure!(!rows.is_empty(), "no commit and no session has a question with a known answer");
    print_table(&table);
    println!();
    for (group, is_own) in [("commits", false), ("sessions", true), ("all", true)] {
        let own: Vec<_> = (rows.iter())
            .filter(|(row, ..)| group == "all" || matches!(row.case.source, Source::Session(_)) == is_own)
            .collect();
        if own.is_empty() {
            continue;
        }
        let prefixes: Vec<f64> = own.iter().filter_map(|(.., prefix)| *prefix).collect();
        let (low, high) = interval(prefixes.len(), own.len());
        let name = |what: &str| format!("{group}: {what}");
        report.add(name("questions"), own.len() as f64, "");
        report.add(name("answer in the context"), 100.0 * prefixes.len() as f64 / own.len() as f64, "%");
        report.add(name("  lower bound, 95%"), 100.0 * low, "%");
        report.add(name("  upper bound, 95%"), 100.0 * high, "%");
        let share =
            |(row, ..): &&(Row, f64, Option<f64>)| row.shown.right as f64 / row.shown.all.max(1) as f64;
        report.add(
            name("right passages, mean"),
            100.0 * mean(&own.iter().map(share).collect::<Vec<_>>()),
            "%",
        );
        report.add(
            name("tokens, mean"),
            mean(&own.iter().map(|(_, whole, _)| *whole).collect::<Vec<_>>()),
            "",
        );
        report.add(name("tokens of the prefix with the answer, mean"), mean(&prefixes), "");
    }
    report.add_spread("context over stdio", &rows.iter().map(|(row, ..)| row.ms).collect::<Vec<_>>(), "ms");
    report.detail = json!({"budget": args.budget, "seed": args.seed});
    Ok(report)
}

/// Asks the questions, and returns what the contexts show, with the tokens of all counted texts.
fn ask_all(
    args: &Args,
    tiro: &Tiro,
    imported: &mut Imported,
    cases: Vec<Case>,
) -> Result<(Vec<Row>, Vec<usize>)> {
    let mut texts = Texts::default();
    let mut rows = Vec::new();
    for case in cases {
        let arguments = json!({"query": case.question, "max_tokens": args.budget});
        let answer = calls::patiently(&mut imported.server, "retrieve_context", arguments);
        let answer = answer.with_context(|| format!("asking `{}`", case.question))?;
        let text = answer.text();
        let brought_in = match &case.source {
            Source::Commit(sha) => brought_in(imported, sha)?,
            Source::Session(_) => Vec::new(),
        };
        let shown = shown(&text, &case, &brought_in);
        let prefix = shown.end.map(|end| texts.add(&text[..end]));
        rows.push(Row { case, shown, texts: (texts.add(&text), prefix), ms: answer.ms() });
    }
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let tokens = texts.tokens(tiro, &imported.place, folder.path())?;
    Ok((rows, tokens))
}

/// Returns the ids of the commits that a merge brought in; of another commit, none.
fn brought_in(imported: &Imported, sha: &str) -> Result<Vec<String>> {
    let second = format!("{sha}^2");
    if calls::git(&imported.place.project, &["rev-parse", "--verify", "--quiet", &second]).is_err() {
        return Ok(Vec::new());
    }
    let listed = calls::git(&imported.place.project, &["rev-list", &format!("{sha}^1..{sha}")])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Finds the answer of `case` in the context `text`. A commit of `brought_in` is as right as the commit of the case.
fn shown(text: &str, case: &Case, brought_in: &[String]) -> Shown {
    let all = passages(text);
    let is_right = |passage: &Passage<'_>| match &case.source {
        Source::Session(name) => passage.session == Some(name),
        Source::Commit(sha) => passage
            .commit
            .is_some_and(|id| sha.starts_with(id) || brought_in.iter().any(|other| other.starts_with(id))),
    };
    let itself = |passage: &Passage<'_>| match (&case.source, passage.commit) {
        (Source::Commit(sha), Some(id)) => sha.starts_with(id),
        _ => false,
    };
    let end = match &case.answer {
        Some(sentence) => end_of(text, sentence),
        None => all.iter().find(|passage| itself(passage)).map(|passage| passage.start + passage.text.len()),
    };
    Shown { end, right: all.iter().filter(|passage| is_right(passage)).count(), all: all.len() }
}

/// The number of characters of a question that the table shows. Arbitrary.
const COLUMN: usize = 60;

fn line(row: &Row, whole: usize, prefix: Option<usize>) -> Vec<String> {
    let from = match &row.case.source {
        Source::Commit(sha) => format!("commit {}", &sha[..sha.floor_char_boundary(10)]),
        Source::Session(name) => name.chars().take(24).collect(),
    };
    vec![
        row.case.question.chars().take(COLUMN).collect(),
        from,
        whole.to_string(),
        prefix.map_or("-".into(), |tokens| tokens.to_string()),
        format!("{} of {}", row.shown.right, row.shown.all),
        if prefix.is_some() { "yes" } else { "no" }.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Quoted.\n[data ab]\n[committed 2026-03-01]\n[commit fb804efe7b] Add TLS\n\nIt was\nasked for.\n\
        [auth 2026-03-02]\n#3 Ada: No.\n#4 Bea: Yes, TLS.\n[/data ab]\n90 of 4000 tokens.\n";

    fn case(answer: Option<&str>, source: Source) -> Case {
        Case { question: String::new(), answer: answer.map(str::to_owned), source }
    }

    #[test]
    fn a_prefix_ends_where_the_answer_ends() {
        let commit = Source::Commit("fb804efe7b0000".into());
        let found = shown(TEXT, &case(Some("It was asked for."), commit.clone()), &[]);
        assert_eq!(&TEXT[..found.end.unwrap()], TEXT.split_inclusive("asked for.").next().unwrap());
        assert_eq!((found.right, found.all), (1, 3));
        let itself = shown(TEXT, &case(None, commit), &[]);
        assert_eq!(itself.end, found.end);
        let session = shown(TEXT, &case(Some("Never said."), Source::Session("auth".into())), &[]);
        assert_eq!(session, Shown { end: None, right: 2, all: 3 });
    }

    #[test]
    fn the_commits_that_a_merge_brought_in_are_right_but_no_answer() {
        let merge = case(None, Source::Commit("0123456789".into()));
        let found = shown(TEXT, &merge, &["fb804efe7b0000".into()]);
        assert_eq!(found, Shown { end: None, right: 1, all: 3 });
    }
}
