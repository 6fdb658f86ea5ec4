//! Divides a long text into chunks.
//!
//! A text is cut between paragraphs if the chunk is then at least half full. Otherwise it is cut at the end of a line
//! or sentence, otherwise between words, and otherwise anywhere between two characters. A fenced block of code counts
//! as one paragraph. Neighbouring chunks overlap a little, so that one chunk contains the whole sentence at the border.
//!
//! Every part of the text is measured a bounded number of times, so ten megabytes without a space take no longer than
//! prose: 0.1 s in addition to measuring. By contrast, `text-splitter` measures a part up to hundreds of times, and its
//! time grows with the square of the length: 3.5 s for 400 KB of one letter, 30 s for 400 KB of Chinese.

/// A piece of a text: a range of bytes, at boundaries of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Text without spaces is divided into parts of this many bytes.
const SLICE: usize = 64;

/// Returns the chunks of `text` in order. The chunks cover everything except surrounding white space. The `size` of a
/// chunk is at most `max`, unless a single character is larger, and the size of the part that two neighbours share is
/// at most `overlap`.
///
/// The function `size` must be nearly additive: if a text is cut between words, the sizes of the parts together must be
/// hardly larger than the size of the whole. Counts of tokens fulfil this condition, because each cut adds at most a
/// few tokens.
pub fn chunks(text: &str, size: &dyn Fn(&str) -> usize, max: usize, overlap: usize) -> Vec<Chunk> {
    let whole = trimmed(text);
    if whole.start == whole.end {
        return Vec::new();
    }
    // Most texts are a single chunk. A token has at least one byte, so a text of at most `max` bytes need not be
    // measured.
    if text.len() <= max || (text.len() <= 16 * max && size(&text[whole.start..whole.end]) <= max) {
        return vec![whole];
    }
    let mut atoms = Vec::new();
    for sentence in ranges(text, is_sentence_end) {
        divide(text, sentence, size, max, &mut atoms);
    }
    let cuts = cuts(text, &atoms);
    let choose = |first, new, next| best_cut(&atoms, &cuts, first, new, next);
    pack(text, &atoms, size, max, &choose, &|_| overlap, &trimmed)
}

/// A range that is never cut, and its size.
pub(super) struct Atom {
    /// The range.
    pub(super) range: Chunk,
    /// Its size.
    pub(super) size: usize,
}

/// Adds `range` to the atoms. A range that is too large is first divided into words, slices or characters.
pub(super) fn divide(
    text: &str,
    range: Chunk,
    size: &dyn Fn(&str) -> usize,
    max: usize,
    atoms: &mut Vec<Atom>,
) {
    let part = &text[range.start..range.end];
    // A range that is obviously too large need not be measured.
    if part.len() <= 16 * max {
        let measured = size(part);
        if measured <= max {
            atoms.push(Atom { range, size: measured });
            return;
        }
    }
    let within = |inner: Chunk| Chunk { start: range.start + inner.start, end: range.start + inner.end };
    // White space of any length belongs to the word before it.
    let words = ranges(part, |before, after| before.is_whitespace() && !after.is_whitespace());
    if words.len() > 1 {
        words.into_iter().for_each(|word| divide(text, within(word), size, max, atoms));
        return;
    }
    let slice = if part.len() > SLICE { SLICE } else { part.len() / 2 };
    let mut start = 0;
    while start < part.len() {
        let mut end = part.floor_char_boundary(start + slice.max(1));
        if end <= start {
            end = part.ceil_char_boundary(start + 1);
        }
        let inner = within(Chunk { start, end });
        let piece = &text[inner.start..inner.end];
        let measured = size(piece);
        if measured <= max || piece.chars().nth(1).is_none() {
            atoms.push(Atom { range: inner, size: measured });
        } else {
            divide(text, inner, size, max, atoms);
        }
        start = end;
    }
}

/// Fills chunks with atoms, one after the other.
///
/// `choose(first, new, next)` returns the end of a chunk that begins with the atom `first` and has room for the atoms
/// before `next`. The end is greater than `new` and at most `next`. `overlap(next)` is the size of the part that two
/// neighbouring chunks may share if the border between them is before the atom `next`. `trimmed` returns the range of a
/// text without its removed ends.
pub(super) fn pack(
    text: &str,
    atoms: &[Atom],
    size: &dyn Fn(&str) -> usize,
    max: usize,
    choose: &dyn Fn(usize, usize, usize) -> usize,
    overlap: &dyn Fn(usize) -> usize,
    trimmed: &dyn Fn(&str) -> Chunk,
) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    // The current chunk has the atoms from `first` on. The atoms before `new` are also in the previous chunk.
    let (mut first, mut new) = (0, 0);
    while new < atoms.len() {
        let mut next = first;
        let mut total = 0;
        while next < atoms.len() && (next <= new || total + atoms[next].size <= max) {
            total += atoms[next].size;
            next += 1;
        }
        if next < atoms.len() {
            next = choose(first, new, next);
        }
        // The chunk is measured as a whole, since the sizes of its atoms add up only roughly.
        let range = |next: usize| atoms[first].range.start..atoms[next - 1].range.end;
        let mut measured = size(&text[range(next)]);
        while next > new + 1 && measured > max {
            next -= 1;
            measured = size(&text[range(next)]);
        }
        if first < new && measured > max {
            first = new;
            continue;
        }
        let inner = trimmed(&text[range(next)]);
        let chunk = Chunk { start: range(next).start + inner.start, end: range(next).start + inner.end };
        let covered = chunks.last().map_or(0, |last: &Chunk| last.end);
        if inner.start < inner.end && chunk.end > covered {
            chunks.push(chunk);
        }
        // The next chunk begins with the last atoms of this chunk, as many as may be shared. It must have room for at
        // least one new atom.
        let begin_before = first;
        (first, new) = (next, next);
        let mut shared = 0;
        while first > begin_before + 1 && shared + atoms[first - 1].size <= overlap(new) {
            first -= 1;
            shared += atoms[first].size;
        }
        if atoms.get(new).is_some_and(|atom| shared + atom.size > max) {
            first = new;
        }
    }
    chunks
}

/// The kinds of places where a text can be cut, the best kind last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    Anywhere,
    Line,
    Paragraph,
}

/// Returns the kind of the possible cut before each atom. The atoms are consecutive and cover the text.
fn cuts(text: &str, atoms: &[Atom]) -> Vec<Cut> {
    let mut fenced = false;
    let (mut read, mut breaks) = (0, LineBreaks::default());
    let before_atom = |atom: &Atom| {
        breaks.read(&text[read..atom.range.start]);
        read = atom.range.start;
        let starts_line = breaks.is_line_start();
        let is_fence = starts_line && text[atom.range.start..atom.range.end].trim_start().starts_with("```");
        let cut = match (starts_line, fenced) {
            (true, false) if breaks.is_after_blank() || is_fence => Cut::Paragraph,
            (true, _) => Cut::Line,
            (false, _) => Cut::Anywhere,
        };
        fenced ^= is_fence;
        cut
    };
    atoms.iter().map(before_atom).collect()
}

/// Counts the line breaks since the last character that is not a blank. Text is read only forward, so that each
/// character is read once. Looking back from each atom, as an earlier version did, took time quadratic in the length of
/// a run of blanks.
#[derive(Default)]
struct LineBreaks {
    count: usize,
    has_text: bool,
}

impl LineBreaks {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                b'\n' => self.count += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => *self = LineBreaks { count: 0, has_text: true },
            }
        }
    }

    fn is_line_start(&self) -> bool {
        self.count > 0 || !self.has_text
    }

    fn is_after_blank(&self) -> bool {
        self.count > 1
    }
}

/// Returns the best cut up to `next`. The chunk that ends there has at least one new atom and is at least half full. If
/// several cuts are equally good, returns the last of them.
fn best_cut(atoms: &[Atom], cuts: &[Cut], first: usize, new: usize, next: usize) -> usize {
    let mut left = atoms[first..next].iter().map(|atom| atom.size).sum::<usize>();
    let half = left / 2;
    let mut best = next;
    for cut in (new + 1..next).rev() {
        left -= atoms[cut].size;
        if left < half {
            break;
        }
        if cuts[cut] > cuts[best] {
            best = cut;
        }
    }
    best
}

/// Cuts `text` between any two neighbouring characters for which `ends(before, after)` is true.
fn ranges(text: &str, ends: impl Fn(char, char) -> bool) -> Vec<Chunk> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| ends(before, c)) {
            ranges.push(Chunk { start, end: at });
            start = at;
        }
        before = Some(c);
    }
    ranges.push(Chunk { start, end: text.len() });
    ranges
}

fn is_sentence_end(before: char, after: char) -> bool {
    match before {
        '\n' => after != '\n',
        '.' | '!' | '?' => after == ' ',
        '。' | '！' | '？' => true,
        _ => false,
    }
}

/// Returns the range of `text` without white space at its ends.
pub(super) fn trimmed(text: &str) -> Chunk {
    let start = text.len() - text.trim_start().len();
    Chunk { start, end: start + text.trim().len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn pieces(text: &str, max: usize, overlap: usize) -> Vec<&str> {
        chunks(text, &words, max, overlap).iter().map(|chunk| &text[chunk.start..chunk.end]).collect()
    }

    #[test]
    fn cuts_fall_at_sentences_then_at_words() {
        assert_eq!(pieces("One two. Three four. Five six.", 4, 0), ["One two. Three four.", "Five six."]);
        assert_eq!(pieces("a b c d e f g", 3, 0), ["a b c", "d e f", "g"]);
        assert_eq!(pieces("a b. c d. e f.", 4, 2), ["a b. c d.", "c d. e f."]);
        assert_eq!(pieces("  \n ", 3, 0), [""; 0]);
    }

    #[test]
    fn cuts_fall_between_paragraphs_that_fill_half_a_chunk() {
        assert_eq!(pieces("a b c.\n\nd e. f g.", 5, 0), ["a b c.", "d e. f g."]);
        assert_eq!(pieces("a.\n\nb c d. e f g.", 5, 0), ["a.\n\nb c d.", "e f g."]);
    }

    #[test]
    fn a_fenced_block_is_not_cut_at_its_blank_lines() {
        let text = "a b\n```\nc\n\nd\n```\ne f g";
        assert_eq!(pieces(text, 7, 0), ["a b\n```\nc\n\nd\n```", "e f g"]);
        assert_eq!(pieces("a\n\nb c\n\n```\nd\n\ne\n```", 5, 0), ["a\n\nb c", "```\nd\n\ne\n```"]);
    }

    #[test]
    fn ten_megabytes_without_a_space_are_cut() {
        let long = "x".repeat(10 << 20);
        let cut = chunks(&long, &str::len, 150, 16);
        assert!(cut.iter().all(|chunk| chunk.end - chunk.start <= 150));
        assert_eq!(cut.last().unwrap().end, long.len());
    }

    /// In an earlier version, each of a hundred thousand spaces was a separate atom and looked back to the first one,
    /// which took 5 s.
    #[test]
    fn work_grows_with_the_length_of_a_run_and_not_with_its_square() {
        let measured = |text: &str| {
            let work = std::cell::Cell::new(0);
            let size = |text: &str| {
                work.set(work.get() + text.len() + 1);
                text.len()
            };
            chunks(text, &size, 150, 16);
            work.get()
        };
        for run in [" ", "\n", "\t", "a", ". ", " \n", "\r\n", "a b. ", "```\n", "日", "。", "\u{2003}"] {
            for (before, after) in [("", ""), ("a", "a"), ("\n\n", "\n\na")] {
                let text = |bytes: usize| format!("{before}{}{after}", run.repeat(bytes / run.len()));
                let (one, four) = (measured(&text(16 << 10)), measured(&text(64 << 10)));
                assert!(four <= 5 * one + 4096, "{run:?}: {one}, {four}");
            }
        }
    }

    /// Stored chunks were made by this function, and its numbers were tuned by measurements. So a change for other texts
    /// must not move the borders of prose. The hash is that of the version that was measured.
    #[test]
    fn the_borders_of_prose_stay_where_they_were_measured() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let parts = [
            "word ",
            "a longer run of words, ",
            "sentence ends. ",
            "Why? ",
            "line\n",
            "\n\n",
            "```rust\n",
            "```\n",
            "日本語の文。",
            "é",
            "    indented\n",
            "\r\n",
            "\t",
            "fn f() { g(); }\n",
            "- item\n",
            " ",
        ];
        let mut hasher = blake3::Hasher::new();
        for length in 0..400 {
            let text: String = (0..length).map(|_| parts[random(parts.len() as u64) as usize]).collect();
            for (max, overlap) in [(150, 16), (20, 3), (7, 0)] {
                for size in [&words as &dyn Fn(&str) -> usize, &str::len] {
                    for Chunk { start, end } in chunks(&text, size, max, overlap) {
                        hasher.update(&(start as u64).to_le_bytes());
                        hasher.update(&(end as u64).to_le_bytes());
                    }
                }
            }
        }
        insta::assert_snapshot!(&hasher.finalize().to_hex()[..16], @"b1fd7605215278fb");
    }

    proptest! {
        #[test]
        fn line_breaks_are_read_forward_as_looking_back_finds_them(text in "[a \t\r\n]{0,12}") {
            let mut breaks = LineBreaks::default();
            for (at, _) in text.char_indices() {
                let lines = text[..at].trim_end_matches([' ', '\t', '\r']);
                let after_blank = lines.strip_suffix('\n')
                    .is_some_and(|lines| lines.trim_end_matches([' ', '\t', '\r']).ends_with('\n'));
                prop_assert_eq!(breaks.is_line_start(), lines.is_empty() || lines.ends_with('\n'));
                prop_assert_eq!(breaks.is_after_blank(), after_blank);
                breaks.read(&text[at..=at]);
            }
        }

        #[test]
        fn chunks_cover_the_text_in_order_and_fit(
            text in "[a-c .!\n日é]{0,400}", max in 1usize..40, overlap in 0usize..10
        ) {
            let size = |text: &str| text.chars().count();
            let found = chunks(&text, &size, max, overlap);
            let mut covered = 0;
            for chunk in &found {
                prop_assert!(chunk.start < chunk.end);
                prop_assert!(size(&text[chunk.start..chunk.end]) <= max);
                if chunk.start > covered {
                    prop_assert!(text[covered..chunk.start].trim().is_empty());
                }
                prop_assert!(chunk.end > covered);
                covered = chunk.end;
            }
            prop_assert!(text[covered..].trim().is_empty());
            prop_assert_eq!(found, chunks(&text, &size, max, overlap));
        }
    }
}
