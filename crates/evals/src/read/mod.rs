//! `evals read`: writes a form on which a reader judges what Tiro shows, and reads the verdicts.
//!
//! All items of a kind are made first, then the seed decides which are on the form, each with the same chance. The form
//! quotes the imported texts, so it must not be written into a repository. With `--score`, the command reads a filled
//! form and prints the precision: the share of items that are right. Its interval says how much the draw alone can
//! change it. An item that a reader doubts counts as wrong.

pub mod form;
mod kinds;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::budget::BUDGET;
use crate::client::Tiro;
use crate::imported::Input;
use crate::stats::{Report, interval, share_with_interval};

use form::{Head, Item, Verdicts};
use kinds::Kind;

/// What to draw, or which form to read.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The kind of items to judge
    #[arg(required_unless_present = "score")]
    kind: Option<Kind>,
    #[command(flatten)]
    input: Input,
    /// File to write the form to, outside every repository
    #[arg(long, required_unless_present = "score")]
    out: Option<PathBuf>,
    /// Items to draw
    #[arg(long, default_value_t = 50)]
    n: usize,
    /// Decides which items are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Questions to make for each project, if the input has none
    #[arg(long, default_value_t = 30)]
    questions: usize,
    /// Hits of a search
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// Budget of the contexts in tokens
    #[arg(long, default_value_t = BUDGET)]
    budget: usize,
    /// Filled form whose verdicts are read
    #[arg(long, conflicts_with_all = ["kind", "out"])]
    score: Option<PathBuf>,
}

/// Writes the form or reads it, and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    if let Some(form) = &args.score {
        let text = std::fs::read_to_string(form).with_context(|| format!("reading `{}`", form.display()))?;
        return Ok(score(&form::read(&text).with_context(|| format!("reading `{}`", form.display()))?));
    }
    let (Some(kind), Some(out)) = (args.kind, &args.out) else { bail!("name a kind and --out, or --score") };
    let out = std::path::absolute(out)?;
    if let Some(repository) = repository_of(&out) {
        bail!(
            "`{}` is in the repository `{}`; a form quotes texts, so keep it outside",
            out.display(),
            repository.display()
        );
    }
    let mut items = Vec::new();
    let mut tokens = Vec::new();
    let parts = args.input.parts()?;
    for (name, part) in &parts {
        let mut imported = args.input.import(name, part, tiro)?;
        items.extend(kinds::items(kind, args, &mut imported, &mut tokens)?);
    }
    ensure!(!items.is_empty(), "there are no {}", kind.name());
    let drawn: Vec<Item> =
        form::draw(items.len(), args.n, args.seed).into_iter().map(|place| items[place].clone()).collect();
    let from: Vec<&str> = parts.keys().map(String::as_str).collect();
    let head = Head {
        kind: kind.name().into(),
        asks: kind.asks().into(),
        from: from.join(", "),
        of: items.len(),
        seed: args.seed,
    };
    std::fs::write(&out, form::write(&head, &drawn))
        .with_context(|| format!("writing `{}`", out.display()))?;
    println!("The form is `{}`.\n", out.display());
    let mut report = Report::default();
    report.add(kind.name(), items.len() as f64, "");
    report.add("on the form", drawn.len() as f64, "");
    if !tokens.is_empty() {
        report.add(
            format!("tokens of a context of at most {}, mean", args.budget),
            crate::stats::mean(&tokens),
            "",
        );
    }
    report.detail = json!({"seed": args.seed, "budget": args.budget});
    Ok(report)
}

/// Returns the repository that contains `path`, which is absolute.
fn repository_of(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|folder| folder.join(".git").exists())
}

/// Reports the precision of a filled form.
fn score(verdicts: &Verdicts) -> Report {
    let (right, read) = (verdicts.right(), verdicts.read());
    println!("{}: {right} of {read} right, {} %\n", verdicts.kind, share_with_interval(right, read));
    let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    let (low, high) = interval(right, read);
    let mut report = Report::default();
    report.add("precision", share(right, read), "%");
    report.add("  lower bound, 95%", 100.0 * low, "%");
    report.add("  upper bound, 95%", 100.0 * high, "%");
    report.add("precision without the doubtful", share(right, read - verdicts.doubtful), "%");
    report.add("useful", share(verdicts.useful, read), "%");
    report.add("doubtful", share(verdicts.doubtful, read), "%");
    report.add("read", read as f64, "");
    report.add("without a verdict", verdicts.unread as f64, "");
    report.detail = json!({"kind": verdicts.kind});
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_in_a_repository_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("clone/docs");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(repository_of(&deep.join("form.md")), None);
        std::fs::create_dir(root.path().join("clone/.git")).unwrap();
        assert_eq!(repository_of(&deep.join("form.md")), Some(root.path().join("clone").as_path()));
        assert_eq!(repository_of(&root.path().join("form.md")), None);
    }

    #[test]
    fn a_doubtful_item_counts_as_wrong() {
        let report =
            score(&Verdicts { is_true: 6, useful: 2, is_false: 1, doubtful: 1, ..Verdicts::default() });
        let value =
            |name: &str| report.figures.iter().find(|figure| figure.name.trim() == name).unwrap().value;
        assert_eq!(value("precision"), 80.0);
        assert_eq!(value("useful"), 20.0);
        assert!((value("precision without the doubtful") - 800.0 / 9.0).abs() < 1e-9);
        assert!((value("lower bound, 95%") - 49.02).abs() < 0.01);
    }
}
