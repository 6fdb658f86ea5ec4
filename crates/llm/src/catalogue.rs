//! The catalogue of models: their context windows, longest answers and prices.
//!
//! The table is `assets/models.txt`, which is compiled into the program. The table becomes outdated, so a provider's
//! own settings take precedence. Nothing is assumed about a model that is not in the table: its cost is unknown, not
//! zero. A model on the user's own server costs nothing ([`Provider::is_free`]). If a price can't be exact, a higher
//! price is listed, because money is reserved by these prices before a call.

use std::sync::LazyLock;

use super::{Provider, Service, Usage};

const TABLE: &str = include_str!("../assets/models.txt");

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| TABLE.lines().filter_map(read).collect());

/// A model in the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The service that offers the model: `openai`, `anthropic` or `gemini`.
    pub service: &'static str,
    /// The name of the model, without a date.
    pub name: &'static str,
    /// The context window: how many tokens a request and its answer may have together.
    pub window: usize,
    /// The maximum number of tokens that an answer may have.
    pub max_output: Option<usize>,
    /// The prices.
    pub rates: Rates,
    /// A number of input tokens, and the prices of requests with more input tokens; `None` if the prices are the
    /// same for all requests.
    pub over: Option<(u64, Rates)>,
    /// Whether the service refuses requests that set a temperature.
    pub fixed_temperature: bool,
    /// The form in which the model is told how much to think; `None` if it can't be told.
    pub thinking: Option<Thinking>,
    /// Whether the model can be told to think next to nothing.
    pub thinks_minimally: bool,
    /// Whether the answer can be made to match a schema.
    pub keeps_schema: bool,
    /// Whether the model can call functions only through OpenAI's Responses API.
    pub needs_responses: bool,
    /// Whether tokens that are written to the service's cache cost more than others.
    pub charges_writes: bool,
    /// Whether the service no longer offers the model.
    pub is_retired: bool,
}

/// The form in which a model is told how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// By a word, such as `low`.
    Level,
    /// By a number of tokens.
    Budget,
}

/// The price of a token that is written to the cache, as a multiple of the price of other sent tokens.
const WRITTEN: f64 = 1.25;

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// For tokens that are sent.
    pub input: f64,
    /// For tokens that are sent and were already in the provider's cache.
    pub cached: f64,
    /// For tokens that are received.
    pub output: f64,
}

impl Rates {
    fn of(self, usage: &Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let written = usage.written.min(usage.input - cached);
        let plain = usage.input - cached - written;
        ((plain as f64 + written as f64 * WRITTEN) * self.input
            + cached as f64 * self.cached
            + usage.output as f64 * self.output)
            / 1e6
    }
}

/// Returns the catalogue's entry for the model of `provider`.
///
/// The entry of a model also applies to its dated versions. The catalogue doesn't apply to other servers that use the
/// dialect of a service: there, the name `gpt-4.1` may stand for any model.
pub fn model(provider: &Provider) -> Option<&'static Model> {
    let service = match provider.service {
        Service::Openai | Service::OpenaiResponses => "openai",
        Service::Anthropic => "anthropic",
        Service::Gemini => "gemini",
        Service::Ollama | Service::OpenaiCompatible => return None,
    };
    let name = provider.model.strip_prefix("models/").unwrap_or(&provider.model);
    let is_version = |model: &Model| {
        name.strip_prefix(model.name).is_some_and(|rest| {
            // Versions end in `-20250514`, `-2025-04-14` or `-001`, but `claude-opus-4-1` is another model than
            // `claude-opus-4`.
            let first = rest.strip_prefix('-').and_then(|rest| rest.split('-').next()).unwrap_or_default();
            let is_date = first.len() >= 3 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            is_date || matches!(rest, "" | "-0" | "-latest" | "-preview" | "-exp")
        })
    };
    MODELS
        .iter()
        .filter(|model| model.service == service && is_version(model))
        .max_by_key(|model| model.name.len())
}

/// Returns the context window of the model of `provider`: how many tokens a request and its answer may have together.
/// `None` if it is unknown.
pub fn window(provider: &Provider) -> Option<usize> {
    provider.window.or_else(|| model(provider).map(|model| model.window))
}

/// Returns the highest possible cost, in US dollars, of a request with `input` tokens and an answer of at most
/// `max_output` tokens. `keeps_prefix` says whether the service may write the request to its cache.
///
/// `None` if the price of the model is unknown; 0 if the provider is free.
pub fn estimate(provider: &Provider, input: usize, max_output: usize, keeps_prefix: bool) -> Option<f64> {
    let input = input as u64;
    let written = if keeps_prefix || writes_unasked(provider) { input } else { 0 };
    cost(provider, &Usage { input, written, output: max_output as u64, ..Usage::default() })
}

/// Returns the cost of `usage` in US dollars. The result is `None` or 0 in the same cases as for [`estimate`].
pub fn cost(provider: &Provider, usage: &Usage) -> Option<f64> {
    let written = if charges_writes(provider) { usage.written } else { 0 };
    let usage = Usage { written, ..*usage };
    if let Some(price) = provider.price {
        let rates = Rates { input: price.input, cached: price.input, output: price.output };
        return Some(rates.of(&usage));
    }
    if provider.is_free() {
        return Some(0.0);
    }
    let model = model(provider)?;
    let rates = match model.over {
        Some((limit, rates)) if usage.input > limit => rates,
        _ => model.rates,
    };
    Some(rates.of(&usage))
}

/// Returns whether the service charges more for tokens that are written to its cache.
fn charges_writes(provider: &Provider) -> bool {
    provider.service == Service::Anthropic || model(provider).is_some_and(|model| model.charges_writes)
}

/// Returns whether the service may write a request to its cache, and charge for this, although it was not asked to
/// write. OpenAI's own service can be told not to write, so the result is false for it.
fn writes_unasked(provider: &Provider) -> bool {
    provider.service != Service::Anthropic && charges_writes(provider) && !provider.is_own_service()
}

fn read(line: &'static str) -> Option<Model> {
    let mut words = line.split_whitespace();
    let service = words.next().filter(|word| !word.starts_with('#'))?;
    let (name, window, max_output) = (words.next()?, words.next()?, words.next()?);
    let mut dollars = || words.next()?.parse().ok();
    let rates = Rates { input: dollars()?, cached: dollars()?, output: dollars()? };
    let mut model = Model {
        service,
        name,
        window: window.parse().ok()?,
        max_output: max_output.parse().ok(),
        rates,
        over: None,
        fixed_temperature: false,
        thinking: None,
        thinks_minimally: false,
        keeps_schema: true,
        needs_responses: false,
        charges_writes: false,
        is_retired: false,
    };
    for note in words {
        match note {
            "no-temperature" => model.fixed_temperature = true,
            "retired" => model.is_retired = true,
            // The answers of this model have no tokens, so only the input has a price.
            "embeddings" => {}
            "effort" => model.thinking = Some(Thinking::Level),
            "budget" => model.thinking = Some(Thinking::Budget),
            "minimal" => model.thinks_minimally = true,
            "no-schema" => model.keeps_schema = false,
            "responses" => model.needs_responses = true,
            "writes" => model.charges_writes = true,
            _ => {
                let mut parts = note.strip_prefix("over=")?.split(':');
                let limit = parts.next()?.parse().ok()?;
                let input: f64 = parts.next()?.parse().ok()?;
                let output = parts.next()?.parse().ok()?;
                let cached = rates.cached * input / rates.input;
                model.over = Some((limit, Rates { input, cached, output }));
            }
        }
    }
    Some(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Price};

    fn provider(service: Service, model: &str) -> Provider {
        Provider {
            name: "p".into(),
            service,
            endpoint: None,
            model: model.into(),
            key: Key::None,
            max_output: None,
            temperature: None,
            window: None,
            price: None,
        }
    }

    #[test]
    fn every_line_of_the_table_is_read_and_makes_sense() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(MODELS.len(), lines);
        assert!(lines > 60);
        for model in MODELS.iter() {
            let Rates { input, cached, output } = model.rates;
            let is_embedding = model.name.starts_with("text-embedding") && input == output;
            assert!(0.0 < cached && cached <= input && output <= 600.0, "{model:?}");
            assert!(input < output || is_embedding, "{model:?}");
            assert!(model.max_output.is_some_and(|most| most <= model.window), "{model:?}");
            if let Some((limit, over)) = model.over {
                assert!(
                    over.input > input && over.output > output && limit <= model.window as u64,
                    "{model:?}"
                );
            }
        }
        let mut names: Vec<_> = MODELS.iter().map(|model| (model.service, model.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines);
    }

    #[test]
    fn a_name_covers_its_dated_versions_and_no_other_model() {
        let found = |service, name| model(&provider(service, name)).map(|model| model.name);
        for (service, name, expected) in [
            (Service::Openai, "o3", Some("o3")),
            (Service::OpenaiResponses, "o3-pro-2025-06-10", Some("o3-pro")),
            (Service::Openai, "gpt-4.1-mini", Some("gpt-4.1-mini")),
            (Service::Openai, "gpt-4.1-2025-04-14", Some("gpt-4.1")),
            (Service::Openai, "gpt-4.1-turbo", None),
            (Service::Anthropic, "claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            (Service::Anthropic, "claude-opus-4-20250514", Some("claude-opus-4")),
            (Service::Anthropic, "claude-opus-4-0", Some("claude-opus-4")),
            (Service::Anthropic, "claude-opus-4-1-20250805", Some("claude-opus-4-1")),
            (Service::Anthropic, "claude-opus-4-9-20270101", None),
            (Service::Anthropic, "claude-opus-5-5", Some("claude-opus-5-5")),
            (Service::Anthropic, "claude-opus-5-6", None),
            (Service::Gemini, "gemini-2.5-pro", Some("gemini-2.5-pro")),
            (Service::Gemini, "models/gemini-2.5-flash-latest", Some("gemini-2.5-flash")),
            (Service::Gemini, "gemini-2.5-flash-lite", Some("gemini-2.5-flash-lite")),
            (Service::Gemini, "gpt-4.1", None),
            (Service::OpenaiCompatible, "gpt-4.1", None),
        ] {
            assert_eq!(found(service, name), expected, "{service:?} {name}");
        }
    }

    #[test]
    fn the_cost_of_a_known_model_follows_its_prices_and_that_of_an_unknown_one_is_unknown() {
        let known = provider(Service::Openai, "gpt-4.1");
        assert_eq!(estimate(&known, 1_000_000, 1_000_000, false), Some(10.0));
        let usage = Usage { input: 1_000_000, cached: 400_000, ..Usage::default() };
        assert_eq!(cost(&known, &usage), Some(1.4));
        // Anthropic charges a quarter more for tokens that it writes to its cache. Nobody else does unless the table
        // says so.
        let cached = provider(Service::Anthropic, "claude-sonnet-4-6");
        let written = Usage { input: 1_000_000, cached: 400_000, written: 200_000, ..Usage::default() };
        assert_eq!(cost(&cached, &written).map(|it| (it * 1e6).round()), Some(2_070_000.0));
        assert_eq!(cost(&known, &written), Some(1.4));
        assert_eq!(estimate(&cached, 1_000_000, 0, false), Some(3.0));
        assert_eq!(estimate(&cached, 1_000_000, 0, true), Some(3.75));
        assert_eq!(estimate(&known, 1_000_000, 0, true), Some(2.0));
        // For a request with more than 200,000 tokens, Gemini's price doubles, for all its tokens.
        let long = provider(Service::Gemini, "gemini-2.5-pro");
        assert_eq!(estimate(&long, 200_000, 0, false), Some(0.25));
        assert_eq!(estimate(&long, 400_000, 100_000, false), Some(2.5));
        assert_eq!(estimate(&provider(Service::Openai, "gpt-9"), 1, 1, false), None);
        assert_eq!(estimate(&provider(Service::Ollama, "llama3.2"), 1_000_000, 1_000, false), Some(0.0));

        let mut elsewhere = provider(Service::OpenaiCompatible, "anything");
        elsewhere.endpoint = Some("https://models.example/v1".into());
        assert_eq!(estimate(&elsewhere, 1, 1, false), None);
        elsewhere.price = Some(Price { input: 1.0, output: 2.0 });
        assert_eq!(estimate(&elsewhere, 1_000_000, 500_000, false), Some(2.0));
        assert_eq!(cost(&elsewhere, &usage), Some(1.0));
        elsewhere.window = Some(8_192);
        assert_eq!(window(&elsewhere), Some(8_192));
        assert_eq!(window(&known), Some(1_047_576));
    }
}
