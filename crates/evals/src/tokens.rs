//! `evals tokens`: how fast the tokens of code and prose are counted, compared with tiktoken. Each side uses one core.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::calls::path_text;
use crate::client::{Place, Tiro};
use crate::peer::{self, PeerArgs};
use crate::stats::{Goal, Report, median};
use crate::suite;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directories whose text files are counted [default: the sources that cargo has unpacked]
    #[arg(long)]
    dir: Vec<PathBuf>,
    /// Megabytes of them
    #[arg(long, default_value_t = 10)]
    megabytes: usize,
    /// Gzipped rank file of o200k for tiktoken [default: that of `bpe-openai`, as cargo has unpacked it]
    #[arg(long)]
    ranks: Option<PathBuf>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// How many rounds each process runs: the first loads the dictionary, and the last is the one that counts.
const ROUNDS: &str = "2";

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let files = gather(&directories(&args.dir)?, args.megabytes * 1_000_000)?;
    let list = root.path().join("files.txt");
    std::fs::write(&list, files.iter().map(|path| format!("{}\n", path.display())).collect::<String>())?;
    let list = path_text(&list)?;
    let texts = root.path().join("texts.jsonl");
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("was read as text a moment ago");
    suite::write_lines(&texts, files.iter().map(read))?;
    let texts = path_text(&texts)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut ours_last, mut theirs_last) = (Value::Null, Value::Null);
    for _ in 0..args.peer.rounds.max(1) {
        ours_last = peer::bench(tiro, &place, &["tokens", "--files", list, "--rounds", ROUNDS])?;
        ours.push(peer::last_round(&ours_last)?);
        if !args.peer.alone {
            let ranks = ranks(args)?;
            theirs_last = args.peer.run("tokens.py", &[path_text(&ranks)?, texts, "--repeat", "1"])?;
            theirs.push(peer::last_round(&theirs_last)?);
        }
    }
    let bytes = ours_last["bytes"].as_f64().context("the answer has no `bytes`")?;
    let counts = peer::numbers(&ours_last, "counts");
    let mut report = Report::default();
    report.add("files", files.len() as f64, "");
    report.add("bytes", bytes / 1e6, "MB");
    report.add("tokens", counts.iter().sum(), "");
    report.add("counting, median of rounds", bytes / 1e6 / median(&ours), "MB/s");
    if !args.peer.alone {
        let their_counts = peer::numbers(&theirs_last, "counts");
        if their_counts.len() != counts.len() {
            bail!("{} files counted here, {} there", counts.len(), their_counts.len());
        }
        let wrong = counts.iter().zip(&their_counts).filter(|(ours, theirs)| ours != theirs).count();
        report.add("tiktoken", bytes / 1e6 / median(&theirs), "MB/s");
        report.aim("times faster", median(&theirs) / median(&ours), "×", Goal::AtLeast(1.5));
        report.must_be_zero("files counted differently", wrong);
    }
    let hostile = ours_last["one_char"].as_array().into_iter().flatten();
    let slowest = hostile.filter_map(|case| Some((case["seconds"].as_f64()?, case["char"].to_string())));
    if let Some((seconds, char)) = slowest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        report.aim(format!("1 MB of one character, slowest ({char})"), seconds, "s", Goal::AtMost(1.0));
    }
    report.detail = json!({"rounds_s": ours, "peer_rounds_s": theirs, "one_char": ours_last["one_char"]});
    Ok(report)
}

/// Returns the absolute paths of `named`. If `named` is empty, returns the directory of the sources that cargo has
/// unpacked.
pub fn directories(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if named.is_empty() {
        return Ok(vec![cargo_sources()?]);
    }
    named.iter().map(|directory| Ok(std::path::absolute(directory)?)).collect()
}

fn ranks(args: &Args) -> Result<PathBuf> {
    if let Some(ranks) = &args.ranks {
        return Ok(std::path::absolute(ranks)?);
    }
    for registry in std::fs::read_dir(cargo_sources()?)? {
        for package in std::fs::read_dir(registry?.path())? {
            let file = package?.path().join("data/o200k_base.tiktoken.gz");
            if file.is_file() {
                return Ok(file);
            }
        }
    }
    bail!("cargo has not unpacked `bpe-openai`; name a rank file with --ranks")
}

/// Returns the directory in which cargo unpacks the sources of dependencies.
fn cargo_sources() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.context("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    if !sources.is_dir() {
        bail!("`{}` is not a directory; name other texts with --dir", sources.display());
    }
    Ok(sources)
}

/// Returns files of code and prose below `directories`, with up to `bytes` bytes in all. They are evenly spread over
/// all files found.
pub fn gather(directories: &[PathBuf], bytes: usize) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    directories.iter().try_for_each(|directory| walk(directory, &mut found))?;
    found.sort();
    // The files are spread over the sorted list, since those at its beginning would all be from a single directory.
    let total: usize = found.iter().map(|(_, size)| size).sum();
    let step = (total / bytes.max(1)).max(1);
    let (mut chosen, mut sum) = (Vec::new(), 0);
    for offset in 0..step {
        for (path, size) in found.iter().skip(offset).step_by(step) {
            if sum >= bytes {
                return Ok(chosen);
            }
            if std::fs::read_to_string(path).is_ok() {
                chosen.push(path.clone());
                sum += size;
            }
        }
    }
    Ok(chosen)
}

fn walk(directory: &Path, found: &mut Vec<(PathBuf, usize)>) -> Result<()> {
    let kinds =
        ["rs", "py", "js", "ts", "go", "c", "h", "cpp", "java", "md", "txt", "toml", "json", "sh", "html"];
    for entry in std::fs::read_dir(directory).with_context(|| format!("reading `{}`", directory.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            walk(&path, found)?;
        } else if kind.is_file()
            && path.extension().and_then(|e| e.to_str()).is_some_and(|e| kinds.contains(&e))
        {
            let size = entry.metadata()?.len() as usize;
            if (1..500_000).contains(&size) {
                found.push((path, size));
            }
        }
    }
    Ok(())
}
