use proptest::prelude::*;

use super::*;

/// Counts of tiktoken 0.14 (`encode_ordinary`) in o200k and cl100k.
const KNOWN: &[(&str, usize, usize)] = &[
    ("", 0, 0),
    ("hello world", 2, 2),
    ("a\n  ", 3, 3),
    ("a \n \n\t", 3, 3),
    ("a\n  b", 4, 4),
    ("a  \u{3000}\n \u{2028} x", 5, 7),
    ("fn main() {\n    println!(\"hi\");\n}\n", 10, 10),
    ("don't DON'T we'Ve '\u{17f}a", 8, 11),
    ("<|endoftext|>", 7, 7),
    ("1234567 ٣٢½Ⅷ", 9, 11),
    ("snake_case camelCase HTTPServer", 6, 6),
    ("!\n//\r\n/ a", 4, 4),
    ("naïve Ünïcode ǅ ªº", 12, 13),
    ("語彙と文字 한국어", 7, 10),
    ("\u{85}\u{a0}\u{2028}\u{3000}x\u{200b}é", 8, 9),
    ("\0\u{1b}[0m\u{7f}", 6, 5),
    ("\u{202e}\u{e0041}", 5, 5),
    ("        return  x", 4, 4),
];

#[test]
fn counts_what_tiktoken_counts() {
    for &(text, o200k, cl100k) in KNOWN {
        assert_eq!(count(text), o200k, "{text:?}");
        let bounds = bounded(text);
        assert!((bounds.low..=bounds.high).contains(&cl100k), "{text:?} {bounds:?}");
    }
}

#[test]
fn a_megabyte_of_one_character_is_counted() {
    for (character, o200k) in
        [(' ', 8192), ('a', 131_072), ('\n', 65_536), ('0', 349_526), ('-', 16_384), ('😀', 262_144)]
    {
        let text = character.to_string().repeat((1 << 20) / character.len_utf8());
        assert_eq!(count(&text), o200k, "{character:?}");
    }
}

/// The two dictionaries that [`bounded`](super::bounded::bounded) holds for.
fn peers() -> [&'static bpe_openai::Tokenizer; 2] {
    [bpe_openai::o200k_base(), bpe_openai::cl100k_base()]
}

/// The facts about both dictionaries that [`bounded`](super::bounded::bounded) rests on.
#[test]
fn the_facts_behind_the_bounds_hold() {
    for peer in peers() {
        let is_token = |bytes: &[u8]| peer.bpe.count(bytes) == 1;
        let longest = (0..peer.bpe.num_tokens()).map(|rank| peer.bpe.token_len(rank as u32)).max();
        assert_eq!(longest, Some(LONGEST_TOKEN));
        assert!((0..=u8::MAX).all(|byte| is_token(&[byte])));
        assert!((1..=bounded::SPACES).all(|n| is_token(" ".repeat(n).as_bytes())));
        for digits in 0..1000 {
            let three = format!("{digits:03}");
            assert!((1..=3).all(|n| is_token(&three.as_bytes()[..n])), "{three}");
        }
        for pair in (0..=u8::MAX).flat_map(|left| (0..=u8::MAX).map(move |right| [left, right])) {
            assert!(!bounded::is_pair(pair[0], pair[1]) || is_token(&pair), "{pair:?}");
        }
    }
}

fn peer_count(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

/// If merging didn't reach a token, tiktoken would find it only where the token is a whole piece.
#[test]
fn merging_the_bytes_of_a_token_gives_the_token() {
    let (dictionary, peer) = (dictionary(), &bpe_openai::o200k_base().bpe);
    let all = 0..dictionary.len() as u32;
    let unreached = all.filter(|&rank| peer.count(dictionary.token(rank)) != 1).count();
    assert_eq!((dictionary.len(), unreached), (peer.num_tokens(), 0));
}

/// Tests long pieces, which are encoded in windows.
#[test]
fn long_pieces_are_counted_as_whole_ones() {
    let mut state = 7_u64;
    let mut letters = |alphabet: &[u8], len: usize| -> String {
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(alphabet[(state >> 33) as usize % alphabet.len()])
        };
        (0..len).map(|_| letter()).collect()
    };
    for alphabet in [&b"abcdefghijklmnopqrstuvwxyz"[..], b"etaoin", b"ab", b"a", b"-=*", b"-"] {
        for len in [90, 97, 4090, 4097, 12_345, 60_000] {
            let text = letters(alphabet, len);
            assert_eq!(count(&text), peer_count(&text), "{alphabet:?} {len}");
        }
    }
}

#[test]
fn bounds_are_of_use() {
    let text = "The store keeps every message of a conversation, and finds 1,024 of them again within a millisecond.";
    let bounds = bounded(text);
    assert_eq!((count(text), bounds.low, bounds.high), (23, 21, 67));
}

/// Text made of what pieces are made of, so that cuts, contractions and runs meet in every order.
fn hostile_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zA-Z]{1,8}",
        2 => "[ ]{1,90}",
        2 => "[ \t\r\n\u{b}\u{c}\u{1c}\u{85}\u{a0}\u{2028}\u{3000}/;'!]{1,4}",
        1 => "[0-9٣２½Ⅷ]{1,5}",
        1 => "(?i)'(s|t|re|ve|m|ll|d|ſ)[a-z]?",
        1 => "[a-zA-ZéßǅʰªΩ한語\u{301}\u{200d}]{1,4}",
        1 => "[\\PC]{0,3}",
        1 => any::<char>().prop_map(String::from),
        1 => ("[ -=*#./a\n]", 1..40usize).prop_map(|(text, n)| text.repeat(n)),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_interval_holds_the_count(text in hostile_text()) {
        let bounds = bounded(&text);
        for peer in peers() {
            let count = peer.count(text.as_str());
            prop_assert!(bounds.low <= count && count <= bounds.high, "{count} {bounds:?}");
        }
    }

    #[test]
    fn counts_are_those_of_the_peer(text in hostile_text()) {
        prop_assert_eq!(count(&text), peer_count(&text));
    }

    #[test]
    fn pieces_cover_the_text(text in hostile_text()) {
        prop_assert_eq!(pieces(&text).collect::<String>(), text.as_str());
    }

    #[test]
    fn texts_that_join_add_up(left in hostile_text(), right in hostile_text()) {
        for left in [format!("{left}\n"), left] {
            if joins_exactly(&left, &right) {
                let joined = format!("{left}{right}");
                prop_assert_eq!(count(&left) + count(&right), count(&joined));
            }
        }
    }

    #[test]
    fn a_limit_is_met_or_not(text in hostile_text(), limit in 0..60usize) {
        prop_assert_eq!(has_at_most(&text, limit), count(&text) <= limit);
    }

    #[test]
    fn the_longest_prefix_is_kept(text in hostile_text(), limit in 0..30usize) {
        let prefixes = || (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end)).map(|end| &text[..end]);
        let longest = prefixes().find(|prefix| count(prefix) <= limit);
        prop_assert_eq!(Some(truncate(&text, limit)), longest);
    }
}
