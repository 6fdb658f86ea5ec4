//! Finds the names that lines of code define, and distinguishes code from other files.
//!
//! This module uses a table of keywords instead of a parser for each language. The table needs no grammar, and works
//! for single lines of a diff and for unknown languages. Definitions without a keyword are not found, except functions
//! in C-like languages. Sometimes a line of prose inside a string is mistaken for a definition.

use gix::bstr::ByteSlice;

/// The maximum number of bytes of a heading, symbol or line. Longer texts are cut.
pub(crate) const WIDTH: usize = 120;

/// The kind of lines that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Code in a language whose definitions begin with a keyword.
    Code,
    /// Code in which functions are defined by a type, a name and parentheses.
    CLike,
    /// Text written for people to read.
    Prose,
    /// Settings, data and anything else.
    Other,
    /// Generated or vendored files, whose lines are not summarised.
    Noise,
}

impl Format {
    /// Returns the format of the file at `path`, judged only by its path.
    pub(crate) fn of(path: &str) -> Format {
        let path = path.to_ascii_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let lock =
            ["cargo.lock", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "go.sum", "poetry.lock"];
        let foreign = ["vendor/", "node_modules/", "third_party/", "dist/"];
        let is_foreign =
            foreign.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")));
        if lock.contains(&name) || extension == "lock" || is_foreign || name.contains(".min.") {
            return Format::Noise;
        }
        match extension {
            "svg" | "map" | "snap" | "csv" | "tsv" | "ipynb" => Format::Noise,
            "md" | "markdown" | "rst" | "txt" | "adoc" | "org" => Format::Prose,
            "" if ["readme", "changelog", "changes", "news", "history"].contains(&name) => Format::Prose,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "java" | "cs" | "m" | "mm" | "dart" => {
                Format::CLike
            }
            "rs" | "py" | "pyi" | "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "go" | "rb" | "php"
            | "swift" | "kt" | "kts" | "scala" | "ex" | "exs" | "erl" | "hs" | "ml" | "lua" | "pl" | "pm"
            | "sh" | "bash" | "zsh" | "fish" | "zig" | "nim" | "jl" | "r" | "clj" | "vue" | "svelte"
            | "proto" | "sql" | "ps1" | "vim" => Format::Code,
            _ => Format::Other,
        }
    }
}

/// Returns the width of the leading white space of a line; a tab counts as four.
pub(crate) fn indentation(line: &[u8]) -> usize {
    line.iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .map(|&byte| if byte == b'\t' { 4 } else { 1 })
        .sum()
}

/// Returns the line as text, cut at 120 bytes. Surrounding white space and opening brackets at the end are removed.
pub(crate) fn clip(line: &[u8]) -> String {
    let text = line[..line.len().min(WIDTH + 3)].to_str_lossy();
    let text = text.trim().trim_end_matches(['{', '(', '[', ':']).trim_end();
    text[..text.floor_char_boundary(WIDTH)].to_owned()
}

/// Words that may come before a defining keyword.
const MODIFIERS: [&str; 34] = [
    "pub",
    "export",
    "default",
    "async",
    "unsafe",
    "static",
    "final",
    "abstract",
    "public",
    "private",
    "protected",
    "internal",
    "extern",
    "inline",
    "override",
    "virtual",
    "sealed",
    "partial",
    "local",
    "open",
    "suspend",
    "data",
    "declare",
    "readonly",
    "constexpr",
    "template",
    "typedef",
    "new",
    "case",
    "lazy",
    "mutating",
    "fileprivate",
    "companion",
    "\"C\"",
];

/// Keywords that are followed by the name that they define.
const KEYWORDS: [&str; 35] = [
    "fn",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "function",
    "const",
    "type",
    "impl",
    "mod",
    "module",
    "func",
    "union",
    "namespace",
    "record",
    "object",
    "protocol",
    "extension",
    "defmodule",
    "defp",
    "defmacro",
    "sub",
    "fun",
    "macro_rules!",
    "macro",
    "static",
    "package",
    "actor",
    "message",
    "service",
    "let",
    "var",
    "val",
];

/// Returns the name that a line of code defines.
pub(crate) fn symbol(line: &[u8], format: Format) -> Option<String> {
    if !matches!(format, Format::Code | Format::CLike) || line.len() > 1000 {
        return None;
    }
    let text = line.to_str().ok()?;
    let at_margin = indentation(line) == 0;
    let mut rest = text.trim_start();
    if let Some(name) = rest.strip_prefix("#define ") {
        return identifier(name.trim_start());
    }
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    loop {
        let end = rest.find(|character: char| !is_word(character) && character != '!').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after_modifier = after.strip_prefix("(crate)").or(after.strip_prefix("(super)")).unwrap_or(after);
        let is_static_item =
            word == "static" && after.trim_start().starts_with(|c: char| c.is_ascii_uppercase());
        if KEYWORDS.contains(&word) && (word != "static" || is_static_item) {
            let next = after.trim_start();
            if next.len() == after.len() && !next.starts_with(['<', '(', '*']) {
                return None;
            }
            return defined(word, next, at_margin);
        }
        if !MODIFIERS.contains(&word) || after_modifier.trim_start().len() == after_modifier.len() {
            break;
        }
        rest = after_modifier.trim_start();
    }
    if format == Format::CLike { c_function(text, at_margin) } else { None }
}

/// Returns the name that `keyword` defines, taken from `rest`, the text after the keyword.
fn defined(keyword: &str, rest: &str, at_margin: bool) -> Option<String> {
    match keyword {
        // The name may follow a second keyword, as in `const fn name` or `const enum Name`. A `let` inside a function
        // is only a local variable and defines no name.
        "const" | "let" | "var" | "val" => {
            let word_end = rest.find(|character: char| !is_word(character)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(word_end);
            if KEYWORDS.contains(&word) && !after.is_empty() {
                return defined(word, after.trim_start(), at_margin);
            }
            let is_constant = word.len() > 1
                && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
            if at_margin || (keyword == "const" && is_constant) { identifier(rest) } else { None }
        }
        // For `impl<T> Trait for Type`, the name is `impl Trait for Type`.
        "impl" | "extension" => {
            let end = rest.find('{').or(rest.find(" where ")).unwrap_or(rest.len());
            let what = rest[..end].trim();
            let what = if what.starts_with('<') {
                what.split_once("> ").map_or(what, |(_, what)| what)
            } else {
                what
            };
            (!what.is_empty()).then(|| format!("impl {}", clip(what.as_bytes())))
        }
        // In `func (r *Reader) Name(`, the receiver of the method is skipped.
        "func" if rest.starts_with('(') => identifier(rest.split_once(')')?.1.trim_start()),
        "type" if !at_margin && rest.contains(": ") && !rest.contains('=') => None,
        _ => identifier(rest.trim_start_matches(['*', '&', ' '])),
    }
}

/// Returns the name before the parentheses of `int name(int x) {`.
fn c_function(text: &str, at_margin: bool) -> Option<String> {
    let text = text.trim();
    let (before, _) = text.split_once('(')?;
    let is_definition = text.ends_with('{') || (at_margin && text.ends_with([')', ',']));
    let starts_statement =
        ["if", "else", "for", "while", "switch", "return", "case", "do", "throw", "new", "catch"];
    let first = before.split_whitespace().next()?;
    if !is_definition || starts_statement.contains(&first) || before.contains(['=', '.', '"']) {
        return None;
    }
    let (types, name) = before.rsplit_once([' ', '*', '&'])?;
    if types.trim().is_empty() { None } else { identifier(name) }
}

fn identifier(text: &str) -> Option<String> {
    let end = text.find(|character: char| !is_word(character) && character != ':' && character != '.');
    let name = text[..end.unwrap_or(text.len())].trim_end_matches([':', '.']);
    let starts_well = name.starts_with(|first: char| first.is_alphabetic() || first == '_' || first == '$');
    (starts_well && name.len() <= WIDTH).then(|| name.to_owned())
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_recognised_in_many_languages() {
        let name = |path: &str, line: &str| symbol(line.as_bytes(), Format::of(path)).unwrap_or_default();
        let table = [
            ("a.rs", "    pub async fn parse_line<'a>(x: &'a str) {", "parse_line"),
            ("a.rs", "impl<T: Clone> Display for Table<T> {", "impl Display for Table<T>"),
            ("a.rs", "pub const LIMIT: usize = 4;", "LIMIT"),
            ("a.rs", "macro_rules! bail {", "bail"),
            ("a.rs", "        let local = 4;", ""),
            ("a.rs", "static TABLE: [u8; 4] = [0; 4];", "TABLE"),
            ("a.py", "    async def fetch(self):", "fetch"),
            ("a.go", "func (r *Reader) ReadLine() error {", "ReadLine"),
            ("a.ts", "export default class Parser extends Base {", "Parser"),
            ("a.ts", "export const enum Mode {", "Mode"),
            ("a.js", "function* numbers() {", "numbers"),
            ("a.c", "static int parse_header(const char *line)", "parse_header"),
            ("a.c", "    if (line == NULL) {", ""),
            ("a.c", "#define LIMIT 4", "LIMIT"),
            ("A.java", "    public List<String> names(int limit) {", "names"),
            ("a.md", "class names are words here", ""),
            ("a.rs", "define(x);", ""),
            ("a.rs", "function", ""),
        ];
        for (path, line, expected) in table {
            assert_eq!(name(path, line), expected, "{line}");
        }
    }

    #[test]
    fn programs_that_write_files_are_not_quoted() {
        for path in ["Cargo.lock", "web/node_modules/x.js", "vendor/x.go", "app.min.js", "a/image.svg"] {
            assert_eq!(Format::of(path), Format::Noise, "{path}");
        }
    }
}
