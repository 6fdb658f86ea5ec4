//! Finds files that import each other in a circle, directly or through others.
//!
//! A file imports another if it names an item that the other defines. A `mod` line is no import, and neither is a
//! re-export: a file that names `crate::store::Store` imports the file that defines `Store`, wherever it is
//! re-exported. Two things are not seen: calls of methods, since they name no file, and what a file uses of the module
//! file above it (`ask/meter.rs` of `ask/mod.rs`), which has the types that the files of its folder share.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// A module of the crate: its file, what it re-exports under which names, and the modules within it.
struct Module {
    file: usize,
    reexports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// The modules by their paths from the crate's root.
struct Modules<'a> {
    by_path: BTreeMap<Vec<String>, Module>,
    sources: &'a [Source],
}

/// Returns the circles among `sources`, each as its files in order of their names, joined by `, `.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let modules = Modules::of(sources);
    let edges: Vec<BTreeSet<usize>> = (0..sources.len()).map(|file| modules.imports(file)).collect();
    components(&edges)
        .into_iter()
        .filter(|files| files.len() > 1)
        .map(|files| {
            let mut names: Vec<&str> = files.iter().map(|file| sources[*file].path.as_str()).collect();
            names.sort_unstable();
            names.join(", ")
        })
        .collect()
}

impl<'a> Modules<'a> {
    fn of(sources: &'a [Source]) -> Modules<'a> {
        let mut by_path = BTreeMap::new();
        for (file, source) in sources.iter().enumerate() {
            let path = module_path(&source.path);
            let mut module = Module { file, reexports: BTreeMap::new(), globs: Vec::new() };
            for (is_public, name, target) in uses(&source.code) {
                if !is_public {
                    continue;
                }
                match name.as_str() {
                    "*" => module.globs.push(target),
                    _ => {
                        module.reexports.insert(name, target);
                    }
                }
            }
            by_path.insert(path, module);
        }
        Modules { by_path, sources }
    }

    /// Returns the files that define what the file names.
    fn imports(&self, file: usize) -> BTreeSet<usize> {
        let here = module_path(&self.sources[file].path);
        let code = &self.sources[file].code;
        let named = uses(code).into_iter().filter(|(is_public, ..)| !is_public).map(|(.., path)| path);
        let children: Vec<&String> = self
            .by_path
            .keys()
            .filter(|path| path.len() == here.len() + 1 && path.starts_with(&here))
            .filter_map(|path| path.last())
            .collect();
        let inline = paths(code).into_iter().filter(|path| {
            matches!(path[0].as_str(), "crate" | "super" | "self") || children.contains(&&path[0])
        });
        let found = named.chain(inline).filter_map(|path| self.file_of(&here, &path, 0));
        let is_above = |other: usize| here.starts_with(&module_path(&self.sources[other].path));
        found.filter(|other| !is_above(*other)).collect()
    }

    /// Returns the file that defines what `path` names in the module `here`. Returns `None` if another crate defines
    /// it.
    fn file_of(&self, here: &[String], path: &[String], depth: usize) -> Option<usize> {
        let mut at: Vec<String> = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => here.to_vec(),
            "super" => here[..here.len().checked_sub(1)?].to_vec(),
            child => {
                let inner = [here, &[child.to_owned()]].concat();
                if !self.by_path.contains_key(&inner) {
                    return None;
                }
                inner
            }
        };
        let mut rest = &path[1..];
        while let Some((first, after)) = rest.split_first() {
            let inner = match first.as_str() {
                "super" => at[..at.len().checked_sub(1)?].to_vec(),
                name => [at.as_slice(), &[name.to_owned()]].concat(),
            };
            if !self.by_path.contains_key(&inner) {
                break;
            }
            (at, rest) = (inner, after);
        }
        let module = self.by_path.get(&at)?;
        let Some(name) = rest.first().filter(|_| depth < 8) else { return Some(module.file) };
        if let Some(target) = module.reexports.get(name) {
            return self.file_of(&at, target, depth + 1).or(Some(module.file));
        }
        let defines = |file: usize| defines(&self.sources[file].code, name);
        let through = module.globs.iter().filter_map(|glob| self.file_of(&at, glob, depth + 1));
        through.into_iter().find(|file| defines(*file)).or(Some(module.file))
    }
}

fn defines(code: &str, name: &str) -> bool {
    ["fn ", "struct ", "enum ", "const ", "static ", "trait ", "type ", "macro_rules! "]
        .iter()
        .any(|word| code.contains(&format!("{word}{name}")))
}

/// Returns the path, from the crate's root, of the module whose file is `path` beneath `src/`.
fn module_path(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// Returns what the `use` items in `code` name, each as whether it is re-exported, its name here, and its path.
fn uses(code: &str) -> Vec<(bool, String, Vec<String>)> {
    let mut found = Vec::new();
    let mut statement: Option<(bool, String)> = None;
    for line in code.lines() {
        let trimmed = line.trim_start();
        if statement.is_none() {
            let (is_public, rest) = match trimmed.strip_prefix("pub") {
                Some(rest) => (true, rest.trim_start_matches(|c| c != ' ').trim_start()),
                None => (false, trimmed),
            };
            if let Some(rest) = rest.strip_prefix("use ") {
                statement = Some((is_public, rest.to_owned()));
            }
        } else if let Some((_, text)) = &mut statement {
            text.push_str(trimmed);
        }
        if let Some((is_public, text)) = statement.take_if(|(_, text)| text.contains(';')) {
            let tree = text.split(';').next().unwrap_or_default().to_owned();
            leaves(&[], &tree, &mut |name, path| found.push((is_public, name, path)));
        }
    }
    found
}

/// Calls `each` for every name at the end of a branch in the tree of a `use`.
fn leaves(prefix: &[String], tree: &str, each: &mut impl FnMut(String, Vec<String>)) {
    let tree = tree.trim();
    if let Some((before, group)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(before.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0_i32, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !group[start..at].trim().is_empty() {
                        leaves(&prefix, &group[start..at], each);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut all = prefix.to_vec();
    all.extend(path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
    if all.last().is_some_and(|last| last == "self") {
        all.pop();
    }
    let glob = all.last().is_some_and(|last| last == "*");
    let name = alias.or_else(|| all.last().cloned()).unwrap_or_default();
    if glob {
        all.pop();
    }
    each(name, all);
}

/// Returns the paths of two or more names in `code`, outside of `use`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for line in code.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("use ") || (trimmed.starts_with("pub") && trimmed.contains(" use ")) {
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = line;
        while let Some(at) = rest.find(is_name) {
            let from = &rest[at..];
            let mut end = 0;
            let mut parts = Vec::new();
            loop {
                let length = from[end..].find(|c| !is_name(c)).unwrap_or(from.len() - end);
                parts.push(from[end..end + length].to_owned());
                end += length;
                match from[end..].strip_prefix("::") {
                    Some(after) if after.starts_with(is_name) => end += 2,
                    _ => break,
                }
            }
            if parts.len() > 1 && !rest[..at].ends_with("::") {
                found.push(parts);
            }
            rest = &from[end..];
        }
    }
    found
}

/// Returns the strongly connected components of a graph (Tarjan 1972), each as a list of its nodes.
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    struct Search<'a> {
        edges: &'a [BTreeSet<usize>],
        numbers: Vec<Option<usize>>,
        lowest: Vec<usize>,
        stack: Vec<usize>,
        found: Vec<Vec<usize>>,
        next: usize,
    }
    fn visit(search: &mut Search<'_>, node: usize) {
        let number = search.next;
        search.next += 1;
        (search.numbers[node], search.lowest[node]) = (Some(number), number);
        search.stack.push(node);
        for &other in &search.edges[node] {
            if search.numbers[other].is_none() {
                visit(search, other);
                search.lowest[node] = search.lowest[node].min(search.lowest[other]);
            } else if search.stack.contains(&other) {
                search.lowest[node] = search.lowest[node].min(search.numbers[other].unwrap_or(number));
            }
        }
        if search.lowest[node] == number {
            let at = search.stack.iter().position(|each| *each == node).unwrap_or_default();
            let component = search.stack.split_off(at);
            search.found.push(component);
        }
    }
    let mut search = Search {
        edges,
        numbers: vec![None; edges.len()],
        lowest: vec![0; edges.len()],
        stack: Vec::new(),
        found: Vec::new(),
        next: 0,
    };
    for node in 0..edges.len() {
        if search.numbers[node].is_none() {
            visit(&mut search, node);
        }
    }
    search.found
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let found = circles(&super::sources());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_planted_circle_is_found() {
    let file = |path: &str, text: &str| Source::new(path, &format!("//! X.\n{text}"));
    let planted = [
        // Directly.
        (
            "store/a.rs, store/b.rs",
            vec![
                file("store/mod.rs", "mod a;\nmod b;\n"),
                file("store/a.rs", "use crate::store::b::f;\n"),
                file("store/b.rs", "use super::a::{g, h};\nfn f() {}\n"),
            ],
        ),
        // Through a third.
        (
            "ask.rs, engine.rs, git.rs",
            vec![
                file("ask.rs", "fn f() { crate::engine::g(); }\n"),
                file("engine.rs", "use crate::{\n    budget,\n    git::{self, c},\n};\n"),
                file("git.rs", "use crate::ask::f as ask;\n"),
            ],
        ),
        // Through a re-export.
        (
            "store/a.rs, store/b.rs",
            vec![
                file("store/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use self::b::B;\n"),
                file("store/a.rs", "use super::B;\npub struct A;\n"),
                file("store/b.rs", "use crate::store::A;\npub struct B;\n"),
            ],
        ),
        // Through a module file that calls one of them.
        (
            "ask/meter.rs, ask/mod.rs, llm.rs",
            vec![
                file("ask/mod.rs", "mod meter;\npub fn f() { meter::g(); }\n"),
                file("ask/meter.rs", "use crate::llm::h;\npub fn g() {}\n"),
                file("llm.rs", "use crate::ask::f;\npub fn h() {}\n"),
            ],
        ),
    ];
    for (files, sources) in planted {
        assert_eq!(circles(&sources), [files]);
    }
}

#[test]
fn one_way_is_no_circle() {
    let file = |path: &str, text: &str| Source::new(path, &format!("//! X.\n{text}"));
    let sources = [
        file("store/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;\npub struct Store;\n"),
        file("store/a.rs", "use super::{B, Store};\npub struct A;\nimpl Store { fn f(&self) {} }\n"),
        file("store/b.rs", "//! See [`A`](super::A).\nuse super::Store;\npub struct B;\n"),
        file("tools/c.rs", "use crate::store::{A, B, Store};\n"),
        file("ask/mod.rs", "mod meter;\npub struct Ask;\nfn f() { meter::g(); }\n"),
        file("ask/meter.rs", "use super::Ask;\npub fn g() {}\n"),
    ];
    assert_eq!(circles(&sources), Vec::<String>::new());
}
