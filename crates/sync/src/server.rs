//! The address of a server.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use tiro_base::error::{Error, Result, quoted};

/// The address of a server: `https://` with any host, or `http://` with a host that is this machine. A key that
/// travelled unencrypted would no longer be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    base: Url,
    /// The project that the address names, if any.
    project: Option<String>,
}

impl Server {
    /// Reads an address as a person writes it. The address of MCP, with `/mcp` or `/mcp/PROJECT` at its end, stands for
    /// its server.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if it is no address, or would carry the key
    /// unencrypted to another machine.
    pub fn read(text: &str) -> Result<Server> {
        let hint = "write it like https://memory.example.org";
        let wrong = |why: &str| {
            // An address with a password isn't quoted.
            Error::bad_input(format!("the address of the server {why}")).hint(hint)
        };
        let mut base = Url::parse(text.trim()).map_err(|_| wrong("is no address of the web"))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("has a user or a password"));
        }
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none_or(str::is_empty) {
            return Err(wrong("doesn't begin with https://"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("has a query or a fragment"));
        }
        if base.scheme() == "http" && !is_loopback(&base) {
            let host = base.host_str().unwrap_or_default();
            return Err(Error::bad_input(format!("the key would travel to `{}` unencrypted", quoted(host))).hint(
                "use the server's https:// address; a tunnel ends on this machine, such as http://localhost:8137 \
                 with `ssh -L 8137:localhost:8137 HOST`",
            ));
        }
        let path = base.path().trim_end_matches('/').to_owned();
        let (path, project) = match path.rsplit_once("/mcp") {
            Some((before, "")) => (before, None),
            Some((before, rest)) if rest.starts_with('/') && !rest[1..].contains('/') => {
                (before, Some(rest[1..].to_owned()))
            }
            _ => (path.as_str(), None),
        };
        base.set_path(path);
        Ok(Server { base, project })
    }

    /// Returns the project that the address names, if any.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Returns whether requests stay on this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Returns whether requests are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Returns the address of `parts` beneath this one. Each part is one step of the path.
    pub(crate) fn at(&self, parts: &[&str]) -> Url {
        let mut address = self.base.clone();
        let mut path = address.path_segments_mut().expect("an address of the web has a path");
        path.pop_if_empty().extend(parts);
        drop(path);
        address
    }
}

/// Shows the address without a slash at its end.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

/// Returns whether the host is a loopback address or `localhost`.
fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map_or(host == "localhost", |ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_write_it() {
        for (text, shown, project) in [
            ("https://memory.example.org", "https://memory.example.org", None),
            (" https://memory.example.org/ ", "https://memory.example.org", None),
            ("https://memory.example.org:8137/mcp", "https://memory.example.org:8137", None),
            ("https://memory.example.org/mcp/web/", "https://memory.example.org", Some("web")),
            ("https://example.org/tiro/mcp/web", "https://example.org/tiro", Some("web")),
            ("https://example.org/mcp-old", "https://example.org/mcp-old", None),
            ("http://127.0.0.1:8137/mcp", "http://127.0.0.1:8137", None),
            ("http://[::1]:8137", "http://[::1]:8137", None),
            ("http://localhost:8137", "http://localhost:8137", None),
        ] {
            let server = Server::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((server.to_string().as_str(), server.project()), (shown, project), "{text}");
        }
        let server = Server::read("https://example.org/tiro/").unwrap();
        assert_eq!(server.at(&["sync", "a/b"]).as_str(), "https://example.org/tiro/sync/a%2Fb");
    }

    #[test]
    fn a_key_travels_encrypted_or_not_at_all() {
        for text in [
            "http://memory.example.org",
            "http://10.0.0.1:8137",
            "http://localhost.example.org",
            "http://0.0.0.0",
        ] {
            let error = Server::read(text).unwrap_err();
            assert!(error.to_string().contains("unencrypted"), "{text}: {error}");
        }
        let secret = "https://ana:tiro_0123@memory.example.org";
        assert!(!Server::read(secret).unwrap_err().with_hint().contains("0123"));
        for text in [
            "",
            "memory.example.org",
            "ftp://a",
            "file:///etc/passwd",
            "https://",
            "https://a?x=1",
            "https://a#x",
        ] {
            assert!(Server::read(text).is_err(), "{text}");
        }
    }
}
