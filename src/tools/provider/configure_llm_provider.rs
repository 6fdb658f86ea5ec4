//! Configures who makes summaries, as far as a model may: whoever reads memory could be told to by what it read.
//!
//! So it can't send anything to a new place, can't send a key anywhere but to the service that it is for, holds no key
//! itself, and can't let what is or was an external provider summarise: that a user says, on the command line or in the
//! file. Of this machine's ports it reaches those where a server of models listens unless told otherwise, and each only by
//! that server's name: Ollama's, llama.cpp's, LM Studio's and vLLM's. One of these may summarise as soon as it is named,
//! since nothing leaves the machine for it. What it may do beside is what is left: model, answer's length, temperature, and
//! which of the allowed is the default. The rules look at a provider as it stands, in the same turn in which it is changed,
//! so that two calls get no further than one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::config::{self, Change, Configured, Use};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::llm::{Key, Service};
use crate::tools::provider::providers;

/// The name agents call it by.
pub const NAME: &str = "configure_llm_provider";
/// The name people are shown.
pub const TITLE: &str = "Configure a provider";
/// What agents are told of it.
pub const DESCRIPTION: &str = "Only on the user's request. Sets the model that makes summaries; `operation` show lists \
    what is configured. Endpoints must be local or the user's own; keys stay in variables.";

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Such as ollama, openai, anthropic, google.
    pub provider: Option<String>,
    /// What to do.
    #[serde(default)]
    #[schemars(description = "")]
    pub operation: Operation,
    /// What is said of it.
    #[schemars(description = "")]
    pub config: Option<Config>,
    /// Whether it is asked first from now on.
    #[serde(default)]
    #[schemars(description = "")]
    pub set_as_default: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Say something of a provider.
    #[default]
    Set,
    /// List what is configured.
    Show,
    /// Prefer a provider.
    Default,
}

/// What is said of a provider.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Config {
    /// Its name, where it doesn't stand beside.
    #[schemars(description = "")]
    pub provider: Option<String>,
    /// Its address.
    #[schemars(description = "")]
    pub endpoint: Option<String>,
    /// The model.
    #[schemars(description = "")]
    pub model: Option<String>,
    /// A variable's name.
    pub api_key_env: Option<String>,
    /// Tokens of an answer at most.
    #[schemars(description = "")]
    pub max_tokens: Option<u64>,
    /// How freely it answers.
    #[schemars(description = "")]
    pub temperature: Option<f64>,
}

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The providers that there are now.
    pub providers: Vec<Provider>,
    /// Who is asked first, where it is allowed.
    pub default: String,
    /// Whether the configuration changed.
    pub changed: bool,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Where it is.
    pub place: String,
    /// What it may be asked for.
    pub uses: Vec<String>,
}

/// Sets, shows or prefers.
pub async fn run(engine: &Engine, _: &Caller, args: Args) -> Result<Output> {
    let Args { provider: named, operation, config: said, set_as_default } = args;
    let mut said = said.unwrap_or_default();
    let named = named.or(said.provider.take());
    if operation == Operation::Show {
        return output(engine, false, Vec::new()).await;
    }
    let Some(name) = named else {
        return Err(Error::bad_input("`provider` is missing")
            .hint("such as ollama, llama.cpp, openai, anthropic or google"));
    };
    refuse_secrets(engine, [Some(&name), said.model.as_ref(), said.endpoint.as_ref()]).await?;
    let (_, providers) = providers::read(engine)?;
    let (name, renamed) = providers::called(&providers, &name);
    // It may be a key, so it is not repeated.
    if !config::is_provider(&name) {
        return Err(Error::bad_input(
            "`provider` is no name: at most 40 lower-case letters, digits, - and _",
        )
        .hint("such as ollama, llama.cpp, openai, anthropic or google"));
    }
    if operation == Operation::Default {
        said = Config::default();
    }
    let known = providers.iter().find(|each| each.provider.name == name);
    let (endpoint, variable) = (said.endpoint.clone(), said.api_key_env.clone());
    let uses = endpoint.as_ref().and_then(|_| uses(&name, known));
    let admit = |known: Option<&Configured>| {
        if let Some(variable) = &variable {
            admit_variable(variable, &name, endpoint.as_deref(), known)?;
        }
        match &endpoint {
            Some(endpoint) => admit_endpoint(endpoint, &name, known),
            None => Ok(()),
        }
    };
    let change = Change {
        endpoint: said.endpoint.into(),
        model: said.model,
        key_variable: said.api_key_env.into(),
        max_output: said.max_tokens,
        temperature: said.temperature,
        uses,
        is_default: set_as_default || operation == Operation::Default,
        ..Change::default()
    };
    let mut changed = match operation {
        Operation::Set => providers::add(engine, &name, change, admit)?,
        _ => providers::set(engine, &name, change, admit)?,
    };
    changed.notices.splice(0..0, renamed);
    output(engine, changed.changed, changed.notices).await
}

/// Refuses texts that hold a key: they would stand in a file, and in this answer.
async fn refuse_secrets(engine: &Engine, texts: [Option<&String>; 3]) -> Result<()> {
    let redactor = &engine.installation().await?.redactor;
    let holds_secret = |text: &&String| !redactor.redact(text).found.is_empty();
    match texts.iter().flatten().any(holds_secret) {
        true => Err(Error::bad_input("a key stands in `config`; it was not stored")
            .hint("the user puts the key into an environment variable; name that in `api_key_env`")),
        false => Ok(()),
    }
}

/// Returns what a provider is to be asked for whose address is set: a service elsewhere that is moved to this machine is not
/// asked for summaries because of that. `None` where it stays as it is.
fn uses(name: &str, known: Option<&Configured>) -> Option<Vec<Use>> {
    let service = known.map(|each| each.provider.service).or(config::usual_service(name))?;
    let uses = known.map_or(&[Use::Consult][..], |each| &each.uses);
    let is_served_here = service.is_local(config::usual_endpoint(name, service));
    (!is_served_here && !uses.contains(&Use::Summarize)).then(|| uses.to_vec())
}

/// Admits where the user has the provider already, and the address that a server on this machine has of its own.
///
/// Any other port of this machine may be anything: a database, a development server, an administration page. What would
/// be sent there is memory of every project, and it would be sent again with each summary.
fn admit_endpoint(endpoint: &str, name: &str, known: Option<&Configured>) -> Result<()> {
    let host = config::host(endpoint)?;
    if known.is_some_and(|each| each.provider.endpoint.as_deref() == Some(endpoint)) {
        return Ok(());
    }
    let hint = "only the user can name another: `tiro provider add NAME --endpoint URL`";
    if !config::is_loopback(host) {
        let message = "`endpoint` is neither on this machine nor the one configured for the provider";
        return Err(Error::bad_input(message).hint(hint));
    }
    if known.is_some_and(|each| each.provider.key != Key::None) {
        return Err(Error::bad_input(format!(
            "`endpoint` would send the key of `{name}` to another place than it was configured for"
        ))
        .hint(hint));
    }
    let service = known.map(|each| each.provider.service).or(config::usual_service(name));
    match service.is_some_and(|service| is_own_port(name, service, endpoint, host)) {
        true => Ok(()),
        false => Err(Error::bad_input(format!(
            "`endpoint` is neither the address that `{name}` has of its own on this machine nor one that the user configured"
        ))
        .hint(hint)),
    }
}

/// Returns whether `endpoint`, which is at `host` of this machine, is where the server called `name` listens unless told
/// otherwise.
fn is_own_port(name: &str, service: Service, endpoint: &str, host: &str) -> bool {
    let usual = config::usual_endpoint(name, service);
    let Some(own) = usual.filter(|own| config::host(own).is_ok_and(config::is_loopback)) else {
        return false;
    };
    let behind = |address: &str, host: &str| {
        let (_, rest) = address.split_once(host)?;
        let rest = rest.trim_start_matches(']').trim_end_matches('/');
        // Without a path it is asked at the service's own.
        Some(
            rest.strip_suffix("/v1")
                .filter(|_| service == Service::OpenaiCompatible)
                .unwrap_or(rest)
                .to_owned(),
        )
    };
    let own_port = config::host(own).ok().and_then(|host| behind(own, host));
    endpoint.starts_with("http://") && own_port.is_some() && behind(endpoint, host) == own_port
}

/// Admits the variables that hold the key of the provider's own service, for its own address.
fn admit_variable(
    variable: &str,
    name: &str,
    endpoint: Option<&str>,
    known: Option<&Configured>,
) -> Result<()> {
    let is_plausible = config::is_variable(variable) && variable.ends_with("_API_KEY");
    if !is_plausible {
        // It may be a key, so it is not repeated.
        return Err(Error::bad_input(
            "`api_key_env` is no name of a variable that holds a key; it was not stored",
        )
        .hint("give the name, such as OPENAI_API_KEY, and let the user set the variable"));
    }
    if known.is_some_and(|each| each.provider.key == Key::Variable(variable.to_owned())) {
        return Ok(());
    }
    let hint = "only the user can say so: `tiro provider add NAME --key-variable VARIABLE`";
    // What listens on this machine, or at an address of the user's, is not the service that a key was made for.
    if endpoint.or(known.and_then(|each| each.provider.endpoint.as_deref())).is_some() {
        let message = format!("`api_key_env` would send a key to the endpoint of `{name}`");
        return Err(Error::bad_input(message).hint(hint));
    }
    let service = known.map(|each| each.provider.service).or(config::usual_service(name));
    let own = service.map_or(&[][..], config::own_keys);
    match own.contains(&variable) {
        true => Ok(()),
        false => Err(Error::bad_input(format!("`api_key_env` names no variable with a key of `{name}`"))
            .hint(match own.first() {
                Some(own) => format!("give {own}; {hint}"),
                None => hint.to_owned(),
            })),
    }
}

async fn output(engine: &Engine, changed: bool, notices: Vec<String>) -> Result<Output> {
    let shown = providers::show(engine, None, true).await?;
    let providers = shown.providers.into_iter().map(|each| Provider {
        name: each.name,
        model: each.model,
        place: each.place,
        uses: each.uses.into_iter().map(|purpose| providers::word(purpose).to_owned()).collect(),
    });
    Ok(Output { providers: providers.collect(), default: shown.default, changed, notices })
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let mut text = if self.changed { "Changed." } else { "Nothing changed." }.to_owned();
        for Provider { name, model, place, uses } in &self.providers {
            let uses = if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") };
            let role = if *name == self.default { ", the default" } else { "" };
            text += &format!("\n{name}{role}: {model} at {place}, asked for {uses}");
        }
        if self.providers.is_empty() {
            text += "\nNo provider is configured: summaries are made without a model.";
        }
        for notice in &self.notices {
            text += &format!("\n{notice}");
        }
        text
    }
}
