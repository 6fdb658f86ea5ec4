//! Checks the headers `Host` and `Origin`.
//!
//! A page in the user's browser can send requests to a server on the user's machine. If a name of the page's site leads
//! to 127.0.0.1 (DNS rebinding), the browser even shows the page the answers. Such a request names that site as its
//! `Host`, and the page's address as its `Origin`, so both must be names of this server. Programs that are no browsers
//! send no `Origin`, so it may be missing.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// The names of the loopback address, as clients write them.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names of a server.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    /// The port that `Host` must name. `None` behind a proxy, whose port is not known here.
    port: Option<u16>,
    /// The port that a client leaves out.
    default_port: u16,
    is_loopback: bool,
}

/// The header that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// `Host` is missing, given twice, or none of the server's names.
    Host,
    /// `Origin` is the address of a page of another site.
    Origin,
}

impl Wrong {
    /// Returns what to tell the client.
    pub fn sentence(self) -> &'static str {
        match self {
            Wrong::Host => {
                "This server doesn't answer to this name. `tiro serve --http ADDR --host NAME` adds a name."
            }
            Wrong::Origin => "This request comes from a page of another site.",
        }
    }
}

impl Hosts {
    /// Returns the names of a server: those of the loopback address, and `names`. `port` is the server's port, and
    /// `None` behind a proxy.
    pub fn new(names: &[String], port: Option<u16>, is_tls: bool, is_loopback: bool) -> Hosts {
        let own = LOOPBACK.iter().map(|name| (*name).to_owned());
        let names = own.chain(names.iter().map(|name| plain(name))).collect();
        Hosts { names, port, default_port: if is_tls { 443 } else { 80 }, is_loopback }
    }

    /// Checks the headers of a request. `authority` is the host in the address of the request, if it has one.
    pub fn check(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), Wrong> {
        let mut given = headers.get_all(HOST).iter();
        let host = match (given.next(), given.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, _) => authority,
            (Some(_), Some(_)) => None,
        };
        let (name, port) = host.and_then(parted).ok_or(Wrong::Host)?;
        let is_own_port = self.port.is_none_or(|own| port.unwrap_or(self.default_port) == own);
        if !is_own_port || !self.has(&name) {
            return Err(Wrong::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let is_own = origins.next().is_none() && origin.to_str().is_ok_and(|origin| self.is_origin(origin));
        is_own.then_some(()).ok_or(Wrong::Origin)
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&plain(name))
    }

    /// Returns whether a page at `origin` may send requests: a page of this server, or on the loopback address a page
    /// of any other server of the machine. Browsers let the latter send no JSON without asking, and the server never
    /// answers that question with yes.
    fn is_origin(&self, origin: &str) -> bool {
        let Some((scheme, host)) = origin.split_once("://") else { return false };
        let Some((name, _)) = parted(host).filter(|_| matches!(scheme, "http" | "https")) else {
            return false;
        };
        match LOOPBACK.contains(&plain(&name).as_str()) {
            true => self.is_loopback,
            false => self.has(&name),
        }
    }
}

/// Returns `name` as it is compared.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the name and the port of `host`. An IPv6 address is in brackets.
fn parted(host: &str) -> Option<(String, Option<u16>)> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, rest) = host.split_at(end);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(port) => Some((name.to_owned(), Some(port.parse().ok()?))),
        None => rest.is_empty().then(|| (name.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(hosts: &Hosts, pairs: &[(&'static str, &str)]) -> Result<(), Wrong> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        hosts.check(&headers, None)
    }

    #[test]
    fn only_the_names_of_the_server_are_answered() {
        let own = Hosts::new(&[], Some(8137), false, true);
        let team = Hosts::new(&["Memory.example.org".to_owned()], None, true, false);
        for (hosts, host, expected) in [
            (&own, "127.0.0.1:8137", Ok(())),
            (&own, "LocalHost:8137", Ok(())),
            (&own, "localhost.:8137", Ok(())),
            (&own, "[::1]:8137", Ok(())),
            (&own, "localhost", Err(Wrong::Host)),
            (&own, "localhost:80", Err(Wrong::Host)),
            (&own, "evil.example:8137", Err(Wrong::Host)),
            (&own, "127.0.0.1.evil.example:8137", Err(Wrong::Host)),
            (&own, "evil.example@localhost:8137", Err(Wrong::Host)),
            (&own, "localhost:8137:80", Err(Wrong::Host)),
            (&own, "localhost:x", Err(Wrong::Host)),
            (&own, "[::1", Err(Wrong::Host)),
            (&own, "", Err(Wrong::Host)),
            (&team, "memory.example.org", Ok(())),
            (&team, "memory.example.org:443", Ok(())),
            (&team, "memory.example.org.evil.example", Err(Wrong::Host)),
        ] {
            assert_eq!(check(hosts, &[("host", host)]), expected, "{host}");
        }
        assert_eq!(check(&own, &[]), Err(Wrong::Host));
        assert_eq!(check(&own, &[("host", "localhost:8137"), ("host", "localhost:8137")]), Err(Wrong::Host));
        let tls = Hosts::new(&["a.example".to_owned()], Some(443), true, false);
        assert_eq!(check(&tls, &[("host", "a.example")]), Ok(()));
        assert_eq!(tls.check(&HeaderMap::new(), Some("a.example:443")), Ok(()));
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let own = Hosts::new(&[], Some(8137), false, true);
        let team = Hosts::new(&["a.example".to_owned()], None, true, false);
        for (hosts, host, origin, expected) in [
            (&own, "localhost:8137", "http://localhost:8137", Ok(())),
            (&own, "localhost:8137", "http://localhost", Ok(())),
            (&own, "localhost:8137", "http://127.0.0.1:3000", Ok(())),
            (&own, "localhost:8137", "http://evil.example", Err(Wrong::Origin)),
            (&own, "localhost:8137", "http://localhost.evil.example", Err(Wrong::Origin)),
            (&own, "localhost:8137", "null", Err(Wrong::Origin)),
            (&own, "localhost:8137", "file://localhost", Err(Wrong::Origin)),
            (&team, "a.example", "https://a.example", Ok(())),
            (&team, "a.example", "http://localhost:3000", Err(Wrong::Origin)),
            (&team, "a.example", "https://b.example", Err(Wrong::Origin)),
        ] {
            assert_eq!(check(hosts, &[("host", host), ("origin", origin)]), expected, "{origin}");
        }
    }
}
