//! Tests with texts that would make a careless scanner slow.

use super::drawing::one;
use super::{redact, rules};

#[test]
fn text_made_to_be_slow_is_not() {
    // If a rule read on without limit from each of its literals, this test would take hours.
    for rule in rules() {
        for literal in rule.literals {
            for end in ["", "-", "=\"", "@", ": "] {
                redact(&format!("{literal}{end}").repeat(1000));
            }
        }
    }
    let begin = ["-----BEGIN ", "RSA PRIVATE KEY-----"].concat();
    let end = ["-----END ", "RSA PRIVATE KEY-----"].concat();
    let line = one("[A-Za-z0-9+/]", 64);
    let keys = [
        begin.clone(),
        format!("{begin}\n"),
        format!("{end}\n"),
        format!("{begin} {line}@"),
        format!("{line}@{end}"),
        format!("{begin}\nabc def\n"),
    ];
    let others = [
        "Cookie: a=b; ",
        "Cookie: a=",
        "cookies = {",
        "curl -b 'a=b ",
        "kind: Secret\n",
        "kind: Secret\ndata:\n  a: b\n",
        "{\"kind\":\"Secret\",",
        "\"kind\":\"Secret\",\"data\":{",
        "{\"kty\":",
        "zoo ",
        "legal winner ",
        "YWFhYWFhYWFhYWFhYWFhYWFhYWFh ",
        "cGFzc3dvcmQ9aHVudGVyMjIyMg==",
        "70617373776f72643d ",
        "a\u{200b}b ",
        "ghp_\u{200b}",
        "MIIEpAIBAAKCAQEA@",
        "\tTRUE\t/\t",
        "<password>\n",
        "<token>\n x",
        "curl -u \\\n",
        "curl -u \"a:\"",
        "BUNDLE_A__B=aaaa:",
    ];
    let token = one("[A-Za-z0-9]", 3000) + "7";
    let long = [
        format!("API_KEY={token}\n"),
        format!("password: \"{token}\"\n"),
        format!("token='{}' {} ", &token[..32], &token[..32]),
    ];
    let characters = (0..128u8).map(|byte| char::from(byte).to_string());
    for unit in keys.into_iter().chain(others.map(str::to_owned)).chain(long).chain(characters) {
        redact(&unit.repeat(200_000 / unit.len()));
    }
    // Each line has a different length, so that no line continues the one before it.
    let mut lines = begin;
    for length in 40..400 {
        lines += "MIIEpAIBAAKCAQEA";
        lines += &one("[A-Za-z0-9]", length);
        lines += "@";
    }
    redact(&lines);
}
