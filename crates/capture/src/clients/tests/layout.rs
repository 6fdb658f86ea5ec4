//! Tests edits of settings in any layout.

use proptest::prelude::*;

use super::*;

#[test]
fn cutting_an_entry_keeps_its_surroundings() {
    let ours = r#""mcpServers": {"tiro": {}}"#;
    for (text, left) in [
        ("{OURS}", "{}"),
        ("{ OURS , }", "{}"),
        ("{\"a\": 1, OURS}", "{\"a\": 1}"),
        ("{OURS, \"a\": 1}", "{ \"a\": 1}"),
        ("{\n  \"a\": 1, // one\n  OURS }", "{\n  \"a\": 1 // one\n   }"),
        ("{\n  \"a\": 1 // one\n  , OURS // ours?\n}", "{\n  \"a\": 1 // one\n   // ours?\n}"),
        ("{\n  // above\n  OURS, // beside\n  \"b\": 2,\n}", "{\n  // above\n   // beside\n  \"b\": 2,\n}"),
        ("{ // only\n OURS}", "{ // only\n }"),
        (
            "{\"a\": 1, /* b */ OURS /* c */ , /* d */ \"e\": 2}",
            "{\"a\": 1, /* b */ /* c */  /* d */ \"e\": 2}",
        ),
    ] {
        let text = text.replace("OURS", ours);
        assert_eq!(cut::remove(&text, None, &gemini::OURS).unwrap(), left, "{text}");
    }
}

/// White space and comments in any place.
fn trivia() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(String::new()),
        3 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just(" // a, \"comment\" }\n".to_owned()),
        1 => Just("/* two\n lines { */".to_owned()),
        1 => Just("\n\n// https://example.com/*\n".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("mcpServers".to_owned()), 2 => Just("hooks".to_owned()), 1 => Just("tiro".to_owned()),
        1 => Just("BeforeAgent".to_owned()), 4 => "[a-f]{1,3}", 1 => Just(r"\u00e9\n".to_owned()),
    ]
}

fn jsonc() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("\"// no comment\"".to_owned()),
        Just("\"\\\"},\"".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 40, 5, |inner| {
        let spaced = (trivia(), inner, trivia()).prop_map(|(a, value, b)| format!("{a}{value}{b}")).boxed();
        let member = (trivia(), key(), trivia(), spaced.clone())
            .prop_map(|(a, key, b, value)| (key.clone(), format!("{a}\"{key}\"{b}:{value}")));
        prop_oneof![
            1 => (prop::collection::vec(spaced, 0..4), trivia(), any::<bool>())
                .prop_map(|(values, end, comma)| joined("[", values, &end, comma, "]")),
            3 => (prop::collection::vec(member, 0..5), trivia(), any::<bool>()).prop_map(|(members, end, comma): (Vec<(String, String)>, String, bool)| {
                let mut seen = std::collections::HashSet::new();
                let members = members.into_iter().filter(|(key, _)| seen.insert(key.clone()));
                joined("{", members.map(|(_, text)| text).collect(), &end, comma, "}")
            }),
        ]
    });
    (prop_oneof![3 => Just(""), 1 => Just("\u{feff}")], trivia(), value, trivia())
        .prop_map(|(mark, a, value, b)| format!("{mark}{a}{value}{b}"))
}

fn joined(open: &str, parts: Vec<String>, end: &str, comma: bool, close: &str) -> String {
    let last = if comma && !parts.is_empty() { "," } else { "" };
    format!("{open}{}{last}{end}{close}", parts.join(","))
}

/// Returns the values of `old` that `new` lacks or changes, by their keys.
fn lost(old: &serde_json::Value, new: &serde_json::Value) -> Vec<String> {
    match (old, new) {
        (serde_json::Value::Object(old), serde_json::Value::Object(new)) => old
            .iter()
            .flat_map(|(key, value)| match new.get(key) {
                Some(new) => lost(value, new).into_iter().map(|path| format!("{key}.{path}")).collect(),
                None => vec![key.clone()],
            })
            .collect(),
        (serde_json::Value::Array(old), serde_json::Value::Array(new)) => {
            if new.starts_with(old) {
                Vec::new()
            } else {
                vec!["[]".to_owned()]
            }
        }
        _ if old == new => Vec::new(),
        _ => vec![format!("={old}")],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn settings_in_any_layout_keep_everything_and_come_back(old in jsonc()) {
        let entries = gemini::entries(BINARY);
        let plain = |text: &str| edit::value(text.trim_start_matches('\u{feff}')).unwrap();
        let old_value = plain(&old);
        let new = match edit::insert(&old, &entries, &gemini::OURS) {
            Ok(new) => new,
            Err(error) => {
                // This may fail only if a value of another type is where our entry belongs.
                let is_other = |value: Option<&serde_json::Value>| value.is_some_and(|value| !value.is_object());
                let (servers, hooks) = (old_value.get("mcpServers"), old_value.get("hooks"));
                prop_assert!(
                    is_other(Some(&old_value)) || is_other(servers) || is_other(hooks)
                        || is_other(servers.and_then(|servers| servers.get("tiro")))
                        || hooks.and_then(|hooks| hooks.get("BeforeAgent")).is_some_and(|value| !value.is_array()),
                    "{}", error
                );
                return Ok(());
            }
        };
        let new_value = plain(&new);
        prop_assert_eq!(lost(&old_value, &new_value), Vec::<String>::new());
        prop_assert_eq!(&new_value["mcpServers"]["tiro"]["command"], BINARY);
        prop_assert_eq!(new.starts_with('\u{feff}'), old.starts_with('\u{feff}'));
        prop_assert_eq!(comments(&new), comments(&old), "{}", new);
        prop_assert_eq!(&edit::insert(&new, &entries, &gemini::OURS).unwrap(), &new);
        let left = cut::remove(&new, Some(&old), &gemini::OURS).unwrap();
        prop_assert_eq!(plain(&left), old_value);
        prop_assert_eq!(comments(&left), comments(&old), "{}", left);
    }
}

/// Returns how often each comment of [`trivia`] is in `text`.
fn comments(text: &str) -> [usize; 3] {
    let text = text.replace("\r\n", "\n");
    ["// a, \"comment\" }", "/* two\n lines { */", "// https://example.com/*"]
        .map(|comment| text.matches(comment).count())
}
