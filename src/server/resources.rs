//! The URIs of sessions and memories: `tiro://session/{id}` and `tiro://memory/{id}`.
//!
//! An agent may choose any id for a session, so ids are percent-encoded. The authority of a URI is the kind of the
//! resource. A URI names no project, because a server has only one project.

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

use tiro_tools::SessionEntry;

const SESSION: &str = "tiro://session/";
const MEMORY: &str = "tiro://memory/";
const MIME_TYPE: &str = "text/markdown";

/// The resource that a URI names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    Session(String),
    Memory(String),
}

impl Address {
    /// Returns the resource that `uri` names; `None` if no resource of Tiro has such a URI.
    pub(super) fn parse(uri: &str) -> Option<Address> {
        if let Some(id) = uri.strip_prefix(SESSION) {
            return decode(id).map(Address::Session);
        }
        decode(uri.strip_prefix(MEMORY)?).map(Address::Memory)
    }
}

/// Returns the description of `session` for the list of resources.
pub(super) fn listed(session: &SessionEntry) -> Resource {
    Resource::new(format!("{SESSION}{}", encode(&session.id)), &session.id)
        .with_title(&session.title)
        .with_description(&session.description)
        .with_mime_type(MIME_TYPE)
}

/// Returns the templates of URIs that clients can fill in.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SESSION}{{id}}"), "session")
            .with_title("A session")
            .with_description("The messages of one conversation, by its session id")
            .with_mime_type(MIME_TYPE),
        ResourceTemplate::new(format!("{MEMORY}{{id}}"), "memory")
            .with_title("A memory")
            .with_description("The full text of one memory, by the id that a search returned")
            .with_mime_type(MIME_TYPE),
    ]
}

/// Returns the text at `uri` in the protocol's type.
pub(super) fn contents(text: String, uri: String) -> ResourceContents {
    ResourceContents::text(text, uri).with_mime_type(MIME_TYPE)
}

/// Percent-encodes all characters except the unreserved ones of a URI (RFC 3986, section 2.3).
fn encode(id: &str) -> String {
    let mut encoded = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Decodes the result of [`encode`]. `None` if the text is empty or is not percent-encoded UTF-8.
fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_id_survives_its_uri(id in ".{1,40}") {
            let uri = format!("{SESSION}{}", encode(&id));
            prop_assert!(uri.is_ascii());
            prop_assert_eq!(Address::parse(&uri), Some(Address::Session(id)));
        }

        #[test]
        fn no_uri_panics(uri in "tiro://(memory|session)?/[%a-fé0-9]{0,12}") {
            let _ = Address::parse(&uri);
        }
    }

    #[test]
    fn other_uris_are_refused() {
        for uri in [
            "",
            "tiro://session/",
            "tiro://project/x",
            "file:///etc/passwd",
            "tiro://memory/%f",
            "tiro://memory/%ff",
        ] {
            assert_eq!(Address::parse(uri), None, "{uri}");
        }
        assert_eq!(Address::parse("tiro://memory/m7"), Some(Address::Memory("m7".to_owned())));
    }
}
