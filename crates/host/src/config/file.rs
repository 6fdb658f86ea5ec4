//! Reads options from the command line, variables and the configuration file, and reports mistakes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, Value};

use super::options::{END, Options, Setting};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};
use tiro_redact::Redactor;

/// The largest configuration file that is read, in bytes. Arbitrary: a thousand times the size of a long file.
const LIMIT: u64 = 1 << 20;

/// The key of the table of providers, which [`super::providers`] reads.
const PROVIDERS: &str = "providers";

/// The sources from which options are read. The file is read again each time, because it may change while a server
/// runs.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The `KEY=VALUE` of each `--set` on the command line.
    pub set: Vec<(String, String)>,
    /// The values of the variables that set options, by the names of the variables.
    pub variables: BTreeMap<String, String>,
    /// The names of the variables that are set and contain the key of a service.
    pub keys: Vec<String>,
    /// The path of the configuration file. The file may be missing.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Returns the options.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] that names the place of the mistake, the key and the allowed values.
    pub fn options(&self) -> Result<Options> {
        let mut options = Options::default();
        if let Some(document) = self.document()? {
            let file = self.file.as_deref().expect("it was read");
            read_file(&mut options, file, &document)?;
        }
        for setting in Options::ALL {
            let named = setting.variables().into_iter();
            let first = named.filter_map(|name| self.variables.get(&name).map(|text| (name, text))).next();
            if let Some((name, text)) = first {
                read(setting, &mut options, text, &format!("the variable {name}"))?;
            }
        }
        for (key, text) in &self.set {
            let setting = Options::find(key).ok_or_else(|| unknown(key, "--set"))?;
            read(setting, &mut options, text, "--set")?;
        }
        Ok(options)
    }

    /// Returns the parsed configuration file, or `None` if there is none.
    pub(super) fn document(&self) -> Result<Option<Document<String>>> {
        let Some(path) = &self.file else { return Ok(None) };
        let Some(text) = text(path)? else { return Ok(None) };
        let document = Document::parse(text).map_err(|error| {
            Error::bad_input(format!("`{}` is not valid TOML{}", quoted(path.display()), parsed_to(&error)))
                .hint("correct the line; `tiro doctor` checks the rest")
        })?;
        Ok(Some(document))
    }
}

/// Returns the text of the file at `path`, or `None` if there is none.
pub(super) fn text(path: &Path) -> Result<Option<String>> {
    // Only errors quote the path, because quoting loads the rules for secrets, which takes ten milliseconds.
    let shown = || quoted(path.display());
    match file::read_to_string(path, Links::Followed, LIMIT) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err(Error::bad_input(format!("`{}` is not a configuration file", shown()))
                .source(error)
                .hint("name another in TIRO_CONFIG, or remove it"))
        }
        Err(error) => Err(error).context(Kind::Io, || format!("cannot read `{}`", shown())),
    }
}

fn read_file(options: &mut Options, path: &Path, document: &Document<String>) -> Result<()> {
    for (key, item) in document.iter().filter(|(key, _)| *key != PROVIDERS) {
        match (item.as_table_like(), Options::find(key)) {
            (_, Some(setting)) => from_item(setting, options, item, path, document)?,
            (Some(table), None) => {
                for (inner, item) in table.iter() {
                    let key = format!("{key}.{inner}");
                    let place = place(path, document, item);
                    let setting = Options::find(&key).ok_or_else(|| unknown(&key, &place))?;
                    from_item(setting, options, item, path, document)?;
                }
            }
            (None, None) => return Err(unknown(key, &place(path, document, item))),
        }
    }
    Ok(())
}

/// Returns the place of `item`: the file and the line.
pub(super) fn place(path: &Path, document: &Document<String>, item: &Item) -> String {
    let line = item.span().map(|span| document.raw()[..span.start].matches('\n').count() + 1);
    match line {
        Some(line) => format!("`{}`, line {line}", quoted(path.display())),
        None => format!("`{}`", quoted(path.display())),
    }
}

/// Returns a value as text. In the text of an array, each word ends with [`END`].
pub(super) fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Boolean(flag) => Some(flag.value().to_string()),
        Value::Array(items) => items.iter().map(|item| Some(format!("{}{END}", item.as_str()?))).collect(),
        Value::Datetime(_) | Value::InlineTable(_) => None,
    }
}

fn from_item(
    setting: &Setting,
    options: &mut Options,
    item: &Item,
    path: &Path,
    document: &Document<String>,
) -> Result<()> {
    let place = place(path, document, item);
    let Some(text) = item.as_value().and_then(words) else {
        return Err(Error::bad_input(format!("`{}` in {place} is not a plain value", setting.key))
            .hint(format!("give {}", setting.right)));
    };
    read(setting, options, &text, &place)
}

fn read(setting: &Setting, options: &mut Options, text: &str, place: &str) -> Result<()> {
    if setting.read(options, text) {
        return Ok(());
    }
    // The value may be a key that the user put here by mistake, so it is not quoted.
    let is_secret = !Redactor::new([0; 32]).redact(text).found.is_empty();
    let shown = if is_secret { "a secret".to_owned() } else { format!("`{}`", quoted(text.trim())) };
    Err(Error::bad_input(format!("`{}` in {place} is {shown}", setting.key))
        .hint(format!("give {}", setting.right)))
}

/// Returns the error for an unknown option `key` in `place`.
fn unknown(key: &str, place: &str) -> Error {
    let near = Options::ALL.iter().map(|setting| setting.key);
    let section = key.split('.').next().unwrap_or_default();
    let like: Vec<&str> = near.clone().filter(|known| known.split('.').next() == Some(section)).collect();
    // The option may exist in another section.
    let last = key.rsplit('.').next().unwrap_or_default();
    let moved = near.clone().find(|known| known.rsplit('.').next() == Some(last));
    let hint = match (moved, like.is_empty()) {
        (Some(moved), _) => format!("did you mean `{moved}`?"),
        (None, false) => format!("the options are {}", like.join(", ")),
        (None, true) => "docs/configuration.md lists the options".to_owned(),
    };
    Error::bad_input(format!("`{}` in {place} is not an option", quoted(key))).hint(hint)
}

/// Returns the place of a syntax error as `, from line 3 on`. The parser's own message is not shown, because it quotes
/// the file.
pub(super) fn parsed_to(error: &toml_edit::TomlError) -> String {
    let text = error.to_string();
    let line =
        text.split_once("at line ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
    line.filter(|line: &String| !line.is_empty())
        .map_or(String::new(), |line| format!(", from line {line} on"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sources(file: &str, variables: &[(&str, &str)], set: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, file).unwrap();
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let sources = Sources {
            set: set.iter().map(owned).collect(),
            variables: variables.iter().map(owned).collect(),
            keys: Vec::new(),
            file: Some(path),
        };
        (folder, sources)
    }

    fn error(file: &str) -> (String, String) {
        let (_folder, sources) = sources(file, &[], &[]);
        let error = sources.options().unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        (error.to_string(), error.way_out().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_command_line_precedes_variables_and_variables_the_file() {
        let file = "external = 'never'\n[context]\nmax_tokens = 1001\ncache_ttl = 5\nsummary_ratio = 0.4\n";
        let mut variables = vec![("PERSISTENCE_CONTEXT_MAX_TOKENS", "1002")];
        let tokens = |variables: &[(&str, &str)], set: &[(&str, &str)]| {
            let (_folder, sources) = sources(file, variables, set);
            sources.options().unwrap().context_max_tokens
        };
        assert_eq!(tokens(&[], &[]), 1001);
        assert_eq!(tokens(&variables, &[]), 1002);
        variables.push(("TIRO_CONTEXT_MAX_TOKENS", "1003"));
        assert_eq!(tokens(&variables, &[]), 1003);
        assert_eq!(tokens(&variables, &[("context.max_tokens", "1004")]), 1004);
        let (_folder, sources) = sources(file, &[("PERSISTENCE_SUMMARIZATION_PROVIDER", "mine")], &[]);
        let options = sources.options().unwrap();
        assert_eq!(
            (options.cache_ttl_s, options.summary_ratio, options.default_provider.as_str()),
            (5, 0.4, "mine")
        );
        assert_eq!(options.external, super::super::External::Never);
        assert_eq!(options.session_max_tokens, Options::default().session_max_tokens);
    }

    #[test]
    fn errors_name_the_place_and_the_allowed_values() {
        let (message, hint) = error("[context]\n# a comment\nmax_tokens = 'many'\n");
        assert!(
            message.contains("`context.max_tokens`") && message.contains("config.toml`, line 3"),
            "{message}"
        );
        assert!(message.contains("`many`") && hint.contains("300 to 20000"), "{message}; {hint}");
        let (message, hint) = error("max_tokens = 5\n");
        assert!(
            message.contains("`max_tokens`") && hint.contains("`context.max_tokens`"),
            "{message}; {hint}"
        );
        let (message, hint) = error("[limits]\ndaily = 3\n");
        assert!(message.contains("`limits.daily`") && hint.contains("limits.day"), "{message}; {hint}");
        let (message, _) = error("[context\nmax_tokens = 5\n");
        assert!(message.contains("is not valid TOML") && message.contains("line 1"), "{message}");
        assert!(error("external = { a = 1 }\n").0.contains("not a plain value"));
        let (message, _) = error("default_provider = 'sk-proj-Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0Ks'\n");
        assert!(message.contains("`default_provider`") && !message.contains("Zq8Lk2"), "{message}");
    }

    #[test]
    fn patterns_of_an_array_may_contain_commas() {
        let (_folder, file) = sources("[ignore]\npaths = ['{a,b}/**', 'c']\n", &[], &[]);
        assert_eq!(file.options().unwrap().ignore_paths.0, ["{a,b}/**", "c"]);
        let (_folder, alone) = sources("[ignore]\npaths = ['{a,b}/**']\n", &[], &[]);
        assert_eq!(alone.options().unwrap().ignore_paths.0, ["{a,b}/**"]);
        let (_folder, none) = sources("[ignore]\npaths = []\n", &[], &[]);
        assert_eq!(none.options().unwrap().ignore_paths.0, [""; 0]);
        let (_folder, variable) = sources("", &[("TIRO_IGNORE_PATHS", "a/**, b")], &[]);
        assert_eq!(variable.options().unwrap().ignore_paths.0, ["a/**", "b"]);
    }

    #[test]
    fn no_file_means_the_defaults() {
        let (folder, mut sources) = sources("", &[], &[]);
        sources.file = Some(folder.path().join("none.toml"));
        assert_eq!(sources.options().unwrap(), Options::default());
        sources.file = Some(folder.path().to_owned());
        assert!(sources.options().unwrap_err().to_string().contains("not a configuration file"));
    }
}
