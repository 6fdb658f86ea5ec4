//! Asks a provider a question. A failed request is repeated if a repetition can help, until there is an answer, a
//! lasting error, or no time left.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Url;
use tokio::time::Instant;

use super::dialects::{Asked, Dialect, Post, Read, author, most_output};
use super::failure::{Failure, late, not_repeated, too_long};
use super::reading::OnText;
use super::reply::reply;
use super::transport::Route;
use super::{Failed, Key, Provider, Reply, Request, Service, is_model};
use tiro_base::error::{Context, Error, Kind, Result, quoted};

/// A function that finds a key. The function returns `None` if no key is to be sent. The client calls the function for
/// each request, and once more if the service refuses the key.
pub type Keys = Arc<dyn Fn(&Key) -> Result<Option<String>> + Send + Sync>;

/// The function that is called and awaited after each request that failed. If the function returns an error, the
/// request is not repeated.
pub type OnFailure = Arc<dyn Fn(Failed) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// The default maximum number of repetitions of a failed request.
const RETRIES: u32 = 3;

/// The pause before the first repetition; the pause doubles with each repetition.
const PAUSE: Duration = Duration::from_millis(500);

/// The maximum time for making a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// For each image, the context window that is requested from Ollama grows by this many tokens.
const IMAGE: usize = 2048;

/// A provider that can be asked questions. Creating a client opens no connection.
pub struct Client {
    provider: Provider,
    keys: Keys,
    base: Url,
    retries: u32,
    silence: Option<Duration>,
    /// Varies the pauses, so that several processes don't repeat their requests at the same time.
    seed: u64,
    pause: Duration,
    on_failure: Option<OnFailure>,
    http: reqwest::Client,
}

impl Client {
    /// Returns a client of `provider`. `keys` finds the key of the provider.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if the endpoint or the name of the model is invalid.
    pub fn new(provider: Provider, keys: Keys) -> Result<Client> {
        let base = provider.base()?;
        let model = &provider.model;
        if !is_model(model) {
            // The name may be a key by mistake, or contain hidden characters, so the error does not quote it.
            return Err(Error::bad_input(format!(
                "the name of the model of provider `{}` is invalid",
                provider.name
            ))
            .hint("name the model as the service does, in at most 200 plain characters"));
        }
        provider.check_encryption()?;
        if model.contains("::") || model.contains("..") || model.contains(['?', '#', '%']) {
            return Err(Error::bad_input(format!("`{}` is not the name of a model", quoted(model))));
        }
        // This fails if a cryptography provider was already installed in this process, as in tests.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .user_agent(concat!("tiro/", env!("CARGO_PKG_VERSION")));
        if provider.is_local() {
            // Requests to this machine use no proxy, because the proxy may be on another machine.
            http = http.no_proxy();
        }
        if base.scheme() == "http" {
            // Without TLS, the platform's certificates are not needed, and reading them takes a while.
            http = http.tls_certs_only([]);
        }
        let http = http
            .build()
            .context(Kind::Provider, || format!("cannot make a client of provider `{}`", provider.name))?;
        // If this fails, the only harm is that several processes may repeat their requests at the same time.
        let mut seed = [0; 8];
        let _ = getrandom::fill(&mut seed);
        let (seed, retries, pause) = (u64::from_le_bytes(seed), RETRIES, PAUSE);
        Ok(Client { provider, keys, base, retries, silence: None, seed, pause, on_failure: None, http })
    }

    /// Sets the maximum number of repetitions of a failed request. The default is 3.
    pub fn retries(mut self, retries: u32) -> Client {
        self.retries = retries;
        self
    }

    /// Sets the maximum time during which the service may send nothing. This limit applies only to answers in pieces.
    /// By default, only the deadline of the request applies.
    pub fn silence(mut self, silence: Duration) -> Client {
        self.silence = Some(silence);
        self
    }

    /// Sets the function that is called for each failed request.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Client {
        self.on_failure = Some(on_failure);
        self
    }

    /// Sets the pause before the first repetition.
    #[cfg(test)]
    pub(super) fn pause(mut self, pause: Duration) -> Client {
        self.pause = pause;
        self
    }

    /// Sends `request` and returns the answer. The request and all its repetitions must end within `deadline`.
    /// `on_text` gets the text of the answer piece by piece as it arrives. After the first piece, the request is no
    /// longer repeated if it fails.
    ///
    /// Dropping the future ends the request. A failed request may still be billed; the function that was passed to
    /// [`Client::on_failure`] is told whether the request may be billed.
    ///
    /// # Errors
    ///
    /// [`Kind::Provider`], or the error of the function that finds the key. No error contains a key or text of the
    /// request.
    pub async fn ask(&self, request: &Request, deadline: Duration, on_text: OnText<'_>) -> Result<Reply> {
        let start = Instant::now();
        // If the clock can't represent a deadline that far away, a deadline of one day is used.
        let end = start.checked_add(deadline).unwrap_or(start + Duration::from_secs(86_400));
        let received = AtomicU64::new(0);
        let answered = self.until_answered(request, end, on_text, &received);
        match tokio::time::timeout_at(end, answered).await {
            Ok(answer) => answer,
            Err(_) => Err(late(&self.provider, deadline, received.load(Ordering::Relaxed))),
        }
    }

    async fn until_answered(
        &self,
        request: &Request,
        end: Instant,
        on_text: OnText<'_>,
        received: &AtomicU64,
    ) -> Result<Reply> {
        let has_spoken = AtomicBool::new(false);
        let spoken = |text: &str| {
            has_spoken.store(true, Ordering::Relaxed);
            if let Some(on_text) = on_text {
                on_text(text);
            }
        };
        let on_text: OnText<'_> = if on_text.is_some() { Some(&spoken) } else { None };
        let mut key = (self.keys)(&self.provider.key)?;
        let (mut attempts, mut repeated, mut is_key_fresh) = (0, 0, true);
        let mut without: Vec<&'static str> = Vec::new();
        loop {
            attempts += 1;
            received.store(0, Ordering::Relaxed);
            let failure = match self.once(request, &without, key.as_deref(), on_text, received).await {
                Ok(reply) => return Ok(Reply { attempts, ..reply }),
                Err(failure) => failure,
            };
            if failure.is_unauthorized() && is_key_fresh {
                is_key_fresh = false;
                let again = match (self.keys)(&self.provider.key) {
                    Ok(again) => again,
                    Err(error) => {
                        self.failed(&failure, false).await?;
                        return Err(error);
                    }
                };
                // The request is repeated only with another key, because the service would refuse the same key again.
                if again != key {
                    key = again;
                    self.failed(&failure, true).await?;
                    continue;
                }
            }
            // A model that the catalogue doesn't know may refuse a parameter. The request is repeated once without the
            // parameter.
            if let Some(parameter) = failure.parameter().filter(|name| !without.contains(name))
                && self.post(request, &without, on_text.is_some()).0.remove(parameter)
            {
                without.push(parameter);
                self.failed(&failure, true).await?;
                continue;
            }
            // Text that was already passed to `on_text` can't be taken back, so the request is not repeated.
            if !failure.is_passing() || repeated == self.retries || has_spoken.load(Ordering::Relaxed) {
                self.failed(&failure, false).await?;
                return Err(failure.error(&self.provider, attempts));
            }
            repeated += 1;
            // A service that names no time to wait, or a time in the past, is still overloaded. So the wait is
            // never shorter than the usual pause.
            let wait = failure.wait().unwrap_or_default().max(self.backoff(repeated));
            let left = end.saturating_duration_since(Instant::now());
            if wait >= left {
                self.failed(&failure, false).await?;
                return Err(too_long(&failure, wait, left, &self.provider, attempts));
            }
            if let Err(why) = self.failed(&failure, true).await {
                return Err(not_repeated(&failure, &why, &self.provider, attempts));
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn failed(&self, failure: &Failure, is_repeated: bool) -> Result<()> {
        match &self.on_failure {
            Some(on_failure) => on_failure(Failed { fate: failure.fate(), is_repeated }).await,
            None => Ok(()),
        }
    }

    async fn once(
        &self,
        request: &Request,
        without: &[&'static str],
        key: Option<&str>,
        on_text: OnText<'_>,
        received: &AtomicU64,
    ) -> Result<Reply, Failure> {
        let provider = &self.provider;
        let dialect = Dialect::of(provider, request);
        let (post, reader) = self.post(request, without, on_text.is_some());
        let route = Route {
            http: &self.http,
            service: provider.service,
            base: &self.base,
            key: key.map(str::trim).filter(|key| !key.is_empty()),
            request,
            received,
            silence: self.silence.filter(|_| on_text.is_some()),
        };
        let (answer, kept) = route.exchange(&post, reader, on_text).await?;
        let mut left_out = without.to_vec();
        let is_named = left_out.iter().any(|name| name.starts_with("think") || name.starts_with("reasoning"));
        if request.effort.is_some() && !post.tells_effort() && !is_named {
            left_out.push("reasoning_effort");
        }
        Ok(Reply { left_out, ..reply(provider, dialect, request, answer, kept)? })
    }

    /// Returns the request to send, without the parameters `without`, and the reader of the answer.
    fn post(&self, request: &Request, without: &[&'static str], is_streamed: bool) -> (Post, Box<dyn Read>) {
        let dialect = Dialect::of(&self.provider, request);
        let asked = Asked::new(&self.provider, request, is_streamed, self.window(request));
        let mut post = dialect.post(&asked, &author(&self.provider, dialect));
        for parameter in without {
            post.remove(parameter);
        }
        (post, dialect.reader(&asked))
    }

    /// Returns the context window to request from Ollama. The window is a power of two, so that few different sizes
    /// occur: Ollama loads the model again for each new size. Returns `None` for services that choose the window
    /// themselves.
    fn window(&self, request: &Request) -> Option<usize> {
        if self.provider.service != Service::Ollama {
            return None;
        }
        let bytes: usize = request.texts().map(|text| text.len()).sum();
        // One token for three bytes is enough for most texts, and `IMAGE` tokens are enough for an image. A larger
        // window would take more memory.
        let needed =
            bytes / 3 + request.images() * IMAGE + most_output(&self.provider, request).unwrap_or(1024) + 512;
        let needed = needed.next_power_of_two().max(4096);
        Some(self.provider.window.map_or(needed, |window| needed.min(window)))
    }

    /// Returns the pause before repetition `nth`: the first pause, doubled for each earlier repetition, times a
    /// factor between 0.75 and 1.25.
    fn backoff(&self, nth: u32) -> Duration {
        let mut drawn = [0; 8];
        let seed = [self.seed.to_le_bytes(), u64::from(nth).to_le_bytes()].concat();
        drawn.copy_from_slice(&blake3::hash(&seed).as_bytes()[..8]);
        let share = u64::from_le_bytes(drawn) as f64 / u64::MAX as f64;
        self.pause.saturating_mul(1 << (nth - 1).min(16)).mul_f64(0.75 + share / 2.0)
    }
}
