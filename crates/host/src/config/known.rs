//! The providers with known names: their services, addresses on this machine, key variables and other names.

use tiro_llm::Service;

/// The defaults of a provider with a known name.
pub(super) struct Known {
    /// The name of the provider in the configuration.
    pub name: &'static str,
    /// Other names that people use, in lower case.
    pub aliases: &'static [&'static str],
    /// The service.
    pub service: Service,
    /// The address on this machine at which the provider listens, if its service has no address of its own.
    pub endpoint: Option<&'static str>,
    /// The default model. Arbitrary: a small and current model. Empty if the user must name a model, because the
    /// server offers many.
    pub model: &'static str,
    /// The variables that may contain the provider's key.
    pub keys: &'static [&'static str],
}

/// All known providers.
pub(super) const KNOWN: &[Known] = &[
    Known {
        name: "ollama",
        aliases: &[],
        service: Service::Ollama,
        endpoint: None,
        model: "llama3.2",
        keys: &[],
    },
    Known {
        name: "openai",
        aliases: &["open-ai", "chatgpt", "gpt"],
        service: Service::Openai,
        endpoint: None,
        model: "gpt-4.1-mini",
        keys: &["OPENAI_API_KEY", "PERSISTENCE_OPENAI_API_KEY"],
    },
    Known {
        name: "anthropic",
        aliases: &["claude"],
        service: Service::Anthropic,
        endpoint: None,
        model: "claude-haiku-4-5",
        keys: &["ANTHROPIC_API_KEY", "PERSISTENCE_ANTHROPIC_API_KEY"],
    },
    Known {
        name: "gemini",
        aliases: &["google", "google-gemini", "google-ai"],
        service: Service::Gemini,
        endpoint: None,
        model: "gemini-2.5-flash",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "PERSISTENCE_GOOGLE_API_KEY"],
    },
    // This server offers only the model with which it was started, and accepts any name for this model.
    Known {
        name: "llamacpp",
        aliases: &["llama.cpp", "llama-cpp", "llama_cpp", "llama-server", "llamafile"],
        service: Service::OpenaiCompatible,
        endpoint: Some("http://127.0.0.1:8080/v1"),
        model: "default",
        keys: &[],
    },
    Known {
        name: "lmstudio",
        aliases: &["lm-studio", "lm_studio", "lm studio"],
        service: Service::OpenaiCompatible,
        endpoint: Some("http://127.0.0.1:1234/v1"),
        model: "",
        keys: &[],
    },
    Known {
        name: "vllm",
        aliases: &[],
        service: Service::OpenaiCompatible,
        endpoint: Some("http://127.0.0.1:8000/v1"),
        model: "",
        keys: &[],
    },
];

impl Known {
    /// Returns the provider that is known under `name`, in upper or lower case.
    pub fn called(name: &str) -> Option<&'static Known> {
        let name = name.trim().to_lowercase();
        KNOWN.iter().find(|known| known.name == name || known.aliases.contains(&name.as_str()))
    }

    /// Returns the defaults of a provider of `service` that is called `name`. If a known provider has this name,
    /// returns that provider's defaults. Otherwise returns the defaults of the service, provided that the service has
    /// its own address.
    pub fn of(name: &str, service: Service) -> Option<&'static Known> {
        let by_name = Known::called(name).filter(|known| known.service == service);
        let is_own = |known: &&Known| known.service == service && known.endpoint.is_none();
        by_name.or(KNOWN.iter().find(is_own))
    }
}

/// Returns the name that the configuration uses for a provider that people call `name`: `gemini` for `google`,
/// `llamacpp` for `llama.cpp`. Unknown names are returned unchanged.
pub fn usual_name(name: &str) -> String {
    Known::called(name).map_or(name, |known| known.name).to_owned()
}

/// Returns the default address of a provider called `name`. For a known server, this is its address on this machine,
/// otherwise the address of `service`.
pub fn usual_endpoint(name: &str, service: Service) -> Option<&'static str> {
    let by_name = Known::called(name).filter(|known| known.service == service);
    by_name.and_then(|known| known.endpoint).or(service.own_endpoint())
}

/// Returns the variables that may contain the key of a service.
pub(super) fn key_variables() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().flat_map(|known| known.keys.iter().copied())
}

/// Returns the variables that may contain the key of `service`. There are none for the dialect that many servers share.
pub fn own_keys(service: Service) -> &'static [&'static str] {
    let service = if service == Service::OpenaiResponses { Service::Openai } else { service };
    KNOWN.iter().find(|known| known.service == service).map_or(&[], |known| known.keys)
}

/// Returns the default service of a provider called `name`.
pub fn usual_service(name: &str) -> Option<Service> {
    Known::called(name).map(|known| known.service).or(Service::parse(name))
}

/// Returns the variables that set the model or the address of a known provider.
pub(super) fn other_variables() -> impl Iterator<Item = String> {
    let both = |known: &Known, what: &str| {
        ["TIRO", "PERSISTENCE"].map(|prefix| format!("{prefix}_{}_{what}", known.name.to_uppercase()))
    };
    let models = KNOWN.iter().filter(|known| known.endpoint.is_none());
    let models = models.flat_map(move |known| both(known, "MODEL"));
    models.chain(["TIRO_OLLAMA_ENDPOINT".into(), "PERSISTENCE_OLLAMA_ENDPOINT".into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_provider_leads_to_it() {
        for (name, usual) in [
            ("google", "gemini"),
            ("Claude", "anthropic"),
            ("llama.cpp", "llamacpp"),
            (" LM Studio ", "lmstudio"),
            ("ollama", "ollama"),
            ("lab", "lab"),
        ] {
            assert_eq!(usual_name(name), usual);
        }
        let mut names: Vec<&str> =
            KNOWN.iter().flat_map(|known| [&[known.name], known.aliases].concat()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_default_address_of_a_local_server_is_its_own() {
        assert_eq!(usual_endpoint("vllm", Service::OpenaiCompatible), Some("http://127.0.0.1:8000/v1"));
        assert_eq!(usual_endpoint("lab", Service::OpenaiCompatible), None);
        assert_eq!(usual_endpoint("vllm", Service::Ollama), Service::Ollama.own_endpoint());
        assert!(Known::of("lab", Service::OpenaiCompatible).is_none());
        assert_eq!(Known::of("work", Service::Openai).unwrap().name, "openai");
        for known in KNOWN.iter().filter(|known| known.endpoint.is_some()) {
            assert!(known.service.is_local(known.endpoint) && known.keys.is_empty(), "{}", known.name);
        }
    }
}
