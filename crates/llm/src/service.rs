//! The services: their names, addresses and dialects, and the rule that decides whether a provider is on this
//! machine.

use std::net::IpAddr;

use reqwest::Url;

use super::{Key, Provider, Service};
use tiro_base::error::{Error, Result};

impl Service {
    /// Every service.
    pub const ALL: [Service; 6] = [
        Service::Openai,
        Service::OpenaiResponses,
        Service::Anthropic,
        Service::Gemini,
        Service::Ollama,
        Service::OpenaiCompatible,
    ];

    /// Returns the word for the service in the configuration, the stores and the answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Service::Openai => "openai",
            Service::OpenaiResponses => "openai-responses",
            Service::Anthropic => "anthropic",
            Service::Gemini => "gemini",
            Service::Ollama => "ollama",
            Service::OpenaiCompatible => "openai-compatible",
        }
    }

    /// Returns the service called `name`.
    pub fn parse(name: &str) -> Option<Service> {
        Service::ALL.into_iter().find(|service| service.as_str() == name)
    }

    /// Returns the service's own address. Returns `None` for [`Service::OpenaiCompatible`], which stands for many
    /// servers.
    pub fn own_endpoint(self) -> Option<&'static str> {
        Some(match self {
            Service::Openai | Service::OpenaiResponses => "https://api.openai.com/v1",
            Service::Anthropic => "https://api.anthropic.com/v1",
            Service::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Service::Ollama => "http://127.0.0.1:11434",
            Service::OpenaiCompatible => return None,
        })
    }

    /// Returns whether requests to `endpoint` stay on this machine, because its host is a loopback address or
    /// `localhost`. Any other name counts as another machine, even if it resolves to a loopback address. If there
    /// is no endpoint, the service's own address is checked.
    pub fn is_local(self, endpoint: Option<&str>) -> bool {
        let Some(url) = endpoint.or(self.own_endpoint()).and_then(|endpoint| Url::parse(endpoint).ok())
        else {
            return false;
        };
        let Some(host) = url.host_str() else { return false };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.map_or(host == "localhost", |address| address.to_canonical().is_loopback())
    }

    /// Returns whether the service forwards requests for `model` to its makers. Ollama forwards requests for models
    /// whose name ends in `cloud`.
    pub fn passes_on(self, model: &str) -> bool {
        let model = model.trim().to_lowercase();
        self == Service::Ollama && (model.ends_with("-cloud") || model.ends_with(":cloud"))
    }

    /// Returns the words by which errors name an answer in the service's dialect.
    pub(super) fn dialect(self) -> &'static str {
        match self {
            Service::Openai | Service::OpenaiCompatible => "a completion in OpenAI's dialect",
            Service::OpenaiResponses => "a response in OpenAI's dialect",
            Service::Anthropic => "a message in Anthropic's dialect",
            Service::Gemini => "a candidate in Gemini's dialect",
            Service::Ollama => "a message in Ollama's dialect",
        }
    }

    /// Returns the path of the service's own address. The path is added to an endpoint that has no path of its own.
    fn own_path(self) -> &'static str {
        match self {
            Service::Openai | Service::OpenaiResponses | Service::OpenaiCompatible | Service::Anthropic => {
                "/v1"
            }
            Service::Gemini => "/v1beta",
            Service::Ollama => "/",
        }
    }
}

/// The hint for a provider that would send its key unencrypted.
const ENCRYPTED: &str = "give it an endpoint with `https://`, or one on this machine that forwards to it, such as \
    `http://localhost:8080` with `ssh -L 8080:localhost:8080 HOST`, or take its key away";

impl Provider {
    /// Returns whether requests stay on this machine. Requests for Ollama models whose name ends in `cloud` (in upper
    /// or lower case) do not stay on this machine, because Ollama forwards them to its makers.
    pub fn is_local(&self) -> bool {
        self.service.is_local(self.endpoint.as_deref()) && !self.is_passed_on()
    }

    /// Returns whether every request costs nothing: the provider is on this machine, or it is an Ollama on another
    /// machine that needs no key and runs the model itself.
    pub fn is_free(&self) -> bool {
        let is_own_server = self.service == Service::Ollama && self.key == Key::None;
        self.is_local() || (is_own_server && !self.is_passed_on())
    }

    /// Returns whether requests go to the service itself. Requests may also go to another server with the same dialect.
    pub fn is_own_service(&self) -> bool {
        let host = |endpoint: Option<&str>| {
            endpoint.and_then(|endpoint| Url::parse(endpoint).ok()?.host_str().map(str::to_owned))
        };
        self.endpoint.is_none() || host(self.endpoint.as_deref()) == host(self.service.own_endpoint())
    }

    /// Checks that the provider would not send its key unencrypted to another machine.
    ///
    /// # Errors
    ///
    /// [`BadInput`](tiro_base::error::Kind::BadInput) if the key would be sent unencrypted.
    pub fn check_encryption(&self) -> Result<()> {
        self.check_encryption_as(&format!("provider `{}`", self.name))
    }

    /// Like [`Provider::check_encryption`], but the error refers to the provider as `name`.
    pub fn check_encryption_as(&self, name: &str) -> Result<()> {
        if !self.sends_key_in_clear() {
            return Ok(());
        }
        let host = self.host();
        Err(Error::bad_input(format!(
            "{name} would send its key to {host} unencrypted: its endpoint begins with `http://`"
        ))
        .hint(ENCRYPTED))
    }

    /// Returns whether the provider would send its key unencrypted to another machine.
    fn sends_key_in_clear(&self) -> bool {
        let is_plain = self.base().is_ok_and(|base| base.scheme() == "http");
        is_plain && self.key != Key::None && !self.service.is_local(self.endpoint.as_deref())
    }

    fn is_passed_on(&self) -> bool {
        self.service.passes_on(&self.model)
    }

    /// Returns the base address for requests. If an endpoint has no path, the path of the service is added: `/v1` or
    /// `/v1beta`.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the endpoint is missing or invalid. The error does not
    /// quote the endpoint.
    pub fn base(&self) -> Result<Url> {
        let name = &self.name;
        let Some(endpoint) = self.endpoint.as_deref().or(self.service.own_endpoint()) else {
            return Err(Error::bad_input(format!("provider `{name}` has no endpoint"))
                .hint("name the server's base address, such as `http://127.0.0.1:8080/v1`"));
        };
        let bad = |why: &str| {
            Error::bad_input(format!("the endpoint of provider `{name}` {why}"))
                .hint("an endpoint is a base address, such as `https://models.example/v1`")
        };
        let mut base = Url::parse(endpoint).map_err(|_| bad("is not an address"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none_or(str::is_empty) {
            return Err(bad("does not begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("contains a user name or a password; use a key instead"));
        }
        base.set_fragment(None);
        if matches!(base.path(), "" | "/") {
            base.set_path(self.service.own_path());
        }
        Ok(base)
    }

    /// Returns the host and the port of the endpoint, in the form in which they are shown.
    pub fn host(&self) -> String {
        let Ok(base) = self.base() else { return "an unknown address".to_owned() };
        let host = base.host_str().unwrap_or_default();
        base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// The longest name of a model, in bytes. Arbitrary: twice the length of the longest known name.
const LONGEST_NAME: usize = 200;

/// Returns whether `name` can be the name of a model: it is short and consists only of visible letters, digits and
/// marks. Invisible characters could make one name look like another.
pub fn is_model(name: &str) -> bool {
    let is_seen = |c: char| c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
    (1..=LONGEST_NAME).contains(&name.len()) && name.trim() == name && name.chars().all(is_seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_local_if_requests_stay_on_this_machine() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:8080/v1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:8080", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost:11434", true),
            ("http://LOCALHOST", true),
            ("http://192.168.0.2:8080", false),
            ("http://0.0.0.0:8080", false),
            ("https://api.openai.com/v1", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://127.0.0.1@example.com", false),
            ("nonsense", false),
        ] {
            assert_eq!(Service::OpenaiCompatible.is_local(Some(endpoint)), expected, "{endpoint}");
        }
        for service in Service::ALL {
            assert_eq!(service.is_local(None), service == Service::Ollama);
            assert_eq!(Service::parse(service.as_str()), Some(service));
            let configured = serde_json::to_value(service).unwrap();
            assert_eq!(configured, service.as_str());
        }
    }

    #[test]
    fn an_endpoint_is_an_address_without_secrets() {
        let at = |service, endpoint: Option<&str>| Provider {
            name: "p".into(),
            service,
            endpoint: endpoint.map(str::to_owned),
            model: "m:cloud".into(),
            key: Key::None,
            max_output: None,
            temperature: None,
            window: None,
            price: None,
        };
        for (service, endpoint, expected) in [
            (Service::OpenaiCompatible, "http://localhost:8080", "http://localhost:8080/v1"),
            (Service::OpenaiCompatible, "http://localhost:8080/api/v3/", "http://localhost:8080/api/v3/"),
            (Service::Gemini, "http://localhost:8080/", "http://localhost:8080/v1beta"),
            (Service::Ollama, "http://localhost:8080", "http://localhost:8080/"),
        ] {
            assert_eq!(at(service, Some(endpoint)).base().unwrap().as_str(), expected);
        }
        for endpoint in [None, Some("models"), Some("ftp://a.test"), Some("https://me:hunter2@a.test")] {
            let error = at(Service::OpenaiCompatible, endpoint).base().unwrap_err();
            assert!(!error.to_string().contains("hunter2") && error.way_out().is_some(), "{error}");
        }
        assert_eq!(at(Service::Openai, None).host(), "api.openai.com");
        assert!(!at(Service::Ollama, None).is_local());
        let named = |model: &str| Provider { model: model.into(), ..at(Service::Ollama, None) }.is_local();
        for model in ["gpt-oss:120b-CLOUD", "gpt-oss:120b-Cloud", "m:CLOUD", "m-cloud ", " m:cloud\n"] {
            assert!(!named(model), "{model}");
        }
        assert!(named("llama3.2") && named("cloudy:7b"));
    }

    #[test]
    fn a_key_leaves_encrypted_or_not_at_all() {
        let with = |service, endpoint: Option<&str>, key: &Key| Provider {
            name: "lab".into(),
            service,
            endpoint: endpoint.map(str::to_owned),
            model: "m".into(),
            key: key.clone(),
            max_output: None,
            temperature: None,
            window: None,
            price: None,
        };
        let named = Key::Variable("LAB_API_KEY".into());
        for (service, endpoint, is_right) in [
            (Service::OpenaiCompatible, Some("http://lab.example/v1"), false),
            (Service::OpenaiCompatible, Some("http://192.168.0.2:8080"), false),
            (Service::Ollama, Some("http://127.0.0.1.example.com"), false),
            (Service::OpenaiCompatible, Some("https://lab.example/v1"), true),
            (Service::OpenaiCompatible, Some("http://localhost:8080/v1"), true),
            (Service::OpenaiCompatible, Some("http://[::1]:8080/v1"), true),
            (Service::Openai, None, true),
            (Service::Ollama, None, true),
        ] {
            assert_eq!(!with(service, endpoint, &named).sends_key_in_clear(), is_right, "{endpoint:?}");
            assert!(!with(service, endpoint, &Key::None).sends_key_in_clear(), "{endpoint:?}");
        }
        // The user's own server costs nothing, wherever it runs. A service that needs a key, or runs on somebody
        // else's machine, may cost money.
        let ollama = |endpoint, key| with(Service::Ollama, endpoint, key);
        assert!(ollama(Some("http://192.168.0.2:11434"), &Key::None).is_free());
        assert!(!ollama(Some("https://ollama.example"), &named).is_free());
        assert!(!Provider { model: "m:cloud".into(), ..ollama(None, &Key::None) }.is_free());
        assert!(!with(Service::OpenaiCompatible, Some("https://lab.example"), &Key::None).is_free());
        assert!(with(Service::OpenaiCompatible, Some("http://localhost:1"), &named).is_free());
    }

    #[test]
    fn a_name_of_a_model_hides_nothing() {
        for model in
            ["llama3.2", "hf.co/x/Y-GGUF:Q4_K_M", "models/gemini-2.5-pro", "My Model.gguf", "模型-7b"]
        {
            assert!(is_model(model), "{model}");
        }
        let long = "a".repeat(201);
        for model in
            ["", " ", " m", "m\n", "m\u{1b}[31m", "x-cloud\u{200b}", "m\u{202e}", "m\u{ad}x", "m\0", &long]
        {
            assert!(!is_model(model), "{model:?}");
        }
    }
}
