//! Lists the providers of language models, and the data that leaves the machine for each. Adds, changes, tests and
//! removes providers.

mod text;

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::provider::spending::{Day, days};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::Content;
use tiro_host::ask::{self, named};
use tiro_host::caller::Caller;
use tiro_host::config::{self, Change, Configured, Encoding, External, Options, Use};
use tiro_host::engine::Engine;
use tiro_llm::{Key, Request, Service, Turn};
use tiro_store::{Matter, Purpose, Sources};

/// The longest time that a test request may take.
const TRIAL: Duration = Duration::from_secs(60);

/// The maximum number of tokens of the answer to a test request. Reasoning models spend tokens before they answer.
const TRIAL_OUTPUT: usize = 512;

/// The answer of `tiro provider list` and `show`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The configuration file.
    pub file: Option<String>,
    /// The provider that is asked first for summaries, if the user allows it to make them.
    pub default: String,
    /// The provider that is asked if the default fails.
    pub fallback: String,
    /// The provider that makes summaries with the present configuration. `None` if summaries are made without a model.
    pub summaries: Option<String>,
    /// The providers or models on this machine that embed prose and code with the present configuration.
    pub embeddings: [String; 2],
    /// Providers that are configured for summaries but can't be asked, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<String>,
    /// Whether anything may leave this machine.
    pub external: bool,
    /// The providers.
    pub providers: Vec<Shown>,
    /// The spending limits of all providers together.
    pub limits: Vec<String>,
    /// Spending by day, the latest day first.
    pub spending: Vec<Day>,
    #[serde(skip)]
    is_brief: bool,
}

/// A provider as `tiro provider list` shows it.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// The service, which decides the protocol.
    pub service: Service,
    /// Its host, or `this machine`.
    pub place: String,
    /// Whether it runs on this machine.
    pub is_local: bool,
    /// Its model.
    pub model: String,
    /// The uses that the user allowed.
    pub uses: Vec<Use>,
    /// Whether it may search the memory while it is consulted.
    pub memory: bool,
    /// The place where the key is stored, and whether the key can be read. The key itself is never shown.
    pub key: String,
    /// Its own spending limits.
    pub limits: String,
    /// The data that is sent from this machine to the provider.
    pub discloses: String,
    /// The place where the provider is configured: the file or environment variables.
    pub origin: config::Origin,
}

/// The answer of a command that changes a provider.
#[derive(Debug, Serialize)]
pub struct Changed {
    /// The provider.
    pub name: String,
    /// The configuration file.
    pub file: String,
    /// Whether the file changed.
    pub changed: bool,
    /// Whether the provider was not configured before.
    pub is_new: bool,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// The answer of `tiro provider test`.
#[derive(Debug, Serialize)]
pub struct Tested {
    /// The provider.
    pub name: String,
    /// Its model.
    pub model: String,
    /// The beginning of its answer.
    pub answer: String,
    /// The duration, in milliseconds.
    pub ms: u64,
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
    /// The cost in US dollars.
    pub cost: f64,
    /// The number of tokens that were sent to each provider, and the cost.
    pub disclosure: String,
    /// The providers that were asked before this one and failed, each with the reason.
    pub notices: Vec<String>,
}

/// Returns every provider, or the one called `name`. Changes nothing and sends no request.
pub async fn show(engine: &Engine, name: Option<&str>, is_brief: bool) -> Result<Output> {
    let (options, mut providers) = read(engine)?;
    let name = name.map(|name| configured_name(&providers, name).0);
    let name = name.as_deref();
    if let Some(name) = name {
        providers = vec![find(providers, name)?];
    }
    let rows = engine.installation().await?.registry.spending().await?;
    let limit = |name: &str, amount: Option<tiro_base::money::Money>| amount.map(|it| format!("{name} {it}"));
    let limits = [
        limit("one call", options.limit_call),
        limit("a day", options.limit_day),
        limit("a project", options.limit_project),
        limit("everything", options.limit_total),
    ];
    // A provider that can't be asked is skipped.
    let (mut summaries, mut idle) = (None, Vec::new());
    for each in ask::candidates(engine, Use::Summarize)?.1 {
        let fault = ask::check_price(&each.provider);
        let fault = fault.and_then(|()| each.check_encryption());
        match fault.and_then(|()| config::key(&each.provider.key).map(drop)) {
            Ok(()) => summaries = summaries.or(Some(each.provider.name)),
            Err(error) => idle.push(format!("`{}` is not asked: {}", each.provider.name, error.with_hint())),
        }
    }
    let mut spending = days(rows);
    spending.retain(|day| name.is_none_or(|name| day.provider == name));
    Ok(Output {
        file: engine.config().sources.file.as_ref().map(|file| file.display().to_string()),
        default: options.default_provider.clone(),
        fallback: options.fallback_provider.clone(),
        summaries,
        embeddings: [Content::Prose, Content::Code].map(|content| embeds(engine, &options, content)),
        idle,
        external: options.external == External::Allowed,
        providers: providers.iter().map(|each| shown(each, &options)).collect(),
        limits: limits.into_iter().flatten().collect(),
        spending,
        is_brief,
    })
}

/// Adds a provider, or changes it as [`set`] does. If `name` is the name of a known service, an empty `change` suffices
/// to add that service.
pub fn add(
    engine: &Engine,
    name: &str,
    mut change: Change,
    admit: impl FnOnce(Option<&Configured>) -> Result<()>,
) -> Result<Changed> {
    let (_, before) = read(engine)?;
    if change.is_empty() && named(&before, name).is_none() {
        change.service = config::usual_service(name).map(|service| service.as_str().to_owned());
    }
    set(engine, name, change, admit)
}

/// Writes `change` into the configuration file. `admit` gets the provider's current state while the file is locked. If
/// `admit` returns an error, nothing is changed.
pub fn set(
    engine: &Engine,
    name: &str,
    mut change: Change,
    admit: impl FnOnce(Option<&Configured>) -> Result<()>,
) -> Result<Changed> {
    let sources = &engine.config().sources;
    let (options, before) = read(engine)?;
    let (name, renamed) = configured_name(&before, name);
    let name = name.as_str();
    let known = before.iter().find(|each| each.provider.name == name);
    if known.is_none() && change.is_empty() {
        return Err(unknown(&before, name));
    }
    if known.is_none() && change.service.is_none() && config::usual_service(name).is_none() {
        return Err(Error::bad_input(format!(
            "there is no provider `{}` yet, so its service must be named",
            quoted(name)
        ))
        .hint("openai, openai-responses, anthropic, gemini, ollama, llamacpp, lmstudio, vllm or openai-compatible"));
    }
    // The first provider that may make summaries becomes the default. Either `change` or the service's defaults may
    // allow summaries.
    let is_named =
        |name: &String| named(&before, name).is_some_and(|each| each.uses.contains(&Use::Summarize));
    let is_first = ![&options.default_provider, &options.fallback_provider].into_iter().any(is_named);
    let summarizes = change.uses.as_ref().is_some_and(|uses| uses.contains(&Use::Summarize));
    change.is_default |= summarizes && is_first;
    let mut changed = config::change(sources, name, &change, admit)?;
    let (mut options, mut after) = read(engine)?;
    let mut set = find(after, name)?;
    if is_first && known.is_none() && set.is_local() && set.uses.contains(&Use::Summarize) {
        let preferred = Change { is_default: true, ..Change::default() };
        changed |= config::change(sources, name, &preferred, |_| Ok(()))?;
        (options, after) = read(engine)?;
        set = find(after, name)?;
    }
    let mut notices: Vec<String> = renamed.into_iter().collect();
    notices.extend(notices_of(&set, &options));
    Ok(Changed {
        name: name.to_owned(),
        file: sources.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
        changed,
        is_new: known.is_none(),
        notices,
    })
}

/// Removes a provider from the configuration file. Errors if no provider has that name.
pub fn remove(engine: &Engine, name: &str) -> Result<Changed> {
    let sources = &engine.config().sources;
    let (name, _) = configured_name(&read(engine)?.1, name);
    let name = name.as_str();
    let changed = config::remove(sources, name)?;
    let (_, after) = read(engine)?;
    let left = after.iter().any(|each| each.provider.name == name);
    if !changed && !left {
        return Err(unknown(&after, name));
    }
    let notices = if left {
        vec![format!("environment variables still configure `{name}`: unset them")]
    } else {
        Vec::new()
    };
    let file = sources.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    Ok(Changed { name: name.to_owned(), file, changed, is_new: false, notices })
}

/// Sends a short text without any memory to the provider called `name`. If `name` is `None`, sends it to the provider
/// that makes summaries. The request has the configured temperature. So a model that refuses this temperature fails the
/// test.
pub async fn test(engine: &Engine, caller: &Caller, name: Option<&str>) -> Result<Tested> {
    let (temperature, usual_temperature) = engine.config().options.temperatures();
    let request = Request {
        system: "You are being tried out.".into(),
        turns: vec![Turn::user("Answer with the one word: ready")],
        max_output: TRIAL_OUTPUT,
        temperature,
        usual_temperature,
        ..Request::default()
    };
    let began = Instant::now();
    let (bill, matter) = (ask::Bill::default(), Matter::of(Purpose::Test, Sources::default()));
    let answered = match name {
        Some(name) => {
            let (options, providers) = read(engine)?;
            let (name, _) = configured_name(&providers, name);
            let found = find(providers, &name)?;
            // If a provider only embeds, its model writes no text.
            let request = match found.uses[..] {
                [Use::Embed] => Request::embedding(["ready".to_owned()]),
                _ => request,
            };
            ask::ask_one(engine, caller, &options, &found, &matter, &request, TRIAL, &bill, None).await
        }
        None => ask::ask(engine, caller, Use::Summarize, &matter, &request, TRIAL, &bill).await,
    };
    let answered = answered.map_err(|error| {
        let sent: String = bill.disclosures().iter().map(|line| format!("; {line}")).collect();
        error.reworded(format!("{error}{sent}"))
    })?;
    Ok(Tested {
        disclosure: bill.disclosures().join("; "),
        name: answered.provider,
        model: answered.model,
        answer: match answered.reply.vectors.first() {
            Some(vector) => format!("a vector of {} numbers", vector.len()),
            None => answered.reply.text.chars().filter(|c| !c.is_control()).take(200).collect(),
        },
        ms: began.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
        input: answered.reply.usage.input,
        output: answered.reply.usage.output,
        cost: bill.total().dollars(),
        notices: answered.notices,
    })
}

/// Returns a text that names the provider or model that embeds texts of `content`.
fn embeds(engine: &Engine, options: &Options, content: Content) -> String {
    match engine.config().sources.encoding(options, content) {
        Ok(Encoding::Local(name)) => match engine.model(name.as_deref()) {
            Ok(model) => format!("{} on this machine", model.name()),
            Err(error) => format!("nothing: {error}"),
        },
        Ok(Encoding::Provider(found)) => format!("{} ({})", found.provider.name, found.provider.model),
        Err(error) => format!("nothing: {error}"),
    }
}

/// Reads the options and the providers from the file and the environment.
pub fn read(engine: &Engine) -> Result<(Options, Vec<Configured>)> {
    let sources = &engine.config().sources;
    let options = sources.options()?;
    let providers = sources.providers(&options)?;
    Ok((options, providers))
}

/// Returns the configured name of the provider that the user calls `name`. If it is not configured, returns the name
/// under which it would be configured. If this name differs from `name`, also returns a notice.
pub fn configured_name(providers: &[Configured], name: &str) -> (String, Option<String>) {
    if providers.iter().any(|each| each.provider.name == name) {
        return (name.to_owned(), None);
    }
    let usual = config::usual_name(name);
    let notice = (usual != name).then(|| format!("`{}` is configured as `{usual}`", quoted(name)));
    (usual, notice)
}

fn find(providers: Vec<Configured>, name: &str) -> Result<Configured> {
    let error = unknown(&providers, name);
    providers.into_iter().find(|each| each.provider.name == name).ok_or(error)
}

fn unknown(providers: &[Configured], name: &str) -> Error {
    let names: Vec<&str> = providers.iter().map(|each| each.provider.name.as_str()).collect();
    let hint = match names.is_empty() {
        true => "none is configured; `tiro provider add` adds one".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    // An invalid name may be a key, so the error does not repeat it.
    let shown = if config::is_provider(name) { format!(" `{name}`") } else { " of that name".to_owned() };
    Error::not_found(format!("there is no provider{shown}")).hint(hint)
}

fn shown(configured: &Configured, options: &Options) -> Shown {
    let provider = &configured.provider;
    let limit =
        |what: &str, amount: Option<tiro_base::money::Money>| amount.map(|amount| format!("{amount} {what}"));
    let limits: Vec<String> =
        [limit("a call", configured.limits.call), limit("a day", configured.limits.day)]
            .into_iter()
            .flatten()
            .collect();
    Shown {
        name: provider.name.clone(),
        service: provider.service,
        place: ask::place(configured),
        is_local: configured.is_local(),
        model: provider.model.clone(),
        uses: configured.uses.clone(),
        memory: configured.memory,
        key: key(&provider.key),
        limits: if limits.is_empty() { "none of its own".into() } else { limits.join(", ") },
        discloses: discloses(configured, options),
        origin: configured.origin,
    }
}

/// Returns where a key is stored and whether it can be read, as text.
fn key(key: &Key) -> String {
    let is_readable = config::key(key).is_ok();
    match key {
        Key::None => "none".into(),
        Key::Variable(name) => {
            format!("variable {name}, {}", if is_readable { "set" } else { "not set" })
        }
        Key::File(path) => {
            format!("file {}, {}", path.display(), if is_readable { "readable" } else { "not readable" })
        }
    }
}

/// Returns a text about the data that is sent from this machine to a provider.
fn discloses(configured: &Configured, options: &Options) -> String {
    if configured.is_local() {
        return "nothing: it is on this machine".into();
    }
    if options.external == External::Never {
        return "nothing: `external` is `never`".into();
    }
    let mut parts = Vec::new();
    for purpose in &configured.uses {
        parts.push(match purpose {
            Use::Summarize => "conversations and commits that are summarised",
            Use::Embed => "every stored text, so that it is embedded",
            Use::Consult if configured.memory => {
                "the questions it is asked, with the files and images that they name, and the memories it finds for them"
            }
            Use::Consult => "the questions it is asked, with the files and images that they name",
        });
    }
    match parts.is_empty() {
        true => "nothing: no use of it is allowed".into(),
        false => format!("{}; secrets are replaced first", parts.join("; ")),
    }
}

fn notices_of(configured: &Configured, options: &Options) -> Vec<String> {
    let provider = &configured.provider;
    let mut notices = Vec::new();
    if let Err(error) = config::key(&provider.key) {
        notices.push(error.with_hint());
    }
    if configured.is_local() && configured.uses.contains(&Use::Summarize) {
        let cost = if provider.price.is_none() { ", at no cost" } else { "" };
        notices.push(format!("it may make summaries, at {}{cost}", provider.host()));
    }
    if configured.may(Use::Consult, options) {
        let (name, tool) = (&provider.name, configured.chat_tool());
        notices.push(format!(
            "agents can ask it with the tool `{tool}`; `tiro chat --with {name}` asks it here"
        ));
    }
    if !configured.is_local() {
        notices.push(format!(
            "sent from this machine to {}: {}",
            ask::place(configured),
            discloses(configured, options)
        ));
        if !configured.uses.contains(&Use::Summarize) {
            let name = &provider.name;
            notices.push(format!(
                "it makes no summaries until the user allows it: `tiro provider add {name} --use summarize`"
            ));
        }
        if let Err(error) = ask::check_price(provider) {
            notices.push(format!("it is not asked: {}", error.with_hint()));
        }
    }
    notices
}

/// Returns the word for a use, as in `--use`.
pub fn word(purpose: Use) -> &'static str {
    match purpose {
        Use::Summarize => "summarize",
        Use::Embed => "embed",
        Use::Consult => "consult",
    }
}
