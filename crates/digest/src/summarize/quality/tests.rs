//! Checks true and false summaries of invented conversations.

use super::{Verdict, cite, judge};
use crate::summarize::Source;
use tiro_base::memory::Role;

const TALK: &[(&str, &str)] = &[
    ("Ana", "Hey Ben! Good to see you. How are you?"),
    ("Ben", "Great, thanks! The export to Parquet fails on Windows since release 0.9.2, is that known?"),
    (
        "Ana",
        "Wow, that's bad. It is the path separator: pyarrow gets `C:\\data` with a colon. I saw it in CI on Monday.",
    ),
    ("Ben", "Shall we escape it, or use URIs? I don't want to escape every path by hand."),
    (
        "Ana",
        "We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink().",
    ),
    ("Ben", "Sounds good! I will do it by Friday. One thing is open: who tests it on Windows ARM?"),
    ("Ana", "Mira can test it on her laptop, she has three of them. I can't before the release on 14 May."),
    ("Ben", "Perfect. I'll write to Mira and close the ticket once she is done."),
];

/// 2026-05-04, a Monday, at 10:20.
const TIME: i64 = 1_777_890_000_000;

fn talk() -> Vec<Source<'static>> {
    let source = |(ordinal, (speaker, text)): (i64, &(&'static str, &'static str))| Source {
        ordinal,
        speaker,
        role: Role::User,
        time: TIME + ordinal * 60_000,
        text,
        corrected: &[],
    };
    (0..).zip(TALK).map(source).collect()
}

const TRUE: &str = "Ben reported that the export to Parquet fails on Windows since 0.9.2. Ana found that pyarrow gets a \
    colon in the path, which she saw in CI on Monday. They decided to use URIs, as the S3 backend needs them, and Ben \
    converts paths in open_sink() by Friday. Mira tests it on Windows ARM, since Ana can't before the release.";

fn on(text: &str) -> Verdict {
    judge(text, &talk())
}

#[test]
fn true_summaries_of_any_length_are_accepted() {
    for text in [
        TRUE,
        "The export to Parquet fails on Windows, so Ben converts paths to URIs by Friday.",
        "- Ben: the Parquet export fails on Windows since release 0.9.2.\n- Decision: URIs everywhere.\n- Mira tests \
         on Windows ARM",
        "On 4 May 2026, Ana and Ben discussed why the export to Parquet fails on Windows. Mira has 3 laptops, and tests it.",
    ] {
        let verdict = on(text);
        assert!(verdict.accepts() && verdict.fault.is_empty(), "{verdict:?} {text}");
        assert!(!verdict.is_partial);
    }
}

#[test]
fn false_summaries_are_refused_with_the_reason() {
    let with = |from: &str, to: &str| {
        assert!(TRUE.contains(from), "{from}");
        TRUE.replace(from, to)
    };
    let exchanged = TRUE.replace("Ana", "\u{1}").replace("Ben", "Ana").replace('\u{1}', "Ben");
    let cases = [
        (String::new(), "says nothing"),
        ("🙂".into(), "says nothing"),
        (with("Mira", "Greg"), "has a name"),
        (with("0.9.2", "0.9.3"), "has a number"),
        (with("Monday", "Sunday"), "has a number or a date"),
        (with("They decided to use", "They did not decide to use"), "negates"),
        (exchanged, "says of one speaker"),
        (TRUE[..TRUE.len() / 2].to_owned(), "ends within a sentence"),
        (
            "Windows the on fails that export Ben to since reported Parquet. Path the a colon pyarrow Ana in found that \
             gets, CI saw Monday she which in on."
                .into(),
            "is not in sentences",
        ),
        ("Parquet, Windows, release, pyarrow, colon, Monday, URIs, backend, Friday, Mira.".into(), "is"),
        (TALK[4].1.into(), "is a copy"),
        (
            "The committee praised the new museum garden and its roses, and the mayor opened the summer fair.".into(),
            "has a sentence",
        ),
        ("I can't help with that.".into(), "says"),
    ];
    for (text, fault) in cases {
        let verdict = on(&text);
        assert!(!verdict.accepts() && verdict.fault.starts_with(fault), "{fault}: {verdict:?} {text}");
        assert!((0.0..0.8).contains(&verdict.quality) && verdict.quality.is_sign_positive());
    }
}

#[test]
fn names_numbers_and_dates_are_read_in_any_usual_form() {
    let text = "It costs twenty five euros, 10,000 of them at twelve point five; that was 2 weeks ago, and Caroline went to \
        Oslo yesterday.";
    let sources = [Source { ordinal: 0, speaker: "Ana", role: Role::User, time: TIME, text, corrected: &[] }];
    let of = |summary: &str| judge(summary, &sources);
    for summary in [
        "It costs 25 euros, and 10000 of them cost 12.5 euros.",
        "Caroline's trip to Oslo was on May 3, and it costs 25 euros.",
        "It was on 20 April that it cost twenty-five euros in Oslo.",
    ] {
        assert!(of(summary).accepts(), "{:?} {summary}", of(summary));
    }
    for summary in [
        "It costs 26 euros, and 10000 of them cost 12.5 euros.",
        "Caroline's trip to Oslo was on May 5, and it costs 25 euros.",
    ] {
        assert!(of(summary).fault.starts_with("has a number or a date"), "{:?} {summary}", of(summary));
    }
}

#[test]
fn a_summary_in_another_language_is_checked_by_names_and_numbers() {
    let german = "Ben meldet, dass der Export nach Parquet unter Windows seit 0.9.2 fehlschlägt. Ana und Ben verwenden \
        künftig URIs, und Mira prüft das auf Windows ARM.";
    let verdict = on(german);
    assert!(verdict.accepts() && verdict.is_partial, "{verdict:?}");
    assert_eq!(
        on(&german.replace("0.9.2", "0.9.4")).fault,
        "has a number or a date that the messages don't have"
    );
    let nothing = "Der Ausschuss lobte den neuen Garten des Museums und seine vielen schönen Rosen.";
    assert!(on(nothing).fault.starts_with("is in another language"), "{:?}", on(nothing));
}

#[test]
fn summaries_of_german_messages_are_checked_in_german() {
    let said = [
        (
            "Ute",
            "Der Export nach Parquet schlägt unter Windows fehl, seit wir Version 0.9.2 ausgeliefert haben.",
        ),
        (
            "Jan",
            "Das liegt am Doppelpunkt im Pfad. Wir haben im März beschlossen, überall URIs zu verwenden.",
        ),
        ("Ute", "Gut, dann wandle ich die Pfade bis Freitag um. Wer prüft das auf dem neuen Server?"),
    ];
    let source = |(ordinal, (speaker, text)): (i64, &(&'static str, &'static str))| Source {
        ordinal,
        speaker,
        role: Role::User,
        time: 0,
        text,
        corrected: &[],
    };
    let sources: Vec<Source<'_>> = (0..).zip(&said).map(source).collect();
    let good = "Der Export nach Parquet schlägt unter Windows fehl, seit Version 0.9.2 ausgeliefert wurde. Sie haben im \
        März beschlossen, überall URIs zu verwenden, und Ute wandelt die Pfade bis Freitag um.";
    let verdict = judge(good, &sources);
    assert!(verdict.accepts() && !verdict.is_partial, "{verdict:?}");
    for bad in [good.replace("0.9.2", "0.9.5"), {
        let mut words: Vec<&str> = good.trim_end_matches('.').split(' ').collect();
        words.sort_by_key(|word| word.chars().rev().collect::<String>());
        words.join(" ") + "."
    }] {
        assert!(!judge(&bad, &sources).accepts(), "{:?} {bad}", judge(&bad, &sources));
    }
}

#[test]
fn a_summary_that_leaves_out_the_older_value_is_accepted() {
    let said = [
        "The budget for the kitchen is 5,000 euros, and the tiles come from Porto.",
        "We changed our mind: the budget for the kitchen is 7,500 euros now.",
    ];
    let source = |(ordinal, text): (i64, &&'static str)| Source {
        ordinal,
        speaker: "user",
        role: Role::User,
        time: 0,
        text,
        corrected: &[],
    };
    let sources: Vec<Source<'_>> = (0..).zip(&said).map(source).collect();
    let verdict = judge("The budget for the kitchen is 7,500 euros, with tiles from Porto.", &sources);
    assert!(verdict.accepts(), "{verdict:?}");
}

#[test]
fn sentences_cite_the_messages_that_support_them() {
    assert_eq!(cite("The export to Parquet fails on Windows. Mira has three laptops.", &talk()), [1, 6]);
}

#[test]
fn of_long_conversations_the_passages_with_the_words_of_the_summary_are_read() {
    let filler: Vec<String> = (0..10_000)
        .map(|n| format!("Shard {n} of the cache is cold again, and nobody knows why it is so."))
        .collect();
    let mut sources: Vec<Source<'_>> = (0..)
        .zip(&filler)
        .map(|(ordinal, text)| Source {
            ordinal,
            speaker: "Ben",
            role: Role::User,
            time: 0,
            text,
            corrected: &[],
        })
        .collect();
    let last = "We decided on SQLite 3.50 because Postgres needs a server that nobody wants to keep.";
    sources.push(Source {
        ordinal: 10_000,
        speaker: "Ana",
        role: Role::User,
        time: 0,
        text: last,
        corrected: &[],
    });
    let summary = "Ana decided on SQLite 3.50, since Postgres needs a server.";
    assert_eq!(cite(summary, &sources), [10_000]);
    let verdict = judge(summary, &sources);
    assert!(verdict.accepts(), "{verdict:?}");
}
