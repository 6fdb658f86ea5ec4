//! Tests redaction with tables of text with and without secrets, and tests the promises of [`super`] on generated
//! text.
//!
//! This file has no secrets: examples are drawn from the rules' patterns or put together from parts.

mod copies;
mod drawing;
mod forms;
mod keys;
mod kinds;
mod slow;

use proptest::prelude::*;

use super::*;
use drawing::{drawn, one};

/// Surroundings of a secret: the text before and after it.
const SURROUNDINGS: &[(&str, &str)] = &[
    ("", ""),
    ("{\"value\": \"", "\", \"next\": 1}"),
    ("{\\\"value\\\": \\\"", "\\\"}"),
    ("line one\\n", "\\nline three"),
    ("https://api.example.com/v1/items?limit=5&k=", "&page=2"),
    ("https%3A%2F%2Fexample.com%2F%3Fk%3D", "%26page%3D2"),
    ("https://api.example.com/v1/", "/items"),
    ("wget https://example.com/download/", ""),
    ("https://", "@example.com/owner/repo.git"),
    ("https://me:", "@example.com/owner/repo.git"),
    ("GET /v1/", "/items HTTP/1.1"),
    ("export VALUE=", "\nexport NEXT=1"),
    ("export VALUE='", "'"),
    ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n+", "\n-old"),
    ("-  value: \"", "\"\n"),
    ("Use `", "` here, said the [manual](https://example.com)."),
    ("```\n", "\n```"),
    ("这是密钥：", "，请保管。"),
    ("密钥", "请保管"),
    ("<td>", "</td>"),
    ("f(", ")"),
    ("It is ", ", and that was it"),
    ("\u{1b}[32m", "\u{1b}[0m"),
    ("     7\t", "\n     8\tnext"),
];

fn redactor() -> Redactor {
    Redactor::new([7; 32])
}

fn redact(text: &str) -> String {
    redactor().redact(text).text.into_owned()
}

/// Returns the rule's id if `text` is a single mark.
fn only_mark(text: &str) -> Option<&str> {
    let (id, hash) = text.strip_prefix("[REDACTED:")?.strip_suffix(']')?.split_once(':')?;
    (hash.len() == 3 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
}

#[test]
fn the_table_holds_together() {
    let mut ids: Vec<_> = rules().map(|rule| rule.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique");
    assert!(count >= 200, "{count} rules");
    for rule in rules() {
        assert!(
            rule.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}",
            rule.id
        );
        assert!(rule.id.len() < 40 && !rule.what.is_empty() && !rule.source.is_empty(), "{}", rule.id);
        assert!(
            !rule.literals.is_empty() && rule.literals.iter().all(|literal| !literal.is_empty()),
            "{}",
            rule.id
        );
        if let Shape::Token { pattern, .. } | Shape::Named { pattern } = &rule.shape {
            // The limit also catches a pattern that counts the same class of characters twice, since its machine
            // would be too large.
            let size = engine::machine(pattern).memory_usage();
            assert!(size < 150_000, "the machine of {} has {size} bytes", rule.id);
        }
    }
}

#[test]
fn every_token_is_redacted_whole_wherever_it_stands() {
    for rule in rules() {
        let Shape::Token { pattern, before, .. } = &rule.shape else { continue };
        // The literal of such a rule is inside its secrets, where drawing from the pattern doesn't put it.
        // `keys_with_a_mark_inside` tests these rules.
        if matches!(before, Before::Base64(_)) {
            continue;
        }
        let mut found = 0;
        let secrets = drawn(pattern, 6);
        // In rare cases a drawn token looks like words. Then it is not replaced, so it is left out here.
        for secret in secrets.iter().filter(|secret| only_mark(&redact(secret)) == Some(rule.id)) {
            found += 1;
            for (before, after) in SURROUNDINGS {
                // If a token may contain such a sign, the text after the sign may belong to the token.
                if after.starts_with(['/', '@']) && pattern.contains(&after[..1]) {
                    continue;
                }
                let text = format!("{before}{secret}{after}");
                let redacted = redact(&text);
                let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                assert!(middle.and_then(only_mark).is_some(), "{}: {text:?} became {redacted:?}", rule.id);
            }
        }
        assert!(found >= 4, "{}: {found} of {secrets:?}", rule.id);
    }
}

#[test]
fn keys_with_a_mark_inside() {
    for (head, mark, tail) in [(76, "+ASt", 6), (76, "ACDb", 6), (33, "+ARm", 6), (42, "AzSe", 6)] {
        let secret = format!("{}{mark}{}==", one("[A-Za-z0-9]", head), one("[A-Za-z0-9]", tail));
        let text = format!("key {secret}, and so on");
        let redacted = redact(&text);
        let middle = redacted.strip_prefix("key ").and_then(|rest| rest.strip_suffix(", and so on"));
        assert_eq!(
            middle.and_then(only_mark),
            Some("azure-identifiable-key"),
            "{text:?} became {redacted:?}"
        );
    }
}

#[test]
fn every_vendors_name_makes_a_secret_of_its_value() {
    for rule in rules() {
        let Shape::Named { pattern } = &rule.shape else { continue };
        for literal in rule.literals {
            let upper = literal.to_uppercase().replace(' ', "_");
            let speaks = ["KEY", "TOKEN", "SECRET", "API"].iter().any(|word| upper.contains(word));
            let name = if speaks { upper } else { format!("{upper}_API_TOKEN") };
            let forms = [
                ("export ", "=", "\n"),
                ("{\"", "\": \"", "\"}"),
                ("", ": ", "\n"),
                ("+  ", " = '", "';"),
                ("run --", " ", " --verbose"),
                ("os.environ[\"", "\"] = \"", "\"\n"),
                ("<", ">", "</x>"),
                ("{\\\"", "\\\":\\\"", "\\\"}"),
                ("- name: ", "\n  value: \"", "\"\n"),
            ];
            let secrets = drawn(pattern, 4);
            let found =
                |secret: &&String| redact(&format!("{name}={secret}\n")) != format!("{name}={secret}\n");
            let secrets: Vec<_> = secrets.iter().filter(found).collect();
            assert!(secrets.len() >= 3, "{}: {secrets:?} of 4", rule.id);
            for secret in secrets {
                for (before, between, after) in forms {
                    let text = format!("{before}{name}{between}{secret}{after}");
                    let redacted = redact(&text);
                    let middle = redacted.strip_prefix(&format!("{before}{name}{between}"));
                    let middle = middle.and_then(|rest| rest.strip_suffix(after));
                    assert!(
                        middle.and_then(only_mark).is_some(),
                        "{}: {text:?} became {redacted:?}",
                        rule.id
                    );
                }
            }
        }
    }
}

#[test]
fn assignments_lose_their_values() {
    let password = ["Tr0ub4", "dor&3"].concat();
    let (season, hyphened) = (["Sommer", "2024"].concat(), ["correct-", "Horse7battery"].concat());
    let random = one("[A-Za-z0-9]", 24);
    let hex = one("[0-9a-f]", 32);
    let texts = [
        format!("DB_PASSWORD={password}"),
        format!("export PGPASSWORD='{password}'"),
        format!("password: \"{password}\""),
        format!("  password: {password}\n"),
        format!("mysql --password {password} -h db"),
        format!("Server=db;Database=x;User Id=sa;Password={password},x]y;Encrypt=true"),
        format!("jdbc:sqlserver://db:1433;user=sa;password={password};"),
        format!("<password>{password}</password>"),
        format!("<add key=\"DbPassword\" value=\"{password}\" />"),
        format!("let password: &str = \"{password}\";"),
        format!("$config['db']['password'] = '{password}';"),
        format!(":password => '{password}',"),
        format!("setPassword(\"{password}\")"),
        format!("os.environ.get(\"DB_PASSWORD\", \"{password}\")"),
        format!("machine git.example.com login me password {password}"),
        format!("| password | {password} |"),
        format!("**Password:** {password}"),
        format!("the password is {password}, keep it"),
        format!("My password is {password}…"),
        format!("My password = {password} and it works"),
        format!("password = {password}\n"),
        format!("our password is {season}"),
        format!("My password = {season}! and it works"),
        format!("my password is {season}! and it works"),
        format!("The password: {season}! or so"),
        format!("password = \"{hyphened}\""),
        format!("the password is \"{hyphened}\", keep it"),
        format!("DB_PASSWORD={hyphened}"),
        format!("https://example.com/login?user=me&password={random}&x=1"),
        format!("https%3A%2F%2Fexample.com%3Fpassword%3D{random}%26x%3D1"),
        format!("{{\\\"client_secret\\\":\\\"{random}\\\"}}"),
        format!("const apiKey: string = `{random}`;"),
        format!("SECRET_KEY_BASE={random}"),
        format!("curl -H 'X-Api-Key: {hex}' https://example.com"),
        format!("headers.insert(\"X-Auth-Token\", \"{hex}\")"),
        format!("&quot;token&quot;: &quot;{hex}&quot;"),
        format!("//registry.npmjs.org/:_authToken={random}"),
        format!("密码：password={random}，请保管"),
        format!("api_key = SecretString::from(\"{random}\")"),
        format!("Authorization: Token {hex}"),
        format!("\"Authorization\": \"Bearer {random}\""),
        format!("Authorization: Bearer {random}"),
        format!("curl -u admin:{password} https://example.com"),
        format!("ALTER USER app WITH PASSWORD '{password}';"),
        format!("CREATE USER app IDENTIFIED BY '{password}';"),
        format!("#define API_KEY \"{random}\""),
        format!("ENV API_TOKEN {random}"),
        format!("sshpass -p '{password}' ssh host"),
        format!("docker login -u me -p {password} registry.example.com"),
    ];
    for text in texts {
        let redacted = redact(&text);
        let secrets = [&password, &season, &hyphened, &random, &hex];
        let leaks = secrets.into_iter().any(|secret| redacted.contains(&secret[..6]));
        assert!(!leaks && redacted.contains("[REDACTED:"), "{text:?} became {redacted:?}");
    }
    let semicolons = redact(&format!("Server=db;Password={password},x]y;Encrypt=true"));
    assert!(semicolons.ends_with("];Encrypt=true") && !semicolons.contains("x]y"), "{semicolons}");
}

#[test]
fn addresses_lose_their_passwords_and_nothing_else() {
    let password = ["s3cr", "3tP4ss"].concat();
    for (before, after) in [
        ("postgres://app:", "@db.example.com:5432/app?sslmode=require"),
        ("mongodb+srv://app:", "@cluster0.example.net/app"),
        ("redis://:", "@localhost:6379/0"),
        ("amqp://app:", "@mq/%2f"),
        ("DATABASE_URL=\"mysql://root:", "@127.0.0.1/app\""),
        ("https://me:", "@example.com/repo.git"),
        ("https://x-access-token:", "@example.com/repo.git"),
        ("jdbc:oracle:thin:app/", "@//db:1521/x"),
    ] {
        let redacted = redact(&format!("{before}{password}@/x{after}").replace("@/x@", "@"));
        let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        assert_eq!(middle.and_then(only_mark), Some("url-password"), "{redacted:?}");
    }
    // A single bracket does not make a template.
    for sign in ["(", ")", "{", "}", "[", "]", "{7", "(9)"] {
        let text = format!("postgres://app:{password}{sign}Xk9@db/app");
        assert_eq!(redact(&text).find("[REDACTED:url-password:"), Some(15), "{text}");
    }
    for text in
        ["postgres://app:{password}@db", "postgres://app:x{password}y@db", "amqp://a:get_password()@mq"]
    {
        assert_eq!(redact(text), text);
    }
    // Characters of a password that should have been escaped are replaced together with the rest.
    let redacted = redact(&format!("postgres://app:{password}/p@ss#x@db/app"));
    assert!(redacted.ends_with("]@db/app"), "{redacted:?}");
}

#[test]
fn private_blocks_go_whatever_is_in_them() {
    let mark = redact("<private>x</private>");
    assert_eq!(only_mark(&mark), Some("private"));
    assert_eq!(redact("a <PRIVATE>x</Private> b <private>y"), format!("a {mark} b {}", redact("<private>y")));
    assert_eq!(redact("<private>a<private>b</private>c</private>d").len(), mark.len() + 1);
    assert_eq!(redact("a</private> <privateer> <Private Use>"), "a</private> <privateer> <Private Use>");
    assert_eq!(only_mark(&redact("\\u003cprivate\\u003ex\\u003c/private\\u003e")), Some("private"));
    let nested = redact(&format!("<private>{mark} token</private>"));
    assert_eq!(only_mark(&nested), Some("private"), "{nested}");
}

#[test]
fn tokens_of_standard_form_are_told_by_it() {
    let part = |length| one("[A-Za-z0-9_-]", length);
    let jwt = ["eyJhbGciOi", "JIUzI1NiJ9.eyJ", &part(40), ".", &part(43)].concat();
    assert_eq!(only_mark(&redact(&jwt)), Some("jwt"));
    assert_eq!(
        redact(&format!("Authorization: Bearer {jwt}\n")),
        format!("Authorization: Bearer {}\n", redact(&jwt))
    );
    let jwe = ["eyJhbGciOi", "JkaXIiLCJlbmMi..", &part(22), ".", &part(60), ".", &part(22)].concat();
    assert_eq!(only_mark(&redact(&jwe)), Some("jwt"));
    let basic = ["YWRtaW46", "aHVudGVyMnh5eg=="].concat();
    assert_eq!(only_mark(&redact(&format!("Basic {basic}"))[6..]), Some("basic-auth"));
    let id = ["AKIA", &one("[A-Z2-7]", 16)].concat();
    let secret = one("[A-Za-z0-9/+]", 40);
    let csv = redact(&format!("{id},{secret}\n"));
    assert!(csv.contains("aws-access-key-id:") && csv.contains("aws-secret-beside-id:"), "{csv}");
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let sha1 = one("[0-9a-f]", 40);
    let sha256 = one("[0-9a-f]", 64);
    let base64 = one("[A-Za-z0-9+/]", 4000);
    let uuid = [one("[0-9a-f]", 8), one("[0-9a-f]", 4), one("[0-9a-f]", 4), one("[0-9a-f]", 12)].join("-");
    let texts = [
        format!("commit {sha1}\nAuthor: A <a@example.com>"),
        format!("checksum = \"{sha256}\""),
        format!("\"integrity\": \"sha512-{}==\"", &base64[..86]),
        format!("session_id: {uuid}"),
        format!("id = \"{uuid}\""),
        format!("background: url(data:image/png;base64,{base64})"),
        format!("primary_key: {uuid}"),
        format!("cache_key = \"{sha256}\""),
        format!("\"key\": \"{sha1}\""),
        format!("next_page_token = \"{sha1}\""),
        format!("datadog_commit_sha = \"{sha1}\""),
        format!("uses: actions/checkout@{sha1}"),
        format!("image: registry.example.com/app@sha256:{sha256}"),
        format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} me@host", &base64[..43].replace(['/', '+'], "a")),
    ];
    for text in texts.iter().map(String::as_str).chain(ORDINARY.iter().copied()) {
        let redacted = redactor().redact(text);
        assert_eq!(redacted.text, text);
        assert!(matches!(redacted.text, Cow::Borrowed(_)) && redacted.found.is_empty());
    }
}

/// Code, settings and prose that mention secrets but contain none.
const ORDINARY: &[&str] = &[
    "let token = tokenizer.next_token();",
    "let token: Token = self.tokens[self.position + 1].clone();",
    "struct Login { user: String, password: String, token: Option<Token> }",
    "pub password_hash: PasswordHash256,",
    "password = getpass.getpass('Password: ')",
    "password=os.environ['DB_PASSWORD'], token=process.env.GITHUB_TOKEN",
    "API_KEY=${API_KEY}\nSECRET_KEY=$SECRET_KEY\nTOKEN=$(cat token.txt)",
    "api_key: <your-api-key>\npassword: \"********\"\ntoken: xxxxxxxxxxxxxxxxxxxxxxxx",
    "password: changeme\nsecret: {{ vault_secret }}\nkey: %(api_key)s",
    "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-your-key-here  # or sk-...",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "if (password.length < 8) throw new Error('Password must be at least 8 characters');",
    "const tokens = text.split(' '); const maxTokens = 4096; let tokenCount = 128000;",
    "tokenize(text, {secret: false, keys: ['a', 'b'], authKeys: 12})",
    "author = \"Jane Doe\"\nauthority = \"login.example.com\"\nkeyboard = \"us-intl\"",
    ".password-input { color: #ff00ff; } .token.keyword { color: #07a; } .sk-spinner-pulse { width: 40px }",
    "!function(e,t){var n=e.token,r=t.password;n=n||r.key;e.auth=function(){return t(e.secret,n)}}(window,jQuery);",
    "<input type=\"password\" name=\"password\" placeholder=\"Password\" autocomplete=\"current-password\">",
    "| password | string | The password of the user |",
    "The secret is to keep the key in the vault; the token is sent as a bearer token.",
    "Use Basic authentication or Bearer tokens: `Authorization: Bearer <token>`.",
    "postgres://user:password@localhost/db amqp://guest:guest@localhost redis://localhost:6379",
    "https://example.com:8080/@scope/package@1.2.3 git@github.com:owner/repo.git ssh://git@host/x",
    "format!(\"postgres://{user}:{password}@{host}\") `https://${user}:${pass}@${host}`",
    "Accept: text/html; disk-usage task-manager risk-assessment-matrix-for-large-projects",
    concat!(
        "const BEGIN = \"-----BEGIN",
        " PRIVATE KEY-----\"; const END = \"-----END",
        " PRIVATE KEY-----\";"
    ),
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----",
    "class Bot2TokenHandler(Sam2TokenEncoderModel): token_type = Token2WavConfig",
    "pub const STATUS_WRONG_PASSWORD: NTSTATUS = 0xC000006A_u32 as _;",
    "def f(private_key: x25519.X25519PrivateKey, token: SecretStr) -> None: ...",
    "sort_key = lambda x: x[0]; foreign_key = 'user_id'; partition_key=\"tenant-42-eu-west-1\"",
    "2024-01-15T10:00:00Z token expired; retry-after=30 x-request-id=req-0001",
    "password = getenv(\"DB_PASSWORD\")\npassword: string\npassword = None\ntoken = next_token()",
    "password = newPass1\npassword = args.password1\nif password == oldPassword1: pass; my password is required! and so is yours; My password is wrong! My password is too short.",
    "The password is base64! and then hashed; the password is SHA256 hashed, our password is SHA256-hashed.",
    "password = \"db_password_2\"; password: \"Password-Field1\"; const passwordInput = \"Login-Form-Field2\"",
    "secretName: \"my-Secret1\", tokenName = \"My-Token1\", passes = \"Pass-1-of-2\", password = config.Db-V2",
    "1 + 1 = 2 \\u003c not a tag \\u003e and 50% of keys: 3, pass: 12, fail: 0",
];

#[test]
fn marks_tell_secrets_apart_and_nothing_more() {
    let (first, second) = (one("[A-Za-z0-9]", 40), one("[a-z0-9]", 40));
    let text = |secret: &str| format!("npm_{secret} \"npm_{secret}\"");
    let redacted = redactor().redact(&text(&first)).text.into_owned();
    let (left, right) = redacted.split_once(' ').expect("two marks");
    assert_eq!(left, right.trim_matches('"'));
    assert_ne!(left, redact(&text(&second)).split_once(' ').expect("two marks").0);
    assert_ne!(redacted, Redactor::new([8; 32]).redact(&text(&first)).text);
    assert_eq!(redactor().redact(&text(&first)).found, [Finding { rule: "npm-token", count: 2 }]);
    assert!(!format!("{:?}", redactor()).contains('7'));
}

/// Generates parts of secrets, of marks and of their surroundings.
fn pieces() -> impl Strategy<Value = String> {
    let literals: Vec<String> =
        rules().flat_map(|rule| rule.literals).map(|literal| (*literal).to_owned()).collect();
    let secrets: Vec<String> = rules()
        .filter_map(|rule| match &rule.shape {
            Shape::Token { pattern, .. } | Shape::Named { pattern } => drawn(pattern, 1).pop(),
            Shape::Scanned(_) => None,
        })
        .collect();
    let others = [
        "password",
        "=",
        ": ",
        "\"",
        "'",
        "\\",
        "\n",
        "\\n",
        " ",
        "https",
        "://",
        ":",
        "@",
        "host",
        "/",
        "%3D",
        "é",
        "密",
        concat!("-----BEGIN", " PRIVATE KEY-----"),
        concat!("-----END", " PRIVATE KEY-----"),
        "<private>",
        "</private>",
        "[REDACTED:jwt:01234567]",
        "[REDACTED:",
        "]",
        "🔑",
        "Bearer ",
        "Basic ",
        ";",
        "&",
        "curl -u ",
        "x",
        "0",
        "value",
        ",",
        "(",
        ")",
        "export ",
    ];
    let others: Vec<String> = others.iter().map(|piece| (*piece).to_owned()).collect();
    prop_oneof![
        3 => proptest::sample::select(others),
        2 => proptest::sample::select(secrets),
        1 => proptest::sample::select(literals),
        1 => "[A-Za-z0-9+/=_-]{1,40}",
        1 => "\\PC{0,6}",
    ]
}

proptest! {
    #[test]
    fn redacting_again_changes_nothing(parts in proptest::collection::vec(pieces(), 0..24)) {
        let text = parts.concat();
        let once = redact(&text);
        let twice = redactor().redact(&once);
        prop_assert_eq!(&twice.text, &once);
        prop_assert!(twice.found.is_empty());
    }

    #[test]
    fn any_text_is_taken(text in "\\PC*|(?s).{0,80}") {
        redact(&text);
    }
}
