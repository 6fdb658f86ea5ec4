//! The table of the kinds of secrets, with one row for each kind.
//!
//! A row follows the format that the issuer of the secret publishes; `source` names the page. `cloud`, `forge`,
//! `model`, `payment` and `service` (chat, mail, operations) have keys that are identified by their form;
//! `prefixed` has more of these, one per line. `named` has keys that are identified only by the vendor's name
//! beside them. `shape` has secrets of any issuer: key blocks, JWTs, URLs, headers, assignments.
//!
//! Patterns are regular expressions over bytes. They are tried only where a literal was found. A pattern may have an
//! unbounded repetition only at its end. This keeps the scan linear: a failed attempt reads no more bytes than the
//! shortest match has, and the rule is not tried again within a match.

mod beside;
mod cloud;
mod forge;
mod model;
mod named;
mod payment;
mod prefixed;
mod service;
mod shape;
mod structure;
mod word;

pub(super) use word::PASSWORDS;

/// A kind of secret, and how such secrets are recognised.
#[derive(Debug)]
pub struct Rule {
    /// The name of the rule in marks. It matches `[a-z0-9-]+` and is unique.
    pub id: &'static str,
    /// The issuer and the purpose of the secret.
    pub what: &'static str,
    /// The published description that the row follows.
    pub source: &'static str,
    /// Every such secret, or the name beside it, contains one of these strings.
    pub literals: &'static [&'static str],
    /// How a secret is recognised around a literal.
    pub shape: Shape,
    /// The least Shannon entropy that a secret has, in bits per byte. It excludes placeholders such as `xxxx…`.
    pub entropy: f32,
}

/// How a rule recognises a secret at a place where one of the rule's literals was found.
#[derive(Debug)]
pub enum Shape {
    /// The secret matches `pattern`. The match begins at the literal or, if `before` allows bytes before the
    /// literal, at the beginning of the run of such bytes.
    Token {
        /// The pattern of the secret.
        pattern: &'static str,
        /// The bytes of the secret before its literal.
        before: Before,
        /// The bytes that may precede and follow the secret.
        edge: Edge,
    },
    /// The literal is a part of a name. The secret is the value assigned to this name, and it matches `pattern`.
    Named {
        /// The pattern of the value.
        pattern: &'static str,
    },
    /// A scanner recognises the secret.
    Scanned(Scanner),
}

/// The bytes of a token that come before its literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// There are none: the token begins with its literal.
    Nothing,
    /// At most this many bytes of `[0-9]`.
    Digits(usize),
    /// At most this many bytes of `[0-9a-f]`.
    Hex(usize),
    /// At most this many bytes of `[A-Za-z0-9_~]`.
    Word(usize),
    /// At most this many bytes of `[A-Za-z0-9+/_-]`.
    Base64(usize),
    /// This many bytes of any kind.
    Exactly(usize),
}

/// The bytes that may be directly before and after a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Any byte except a letter, digit or `_`. Before the token, even a letter or digit is allowed if it ends an
    /// escape such as `\n` or `%3D`.
    Word,
    /// The same bytes as for [`Edge::Word`]. The token must also look random: its literal is short, or ordinary words
    /// begin with it.
    Random,
    /// Before the token, the same bytes as for [`Edge::Word`] or `_`, since its literal may end a word (`task_test_…`);
    /// after it, any byte.
    Part,
    /// Any byte, since the literal is specific enough.
    Open,
}

/// The forms of secrets that a pattern can't describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanner {
    /// `<private>` … `</private>`.
    Private,
    /// `-----BEGIN … PRIVATE KEY-----` and the body of the key, with or without its last line.
    PrivateKey,
    /// The base64 of a private key over several lines, without the lines `BEGIN` and `END`.
    KeyBody,
    /// The `Private-Lines` of a PuTTY key file.
    Putty,
    /// Three or five parts in base64url, of which the first is a JSON object.
    Jwt,
    /// `scheme://user:password@host`.
    Url,
    /// `Bearer …`.
    Bearer,
    /// `Basic …`, the base64 of `user:password`.
    Basic,
    /// The password of `curl -u user:password` and similar commands.
    UserFlag,
    /// The login in a setting of Bundler that is named by a host, `BUNDLE_…__COM=user:password`.
    GemSource,
    /// `host:port:database:user:password`.
    PasswordFile,
    /// `Authorization: scheme …` with a scheme of any name.
    Authorization,
    /// A NATS seed, identified by its checksum.
    NatsSeed,
    /// A private key of a wallet in base58, identified by its checksum.
    WalletKey,
    /// The recovery phrase of a wallet. It is found by its words, not by a literal, and identified by its checksum.
    WalletPhrase,
    /// The key of a configured provider, found by its characters and not by a literal.
    Provided,
    /// The cookies in a header, a command or a script.
    Cookies,
    /// A cookie that has the name of a session cookie.
    Cookie,
    /// A cookie in a line of a cookie file.
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
    /// The text that `echo` pipes into a command which reads a password.
    Piped,
    /// The value beside a mark such as `sensitive: true`.
    Marked,
    /// The values of a table's columns, of an object or of a statement whose names say that they are secrets.
    Structure,
    /// The output of a command that prints a secret.
    Output,
    /// The password in a line by which a client logs in to a server.
    Dialogue,
    /// The password in a sentence.
    Sentence,
    /// A string with the shape of a password, near a word for a password.
    Nearby,
    /// A string with the shape of a key, after a word for a key.
    NearbyKey,
    /// The password in `user@host:password`.
    Address,
    /// The secret among the arguments of a call.
    Argument,
    /// The secret that a command is given as an argument or through a pipe.
    Given,
}

impl Rule {
    /// Returns the rank of the rule. If two secrets overlap, the mark names the rule of the higher rank.
    pub(super) fn rank(&self) -> u8 {
        match self.shape {
            Shape::Scanned(Scanner::Private) => 6,
            Shape::Scanned(Scanner::PrivateKey | Scanner::KeyBody | Scanner::Putty) => 5,
            Shape::Token { .. }
            | Shape::Scanned(
                Scanner::NatsSeed | Scanner::WalletKey | Scanner::WalletPhrase | Scanner::Provided,
            ) => 4,
            Shape::Named { .. } | Shape::Scanned(Scanner::AwsPair | Scanner::Jwk) => 3,
            Shape::Scanned(Scanner::Jwt) => 2,
            Shape::Scanned(
                Scanner::Url
                | Scanner::Bearer
                | Scanner::Basic
                | Scanner::UserFlag
                | Scanner::GemSource
                | Scanner::PasswordFile
                | Scanner::Authorization
                | Scanner::Cookies
                | Scanner::Cookie
                | Scanner::CookieFile
                | Scanner::Manifest,
            ) => 1,
            Shape::Scanned(
                Scanner::Piped
                | Scanner::Marked
                | Scanner::Structure
                | Scanner::Output
                | Scanner::Dialogue
                | Scanner::Sentence
                | Scanner::Nearby
                | Scanner::NearbyKey
                | Scanner::Address
                | Scanner::Argument
                | Scanner::Given
                | Scanner::Password
                | Scanner::Secret,
            ) => 0,
        }
    }

    /// Returns whether the rule finds strings that are only probably secrets: they have the shape of a secret and are
    /// near a word for one.
    pub(super) fn guesses(&self) -> bool {
        matches!(
            self.shape,
            Shape::Scanned(
                Scanner::Nearby | Scanner::NearbyKey | Scanner::Sentence | Scanner::Address | Scanner::Output
            )
        )
    }

    /// Returns whether the literals are ordinary words. Such literals are found in lower case, capitalised and in
    /// upper case.
    pub(super) fn literals_are_words(&self) -> bool {
        !matches!(
            self.shape,
            Shape::Token { .. }
                | Shape::Scanned(
                    Scanner::KeyBody
                        | Scanner::Marked
                        | Scanner::Piped
                        | Scanner::Output
                        | Scanner::Argument
                        | Scanner::Given
                        | Scanner::GemSource
                        | Scanner::AwsPair
                        | Scanner::Jwt
                        | Scanner::NatsSeed
                        | Scanner::WalletKey
                        | Scanner::WalletPhrase
                        | Scanner::Provided
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

const TABLE: [&[Rule]; 10] = [
    cloud::RULES,
    forge::RULES,
    model::RULES,
    payment::RULES,
    prefixed::RULES,
    service::RULES,
    named::RULES,
    beside::RULES,
    structure::RULES,
    shape::RULES,
];

/// Returns the rule for a token that begins with its literal and has the edges of a word.
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

/// Returns the rule for a token that begins with its literal, has the edges of a word and looks random.
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

/// Returns the rule for a token that begins with its literal and may have any edges.
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

/// Returns the rule for a token that begins with its literal, doesn't continue a word and may be followed by any byte.
const fn part(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    entropy: f32,
) -> Rule {
    let shape = Shape::Token { pattern, before: Before::Nothing, edge: Edge::Part };
    Rule { id, what, source, literals, shape, entropy }
}

/// Returns the rule for a token whose literal is not at its beginning.
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

/// Returns the rule for a value that is assigned to a name which contains the literal.
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

/// Returns the rule for a secret that a scanner recognises.
const fn scanned(
    id: &'static str,
    what: &'static str,
    source: &'static str,
    literals: &'static [&'static str],
    scanner: Scanner,
) -> Rule {
    Rule { id, what, source, literals, shape: Shape::Scanned(scanner), entropy: 0.0 }
}
