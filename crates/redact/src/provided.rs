//! Remembers the keys of configured providers while the process runs, so that they are found in any text. The keys are
//! found in plain form, in base64, in hexadecimal, and escaped as in a URL.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};

use super::form::{is_stand_in, is_wordy};

/// The minimum number of bytes of a key. A shorter key could be an ordinary word.
const LEAST: usize = 12;

static KEYS: RwLock<Keys> = RwLock::new(Keys { keys: Vec::new(), forms: None });

/// How many keys are remembered.
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Keys {
    keys: Vec<String>,
    /// Finds the forms of all keys.
    forms: Option<Arc<AhoCorasick>>,
}

/// Remembers `key`, so that it is redacted in every text from now on. A key that could be an ordinary word or a
/// placeholder, such as local servers accept, is not remembered.
pub fn remember(key: &str) {
    let ordinary =
        key.len() < LEAST || is_stand_in(key.as_bytes()) || key.len() < 32 && is_wordy(key.as_bytes());
    if ordinary || KEYS.read().unwrap_or_else(PoisonError::into_inner).keys.iter().any(|known| known == key) {
        return;
    }
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    keys.keys.push(key.to_owned());
    let mut all: Vec<Vec<u8>> = keys.keys.iter().flat_map(|key| forms(key.as_bytes())).collect();
    all.sort();
    all.dedup();
    let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&all);
    keys.forms = built.ok().map(Arc::new);
    COUNT.store(keys.keys.len(), Ordering::Release);
}

/// Returns how many keys are remembered. If this number has grown, a text that was clean before may now contain a
/// remembered key.
pub fn remembered() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// Returns the ranges of `text` that are a form of a remembered key. A run of base64 is returned as a whole.
pub(super) fn keys(text: &[u8]) -> Vec<Range<usize>> {
    if remembered() == 0 {
        return Vec::new();
    }
    let forms = KEYS.read().unwrap_or_else(PoisonError::into_inner).forms.clone();
    let found = forms.iter().flat_map(|forms| forms.find_iter(text)).map(|found| found.range());
    found.collect()
}

/// Returns the forms of `key` that are searched.
fn forms(key: &[u8]) -> Vec<Vec<u8>> {
    let hex = |upper: bool| {
        let digit = |byte: &u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        key.iter().map(digit).collect::<String>().into_bytes()
    };
    let escaped = |plain: &dyn Fn(u8) -> bool, lead: &str| {
        let one = |byte: &u8| {
            if plain(*byte) { char::from(*byte).to_string() } else { format!("{lead}{byte:02X}") }
        };
        key.iter().map(one).collect::<String>().into_bytes()
    };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut forms = vec![key.to_vec(), hex(false), hex(true), escaped(&word, "%")];
    // In base64, a key can begin at each of three places of a group, depending on the bytes before it. Characters that
    // also contain bits of a neighbour are left out.
    for shift in 0..3 {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(key);
        let first = [0, 2, 3][shift];
        let whole = padded.len() * 8 / 6;
        for letters in [b"+/", b"-_"] {
            forms.push(base64(&padded, *letters)[first..whole].to_vec());
        }
    }
    forms
}

/// Returns `bytes` in base64 without padding. The alphabet ends with the two letters `last`.
fn base64(bytes: &[u8], last: [u8; 2]) -> Vec<u8> {
    let letter = |value: u32| match value {
        0..26 => b'A' + value as u8,
        26..52 => b'a' + (value - 26) as u8,
        52..62 => b'0' + (value - 52) as u8,
        62 => last[0],
        _ => last[1],
    };
    let group = |group: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        let count = group.len() * 8 / 6 + usize::from(group.len() < 3);
        (0..count).map(move |at| letter(bits >> (18 - 6 * at) & 63)).collect::<Vec<u8>>()
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Redactor;

    #[test]
    fn a_key_of_a_provider_is_found_in_any_form_and_place() {
        // Letters alone, which no rule would take for a key.
        let key = ["plainly", "worded", "keyof", "someprovider+ofours"].concat();
        let text = |form: &str| format!("see {form}.");
        let redact = |text: &str| Redactor::blank().redact(text).text.into_owned();
        assert_eq!(redact(&text(&key)), text(&key));
        remember(&key);
        let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
        for form in [key.clone(), hex, key.replace('+', "%2B"), format!("x{key}y"), format!("/a/{key}/b")] {
            let redacted = redact(&text(&form));
            assert!(
                redacted.contains("[REDACTED:provider-key:000]") && !redacted.contains(&key[4..20]),
                "{redacted}"
            );
        }
        for before in ["", "a", "ab", "abc"] {
            let encoded = String::from_utf8(base64(format!("{before}{key}\n").as_bytes(), *b"+/")).unwrap();
            let redacted = redact(&text(&encoded));
            assert!(redacted.contains("[REDACTED:") && !redacted.contains(&encoded[8..24]), "{redacted}");
        }
        for ordinary in ["ollama", "not-needed", "your-api-key-here", "local development"] {
            let count = remembered();
            remember(ordinary);
            assert_eq!(remembered(), count, "{ordinary}");
        }
    }
}
