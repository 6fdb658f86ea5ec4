//! Random secrets by their shape: passwords, tokens, keys, and wallet phrases.
//!
//! The values are drawn, none is or was in use. Tokens of vendors follow the patterns of `templates/vendor.txt`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::random::Random;

/// The patterns of tokens: service, name of its variable, pattern.
const VENDORS: &str = include_str!("templates/vendor.txt");

/// The words of wallet phrases, in the order of the standard (BIP-39).
const PHRASE_WORDS: &str = include_str!("../../../redact/src/scanners/phrases.txt");

const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER_HEX: &str = "0123456789ABCDEF";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The special characters that generators of passwords use by default.
const SPECIALS: &str = "!\"#$%&'()*+,-./:;<=>?@[]^_{|}~";

/// The special characters that a shell, a URL's reader or a person leaves alone.
const PLAIN_SPECIALS: &str = "!-_.%+@";

/// Words that people build passwords from, in several languages.
const WORDS: &[&str] = &[
    "Summer",
    "Winter",
    "Dragon",
    "Monkey",
    "Falcon",
    "Kiwi",
    "Sunshine",
    "Coffee",
    "Munich",
    "Arsenal",
    "Liverpool",
    "Passw0rd",
    "Welcome",
    "Admin",
    "Letmein",
    "Sommer",
    "Herbst",
    "Hamburg",
    "Schatz",
    "Blume",
    "Katze",
    "Soleil",
    "Bonjour",
    "Marseille",
    "Papillon",
    "Chocolat",
    "Verano",
    "Madrid",
    "Mariposa",
    "Gatito",
    "Estrella",
    "Ferrari",
    "Roma",
    "Amore",
    "Zvezda",
    "Moskva",
    "Sakura",
    "Tokyo",
    "Wombat",
    "Penguin",
    "Jupiter",
    "Orange",
    "Guitar",
    "Biscuit",
    "Cricket",
    "Thunder",
    "Shadow",
    "Pepper",
    "Ginger",
    "Maverick",
];

/// Words of generated passphrases.
const DICE: &[&str] = &[
    "anchor", "bishop", "cobalt", "dapple", "ember", "fjord", "gravel", "hazel", "igloo", "jigsaw", "kettle",
    "lantern", "mosaic", "nectar", "oxbow", "pylon", "quartz", "russet", "saddle", "thimble", "umbra",
    "velvet", "walnut", "yonder", "zephyr", "barley", "cinder", "dimple", "flint", "gopher", "hubcap",
    "kernel", "magpie", "outlet", "plaza", "ribbon", "scarf", "tundra", "vortex", "wicket",
];

/// A secret.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The text that a file or a person would have.
    pub text: String,
    /// The random pieces of it. Each must be gone.
    pub parts: Vec<String>,
    /// Whether the pieces are whole words, such as those of a wallet phrase.
    pub words: bool,
    /// The variable that usually has it, in upper case with underscores.
    pub variable: Option<&'static str>,
}

impl Secret {
    /// Returns a secret that is random as a whole.
    fn whole(text: String) -> Secret {
        Secret { parts: vec![text.clone()], text, words: false, variable: None }
    }

    /// Returns a secret of which only the lines of at least 16 characters without spaces are random.
    fn lines(text: String) -> Secret {
        let parts =
            text.lines().filter(|line| line.len() >= 16 && !line.contains([' ', ':'])).map(str::to_owned);
        Secret { parts: parts.collect(), text, words: false, variable: None }
    }
}

/// A service, the variable and the pattern of its token.
#[derive(Clone, Copy, Debug)]
pub struct Vendor {
    /// The service and the kind of token.
    pub service: &'static str,
    /// The variable that usually has it.
    pub variable: &'static str,
    /// The pattern.
    pattern: &'static str,
}

impl Vendor {
    /// Returns all vendors.
    pub fn all() -> Vec<Vendor> {
        let fields = |line: &'static str| {
            let mut fields = line.splitn(3, " | ");
            Some(Vendor { service: fields.next()?, variable: fields.next()?, pattern: fields.next()? })
        };
        VENDORS.lines().filter(|line| !line.starts_with('#')).filter_map(fields).collect()
    }

    /// Returns a token of the vendor.
    pub fn draw(&self, random: &mut Random) -> Secret {
        let mut secret = patterned(self.pattern, random);
        secret.variable = Some(self.variable);
        secret
    }

    /// Returns what the token starts with.
    pub fn prefix(&self) -> &'static str {
        self.pattern.split('{').next().unwrap_or_default()
    }
}

/// Returns a secret of the kind `kind`, or `None` if there is no such kind.
pub fn draw(kind: &str, random: &mut Random) -> Option<Secret> {
    Some(match kind {
        "password" => Secret::whole(password(SPECIALS, random)),
        "plain" => Secret::whole(password(PLAIN_SPECIALS, random)),
        "human" => Secret::whole(human(random)),
        "phrasepass" => Secret::whole(passphrase(random)),
        "token" => token(random),
        "hex" => Secret::whole(string(HEX, *random.pick(&[32, 40, 64]), random)),
        "base64" => Secret::whole(STANDARD.encode(bytes(*random.pick(&[24, 32, 48]), random))),
        "aws" => Secret::whole(STANDARD.encode(bytes(30, random))),
        "key" => Secret::whole(STANDARD.encode(bytes(32, random))),
        "session" => Secret::whole(STANDARD.encode(bytes(360, random))),
        "vendor" => random.pick(&Vendor::all()).draw(random),
        "jwt" => jwt(random),
        "pem" => pem(random),
        "ssh" => Secret::lines(armored("OPENSSH PRIVATE KEY", &openssh(random), 70)),
        "pgp" => pgp(random),
        "age" => patterned("AGE-SECRET-KEY-1{q58}", random),
        "phrase" => phrase(random),
        _ => return None,
    })
}

/// Returns a password as people or generators make them; the generated ones have some of `specials`.
fn password(specials: &str, random: &mut Random) -> String {
    match random.below(10) {
        0..4 => human(random),
        4 => passphrase(random),
        _ => generated(specials, random),
    }
}

/// Returns a generated password of 12 to 32 characters with letters, digits and some of `specials`.
fn generated(specials: &str, random: &mut Random) -> String {
    let length = 12 + random.below(21);
    let alphabet = [BASE62, specials].concat();
    // Generators insist on every kind of character, and a leading dash or sign breaks too many files to be kept.
    loop {
        let drawn = string(&alphabet, length, random);
        let starts_well = drawn.starts_with(|first: char| first.is_ascii_alphanumeric());
        if starts_well
            && drawn.contains(|sign: char| sign.is_ascii_digit())
            && drawn.contains(|sign| specials.contains(sign))
        {
            return drawn;
        }
    }
}

/// Returns a password as people choose them: one or two words, digits, a sign.
fn human(random: &mut Random) -> String {
    let word = *random.pick(WORDS);
    let second = *random.pick(WORDS);
    let year = 1960 + random.below(68);
    let number = random.below(900) + 100;
    let sign = *random.pick(&["!", "#", "!!", "?", "@", "*", "%"]);
    match random.below(6) {
        0 => format!("{word}{year}{sign}"),
        1 => format!("{word}-{second}{number}"),
        2 => format!("{}{sign}{number}", word.to_lowercase()),
        3 => format!("{word}@{year}"),
        4 => format!("{word}{second}{number}{sign}"),
        _ => format!("{}{}{sign}", word.replace('e', "3").replace('o', "0").replace('a', "@"), number),
    }
}

/// Returns four or five words, joined by a sign.
fn passphrase(random: &mut Random) -> String {
    let joint = *random.pick(&["-", ".", "_"]);
    let count = 4 + random.below(2);
    let words: Vec<&str> = (0..count).map(|_| *random.pick(DICE)).collect();
    format!("{}{joint}{}", words.join(joint), random.below(90) + 10)
}

/// Returns a token without a prefix that tells whose it is.
fn token(random: &mut Random) -> Secret {
    let (alphabet, length) = *random.pick(&[
        (BASE62, 32),
        (BASE62, 40),
        (HEX, 32),
        (HEX, 64),
        (BASE64_URL, 43),
        (LOWER, 36),
        (UPPER, 24),
    ]);
    loop {
        let drawn = string(alphabet, length, random);
        if !drawn.starts_with('-') && drawn.contains(|sign: char| sign.is_ascii_digit()) {
            return Secret::whole(drawn);
        }
    }
}

/// Returns `length` characters of `alphabet`.
fn string(alphabet: &str, length: usize, random: &mut Random) -> String {
    let signs: Vec<char> = alphabet.chars().collect();
    (0..length).map(|_| *random.pick(&signs)).collect()
}

/// Returns `count` bytes.
fn bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| random.bits() as u8).collect()
}

/// Returns a UUID of version 4.
pub fn uuid(random: &mut Random) -> String {
    let hex = string(HEX, 32, random);
    let variant = *random.pick(&['8', '9', 'a', 'b']);
    format!("{}-{}-4{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Returns `count` digits of a hash.
pub fn hash(count: usize, random: &mut Random) -> String {
    string(HEX, count, random)
}

/// Returns a secret as `pattern` describes it. `{a30}` stands for 30 letters and digits; the other letters are in
/// [`alphabet`]. `{u}` is a UUID; `{c30}`, `{g32}` and `{t}` have checksums.
fn patterned(pattern: &str, random: &mut Random) -> Secret {
    let mut text = String::new();
    let mut parts = Vec::new();
    for piece in pattern.split('{') {
        let Some((code, literal)) = piece.split_once('}') else {
            text += piece;
            continue;
        };
        let (kind, count) = code.split_at(1);
        let count = count.parse().unwrap_or(0);
        let drawn = match kind {
            "u" => uuid(random),
            "c" => with_crc62(&string(BASE62, count, random)),
            "g" => with_crc_hex(&text, &string(BASE62, count, random)),
            "t" => atlassian(random),
            "j" => jwt(random).text,
            _ => string(alphabet(kind), count, random),
        };
        if drawn.len() >= 6 {
            parts.push(drawn.clone());
        }
        text += &drawn;
        text += literal;
    }
    Secret { text, parts, words: false, variable: None }
}

/// Returns the characters that the letter of a pattern stands for.
fn alphabet(kind: &str) -> &'static str {
    match kind {
        "d" => DIGITS,
        "h" => HEX,
        "H" => UPPER_HEX,
        "l" => LOWER,
        "U" => UPPER,
        "2" => BASE32,
        "q" => BECH32,
        "s" => BASE64,
        "w" => BASE64_URL,
        _ => BASE62,
    }
}

/// Returns `random` and its CRC-32 as six digits of base 62, as GitHub and npm write it.
fn with_crc62(random: &str) -> String {
    let digits: Vec<char> = BASE62.chars().collect();
    let mut rest = crc32fast::hash(random.as_bytes());
    let mut checksum = ['0'; 6];
    for place in checksum.iter_mut().rev() {
        *place = digits[(rest % 62) as usize];
        rest /= 62;
    }
    random.chars().chain(checksum).collect()
}

/// Returns `random` and, after an underscore, the CRC-32 of it and its prefix as hexadecimal digits, as Grafana does.
fn with_crc_hex(prefix: &str, random: &str) -> String {
    format!("{random}_{:08x}", crc32fast::hash([prefix, random].concat().as_bytes()))
}

/// Returns the rest of a token of Atlassian: its random part, `=`, and a CRC-32.
fn atlassian(random: &mut Random) -> String {
    let drawn = string(BASE64_URL, 180, random);
    format!("{drawn}={:08X}", crc32fast::hash(drawn.as_bytes()))
}

/// Returns a JSON Web Token. Its claims and its signature are random.
fn jwt(random: &mut Random) -> Secret {
    let algorithm = *random.pick(&["HS256", "RS256", "ES256"]);
    let header = format!("{{\"alg\":\"{algorithm}\",\"typ\":\"JWT\"}}");
    let issued = 1_700_000_000 + random.below(90_000_000);
    let claims = format!("{{\"sub\":\"{}\",\"iat\":{issued},\"exp\":{}}}", uuid(random), issued + 3600);
    let length = if algorithm == "RS256" { 256 } else { 32 };
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signature = URL_SAFE_NO_PAD.encode(bytes(length, random));
    Secret {
        text: [header.as_str(), &claims, &signature].join("."),
        // Every token's claims start with `{"sub":"`.
        parts: vec![claims[12..].to_owned(), signature],
        words: false,
        variable: None,
    }
}

/// Returns a private key in PEM of one of the usual kinds.
fn pem(random: &mut Random) -> Secret {
    let (label, start, count) = *random.pick(&[
        ("RSA PRIVATE KEY", &[0x30u8, 0x82, 0x04, 0xa4, 0x02, 0x01, 0x00][..], 1188),
        ("PRIVATE KEY", &[0x30, 0x82, 0x04, 0xbe, 0x02, 0x01, 0x00], 1210),
        ("EC PRIVATE KEY", &[0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20], 114),
        ("ENCRYPTED PRIVATE KEY", &[0x30, 0x82, 0x05, 0x0e], 1290),
    ]);
    let der = [start, &bytes(count, random)].concat();
    Secret::lines(armored(label, &der, 64))
}

/// Returns the bytes of an Ed25519 key of OpenSSH.
fn openssh(random: &mut Random) -> Vec<u8> {
    let start = b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01\0\0\0\x33\0\0\0\x0bssh-ed25519\0\0\0\x20";
    [&start[..], &bytes(200, random)].concat()
}

/// Returns `der` as base64 in lines of `width` characters between the lines of PEM.
fn armored(label: &str, der: &[u8], width: usize) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", wrapped(&STANDARD.encode(der), width))
}

/// Returns a private key block of PGP.
fn pgp(random: &mut Random) -> Secret {
    let body = wrapped(&STANDARD_NO_PAD.encode([&[0x95, 0x03][..], &bytes(900, random)].concat()), 64);
    let sum = string(BASE64, 4, random);
    let label = "PGP PRIVATE KEY BLOCK";
    Secret::lines(format!("-----BEGIN {label}-----\n\n{body}\n={sum}\n-----END {label}-----"))
}

/// Returns `text` in lines of `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let lines: Vec<&str> =
        text.as_bytes().chunks(width).filter_map(|line| str::from_utf8(line).ok()).collect();
    lines.join("\n")
}

/// Returns a wallet phrase of 12, 15, 18 or 24 words, of which the last has the checksum of BIP-39.
fn phrase(random: &mut Random) -> Secret {
    let entropy = bytes(*random.pick(&[16, 16, 16, 20, 24, 32, 32]), random);
    let words = phrase_of(&entropy);
    Secret { text: words.join(" "), parts: words, words: true, variable: Some("WALLET_MNEMONIC") }
}

/// Returns the words that encode `entropy` and its checksum.
fn phrase_of(entropy: &[u8]) -> Vec<String> {
    let list: Vec<&str> = PHRASE_WORDS.split_whitespace().collect();
    let all = [entropy, &Sha256::digest(entropy)[..1]].concat();
    let bits: Vec<bool> =
        all.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let bits = &bits[..entropy.len() * 33 / 4];
    let word = |eleven: &[bool]| eleven.iter().fold(0, |number, bit| number * 2 + usize::from(*bit));
    bits.chunks(11).map(|eleven| list[word(eleven)].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_formats() {
        // The first vector of the standard's reference implementation.
        let words = phrase_of(&[0; 16]);
        assert_eq!(words.last().unwrap(), "about");
        assert_eq!(words.len(), 12);
        assert_eq!(phrase_of(&[0xff; 32]).last().unwrap(), "vote");
        // A token that GitHub published when it introduced the checksum.
        assert_eq!(with_crc62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ"), "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    }

    #[test]
    fn each_vendor_has_a_pattern_with_something_random() {
        let vendors = Vendor::all();
        assert!(vendors.len() >= 60, "{}", vendors.len());
        let mut random = Random::new(3);
        for vendor in vendors {
            let secret = vendor.draw(&mut random);
            assert!(!secret.parts.is_empty() && secret.text.len() >= 20, "{vendor:?}: {secret:?}");
            assert!(secret.parts.iter().all(|part| secret.text.contains(part)), "{vendor:?}: {secret:?}");
        }
    }

    #[test]
    fn every_kind_can_be_drawn() {
        let mut random = Random::new(4);
        let kinds =
            ["password", "plain", "human", "phrasepass", "token", "hex", "base64", "vendor", "jwt", "pem"];
        for kind in kinds.into_iter().chain(["ssh", "pgp", "age", "phrase", "aws", "key", "session"]) {
            let secret = draw(kind, &mut random).unwrap();
            assert!(secret.text.len() >= 8 && !secret.parts.is_empty(), "{kind}: {secret:?}");
        }
        assert!(draw("unheard of", &mut random).is_none());
    }
}
