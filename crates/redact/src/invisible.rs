//! Finds secrets that contain invisible characters, by scanning the text without these characters.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

use super::mark::Span;

/// The minimum number of bytes that are scanned on each side of an invisible character. If the line is longer, the scan
/// extends to the boundary of the line, but at most to twice this number of bytes.
const AROUND: usize = 256;

/// The maximum number of bytes between an invisible character within the name of a secret and the secret itself.
const NAME: usize = 80;

/// Returns the secrets that `scan` finds only after the invisible characters of `text` are removed.
///
/// Scans around each invisible character that is beside visible ASCII. The invisible characters of emoji are thereby
/// excluded.
pub(super) fn hidden(text: &str, scan: impl Fn(&[u8]) -> Vec<Span>) -> Vec<Span> {
    let mut found = Vec::new();
    let places = places(text);
    let text = text.as_bytes();
    let mut next = 0;
    while let Some(first) = places.get(next) {
        let start = line_start(text, first.start);
        let mut end = line_end(text, first.end);
        let mut last = next + 1;
        while let Some(place) = places.get(last).filter(|place| place.start < end) {
            end = line_end(text, place.end);
            last += 1;
        }
        let places = &places[next..last];
        next = last;
        if !places.iter().any(|place| splits(text, place)) {
            continue;
        }
        let visible = Visible::of(&text[start..end], start, places);
        for span in scan(&visible.text) {
            let range = visible.whole(&span.range);
            let after = places.partition_point(|place| place.end + NAME < range.start);
            if places.get(after).is_some_and(|place| place.start < range.end) {
                found.push(Span { range, ..span });
            }
        }
    }
    found
}

/// Returns whether a visible ASCII character is directly before or after the invisible character at `place`.
fn splits(text: &[u8], place: &Range<usize>) -> bool {
    let visible = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    visible(text[..place.start].last()) || visible(text.get(place.end))
}

fn line_start(text: &[u8], at: usize) -> usize {
    let near = at.saturating_sub(AROUND);
    let line = text[near.saturating_sub(AROUND)..near].iter().rposition(|b| *b == b'\n');
    character(text, line.map_or(near.saturating_sub(AROUND), |line| near.saturating_sub(AROUND) + line + 1))
}

fn line_end(text: &[u8], at: usize) -> usize {
    let near = text.len().min(at + AROUND);
    let line = text[near..].iter().take(AROUND).position(|b| *b == b'\n');
    character(text, line.map_or(text.len().min(near + AROUND), |line| near + line))
}

/// Returns where the character that contains the byte at `at` begins.
fn character(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}

/// Returns the ranges of the invisible characters of `text`.
fn places(text: &str) -> Vec<Range<usize>> {
    let mut places = escapes(text.as_bytes());
    if text.is_ascii() {
        return places;
    }
    for (number, piece) in text.as_bytes().chunks(PIECE).enumerate().filter(|(_, piece)| !piece.is_ascii()) {
        let start = number * PIECE;
        let may_begin = |byte: u8| matches!(byte, 0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xef | 0xf3);
        for at in (start..start + piece.len()).filter(|at| may_begin(piece[at - start])) {
            let character = text[at..].chars().next().filter(|character| is_hidden(*character));
            places.extend(character.map(|character| at..at + character.len_utf8()));
        }
    }
    places.sort_by_key(|place| place.start);
    places.dedup_by(|next, last| next.start < last.end);
    places
}

/// Returns the ranges of the escape sequences of terminals in `text`. Such sequences set colours and move the cursor
/// (`ESC [ … m`), or set titles and links (`ESC ] … BEL`). The escape character may be written out, as in `\\x1b[0m`.
fn escapes(text: &[u8]) -> Vec<Range<usize>> {
    // The ASCII signs begin with only three different bytes. For so few, the search is several times as fast, so they
    // have a separate automaton.
    let build = |signs: &[&str]| AhoCorasick::new(signs).expect("a few short strings fit an automaton");
    static PLAIN: OnceLock<AhoCorasick> = OnceLock::new();
    static ALL: OnceLock<AhoCorasick> = OnceLock::new();
    let signs = match text.is_ascii() {
        true => PLAIN.get_or_init(|| build(&ESCAPES[1..])),
        false => ALL.get_or_init(|| build(ESCAPES)),
    };
    let mut places: Vec<Range<usize>> = Vec::new();
    for sign in signs.find_iter(text) {
        let rest = &text[sign.end()..];
        let length = match text[sign.end() - 1] {
            b'[' | 0x9b => {
                let run = rest.iter().take(32).take_while(|b| b"0123456789;:?<=> ".contains(b)).count();
                rest.get(run).filter(|b| b.is_ascii_alphabetic()).map(|_| run + 1)
            }
            b']' => {
                let run = rest.iter().take(300).take_while(|b| !matches!(b, 7 | 0x1b | b'\n')).count();
                match rest.get(run) {
                    Some(7) => Some(run + 1),
                    Some(0x1b) if rest.get(run + 1) == Some(&b'\\') => Some(run + 2),
                    _ => None,
                }
            }
            _ => Some(0),
        };
        places.extend(length.map(|length| sign.start()..sign.end() + length));
    }
    places.dedup_by(|next, last| next.start < last.end);
    places
}

/// The beginnings of escape sequences of terminals. The first one is outside ASCII.
const ESCAPES: &[&str] = &[
    "\u{9b}", "\x1b[", "\x1b]", "\\x1b[", "\\x1B[", "\\033[", "\\u001b[", "\\u001B[", "\\e[", "^[[",
    "\\u{1b}[",
];

/// The number of bytes that are checked at once for characters outside ASCII.
const PIECE: usize = 64;

/// Returns whether `character` is a soft hyphen, joiner, direction mark, invisible operator, variation selector or tag.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e01ef}'
    )
}

/// A text without its invisible characters.
struct Visible {
    text: Vec<u8>,
    /// For each removed character, the offset in `text` where it was, and the total number of bytes removed up to its
    /// end.
    left_out: Vec<(usize, usize)>,
    /// The offset of this text in the whole text.
    start: usize,
}

impl Visible {
    /// Returns `text` without the characters at `places`. `start` is the place where `text` begins in the whole text,
    /// and `places` are ranges of the whole text.
    fn of(text: &[u8], start: usize, places: &[Range<usize>]) -> Visible {
        let mut visible = Visible { text: Vec::with_capacity(text.len()), left_out: Vec::new(), start };
        let (mut end, mut out) = (0, 0);
        for place in places {
            visible.text.extend_from_slice(&text[end..place.start - start]);
            out += place.len();
            visible.left_out.push((visible.text.len(), out));
            end = place.end - start;
        }
        visible.text.extend_from_slice(&text[end..]);
        visible
    }

    /// Returns the range of the whole text that corresponds to `range` of this text.
    fn whole(&self, range: &Range<usize>) -> Range<usize> {
        // The range excludes removed characters that are directly before its first byte or directly after its last.
        let out = |count: usize| count.checked_sub(1).map_or(0, |at| self.left_out[at].1);
        let before = |place: usize| out(self.left_out.partition_point(|(at, _)| *at <= place));
        let until = |place: usize| out(self.left_out.partition_point(|(at, _)| *at < place));
        self.start + range.start + before(range.start)..self.start + range.end + until(range.end)
    }
}
