//! The address of a server, and where a server may listen.
//!
//! Without a host, a server listens on the loopback address. Everything here is pure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tiro_base::error::{Error, Result, quoted};

/// Reads an address: `8137`, `:8137`, `localhost:8137`, `127.0.0.1:8137` or `[::1]:8137`. Without a host, it is the
/// loopback address.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the text is no address. Names other than
/// `localhost` are refused, because a name can lead anywhere.
pub fn read(text: &str) -> Result<SocketAddr> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    match (host.to_ascii_lowercase().as_str(), port.parse()) {
        ("" | "localhost", Ok(port)) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        _ => Err(Error::bad_input(format!("`{}` is no address to listen on", quoted(text)))
            .hint("name a port, such as 8137, or an IP address with a port, such as 127.0.0.1:8137")),
    }
}

/// Returns whether only programs of this machine reach `address`.
pub fn is_loopback(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
    }
}

/// What protects the requests of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Whether there are personal keys. If so, each request needs one.
    pub has_keys: bool,
    /// Whether the server has a TLS certificate.
    pub has_tls: bool,
    /// Whether a proxy receives the requests by TLS and passes them on.
    pub is_behind_proxy: bool,
}

/// Checks that a server may listen on `address`. `tells_users` says whether this system tells whose a connection is.
///
/// On the loopback address, the server may answer without keys, but then only the user who started it. On any other
/// address, and behind a proxy, everyone can send requests, so keys are needed. Keys must not be readable on their way,
/// so TLS is needed too.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) and a hint that says what to do.
pub fn check(address: SocketAddr, protection: Protection, tells_users: bool) -> Result<()> {
    let add_key = "`tiro user add NAME` makes a key";
    if protection.is_behind_proxy && protection.has_tls {
        return Err(Error::bad_input("`--behind-proxy` and `--tls-cert` exclude each other").hint(
            "use `--behind-proxy` if a proxy does TLS, and `--tls-cert` with `--tls-key` if the server does",
        ));
    }
    if !protection.has_keys {
        let why = match (is_loopback(address), protection.is_behind_proxy) {
            (false, _) => "every machine of the network could use it",
            (true, true) => "everyone who reaches the proxy could use it",
            (true, false) if !tells_users => "this system doesn't tell which user a connection belongs to",
            (true, false) => return Ok(()),
        };
        let message = format!("a server on `{address}` needs personal keys, because {why}");
        return Err(Error::bad_input(message).hint(add_key));
    }
    if !is_loopback(address) && !protection.has_tls && !protection.is_behind_proxy {
        let message =
            format!("a server on `{address}` needs TLS, because keys and texts could be read on their way");
        return Err(Error::bad_input(message).hint(
            "add `--tls-cert FILE --tls-key FILE`, or `--behind-proxy` if a proxy in front of it does TLS",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_the_loopback_address() {
        for (text, expected) in [
            ("8137", Some("127.0.0.1:8137")),
            (":8137", Some("127.0.0.1:8137")),
            (" localhost:8137", Some("127.0.0.1:8137")),
            ("LOCALHOST:0", Some("127.0.0.1:0")),
            ("127.0.0.1:8137", Some("127.0.0.1:8137")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("127.0.0.1", None),
            ("example.org:80", None),
            ("65536", None),
            ("::1:80", None),
            ("", None),
        ] {
            assert_eq!(read(text).ok().map(|address| address.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_the_loopback_address_needs_no_keys_and_no_tls() {
        let none = Protection::default();
        let keys = Protection { has_keys: true, ..none };
        let tls = Protection { has_tls: true, ..keys };
        let proxy = Protection { is_behind_proxy: true, ..keys };
        let keyless_proxy = Protection { has_keys: false, ..proxy };
        for (address, protection, tells_users, expected) in [
            ("127.0.0.1:80", none, true, None),
            ("127.0.0.1:80", none, false, Some("doesn't tell which user")),
            ("127.0.0.1:80", keys, false, None),
            ("127.0.0.1:80", keyless_proxy, true, Some("reaches the proxy")),
            ("[::1]:80", none, true, None),
            ("[::ffff:127.0.0.1]:80", none, true, None),
            ("0.0.0.0:80", none, true, Some("needs personal keys")),
            ("0.0.0.0:80", Protection { has_keys: false, ..tls }, true, Some("needs personal keys")),
            ("10.0.0.1:80", keys, true, Some("needs TLS")),
            ("[::]:80", keys, true, Some("needs TLS")),
            ("10.0.0.1:80", tls, true, None),
            ("10.0.0.1:80", proxy, true, None),
            ("10.0.0.1:80", Protection { has_tls: true, ..proxy }, true, Some("exclude each other")),
        ] {
            let checked = check(address.parse().unwrap(), protection, tells_users);
            let message = checked.err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{address} {protection:?}"),
                Some(part) => assert!(message.as_ref().is_some_and(|it| it.contains(part)), "{message:?}"),
            }
        }
    }
}
