//! Says which models may be asked and what leaves the machine for them; names, changes, tries and removes them.

mod words;

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::ask::{self, named};
use crate::caller::Caller;
use crate::config::{self, Change, Configured, External, Options, Use};
use crate::engine::Engine;
use crate::error::{Error, Result, quoted};
use crate::llm::{Key, Request, Service, Turn};
use crate::tools::provider::spending::{Day, days};

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(60);

/// Tokens of its answer: models that think before they answer need some.
const TRIAL_OUTPUT: usize = 512;

/// What `tiro provider list` and `show` answer.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The configuration file.
    pub file: Option<String>,
    /// Who is asked for summaries first, where the user allowed it.
    pub default: String,
    /// Who is asked where that fails.
    pub fallback: String,
    /// Who makes summaries as it stands; nobody means that no model does.
    pub summaries: Option<String>,
    /// Who is named for summaries and can't be asked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<String>,
    /// Whether anything may leave this machine.
    pub external: bool,
    /// The providers.
    pub providers: Vec<Shown>,
    /// What may be spent.
    pub limits: Vec<String>,
    /// What was spent, the latest day first.
    pub spending: Vec<Day>,
    #[serde(skip)]
    is_brief: bool,
}

/// A provider as it is shown.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Who serves it.
    pub service: Service,
    /// Where.
    pub place: String,
    /// Whether that is this machine.
    pub is_local: bool,
    /// Its model.
    pub model: String,
    /// What it may be asked for.
    pub uses: Vec<Use>,
    /// Whether it may search the memory while it is consulted.
    pub memory: bool,
    /// Where its key is, and whether it can be had; never the key.
    pub key: String,
    /// What may be spent on it.
    pub limits: String,
    /// What leaves the machine for it.
    pub discloses: String,
    /// Where it is configured.
    pub origin: config::Origin,
}

/// What changing a provider answers.
#[derive(Debug, Serialize)]
pub struct Changed {
    /// The provider.
    pub name: String,
    /// The file that says so.
    pub file: String,
    /// Whether it said something else before.
    pub changed: bool,
    /// What there is to know.
    pub notices: Vec<String>,
}

/// What a trial answers.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// The provider.
    pub name: String,
    /// Its model.
    pub model: String,
    /// What it answered.
    pub answer: String,
    /// How long that took.
    pub ms: u64,
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
    /// US dollars.
    pub cost: f64,
    /// What was sent where.
    pub disclosure: String,
    /// Who did not answer before, and why.
    pub notices: Vec<String>,
}

/// Lists every provider, or shows one; changes nothing and asks nobody.
pub async fn show(engine: &Engine, name: Option<&str>, is_brief: bool) -> Result<Output> {
    let (options, mut providers) = read(engine)?;
    let name = name.map(|name| called(&providers, name).0);
    let name = name.as_deref();
    if let Some(name) = name {
        providers = vec![find(providers, name)?];
    }
    let rows = engine.installation().await?.registry.spending().await?;
    let limit = |name: &str, amount: Option<crate::money::Money>| amount.map(|it| format!("{name} {it}"));
    let limits = [
        limit("one call", options.limit_call),
        limit("a day", options.limit_day),
        limit("a project", options.limit_project),
        limit("everything", options.limit_total),
    ];
    // Who can't be asked is passed over.
    let (mut summaries, mut idle) = (None, Vec::new());
    for each in ask::candidates(engine, Use::Summarize)?.1 {
        let fault = ask::estimate(&each.provider, &Request::default()).map(drop);
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
        idle,
        external: options.external == External::Allowed,
        providers: providers.iter().map(|each| shown(each, &options)).collect(),
        limits: limits.into_iter().flatten().collect(),
        spending,
        is_brief,
    })
}

/// Adds a provider, of which nothing has to be said where its name says enough, or changes it as [`set`] does.
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

/// Writes what `change` says of a provider into the configuration file, where `admit` lets it: it is given the provider as it
/// stands, while nobody else changes it.
pub fn set(
    engine: &Engine,
    name: &str,
    mut change: Change,
    admit: impl FnOnce(Option<&Configured>) -> Result<()>,
) -> Result<Changed> {
    let sources = &engine.config().sources;
    let (options, before) = read(engine)?;
    let (name, renamed) = called(&before, name);
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
    // The first that may summarise is the one to ask: where that is said, and where it goes without saying.
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
    let mut told: Vec<String> = renamed.into_iter().collect();
    told.extend(notices(&set, &options));
    Ok(Changed {
        name: name.to_owned(),
        file: sources.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
        changed,
        notices: told,
    })
}

/// Takes a provider out of the configuration file.
pub fn remove(engine: &Engine, name: &str) -> Result<Changed> {
    let sources = &engine.config().sources;
    let (name, _) = called(&read(engine)?.1, name);
    let name = name.as_str();
    let changed = config::remove(sources, name)?;
    let (_, after) = read(engine)?;
    let left = after.iter().any(|each| each.provider.name == name);
    if !changed && !left {
        return Err(unknown(&after, name));
    }
    let notices = if left {
        vec![format!("variables still make a provider of `{name}`: unset them")]
    } else {
        Vec::new()
    };
    let file = sources.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    Ok(Changed { name: name.to_owned(), file, changed, notices })
}

/// Sends a few words that hold nothing of the memory to a provider, or to whoever would be asked for a summary, at the
/// temperature of any other question: what a model refuses, it refuses now.
pub async fn test(engine: &Engine, caller: &Caller, name: Option<&str>) -> Result<Tried> {
    let request = Request {
        system: "You are being tried out.".into(),
        turns: vec![Turn::User("Answer with the one word: ready".into())],
        max_output: TRIAL_OUTPUT,
        temperature: Some(engine.config().options.temperature),
        ..Request::default()
    };
    let began = Instant::now();
    let bill = ask::Bill::default();
    let answered = match name {
        Some(name) => {
            let (options, providers) = read(engine)?;
            let (name, _) = called(&providers, name);
            ask::ask_one(engine, caller, &options, &find(providers, &name)?, &request, TRIAL, &bill).await
        }
        None => ask::ask(engine, caller, Use::Summarize, &request, TRIAL, &bill).await,
    };
    let answered = answered.map_err(|error| {
        let sent: String = bill.disclosures().iter().map(|line| format!("; {line}")).collect();
        let told = Error::new(error.kind(), format!("{error}{sent}"));
        match error.way_out() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    })?;
    Ok(Tried {
        disclosure: bill.disclosures().join("; "),
        name: answered.provider,
        model: answered.model,
        answer: answered.reply.text.chars().filter(|c| !c.is_control()).take(200).collect(),
        ms: began.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
        input: answered.reply.usage.input,
        output: answered.reply.usage.output,
        cost: bill.total().dollars(),
        notices: answered.notices,
    })
}

/// Returns the options and the providers as they are now.
pub(crate) fn read(engine: &Engine) -> Result<(Options, Vec<Configured>)> {
    let sources = &engine.config().sources;
    let options = sources.options()?;
    let providers = sources.providers(&options)?;
    Ok((options, providers))
}

/// Returns under which name a provider that a person calls `name` is configured, or would be, and what to say where that is
/// another.
pub(crate) fn called(providers: &[Configured], name: &str) -> (String, Option<String>) {
    if providers.iter().any(|each| each.provider.name == name) {
        return (name.to_owned(), None);
    }
    let usual = config::usual_name(name);
    let told = (usual != name).then(|| format!("`{}` is configured as `{usual}`", quoted(name)));
    (usual, told)
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
    // What can name none may be a key, so it is not repeated.
    let shown = if config::is_provider(name) { format!(" `{name}`") } else { " of that name".to_owned() };
    Error::not_found(format!("there is no provider{shown}")).hint(hint)
}

fn shown(configured: &Configured, options: &Options) -> Shown {
    let provider = &configured.provider;
    let limit =
        |what: &str, amount: Option<crate::money::Money>| amount.map(|amount| format!("{amount} {what}"));
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

/// Returns where a key is and whether it can be had.
fn key(key: &Key) -> String {
    let state = match config::key(key) {
        Ok(_) => "there",
        Err(_) => "not to be had",
    };
    match key {
        Key::None => "none".into(),
        Key::Variable(name) => {
            format!("variable {name}, {}", if state == "there" { "set" } else { "not set" })
        }
        Key::File(path) => format!("file {}, {state}", path.display()),
    }
}

/// Returns what leaves the machine for a provider.
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
            Use::Embed => "every text that is remembered, to embed it",
            Use::Consult if configured.memory => {
                "what it is consulted with, and what it finds in the memory then"
            }
            Use::Consult => "what it is consulted with",
        });
    }
    match parts.is_empty() {
        true => "nothing: it may be asked for nothing".into(),
        false => format!("{}; secrets are replaced before", parts.join("; ")),
    }
}

fn notices(configured: &Configured, options: &Options) -> Vec<String> {
    let provider = &configured.provider;
    let mut notices = Vec::new();
    if let Err(error) = config::key(&provider.key) {
        notices.push(error.with_hint());
    }
    if configured.is_local() && configured.uses.contains(&Use::Summarize) {
        let cost = if provider.price.is_none() { ", at no cost" } else { "" };
        notices.push(format!("summaries may be made by it, at {}{cost}", provider.host()));
    }
    if !configured.is_local() {
        notices.push(format!(
            "leaves this machine, to {}: {}",
            ask::place(configured),
            discloses(configured, options)
        ));
        if !configured.uses.contains(&Use::Summarize) {
            let name = &provider.name;
            notices.push(format!("summaries are not made by it: only the user can say so, `tiro provider add {name} --use summarize`"));
        }
        if let Err(error) = ask::estimate(provider, &Request::default()) {
            notices.push(format!("it is not asked: {}", error.with_hint()));
        }
    }
    notices
}

/// Returns what a use is called.
pub(crate) fn word(purpose: Use) -> &'static str {
    match purpose {
        Use::Summarize => "summarize",
        Use::Embed => "embed",
        Use::Consult => "consult",
    }
}
