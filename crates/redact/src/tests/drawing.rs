//! Draws random strings from the patterns of the table, as examples of secrets.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Draws `count` strings that match `pattern`; the same strings in each run.
pub(super) fn drawn(pattern: &str, count: usize) -> Vec<String> {
    let hir = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern);
    let hir = hir.expect("the patterns of the table are valid");
    let mut dice = 0x9E37_79B9_7F4A_7C15;
    (0..count)
        .map(|_| {
            let mut bytes = Vec::new();
            draw(&hir, &mut dice, &mut bytes);
            String::from_utf8(bytes).expect("the patterns of the table are of ASCII")
        })
        .collect()
}

/// Appends a random string that matches `hir`. The bytes of a class are equally likely, and an unbounded repetition
/// has a few times as many items as its minimum.
fn draw(hir: &Hir, dice: &mut u64, to: &mut Vec<u8>) {
    let mut below = |bound: usize| {
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        usize::try_from(*dice >> 33).expect("31 bits") % bound
    };
    match hir.kind() {
        HirKind::Literal(literal) => to.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            let bytes: Vec<u8> =
                class.ranges().iter().flat_map(|range| range.start()..=range.end()).collect();
            to.push(bytes[below(bytes.len())]);
        }
        HirKind::Repetition(repetition) => {
            let min = repetition.min as usize;
            let most = repetition.max.map_or(min + 8, |max| max as usize);
            let count = min + below(most - min + 1);
            (0..count).for_each(|_| draw(&repetition.sub, dice, to));
        }
        HirKind::Capture(capture) => draw(&capture.sub, dice, to),
        HirKind::Concat(parts) => parts.iter().for_each(|part| draw(part, dice, to)),
        HirKind::Alternation(choices) => {
            let choice = below(choices.len());
            draw(&choices[choice], dice, to);
        }
        kind => panic!("no pattern of the table has {kind:?}"),
    }
}

/// Draws one string of `length` bytes from the class of characters `class`.
pub(super) fn one(class: &str, length: usize) -> String {
    drawn(&format!("{class}{{{length}}}"), 1).remove(0)
}
