//! Configures the provider that makes summaries. The rules limit what an agent may set, because a text in the memory
//! could instruct an agent to send data elsewhere.
//!
//! An agent can't name a new address, can't send a key to a service for which the key isn't meant, and can't store a
//! key. It can't choose a model whose requests a local server passes on. If summaries have been made on this machine so
//! far, it can't make an external provider the default. It also can't allow a provider to make summaries if that
//! provider is external or was external before. Only the user can do these things, on the command line or in the file.
//!
//! On this machine, an agent may use only the default ports of Ollama, llama.cpp, LM Studio and vLLM, and each port
//! only for the provider with the name of that server. Such a provider may make summaries at once, because nothing
//! leaves the machine. An agent can also set the model, the length of answers and the temperature, and choose the
//! default among the allowed providers. The rules are checked against the provider's current state while the lock for
//! the change is held, so concurrent calls can't get around them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::provider::providers;
use tiro_base::error::{Error, Result};
use tiro_host::caller::Caller;
use tiro_host::config::{self, Change, Configured, Options, Use};
use tiro_host::engine::Engine;
use tiro_llm::{Key, Service, is_model};

/// The tool's name.
pub const NAME: &str = "configure_llm_provider";
/// The title that clients show to people.
pub const TITLE: &str = "Configure a provider";
/// The description that agents read.
pub const DESCRIPTION: &str = "Sets the model that makes summaries, only if the user asks; `operation: show` lists \
    what is configured. Endpoints must be local or the user's own; keys stay in variables.";

/// The arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Such as ollama, openai, anthropic, google.
    pub provider: Option<String>,
    /// What to do.
    #[serde(default)]
    #[schemars(description = "")]
    pub operation: Operation,
    /// The settings to change.
    #[schemars(description = "")]
    pub config: Option<Config>,
    /// Whether to make the provider the default, which is asked first.
    #[serde(default)]
    #[schemars(description = "")]
    pub set_as_default: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Add a provider or change its settings.
    #[default]
    Set,
    /// List the configured providers.
    Show,
    /// Make a provider the default.
    Default,
}

/// The settings of a provider.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Config {
    /// Its name, if the argument `provider` is left out.
    #[schemars(description = "")]
    pub provider: Option<String>,
    /// Its base URL.
    #[schemars(description = "")]
    pub endpoint: Option<String>,
    /// The model.
    #[schemars(description = "")]
    pub model: Option<String>,
    /// A variable's name.
    pub api_key_env: Option<String>,
    /// The most tokens of an answer.
    #[schemars(description = "")]
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    #[schemars(description = "")]
    pub temperature: Option<f64>,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The configured providers.
    pub providers: Vec<Provider>,
    /// The provider that is asked first, if it is allowed to make summaries.
    pub default: String,
    /// Whether the configuration changed.
    pub changed: bool,
    /// Further notices for the agent and the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A configured provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Its host, or `this machine`.
    pub place: String,
    /// The uses that the user allowed: `summarize`, `embed`, `consult`.
    pub uses: Vec<String>,
}

/// Adds, changes or lists providers. Errors if the change would send data or a key to a place that the user did not
/// configure.
pub async fn run(engine: &Engine, _: &Caller, args: Args) -> Result<Output> {
    let Args { provider: named, operation, config: settings, set_as_default } = args;
    let mut settings = settings.unwrap_or_default();
    let named = named.or(settings.provider.take());
    if operation == Operation::Show {
        return output(engine, false, Vec::new()).await;
    }
    let Some(name) = named else {
        return Err(Error::bad_input("`provider` is missing")
            .hint("such as ollama, llama.cpp, openai, anthropic or google"));
    };
    refuse_secrets(engine, [Some(&name), settings.model.as_ref(), settings.endpoint.as_ref()]).await?;
    let (options, providers) = providers::read(engine)?;
    let (name, renamed) = providers::configured_name(&providers, &name);
    // The text may be a key, so the error does not repeat it.
    if !config::is_provider(&name) {
        return Err(Error::bad_input(
            "`provider` is not a valid name: use at most 40 lower-case letters, digits, - and _",
        )
        .hint("such as ollama, llama.cpp, openai, anthropic or google"));
    }
    if operation == Operation::Default {
        settings = Config::default();
    }
    let known = providers.iter().find(|each| each.provider.name == name);
    let (endpoint, variable) = (settings.endpoint.clone(), settings.api_key_env.clone());
    let uses = endpoint.as_ref().and_then(|_| uses(&name, known));
    let model = settings.model.clone();
    let becomes_default = set_as_default || operation == Operation::Default;
    let admit = |known: Option<&Configured>| {
        if let Some(model) = &model {
            admit_model(model, &name, known)?;
        }
        if becomes_default {
            admit_default(&name, known, &options, &providers)?;
        }
        if let Some(variable) = &variable {
            admit_variable(variable, &name, endpoint.as_deref(), known)?;
        }
        match &endpoint {
            Some(endpoint) => admit_endpoint(endpoint, &name, known),
            None => Ok(()),
        }
    };
    let change = Change {
        endpoint: settings.endpoint.into(),
        model: settings.model,
        key_variable: settings.api_key_env.into(),
        max_output: settings.max_tokens,
        temperature: settings.temperature,
        uses,
        is_default: becomes_default,
        ..Change::default()
    };
    let mut changed = match operation {
        Operation::Set => providers::add(engine, &name, change, admit)?,
        _ => providers::set(engine, &name, change, admit)?,
    };
    changed.notices.splice(0..0, renamed);
    output(engine, changed.changed, changed.notices).await
}

/// Errors if one of `texts` contains a key, because the key would be written to the file and to the answer.
async fn refuse_secrets(engine: &Engine, texts: [Option<&String>; 3]) -> Result<()> {
    let redactor = &engine.installation().await?.redactor;
    let holds_secret = |text: &&String| !redactor.redact(text).found.is_empty();
    match texts.iter().flatten().any(holds_secret) {
        true => Err(Error::bad_input("the arguments contain a key; it was not stored")
            .hint("the user puts the key into an environment variable; name that variable in `api_key_env`")),
        false => Ok(()),
    }
}

/// Returns the uses that a provider gets when its endpoint is set, or `None` if its uses do not change. If an external
/// service is moved to this machine, it is still not allowed to make summaries.
fn uses(name: &str, known: Option<&Configured>) -> Option<Vec<Use>> {
    let service = known.map(|each| each.provider.service).or(config::usual_service(name))?;
    let uses = known.map_or(&[Use::Consult][..], |each| &each.uses);
    let is_served_here = service.is_local(config::usual_endpoint(name, service));
    (!is_served_here && !uses.contains(&Use::Summarize)).then(|| uses.to_vec())
}

/// Errors if Ollama would pass requests for the model to its makers, although the requests of this provider have stayed
/// on this machine so far.
fn admit_model(model: &str, name: &str, known: Option<&Configured>) -> Result<()> {
    let service = known.map(|each| each.provider.service).or(config::usual_service(name));
    let is_passed_on = is_model(model) && service.is_some_and(|service| service.passes_on(model));
    match is_passed_on && known.is_none_or(Configured::is_local) {
        true => Err(Error::bad_input("Ollama passes requests for this model to another machine")
            .hint("only the user can name such a model: `tiro provider add NAME --model MODEL`")),
        false => Ok(()),
    }
}

/// Errors if summaries would be made on another machine, although they have been made on this machine so far.
fn admit_default(
    name: &str,
    known: Option<&Configured>,
    options: &Options,
    providers: &[Configured],
) -> Result<()> {
    let leaves = |each: &Configured| !each.is_local() && each.uses.contains(&Use::Summarize);
    let asked = [&options.default_provider, &options.fallback_provider];
    let is_asked = |each: &&Configured| asked.into_iter().any(|asked| *asked == each.provider.name);
    let left_before = providers.iter().filter(is_asked).any(leaves);
    match known.is_some_and(leaves) && !left_before {
        true => Err(Error::bad_input(format!("summaries would leave this machine if `{name}` made them"))
            .hint("only the user can decide that: `tiro provider default NAME`")),
        false => Ok(()),
    }
}

/// Accepts the endpoint that the user configured for the provider, and the default address of a model server on this
/// machine. Errors for any other endpoint.
///
/// Any other port of this machine may belong to a database, a development server or an administration page.
/// Each summary would send messages of the project there.
fn admit_endpoint(endpoint: &str, name: &str, known: Option<&Configured>) -> Result<()> {
    let host = config::host(endpoint)?;
    if known.is_some_and(|each| each.provider.endpoint.as_deref() == Some(endpoint)) {
        return Ok(());
    }
    let hint = "only the user can name another endpoint: `tiro provider add NAME --endpoint URL`";
    if !config::is_loopback(host) {
        let message = "`endpoint` is neither on this machine nor the one configured for the provider";
        return Err(Error::bad_input(message).hint(hint));
    }
    if known.is_some_and(|each| each.provider.key != Key::None) {
        return Err(Error::bad_input(format!(
            "`endpoint` would send the key of `{name}` to an address for which the key was not configured"
        ))
        .hint(hint));
    }
    let service = known.map(|each| each.provider.service).or(config::usual_service(name));
    match service.is_some_and(|service| is_own_port(name, service, endpoint, host)) {
        true => Ok(()),
        false => Err(Error::bad_input(format!(
            "`endpoint` is neither the default address of `{name}` on this machine nor one that the user configured"
        ))
        .hint(hint)),
    }
}

/// Returns whether `endpoint` is the default address of the server called `name`. `host` is the host of `endpoint`. It
/// must be a loopback address.
fn is_own_port(name: &str, service: Service, endpoint: &str, host: &str) -> bool {
    let usual = config::usual_endpoint(name, service);
    let Some(own) = usual.filter(|own| config::host(own).is_ok_and(config::is_loopback)) else {
        return false;
    };
    let behind = |address: &str, host: &str| {
        let (_, rest) = address.split_once(host)?;
        let rest = rest.trim_start_matches(']').trim_end_matches('/');
        // An address with the path `/v1` counts like an address without a path, because requests then use the service's
        // default path.
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

/// Accepts the variable that is configured for the provider. Also accepts a variable for keys of the provider's own
/// service, if the provider has the default address of that service. Errors for any other variable.
fn admit_variable(
    variable: &str,
    name: &str,
    endpoint: Option<&str>,
    known: Option<&Configured>,
) -> Result<()> {
    let is_plausible = config::is_variable(variable) && variable.ends_with("_API_KEY");
    if !is_plausible {
        // The text may be a key, so the error does not repeat it.
        return Err(Error::bad_input(
            "`api_key_env` is not the name of a variable that holds a key; it was not stored",
        )
        .hint("give the name, such as OPENAI_API_KEY, and let the user set the variable"));
    }
    if known.is_some_and(|each| each.provider.key == Key::Variable(variable.to_owned())) {
        return Ok(());
    }
    let hint = "only the user can name another variable: `tiro provider add NAME --key-variable VARIABLE`";
    // A server on this machine, or at an address that the user gave, is not the service to which the key belongs.
    if endpoint.or(known.and_then(|each| each.provider.endpoint.as_deref())).is_some() {
        let message = format!("`api_key_env` would send a key to the endpoint of `{name}`");
        return Err(Error::bad_input(message).hint(hint));
    }
    let service = known.map(|each| each.provider.service).or(config::usual_service(name));
    let own = service.map_or(&[][..], config::own_keys);
    match own.contains(&variable) {
        true => Ok(()),
        false => {
            Err(Error::bad_input(format!("`api_key_env` does not name a variable for keys of `{name}`"))
                .hint(match own.first() {
                    Some(own) => format!("give {own}; {hint}"),
                    None => hint.to_owned(),
                }))
        }
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
    /// Returns the answer as text.
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
