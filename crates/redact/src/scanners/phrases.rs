//! Finds recovery phrases of wallets: 12 to 24 words from a list of 2048. The last word of a phrase holds a
//! checksum.
//!
//! The words are ordinary, so there is no literal by which a phrase could be found. But a phrase is at least [`STEP`]
//! bytes long. So it is enough to examine one word every [`STEP`] bytes. In other text, the examined word is seldom in
//! the list. The checksum distinguishes a phrase from other rows of listed words.

use std::ops::Range;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The English word list of BIP 39, mnemonic code for generating deterministic keys.
static WORDS: LazyLock<Words> = LazyLock::new(Words::read);

/// The distance between examined words, in bytes. Twelve words of three letters, with spaces between them, have this
/// length.
const STEP: usize = 47;

/// The lengths of phrases, in words.
const LENGTHS: [usize; 5] = [24, 21, 18, 15, 12];

/// The maximum number of bytes that may separate two words. The separator can be a comma, quotes, a number or an
/// indentation.
const BETWEEN: usize = 24;

/// Returns the phrases in `text`.
pub(crate) fn phrases(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = STEP - 1;
    let mut floor = 0;
    // The lines of a log may be as long as a step, so the steps differ.
    let mut steps = [STEP, STEP - 14].into_iter().cycle();
    while at < text.len() {
        let step = steps.next().unwrap_or(STEP);
        let of_list = |word: &Range<usize>| index(&text[word.clone()]).is_some();
        let word = word_near(text, at, floor).filter(of_list);
        // In other text, the neighbours of a listed word are seldom in the list.
        let alone = |word: &Range<usize>| {
            !next(text, word.end).is_some_and(|next| of_list(&next))
                && !previous(text, word.start, floor).is_some_and(|previous| of_list(&previous))
        };
        let Some(word) = word else {
            at += step;
            continue;
        };
        let lone = alone(&word);
        let row = if lone { vec![] } else { row(text, word.clone(), floor) };
        let last = row.last().map_or(word.end, |(_, word)| word.end);
        let count = found.len();
        in_row(text, &row, true, &mut found);
        if found.len() == count && ends_line(text, last) {
            let groups = behind(text, last, floor);
            in_row(text, &groups, false, &mut found);
            floor = groups.last().filter(|_| found.len() > count).map_or(floor, |(_, word)| word.end);
        }
        if !lone {
            floor = floor.max(last);
            at = floor;
        }
        at = at.max(floor) + step;
    }
    found
}

/// Appends the phrases among the words of `row`. If `alike` is true, all words of a phrase must be separated by the
/// same signs.
fn in_row(text: &[u8], row: &[Listed], alike: bool, found: &mut Vec<Range<usize>>) {
    let mut first = 0;
    while first + 12 <= row.len() {
        let length = LENGTHS.into_iter().find(|length| {
            let words = row.get(first..first + length);
            words.is_some_and(|words| {
                !words.is_sorted_by_key(|(index, _)| *index)
                    && (has_checksum(words)
                        || numbered(text, words).is_some_and(|words| has_checksum(&words)))
                    && (!alike || is_list(text, words))
            })
        });
        match length {
            Some(length) => {
                found.push(row[first].1.start..row[first + length - 1].1.end);
                first += length;
            }
            None => first += 1,
        }
    }
}

/// A word of the list: its number in the list, and its range in the text.
type Listed = (u16, Range<usize>);

/// Returns `words` in the order of the numbers before them, if these numbers count from 1. Words that are arranged in
/// columns are numbered like this.
fn numbered(text: &[u8], words: &[Listed]) -> Option<Vec<Listed>> {
    let mut ordered = vec![None; words.len()];
    for word in words {
        let before = text[..word.1.start].iter().rev().take(6);
        let signs = before.clone().take_while(|b| b" .):\"".contains(b)).count();
        let digits = before.skip(signs).take_while(|b| b.is_ascii_digit()).count();
        let number = &text[word.1.start - signs - digits..word.1.start - signs];
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        *ordered.get_mut(number.checked_sub(1)?)? = Some(word.clone());
    }
    ordered.into_iter().collect()
}

/// Returns the listed words at the ends of successive lines, around the line that ends at `end`. All these lines have
/// the same text before the words, apart from digits, like the lines of a log. If there are no such words, the result
/// is empty.
fn behind(text: &[u8], end: usize, floor: usize) -> Vec<Listed> {
    let lead = |line: &Range<usize>| -> Option<(Vec<u8>, Vec<Listed>)> {
        let mut words = Vec::new();
        let mut start = line.end;
        let first =
            line.end - text[line.clone()].iter().rev().take_while(|b| b.is_ascii_alphabetic()).count();
        words.push((index(&text[first..line.end])?, first..line.end));
        start = start.min(first);
        while let Some(word) = previous(text, start, line.start)
            && let Some(index) = index(&text[word.clone()])
        {
            start = word.start;
            words.push((index, word));
        }
        words.reverse();
        let lead =
            text[line.start..start].iter().filter(|b| !b.is_ascii_digit() && **b != b' ').copied().collect();
        Some((lead, words))
    };
    let Some(start) = line_start(text, end, floor) else { return Vec::new() };
    let Some((own, words)) =
        lead(&(start..end)).filter(|(lead, _)| lead.iter().any(u8::is_ascii_alphanumeric) || lead.len() > 3)
    else {
        return Vec::new();
    };
    let mut lines = std::collections::VecDeque::from([words]);
    let (mut top, mut bottom) = (start, end);
    while lines.len() < 48 && top > floor + 1 {
        let end = top - 1 - usize::from(text[..top - 1].ends_with(b"\r"));
        let Some(start) = line_start(text, end, floor) else { break };
        let Some((_, words)) = lead(&(start..end)).filter(|(lead, _)| *lead == own) else { break };
        lines.push_front(words);
        top = start;
    }
    while lines.len() < 48 && bottom < text.len() {
        let start = bottom + text[bottom..].iter().take(2).take_while(|b| b"\r\n".contains(b)).count();
        let Some(length) = text[start..]
            .iter()
            .take(LINE)
            .position(|b| b"\r\n".contains(b))
            .or((text.len() - start < LINE).then_some(text.len() - start))
        else {
            break;
        };
        let Some((_, words)) = lead(&(start..start + length)).filter(|(lead, _)| *lead == own) else { break };
        lines.push_back(words);
        bottom = start + length;
    }
    // If the same listed word begins each line, it belongs to the text before the words, as in `word 1: …`.
    let label = lines.iter().all(|words| words.len() > 1 && words[0].0 == lines[0][0].0);
    lines.into_iter().flat_map(|words| words.into_iter().skip(usize::from(label))).collect()
}

/// Returns whether a line ends at `at`.
fn ends_line(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|b| b"\r\n".contains(b))
}

/// The maximum number of bytes of a line that ends with words of a phrase.
const LINE: usize = 240;

/// Returns the beginning of the line that ends at `end`, or `None` if the line is too long.
fn line_start(text: &[u8], end: usize, floor: usize) -> Option<usize> {
    let line = &text[floor.max(end.saturating_sub(LINE)).min(end)..end];
    let newline = line.iter().rposition(|b| *b == b'\n').map(|place| end - line.len() + place + 1);
    newline.or((end - line.len() == floor || end == line.len()).then_some(end - line.len()))
}

/// Returns whether the same signs separate all `words`. Digits between words are ignored, and all kinds of space count
/// as the same. If the separator is more than a space, also returns false if more than one word is repeated within the
/// next two words.
fn is_list(text: &[u8], words: &[Listed]) -> bool {
    let between = |pair: &[Listed]| {
        let signs = text[pair[0].1.end..pair[1].1.start].iter().filter(|b| !b.is_ascii_digit());
        let mut signs: Vec<u8> = signs.map(|b| if b.is_ascii_whitespace() { b' ' } else { *b }).collect();
        signs.dedup();
        signs
    };
    let first = between(&words[..2]);
    let repeated =
        words.windows(3).filter(|three| three[0].0 == three[1].0 || three[0].0 == three[2].0).count();
    (first == b" " || repeated <= 1) && words.windows(2).all(|pair| between(pair) == first)
}

/// Returns whether the checksum of `words` is right: the last bits that they encode must be the first bits of the hash
/// of the other bits.
fn has_checksum(words: &[Listed]) -> bool {
    let mut bytes = [0u8; 33];
    for (number, (index, _)) in words.iter().enumerate() {
        for bit in 0..11 {
            let place = number * 11 + bit;
            bytes[place / 8] |= u8::from(index >> (10 - bit) & 1 == 1) << (7 - place % 8);
        }
    }
    let entropy = words.len() / 3 * 4;
    let unused = 8 - words.len() / 3;
    Sha256::digest(&bytes[..entropy])[0] >> unused == bytes[entropy] >> unused
}

/// Returns the uninterrupted row of words from the list around `word`, each with its number in the list.
fn row(text: &[u8], word: Range<usize>, floor: usize) -> Vec<Listed> {
    let mut before = Vec::new();
    let mut start = word.start;
    while let Some(word) = previous(text, start, floor)
        && let Some(index) = index(&text[word.clone()])
    {
        start = word.start;
        before.push((index, word));
    }
    before.reverse();
    let mut row = before;
    let mut end = word.end;
    row.extend(index(&text[word.clone()]).map(|index| (index, word)));
    while let Some(word) = next(text, end)
        && let Some(index) = index(&text[word.clone()])
    {
        end = word.end;
        row.push((index, word));
    }
    row
}

/// Returns the word at `at`, or the next word if `at` is between two words.
fn word_near(text: &[u8], at: usize, floor: usize) -> Option<Range<usize>> {
    let gap = text[at..].iter().take(BETWEEN).take_while(|b| !b.is_ascii_alphabetic()).count();
    if gap > 0 {
        return next(text, at);
    }
    // The longest word of the list has eight letters.
    let before = text[floor.min(at)..at].iter().rev().take(9).take_while(|b| b.is_ascii_alphabetic()).count();
    let after = text[at..].iter().take(9).take_while(|b| b.is_ascii_alphabetic()).count();
    Some(at - before..at + after)
}

fn previous(text: &[u8], start: usize, floor: usize) -> Option<Range<usize>> {
    let text = &text[..start];
    let mut gap = 0;
    let bytes = &text[floor.min(start)..];
    while gap < BETWEEN && gap < bytes.len() && is_between(bytes[bytes.len() - 1 - gap]) {
        let rest = &bytes[..bytes.len() - gap];
        gap += if rest.ends_with(b">") { tag_before(rest) } else { 1 };
    }
    let end = start - gap;
    let length =
        text[floor.min(end)..end].iter().rev().take(9).take_while(|b| b.is_ascii_alphabetic()).count();
    let length = length - escape(&text[..end - length], length);
    (gap > 0 && length > 0).then_some(end - length..end)
}

fn next(text: &[u8], end: usize) -> Option<Range<usize>> {
    let mut gap = 0;
    while gap < BETWEEN && text.get(end + gap).is_some_and(|b| is_between(*b)) {
        gap += if text[end + gap] == b'<' { tag(&text[end + gap..]) } else { 1 };
    }
    let start = end + gap;
    let length = text[start..].iter().take(9).take_while(|b| b.is_ascii_alphabetic()).count();
    let escape = escape(&text[..start], length);
    (gap > 0 && length > escape).then_some(start + escape..start + length)
}

/// Returns the length of the tag at the beginning of `text`, such as `</li>`; 1 if there is none.
fn tag(text: &[u8]) -> usize {
    let name = text[1..].iter().take(8).take_while(|b| b.is_ascii_alphanumeric() || **b == b'/').count();
    if name > 0 && text.get(1 + name) == Some(&b'>') { name + 2 } else { 1 }
}

/// Returns the length of the tag at the end of `text`; 1 if there is none.
fn tag_before(text: &[u8]) -> usize {
    let name = text[..text.len() - 1]
        .iter()
        .rev()
        .take(8)
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'/')
        .count();
    if name > 0 && text[..text.len() - 1 - name].ends_with(b"<") { name + 2 } else { 1 }
}

/// Returns how many of the letters after `before` belong to an escape, such as the `n` of `\n`.
fn escape(before: &[u8], letters: usize) -> usize {
    usize::from(letters > 1 && before.last() == Some(&b'\\'))
}

/// Returns whether `byte` may be between the words of a phrase.
fn is_between(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

/// Returns the index of `word` in the list.
fn index(word: &[u8]) -> Option<u16> {
    if !(3..=8).contains(&word.len()) {
        return None;
    }
    let mut key = [0; 8];
    for (to, from) in key.iter_mut().zip(word) {
        *to = from.to_ascii_lowercase();
    }
    let words = &*WORDS;
    let mark = mark(&key);
    if words.marks[mark / 64] >> (mark % 64) & 1 == 0 {
        return None;
    }
    let letter = usize::from(key[0].checked_sub(b'a').filter(|letter| *letter < 26)?);
    let from = usize::from(words.starts[letter]);
    let of_letter = &words.all[from..usize::from(words.starts[letter + 1])];
    of_letter.binary_search(&key).ok().map(|at| (from + at) as u16)
}

struct Words {
    /// The words in alphabetical order, each padded with zeros.
    all: Vec<[u8; 8]>,
    /// For each letter, the place in `all` where the words with this first letter start. The last entry is the number
    /// of words.
    starts: [u16; 27],
    /// One bit for each possible hash of four letters. A bit is set if the first four letters of a word in the list
    /// have this hash. So a word whose bit is not set is not in the list.
    marks: Box<[u64; 1024]>,
}

/// Returns the index of the bit in `marks` that stands for the word `key`.
fn mark(key: &[u8; 8]) -> usize {
    let letters = u32::from_le_bytes([key[0], key[1], key[2], key[3]]);
    (letters.wrapping_mul(0x9E37_79B1) >> 16) as usize
}

impl Words {
    fn read() -> Words {
        let mut words = Words { all: Vec::with_capacity(2048), starts: [0; 27], marks: Box::new([0; 1024]) };
        for word in include_str!("phrases.txt").split_whitespace() {
            let mut key = [0; 8];
            key[..word.len()].copy_from_slice(word.as_bytes());
            words.all.push(key);
            let mark = mark(&key);
            words.marks[mark / 64] |= 1 << (mark % 64);
            words.starts[usize::from(key[0] - b'a') + 1..].fill(words.all.len() as u16);
        }
        words
    }
}
