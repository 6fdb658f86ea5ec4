//! Edits the configuration file: the table of one provider, and the name of the default provider.
//!
//! Comments and the order of entries stay. The file is written only if the result is valid, and it is replaced
//! atomically. Only the user can read it, because it contains the places of keys. Processes that edit the file at the
//! same time take turns.

use std::fs::{self, File};
use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

use super::file::{Sources, parsed_to, text};
use super::providers::{Configured, Use};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::user_file::{Bytes, FileSnapshot, look, replace};

/// A change of one setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Edit<T> {
    /// Keep the value.
    #[default]
    Keep,
    /// Set this value.
    Set(T),
    /// Remove the setting.
    Remove,
}

impl<T> From<Option<T>> for Edit<T> {
    fn from(value: Option<T>) -> Edit<T> {
        value.map_or(Edit::Keep, Edit::Set)
    }
}

/// The changes to one provider's settings. A setting that is `None` keeps its value.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The service, as spelled in the file.
    pub service: Option<String>,
    /// The address.
    pub endpoint: Edit<String>,
    /// The model.
    pub model: Option<String>,
    /// The variable that contains the key.
    pub key_variable: Edit<String>,
    /// The file that contains the key.
    pub key_file: Edit<String>,
    /// The uses.
    pub uses: Option<Vec<Use>>,
    /// Whether the provider may search the memory.
    pub memory: Option<bool>,
    /// The maximum number of tokens that an answer may have.
    pub max_output: Option<u64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The context window in tokens.
    pub window: Option<u64>,
    /// The prices of sent and of received tokens, in dollars per million.
    pub price: Option<(f64, f64)>,
    /// The limit for a call, in dollars.
    pub limit_call: Edit<f64>,
    /// The limit for a day, in dollars.
    pub limit_day: Edit<f64>,
    /// Whether the provider becomes the default provider.
    pub is_default: bool,
}

/// Applies `change` to the provider `name` and returns whether the file changed. `admit` gets the provider's
/// configuration before the change, and may refuse the change. No other process can change the file until this function
/// returns.
///
/// # Errors
///
/// The error of `admit`, or [`Kind::BadInput`] if the file would become invalid or the provider would send its key
/// unencrypted. The file is not changed in these cases.
pub fn change(
    sources: &Sources,
    name: &str,
    change: &Change,
    admit: impl FnOnce(Option<&Configured>) -> Result<()>,
) -> Result<bool> {
    edit(sources, Some(name), |document| {
        let known = sources.providers(&sources.options()?)?;
        admit(known.iter().find(|each| each.provider.name == name))?;
        let is_bare = change.is_default && change.is_empty();
        if !is_bare {
            let providers = document.entry("providers").or_insert_with(|| {
                let mut table = Table::new();
                // The table `providers` needs no line of its own in the file.
                table.set_implicit(true);
                Item::Table(table)
            });
            let providers = providers.as_table_like_mut().ok_or_else(|| no_table("providers"))?;
            let table = providers.entry(name).or_insert_with(|| Item::Table(Table::new()));
            let table = table.as_table_like_mut().ok_or_else(|| no_table(name))?;
            let mut set = |key: &str, given| set(table, key, given);
            let words = |given: &Edit<String>| match given {
                Edit::Keep => Edit::Keep,
                Edit::Set(word) => Edit::Set(word.as_str().into()),
                Edit::Remove => Edit::Remove,
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
                set("price", Edit::Set(price.into()));
            }
            set_limits(table, change)?;
        }
        if change.is_default {
            set_default(document, name);
        }
        Ok(())
    })
}

/// Removes the provider `name` from the file. Returns whether the file contained it.
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
    /// Returns whether the change sets nothing. A change of the default provider is ignored here.
    pub fn is_empty(&self) -> bool {
        let bare = Change { is_default: self.is_default, ..Change::default() };
        format!("{self:?}") == format!("{bare:?}")
    }
}

/// Changes the setting `key` of a table. The comments of a changed value stay. A value that is already correct is not
/// touched.
fn set(table: &mut dyn TableLike, key: &str, given: Edit<toml_edit::Value>) {
    let new = match given {
        Edit::Keep => return,
        Edit::Remove => return drop(table.remove(key)),
        Edit::Set(new) => new,
    };
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) if old.to_string().trim() == new.to_string().trim() => {}
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(new))),
    }
}

/// Changes the limits of a provider, and removes their table if it becomes empty.
fn set_limits(table: &mut dyn TableLike, change: &Change) -> Result<()> {
    if (&change.limit_call, &change.limit_day) == (&Edit::Keep, &Edit::Keep) {
        return Ok(());
    }
    let limits = table.entry("limits").or_insert_with(|| value(InlineTable::new()));
    let limits = limits.as_table_like_mut().ok_or_else(|| no_table("limits"))?;
    for (key, amount) in [("call", &change.limit_call), ("day", &change.limit_day)] {
        match amount {
            Edit::Keep => {}
            Edit::Set(amount) => drop(limits.insert(key, value(*amount))),
            Edit::Remove => drop(limits.remove(key)),
        }
    }
    if limits.is_empty() {
        table.remove("limits");
    }
    Ok(())
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
    Error::bad_input(format!("`{}` in the configuration file is not a table", quoted(name)))
}

/// Lets `work` edit the file, and writes the result only if it is valid. Returns whether the file changed. `changed`
/// is the name of the provider that `work` changes, if there is one.
fn edit(
    sources: &Sources,
    changed: Option<&str>,
    work: impl FnOnce(&mut DocumentMut) -> Result<()>,
) -> Result<bool> {
    let Some(path) = &sources.file else {
        return Err(Error::bad_input("the configuration file has no path")
            .hint("set HOME, or name a file in TIRO_CONFIG"));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_private(folder)?;
    // The lock is held until the end of the function. If folders can't be locked, the process that writes last wins.
    let _turn = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let written = text(path)?.unwrap_or_default();
    let broken = |error: toml_edit::TomlError| {
        let place = parsed_to(&error);
        Error::bad_input(format!("`{}` is not valid TOML{place}", quoted(path.display())))
            .hint("correct it first")
    };
    let mut document: DocumentMut = written.parse().map_err(broken)?;
    work(&mut document)?;
    let new = document.to_string();
    if new == written {
        return Ok(false);
    }
    check(&new, sources, changed)?;
    let target = look(path)?;
    replace(&target.path, &FileSnapshot { bytes: Bytes(new.into_bytes()), mode: 0o600 })?;
    Ok(true)
}

/// Checks that `new` is a valid configuration file, and that the provider `changed` does not send its key
/// unencrypted.
fn check(new: &str, sources: &Sources, changed: Option<&str>) -> Result<()> {
    let trial =
        tempfile::NamedTempFile::new().context(Kind::Io, || "cannot write a temporary file".into())?;
    fs::write(trial.path(), new).context(Kind::Io, || "cannot write a temporary file".into())?;
    let trial = Sources { file: Some(trial.path().to_owned()), ..sources.clone() };
    // Errors about the trial copy must name the real file.
    let plain = |error: Error| {
        let shown = trial.file.as_ref().map(|path| quoted(path.display())).unwrap_or_default();
        let own = sources.file.as_ref().map(|path| quoted(path.display())).unwrap_or_default();
        let error_text = error.to_string().replace(&shown, &own);
        let hint = error.way_out().unwrap_or("correct the configuration file").to_owned();
        Error::bad_input(error_text).hint(hint)
    };
    let options = trial.options().map_err(plain)?;
    let providers = trial.providers(&options).map_err(plain)?;
    let changed = providers.iter().find(|each| Some(each.provider.name.as_str()) == changed);
    changed.map_or(Ok(()), |each| each.provider.check_encryption())
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
    fn invalid_changes_are_not_written() {
        let (_folder, sources) = sources(None);
        let wrong = Change { endpoint: Edit::Set("http://a@b".into()), ..Change::default() };
        let error = change(&sources, "openai", &wrong, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("deep/config.toml"), "{error}");
        assert!(!sources.file.as_ref().unwrap().exists());
        let good = Change {
            model: Some("m".into()),
            price: Some((0.5, 2.0)),
            limit_day: Edit::Set(1.5),
            ..Change::default()
        };
        let is_new = |known: Option<&Configured>| {
            assert_eq!(known, None);
            Ok(())
        };
        assert!(change(&sources, "openai", &good, is_new).unwrap());
        let providers = sources.providers(&sources.options().unwrap()).unwrap();
        assert_eq!(providers[0].limits.day, Some(tiro_base::money::Money(1_500_000)));
        assert_eq!(providers[0].provider.price.unwrap().output, 2.0);
        let before = written(&sources);
        let refused = change(&sources, "openai", &wrong, |known| {
            Err(Error::bad_input(format!("{} is as it should be", known.unwrap().provider.name)))
        });
        assert!(refused.unwrap_err().to_string().contains("openai is as it should be"));
        assert_eq!(written(&sources), before);
        let none = Change { limit_day: Edit::Remove, ..Change::default() };
        assert!(change(&sources, "openai", &none, |_| Ok(())).unwrap());
        assert!(!written(&sources).contains("limits"), "{}", written(&sources));
    }

    #[test]
    fn an_invalid_file_is_not_changed() {
        let (_folder, sources) = sources(Some("[broken\n"));
        let preferred = Change { is_default: true, ..Change::default() };
        assert!(change(&sources, "openai", &preferred, |_| Ok(())).is_err());
        assert_eq!(written(&sources), "[broken\n");
    }
}
