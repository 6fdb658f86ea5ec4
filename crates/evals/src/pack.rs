//! `evals pack`: how long Tiro itself takes to prepare a prompt of many files, compared with repomix, and what the list of
//! files takes in the store.
//!
//! A tree of source files is made up; it depends only on the seed. In each round a new project is asked about it several
//! times, without a change between the calls, and repomix packs the same tree with its default settings, which count
//! tokens. A mock answers at once and says how long it took, so the time of each call without the mock is known, besides
//! the time that the receipt states. This is done with a window that takes all files, and with a usual window, in which
//! most files have to be searched instead.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::assistant::Assistant;
use crate::calls::{LONG, path_text};
use crate::client::{Era, Place, Tiro, last_chars, run_to_end};
use crate::random::Random;
use crate::stats::{Goal, Report, median, percentile};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files of the tree
    #[arg(long, default_value_t = 2000)]
    files: usize,
    /// Files of the tree with which the size of the list is measured
    #[arg(long, default_value_t = 1000)]
    listed: usize,
    /// Rounds, each in a new project
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Calls without a change, in each round
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// The program repomix [default: `npm install` puts the newest into a temporary folder]
    #[arg(long)]
    repomix: Option<PathBuf>,
    /// Leave repomix out
    #[arg(long)]
    alone: bool,
    /// Seed of the tree
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A window that takes all files.
const LARGE: usize = 10_000_000;

/// A usual window.
const USUAL: usize = 200_000;

/// How long files stay unchanged before they are first read: a file that was written in the same moment is read again.
const SETTLING: Duration = Duration::from_secs(3);

/// The pause between calls, as an agent makes one: what a call leaves to be done in the background is finished by then.
const PAUSE: Duration = Duration::from_secs(2);

/// The times of one kind of call, in milliseconds.
#[derive(Default)]
struct Times {
    /// What the receipt states.
    own: Vec<f64>,
    /// From the request to the answer, without the mock's time.
    wall: Vec<f64>,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let mut report = Report::default();
    let project = root.join("project");
    let bytes = write_tree(&project.join("src"), args.files, args.seed)?;
    report.add("files", args.files as f64, "");
    report.add("bytes", bytes as f64 / 1e6, "MB");
    let repomix = match args.alone {
        true => None,
        false => repomix(args, &root)?,
    };
    std::thread::sleep(SETTLING);

    let assistant = Assistant::start()?;
    let (mut first, mut again) = ([Times::default(), Times::default()], [Times::default(), Times::default()]);
    let mut packed = Vec::new();
    for round in 0..args.rounds.max(1) {
        for (which, window) in [LARGE, USUAL].into_iter().enumerate() {
            let data_dir = root.join(format!("data-{round}-{window}"));
            let place = Place { data_dir, project: project.clone() };
            let asked = ask(&assistant, &root, tiro, &place, window, args.repeats)?;
            for (at, (own, wall)) in asked.into_iter().enumerate() {
                let times = if at == 0 { &mut first[which] } else { &mut again[which] };
                times.own.push(own);
                times.wall.push(wall);
            }
            std::fs::remove_dir_all(&place.data_dir)?;
        }
        if let Some(repomix) = &repomix {
            packed.push(pack(repomix, &project, &root)?);
        }
    }
    for (which, window) in ["all files in the prompt", "a window of 200,000"].into_iter().enumerate() {
        add(&mut report, window, &first[which], &again[which], &packed);
    }
    if !packed.is_empty() {
        report.add("repomix, median", median(&packed), "ms");
    }
    add_list(&mut report, args, &assistant, &root, tiro)?;
    report.detail = json!({
        "files": args.files, "bytes": bytes, "seed": args.seed, "rounds": args.rounds, "repomix_ms": packed,
        "first_own_ms": [first[0].own, first[1].own], "first_wall_ms": [first[0].wall, first[1].wall],
        "again_own_ms": [again[0].own, again[1].own], "again_wall_ms": [again[0].wall, again[1].wall],
    });
    Ok(report)
}

fn add(report: &mut Report, window: &str, first: &Times, again: &Times, packed: &[f64]) {
    report.add(format!("{window}: first call, stated"), median(&first.own), "ms");
    report.add("  without the mock", median(&first.wall), "ms");
    if !packed.is_empty() {
        report.add("  against repomix, stated", median(packed) / median(&first.own), "x faster");
        let faster = median(packed) / median(&first.wall);
        report.aim("  against repomix, without the mock", faster, "x faster", Goal::AtLeast(5.0));
    }
    report.aim(format!("{window}: unchanged, stated"), median(&again.own), "ms", Goal::AtMost(20.0));
    report.add("  the fastest", percentile(&again.own, 0.0), "ms");
    report.add("  without the mock", median(&again.wall), "ms");
    report.add("  the fastest", percentile(&again.wall, 0.0), "ms");
}

/// Asks about the tree in `1 + repeats` calls, and returns for each what the receipt states and the time without the mock.
fn ask(
    assistant: &Assistant,
    root: &Path,
    tiro: &Tiro,
    place: &Place,
    window: usize,
    repeats: usize,
) -> Result<Vec<(f64, f64)>> {
    let mut server = assistant.configure(tiro, root, window, 0)?.serve(place, Era::Session)?;
    let mut times = Vec::new();
    for call in 0..=repeats {
        if call > 0 {
            std::thread::sleep(PAUSE);
        }
        let question = format!("How is the lease renewed, and what is the limit in case {call}?");
        let (answer, asked) = assistant.consult(&mut server, "pack", "src", &question)?;
        let receipt = &answer.structured()["receipt"];
        let own = receipt["own_ms"].as_f64().context("the receipt has no `own_ms`")?;
        if call > 0 {
            ensure!(receipt["sent"].is_null(), "unchanged files were sent again: {}", receipt["sent"]);
        }
        times.push((own, answer.ms() - asked.took.as_secs_f64() * 1000.0));
    }
    server.close()?;
    Ok(times)
}

/// Measures what the list of files takes in the store, and how long a call takes with it.
fn add_list(report: &mut Report, args: &Args, assistant: &Assistant, root: &Path, tiro: &Tiro) -> Result<()> {
    let root = root.join("listed");
    let place = Place::create(&root)?;
    write_tree(&place.project.join("src"), args.listed, args.seed + 1)?;
    std::thread::sleep(SETTLING);
    let times = ask(assistant, &root, tiro, &place, LARGE, args.repeats.max(5))?;
    let sizes = sizes(&store(&place)?)?;
    let own: Vec<f64> = times.iter().skip(1).map(|(own, _)| *own).collect();
    let named = |tables: &[&str]| {
        let is_named = |name: &str| tables.contains(&name.split(" by ").next().unwrap_or_default());
        let sum: u64 = sizes.iter().filter(|(name, _)| is_named(name)).map(|(_, size)| size).sum();
        sum as f64 / 1000.0
    };
    let files = args.listed;
    let list = named(&["threads", "thread_files"]);
    report.aim(format!("list and ledger of {files} files, in the store"), list, "kB", Goal::AtMost(100.0));
    let indexes: u64 =
        sizes.iter().filter(|(name, _)| name.starts_with("thread_files by ")).map(|(_, size)| size).sum();
    report.add("  indexes of it", indexes as f64 / 1000.0, "kB");
    report.add("  its blocks", named(&["thread_blocks"]), "kB");
    report.add("  its counts of tokens", named(&["file_tokens"]), "kB");
    report.add("  its texts", named(&["blobs"]), "kB");
    report.aim(format!("{files} files, unchanged, stated"), median(&own), "ms", Goal::AtMost(50.0));
    Ok(())
}

/// Returns the path of the store of the only project.
fn store(place: &Place) -> Result<PathBuf> {
    let mut folders = std::fs::read_dir(place.data_dir.join("projects"))?;
    let folder = folders.next().context("nothing was stored")??;
    Ok(folder.path().join("tiro.db"))
}

/// Returns the bytes of the pages of each table and of each index, which is named `TABLE by INDEX`.
fn sizes(store: &Path) -> Result<Vec<(String, u64)>> {
    let store = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut sizes = store.prepare(
        "SELECT iif(type = 'index', tbl_name || ' by ' || name, name), sum(pgsize)
         FROM dbstat JOIN sqlite_schema USING (name) GROUP BY name",
    )?;
    let rows = sizes.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    rows.collect::<Result<_, _>>().context("reading the sizes of tables")
}

/// Returns the program repomix; `None`, with a notice, if it can't be installed.
fn repomix(args: &Args, root: &Path) -> Result<Option<PathBuf>> {
    if let Some(named) = &args.repomix {
        return Ok(Some(std::path::absolute(named)?));
    }
    let folder = root.join("npm");
    std::fs::create_dir_all(&folder)?;
    let mut command = Command::new("npm");
    command.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix", path_text(&folder)?]);
    command.arg("repomix@latest");
    let program = folder.join("node_modules/.bin/repomix");
    let outcome = run_to_end(command, LONG);
    if !program.exists() {
        let why = outcome.map_or_else(|error| error.to_string(), |(_, _, stderr)| stderr);
        eprintln!("repomix is left out, because npm did not install it: {}", last_chars(why.trim(), 300));
        return Ok(None);
    }
    Ok(Some(program))
}

/// Packs the tree with repomix and returns the time in milliseconds.
fn pack(repomix: &Path, project: &Path, root: &Path) -> Result<f64> {
    let output = root.join("packed.xml");
    let mut command = Command::new(repomix);
    command.current_dir(project).args(["src", "--quiet", "--output", path_text(&output)?]);
    let began = Instant::now();
    let (status, _, stderr) = run_to_end(command, LONG)?;
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    ensure!(status.success(), "repomix ended with {status}: {}", last_chars(&stderr, 500));
    let packed = std::fs::metadata(&output).context("repomix wrote nothing")?.len();
    ensure!(packed > 100_000, "repomix packed only {packed} bytes");
    std::fs::remove_file(&output)?;
    Ok(ms)
}

/// Writes `count` source files below `folder` and returns their bytes. Sizes are spread as in repositories: half of the
/// files have less than 3 KB, a few have 40.
fn write_tree(folder: &Path, count: usize, seed: u64) -> Result<usize> {
    let mut random = Random::new(seed);
    let mut bytes = 0;
    for number in 0..count {
        let size = ((3000_f64.ln() + random.normal()).exp() as usize).clamp(200, 40_000);
        let (top, inner) = (WORDS[number % 23], WORDS[(number / 23) % 17 + 23]);
        let folder = match number % 3 {
            0 => folder.join(top),
            _ => folder.join(top).join(inner),
        };
        std::fs::create_dir_all(&folder)?;
        let text = source(size, &mut random);
        bytes += text.len();
        let name = format!("{}_{number}.rs", random.pick(&WORDS));
        std::fs::write(folder.join(&name), text).with_context(|| format!("writing `{name}`"))?;
    }
    Ok(bytes)
}

/// Returns about `size` bytes of made-up source code.
fn source(size: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(size + 200);
    text += &format!("//! Keeps the {} of each {}.\n\n", random.pick(&WORDS), random.pick(&WORDS));
    let (module, name) = (*random.pick(&WORDS), *random.pick(&WORDS));
    text += &format!("use crate::{module}::{};\n\n", capital(name));
    while text.len() < size {
        let [a, b, c, d] = [0; 4].map(|_| *random.pick(&WORDS));
        text += &format!(
            "/// Returns the {a} of the {b}, or the {c} if it has none.\nfn {a}_{b}({c}: &{}, limit: usize) -> Result<{}> {{\n",
            capital(d),
            capital(a)
        );
        for _ in 0..1 + random.below(9) {
            let [e, f, g] = [0; 3].map(|_| *random.pick(&WORDS));
            let number = random.below(5000);
            text += &match random.below(6) {
                0 => format!("    let {e} = {c}.{f}_{g}({number})?;\n"),
                1 => format!(
                    "    if {e}.len() > limit {{\n        return Err(Error::new(\"the {f} has no {g}\"));\n    }}\n"
                ),
                2 => {
                    format!("    // The {e} is kept until the {f} ends, because the {g} may still need it.\n")
                }
                3 => format!(
                    "    for {e} in self.{f}.iter().filter(|{g}| {g}.is_{a}()) {{\n        total += {e}.{b}();\n    }}\n"
                ),
                4 => format!(
                    "    match {e} {{\n        Some({f}) => self.{g}.push({f}),\n        None => return Ok({number}),\n    }}\n"
                ),
                _ => format!("    self.{e}.insert({f}.clone(), {}::new({g}, 0x{number:04x}));\n", capital(e)),
            };
        }
        text += &format!("    Ok({a})\n}}\n\n");
    }
    text
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// The words of names and comments.
const WORDS: [&str; 80] = [
    "account", "address", "answer", "batch", "block", "body", "branch", "budget", "buffer", "cache",
    "caller", "chunk", "client", "clock", "column", "commit", "config", "context", "counter", "cursor",
    "deadline", "digest", "document", "draft", "entry", "epoch", "error", "event", "field", "file", "filter",
    "folder", "frame", "handle", "hash", "header", "history", "hunk", "index", "input", "key", "label",
    "lease", "ledger", "limit", "line", "link", "list", "lock", "marker", "message", "method", "node",
    "note", "offset", "option", "order", "output", "owner", "page", "parser", "path", "place", "plan",
    "price", "prompt", "query", "queue", "range", "reader", "record", "report", "request", "result", "route",
    "rule", "scope", "session", "window", "writer",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_depends_only_on_the_seed() {
        let folder = tempfile::tempdir().unwrap();
        let tree = |name: &str, seed| write_tree(&folder.path().join(name), 40, seed).unwrap();
        assert_eq!(tree("a", 1), tree("b", 1));
        assert_ne!(tree("c", 1), tree("d", 2));
        let file = |name: &str| {
            let mut found: Vec<PathBuf> = std::fs::read_dir(folder.path().join(name).join("account"))
                .unwrap()
                .map(|e| e.unwrap().path())
                .collect();
            found.sort();
            std::fs::read_to_string(found.iter().find(|path| path.is_file()).unwrap()).unwrap()
        };
        assert_eq!(file("a"), file("b"));
        assert!(file("a").starts_with("//! Keeps the "));
    }
}
