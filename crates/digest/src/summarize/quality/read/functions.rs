//! Finds the classes of English words. Function words are found in lists. Other words are classified by their form.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::tokens::{Kind, Token};

/// The classes of function words, each with its letter and its words.
const LISTS: [(char, &str); 12] = [
    (
        'D',
        "the a an this these those my your his its our their some any each every both all another no several many few",
    ),
    (
        'P',
        "of in on at by with from for about into over after before during between through against without within \
         among around across towards toward upon under above below near along despite via like off per regarding \
         including amid throughout beyond besides since until",
    ),
    ('T', "to"),
    ('C', "and or but nor"),
    (
        'S',
        "because if when while which who whose whom where how why what as than though although whether so that unless \
         once",
    ),
    (
        'N',
        "i he she they we you it one everyone someone something nothing everything nobody anyone himself herself \
         themselves itself myself yourself ourselves yourselves",
    ),
    ('O', "him them me us her"),
    (
        'B',
        "is are was were be been being am has have had having do does did isn't aren't wasn't weren't hasn't haven't \
         hadn't don't doesn't didn't there's it's he's she's they're they've we're we've i'm i've you're you've",
    ),
    (
        'M',
        "can could will would should may might must shall cannot can't couldn't won't wouldn't shouldn't i'll you'll \
         he'll she'll they'll we'll i'd he'd she'd they'd we'd you'd let's",
    ),
    (
        'A',
        "not also very really just too always never still then now more most already soon even only again ever often \
         together almost quite rather well yet instead however later",
    ),
    ('H', "there here none"),
    ('Q', "out up down back away"),
];

static CLASSES: LazyLock<HashMap<&'static str, char>> = LazyLock::new(|| {
    let pairs = |(letter, words): &(char, &'static str)| {
        let letter = *letter;
        words.split_whitespace().map(move |word| (word, letter)).collect::<Vec<_>>()
    };
    LISTS.iter().flat_map(pairs).collect()
});

/// Returns the class of a token. `is_first` says whether the token begins a sentence.
pub(in crate::summarize::quality) fn class(token: &Token<'_>, is_first: bool) -> char {
    if token.kind == Kind::Number {
        return 'U';
    }
    let lower = token.lower.as_str();
    if let Some(letter) = CLASSES.get(lower) {
        return *letter;
    }
    if token.is_capital() && !is_first {
        return 'K';
    }
    let ends = |ending: &str, least: usize| lower.len() > least && lower.ends_with(ending);
    match () {
        () if ends("ed", 4) => 'E',
        () if ends("ing", 4) => 'G',
        () if ends("ly", 4) => 'L',
        () if ends("s", 3) && !lower.ends_with("ss") => 'Z',
        () => 'W',
    }
}

/// Returns whether a word, in lower case, is an English function word.
pub(in crate::summarize::quality) fn is_function(lower: &str) -> bool {
    CLASSES.contains_key(lower)
}
