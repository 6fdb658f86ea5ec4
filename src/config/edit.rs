//! Changing the configuration file: one table of a provider, or the name of the default.
//!
//! Comments and order stay. The file is written only if what results is right, whole or not at all, and it is the
//! user's alone: where keys are is nobody else's business. Two that change it at once take turns.

use std::fs::{self, File};
use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use super::file::{Sources, parsed_to, text};
use super::providers::{Configured, Use};
use crate::error::{Context, Error, Kind, Result, quoted};
use crate::file::user_file::{Bytes, State, look, replace};

/// What becomes of a setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Given<T> {
    /// It stays as it is.
    #[default]
    Not,
    /// It has this value.
    As(T),
    /// It goes.
    Gone,
}

impl<T> From<Option<T>> for Given<T> {
    fn from(value: Option<T>) -> Given<T> {
        value.map_or(Given::Not, Given::As)
    }
}

/// What is said of a provider.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Who serves it, as the file spells it.
    pub service: Option<String>,
    /// Its address.
    pub endpoint: Given<String>,
    /// The model.
    pub model: Option<String>,
    /// The variable that holds its key.
    pub key_variable: Given<String>,
    /// The file that holds its key.
    pub key_file: Given<String>,
    /// What it may be asked for.
    pub uses: Option<Vec<Use>>,
    /// Whether it may search the memory.
    pub memory: Option<bool>,
    /// Tokens of an answer.
    pub max_output: Option<u64>,
    /// Its temperature.
    pub temperature: Option<f64>,
    /// Tokens of request and answer.
    pub window: Option<u64>,
    /// Dollars for a million tokens, sent and received.
    pub price: Option<(f64, f64)>,
    /// Dollars for a call.
    pub limit_call: Given<f64>,
    /// Dollars for a day.
    pub limit_day: Given<f64>,
    /// Whether it is the default from now on.
    pub is_default: bool,
}

/// Writes what `change` says of the provider `name`; returns whether that changed the file. `admit` is given the provider as
/// it stands, where there is one, while nobody else changes the file.
///
/// Errors with what `admit` errors with, and with [`Kind::BadInput`] where the file would not be right afterwards, or where the
/// provider would send its key unencrypted; leaves it as it is then.
pub fn change(
    sources: &Sources,
    name: &str,
    change: &Change,
    admit: impl FnOnce(Option<&Configured>) -> Result<()>,
) -> Result<bool> {
    edit(sources, Some(name), |document| {
        let known = sources.providers(&sources.options()?)?;
        admit(known.iter().find(|each| each.provider.name == name))?;
        let is_bare = change.is_default && change.says_nothing();
        if !is_bare {
            let providers = document.entry("providers").or_insert_with(|| {
                let mut table = Table::new();
                // Only the tables in it are worth a line.
                table.set_implicit(true);
                Item::Table(table)
            });
            let providers = providers.as_table_like_mut().ok_or_else(|| no_table("providers"))?;
            let table = providers.entry(name).or_insert_with(|| Item::Table(Table::new()));
            let table = table.as_table_like_mut().ok_or_else(|| no_table(name))?;
            let mut set = |key: &str, given: Given<toml_edit::Value>| match given {
                Given::Not => {}
                Given::Gone => {
                    table.remove(key);
                }
                Given::As(new) => {
                    let old = table.get(key).and_then(Item::as_value);
                    let is_same = old.is_some_and(|old| old.to_string().trim() == new.to_string().trim());
                    match table.get_mut(key).and_then(Item::as_value_mut) {
                        _ if is_same => {}
                        Some(old) => {
                            let decor = old.decor().clone();
                            *old = new;
                            *old.decor_mut() = decor;
                        }
                        None => {
                            table.insert(key, Item::Value(new));
                        }
                    }
                }
            };
            let words = |given: &Given<String>| match given {
                Given::Not => Given::Not,
                Given::As(word) => Given::As(word.as_str().into()),
                Given::Gone => Given::Gone,
            };
            set("service", change.service.clone().map(Into::into).into());
            set("endpoint", words(&change.endpoint));
            set("model", change.model.clone().map(Into::into).into());
            set("key_variable", words(&change.key_variable));
            set("key_file", words(&change.key_file));
            set("uses", change.uses.as_deref().map(|uses| uses_array(uses).into()).into());
            set("memory", change.memory.map(Into::into).into());
            set("max_output", change.max_output.map(|number| (number as i64).into()).into());
            set("temperature", change.temperature.map(Into::into).into());
            set("window", change.window.map(|number| (number as i64).into()).into());
            if let Some((input, output)) = change.price {
                let mut price = InlineTable::new();
                price.insert("input", input.into());
                price.insert("output", output.into());
                set("price", Given::As(price.into()));
            }
            if (&change.limit_call, &change.limit_day) != (&Given::Not, &Given::Not) {
                let limits = table.entry("limits").or_insert_with(|| value(InlineTable::new()));
                let limits = limits.as_table_like_mut().ok_or_else(|| no_table("limits"))?;
                for (key, amount) in [("call", &change.limit_call), ("day", &change.limit_day)] {
                    match amount {
                        Given::Not => {}
                        Given::As(amount) => drop(limits.insert(key, value(*amount))),
                        Given::Gone => drop(limits.remove(key)),
                    }
                }
                if limits.is_empty() {
                    table.remove("limits");
                }
            }
        }
        if change.is_default {
            set_default(document, name);
        }
        Ok(())
    })
}

/// Takes the provider `name` out of the file; returns whether it stood there.
pub fn remove(sources: &Sources, name: &str) -> Result<bool> {
    edit(sources, None, |document| {
        if let Some(providers) = document.get_mut("providers").and_then(Item::as_table_like_mut) {
            providers.remove(name);
        }
        if document.get("default_provider").and_then(Item::as_str) == Some(name) {
            document.remove("default_provider");
        }
        Ok(())
    })
}

impl Change {
    /// Returns whether it says nothing of the provider, but perhaps that it is the default.
    pub fn says_nothing(&self) -> bool {
        let bare = Change { is_default: self.is_default, ..Change::default() };
        format!("{self:?}") == format!("{bare:?}")
    }
}

fn set_default(document: &mut DocumentMut, name: &str) {
    match document.get_mut("default_provider").and_then(Item::as_value_mut) {
        Some(old) if old.as_str() == Some(name) => {}
        Some(old) => {
            let decor = old.decor().clone();
            *old = name.into();
            *old.decor_mut() = decor;
        }
        None => {
            document.insert("default_provider", value(name));
        }
    }
}

fn uses_array(uses: &[Use]) -> Array {
    let word = |purpose: &Use| match purpose {
        Use::Summarize => "summarize",
        Use::Embed => "embed",
        Use::Consult => "consult",
    };
    uses.iter().map(word).collect()
}

fn no_table(name: &str) -> Error {
    Error::bad_input(format!("`{}` in the configuration file is no table", quoted(name)))
}

/// Has `work` edit the file, and checks it before it is written; `changed` is the provider that it changes.
fn edit(
    sources: &Sources,
    changed: Option<&str>,
    work: impl FnOnce(&mut DocumentMut) -> Result<()>,
) -> Result<bool> {
    let Some(path) = &sources.file else {
        return Err(Error::bad_input("there is no place for a configuration file")
            .hint("set HOME, or name a file in TIRO_CONFIG"));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_private(folder)?;
    // Until it is dropped; where folders can't be locked, the last one wins.
    let _turn = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let written = text(path)?.unwrap_or_default();
    let broken = |error: toml_edit::TomlError| {
        let place = parsed_to(&error);
        Error::bad_input(format!("`{}` is no TOML{place}", quoted(path.display()))).hint("mend it first")
    };
    let mut document: DocumentMut = written.parse().map_err(broken)?;
    work(&mut document)?;
    let new = document.to_string();
    if new == written {
        return Ok(false);
    }
    check(&new, sources, changed)?;
    let target = look(path)?;
    replace(&target.path, &State { bytes: Bytes(new.into_bytes()), mode: 0o600 })?;
    Ok(true)
}

/// Checks that the file would be right, and that the provider `changed` would keep its key.
fn check(new: &str, sources: &Sources, changed: Option<&str>) -> Result<()> {
    let trial =
        tempfile::NamedTempFile::new().context(Kind::Io, || "cannot write a temporary file".into())?;
    fs::write(trial.path(), new).context(Kind::Io, || "cannot write a temporary file".into())?;
    let trial = Sources { file: Some(trial.path().to_owned()), ..sources.clone() };
    // The path in its errors would be that of the trial.
    let plain = |error: Error| {
        let shown = trial.file.as_ref().map(|path| quoted(path.display())).unwrap_or_default();
        let own = sources.file.as_ref().map(|path| quoted(path.display())).unwrap_or_default();
        let error_text = error.to_string().replace(&shown, &own);
        let hint = error.way_out().unwrap_or("mend the configuration file").to_owned();
        Error::bad_input(error_text).hint(hint)
    };
    let options = trial.options().map_err(plain)?;
    let providers = trial.providers(&options).map_err(plain)?;
    let changed = providers.iter().find(|each| Some(each.provider.name.as_str()) == changed);
    changed.map_or(Ok(()), |each| each.provider.keeps_key())
}

fn create_private(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).context(Kind::Io, || format!("cannot create `{}`", quoted(folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(file: Option<&str>) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config.toml");
        if let Some(file) = file {
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(&path, file).unwrap();
        }
        (folder, Sources { file: Some(path), ..Sources::default() })
    }

    fn written(sources: &Sources) -> String {
        fs::read_to_string(sources.file.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn comments_and_order_stay_and_the_file_is_the_users_alone() {
        let before = "# mine\nexternal = 'allowed' # yes\n\n[providers.openai] # paid by work\n\
                      model = 'old' # cheap\n\n[limits]\nday = 2\n";
        let (_folder, sources) = sources(Some(before));
        let wanted = Change {
            model: Some("new".into()),
            uses: Some(vec![Use::Consult, Use::Summarize]),
            is_default: true,
            ..Change::default()
        };
        assert!(change(&sources, "openai", &wanted, |_| Ok(())).unwrap());
        insta::assert_snapshot!(written(&sources), @r#"
        # mine
        external = 'allowed' # yes
        default_provider = "openai"

        [providers.openai] # paid by work
        model = "new" # cheap
        uses = ["consult", "summarize"]

        [limits]
        day = 2
        "#);
        assert!(!change(&sources, "openai", &wanted, |_| Ok(())).unwrap(), "it says the same again");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(sources.file.as_ref().unwrap()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(remove(&sources, "openai").unwrap());
        let left = written(&sources);
        assert!(!left.contains("openai") && left.contains("# mine") && left.contains("day = 2"), "{left}");
        assert!(!remove(&sources, "openai").unwrap());
    }

    #[test]
    fn what_would_be_wrong_is_not_written() {
        let (_folder, sources) = sources(None);
        let wrong = Change { endpoint: Given::As("http://a@b".into()), ..Change::default() };
        let error = change(&sources, "openai", &wrong, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("deep/config.toml"), "{error}");
        assert!(!sources.file.as_ref().unwrap().exists());
        let good = Change {
            model: Some("m".into()),
            price: Some((0.5, 2.0)),
            limit_day: Given::As(1.5),
            ..Change::default()
        };
        let is_new = |known: Option<&Configured>| {
            assert_eq!(known, None);
            Ok(())
        };
        assert!(change(&sources, "openai", &good, is_new).unwrap());
        let providers = sources.providers(&sources.options().unwrap()).unwrap();
        assert_eq!(providers[0].limits.day, Some(crate::money::Money(1_500_000)));
        assert_eq!(providers[0].provider.price.unwrap().output, 2.0);
        let before = written(&sources);
        let refused = change(&sources, "openai", &wrong, |known| {
            Err(Error::bad_input(format!("{} is as it should be", known.unwrap().provider.name)))
        });
        assert!(refused.unwrap_err().to_string().contains("openai is as it should be"));
        assert_eq!(written(&sources), before);
        let none = Change { limit_day: Given::Gone, ..Change::default() };
        assert!(change(&sources, "openai", &none, |_| Ok(())).unwrap());
        assert!(!written(&sources).contains("limits"), "{}", written(&sources));
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        let (_folder, sources) = sources(Some("[broken\n"));
        let preferred = Change { is_default: true, ..Change::default() };
        assert!(change(&sources, "openai", &preferred, |_| Ok(())).is_err());
        assert_eq!(written(&sources), "[broken\n");
    }
}
