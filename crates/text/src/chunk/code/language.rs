//! The programming languages whose structure can be read.

use std::path::Path;

/// A programming language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::missing_docs_in_private_items, reason = "each is named after its language")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    C,
    Cpp,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
    TypeScript,
}

impl Language {
    /// Returns the language of the file at `path`, by its extension.
    pub fn of_path(path: &str) -> Option<Language> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "c" | "h" => Language::C,
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" | "ipp" | "cu" | "cuh" | "ino" => {
                Language::Cpp
            }
            "go" => Language::Go,
            "java" => Language::Java,
            "js" | "jsx" | "mjs" | "cjs" => Language::JavaScript,
            "py" | "pyi" | "pyw" => Language::Python,
            "rs" => Language::Rust,
            "ts" | "tsx" | "mts" | "cts" => Language::TypeScript,
            _ => return None,
        })
    }

    /// Returns whether the end of a line may end a statement.
    pub(super) fn ends_statements_by_lines(self) -> bool {
        matches!(self, Language::Go | Language::JavaScript | Language::TypeScript)
    }

    /// Returns whether `#` begins a directive for the preprocessor.
    pub(super) fn has_directives(self) -> bool {
        matches!(self, Language::C | Language::Cpp)
    }

    /// Returns whether the language is JavaScript or TypeScript.
    pub(super) fn is_script(self) -> bool {
        matches!(self, Language::JavaScript | Language::TypeScript)
    }
}
