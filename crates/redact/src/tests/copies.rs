//! Tests that a secret is replaced wherever the text has it again.

use super::drawing::one;
use super::redact;
use crate::Redactor;
use crate::copies::Places;

#[test]
fn copies_of_a_secret_go_too() {
    let values = [
        one("[A-Za-z0-9]", 32),
        one("[0-9a-f]", 40),
        one("[A-Z2-7]", 24),
        format!("{}-{}_{}", one("[A-Za-z0-9]", 12), one("[a-z0-9]", 10), one("[A-Z0-9]", 9)),
        format!("{}+/{}==", one("[A-Za-z0-9]", 20), one("[A-Za-z0-9]", 20)),
    ];
    for value in &values {
        for (before, between, after) in [
            ("token='", "' | '", "'"),
            ("api_key = \"", "\"\nprint(\"", "\")\n"),
            ("{\"client_secret\": \"", "\", \"seen\": [\"", "\"]}"),
            ("export API_TOKEN=", "\n$ curl https://example.com/v1/", "/items\n"),
        ] {
            let text = format!("{before}{value}{between}{value}{after}");
            let redacted = redact(&text);
            let marks = redacted.matches("[REDACTED:").count();
            assert!(!redacted.contains(&value[..8]) && marks == 2, "{text:?} became {redacted:?}");
            assert_eq!(redact(&redacted), redacted);
            // The copy may come first.
            let text = format!("seen: {value}\n{before}{value}{between}");
            assert!(!redact(&text).contains(&value[..8]), "{text:?} became {:?}", redact(&text));
        }
    }
}

#[test]
fn copies_have_the_mark_of_the_secret() {
    let value = one("[A-Za-z0-9]", 32);
    let redacted = redact(&format!("token='{value}'\nseen {value}, and {value}\n"));
    let mark = redacted["token='".len()..].split('\'').next().expect("there is a quote");
    assert_eq!(redacted, format!("token='{mark}'\nseen {mark}, and {mark}\n"));
}

#[test]
fn words_short_values_and_parts_of_words_stay() {
    // A password of words and a short one are replaced where they are assigned, and nowhere else.
    for value in ["fern-river-58", "hunter2hunter", "Kd83hT2x"] {
        let rest = format!("\nthe {value} stays, and {value}\n");
        let redacted = redact(&format!("password = \"{value}\"{rest}"));
        assert!(redacted.ends_with(&rest) && redacted.contains("[REDACTED:"), "{value}: {redacted:?}");
    }
    let value = one("[A-Za-z0-9]", 32);
    for rest in [format!("x{value}"), format!("{value}x"), format!("_{value}_"), value[..31].to_owned()] {
        let redacted = redact(&format!("token='{value}'\n({rest})\n"));
        assert!(redacted.ends_with(&format!("\n({rest})\n")), "{rest}: {redacted:?}");
    }
}

#[test]
fn a_stream_keeps_the_copies_that_it_has_shown() {
    let value = one("[A-Za-z0-9]", 32);
    let text = format!("seen {value}\ntoken='{value}' and {value}\n");
    let redacted = Redactor::blank().redact_at(&text, Places::After).text.into_owned();
    assert_eq!(redacted.matches(&value).count(), 1, "{redacted}");
    assert!(redacted.starts_with(&format!("seen {value}\n")), "{redacted}");
}
