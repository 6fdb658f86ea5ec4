//! Tests forms of values and tokens: alone on a line between two tags, long, split between quotes, in the settings of a
//! package manager; and look-alikes.

use super::drawing::one;
use super::redact;

/// Returns whether redaction replaces `secret` between `before` and `after` and nothing else.
fn taken(before: &str, secret: &str, after: &str) -> bool {
    let redacted = redact(&format!("{before}{secret}{after}"));
    let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    middle.and_then(super::only_mark).is_some()
}

fn stays(text: &str) -> bool {
    redact(text) == text
}

#[test]
fn values_alone_between_two_tags_go() {
    let key = one("[a-z0-9]", 32);
    let password = ["kT7v", "Lq2z#Rw9"].concat();
    for (before, secret, after) in [
        ("<accessToken>\n    ", &key, "\n</accessToken>"),
        ("<accessToken>\r\n\t", &key, "\r\n</accessToken>\r\n"),
        ("<api_key>\n", &key, "\n</api_key>"),
        ("<password>\n  ", &password, "\n</password>\n"),
        ("<db>\n  <password>\n\n    ", &password, "\n  </password>\n</db>\n"),
    ] {
        assert!(taken(before, secret, after), "{before}: {:?}", redact(&format!("{before}{secret}{after}")));
    }
    for text in [
        "<password>\n  required\n</password>\n",
        "<token>\n  <value/>\n</token>\n",
        "<Token>\n  {children}\n</Token>\n",
        "<password>\n  Enter at least 8 characters\n</password>\n",
        "Vec<Token>\n    where T: Parser2\n",
        "<secret>\n  ${DB_SECRET}\n</secret>\n",
    ] {
        assert!(stays(text), "{text:?} became {:?}", redact(text));
    }
}

#[test]
fn values_that_are_joined_to_a_string_go() {
    let key = one("[A-Za-z0-9]", 32);
    assert!(taken("$accessToken .= \"", &key, "\";\n"));
    assert!(taken("$api_key.='", &key, "';\n"));
    assert!(stays("$token .= $this->next_token();\n"));
    assert!(stays("$password .= chr(rand(33, 126));\n"));
}

#[test]
fn long_values_go_whole() {
    for length in [255, 256, 257, 320, 321, 322, 400, 1279, 1280, 1281, 3000] {
        let key = one("[A-Za-z0-9_-]", length - 1) + "7";
        for (before, after) in [
            ("API_KEY=", "\nNEXT=1\n"),
            ("API_KEY=", ""),
            ("api_key = \"", "\"\n"),
            ("{\"refresh_token\": \"", "\", \"expires_in\": 3600}"),
            ("grant_type=refresh_token&refresh_token=", "&scope=all"),
            ("password: \"", "\"\n"),
            ("DB_PASSWORD=", "\n"),
            ("--token ", " --next"),
        ] {
            let text = format!("{before}{key}{after}");
            assert!(taken(before, &key, after), "{length}: {text:?} became {:?}", redact(&text));
        }
        let padded = one("[A-Za-z0-9+/]", length - 1) + "7==";
        assert!(taken("API_KEY=", &padded, "\n"), "{length}");
    }
    let words = "a sentence of many words, ".repeat(40);
    let path = "src/components/forms/".repeat(30);
    for value in [&words, &path, &"x".repeat(900), &"token:name:".repeat(60)] {
        for text in [format!("password: \"{value}\"\n"), format!("API_KEY={value}\n")] {
            assert!(stays(&text), "{text:?} became {:?}", redact(&text));
        }
    }
}

#[test]
fn tokens_of_services_go() {
    let hex = |length| one("[0-9a-f]", length);
    let flutterwave = ["FLWSECK_", "TEST-", &hex(12)].concat();
    assert!(taken("flutterwavePubKeyToken = \"", &flutterwave, "\""));
    assert!(taken("key ", &["FLWPUBK_", "TEST-", &hex(32), "-X"].concat(), "\n"));
    assert!(taken("clone ", &["BBDC", "-MTk4MDE0MzAyMDIz", &one("[A-Za-z0-9]", 27)].concat(), "\n"));
    let slack = ["xo", "xe-4726837507825-4848681849303-4856614048758-", &hex(32)].concat();
    assert!(taken("https:\\/\\/files.slack.com\\/image.png?t=", &slack, "\""));
    for (before, after) in [("run&sv=1.0&", "'"), ("paths/invoke?", "&api-version=1")] {
        assert!(taken(before, &["sig=", &one("[A-Za-z0-9_-]", 42), "7"].concat(), after), "{before}");
    }
    let key = one("[A-Za-z0-9]", 40);
    assert!(taken("DUO_SKEY=", &key, "\n") && taken("\"duo_skey\": \"", &key, "\""));
    let azure = ["a.x7", "Q~", &one("[A-Za-z0-9_.~-]", 33), "k"].concat();
    for before in ["Example= ", "client: '", "\\n"] {
        assert!(taken(before, &azure, "\n"), "{before}: {azure}");
    }
}

#[test]
fn logins_of_gem_sources_go() {
    let login = [hex8(1), hex8(2)].join(":");
    for (before, after) in [
        ("BUNDLE_ENTERPRISE__CONTRIBSYS__COM: ", "\n"),
        ("export BUNDLE_GEMS__EXAMPLE__COM=", "\n"),
        ("export BUNDLE_GEMS__EXAMPLE__COM=\"", "\" && bundle\n"),
        ("export BUNDLE_GEMS__EXAMPLE__COM = ", "; bundle\n"),
    ] {
        assert!(taken(before, &login, after), "{before}");
    }
    for text in [
        "BUNDLE_PATH=vendor/bundle\n",
        "BUNDLE_GEMS__EXAMPLE__COM=$USER:$PASSWORD\n",
        "BUNDLE_GEMS__EXAMPLE__COM: \"user:password\"\n",
        "BUNDLE_MIRROR__EXAMPLE: \"https://gems.example.com/\"\n",
        "BUNDLE_BUILD__NOKOGIRI: \"--use-system-libraries\"\n",
    ] {
        assert!(stays(text), "{text:?} became {:?}", redact(text));
    }
}

/// Returns eight hexadecimal digits.
fn hex8(seed: usize) -> String {
    one("[0-9a-f]", 8 * seed)[8 * (seed - 1)..].to_owned()
}

#[test]
fn logins_given_to_curl_go_across_lines_and_quotes() {
    let password = ["pRf7v", "G2h1L8nQkW9"].concat();
    for (before, after) in [
        ("curl -u \\\n  app:", " https://example.com"),
        ("curl -X POST https://example.com \\\n  -d x \\\n  -u app:", "\n"),
        ("curl https://example.com \\\r\n  --user app:", " -v"),
        ("curl --user app:'", "' -i"),
        ("curl --user \"app\":\"", "\" -i"),
        ("curl -u 'app':'", "' -i"),
        ("curl -u \"", ":\" https://example.com"),
        ("curl -u ", ": https://example.com"),
    ] {
        let text = format!("{before}{password}{after}");
        assert!(taken(before, &password, after), "{text:?} became {:?}", redact(&text));
    }
    for text in [
        "curl -u \"$USER\":\"$PASSWORD\" https://example.com",
        "curl -u app: https://example.com",
        "curl -u \"admin:\" https://example.com",
        "curl -u \\\n  app:$PASSWORD https://example.com",
        "curl https://example.com\n  -u app:something",
        "docker run -u 'app':'staff' image",
    ] {
        assert!(stays(text), "{text:?} became {:?}", redact(text));
    }
}

#[test]
fn names_of_images_words_and_alphabets_stay() {
    let hash = one("[0-9a-f]", 64);
    for text in [
        format!("https://example.com/video_box.ico-{}.png", &hash[..32]),
        format!("https://example.com/pubblico-{}?pvs=74", &hash[..32]),
        format!("<img src=\"./assets/vipul-{hash}.png\">"),
        "https://example.com/2018-250-xoxo-indieweb-1.jpg".to_owned(),
        format!("\"task_test_{}\"", one("[a-z0-9]", 30)),
        "const validKeyChars = \"0123456789abcdefghijklmnopqrstuvwxyz_-.\"".to_owned(),
    ] {
        assert!(stays(&text), "{text:?} became {:?}", redact(&text));
    }
    let stripe = ["sk_", "test_", &one("[A-Za-z0-9]", 30)].concat();
    assert!(taken("STRIPE_", &stripe, "\n") && taken("line\\n", &stripe, "\\n"));
}
