//! Decides which requests are answered. The page shows everything that is remembered, so only the user who started it
//! may read it, and only from the page itself.
//!
//! - The server listens on the loopback address only. On Linux, a connection of another user of the machine is refused
//!   ([`Peer`](crate::web::peer::Peer)); root may connect.
//! - The first address has a random token, which works once and becomes a cookie. Programs that later see the address,
//!   for example in the history of the browser, learn nothing that is still of use.
//! - `Host` must be the server's own address, so that a name that leads to 127.0.0.1 (DNS rebinding) is of no use.
//!   `Origin` and `Sec-Fetch-Site`, if given, must say that the request comes from the page itself.
//! - A change needs a POST with an `Origin`, the cookie, and a second token that only the page knows.
//!
//! All functions are pure, apart from [`Guard`], which remembers whether the token was used.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};

/// The name of the cookie, without the port. Cookies are shared by all ports of a host, so each server has a name of its
/// own.
const COOKIE_NAME: &str = "tiro";

/// The headers of every answer. No script or style of another origin or within the page is run, no page may frame this
/// one, and no text may become a script (`trusted-types 'none'`: our script makes elements, never HTML).
pub const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    // With `no-referrer`, browsers send `Origin: null` with our own forms.
    ("referrer-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("x-dns-prefetch-control", "off"),
];

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Neither the cookie nor an unused token was given.
    NoToken,
    /// `Host` is not the server's address.
    Host,
    /// The request comes from another page.
    Origin,
    /// The token of the form is missing or wrong.
    Form,
    /// The connection is of another user of the machine.
    OtherUser,
}

impl Refused {
    /// Returns what to tell the reader.
    pub fn sentence(self) -> &'static str {
        match self {
            Refused::NoToken => {
                "This address works only in the browser in which Tiro opened it. Run `tiro open` again for a new one."
            }
            Refused::Host => {
                "This server answers only to its own address, 127.0.0.1 or localhost with its port."
            }
            Refused::Origin => "This request comes from another page.",
            Refused::Form => "This form is out of date. Load the page again, and repeat the change.",
            Refused::OtherUser => "This page is of another user of the machine.",
        }
    }
}

/// What a request that may be answered wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// The first address was opened: the cookie has to be set.
    First,
    /// An ordinary request with the cookie.
    Known,
}

/// The secrets of one server.
pub struct Guard {
    port: u16,
    token: String,
    cookie: String,
    form: String,
    is_used: AtomicBool,
}

impl Guard {
    /// Returns the guard of the server on `port`. `random` are 48 random bytes.
    pub fn new(port: u16, random: [u8; 48]) -> Guard {
        let part = |from: usize| random[from..from + 16].iter().map(|byte| format!("{byte:02x}")).collect();
        Guard { port, token: part(0), cookie: part(16), form: part(32), is_used: AtomicBool::new(false) }
    }

    /// Returns the first address. The path begins with a slash and may have a query.
    pub fn address(&self, path: &str) -> String {
        let join = if path.contains('?') { '&' } else { '?' };
        format!("http://127.0.0.1:{}{path}{join}token={}", self.port, self.token)
    }

    /// Returns the token that every form of the page contains.
    pub fn form_token(&self) -> &str {
        &self.form
    }

    /// Returns the value of `Set-Cookie`.
    pub fn set_cookie(&self) -> String {
        format!("{COOKIE_NAME}-{}={}; Path=/; HttpOnly; SameSite=Strict", self.port, self.cookie)
    }

    /// Decides whether a request is answered. `query` is the query of its address. The token works once.
    pub fn check(&self, method: &Method, headers: &HeaderMap, query: &str) -> Result<Admitted, Refused> {
        if !is_own_host(headers, self.port) {
            return Err(Refused::Host);
        }
        let is_change = method != Method::GET && method != Method::HEAD;
        if !is_own_origin(headers, self.port, is_change) {
            return Err(Refused::Origin);
        }
        let own = format!("{COOKIE_NAME}-{}", self.port);
        if cookie(headers, &own).is_some_and(|given| is_same(given, &self.cookie)) {
            return if is_from_elsewhere(headers) { Err(Refused::Origin) } else { Ok(Admitted::Known) };
        }
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let is_first = method == Method::GET && token.is_some_and(|given| is_same(given, &self.token));
        match is_first && !self.is_used.swap(true, Ordering::Relaxed) {
            true => Ok(Admitted::First),
            false => Err(Refused::NoToken),
        }
    }

    /// Checks the token of a form.
    pub fn check_form(&self, given: Option<&str>) -> Result<(), Refused> {
        match given.is_some_and(|given| is_same(given, &self.form)) {
            true => Ok(()),
            false => Err(Refused::Form),
        }
    }
}

/// Compares two secrets in a time that says nothing about where they differ.
fn is_same(given: &str, secret: &str) -> bool {
    // `blake3::Hash` compares in constant time.
    blake3::hash(given.as_bytes()) == blake3::hash(secret.as_bytes())
}

fn is_own_host(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some((name, given)) = host.to_str().ok().and_then(|host| host.rsplit_once(':')) else { return false };
    matches!(name, "127.0.0.1" | "localhost") && given.parse() == Ok(port)
}

fn is_own_origin(headers: &HeaderMap, port: u16, is_needed: bool) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return !is_needed };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own = ["127.0.0.1", "localhost"].map(|name| format!("http://{name}:{port}"));
    origin.to_str().is_ok_and(|origin| {
        own.iter().any(|own| own == origin) && origin.strip_prefix("http://") == Some(host)
    })
}

/// Returns whether the browser says that another page made the request. A link of another page comes without the cookie,
/// so this is a second wall.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PORT: u16 = 4127;

    fn guard() -> Guard {
        Guard::new(PORT, std::array::from_fn(|place| place as u8))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn known(guard: &Guard) -> String {
        guard.set_cookie().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn the_token_of_the_first_address_works_once_and_becomes_a_cookie() {
        let guard = guard();
        let own = headers(&[("host", "127.0.0.1:4127")]);
        let get = |query: &str| guard.check(&Method::GET, &own, query);
        assert_eq!(get(""), Err(Refused::NoToken));
        assert_eq!(get("token=00"), Err(Refused::NoToken));
        let address = guard.address("/file?path=a");
        let query = address.split_once('?').unwrap().1;
        assert_eq!(guard.check(&Method::POST, &own, query), Err(Refused::Origin));
        assert_eq!(get(query), Ok(Admitted::First));
        assert_eq!(get(query), Err(Refused::NoToken));
        let cookie = headers(&[("host", "localhost:4127"), ("cookie", &format!("a=b; {}", known(&guard)))]);
        assert_eq!(guard.check(&Method::GET, &cookie, ""), Ok(Admitted::Known));
    }

    #[test]
    fn only_the_page_itself_is_answered() {
        let guard = guard();
        let (own, cookie) = (("host", "127.0.0.1:4127"), known(&guard));
        let cookie = ("cookie", cookie.as_str());
        for (method, given, expected) in [
            (Method::GET, vec![own, cookie], Ok(Admitted::Known)),
            (Method::GET, vec![cookie], Err(Refused::Host)),
            (Method::GET, vec![("host", "evil.example:4127"), cookie], Err(Refused::Host)),
            (Method::GET, vec![("host", "127.0.0.1"), cookie], Err(Refused::Host)),
            (Method::GET, vec![("host", "127.0.0.1:80"), cookie], Err(Refused::Host)),
            (Method::GET, vec![own, own, cookie], Err(Refused::Host)),
            (Method::GET, vec![own, cookie, ("origin", "http://evil.example")], Err(Refused::Origin)),
            (Method::GET, vec![own, cookie, ("sec-fetch-site", "cross-site")], Err(Refused::Origin)),
            (Method::GET, vec![own, cookie, ("sec-fetch-site", "same-site")], Err(Refused::Origin)),
            (Method::GET, vec![own, cookie, ("sec-fetch-site", "none")], Ok(Admitted::Known)),
            (Method::POST, vec![own, cookie], Err(Refused::Origin)),
            (Method::POST, vec![own, cookie, ("origin", "null")], Err(Refused::Origin)),
            (Method::POST, vec![own, cookie, ("origin", "http://localhost:4127")], Err(Refused::Origin)),
            (Method::POST, vec![own, cookie, ("origin", "http://127.0.0.1:4127")], Ok(Admitted::Known)),
            (Method::POST, vec![own, ("origin", "http://127.0.0.1:4127")], Err(Refused::NoToken)),
            (Method::GET, vec![own, ("cookie", "tiro-4127=x")], Err(Refused::NoToken)),
        ] {
            assert_eq!(guard.check(&method, &headers(&given), ""), expected, "{method} {given:?}");
        }
    }

    #[test]
    fn a_change_needs_the_token_of_the_form() {
        let guard = guard();
        assert_eq!(guard.check_form(None), Err(Refused::Form));
        assert_eq!(guard.check_form(Some("")), Err(Refused::Form));
        assert_eq!(guard.check_form(Some(guard.form_token())), Ok(()));
        assert!(
            !guard.address("/").contains(guard.form_token())
                && !guard.set_cookie().contains(guard.form_token())
        );
    }
}
