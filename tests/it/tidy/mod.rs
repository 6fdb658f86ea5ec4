//! The sources follow the rules of the house: each row of modules imports only rows below it, each kind of effect is in
//! one place, and files and folders stay small.
//!
//! The sources are read as text, without tests and comments. That is cruder than a compiler but good enough for such
//! rules: every violation that it reports is real, and the planted violations at the end show that it does find some.

mod circles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The rows of modules, from the doors (what users call) down. A module may use the modules of the rows below its own,
/// and modules of the last row may also use one another.
const ROWS: &[&[&str]] = &[
    &["server", "pages", "cli"],
    &["web"],
    &["tools"],
    &["idle"],
    &["own_files", "assembly", "exchange"],
    &["summaries", "consult"],
    &["ask"],
    &["caller"],
    &["engine"],
    &["project", "principals"],
    &["config"],
    &["follow", "store_intake"],
    &[
        "remember",
        "import",
        "freshness",
        "reasons",
        "sources",
        "retrieve",
        "context",
        "summarize",
        "inline",
        "ephemeral",
        "stash",
    ],
    &["spool", "intake", "sync"],
    &["postgres"],
    &["sqlite", "conformance", "memory_engine"],
    &["store", "embed", "git", "files", "clients", "llm", "valkey"],
    &["private"],
    &["chunk", "tokens", "statements"],
    &["blocks"],
    &[
        "budget", "encoding", "envelope", "filter", "memory", "scope", "redact", "error", "file", "humanize",
        "lossy", "money", "parallel", "thread", "times", "tuning", "words",
    ],
];

/// The crates beneath the program, each with what it holds. A crate depends only on crates that stand before it.
const CRATES: &[(&str, Holds)] = &[
    ("redact", Holds::One),
    ("base", Holds::Modules),
    ("text", Holds::Modules),
    ("git", Holds::One),
    ("embed", Holds::One),
    ("llm", Holds::One),
    ("store", Holds::One),
    ("sqlite", Holds::One),
    ("valkey", Holds::One),
    ("postgres", Holds::One),
    ("conformance", Holds::One),
    ("memory-engine", Holds::One),
    ("sync", Holds::One),
    ("intake", Holds::One),
    ("digest", Holds::Modules),
    ("capture", Holds::Modules),
    ("files", Holds::One),
    ("inline", Holds::One),
    ("recall", Holds::Modules),
    ("host", Holds::Modules),
    ("tools", Holds::One),
];

/// The crates that are no part of the program.
const APART: [&str; 2] = ["tiro-conformance", "tiro-memory-engine"];

/// How a crate stands in the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// The crate is a module of the rows.
    One,
    /// The crate's modules are modules of the rows.
    Modules,
}

/// Uses of a row above that are allowed, each with the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("cli", "server", "`tiro serve` is a command that opens another door"),
    ("cli", "pages", "`tiro open` is a command that opens another door"),
];

/// What may occur only in some places, each as the words, the places, and the rule.
const WALLS: &[(&[&str], &[&str], &str)] = &[
    (&["rmcp::", "use rmcp"], &["server/"], "MCP and JSON-RPC only in server/"),
    (
        &["axum::", "use axum", "hyper::", "use hyper", "hyper_util::", "tokio_rustls::"],
        &["web/", "server/http/", "pages/"],
        "HTTP is served only in web/, server/http/ and pages/",
    ),
    (
        &["maud::", "use maud", "plotters::", "use plotters"],
        &["pages/"],
        "HTML is written and plots are drawn only in pages/",
    ),
    (&["open::that"], &["cli/operate/open.rs"], "a browser is opened only by `tiro open`"),
    (
        &["PreEscaped"],
        &["pages/text.rs", "pages/plot.rs"],
        "HTML that is not escaped only where it is made of our own tags",
    ),
    // Gemini has the word in the names of its members.
    (&["JsonSchema"], &["tools/", "llm/dialects/gemini.rs"], "JSON schemas only in tools/"),
    (
        &["rusqlite", "SELECT ", "INSERT INTO", "DELETE FROM", "PRAGMA "],
        // The database of opencode is another program's.
        &["sqlite/", "postgres/", "clients/transcripts/database/"],
        "SQL only in sqlite/ and postgres/, and where opencode's database is read",
    ),
    (
        &["from_store(", "in_store("],
        &["store/", "sqlite/", "postgres/", "memory_engine/", "memory/mod.rs"],
        "what is behind a key only in engines",
    ),
    (
        &["env::var", "env::vars", "env::current_dir", "env::home_dir", "env::set_var"],
        &["config/"],
        "the environment is read only in config/",
    ),
    (&["gix::", "use gix"], &["git/"], "git objects only through git/"),
    (&["encoding_rs::", "chardetng::"], &["encoding/"], "bytes become text only in encoding/"),
    (
        &["reqwest::", "use reqwest"],
        &["llm/", "sync/"],
        "models are asked only through llm/, and servers only through sync/",
    ),
    (
        &["unsafe {", "unsafe fn", "unsafe impl"],
        &["embed/raw.rs", "sqlite/errno.rs", "sqlite/search/lexical/rank.rs"],
        "unsafe only in the documented files",
    ),
    (
        &["process::Command", "process::{Child", "process::{Command"],
        &["files/documents/process.rs", "embed/install/mod.rs", "cli/programs.rs", "cli/trial/"],
        "processes are started only to parse untrusted documents, to install the model, as the user's own programs, and \
         as the database that the user wants for a look",
    ),
    (
        &["println!", "print!", "io::stdout(", "io::stderr("],
        &["cli/print.rs", "cli/operate/hook.rs", "cli/operate/extract_text.rs", "server/"],
        "printing only where it is cleaned",
    ),
    (
        &["{error}", "{error:?}", "error.to_string()", "error.message()"],
        OWN_ERRORS,
        "another library's error goes to `context` or `source`",
    ),
];

/// The places where an error becomes part of a text. Each was checked: the error is Tiro's own, or the text is not
/// shown. An error of another library can quote a file, so it is kept as the cause, of which only the kind is shown.
const OWN_ERRORS: &[&str] = &[
    "caller/opening.rs",
    "cli/look/context.rs",
    "cli/print.rs",
    "clients/mod.rs",
    "config/edit.rs",
    "config/file.rs",
    "embed/install/",
    "engine/mod.rs",
    "error/",
    "exchange/run.rs",
    "git/",
    "llm/failure.rs",
    "llm/transport.rs",
    "pages/error.rs",
    "retrieve/mod.rs",
    "server/handler.rs",
    "spool/mod.rs",
    "store/values/found.rs",
    "sync/remote.rs",
    "follow/catch_up.rs",
    "tools/operate/demo/mod.rs",
    "tools/operate/doctor/mod.rs",
    "tools/operate/import_git.rs",
    "tools/operate/import_preview.rs",
    "follow/sessions/mod.rs",
    "tools/provider/providers/mod.rs",
    "summaries/queue.rs",
    "tools/context/summarize_all.rs",
];

/// The most lines of a file, without its tests.
const LONGEST_FILE: usize = 450;

/// The most lines of a function, from its signature to its last brace, without comments.
const LONGEST_FUNCTION: usize = 80;

/// The most source files of a folder.
const LARGEST_FOLDER: usize = 14;

/// A source file: its path in the house, the folder in which it is, and its lines without tests and comments.
struct Source {
    path: String,
    folder: String,
    text: String,
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        Source { path: path.to_owned(), folder, text: text.to_owned(), code: code(text) }
    }

    /// Returns the module of the map to which the file belongs. Returns `None` for the map itself.
    fn module(&self) -> Option<&str> {
        let first = self.path.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|name| !matches!(*name, "main" | "lib"))
    }
}

/// Returns `text` without comments and without the items that follow `#[cfg(test)]`.
fn code(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        if line.trim() != "#[cfg(test)]" {
            kept += line.split(" // ").next().unwrap_or_default();
            kept.push('\n');
            continue;
        }
        // The item ends where its braces are closed, or with a semicolon before any was opened.
        let mut depth = 0_i64;
        for line in lines.by_ref() {
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
            if depth <= 0 && (line.contains('}') || line.trim_end().ends_with(';')) {
                break;
            }
        }
    }
    kept
}

/// Returns the modules that `code` names by `crate::`, also in a group such as `use crate::{a, b::C}`.
fn used(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` in a macro is the same crate.
        let rest = &code[at + "crate::".len()..];
        let name = |text: &str| -> String {
            text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            None => found.push(name(rest)),
            Some(group) => {
                let (mut depth, mut starts) = (0, true);
                for (place, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => starts = true,
                        c if starts && !c.is_whitespace() => {
                            found.push(name(&group[place..]));
                            starts = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// Returns the violations of the rules, one line for each.
fn violations(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        let path = source.path.as_str();
        directions(source, &mut found);
        for (words, places, rule) in WALLS {
            let is_inside = places.iter().any(|place| path.starts_with(place));
            if let Some(word) = words.iter().find(|word| !is_inside && source.code.contains(**word)) {
                found.push(format!("{path}: `{word}`: {rule}"));
            }
        }
        let is_test =
            Path::new(path).components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
        if !is_test && !source.text.starts_with("//!") {
            found.push(format!("{path}: begins without `//!`"));
        }
        for (name, lines) in functions(&source.code) {
            if lines > LONGEST_FUNCTION {
                found.push(format!("{path}: `{name}` has {lines} lines, at most {LONGEST_FUNCTION}"));
            }
        }
        let lines = untested(&source.text);
        if lines > LONGEST_FILE {
            found.push(format!("{path}: {lines} lines, at most {LONGEST_FILE}"));
        }
        *folders.entry(source.folder.as_str()).or_default() += 1;
    }
    for (folder, files) in folders {
        if files > LARGEST_FOLDER {
            found.push(format!("{folder}/: {files} files, at most {LARGEST_FOLDER}"));
        }
    }
    found
}

/// Returns how many lines `text` has outside of its tests.
fn untested(text: &str) -> usize {
    let (mut lines, mut count) = (text.lines(), 0);
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            count += 1;
        } else if lines.next().is_some_and(|line| !line.ends_with(';')) {
            // A module of tests ends with a brace at the beginning of a line.
            lines.by_ref().find(|line| *line == "}");
        }
    }
    count
}

/// Returns the functions of `code`, formatted as rustfmt does, each with its lines.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else { continue };
        let is_signature = before.split_whitespace().all(|word| {
            matches!(word, "pub" | "async" | "const" | "unsafe" | "extern")
                || word.starts_with("pub(")
                || word == "\"C\""
        });
        if !is_signature || line.ends_with(';') {
            continue;
        }
        let margin = &line[..line.len() - line.trim_start().len()];
        let end = lines[at..].iter().position(|line| line.strip_prefix(margin) == Some("}"));
        let name: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        found.extend(end.filter(|_| !line.ends_with('}')).map(|end| (name, end + 1)));
    }
    found
}

/// Returns the modules among the files `paths` that are a file beside a folder of the same name, `x.rs` beside `x/`.
fn beside_a_folder(paths: &[String]) -> Vec<&String> {
    let is_in = |folder: &str| paths.iter().any(|path| path.starts_with(folder));
    paths.iter().filter(|path| path.strip_suffix(".rs").is_some_and(|it| is_in(&format!("{it}/")))).collect()
}

fn directions(source: &Source, found: &mut Vec<String>) {
    let Some(module) = source.module() else { return };
    let Some(own) = row(module) else {
        found.push(format!("{}: `{module}` has no row in the house", source.path));
        return;
    };
    let is_last = own + 1 == ROWS.len();
    for other in used(&source.code) {
        let excepted = EXCEPTIONS.iter().any(|(from, to, _)| (*from, *to) == (module, other.as_str()));
        match row(&other) {
            _ if other == module || excepted => {}
            Some(row) if row > own || (is_last && row == own) => {}
            Some(_) => found
                .push(format!("{}: `{module}` uses `{other}`, which stands beside or above", source.path)),
            None => found.push(format!("{}: `crate::{other}` is no module of the house", source.path)),
        }
    }
}

/// Returns the sources of the house, each under the path of its module: `crates/base/src/scope.rs` as `scope.rs`, and
/// `crates/git/src/sha.rs`, whose crate is one module, as `git/sha.rs`.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = read(&root.join("src"), |text| text);
    for (name, kind) in CRATES {
        let found = read(&root.join("crates").join(name).join("src"), |text| match kind {
            Holds::Modules => text,
            Holds::One => text.replace("crate::", &format!("crate::{}::", identifier(name))),
        });
        sources.extend(found.into_iter().map(|source| match kind {
            Holds::Modules => Source { folder: format!("crates/{name}/{}", source.folder), ..source },
            Holds::One => {
                let path = source.path.strip_prefix("lib.rs").map_or(source.path.as_str(), |_| "mod.rs");
                Source::new(&format!("{}/{path}", identifier(name)), &source.text)
            }
        }));
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Returns the sources beneath `root`. What they name of other crates is written as if it were of the same one.
fn read(root: &Path, change: impl Fn(String) -> String) -> Vec<Source> {
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            let stem = path.file_stem().unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs")
                && !matches!(stem.to_str(), Some("tests" | "testing"))
                && !format!("/{name}").contains("/tests/")
            {
                let text = change(std::fs::read_to_string(&path).unwrap());
                sources.push(Source::new(&name, &as_one_crate(text)));
            }
        }
    }
    sources
}

fn as_one_crate(text: String) -> String {
    CRATES.iter().fold(text, |text, (name, kind)| {
        let name = identifier(name);
        match kind {
            Holds::Modules => text.replace(&format!("tiro_{name}::"), "crate::"),
            Holds::One => text.replace(&format!("tiro_{name}::"), &format!("crate::{name}::")),
        }
    })
}

/// Returns the name of a crate as code writes it.
fn identifier(name: &str) -> String {
    name.replace('-', "_")
}

#[test]
fn the_house_is_tidy() {
    let sources = sources();
    assert!(sources.len() > 50, "only {} files were read", sources.len());
    let found = violations(&sources);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Where a module's file is must not need a look into two folders.
#[test]
fn a_module_with_modules_of_its_own_is_a_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates"), root.join("tests")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            match path.is_dir() {
                true => folders.push(path),
                false if name.ends_with(".rs") => paths.push(name),
                false => {}
            }
        }
    }
    assert!(paths.len() > 500, "only {} files were read", paths.len());
    assert_eq!(beside_a_folder(&paths), Vec::<&String>::new());
    let planted = ["a/x.rs", "a/x/y.rs", "a/xy/mod.rs", "a/z/mod.rs", "a/z/w.rs"].map(str::to_owned);
    assert_eq!(beside_a_folder(&planted), ["a/x.rs"]);
}

/// Windows refuses to sync a file that is open only for reading. For this reason every backup and migration failed
/// there.
#[test]
fn a_file_is_synced_by_a_handle_that_can_write() {
    for source in sources() {
        let lines: Vec<&str> = source.code.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let is_for_unix =
                lines[at.saturating_sub(2)..at].iter().any(|line| line.contains("#[cfg(unix)]"));
            let reads = line.contains("File::open(") && line.contains("sync_all()");
            assert!(!reads || is_for_unix, "{}: {line}", source.path);
        }
    }
}

#[test]
fn every_module_of_the_map_has_its_row_and_every_row_its_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let declared = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let named = |line: &str| {
            line.strip_prefix("pub ")
                .unwrap_or(line)
                .strip_prefix("mod ")?
                .strip_suffix(';')
                .map(str::to_owned)
        };
        text.lines().filter_map(named).collect::<Vec<String>>()
    };
    let mut mapped = declared("src/lib.rs");
    for (name, kind) in CRATES {
        match kind {
            Holds::One => mapped.push(identifier(name)),
            Holds::Modules => mapped.extend(declared(&format!("crates/{name}/src/lib.rs"))),
        }
    }
    mapped.sort_unstable();
    mapped.dedup();
    let mut rows = ROWS.concat();
    rows.sort_unstable();
    assert_eq!(mapped, rows);
}

#[test]
fn a_crate_depends_only_on_those_before_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let folders = std::fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<String> =
        folders.map(|name| name.into_string().unwrap()).filter(|name| name != "evals").collect();
    found.sort_unstable();
    let mut known: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    for (place, (name, _)) in CRATES.iter().enumerate() {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for later in &known[place..] {
            assert!(!dependencies.contains(&format!("\ntiro-{later}.")), "{name} depends on {later}");
        }
    }
    known.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn only_tests_depend_on_what_is_no_part_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.chain([root.to_owned()]) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for apart in APART {
            let named = format!("\n{apart}.workspace");
            assert!(!dependencies.contains(&named), "{} depends on {apart}", folder.display());
        }
        assert!(!manifest.contains("\ntiro-memory-engine.workspace"), "{}", folder.display());
    }
}

#[test]
fn a_planted_violation_is_found() {
    let planted = [
        ("store/x.rs", "//! X.\nuse crate::tools::Tool;\n", "`store` uses `tools`"),
        ("remember/x.rs", "//! X.\nfn f() { crate::retrieve::search(); }\n", "`remember` uses `retrieve`"),
        ("chunk/x.rs", "//! X.\nuse crate::{error::{Error, Kind}, store::Store};\n", "`chunk` uses `store`"),
        ("tokens/x.rs", "//! X.\nuse crate::chunk::Chunk;\n", "`tokens` uses `chunk`"),
        ("tools/x.rs", "//! X.\nuse rmcp::model::Tool;\n", "only in server/"),
        ("server/x.rs", "//! X.\nuse axum::Router;\n", "only in web/"),
        ("server/x.rs", "//! X.\nuse maud::html;\n", "only in pages/"),
        (
            "pages/x.rs",
            "//! X.\nfn f() { maud::PreEscaped(text); }\n",
            "only where it is made of our own tags",
        ),
        ("memory/mod.rs", "//! X.\n#[derive(JsonSchema)]\nstruct A;\n", "only in tools/"),
        ("tools/x.rs", "//! X.\nconst SQL: &str = \"SELECT 1\";\n", "only in sqlite/"),
        ("tools/x.rs", "//! X.\nfn f(key: MemoryKey) -> i64 { key.in_store() + 1 }\n", "only in engines"),
        ("embed/x.rs", "//! X.\nfn f() { std::env::var(\"HOME\"); }\n", "only in config/"),
        ("import/x.rs", "//! X.\nuse gix::ObjectId;\n", "only through git/"),
        ("tools/x.rs", "//! X.\nuse reqwest::Url;\n", "only through llm/"),
        ("store/x.rs", "//! X.\nfn f() { unsafe { g() } }\n", "only in the documented files"),
        ("store/x.rs", "//! X.\nfn f() -> String { format!(\"no row: {error}\") }\n", "goes to `context`"),
        ("files/x.rs", "//! X.\nuse std::process::Command;\n", "only to parse untrusted documents"),
        ("tools/x.rs", "//! X.\nfn f() { println!(\"x\"); }\n", "only where it is cleaned"),
        ("store/x.rs", "use crate::error::Error;\n", "begins without `//!`"),
        ("attic/x.rs", "//! X.\n", "has no row"),
        ("store/x.rs", "//! X.\nuse crate::attic::Box;\n", "no module of the house"),
        (
            "store/x.rs",
            "//! X.\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nuse crate::server::run;\n",
            "`server`",
        ),
    ];
    for (path, text, rule) in planted {
        let found = violations(&[Source::new(path, text)]);
        assert!(found.len() == 1 && found[0].contains(rule), "{path} {text:?}: {found:?}");
    }
    let long = "//! X.\n".repeat(LONGEST_FILE + 1);
    assert_eq!(violations(&[Source::new("store/x.rs", &long)]).len(), 1);
    let long =
        format!("//! X.\nfn f() {{\n    async fn long() {{\n{}    }}\n}}\n", "        g();\n".repeat(78));
    assert_eq!(violations(&[Source::new("store/x.rs", &long)]), ["store/x.rs: `f` has 82 lines, at most 80"]);
    let many: Vec<Source> =
        (0..=LARGEST_FOLDER).map(|n| Source::new(&format!("redact/f{n}.rs"), "//! X.\n")).collect();
    assert_eq!(violations(&many), ["redact/: 15 files, at most 14"]);
}

#[test]
fn what_is_allowed_is_not_found() {
    let allowed = [
        ("tools/x.rs", "//! X.\nuse crate::remember::remember;\nuse crate::retrieve;\n"),
        ("store/x.rs", "//! See `crate::tools`.\nuse crate::error::Error;\n"),
        ("memory/mod.rs", "//! X.\nuse crate::scope::SessionId;\n"),
        (
            "embed/x.rs",
            "//! X.\n#[cfg(test)]\nmod tests {\n    use crate::tools::Tool;\n    fn f() { env::var(\"A\"); }\n}\n",
        ),
        ("embed/x.rs", "//! X.\n#[cfg(test)]\nmod tests;\nconst V: &str = env!(\"CARGO_PKG_VERSION\");\n"),
    ];
    for (path, text) in allowed {
        assert_eq!(violations(&[Source::new(path, text)]), Vec::<String>::new());
    }
}
