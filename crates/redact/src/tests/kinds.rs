//! Tests the kinds of secrets that a literal and a pattern can't describe: cookies, manifests, keys in JSON,
//! checksums, phrases, encoded and hidden secrets.

use sha2::{Digest, Sha256};

use super::drawing::one;
use super::{only_mark, redact};
use crate::scanners::checksums::crc16;

/// Returns whether the first bytes of `secret` are gone from `text`, but the text around it is still there.
fn is_gone(text: &str, secret: &str, around: (&str, &str)) -> bool {
    !text.contains(&secret[..secret.len().min(8)]) && text.starts_with(around.0) && text.ends_with(around.1)
}

#[test]
fn session_cookies_go_wherever_they_are_set_or_sent() {
    let plain = one("[a-z0-9]", 26);
    let hex = one("[0-9A-F]", 32);
    let signed = format!("s%3A{}.{}", one("[A-Za-z0-9_-]", 32), one("[A-Za-z0-9]", 43));
    let encoded = ["eyJpdiI6", &one("[A-Za-z0-9+/]", 180), "%3D"].concat();
    let cookies = [
        ("connect.sid", &signed),
        ("PHPSESSID", &plain),
        ("JSESSIONID", &hex),
        ("ASP.NET_SessionId", &one("[a-z0-9]", 24)),
        (".AspNetCore.Cookies", &["CfDJ8", &one("[A-Za-z0-9_-]", 200)].concat()),
        ("laravel_session", &encoded),
        ("_app_session", &format!("{}--{}", one("[A-Za-z0-9+/]", 120), one("[0-9a-f]", 40))),
        ("sessionid", &one("[a-z0-9]", 32)),
        ("csrftoken", &one("[A-Za-z0-9]", 64)),
        (
            "session",
            &format!(
                ".eJ{}.{}.{}",
                one("[A-Za-z0-9_-]", 60),
                one("[A-Za-z0-9]", 6),
                one("[A-Za-z0-9_-]", 27)
            ),
        ),
        ("next-auth.session-token", &one("[0-9a-f]", 64)),
        ("__Secure-next-auth.session-token", &one("[0-9a-f]", 64)),
        ("__Host-session", &one("[A-Za-z0-9]", 40)),
        ("sb-abcdefgh-auth-token", &["base64-", &one("[A-Za-z0-9]", 120)].concat()),
        (
            "wordpress_logged_in_0123abcd",
            &format!("admin%7C1700000000%7C{}%7C{}", one("[A-Za-z0-9]", 43), one("[0-9a-f]", 64)),
        ),
        ("auth_token", &one("[0-9a-f]", 40)),
        ("rack.session", &format!("BAh7{}--{}", one("[A-Za-z0-9]", 80), one("[0-9a-f]", 40))),
        ("user_session", &one("[A-Za-z0-9_-]", 48)),
    ];
    for (name, value) in cookies {
        for (before, after) in [
            (format!("Cookie: {name}="), "\r\nHost: example.com"),
            (format!("Cookie: theme=dark; {name}="), "; lang=de\nHost: example.com"),
            (format!("Set-Cookie: {name}="), "; Path=/; HttpOnly; Secure; SameSite=Lax\r\n"),
            (format!("< set-cookie: {name}="), "; path=/; expires=Wed, 21 Oct 2026 07:28:00 GMT\n"),
            (format!("curl -b '{name}="), "' https://example.com/api"),
            (format!("curl https://example.com --cookie \"{name}="), "\""),
            (format!("curl -H 'Cookie: a=1; {name}="), "; b=2' https://example.com"),
            (format!("document.cookie = \"{name}="), "; path=/\";"),
            (format!("{{\"headers\":{{\"cookie\":\"{name}="), "; lang=de\"}}"),
            (format!("\"cookies\": [{{\"name\": \"{name}\", \"value\": \""), "\", \"path\": \"/\"}]"),
            (format!("cookies = {{'{name}': '"), "'}"),
            (format!("session.cookies.set('{name}', '"), "')"),
            (format!("example.com\tFALSE\t/\tTRUE\t1760000000\t{name}\t"), "\n"),
        ] {
            let text = format!("{before}{value}{after}");
            let redacted = redact(&text);
            assert!(is_gone(&redacted, value, (&before, after)), "{text:?} became {redacted:?}");
        }
    }
}

#[test]
fn cookies_that_open_nothing_stay() {
    for text in [
        "Cookie: theme=dark; lang=de-DE; _ga=GA1.2.1234567890.1700000000; _gid=GA1.2.987654321.1700000000",
        "Set-Cookie: session=deleted; expires=Thu, 01 Jan 1970 00:00:00 GMT; path=/",
        "Set-Cookie: session=; Max-Age=0",
        "Cookie: session=<your session cookie>; token=${TOKEN}",
        "The cookie: a small text. Cookies = crumbs; cookies.get('session') == request.cookies[name]",
        "document.cookie = name + \"=\" + value + \"; path=/\";",
        "const sessionid = request.session_id; db_session = Session(engine)",
        "\"node_modules/cookie\": {\"version\": \"0.4.1\", \"resolved\": \"https://registry.npmjs.org/cookie/-/cookie-0.4.1.tgz\"}",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn values_of_kubernetes_secrets_go_and_their_names_stay() {
    let value = ["aHVudGVy", "Mmh1bnRlcjI="].concat();
    let plain = ["hunter", "2-hunter"].concat();
    for text in [
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  user: {value}\n  ca.crt: {value}\n---\nkind: ConfigMap\ndata:\n  x: kept\n"
        ),
        format!(
            "apiVersion: v1\ndata:\n  user: {value}\nkind: Secret\nmetadata:\n  name: db\n---\nkind: ConfigMap\ndata:\n  x: kept\n"
        ),
        format!(
            "kind: Secret\nstringData:\n  config.yaml: |\n    user: me\n    word: {plain}\n  user: \"{plain}\"\nmetadata:\n  name: kept\n"
        ),
        format!(
            "items:\n- apiVersion: v1\n  data:\n    user: {value}\n  kind: Secret\n- apiVersion: v1\n  data:\n    x: kept\n  kind: ConfigMap\n"
        ),
        format!(
            "{{\"apiVersion\":\"v1\",\"data\":{{\"user\":\"{value}\"}},\"kind\":\"Secret\",\"metadata\":{{\"name\":\"kept\"}}}}"
        ),
        format!(
            "{{\n  \"kind\": \"Secret\",\n  \"data\": {{\n    \"user\": \"{value}\"\n  }},\n  \"type\": \"kept\"\n}}"
        ),
        format!(
            "\"{{\\\"kind\\\":\\\"Secret\\\",\\\"stringData\\\":{{\\\"user\\\":\\\"{plain}\\\"}},\\\"type\\\":\\\"kept\\\"}}\""
        ),
    ] {
        let redacted = redact(&text);
        assert!(
            !redacted.contains(&value[..8]) && !redacted.contains(&plain[..8]),
            "{text} became {redacted}"
        );
        assert!(redacted.contains("kept") && redacted.contains("user"), "{text} became {redacted}");
    }
    // This is how kubectl stores the applied configuration in an annotation.
    let applied = format!("{{\"apiVersion\":\"v1\",\"data\":{{\"user\":\"{value}\"}},\"kind\":\"Secret\"}}");
    for text in [
        format!(
            "kind: Secret\nmetadata:\n  annotations:\n    last-applied-configuration: |\n      {applied}\n  name: x\n"
        ),
        format!(
            "{{\"kind\":\"Secret\",\"metadata\":{{\"annotations\":{{\"last-applied\":\"{}\"}}}}}}",
            applied.replace('"', "\\\"")
        ),
    ] {
        assert!(!redact(&text).contains(&value[..8]), "{text} became {}", redact(&text));
    }
    for text in [
        "kind: SecretStore\ndata:\n  x: c29tZXRoaW5n\n",
        "kind: Secret\ndata:\n  password: {{ .Values.password | b64enc }}\n  x: <base64>\n",
        "kind: ConfigMap\ndata:\n  x: c29tZXRoaW5n\n---\nkind: Secret\nmetadata:\n  name: x\n",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn private_members_of_keys_in_json_go() {
    let (d, n) = (one("[A-Za-z0-9_-]", 43), one("[A-Za-z]", 43));
    for (before, after) in [
        (format!("{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{n}\",\"d\":\""), "\",\"kid\":\"1\"}"),
        (
            format!("{{\"alg\": \"RS256\", \"d\": \"{d}\", \"n\": \"{n}\", \"kty\": \"RSA\", \"qi\": \""),
            "\"}",
        ),
        ("{\"kty\":\"oct\",\"k\":\"".to_owned(), "\"}"),
        ("{\\\"kty\\\":\\\"OKP\\\",\\\"d\\\":\\\"".to_owned(), "\\\"}"),
        ("const key = {kty: 'oct', k: '".to_owned(), "'};"),
    ] {
        let redacted = redact(&format!("{before}{d}{after}"));
        assert!(!redacted.contains(&d[..8]), "{redacted}");
        assert!(redacted.ends_with(after) && redacted.contains(&n) == before.contains(&n), "{redacted}");
    }
    let public = format!("{{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"{n}\"}} {{\"d\":\"{n}\"}}");
    assert_eq!(redact(&public), public);
}

fn base32(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letter =
        |at: usize| letters[(0..5).fold(0, |value, bits| value << 1 | usize::from(bit(5 * at + bits)))];
    (0..(bytes.len() * 8).div_ceil(5)).map(|at| char::from(letter(at))).collect()
}

fn base58(bytes: &[u8]) -> String {
    let letters = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let (mut bytes, mut text) = (bytes.to_vec(), String::new());
    while bytes.iter().any(|byte| *byte > 0) {
        let rest = bytes.iter_mut().fold(0, |rest, byte| {
            let value = rest * 256 + usize::from(*byte);
            *byte = (value / 58) as u8;
            value % 58
        });
        text.insert(0, char::from(letters[rest]));
    }
    text
}

#[test]
fn keys_with_a_checksum_go_and_those_with_a_wrong_one_stay() {
    for (number, role) in [0u8, 2 << 3, 13 << 3, 14 << 3, 20 << 3, 23 << 3].into_iter().enumerate() {
        let mut bytes = vec![18 << 3 | role >> 5, (role & 31) << 3];
        bytes.extend(Sha256::digest([number as u8]));
        bytes.extend(crc16(&bytes).to_le_bytes());
        let seed = base32(&bytes);
        assert!(seed.starts_with('S') && seed.len() == 58, "{seed}");
        assert_eq!(
            only_mark(redact(&format!("seed: {seed}")).trim_start_matches("seed: ")),
            Some("nats-seed"),
            "{seed}"
        );
        let other = seed[..50].to_owned() + if seed.ends_with('A') { "BBBBBBBB" } else { "AAAAAAAA" };
        assert_eq!(redact(&other), other);
    }
    for (first, last) in [(0x80, &[1u8][..]), (0x80, &[]), (0xef, &[1])] {
        let mut bytes = vec![first];
        bytes.extend(Sha256::digest([first, last.len() as u8]));
        bytes.extend(last);
        let checksum = Sha256::digest(Sha256::digest(&bytes));
        bytes.extend(&checksum[..4]);
        let key = base58(&bytes);
        assert_eq!(only_mark(&redact(&key)), Some("wallet-key"), "{key}");
        let other = key.replace(&key[20..22], "zz");
        assert_eq!(redact(&other), other);
    }
}

#[test]
fn phrases_of_wallets_go_in_prose_and_lists() {
    let words: Vec<&str> = include_str!("../scanners/phrases.txt").split_whitespace().collect();
    for count in [12, 15, 18, 21, 24] {
        let mut entropy = Sha256::digest([count as u8])[..count / 3 * 4].to_vec();
        entropy.push(Sha256::digest(&entropy)[0]);
        let bit = |at: usize| usize::from(entropy[at / 8] >> (7 - at % 8) & 1);
        let word = |at: usize| words[(0..11).fold(0, |value, bits| value << 1 | bit(11 * at + bits))];
        let phrase: Vec<&str> = (0..count).map(word).collect();
        let numbered = |end: &str| {
            phrase.iter().enumerate().map(|(n, word)| format!("{}. {word}{end}", n + 1)).collect::<String>()
        };
        for text in [
            phrase.join(" "),
            phrase.join("\n"),
            phrase.join(", "),
            phrase.join(" ").to_uppercase(),
            format!("[\"{}\"]", phrase.join("\", \"")),
            numbered("\n"),
            numbered(" "),
        ] {
            let redacted = redact(&format!("It was written down (here): {text}; nothing else."));
            assert!(redacted.contains("[REDACTED:wallet-phrase:"), "{redacted}");
            let left = phrase.iter().filter(|word| redacted.contains(&format!(" {word}"))).count();
            assert!(left <= 1 && redacted.ends_with("nothing else."), "{redacted}");
        }
        let rows = count / 3;
        let column = |row: usize, column: usize| (column * rows + row + 1, phrase[column * rows + row]);
        let cell = |(number, word)| format!("{number:>2} {word:9}");
        let columns = |row: usize| (0..3).map(|at| cell(column(row, at))).collect::<Vec<_>>().join("  ");
        let logged = |(n, words): (usize, &[&str])| format!("10:00:0{n} INFO wallet: {}", words.join(" "));
        for text in [
            (0..rows).map(columns).collect::<Vec<_>>().join("\n"),
            phrase.chunks(4).enumerate().map(logged).collect::<Vec<_>>().join("\n"),
            phrase.iter().enumerate().map(|(n, word)| format!("[log] word {n}: {word}\n")).collect(),
            format!("<li>{}</li>", phrase.join("</li><li>")),
        ] {
            let redacted = redact(&text);
            let left = phrase.iter().filter(|word| redacted.contains(&format!(" {word}"))).count();
            assert!(redacted.contains("[REDACTED:wallet-phrase:") && left == 0, "{text} became {redacted}");
        }
        let mut wrong = phrase.clone();
        wrong.swap(0, 1);
        wrong.truncate(11);
        assert_eq!(redact(&wrong.join(" ")), wrong.join(" "));
    }
    let list = words.join("\n");
    assert_eq!(redact(&list), list);
}

#[test]
fn one_layer_of_base64_or_hexadecimal_is_seen_through() {
    let token = ["ghp", "_", &one("[A-Za-z0-9]", 36)].concat();
    let address = ["postgres://app:", "s3cr", "3tP4ss@db.example.com/app"].concat();
    for inner in [
        token.clone(),
        format!("GITHUB_TOKEN={token}\n"),
        address,
        format!("{{\"user\":\"me\",\"token\":\"{token}\"}}"),
    ] {
        for encoded in [
            base64(inner.as_bytes()),
            base64(inner.as_bytes()).trim_end_matches('=').to_owned(),
            hex(inner.as_bytes()),
        ] {
            for (before, after) in [
                ("", ""),
                ("echo ", " | base64 -d"),
                ("value: \"", "\"\n"),
                ("\\n", "\\n"),
                ("https://example.com/?x=", "&y=1"),
            ] {
                let text = format!("{before}{encoded}{after}");
                let redacted = redact(&text);
                let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                assert!(middle.and_then(only_mark).is_some(), "{text} became {redacted}");
            }
        }
    }
    let long = base64(
        format!("{}\nTOKEN={token}\n{}", "# nothing here\n".repeat(8), "# nor here\n".repeat(8)).as_bytes(),
    );
    let lines: Vec<&str> =
        long.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    assert!(only_mark(&redact(&lines.join("\n"))).is_some());
    let kept = base64("Nothing that is secret stands in this sentence, nor in the next one.".as_bytes());
    assert_eq!(redact(&kept), kept);
}

fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let four = |three: &[u8]| {
        let bits =
            three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        let letter =
            |at: usize| if at > three.len() { '=' } else { char::from(letters[bits >> (18 - 6 * at) & 63]) };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn invisible_characters_hide_nothing() {
    let token = ["ghp", "_", &one("[A-Za-z0-9]", 36)].concat();
    let password = ["s3cr", "3tP4ss"].concat();
    for hidden in [
        "\u{200b}",
        "\u{200c}",
        "\u{200d}",
        "\u{2060}",
        "\u{feff}",
        "\u{ad}",
        "\u{200b}\u{200d}",
        "\u{202e}",
        "\u{fe0f}",
    ] {
        for at in [1, 3, 4, 20] {
            let (first, last) = token.split_at(at);
            let redacted = redact(&format!("use {first}{hidden}{last} é 🔑, and go on"));
            assert!(redacted.starts_with("use [REDACTED:github-token:"), "{redacted}");
            assert!(redacted.ends_with("] é 🔑, and go on"), "{redacted}");
        }
        let everywhere: String =
            token.chars().flat_map(|letter| [letter.to_string(), hidden.to_owned()]).collect();
        assert!(!redact(&everywhere).contains(&token[4..6]), "{hidden:?}");
        let redacted = redact(&format!("pass{hidden}word={password}\n"));
        assert!(!redacted.contains(&password), "{redacted}");
    }
    let emoji = "✔️ done 👩‍💻 and می‌خواهم, Schiff\u{ad}fahrt, \u{feff}BOM\u{200b}";
    assert_eq!(redact(emoji), emoji);
}

#[test]
fn credentials_of_any_scheme_go() {
    let secret = one("[A-Za-z0-9]", 32);
    for (before, after) in [
        ("Authorization: Api-Token ", "\n"),
        ("Authorization: ApiKey ", "\r\nHost: x"),
        ("\"Authorization\": \"SSWS ", "\","),
        ("-H 'Authorization: PVEAPIToken ", "' https://example.com"),
        ("headers.set(\"Authorization\", \"GenieKey ", "\")"),
        ("Proxy-Authorization: NTLM ", "\n"),
    ] {
        let redacted = redact(&format!("{before}{secret}{after}"));
        assert!(is_gone(&redacted, &secret, (before, after)), "{redacted}");
    }
    let text = "Authorization: Digest username=\"me\", realm=\"x\"; Authorization: scheme credentials-are-described-below";
    assert_eq!(redact(text), text);
}

#[test]
fn secrets_are_found_past_what_stands_between_name_and_value() {
    let secret = format!("Kq7{}", one("[A-Za-z0-9]", 21));
    let forms = [
        "password=\x1b[32m@\x1b[0m",
        "\\x1b[1;34mpassword\\x1b[0m: \\x1b[33m@\\x1b[0m",
        "\\033[1mpassword\\033[0m=@",
        "password: |\n  @\n",
        "password: &anchor @\n",
        "Content-Disposition: form-data; name=\"password\"\r\n\r\n@\r\n--B--",
        "{\"db\": {\"value\": \"@\", \"sensitive\": true}}",
        "aws ssm put-parameter --name a --type SecureString --value @",
        "echo '@' | sudo -S true",
        "assert_eq!(config.password, \"@\");",
        "driver.find_element(By.ID, \"password\").send_keys(\"@\")",
        "let token = live ? load : \"@\";",
    ];
    for form in forms {
        let text = form.replace('@', &secret);
        assert!(!redact(&text).contains(&secret), "{text:?} keeps its secret");
    }
}
