//! Configurations in any layout keep everything, and removing our entry restores the same bytes.

use proptest::prelude::*;

use super::*;

/// A configuration of a client in the layout of a person.
#[derive(Clone, Debug)]
struct Written {
    client: McpClient,
    text: String,
}

fn comment() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 1 => Just(" // \"tiro\": {}"), 1 => Just(" /* a } b */"), 1 => Just(" // https://x/*")]
}

/// Returns configurations with other servers and settings, with comments, in several indentations and line ends.
fn written() -> impl Strategy<Value = Written> {
    let clients: Vec<McpClient> = with_files().collect();
    let server = prop_oneof![
        Just(r#"{ "command": "a", "args": ["-y", "b"] }"#.to_owned()),
        Just("{}".to_owned()),
        Just(r#"{ "url": "https://example.com/mcp", "headers": { "k": "\"v\"" } }"#.to_owned()),
        // A server of the user that starts Tiro.
        Just(r#"{"command":"tiro","args":["serve"]}"#.to_owned()),
    ];
    let servers = prop::collection::vec(
        (prop_oneof![3 => "[a-d]{1,2}", 1 => Just("tiro".to_owned())], server, comment()),
        0..4,
    );
    let layout = (
        prop_oneof![Just("  "), Just("\t"), Just("    "), Just("")],
        prop_oneof![Just("\n"), Just("\r\n"), Just(" ")],
        prop_oneof![3 => Just(""), 1 => Just("\u{feff}")],
        any::<(bool, bool, bool)>(),
    );
    let members = (comment(), comment(), prop::option::of(servers), any::<(bool, bool)>());
    (prop::sample::select(clients), layout, members).prop_map(|(client, layout, members)| {
        let (indent, end, mark, (comma, last_end, is_blank)) = layout;
        let (above, beside, servers, (before, after)) = members;
        if is_blank && servers.is_none() && !before && !after {
            let text = format!("{mark}{}", if last_end { end } else { "" });
            return Written { client, text };
        }
        // A comment up to the end of the line needs a line end.
        let shown = |text: &str| match text.strip_prefix(" // ") {
            Some(text) if end == " " => format!(" /* {text} */"),
            _ => text.to_owned(),
        };
        let trailing = if comma { "," } else { "" };
        let mut parts = Vec::new();
        if before {
            parts.push(format!("{indent}\"first\": [1, {{ \"x\": null }}]"));
        }
        if let Some(servers) = servers {
            let mut seen = BTreeSet::new();
            let servers = servers.into_iter().filter(|(name, ..)| seen.insert(name.clone()));
            let lines: Vec<String> = servers
                .map(|(name, body, note)| format!("{}{end}{indent}{indent}\"{name}\": {body}", shown(note)))
                .collect();
            let inside = match lines.is_empty() {
                true => String::new(),
                false => format!("{}{trailing}{end}{indent}", lines.join(",")),
            };
            parts.push(format!("{indent}\"{}\": {{{inside}}}", client.entry().unwrap().servers));
        }
        if after {
            parts.push(format!("{indent}\"last\": \"// no comment\""));
        }
        let inside = match parts.is_empty() {
            true => String::new(),
            false => format!("{}{trailing}", parts.join(&format!(",{}{end}", shown(beside)))),
        };
        let text = format!("{mark}{{{}{end}{inside}{end}}}{}", shown(above), if last_end { end } else { "" });
        Written { client, text }
    })
}

/// Returns the comments of a text in JSON, each as often as it is there.
fn comments(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = ["\"tiro\": {}", "a } b", "https://x/"]
        .iter()
        .flat_map(|each| text.matches(each))
        .map(str::to_owned)
        .collect();
    comments.sort();
    comments
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn removing_restores_the_same_bytes(written in written(), is_recorded in any::<bool>()) {
        let Written { client, text } = &written;
        let body = text.trim_start_matches('\u{feff}');
        let old = if body.trim().is_empty() { json!({}) } else { edit::value(body).unwrap() };
        let servers = client.entry().unwrap().servers;
        let desk = Desk::new();
        desk.put(*client, text);
        let plan = desk.planned(*client);
        let former = old.get(servers).and_then(|servers| servers.get("tiro"));
        if former.is_some_and(|server| server["command"] != "tiro") {
            prop_assert_eq!(plan.findings.len(), 1);
            return Ok(());
        }
        desk.connect(*client);
        let new = desk.read(*client);
        prop_assert_eq!(new.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        prop_assert_eq!(comments(&new), comments(text), "{}", new);
        let value = edit::value(new.trim_start_matches('\u{feff}')).unwrap();
        let mut rest = value.clone();
        let ours = rest[servers].as_object_mut().unwrap().remove("tiro").unwrap();
        prop_assert_eq!(&ours["command"], BINARY);
        let mut expected = old.clone();
        let _ = expected.get_mut(servers).and_then(|servers| servers.as_object_mut()?.remove("tiro"));
        if expected.get(servers).is_none() {
            expected[servers] = json!({});
        }
        prop_assert_eq!(rest, expected, "everything else stays");

        if is_recorded {
            desk.remove();
            prop_assert_eq!(&desk.read(*client), text);
        } else if former.is_none() {
            fs::remove_dir_all(desk.record()).unwrap();
            desk.remove();
            let left = fs::read_to_string(desk.path(*client)).unwrap_or_default();
            prop_assert_eq!(comments(&left), comments(text), "{}", left);
            let left = left.trim_start_matches('\u{feff}');
            let left = if left.trim().is_empty() { json!({}) } else { edit::value(left).unwrap() };
            let mut old = old;
            if old.get(servers) == Some(&json!({})) {
                // Without a record, it is unknown whether the object was there before.
                old.as_object_mut().unwrap().remove(servers);
            }
            prop_assert_eq!(left, old);
        }
    }
}
