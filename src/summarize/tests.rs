//! Checks what summaries promise, with invented conversations.

use proptest::prelude::*;

use super::*;
use crate::tokens;

fn count(text: &str) -> usize {
    tokens::count(text)
}

fn sources<'a>(said: &[(&'a str, &'a str)]) -> Vec<Source<'a>> {
    let source = |(ordinal, (speaker, text)): (usize, &(&'a str, &'a str))| Source {
        ordinal: ordinal as i64,
        speaker,
        role: if ordinal % 2 == 0 { Role::User } else { Role::Assistant },
        time: 0,
        text,
    };
    said.iter().enumerate().map(source).collect()
}

const TALK: &[(&str, &str)] = &[
    ("Ana", "Hey Ben! Good to see you. How are you?"),
    ("Ben", "Great, thanks! The export to Parquet fails on Windows since release 0.9.2, is that known?"),
    (
        "Ana",
        "Wow, that's bad. It is the path separator: pyarrow gets `C:\\data` with a colon. I saw it in CI on Monday.",
    ),
    ("Ben", "Shall we escape it, or use URIs?"),
    (
        "Ana",
        "We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink().",
    ),
    ("Ben", "Sounds good! I will do it by Friday. One thing is open: who tests it on Windows ARM?"),
];

fn shown(level: Level, max_tokens: usize, focus: &str) -> String {
    let summary = extract(&sources(TALK), level, max_tokens, focus, &count);
    format!("{}\n{:?}", summary.text, summary.cited)
}

#[test]
fn a_talk_at_every_level() {
    insta::assert_snapshot!(shown(Level::Brief, 80, ""), @"
    Ana: We decided in March to use URIs everywhere because the S3 backend needs them. Ben: One thing is open: who tests it on Windows ARM?
    [4, 5]
    ");
    insta::assert_snapshot!(shown(Level::Standard, 60, ""), @"
    Ana: I saw it in CI on Monday. We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink(). Ben: I will do it by Friday. One thing is open: who tests it on Windows ARM?
    [2, 4, 5]
    ");
    insta::assert_snapshot!(shown(Level::Detailed, 110, ""), @r"
    Ben: The export to Parquet fails on Windows since release 0.9.2, is that known?
    Ana: It is the path separator: pyarrow gets `C:\data` with a colon. I saw it in CI on Monday. We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink().
    Ben: I will do it by Friday. One thing is open: who tests it on Windows ARM?
    [1, 2, 4, 5]
    ");
    insta::assert_snapshot!(shown(Level::Standard, 30, "testing on Windows"), @"
    Ben: I will do it by Friday. One thing is open: who tests it on Windows ARM?
    [5]
    ");
}

#[test]
fn greetings_give_way_and_the_open_question_stays() {
    let text = extract(&sources(TALK), Level::Detailed, 75, "", &count).text;
    assert!(!text.contains("Hey Ben") && !text.contains("Shall we escape"), "{text}");
    assert!(text.contains("who tests it on Windows ARM?"), "{text}");
}

#[test]
fn languages_without_spaces_are_summarised() {
    let said = [
        ("用户", "你好！我们的导出在Windows上失败了。版本是0.9.2。"),
        ("助手", "谢谢。原因是路径中的冒号。"),
        ("用户", "我们三月决定到处使用URI，因为S3需要它。周五之前完成。"),
    ];
    let text = extract(&sources(&said), Level::Standard, 28, "", &count).text;
    assert!(text.contains("决定到处使用URI") && !text.contains("你好"), "{text}");
}

#[test]
fn a_session_of_one_message_of_tool_output_or_of_nothing() {
    let one = extract(&sources(&[("Ana", "Only this.")]), Level::Standard, 100, "", &count);
    assert_eq!((one.text.as_str(), &one.cited[..]), ("Only this.", &[0][..]));
    let common = extract(&sources(&[("Ana", "How are you?")]), Level::Standard, 100, "", &count);
    assert_eq!(common.text, "How are you?");
    let output =
        "error[E0382]: borrow of moved value: `store`\n  --> src/main.rs:4:5\n   |\n4  |     store.len();\n";
    let tool = Source { ordinal: 7, speaker: "tool", role: Role::Tool, time: 0, text: output };
    let tool = extract(&[tool], Level::Brief, 60, "", &count);
    assert!(tool.text.contains("E0382") && tool.cited == [7], "{tool:?}");
    assert_eq!(extract(&[], Level::Detailed, 100, "", &count), Summary::default());
    assert_eq!(extract(&sources(&[("Ana", "?! …")]), Level::Detailed, 100, "", &count), Summary::default());
}

#[test]
fn sources_too_long_to_be_read_are_counted() {
    let long = "The cache of shard 17 is cold. ".repeat(170_000);
    let summary = extract(&sources(&[("Ana", &long), ("Ben", "Noted.")]), Level::Standard, 50, "", &count);
    assert_eq!(summary.unread, 1);
    assert!(summary.text.contains("shard 17"));
    let text: Vec<String> =
        (0..100_000).map(|n| format!("Message {n} speaks of item{} again and again.", n % 977)).collect();
    let many: Vec<(&str, &str)> = text.iter().map(|text| ("Ana", text.as_str())).collect();
    let summary = extract(&sources(&many), Level::Detailed, 300, "", &count);
    assert!(count(&summary.text) <= 300 && summary.cited.len() > 5);
}

#[test]
fn quality_rejects_empty_off_topic_and_invented_summaries() {
    let sources = sources(TALK);
    let good = "Export to Parquet fails on Windows since 0.9.2 because pyarrow gets a colon in C:\\data (seen in CI on \
        Monday). They decided in March to use URIs, which S3 needs, so open_sink() converts; Ben does it by Friday. Open: \
        who tests Windows ARM.";
    let made_up = "Export to Avro fails on Solaris since 4.7.1 because Hadoop gets a colon, said Greg. They decided in \
        June to use FTP; Greg does it by Sunday.";
    let vague = "They talk about a problem with an export and decide how to fix it.";
    let off_topic =
        "The committee praised the new museum garden and its roses, and the mayor opened the summer fair.";
    let score = |text: &str| quality(text, &sources, 80);
    assert!(score(good) > 0.8, "{}", score(good));
    let extracted = extract(&sources, Level::Standard, 80, "", &count).text;
    assert!(score(&extracted) > 0.8, "{} {extracted}", score(&extracted));
    for bad in [made_up, vague, off_topic, "", "  \n", "🙂", "I can't help with that."] {
        assert!(score(bad) < 0.5 && score(bad).is_sign_positive(), "{} {bad}", score(bad));
    }
    assert!(score(good) > score(vague) && score(vague) >= score(off_topic));
}

#[test]
fn topics_have_names_and_ordinals() {
    let names: Vec<String> = topics(&sources(TALK), 3)
        .into_iter()
        .map(|topic| format!("{} {:?}", topic.name, topic.ordinals))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @"
    Windows [1, 5]
    URIs [3, 4]
    open [4, 5]
    ");
}

/// Returns a conversation of many messages that alternate between two topics.
fn long_talk() -> Vec<(String, String)> {
    let said = |n: usize| match n % 4 {
        0 => format!("The export to Parquet loses column {n} when the schema has {} fields.", n * 3),
        1 => format!(
            "I saw Parquet fail in build {} of the nightly run, after the upgrade to Arrow {n}.",
            n + 400
        ),
        2 => format!("Helsinki wants the invoices of month {n} in Finnish, and pays {} euros.", n * 110),
        _ => format!(
            "The invoices for Helsinki go out on day {n}, Mira says; tax number {} is missing.",
            n * 7
        ),
    };
    (0..60).map(|n| (if n % 2 == 0 { "Ana" } else { "Ben" }.to_owned(), said(n))).collect()
}

#[test]
fn a_long_talk_in_detail_goes_by_topic_and_in_time_within_each() {
    let talk = long_talk();
    let talk: Vec<(&str, &str)> =
        talk.iter().map(|(speaker, text)| (speaker.as_str(), text.as_str())).collect();
    let sources = sources(&talk);
    let summary = extract(&sources, Level::Detailed, 1000, "", &count);
    assert!(count(&summary.text) <= 1000, "{}", summary.text);
    let groups: Vec<&str> = summary.text.split("\n\n").collect();
    assert!((2..=TOPICS_AND_REST).contains(&groups.len()), "{}", summary.text);
    let named: Vec<String> = topics(&sources, 6).into_iter().map(|topic| topic.name).collect();
    let mut shown = Vec::new();
    for group in &groups {
        let (head, lines) = group.split_once(":\n").unwrap_or_else(|| panic!("no head: {group}"));
        assert!(named.iter().any(|name| name == head) || head == "…", "{head} of {named:?}");
        let place = |sentence: &str| talk.iter().position(|(_, text)| text.contains(sentence)).unwrap();
        let lines = lines.replace("Ana: ", "\n").replace("Ben: ", "\n").replace(". ", ".\n");
        let places: Vec<usize> =
            lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(place).collect();
        assert!(places.is_sorted(), "{places:?} in {group}");
        shown.extend(places.iter().map(|place| *place as i64));
    }
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(summary.cited, shown);
    // The summary has sentences of both topics.
    assert!(summary.text.contains("Parquet") && summary.text.contains("Helsinki"), "{}", summary.text);
    let standard = extract(&sources, Level::Standard, 400, "", &count);
    assert!(!standard.text.contains('\n'), "{}", standard.text);
    for (sources, max_tokens) in [(&sources[..20], 1000), (&sources[..], 400)] {
        let short = extract(sources, Level::Detailed, max_tokens, "", &count);
        assert!(!short.text.contains("\n\n"), "{}", short.text);
    }
}

/// The maximum number of groups that a summary has.
const TOPICS_AND_REST: usize = 5;

/// Returns `text`, in which a single space replaces each run of white space.
fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_long_summary_by_topic_keeps_its_budget_and_its_sources(
        said in prop::collection::vec(("[AB]?", "(alpha|Beta|[A-Za-z]{1,6}|[ .?]|[0-9]|決|。| ){0,40}"), 40..70),
        max_tokens in 0_usize..2000,
    ) {
        let said: Vec<(&str, &str)> = said.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let sources = sources(&said);
        let summary = extract(&sources, Level::Detailed, max_tokens, "", &count);
        prop_assert!(count(&summary.text) <= max_tokens);
        prop_assert_eq!(&summary, &extract(&sources, Level::Detailed, max_tokens, "", &count));
        prop_assert!(summary.cited.is_sorted());
        let cited: String = summary.cited.iter().map(|place| in_a_line(said[*place as usize].1) + "\n").collect();
        for word in summary.text.split_whitespace() {
            prop_assert!(cited.contains(word) || word.ends_with(':'), "{} in {}", word, cited);
        }
    }
}

proptest! {
    #[test]
    fn a_summary_keeps_its_budget_and_its_sources(
        said in prop::collection::vec(("[ABC]?", "([A-Za-z]{1,9}|[ .!?\n]|[0-9]|決|。|\\[|\\]|```|é|👩|ไทย){0,60}"), 0..20),
        max_tokens in 0_usize..120,
        level in prop::sample::select(Level::ALL.to_vec()),
        focus in "[a-z]{0,4}",
    ) {
        let said: Vec<(&str, &str)> = said.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let sources = sources(&said);
        let summary = extract(&sources, level, max_tokens, &focus, &count);
        prop_assert!(count(&summary.text) <= max_tokens);
        prop_assert_eq!(&summary, &extract(&sources, level, max_tokens, &focus, &count));
        prop_assert!(summary.cited.is_sorted() && summary.cited.iter().all(|each| (0..said.len() as i64).contains(each)));
        prop_assert_eq!(summary.text.is_empty(), summary.cited.is_empty());
        let cited: String = summary.cited.iter().map(|place| in_a_line(said[*place as usize].1) + "\n").collect();
        // Every word occurs in a source, except the speakers' names, which end with a colon.
        for word in summary.text.split_whitespace() {
            prop_assert!(cited.contains(word) || word.ends_with(':'), "{} in {}", word, cited);
        }
        let score = quality(&summary.text, &sources, max_tokens);
        prop_assert!((0.0..=1.0).contains(&score));
    }
}
