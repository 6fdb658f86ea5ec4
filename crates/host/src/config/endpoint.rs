//! Checks the addresses of providers.

use std::net::IpAddr;

use tiro_base::error::{Error, Result};

/// The form of a valid endpoint, for hints.
pub(super) const ENDPOINT: &str = "an address, http:// or https://, without user, query or fragment";

/// Returns the host in `endpoint`.
///
/// # Errors
///
/// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) unless `endpoint` consists only of a scheme, a host, a port and
/// a plain path. Two parsers could read any other address differently, one as a local address and the other as a remote
/// address.
pub fn host(endpoint: &str) -> Result<&str> {
    let parse = || {
        let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._~-".contains(&byte);
        if !path.bytes().all(is_path) || path.contains("..") {
            return None;
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<IpAddr>().is_ok())?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        let is_host = authority.starts_with('[') || (!host.is_empty() && host.bytes().all(is_name));
        let is_port =
            port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        (is_host && is_port).then_some(host)
    };
    parse().ok_or_else(|| {
        Error::bad_input("the endpoint is not a plain address").hint(format!("give {ENDPOINT}"))
    })
}

/// Returns whether `host` is a loopback address or `localhost`.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
