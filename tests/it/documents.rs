//! The documents agree with the program and with one another: the targets of links and the named commands exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::harness::Home;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("`{path}`: {error}"))
}

/// Returns the documents at the root, in `docs/` and in `docs/decisions/`.
fn documents() -> Vec<PathBuf> {
    let folders = [root().to_owned(), root().join("docs"), root().join("docs/decisions")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut documents: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    documents
}

/// Returns the lines of `text` outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of the links in `text`, except links to other sites.
fn targets(text: &str) -> Vec<&str> {
    let links = prose(text).flat_map(|line| line.split("](").skip(1));
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://")).collect()
}

/// Returns the anchors of the headings of `text`, as forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Returns the links of `text`, which is at `path`, that lead nowhere.
fn broken(path: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for target in targets(text) {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = path.parent().unwrap().join(file);
        let has_anchor = |text: &str| anchors(text).contains(anchor);
        let is_found = match (target.starts_with('#'), anchor) {
            (true, _) => has_anchor(text),
            (false, "") => file.exists(),
            (false, _) => std::fs::read_to_string(&file).is_ok_and(|text| has_anchor(&text)),
        };
        if !is_found {
            broken.push(format!("{}: `{target}`", path.display()));
        }
    }
    broken
}

#[test]
fn every_link_leads_to_a_file_or_a_heading() {
    let documents = documents();
    assert!(documents.len() > 10, "{documents:?}");
    let found: Vec<String> =
        documents.iter().flat_map(|path| broken(path, &std::fs::read_to_string(path).unwrap())).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let text = "# Top one\n[a](LICENSE-MIT) [b](#top-one) [c](https://example.org/x) [d](missing.md)\n\
                [e](README.md#nowhere)\n```text\n[f](also-missing.md)\n```\n";
    let found = broken(&root().join("PLANTED.md"), text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("`missing.md`") && found[1].ends_with("`README.md#nowhere`"), "{found:?}");
}

/// Returns the paths of files that `text` names in backticks.
fn named_files(text: &str) -> Vec<&str> {
    let spans = prose(text).flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_path = |span: &&str| {
        let is_file = [".rs", ".sql", ".md", ".sh", ".py"].iter().any(|extension| span.ends_with(extension));
        is_file && span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    };
    spans.filter(is_path).collect()
}

/// Returns the file that a document names from the repository's root, or by the path of its module: `git/sha.rs` is in the
/// crate `git`, and `scope.rs` in one of the crates that have several modules.
fn file_named(name: &str) -> Option<PathBuf> {
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let beneath = |folder: &str| root().join("crates").join(folder).join("src");
    let of_crate = beneath(first).join(if rest == "mod.rs" { "lib.rs" } else { rest });
    let of_several = ["base", "text", "digest", "capture", "recall", "host"].map(beneath);
    let places = [root().to_owned(), root().join("src")].into_iter().chain(of_several);
    let mut found = places.map(|place| place.join(name)).chain([of_crate]);
    found.find(|path| path.is_file())
}

/// Returns the pages for people who change Tiro, each with its path. They name files and items of the sources.
fn pages_for_contributors() -> Vec<(String, String)> {
    let path_of = |path: &Path| path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
    let mut paths: Vec<String> = documents().iter().map(|path| path_of(path)).collect();
    let pages = ["ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md", "docs/storage.md", "docs/glossary.md"];
    paths.retain(|path| path.starts_with("docs/decisions/") || pages.contains(&path.as_str()));
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Files move, so this checks that every file that a document names still exists.
#[test]
fn every_file_that_a_page_for_contributors_names_exists() {
    let pages = pages_for_contributors();
    let named: Vec<(&str, &str)> = pages
        .iter()
        .flat_map(|(path, text)| named_files(text).into_iter().map(move |name| (path.as_str(), name)))
        .collect();
    for page in ["ARCHITECTURE.md", "docs/storage.md", "docs/glossary.md", "docs/decisions/0002"] {
        assert!(named.iter().any(|(path, _)| path.starts_with(page)), "`{page}` names no file");
    }
    assert!(named.len() > 250, "{named:?}");
    let missing: Vec<&(&str, &str)> = named.iter().filter(|(_, name)| file_named(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(named_files("See `a/b.rs` and `Store::open`, not c.rs.\n"), ["a/b.rs"]);
}

/// Returns the files of `text` that are followed by the name of an item in brackets, each with that name.
fn named_items(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    let pairs = parts.windows(3).filter(|pair| pair[0].ends_with(".rs"));
    let pairs = pairs.filter(|pair| pair[1].split_whitespace().eq(["("]));
    pairs.map(|pair| (pair[0], pair[2].rsplit("::").next().unwrap_or_default())).collect()
}

/// Functions move too, so this checks that every named item is still in the file that the document names.
#[test]
fn every_item_that_a_page_for_contributors_names_stands_in_the_file_beside_it() {
    let pages = pages_for_contributors();
    let named: Vec<(&str, &str)> = pages.iter().flat_map(|(_, text)| named_items(text)).collect();
    assert!(named.len() > 40, "{named:?}");
    let stands_there = |(file, name): &&(&str, &str)| {
        let code = file_named(file).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        ["fn", "struct", "enum", "const", "trait"].iter().any(|word| code.contains(&format!("{word} {name}")))
    };
    let missing: Vec<&(&str, &str)> = named.iter().filter(|item| !stands_there(item)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(named_items("See `a/b.rs`\n(`Store::open`, fast) and `c.rs`."), [("a/b.rs", "open")]);
}

/// Returns the rows of the numbers that `text`, the file of a module of tuning, defines: name, value, what it is.
fn tuned(place: &str, text: &str) -> Vec<String> {
    let (mut rows, mut docs) = (Vec::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(doc) = line.strip_prefix("///") {
            docs += doc;
        } else if let Some(constant) = line.strip_prefix("pub const ") {
            let mut constant = constant.to_owned();
            while !constant.ends_with(';') {
                constant += lines.next().unwrap().trim();
            }
            let (name, value) = constant.trim_end_matches(';').split_once(" = ").unwrap();
            let name = name.split(':').next().unwrap();
            let what =
                docs.trim().split_once(". ").map_or(docs.trim(), |(first, _)| first).trim_end_matches('.');
            let what = what.replace('|', "\\|").replace("[`", "`").replace("`]", "`");
            rows.push(format!("| `{name}` | `{value}` | {what} | {place} |\n"));
            docs.clear();
        } else {
            docs.clear();
        }
    }
    rows
}

/// Numbers that were tuned are in the crates that read them; the page is where all can be seen.
#[test]
fn the_page_of_tuned_numbers_lists_all() {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_of_tuning =
                path.components().any(|part| part.as_os_str() == "tuning") || path.ends_with("tuning.rs");
            match path.is_dir() {
                true if !path.ends_with("crates/evals") => folders.push(path),
                false if is_of_tuning && path.extension().is_some_and(|end| end == "rs") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    let rows: Vec<String> = files
        .iter()
        .flat_map(|path| {
            let place = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            tuned(&place, &std::fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(rows.len() > 100, "only {} numbers were found", rows.len());
    let made = format!("| number | value | what | in |\n|---|---|---|---|\n{}", rows.concat());
    let page = read("docs/tuning.md");
    let kept = page.find("| number |").map_or("", |start| &page[start..]);
    assert!(kept == made, "put this table at the end of docs/tuning.md:\n{made}");
}

#[test]
fn the_readme_links_every_page_and_the_index_every_decision() {
    let (readme, index) = (read("README.md"), read("docs/decisions/README.md"));
    let (linked, listed) = (targets(&readme), targets(&index));
    for path in documents() {
        let page = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let is_linked = match page.strip_prefix("docs/decisions/") {
            Some(decision) if decision != "README.md" => listed.contains(&decision),
            _ => page == "README.md" || linked.contains(&page.as_str()),
        };
        assert!(is_linked, "`{page}` is not linked");
    }
}

/// The map grew to 12,400 words, which nobody read in one sitting.
#[test]
fn pages_for_contributors_stay_short() {
    for (path, text) in pages_for_contributors() {
        let bounds = match path.as_str() {
            "ARCHITECTURE.md" => 0..=4000,
            "AGENTS.md" => 0..=500,
            _ if path.starts_with("docs/decisions/0") => 150..=400,
            _ => continue,
        };
        let words = text.split_whitespace().count();
        assert!(bounds.contains(&words), "`{path}` has {words} words");
    }
}

#[test]
fn every_decision_says_why_and_what_was_measured() {
    for (path, text) in pages_for_contributors() {
        if path.starts_with("docs/decisions/0") {
            for part in ["**Decision.**", "**Why", "**Measured.**", "**What would change it.**"] {
                assert!(text.contains(part), "`{path}` lacks `{part}`");
            }
        }
    }
}

/// A visitor decides by the first screen whether to read on.
#[test]
fn the_first_screen_of_the_readme_shows_an_answer_and_how_to_begin() {
    let readme = read("README.md");
    let screen: Vec<&str> = readme.lines().take(45).collect();
    for line in ["$ tiro search ", "cargo install ", "tiro model install", "tiro init"] {
        assert!(screen.iter().any(|shown| shown.starts_with(line)), "`{line}` is not on the first screen");
    }
    assert!(readme.lines().any(|line| line == "cargo run --release -- demo"));
}

#[test]
fn every_command_has_its_row() {
    let home = Home::new();
    let help = home.run(&home.dir("project"), &["--help"]).stdout;
    let (_, commands) = help.split_once("\nCommands:\n").unwrap();
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    let commands: Vec<&str> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() > 20, "{commands:?}");
    let page = read("docs/command-line.md");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let row = page.lines().find(|line| {
            let cell = line.strip_prefix("| ").and_then(|row| row.split_once(" | "));
            cell.is_some_and(|(cell, _)| cell.split(['`', ' ']).any(|word| word == command))
        });
        assert!(row.is_some(), "`tiro {command}` has no row in docs/command-line.md");
    }
}
