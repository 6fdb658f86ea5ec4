//! The table of the kinds of secrets, one row each.
//!
//! A row follows the format that its issuer publishes; `source` names the page. `cloud`, `forge`, `model`, `payment` and
//! `service` (chat, mail, operations) have keys that their form identifies; `prefixed` has more of these, one per line.
//! `named` has keys that only the vendor's name beside them identifies. `shape` has secrets of any issuer: key blocks,
//! JWTs, URLs, headers, assignments.
//!
//! Patterns are regular expressions over bytes, tried only where a literal was found. They have unbounded repetition only
//! at the end, which keeps the scan linear: a failed attempt reads no more than the shortest match, and the rule is not
//! tried again within a match.

mod cloud;
mod forge;
mod model;
mod named;
mod payment;
mod prefixed;
mod service;
mod shape;
mod word;

/// A kind of secret, and how it is recognised.
#[derive(Debug)]
pub struct Rule {
    /// The name in the mark: `[a-z0-9-]+`, unique.
    pub id: &'static str,
    /// The issuer and the purpose of the secret.
    pub what: &'static str,
    /// The published description that the row follows.
    pub source: &'static str,
    /// Every such secret, or the name beside it, contains one of these strings.
    pub literals: &'static [&'static str],
    /// How a secret is recognised around a literal.
    pub shape: Shape,
    /// The least Shannon entropy of the secret, in bits per byte: excludes `xxxx…` and other placeholders.
    pub entropy: f32,
}

/// How a secret is recognised where one of its literals was found.
#[derive(Debug)]
pub enum Shape {
    /// The secret matches `pattern` from the literal on, or from the run of `before` that ends at the literal.
    Token {
        /// The pattern of the secret.
        pattern: &'static str,
        /// The bytes of the secret before its literal.
        before: Before,
        /// The bytes that may precede and follow it.
        edge: Edge,
    },
    /// The literal is a part of a name, and the value assigned to the name matches `pattern`.
    Named {
        /// The pattern of the value.
        pattern: &'static str,
    },
    /// A scanner recognises it.
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

/// The bytes that may be directly before and after a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// No letter, digit or `_`, unless it ends an escape such as `\n` or `%3D`.
    Word,
    /// As [`Edge::Word`]; also, the token has to look random, because its literal is short or the beginning of a word.
    Random,
    /// Any bytes: the literal is specific enough.
    Open,
}

/// Forms that a pattern can't describe.
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
    /// A NATS seed, identified by its checksum.
    NatsSeed,
    /// A private key of a wallet in base58, identified by its checksum.
    WalletKey,
    /// The words of a wallet, identified by their checksum; found by the words, not by a literal.
    WalletPhrase,
    /// The cookies in a header, of a command or a script.
    Cookies,
    /// A cookie with the name of a session cookie.
    Cookie,
    /// A line of a file of cookies.
    CookieFile,
    /// The values of a Kubernetes `Secret`.
    Manifest,
    /// The private members of a JSON Web Key.
    Jwk,
    /// The secret access key after an AWS access key id.
    AwsPair,
    /// A password that is assigned to a name or follows a flag.
    Password,
    /// A token, key or secret that is assigned to a name or follows a flag.
    Secret,
}

impl Rule {
    /// Returns the rank of the rule; of two overlapping secrets, the one of higher rank names the mark.
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

    /// Returns whether the literals are ordinary words, which are found in lower case, capitalised and in upper case.
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

/// A token that begins with its literal and has the edges of a word.
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

/// A token that begins with its literal, has the edges of a word and looks random.
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

/// A token that begins with its literal and may have any edges.
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

/// A value assigned to a name that contains the literal.
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

/// A secret that a scanner recognises.
const fn scanned(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    scanner: Scanner,
) -> Rule {
    Rule { id, what, source, literals, shape: Shape::Scanned(scanner), entropy: 0.0 }
}
