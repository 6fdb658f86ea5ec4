//! What counts as a secret: one row a kind, as data.
//!
//! A row is written from the format its issuer publishes; `source` names the page. The rows lie in files by trade:
//! `cloud`, `forge`, `model`, `payment` and `service` (chat, mail, operations) hold keys that can be told by
//! themselves, `prefixed` more of them, a row a line, `named` holds keys without a mark of their own, told by the vendor's name beside them, and `shape`
//! holds what is told by form whoever issued it: key blocks, JWTs, addresses, headers, assignments.
//!
//! Patterns are regular expressions over bytes, tried where a literal was found and nowhere else. They have no
//! unbounded repetition except at the end, which is what keeps the scan linear: an attempt that fails has read no
//! more than the shortest match, and one that succeeds is not repeated within what it found.

mod cloud;
mod forge;
mod model;
mod named;
mod payment;
mod prefixed;
mod service;
mod shape;
mod word;

/// The version of the rules: raised by every change that may redact the same text differently.
///
/// Whoever keeps redacted text beside a hash of its original notes this with it.
pub const RULESET_VERSION: u32 = 3;

/// One kind of secret and how it is told.
#[derive(Debug)]
pub struct Rule {
    /// The name that stands in the mark: `[a-z0-9-]+`, unique.
    pub id: &'static str,
    /// Whose secret it is and what it opens.
    pub what: &'static str,
    /// The published description the row is written from.
    pub source: &'static str,
    /// The strings one of which is in every such secret, or in the name beside it.
    pub literals: &'static [&'static str],
    /// How a literal found becomes a secret found.
    pub shape: Shape,
    /// The least Shannon entropy of the secret, in bits a byte: keeps out `xxxx…` and other stand-ins.
    pub entropy: f32,
}

/// How a secret is told once one of its literals was found.
#[derive(Debug)]
pub enum Shape {
    /// The secret matches `pattern` from the literal on, or from the run of `before` that ends at the literal.
    Token {
        /// What the secret matches.
        pattern: &'static str,
        /// What of it comes before its literal.
        before: Before,
        /// What may stand beside it.
        edge: Edge,
    },
    /// The literal is part of a name, and what is assigned to the name matches `pattern`.
    Named {
        /// What the value matches.
        pattern: &'static str,
    },
    /// A scanner of its own tells it.
    Scanned(Scanner),
}

/// The bytes of a token that come before its literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// None: the token begins with its literal.
    Nothing,
    /// At most this many of `[0-9]`.
    Digits(usize),
    /// At most this many of `[0-9a-f]`.
    Hex(usize),
    /// At most this many of `[A-Za-z0-9_~]`.
    Word(usize),
    /// At most this many of `[A-Za-z0-9+/_-]`.
    Base64(usize),
}

/// What may stand directly beside a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// No letter, digit or `_`, unless it ends an escape such as `\n` or `%3D`.
    Word,
    /// As [`Edge::Word`]; and the token has to look random, because its literal is short or a word's beginning.
    Random,
    /// Anything: the literal is so particular that a token is one even when glued to something.
    Open,
}

/// The forms that a pattern cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanner {
    /// `<private>` … `</private>`.
    Private,
    /// `-----BEGIN … PRIVATE KEY-----` and its body, with or without its end.
    PrivateKey,
    /// The base64 of a private key without its armour, over several lines.
    KeyBody,
    /// The `Private-Lines` of a PuTTY key file.
    Putty,
    /// Three or five base64url parts, the first being a JSON object.
    Jwt,
    /// `scheme://user:password@host`.
    Url,
    /// `Bearer …`.
    Bearer,
    /// `Basic …`, the base64 of `user:password`.
    Basic,
    /// `curl -u user:password` and its like.
    UserFlag,
    /// `host:port:database:user:password`.
    PasswordFile,
    /// `Authorization: scheme …` with a scheme of any name.
    Authorization,
    /// A NATS seed, told by its checksum.
    NatsSeed,
    /// A private key of a wallet in base58, told by its checksum.
    WalletKey,
    /// The words of a wallet, told by their checksum; the words themselves are looked for, not a literal.
    WalletPhrase,
    /// The cookies in a header, given to a command or set by a script.
    Cookies,
    /// A cookie told by the name of a session's.
    Cookie,
    /// A line of a file of cookies.
    CookieFile,
    /// The values of a Kubernetes `Secret`.
    Manifest,
    /// The private members of a JSON Web Key.
    Jwk,
    /// The secret that belongs to an AWS access key id standing just before it.
    AwsPair,
    /// A password assigned to a name, or given to a flag.
    Password,
    /// A token, key or secret assigned to a name, or given to a flag.
    Secret,
}

impl Rule {
    /// Returns how much this rule knows about what it finds; of two that overlap the greater names the mark.
    pub(super) fn rank(&self) -> u8 {
        match self.shape {
            Shape::Scanned(Scanner::Private) => 6,
            Shape::Scanned(Scanner::PrivateKey | Scanner::KeyBody | Scanner::Putty) => 5,
            Shape::Token { .. }
            | Shape::Scanned(Scanner::NatsSeed | Scanner::WalletKey | Scanner::WalletPhrase) => 4,
            Shape::Named { .. } | Shape::Scanned(Scanner::AwsPair | Scanner::Jwk) => 3,
            Shape::Scanned(Scanner::Jwt) => 2,
            Shape::Scanned(
                Scanner::Url
                | Scanner::Bearer
                | Scanner::Basic
                | Scanner::UserFlag
                | Scanner::PasswordFile
                | Scanner::Authorization
                | Scanner::Cookies
                | Scanner::Cookie
                | Scanner::CookieFile
                | Scanner::Manifest,
            ) => 1,
            Shape::Scanned(Scanner::Password | Scanner::Secret) => 0,
        }
    }

    /// Whether the literals are ordinary words: found as written, in lower case, capitalised and in upper case.
    pub(super) fn literals_are_words(&self) -> bool {
        !matches!(
            self.shape,
            Shape::Token { .. }
                | Shape::Scanned(
                    Scanner::KeyBody
                        | Scanner::AwsPair
                        | Scanner::Jwt
                        | Scanner::NatsSeed
                        | Scanner::WalletKey
                        | Scanner::WalletPhrase
                        | Scanner::CookieFile
                        | Scanner::Manifest
                        | Scanner::Jwk
                )
        )
    }
}

/// Returns every rule, in the order of the table.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    TABLE.iter().flat_map(|rows| rows.iter())
}

const TABLE: [&[Rule]; 8] = [
    cloud::RULES,
    forge::RULES,
    model::RULES,
    payment::RULES,
    prefixed::RULES,
    service::RULES,
    named::RULES,
    shape::RULES,
];

/// A token that begins with its literal and stands alone.
const fn token(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    let shape = Shape::Token { pattern, before: Before::Nothing, edge: Edge::Word };
    Rule { id, what, source, literals, shape, entropy }
}

/// A token that begins with its literal, stands alone and looks random.
const fn weak(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    let shape = Shape::Token { pattern, before: Before::Nothing, edge: Edge::Random };
    Rule { id, what, source, literals, shape, entropy }
}

/// A token that begins with its literal, found also when glued to something.
const fn glued(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    let shape = Shape::Token { pattern, before: Before::Nothing, edge: Edge::Open };
    Rule { id, what, source, literals, shape, entropy }
}

/// A token whose literal is not at its beginning.
const fn inner(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    before: Before,
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    Rule { id, what, source, literals, shape: Shape::Token { pattern, before, edge: Edge::Word }, entropy }
}

/// A value assigned to a name that holds the literal.
const fn named(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    Rule { id, what, source, literals, shape: Shape::Named { pattern }, entropy }
}

/// What a scanner tells.
const fn scanned(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    scanner: Scanner,
) -> Rule {
    Rule { id, what, source, literals, shape: Shape::Scanned(scanner), entropy: 0.0 }
}
