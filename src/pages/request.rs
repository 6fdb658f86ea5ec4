//! The fields of a request: those of its address, or those of a form.

use maud::{Markup, html};

use super::text::plain;

/// The name of the field with the token that a change needs.
pub const FORM_TOKEN: &str = "form";

/// A request, as a view sees it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    fields: Vec<(String, String)>,
    form_token: String,
}

impl Request {
    /// Returns a request with these fields. `form_token` goes into the forms of the view.
    pub fn new(fields: Vec<(String, String)>, form_token: &str) -> Request {
        Request { fields, form_token: form_token.to_owned() }
    }

    /// Returns the field `name` without white space around it, or `None` if it is missing or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(key, _)| key == name);
        field.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the field `name` for a field of a form, with hidden characters as escapes.
    pub fn shown(&self, name: &str) -> String {
        plain(self.get(name).unwrap_or_default()).into_owned()
    }

    /// Returns the field `name` exactly as it was written.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the field `name` as a number. A field that is not a number counts as missing.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }

    /// Returns the field `name` for an argument of an operation.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns the hidden field that every form with a change contains.
    pub fn token(&self) -> Markup {
        html! { input type="hidden" name=(FORM_TOKEN) value=(self.form_token); }
    }
}

/// Returns an address within the pages, with the fields that have a value.
pub fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        address.push(if address.contains('?') { '&' } else { '?' });
        address += name;
        address.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    address.push(char::from(byte));
                }
                _ => address += &format!("%{byte:02X}"),
            }
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_escaped_in_an_address() {
        assert_eq!(
            address("/memory", &[("id", "a b#3&c=\"é"), ("x", "")]),
            "/memory?id=a%20b%233%26c%3D%22%C3%A9"
        );
        assert_eq!(address("/", &[]), "/");
    }

    #[test]
    fn empty_fields_are_missing() {
        let fields = [("q", " a "), ("k", ""), ("n", "7"), ("m", "-7")];
        let request = Request::new(fields.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(), "t");
        assert_eq!((request.get("q"), request.raw("q"), request.get("k")), (Some("a"), Some(" a "), None));
        assert_eq!((request.number("n"), request.number("m"), request.number("q")), (Some(7), None, None));
    }
}
