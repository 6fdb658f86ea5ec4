//! Texts that cost more to process than their length suggests. They are runs of every class of character (alone,
//! between words, and mixed), beginnings of secrets, and the separators at which texts are chunked, counted, indexed
//! and summarised.
//!
//! The functions here are pure: the same size gives the same texts. No text consists only of white space, which
//! `save_messages` refuses.

/// Runs, each a name and the text that is repeated.
const RUNS: &[(&str, &str)] = &[
    ("spaces", " "),
    ("tabs", "\t"),
    ("line feeds", "\n"),
    ("carriage returns", "\r"),
    ("line ends", "\r\n"),
    ("blank lines", " \n"),
    ("blanks", " \t"),
    ("form feeds", "\u{c}"),
    ("no-break spaces", "\u{a0}"),
    ("em spaces", "\u{2003}"),
    ("line separators", "\u{2028}"),
    ("next lines", "\u{85}"),
    ("ideographic spaces", "\u{3000}"),
    ("letters", "a"),
    ("capitals", "A"),
    ("camels", "aB"),
    ("alphabet", "abcdefghijklmnopqrstuvwxyz"),
    ("digits", "1"),
    ("decimals", "1.5 "),
    ("hexadecimal", "0123456789abcdef"),
    ("words", "lorem ipsum "),
    ("single letters", "a b "),
    ("sentences", "A b. C d? E f! "),
    ("snakes", "a_b-c_"),
    ("identifiers", "HttpClientXml2Json "),
    ("paths", "src/main/a.rs:12:7 "),
    ("full stops", "."),
    ("stops and spaces", ". "),
    ("commas", ","),
    ("equals", "="),
    ("dashes", "-"),
    ("underscores", "_"),
    ("slashes", "/"),
    ("backslashes", "\\"),
    ("quotes", "\""),
    ("apostrophes", "'"),
    ("backquotes", "`"),
    ("fences", "```\n"),
    ("fences in line", "``` "),
    ("stars", "*"),
    ("hashes", "#"),
    ("tildes", "~"),
    ("bars", "|"),
    ("table", "| a | b |\n"),
    ("braces", "{"),
    ("brackets", "["),
    ("parentheses", "("),
    ("nested", "([{<"),
    ("tags", "<a>"),
    ("entities", "&amp;"),
    ("escapes", "\\u0041"),
    ("percent escapes", "%41"),
    ("question marks", "? "),
    ("plus", "+"),
    ("at", "a@b.c "),
    ("Chinese", "語"),
    ("Chinese sentences", "我们决定使用。"),
    ("ideographic stops", "。"),
    ("rare Chinese", "\u{2a6d6}"),
    ("kana", "テスト"),
    ("Korean", "한국어 "),
    ("Arabic", "كلمة "),
    ("Hebrew", "מילה "),
    ("Thai", "ภาษาไทย"),
    ("Devanagari", "क्षि"),
    ("Cyrillic", "слово "),
    ("emoji", "😀"),
    ("families", "👨\u{200d}👩\u{200d}👧"),
    ("flags", "🇪🇺"),
    ("keycaps", "1\u{fe0f}\u{20e3}"),
    ("combining marks", "\u{301}"),
    ("letters with marks", "e\u{301}"),
    ("zalgo", "a\u{300}\u{301}\u{302}\u{303}"),
    ("zero-width spaces", "\u{200b}"),
    ("joiners", "\u{200d}"),
    ("soft hyphens", "\u{ad}"),
    ("byte order marks", "\u{feff}"),
    ("overrides", "\u{202e}"),
    ("tag characters", "\u{e0041}"),
    ("selectors", "\u{fe0f}"),
    ("private use", "\u{e000}"),
    ("noncharacters", "\u{fffe}"),
    ("replacement", "\u{fffd}"),
    ("nulls", "\0"),
    ("bells", "\u{7}"),
    ("escapes of terminals", "\u{1b}[31m"),
    ("C1", "\u{9b}"),
    ("deletes", "\u{7f}"),
    ("heads of hits", "[decision m0123456789abc user, session ops]\n"),
    ("marks", "[REDACTED:jwt:012]"),
    ("former marks", "[REDACTED:jwt:01234567]"),
    ("beginnings of marks", "[REDACTED:"),
    ("data marks", "[data 0123456789abcdef]\n"),
    ("private", "<private>"),
    ("end of private", "</private>"),
    ("private in private", "<private>a</private>"),
    ("assignments", "password=hunter2 "),
    ("names of secrets", "api_key: "),
    ("addresses", "https://user:pass@host/ "),
    ("schemes", "://"),
    ("key blocks", "-----BEGIN RSA PRIVATE KEY-----\n"),
    ("ends of key blocks", "-----END RSA PRIVATE KEY-----\n"),
    ("tokens", "eyJhbGciOiJIUzI1NiJ9."),
    ("decisions", "We decided to use SQLite. "),
    ("facts", "The reason is 7. "),
    ("facts without end", "note that "),
    ("lists", "- a\n"),
    ("headings", "# a\n"),
    ("quotes of mail", "> "),
    ("diff", "+a\n-b\n"),
    ("trace", "  at f (a.js:1:2)\n"),
    ("JSON", "{\"a\":[1,"),
    ("JSON in JSON", "\\\"a\\\":"),
    ("numbers of lines", "1\ta\n"),
    ("contractions", "I'll he's "),
    ("prompts", "$ ls\n"),
    ("dates", "2026-11-22T10:00:00Z "),
    ("ids", "0f8fad5b-d9cb-469f-a165-70867728950e "),
];

/// Literals with which redaction rules begin, for every kind of rule.
const LITERALS: &[&str] = &[
    "AKIA",
    "AIza",
    "ghp_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "sk-",
    "sk-ant-",
    "sk_live_",
    "hf_",
    "npm_",
    "pypi-",
    "SG.",
    "eyJ",
    "dop_v1_",
    "shpat_",
    "EAACEdEose0cBA",
    "amzn.mws.",
    "ya29.",
    "SK",
    "AC",
    "key-",
    "password=",
    "passwd: ",
    "pwd=",
    "secret=",
    "token=",
    "api_key=",
    "apikey: ",
    "client_secret=",
    "private_key=",
    "Bearer ",
    "Basic ",
    "Authorization: ",
    "curl -u ",
    "--password ",
    "://",
    "AccountKey=",
    "SharedAccessKey=",
    "PuTTY-User-Key",
    "aws_secret_access_key=",
    "PRIVATE KEY-----",
    "ssh-rsa ",
    "MII",
    "connection_string=",
    "IDENTIFIED BY ",
];

/// Alphabets of random texts.
const DRAWN: &[(&str, &str)] = &[
    ("letters", "abcdefghijklmnopqrstuvwxyz"),
    ("short words", "abcdefghijklmnopqrstuvwxyz   "),
    ("digits", "0123456789"),
    ("hexadecimal", "0123456789abcdef"),
    ("base64", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    ("punctuation", "!@#$%^&*()-=+[]{};:,.<>/?'\"`~|\\_"),
    ("white space", " \n\t\r\u{a0}\u{2003}x"),
    ("control characters", "\u{1}\u{2}\u{7}\u{8}\u{1b}\u{7f}\u{85}\u{9b}"),
    ("hidden characters", "a\u{200b}\u{200d}\u{ad}\u{feff}\u{202e}\u{2066}"),
    ("scripts", "aя語คكב한あ😀"),
    ("everything", " \n\ta1.=\"'語😀\u{301}\u{200b}\0-_/\\[<"),
];

/// Returns more than 300 different texts, each about `size` bytes long and with a name.
pub fn all(size: usize) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (name, part) in RUNS {
        texts.push((format!("{name} alone"), repeated(part, size)));
        texts.push((format!("{name} between words"), format!("begin{}end", repeated(part, size))));
        texts.push((format!("{name} after lines"), format!("one\ntwo\n\n{}\n\nlast", repeated(part, size))));
    }
    for (n, (name, alphabet)) in DRAWN.iter().enumerate() {
        texts.push((format!("drawn from {name}"), drawn(alphabet, size, n as u64 + 1)));
    }
    texts.extend(of_literals(size, LITERALS));
    texts.retain(|(_, text)| !text.trim().is_empty());
    texts
}

/// Returns two texts for each literal: one repeats only the literal, the other the literal with a value.
pub fn of_literals(size: usize, literals: &[&str]) -> Vec<(String, String)> {
    let texts = literals.iter().flat_map(|literal| {
        let valued = repeated(&format!("{literal}aB3dE5gH "), size);
        [
            (format!("literal {literal:?}"), repeated(literal, size)),
            (format!("literal {literal:?} with a value"), valued),
        ]
    });
    texts.collect()
}

fn repeated(part: &str, size: usize) -> String {
    part.repeat(size.div_ceil(part.len()))
}

fn drawn(alphabet: &str, size: usize, seed: u64) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = seed;
    let mut text = String::with_capacity(size + 4);
    while text.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
    }
    text
}
