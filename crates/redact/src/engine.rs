//! Finds secrets. One Aho–Corasick pass finds the literals of all rules, and the rules of each literal are checked
//! where it was found.
//!
//! In addition, every 24th byte is examined for encoded text (`encoded`), and every 47th byte for the words of a
//! wallet's recovery phrase (`phrases`). A text with invisible characters is scanned a second time without them. A rule
//! reads a bounded number of bytes around a literal (see [`rules`]), so the time is linear in the length of the text.
//! The automaton is built at its first use, and shared by the whole process. The DFA of a rule takes some kilobytes.
//! The DFA is built when a literal of the rule is found for the first time, which never happens for most rules.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::copies::{Places, copies};
use super::edges::{is_word, starts_word};
use super::mark::{MARK, Span, mark_at};
use super::rules::{Before, Edge, Rule, Scanner, Shape, rules};
use super::scanners::{checksums, cookies, credentials, documents, keys, phrases};
use super::{assignment, blocks, encoded, form, invisible, provided, structure};

/// Returns the secrets in `text` and their copies at `places`, in order and without overlaps.
pub(super) fn scan(text: &str, places: Places) -> Vec<Span> {
    let mut found = ENGINE.read_through(text.as_bytes());
    found.spans.extend(invisible::hidden(text, |visible| merged(ENGINE.read_through(visible))));
    let marks = std::mem::take(&mut found.marks);
    let spans = merged(Findings { marks: marks.clone(), ..found });
    let copies = copies(text.as_bytes(), &spans, places);
    if copies.is_empty() {
        spans
    } else {
        merged(Findings { spans: [spans, copies].concat(), marks, ..Findings::default() })
    }
}

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::build);

struct Engine {
    /// The automaton that finds the first [`HEAD`] bytes of each literal. With so few bytes, it is small enough to stay
    /// in the processor's cache.
    heads: AhoCorasick,
    /// For each head, the literals that begin with it, each with the number of its rule. Only the literal that finds
    /// marks has no rule.
    literals: Vec<Vec<(String, Option<u16>)>>,
    rules: Vec<&'static Rule>,
    machines: Vec<OnceLock<Option<Machine>>>,
}

/// The number of bytes of a literal that are in the automaton. With whole literals, a scan takes twice as long.
const HEAD: usize = 7;

type Machine = dense::DFA<Vec<u32>>;

impl Engine {
    fn build() -> Engine {
        let rules: Vec<&'static Rule> = rules().collect();
        let mut literals: Vec<(String, Option<u16>)> = vec![(MARK.to_owned(), None)];
        for (number, rule) in rules.iter().enumerate() {
            for &literal in rule.literals {
                let number = Some(u16::try_from(number).expect("the table has fewer rules than that"));
                literals.push((literal.to_owned(), number));
                if rule.literals_are_words() {
                    literals.extend(spellings(literal).map(|spelling| (spelling, number)));
                }
            }
        }
        literals.sort();
        literals.dedup();
        let mut heads: BTreeMap<String, Vec<(String, Option<u16>)>> = BTreeMap::new();
        for (literal, rule) in literals {
            let head = literal.chars().take(HEAD).collect();
            heads.entry(head).or_default().push((literal, rule));
        }
        let (heads, literals): (Vec<String>, Vec<_>) = heads.into_iter().unzip();
        let heads = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .prefilter(false)
            .build(&heads)
            .expect("some hundreds of short literals fit an automaton");
        let machines = rules.iter().map(|_| OnceLock::new()).collect();
        Engine { heads, literals, rules, machines }
    }

    /// Finds the secrets of `text`, including those in encoded runs.
    fn read_through(&self, text: &[u8]) -> Findings {
        let mut found = self.read(text);
        let seed = self.rule("wallet-phrase");
        found.spans.extend(phrases::phrases(text).into_iter().map(|range| Span { range, rule: seed }));
        let key = self.rule("provider-key");
        found.spans.extend(provided::keys(text).into_iter().map(|range| Span { range, rule: key }));
        encoded::runs(text, |range, bytes| {
            // The whole run is replaced, because a remaining part of it could still be decoded.
            let inner = merged(self.read(bytes));
            let rule = inner.iter().map(|span| span.rule).max_by_key(|rule| rule.rank());
            found.spans.extend(rule.map(|rule| Span { range, rule }));
        });
        found
    }

    fn rule(&self, id: &str) -> &'static Rule {
        self.rules.iter().find(|rule| rule.id == id).expect("the table has it")
    }

    fn read(&self, text: &[u8]) -> Findings {
        let mut found = Findings::default();
        for hit in self.heads.find_overlapping_iter(text) {
            let rest = &text[hit.start()..];
            for (literal, rule) in &self.literals[hit.pattern().as_usize()] {
                if literal.len() > HEAD && !rest.starts_with(literal.as_bytes()) {
                    continue;
                }
                let Some(rule) = rule else {
                    found.marks.extend(mark_at(text, hit.start()));
                    continue;
                };
                if found.read_until.is_empty() {
                    found.read_until = vec![0; self.rules.len()];
                }
                self.try_rule(text, hit.start()..hit.start() + literal.len(), usize::from(*rule), &mut found);
            }
        }
        for range in blocks::private(text, &found.tags) {
            found.spans.push(Span { range, rule: self.rule("private") });
        }
        found
    }

    fn try_rule(&self, text: &[u8], hit: Range<usize>, number: usize, found: &mut Findings) {
        let rule = self.rules[number];
        if hit.start < found.read_until[number] {
            return;
        }
        // A word within a mark is not the name of the value after the mark.
        if rule.rank() < BLOCK_RANK && found.marks.last().is_some_and(|mark| mark.contains(&hit.start)) {
            return;
        }
        let range = match &rule.shape {
            Shape::Token { before, edge, .. } => self.token(text, &hit, number, *before, *edge, found),
            Shape::Named { .. } => assignment::named(text, &hit).and_then(|start| {
                let end = self.matched(text, start, number)?;
                let secret = &text[start..end];
                let whole = !text.get(end).is_some_and(|&b| is_word(b) || b == b'-');
                (whole
                    && form::entropy(secret) >= rule.entropy
                    && (form::looks_random(secret, 16) || form::looks_keyed(secret)))
                .then_some(start..end)
            }),
            Shape::Scanned(scanner) => match scanner {
                Scanner::Private => {
                    found.tags.push(hit.start);
                    None
                }
                Scanner::PrivateKey => keys::private_key(text, hit.start, found.read_until[number]),
                Scanner::KeyBody => keys::key_body(text, hit.start, &mut found.read_until[number]),
                Scanner::Putty => keys::putty(text, hit.end),
                Scanner::Jwt => credentials::jwt(text, hit.start, &mut found.read_until[number]),
                Scanner::Url => credentials::url(text, &hit),
                Scanner::Bearer => credentials::bearer(text, &hit),
                Scanner::Basic => credentials::basic(text, &hit),
                Scanner::UserFlag => assignment::user_flag(text, &hit),
                Scanner::GemSource => assignment::gem_source(text, &hit),
                Scanner::PasswordFile => assignment::pgpass(text, &hit),
                Scanner::Authorization => credentials::authorization(text, &hit),
                Scanner::AwsPair => credentials::aws_pair(text, hit.start),
                Scanner::NatsSeed => checksums::nats_seed(text, hit.start),
                Scanner::WalletKey => checksums::wallet_key(text, hit.start),
                Scanner::WalletPhrase | Scanner::Provided => None,
                Scanner::Cookie => cookies::named(text, &hit),
                Scanner::CookieFile => cookies::in_file(text, &hit),
                Scanner::Cookies
                | Scanner::Manifest
                | Scanner::Jwk
                | Scanner::Structure
                | Scanner::Nearby
                | Scanner::NearbyKey => {
                    let floor = found.read_until[number];
                    let (ranges, end) = match scanner {
                        Scanner::Cookies => cookies::cookies(text, &hit),
                        Scanner::Manifest => documents::manifest(text, &hit, floor),
                        Scanner::Structure => structure::named(text, &hit),
                        Scanner::Nearby => structure::password(text, &hit),
                        Scanner::NearbyKey => structure::key(text, &hit),
                        _ => documents::jwk(text, &hit, floor),
                    };
                    found.spans.extend(ranges.into_iter().map(|range| Span { range, rule }));
                    found.read_until[number] = end;
                    None
                }
                Scanner::Password => assignment::password(text, &hit),
                Scanner::Secret => assignment::secret(text, &hit),
                Scanner::Piped => assignment::piped(text, &hit),
                Scanner::Marked => assignment::marked(text, &hit),
                Scanner::Output => structure::printed(text, &hit),
                Scanner::Dialogue => structure::login(text, &hit),
                Scanner::Sentence => structure::spoken(text, &hit),
                Scanner::Address => structure::address(text, &hit),
                Scanner::Argument => structure::argument(text, &hit),
                Scanner::Given => structure::given(text, &hit),
            },
        };
        if let Some(range) = range {
            found.read_until[number] = found.read_until[number].max(range.end);
            found.spans.push(Span { range, rule });
        }
    }

    fn token(
        &self,
        text: &[u8],
        hit: &Range<usize>,
        number: usize,
        before: Before,
        edge: Edge,
        found: &mut Findings,
    ) -> Option<Range<usize>> {
        let start = match before {
            Before::Nothing => hit.start,
            Before::Digits(most) => run_before(text, hit.start, most, |b| b.is_ascii_digit())?,
            Before::Hex(most) => run_before(text, hit.start, most, |b| b.is_ascii_hexdigit())?,
            Before::Word(most) => run_before(text, hit.start, most, |b| is_word(b) || b == b'~')?,
            Before::Exactly(bytes) => {
                hit.start.checked_sub(bytes).filter(|start| starts_word(text, *start))?
            }
            Before::Base64(most) => run_before(text, hit.start, most, |b| is_word(b) || b"+/-".contains(&b))?,
        };
        let alone = !matches!(edge, Edge::Open | Edge::Part);
        if alone && before == Before::Nothing && !starts_word(text, start) {
            return None;
        }
        if edge == Edge::Part && start > 0 && text[start - 1] != b'_' && !starts_word(text, start) {
            return None;
        }
        let end = self.matched(text, start, number)?;
        if IMAGES.iter().any(|ending| text[end..].starts_with(ending.as_bytes())) {
            return None;
        }
        if alone && text.get(end).is_some_and(|&b| is_word(b)) {
            return None;
        }
        // Whether or not the checks below succeed, no secret of this rule begins within the bytes that were just
        // matched.
        found.read_until[number] = end;
        let secret = &text[start..end];
        let drawn = &text[if before == Before::Nothing { hit.end.min(end) } else { start }..end];
        // `xoxb-your-token-here`.
        if drawn.len() < 24 && form::is_stand_in(drawn) {
            return None;
        }
        let random = edge != Edge::Random || form::looks_random(drawn, 0) && !in_base64(text, start, end);
        (random && form::entropy(secret) >= self.rules[number].entropy).then_some(start..end)
    }

    /// Returns where the match of the rule's pattern that begins at `start` ends.
    fn matched(&self, text: &[u8], start: usize, number: usize) -> Option<usize> {
        let machine = self.machines[number].get_or_init(|| match &self.rules[number].shape {
            Shape::Token { pattern, .. } | Shape::Named { pattern } => Some(machine(pattern)),
            Shape::Scanned(_) => None,
        });
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        machine.as_ref()?.try_search_fwd(&input).ok()?.map(|end| end.offset())
    }
}

/// Extensions of images. The name of an image may contain a hash after a word, as in `favicon.ico-….png`.
const IMAGES: [&str; 6] = [".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"];

/// Builds the DFA of a pattern.
pub(super) fn machine(pattern: &str) -> Machine {
    dense::Builder::new()
        .configure(dense::Config::new().start_kind(StartKind::Anchored))
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(thompson::Config::new().utf8(false))
        .build(pattern)
        .expect("the patterns of the table are valid, which a test holds")
}

/// The findings of a scan.
#[derive(Default)]
struct Findings {
    spans: Vec<Span>,
    /// The marks of an earlier redaction.
    marks: Vec<Range<usize>>,
    /// Where a `<private>` tag may begin.
    tags: Vec<usize>,
    /// For each rule, the offset up to which it has judged the text.
    read_until: Vec<usize>,
}

/// Merges overlapping secrets into one. The merged secret gets the rule of the highest rank, if possible a rule that
/// doesn't guess. Secrets that overlap a mark of an earlier redaction are left out, unless they are whole blocks.
fn merged(found: Findings) -> Vec<Span> {
    let Findings { mut spans, marks, .. } = found;
    spans.retain(|span| span.rule.rank() >= BLOCK_RANK || !touches(&marks, &span.range));
    spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end), span.rule.guesses()));
    let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                // A `:` or `=` within a token assigns no value.
                let is_within = span.range.start > last.range.start && last.rule.rank() == TOKEN_RANK;
                if span.rule.rank() == 0 && is_within {
                    continue;
                }
                if span.rule.rank() > last.rule.rank() {
                    last.rule = span.rule;
                }
                last.range.end = last.range.end.max(span.range.end);
            }
            _ => apart.push(span),
        }
    }
    apart
}

/// The rank of rules for tokens that are identified by their form.
const TOKEN_RANK: u8 = 4;

/// The lowest rank of rules that find whole blocks. Marks within a block are replaced together with the block.
const BLOCK_RANK: u8 = 5;

/// Returns whether one of `marks`, which are in order, overlaps `range`.
fn touches(marks: &[Range<usize>], range: &Range<usize>) -> bool {
    let next = marks.partition_point(|mark| mark.end <= range.start);
    marks.get(next).is_some_and(|mark| mark.start < range.end)
}

/// Returns `word` in lower case, capitalised and in upper case.
fn spellings(word: &str) -> impl Iterator<Item = String> {
    let letter = word.find(|c: char| c.is_ascii_alphabetic());
    let mut capitalised = word.to_owned();
    if let Some(letter) = letter {
        capitalised[letter..=letter].make_ascii_uppercase();
    }
    [word.to_ascii_lowercase(), word.to_ascii_uppercase(), capitalised].into_iter()
}

/// Returns whether the text from `start` to `end` is a part of base64, judged by the bytes before and after it. A part
/// of a URL is not.
fn in_base64(text: &[u8], start: usize, end: usize) -> bool {
    let beside =
        start > 0 && b"+/".contains(&text[start - 1]) && text.get(end).is_some_and(|b| b"+/=".contains(b));
    if !beside || text[start..end].iter().any(|b| b"_-.".contains(b)) {
        return false;
    }
    let address = |b: &u8| b.is_ascii_graphic() && !b"\"'`<>(),;".contains(b);
    let before = text[..start].iter().rev().take(300).take_while(|b| address(b)).count();
    let before = &text[start - before..start];
    // Parts of a path are also between slashes, as in `https://…/…/` and `GET /…/…/`.
    let path =
        before.windows(3).any(|signs| signs == b"://") || before.starts_with(b"/") && before.len() < 64;
    !path
}

/// Returns the beginning of the run of bytes that ends at `end` and for which `kind` is true. Returns `None` if the run
/// is empty. For a run of more than `most` bytes, returns `end - most`, or `None` if no token may begin there.
fn run_before(text: &[u8], end: usize, most: usize, kind: impl Fn(u8) -> bool) -> Option<usize> {
    let run = text[..end].iter().rev().take(most + 1).take_while(|b| kind(**b)).count();
    let mut start = end - run.min(most);
    // If the run begins within an escape such as `\n`, the bytes of the escape don't belong to it.
    let escape =
        (1..=3).find(|n| start + n < end && is_word(text[start + n - 1]) && starts_word(text, start + n));
    if run <= most
        && let Some(escape) = escape
    {
        start += escape;
    }
    (start < end && (run <= most || starts_word(text, start))).then_some(start)
}
