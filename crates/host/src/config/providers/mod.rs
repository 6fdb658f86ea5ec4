//! The configured providers and their uses. They are defined in `[providers.NAME]` of the configuration file, or by
//! variables.
//!
//! By default, a provider on another machine may only be consulted. A model on this machine may also summarise.
//! Memories leave the machine for summaries only if the user lists that use for the provider. This module knows where
//! keys are, but not the keys themselves. A key is read for each call and not kept here.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toml_edit::{Document, Item, TableLike};

use super::endpoint::{ENDPOINT, host};
use super::file::{self, Sources};
use super::known::{KNOWN, Known, usual_service};
use super::options::{END, External, Options, is_name};
use tiro_base::error::{Error, Result};
use tiro_base::money::Money;
use tiro_llm::{Key, Price, Provider, Service, is_model};

/// A purpose for which a provider may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// To summarise memories.
    Summarize,
    /// To embed memories.
    Embed,
    /// To answer questions about the text that a call contains.
    Consult,
}

/// The spending limits of one provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For one call.
    pub call: Option<Money>,
    /// For one day.
    pub day: Option<Money>,
}

/// Where a provider is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In the configuration file.
    File,
    /// By variables that name the provider or its model.
    Environment,
}

/// A provider and its uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// The service, address and key of the provider.
    pub provider: Provider,
    /// The purposes for which the provider may be asked.
    pub uses: Vec<Use>,
    /// Whether the provider may search the memory while it is consulted.
    pub memory: bool,
    /// The spending limits.
    pub limits: Limits,
    /// Where the provider is defined.
    pub origin: Origin,
    /// The place of the definition in the configuration file, as path and line.
    pub place: Option<String>,
}

/// The beginning of the name of a tool that asks an assistant. The assistant's name follows.
pub const CHAT_PREFIX: &str = "chat_with_";

impl Configured {
    /// Returns the name of the tool that asks the provider, if it may be consulted.
    pub fn chat_tool(&self) -> String {
        format!("{CHAT_PREFIX}{}", self.provider.name.replace('-', "_"))
    }

    /// Checks that the provider's key would not be sent unencrypted.
    ///
    /// # Errors
    ///
    /// [`BadInput`](tiro_base::error::Kind::BadInput) if the key would be sent unencrypted.
    pub fn check_encryption(&self) -> Result<()> {
        match &self.place {
            Some(place) => {
                self.provider.check_encryption_as(&format!("`providers.{}` in {place}", self.provider.name))
            }
            None => self.provider.check_encryption(),
        }
    }

    /// Returns whether requests to the provider stay on this machine.
    pub fn is_local(&self) -> bool {
        self.provider.is_local()
    }

    /// Returns whether `options` allow asking the provider for `purpose`.
    pub fn may(&self, purpose: Use, options: &Options) -> bool {
        self.uses.contains(&purpose) && self.is_allowed(options)
    }

    /// Returns whether `options` allow asking the provider at all.
    pub fn is_allowed(&self, options: &Options) -> bool {
        options.external == External::Allowed || self.is_local()
    }
}

impl Sources {
    /// Returns all configured providers, sorted by name. The list includes providers that would send their key
    /// unencrypted. [`Configured::check_encryption`] refuses such a provider later, when the user changes it or
    /// Tiro asks it.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) in the same cases as [`Sources::options`].
    pub fn providers(&self, options: &Options) -> Result<Vec<Configured>> {
        let mut found = Vec::new();
        if let (Some(document), Some(path)) = (self.document()?, &self.file) {
            let tables = match document.get("providers") {
                None => None,
                Some(item) => Some(item.as_table_like().ok_or_else(|| {
                    let place = file::place(path, &document, item);
                    Error::bad_input(format!("`providers` in {place} is not a table"))
                        .hint("give each provider a table of its own, such as `[providers.ollama]`")
                })?),
            };
            for (name, item) in tables.into_iter().flat_map(TableLike::iter) {
                found.push(ProviderReader { name, path, document: &document, sources: self }.provider(item)?);
            }
        }
        // This skips known servers whose service has no address of its own. They must be configured by name.
        for known in KNOWN.iter().filter(|known| known.endpoint.is_none()) {
            if found.iter().all(|each| each.provider.name != known.name) {
                found.extend(self.known(known, options)?);
            }
        }
        // The provider in `PERSISTENCE_SUMMARIZATION_PROVIDER` may summarise, whatever its other uses are.
        let named = self.variables.get("PERSISTENCE_SUMMARIZATION_PROVIDER");
        if let Some(each) = found.iter_mut().find(|each| named == Some(&each.provider.name))
            && options.default_provider == each.provider.name
            && !each.uses.contains(&Use::Summarize)
        {
            each.uses.push(Use::Summarize);
        }
        found.sort_by(|a, b| a.provider.name.cmp(&b.provider.name));
        Ok(found)
    }

    /// Returns the first variable that is set and may contain the key of `known`.
    pub(super) fn key_of(&self, known: &Known) -> Option<&'static str> {
        known.keys.iter().copied().find(|name| self.keys.iter().any(|set| set == name))
    }

    /// Returns the provider `known` if variables define it.
    fn known(&self, known: &Known, options: &Options) -> Result<Option<Configured>> {
        let named = self.variables.get("PERSISTENCE_SUMMARIZATION_PROVIDER").is_some_and(|name| {
            // If the user named this provider for summaries, it counts as defined even without its key. Asking the
            // provider then reports the missing key.
            name == known.name && options.default_provider == known.name
        });
        let variable = |what: &str| {
            let name = known.name.to_uppercase();
            let get = |prefix| self.variables.get(&format!("{prefix}_{name}_{what}")).cloned();
            get("TIRO").or_else(|| get("PERSISTENCE"))
        };
        let model = variable("MODEL");
        let key = self.key_of(known);
        // A key alone configures nothing, because it may be there for another program. If a variable of ours names the
        // model, this is the user's choice.
        let is_there = model.is_some() && (known.service == Service::Ollama || key.is_some());
        if !is_there && !named {
            return Ok(None);
        }
        if model.as_ref().is_some_and(|model| !is_model(model)) {
            let name = known.name.to_uppercase();
            return Err(Error::bad_input(format!(
                "the variable TIRO_{name}_MODEL is not the name of a model"
            ))
            .hint(format!("give {MODEL}")));
        }
        let endpoint = (known.service == Service::Ollama).then(|| variable("ENDPOINT")).flatten();
        if let Some(endpoint) = &endpoint {
            host(endpoint).map_err(|error| error.hint("correct the variable TIRO_OLLAMA_ENDPOINT"))?;
        }
        let provider = Provider {
            name: known.name.into(),
            service: known.service,
            endpoint,
            model: model.unwrap_or_else(|| known.model.into()),
            key: key.or(known.keys.first().copied()).map_or(Key::None, |name| Key::Variable(name.into())),
            max_output: None,
            temperature: None,
            window: None,
            price: None,
        };
        let uses = usual_uses(&provider);
        Ok(Some(Configured {
            provider,
            uses,
            memory: true,
            limits: Limits::default(),
            origin: Origin::Environment,
            place: None,
        }))
    }
}

/// Returns the default uses of a provider.
fn usual_uses(provider: &Provider) -> Vec<Use> {
    match provider.is_local() {
        true => vec![Use::Summarize, Use::Consult],
        false => vec![Use::Consult],
    }
}

/// Reads the table of one provider in the file.
struct ProviderReader<'a> {
    name: &'a str,
    path: &'a Path,
    document: &'a Document<String>,
    sources: &'a Sources,
}

impl ProviderReader<'_> {
    fn provider(&self, item: &Item) -> Result<Configured> {
        let Some(table) = item.as_table_like().filter(|_| is_provider(self.name)) else {
            let place = file::place(self.path, self.document, item);
            let hint = match Known::called(self.name) {
                Some(known) if known.name != self.name => format!("call it `{}`", known.name),
                _ => "name it in lower-case letters, digits, - and _, and give it a table".to_owned(),
            };
            return Err(Error::bad_input(format!("`providers.{}` in {place} is not a provider", self.name))
                .hint(hint));
        };
        let service = match table.get("service") {
            Some(item) => {
                let word = self.text(item, "service", SERVICES)?;
                Service::parse(&word).ok_or_else(|| self.wrong(item, "service", SERVICES))?
            }
            None => usual_service(self.name).ok_or_else(|| {
                let place = file::place(self.path, self.document, item);
                Error::bad_input(format!("`providers.{}` in {place} names no `service`", self.name))
                    .hint(format!("give {SERVICES}"))
            })?,
        };
        let usual = Known::of(self.name, service);
        let mut configured = Configured {
            provider: Provider {
                name: self.name.to_owned(),
                service,
                endpoint: None,
                model: usual.map(|known| known.model.to_owned()).unwrap_or_default(),
                key: Key::None,
                max_output: None,
                temperature: None,
                window: None,
                price: None,
            },
            uses: Vec::new(),
            memory: true,
            limits: Limits::default(),
            origin: Origin::File,
            place: Some(file::place(self.path, self.document, item)),
        };
        for (field, item) in table.iter().filter(|(field, _)| *field != "service") {
            self.field(&mut configured, field, item)?;
        }
        let provider = &mut configured.provider;
        if provider.model.is_empty() {
            let place = file::place(self.path, self.document, item);
            return Err(Error::bad_input(format!("`providers.{}` in {place} names no `model`", self.name))
                .hint("give the model's name as its server spells it"));
        }
        if provider.endpoint.is_none() {
            provider.endpoint = usual.and_then(|usual| usual.endpoint).map(str::to_owned);
        }
        if service == Service::OpenaiCompatible && provider.endpoint.is_none() {
            let place = file::place(self.path, self.document, item);
            return Err(Error::bad_input(format!(
                "`providers.{}` in {place} names no `endpoint`",
                self.name
            ))
            .hint("give the address of the server, such as http://localhost:8080/v1"));
        }
        // The key of a service is sent only to the service itself. A provider with another address needs a key that is
        // configured for this provider.
        if let (Key::None, None, Some(usual)) = (&provider.key, &provider.endpoint, usual) {
            let set = self.sources.key_of(usual).or(usual.keys.first().copied());
            provider.key = set.map_or(Key::None, |name| Key::Variable(name.into()));
        }
        if table.get("uses").is_none() {
            configured.uses = usual_uses(provider);
        }
        Ok(configured)
    }

    fn field(&self, configured: &mut Configured, field: &str, item: &Item) -> Result<()> {
        const NUMBER: &str = "a whole number, 1 or more";
        let count = || {
            let number = self.text(item, field, NUMBER)?.parse().ok().filter(|number| *number > 0);
            number.map(Some).ok_or_else(|| self.wrong(item, field, NUMBER))
        };
        let provider = &mut configured.provider;
        match field {
            "model" => {
                let name = self.text(item, field, MODEL)?;
                if !is_model(&name) {
                    return Err(self.wrong(item, field, MODEL));
                }
                provider.model = name;
            }
            "endpoint" => {
                let endpoint = self.text(item, field, ENDPOINT)?;
                host(&endpoint).map_err(|_| self.wrong(item, field, ENDPOINT))?;
                provider.endpoint = Some(endpoint);
            }
            "key_variable" => {
                let name = self.text(item, field, VARIABLE)?;
                // The value may be a key, so the error does not quote the value.
                if !is_variable(&name) {
                    return Err(self.wrong(item, field, VARIABLE));
                }
                provider.key = Key::Variable(name);
            }
            "key_file" => provider.key = Key::File(PathBuf::from(self.text(item, field, "a path")?)),
            "max_output" => provider.max_output = count()?,
            "window" => provider.window = count()?,
            "temperature" => provider.temperature = Some(self.temperature(item)?),
            "memory" => {
                let flag = item.as_bool();
                configured.memory = flag.ok_or_else(|| self.wrong(item, field, "true or false"))?;
            }
            "uses" => configured.uses = self.uses(item)?,
            "price" => provider.price = Some(self.price(item)?),
            "limits" => configured.limits = self.limits(item)?,
            _ => {
                let place = file::place(self.path, self.document, item);
                let message = format!("`providers.{}.{field}` in {place} is not a setting", self.name);
                return Err(Error::bad_input(message).hint(
                    "the settings are service, endpoint, model, key_variable, key_file, uses, memory, max_output, \
                     temperature, window, price and limits",
                ));
            }
        }
        Ok(())
    }

    fn temperature(&self, item: &Item) -> Result<f64> {
        const RIGHT: &str = "a number, 0 to 2";
        let number: Option<f64> = self.text(item, "temperature", RIGHT)?.parse().ok();
        let number = number.filter(|number| (0.0..=2.0).contains(number));
        number.ok_or_else(|| self.wrong(item, "temperature", RIGHT))
    }

    fn uses(&self, item: &Item) -> Result<Vec<Use>> {
        const RIGHT: &str = "a list of summarize, embed and consult";
        let words = self.text(item, "uses", RIGHT)?;
        let uses = words.split([END, ',']).map(str::trim).filter(|word| !word.is_empty());
        let uses: Option<Vec<Use>> = uses.map(purpose).collect();
        uses.ok_or_else(|| self.wrong(item, "uses", RIGHT))
    }

    fn price(&self, item: &Item) -> Result<Price> {
        const RIGHT: &str = "{ input = DOLLARS, output = DOLLARS } for a million tokens";
        let wrong = || self.wrong(item, "price", RIGHT);
        let table = item.as_table_like().ok_or_else(wrong)?;
        let part = |name: &str| {
            let words = table.get(name).and_then(Item::as_value).and_then(file::words);
            let amount: Option<f64> = words.and_then(|words| words.parse().ok());
            amount.filter(|n| (0.0..=1e6).contains(n)).ok_or_else(wrong)
        };
        if table.iter().any(|(name, _)| !["input", "output"].contains(&name)) {
            return Err(wrong());
        }
        Ok(Price { input: part("input")?, output: part("output")? })
    }

    fn limits(&self, item: &Item) -> Result<Limits> {
        const RIGHT: &str = "{ call = DOLLARS, day = DOLLARS }, 0 or at least 0.000001";
        let table = item.as_table_like().ok_or_else(|| self.wrong(item, "limits", RIGHT))?;
        let mut limits = Limits::default();
        for (name, item) in table.iter() {
            let wrong = || self.wrong(item, "limits", RIGHT);
            let words = item.as_value().and_then(file::words);
            let money = words.and_then(|words| Money::parse(&words)).ok_or_else(wrong)?;
            match name {
                "call" => limits.call = Some(money),
                "day" => limits.day = Some(money),
                _ => return Err(wrong()),
            }
        }
        Ok(limits)
    }

    fn text(&self, item: &Item, field: &str, right: &str) -> Result<String> {
        let words = item.as_value().and_then(file::words).map(|words| words.trim().to_owned());
        words.ok_or_else(|| self.wrong(item, field, right))
    }

    fn wrong(&self, item: &Item, field: &str, right: &str) -> Error {
        let place = file::place(self.path, self.document, item);
        Error::bad_input(format!("`providers.{}.{field}` in {place} is invalid", self.name))
            .hint(format!("give {right}"))
    }
}

const SERVICES: &str = "openai, openai-responses, anthropic, gemini, ollama or openai-compatible";
const MODEL: &str = "the model's name as the service spells it: at most 200 letters, digits and marks";
const VARIABLE: &str =
    "the name of a variable, such as OPENAI_API_KEY; the key itself does not belong in the file";

/// Returns the use called `word`.
pub fn purpose(word: &str) -> Option<Use> {
    match word {
        "summarize" => Some(Use::Summarize),
        "embed" => Some(Use::Embed),
        "consult" => Some(Use::Consult),
        _ => None,
    }
}

/// Returns whether `name` is a valid name of a provider.
pub fn is_provider(name: &str) -> bool {
    is_name(&name.to_owned())
}

/// Returns whether `name` is a valid name of a variable for a key.
pub fn is_variable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (2..=64).contains(&name.len()) && name.as_bytes()[0].is_ascii_uppercase() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
