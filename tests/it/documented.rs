//! README and `docs/` tell the truth: each command in them runs as it is written, and each option, variable, tool and
//! argument that they name exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tiro::testing::{Kind, Provenance};

use crate::harness::{Home, Ran};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// Lines of commands that are not run, by their beginning, each with the reason. What they say of Tiro itself is in other
/// lines too.
const NOT_RUN: &[(&str, &str)] = &[
    ("git clone <this repository>", "needs the network"),
    ("cargo install --path .", "builds the program once more"),
    ("cargo run --release -- demo", "builds the program once more; `.ci/run` runs it in a fresh clone"),
    ("cargo test", "is what runs this test"),
    ("tiro model install", "downloads 90 MB; `.ci/run` runs it"),
    ("tiro connect https://memory.example.org", "needs a server; `syncs.rs` runs it with one"),
    ("tiro sync", "needs a server; `syncs.rs` runs it with one"),
];

/// What stands in commands for something of the reader's, and what the test puts in its place.
const STAND_INS: &[(&str, &str)] = &[("tiro init", "tiro init --yes"), ("4330358a64", "$HEAD")];

/// Options in the documents that are not Tiro's, each with the program that has it.
const OTHER_OPTIONS: &[(&str, &str)] = &[
    ("--release", "cargo"),
    ("--rm", "docker"),
    ("--separate-git-dir", "git"),
    ("--shared", "git"),
    ("--transport", "claude"),
];

/// Variables in the documents that Tiro doesn't read itself.
const OTHER_VARIABLES: &[(&str, &str)] =
    &[("XDG_CONFIG_HOME", "a library finds the folder"), ("XDG_DATA_HOME", "a library finds the folder")];

/// Names in the documents that are neither tools nor arguments nor options, each with what has it.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("chat_with_<assistant>", "stands for the tool of each assistant"),
    ("chat_with_o3", "the tool of an assistant that the reader added"),
    ("search_session_attachments", "a function of consulted assistants"),
    ("from_segment", "a field of the stash's export"),
    ("tokens_freed", "a field of answers of the stash"),
    ("id_rsa", "a file of SSH"),
    ("node_modules", "a folder of npm"),
    ("conversation_id", "a member of the lines that `tiro import` reads"),
];

/// Pages for people who change Tiro. The names in them are of tables and of the sources; `documents.rs` checks these pages.
const FOR_CONTRIBUTORS: &[&str] = &["docs/glossary.md", "docs/storage.md"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns README and the files of `docs/`, each with its path.
fn documents() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.push(root().join("README.md"));
    paths.sort();
    let read = |path: PathBuf| {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        (shown, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// Returns the commands of each block of `text` that is marked as commands of a shell.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        let block: Vec<String> = lines
            .by_ref()
            .map(str::trim)
            .take_while(|line| !line.starts_with("```"))
            .map(str::to_owned)
            .collect();
        if matches!(language.trim(), "sh" | "shell" | "bash" | "console") {
            let commands = block.into_iter().filter(|line| !line.is_empty() && !line.starts_with('#'));
            found.push(commands.map(|line| line.trim_start_matches("$ ").to_owned()).collect());
        }
    }
    found
}

/// Returns the texts between backticks in a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the lines of a document outside of blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    })
}

/// A home with what a reader of the documents has: a repository with a history and sessions, a key, and a model to ask.
struct Reader {
    home: Home,
    mock: Mock,
    head: String,
}

impl Reader {
    fn new() -> Reader {
        let home = Home::new();
        let project = home.repo("home/your/project");
        project.commit(
            "src/cache.rs",
            "fn flush() {}\n",
            "cache: flush twice, because the lease may be lost",
        );
        let head = project.commit("src/retry.rs", "fn retry() {}\n", "retry with a pause");
        home.serve(&project.path).save("NAME", "1", "The lease is 30 seconds.");
        let mock = Mock::start();
        mock.behaves(&Manner::Says("The error handling is fine.".into()));
        let tools = home.dir("tools");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tiro"), tools.join("tiro")).unwrap();
        // The pager of manuals may be missing.
        std::fs::write(tools.join("man"), "#!/bin/sh\ncat > /dev/null\n").unwrap();
        std::fs::set_permissions(tools.join("man"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        for folder in [".local/share/bash-completion/completions", ".claude", ".codex", ".gemini"] {
            home.dir(&format!("home/{folder}"));
        }
        Reader { home, mock, head }
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("home/your/project")
    }

    /// Runs a line in `directory`, and returns the directory in which it ends.
    fn run(&self, directory: &Path, line: &str) -> (Ran, PathBuf) {
        let line = STAND_INS.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
        let line = line.replace("$HEAD", &self.head[..10]);
        let ends = self.home.path().join("ends");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-ec", &format!("{line}\npwd > \"$ENDS\"")])
            .current_dir(directory)
            .env_clear()
            .env("PATH", format!("{}:{path}", self.home.path().join("tools").display()))
            .env("HOME", self.home.path().join("home"))
            .env("TIRO_DATA_DIR", self.home.data())
            .env("TIRO_MODEL_DIR", self.home.path().join("models"))
            .env("OPENAI_API_KEY", "sk-none-000")
            .env("ENDS", &ends);
        let ran = Ran::of(&mut command);
        self.divert();
        if line.contains("--use embed") {
            self.mock.behaves(&Manner::Embeds(8));
        }
        let end = std::fs::read_to_string(&ends).unwrap_or_default();
        (ran, PathBuf::from(end.trim()))
    }

    /// Lets the mock stand for all providers that are configured.
    fn divert(&self) {
        let config = self.home.path().join("home/.config/tiro/config.toml");
        let Ok(text) = std::fs::read_to_string(&config) else { return };
        let endpoint = self.mock.endpoint();
        let mut sections = text.split("[providers.");
        let mut diverted = sections.next().unwrap_or_default().to_owned();
        for section in sections {
            let (name, lines) = section.split_once('\n').unwrap_or((section, ""));
            diverted +=
                &format!("[providers.{name}\nservice = \"openai-compatible\"\nendpoint = \"{endpoint}\"\n");
            if !lines.lines().any(|line| line.starts_with("model =")) {
                diverted += "model = \"m\"\n";
            }
            let is_own = |line: &&str| !line.starts_with("service =") && !line.starts_with("endpoint =");
            lines.lines().filter(is_own).for_each(|line| diverted += &format!("{line}\n"));
        }
        std::fs::write(config, diverted).unwrap();
    }
}

#[test]
fn every_command_in_a_block_runs_as_it_is_written() {
    let mut not_run: BTreeSet<&str> = NOT_RUN.iter().map(|(line, _)| *line).collect();
    let mut stand_ins: BTreeSet<&str> = STAND_INS.iter().map(|(from, _)| *from).collect();
    for (path, text) in documents() {
        let reader = Reader::new();
        for block in blocks(&text) {
            let has_way = block.iter().any(|line| line.starts_with("cd "));
            let mut directory = if has_way { reader.home.path().join("home") } else { reader.project() };
            for line in block {
                if let Some((skipped, _)) = NOT_RUN.iter().find(|(begin, _)| line.starts_with(begin)) {
                    not_run.remove(skipped);
                    continue;
                }
                stand_ins.retain(|from| !line.contains(from));
                let (ran, end) = reader.run(&directory, &line);
                let lacks_model =
                    ran.stderr.contains("run `tiro model install`") && line.starts_with("tiro index");
                assert!(ran.is_ok || lacks_model, "{path}: `{line}`: {ran:?}");
                directory = end;
            }
        }
    }
    assert!(not_run.is_empty(), "no document has these lines any more: {not_run:?}");
    assert!(stand_ins.is_empty(), "no document has these words any more: {stand_ins:?}");
}

/// Returns the arguments of a command such as `tiro chat [MESSAGE]`. Only some shells have completions.
fn words(command: &str) -> Vec<&str> {
    let plain = |word| if word == "SHELL" { "bash" } else { word };
    command.split_whitespace().skip(1).map(|word| plain(word.trim_matches(['[', ']']))).collect()
}

/// Returns the commands of a row of the table: its first cell may leave out what the commands have in common.
fn commands_of_row(cell: &str) -> Vec<Vec<&str>> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    for span in spans(cell) {
        let last = found.last().cloned();
        found.push(match (span.strip_prefix("tiro "), last) {
            (Some(_), _) | (None, None) => words(span),
            (None, Some(mut before)) => {
                let is_option = |word: &&str| word.starts_with("--") || word.chars().all(char::is_uppercase);
                before.truncate(before.iter().position(is_option).unwrap_or(before.len()));
                if !span.starts_with("--") {
                    before.pop();
                }
                before.push(span);
                before
            }
        });
    }
    found
}

#[test]
fn every_command_in_a_sentence_is_one_of_tiros() {
    let home = Home::new();
    let help = |words: &[&str]| home.run(&home.path(), &[words, &["--help"]].concat());
    for (path, text) in documents() {
        for line in prose(&text) {
            for span in spans(line).filter(|span| span.starts_with("tiro ")) {
                let ran = help(&words(span));
                assert!(ran.is_ok, "{path}: `{span}`: {}", ran.stderr);
            }
        }
    }
    let table = std::fs::read_to_string(root().join("docs/command-line.md")).unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `tiro")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let mut said = String::new();
        for command in commands_of_row(cells[0]) {
            let ran = help(&command);
            assert!(ran.is_ok, "docs/command-line.md: {command:?}: {}", ran.stderr);
            said += &ran.stdout;
        }
        for option in cells[1..].iter().flat_map(|cell| spans(cell)).filter(|span| span.starts_with("--")) {
            let name = option.split_whitespace().next().unwrap();
            assert!(said.contains(name), "docs/command-line.md: no command of this row has `{name}`: {row}");
        }
    }
}

/// Returns the words of `text` that begin with `--`.
fn options(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let after = text.match_indices("--").filter(|(at, _)| {
        let before = text[..*at].chars().next_back().unwrap_or(' ');
        !is_part(before) && !before.is_ascii_uppercase() && !matches!(before, '<' | '|' | '/')
    });
    let named = after.map(|(at, _)| text[at..].split(|c| !is_part(c)).next().unwrap_or_default());
    let is_option = |name: &&str| name[2..].starts_with(|c: char| c.is_ascii_lowercase());
    named.filter(is_option).map(|name| name.trim_end_matches('-').to_owned()).collect()
}

#[test]
fn every_option_exists() {
    let home = Home::new();
    let pages = home.dir("pages");
    assert!(home.run(&home.path(), &["man", "--to", pages.to_str().unwrap()]).is_ok);
    let manual: String = std::fs::read_dir(&pages)
        .unwrap()
        .map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap().replace("\\-", "-"))
        .collect();
    let ours = options(&manual.replace("\\fB", " ").replace("\\fR", " "));
    let of_evals: String = sources(&root().join("crates/evals/src"));
    let mut others: BTreeSet<&str> = OTHER_OPTIONS.iter().map(|(name, _)| *name).collect();
    for (path, text) in documents() {
        for option in options(&text) {
            let field = option[2..].replace('-', "_");
            let is_of_evals = path == "docs/measurements.md" && of_evals.contains(&field);
            let is_other = OTHER_OPTIONS.iter().any(|(name, _)| *name == option);
            others.remove(option.as_str());
            assert!(ours.contains(&option) || is_of_evals || is_other, "{path}: no command has `{option}`");
        }
    }
    assert!(others.is_empty(), "no document names these options any more: {others:?}");
}

/// Returns the source files in a folder, one after the other.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => text += &sources(&entry.path()),
            false => text += &std::fs::read_to_string(entry.path()).unwrap_or_default(),
        }
    }
    text
}

/// Returns the names of the options of the configuration file.
fn settings() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let table = text.split("<!-- options: begin -->").nth(1).unwrap();
    table.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned())).collect()
}

#[test]
fn every_variable_is_read() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let crates = crates.filter(|path| !path.ends_with("evals")).map(|path| path.join("src"));
    let sources: String = crates.chain([root().join("src")]).map(|folder| sources(&folder)).collect();
    let mut others: BTreeSet<&str> = OTHER_VARIABLES.iter().map(|(name, _)| *name).collect();
    let settings: BTreeSet<String> =
        settings().iter().map(|name| name.replace('.', "_").to_uppercase()).collect();
    // A model of each of these services can be named by a variable.
    let services = ["ollama", "openai", "anthropic", "gemini"].map(str::to_owned);
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    for (path, text) in documents() {
        let names = text.split(|c| !is_part(c)).filter(|name| name.contains('_') && !name.starts_with('_'));
        for name in names.filter(|name| !name.ends_with('_')) {
            let option = ["TIRO_", "PERSISTENCE_"].iter().find_map(|begin| name.strip_prefix(begin));
            let is_of_provider = |option: &str| {
                let service = option.strip_suffix("_MODEL").or(option.strip_suffix("_ENDPOINT"));
                service.is_some_and(|service| services.contains(&service.to_lowercase()))
            };
            let is_option = option.is_some_and(|option| settings.contains(option) || is_of_provider(option));
            let is_other = OTHER_VARIABLES.iter().any(|(other, _)| *other == name);
            others.remove(name);
            assert!(is_option || is_other || sources.contains(name), "{path}: nothing reads `{name}`");
        }
    }
    assert!(others.is_empty(), "no document has these variables any more: {others:?}");
}

/// Adds the names of all members of the objects in a schema.
fn members(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            if let Some(Value::Array(values)) = fields.get("enum") {
                names.extend(values.iter().filter_map(|value| value.as_str().map(str::to_owned)));
            }
            fields.values().for_each(|field| members(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, names)),
        _ => {}
    }
}

#[test]
fn every_tool_and_argument_exists() {
    let home = Home::new();
    let project = home.repo("project");
    write(
        &home,
        "[providers.o3]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n",
    );
    let tools = home.serve(&project.path).request("tools/list", json!({}));
    let mut known: BTreeSet<String> =
        settings().iter().flat_map(|name| name.split('.')).map(str::to_owned).collect();
    known.extend(["max_output", "key_variable", "key_file"].map(str::to_owned));
    known.extend(Kind::ALL.iter().map(ToString::to_string));
    known.extend(Provenance::ALL.iter().map(ToString::to_string));
    for tool in tools["result"]["tools"].as_array().unwrap() {
        known.insert(tool["name"].as_str().unwrap().to_owned());
        members(&tool["inputSchema"], &mut known);
    }
    let mut others: BTreeSet<&str> = OTHER_NAMES.iter().map(|(name, _)| *name).collect();
    let is_name = |span: &&str| {
        span.contains('_')
            && span.starts_with(|c: char| c.is_ascii_lowercase())
            && span
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '<' | '>'))
    };
    for (path, text) in documents() {
        if FOR_CONTRIBUTORS.contains(&path.as_str()) {
            continue;
        }
        for span in prose(&text).flat_map(spans).filter(is_name) {
            others.remove(span);
            let is_other = OTHER_NAMES.iter().any(|(name, _)| *name == span);
            assert!(known.contains(span) || is_other, "{path}: there is no tool or argument `{span}`");
        }
    }
    assert!(others.is_empty(), "no document has these names any more: {others:?}");
}
