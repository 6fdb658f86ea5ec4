//! What the views of `tiro open` cost: `evals pages` opens them on its large store.
//!
//! Each view is asked for over its own connection, as often as the other pages are read. The time is from the connection
//! to the last byte. With a browser, also when the first text of each view was painted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, median};

/// The most milliseconds of the server for a view, p50.
const VIEW_MS: f64 = 30.0;

/// The most milliseconds of the server for a search as one types, p50.
const TYPED_MS: f64 = 25.0;

/// The most bytes of a view.
const VIEW_KB: f64 = 150.0;

/// The most milliseconds until the browser paints the first text of a view.
const PAINT_MS: f64 = 300.0;

/// Messages of the long session.
const LONG: usize = 2000;

/// Lines of the file, written by a commit for every hundred.
const LINES: usize = 2000;

/// How many questions are typed, each letter by letter.
const TYPED: usize = 12;

/// Adds what the views show besides messages: a long session, decisions that supersede each other, and a file with a
/// history. Returns the id of the last decision.
pub fn fill(place: &Place, tiro: &Tiro, corpus: &Corpus, messages: usize) -> Result<String> {
    let mut file = String::new();
    for commit in 0..LINES / 100 {
        for line in 0..100 {
            let number = commit * 100 + line;
            file += &format!("let {} = {number};\n", corpus.text(number, commit, 3).replace(' ', "_"));
        }
        std::fs::write(place.project.join("long.rs"), &file).context("writing `long.rs`")?;
        calls::git(&place.project, &["add", "."])?;
        let subject = format!("Add {}", corpus.text(commit, commit, 6));
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        calls::git(&place.project, &[&who[..], &["commit", "--quiet", "-m", &subject]].concat())?;
    }
    let mut server = tiro.serve(place, Era::Session)?;
    for start in (0..LONG).step_by(500) {
        let said = (start..start + 500).map(|index| {
            let mut message = corpus.message(messages + index);
            message.session = "long".into();
            message
        });
        calls::save_messages(&mut server, &said.collect::<Vec<_>>())?;
    }
    let mut decision: Option<String> = None;
    for number in 0..3 {
        let mut args =
            json!({"text": format!("Version {number}: {}", corpus.text(number, 1, 40)), "type": "decision"});
        if let Some(older) = decision {
            args["supersedes"] = json!([older]);
        }
        args["references"] = json!(["session-00001#1"]);
        let answer = server.tool("store_memory", args)?;
        let id = answer.text().split('`').nth(1).map(str::to_owned);
        decision = Some(id.context("`store_memory` names no id")?);
    }
    server.close()?;
    tiro.run(place, &["import", "git", "--project", calls::path_text(&place.project)?], calls::LONG)?;
    decision.context("no decision")
}

/// Opens every view `rounds` times, and types questions into the search. `browser` is the folder of the modules that
/// drive a browser.
pub fn measure(
    place: &Place,
    tiro: &Tiro,
    corpus: &Corpus,
    decision: &str,
    (messages, rounds): (usize, usize),
    browser: Option<&Path>,
    report: &mut Report,
) -> Result<()> {
    let pages = Pages::open(place, tiro)?;
    let question = corpus.query(1, messages).replace(' ', "+");
    let views = [
        ("project", "/".to_owned()),
        ("timeline", "/timeline".to_owned()),
        ("session of 2,000 messages", "/session?id=long".to_owned()),
        ("search", format!("/search?q={question}")),
        ("memory", format!("/memory?id={decision}")),
        ("message", "/memory?id=session-00100%2310".to_owned()),
        ("file of 2,000 lines", "/file?path=long.rs&from=1001".to_owned()),
        ("threads", "/threads".to_owned()),
        ("privacy", "/privacy".to_owned()),
        ("stash", "/stash".to_owned()),
    ];
    let mut largest = 0;
    for (name, path) in &views {
        let mut ms = Vec::with_capacity(rounds);
        for _ in 0..rounds.max(1) {
            let (elapsed, body) = pages.get(path)?;
            largest = largest.max(body.len());
            ms.push(elapsed.as_secs_f64() * 1000.0);
        }
        report.aim(format!("view {name}, p50"), median(&ms), "ms", Goal::AtMost(VIEW_MS));
    }
    report.aim("the largest view", largest as f64 / 1000.0, "kB", Goal::AtMost(VIEW_KB));
    let mut ms = Vec::new();
    for index in 0..TYPED {
        let question = corpus.query(index, messages);
        let ends = question.char_indices().map(|(at, _)| at).skip(2).take(30);
        for end in ends {
            let typed = question[..end].replace('%', "%25").replace(' ', "+");
            ms.push(pages.get(&format!("/search.json?q={typed}"))?.0.as_secs_f64() * 1000.0);
        }
    }
    report.aim("search as one types, p50", median(&ms), "ms", Goal::AtMost(TYPED_MS));
    report.add("search as one types, longest", ms.iter().copied().fold(0.0, f64::max), "ms");
    let (elapsed, _) = pages.get("/doctor.json")?;
    report.add("what doctor says, fetched after the project", elapsed.as_secs_f64() * 1000.0, "ms");
    if let Some(modules) = browser {
        for (name, ms) in pages.painted(modules, &views)? {
            report.aim(format!("first paint of {name}, p50"), ms, "ms", Goal::AtMost(PAINT_MS));
        }
    }
    Ok(())
}

/// A running `tiro open`. Dropping it ends the process.
struct Pages {
    child: Child,
    port: u16,
    cookie: String,
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pages {
    fn open(place: &Place, tiro: &Tiro) -> Result<Pages> {
        let mut command = tiro.command(place, &["open", "--no-browser"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("starting `tiro open`")?;
        let mut address = String::new();
        let stdout = child.stdout.take().context("`tiro open` has no output")?;
        BufReader::new(stdout).read_line(&mut address).context("reading the address")?;
        let mut pages = Pages { child, port: 0, cookie: String::new() };
        let (_, rest) = address.trim().split_once("127.0.0.1:").context("`tiro open` printed no address")?;
        let (port, first) = rest.split_once('/').context("the address has no path")?;
        pages.port = port.parse().context("the address has no port")?;
        let answer = pages.ask(&format!("/{first}"))?;
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.context("the first address sets no cookie")?;
        pages.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(pages)
    }

    /// Returns the body of a page, and how long it took.
    fn get(&self, path: &str) -> Result<(Duration, String)> {
        let began = Instant::now();
        let answer = self.ask(path)?;
        let elapsed = began.elapsed();
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("`{path}` answers {}", head.lines().next().unwrap_or_default());
        }
        Ok((elapsed, body.to_owned()))
    }

    fn ask(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).context("connecting to the pages")?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let (port, cookie) = (self.port, &self.cookie);
        let lines = format!("Host: 127.0.0.1:{port}\r\nConnection: close\r\nCookie: {cookie}");
        stream.write_all(format!("GET {path} HTTP/1.1\r\n{lines}\r\n\r\n").as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).with_context(|| format!("reading `{path}`"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns when a browser painted the first text of each view, in milliseconds, the median of several times.
    fn painted(&self, modules: &Path, views: &[(&str, String)]) -> Result<Vec<(String, f64)>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/painted.mjs");
        let origin = format!("http://127.0.0.1:{}", self.port);
        let mut command = Command::new("node");
        command.arg(script).arg(origin).arg(&self.cookie).args(views.iter().map(|(_, path)| path));
        let output = command.env("NODE_PATH", modules).output().context("running `node`")?;
        if !output.status.success() {
            bail!("the browser failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let times: Vec<f64> = serde_json::from_slice::<Value>(&output.stdout)?
            .as_array()
            .context("the browser measured nothing")?
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        Ok(views.iter().map(|(name, _)| (*name).to_owned()).zip(times).collect())
    }
}
