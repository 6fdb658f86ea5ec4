//! Tests how messages are divided into blocks and sentences.

use proptest::prelude::*;

use super::*;

fn read(message: &str) -> Vec<(Kind, String)> {
    blocks(message).into_iter().map(|block| (block.kind, block.text)).collect()
}

/// Returns the sentences of the prose and the items.
fn said(message: &str) -> Vec<Sentence> {
    blocks(message).iter().filter(|block| block.is_said()).flat_map(sentences).collect()
}

fn texts(message: &str) -> Vec<String> {
    said(message).into_iter().map(|sentence| sentence.text).collect()
}

#[test]
fn a_message_has_blocks_of_every_kind() {
    let message = "### Plan\n\nUse **SQLite** and `rusqlite`, see [the docs](https://x.y).\n\n1. First `a_b`\n   - Nested \
        item\n2. Second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n```rs\nlet a = 1;\n```\n[bash: ls -l]\n**Step 2:**\n\
        Then `__init__` and __init__ stay.";
    use Kind::*;
    let expected = [
        (Heading, "Plan"),
        (Prose, "Use SQLite and rusqlite, see the docs."),
        (Item, "First a_b"),
        (Item, "Nested item"),
        (Item, "Second"),
        (Table, "a | b"),
        (Table, "1 | 2"),
        (Quotation, "quoted"),
        (Code, "let a = 1;"),
        (Tool, "[bash: ls -l]"),
        (Heading, "Step 2:"),
        (Prose, "Then __init__ and __init__ stay."),
    ];
    let expected: Vec<(Kind, String)> = expected.map(|(kind, text)| (kind, text.to_owned())).to_vec();
    assert_eq!(read(message), expected);
}

#[test]
fn text_of_a_client_is_not_of_the_user() {
    for (message, expected) in [
        ("Why <T>?<system-reminder>\nHIDDEN</system-reminder> Tell me.", &["Why <T>?", "Tell me."][..]),
        ("<task-notification>\n<task-id>1</task-id>\n</task-notification>", &[]),
        (
            "This session is being continued from a previous conversation that ran out of context.\nWe chose it.",
            &[],
        ),
        (
            "Look.\n\n<details>\n<summary>Listed directory src</summary>\n\n| a |\n|---|\n\n</details>\n\nFine.",
            &["Look.", "Fine."],
        ),
        (
            "why is it empty?\n\n❯ bun run . tasks list\nNo tasks found.\n\nit should list two",
            &["why is it empty?", "it should list two"],
        ),
        ("<details>\n東東</details>After it.", &["After it."]),
        ("● Read(src/main.rs)\n  ⎿ 40 lines\nIt compiles.", &["It compiles."]),
        (
            "Clean up the warnings.\napi:lint: \napi:lint: ./a.tsx\napi:lint: 88:6  Warning: Either include it or remove it.",
            &["Clean up the warnings."],
        ),
        (
            "It breaks the build.\nsrc/a.ts:32:7 - error TS2740: The type lacks these properties and 40 more.\n\nLook.",
            &["It breaks the build.", "Look."],
        ),
        (
            "It fails.\nFailed to update the machine, which is not allowed.\nFailed to update the machine, which is not allowed.",
            &["It fails."],
        ),
        (
            "It fails to build.\nnpm error path /srv/app\nnpm error workspace api@0.1.0.",
            &["It fails to build."],
        ),
        ("We meet at 10:30 today. It is late.", &["We meet at 10:30 today.", "It is late."]),
        ("Tool use: **Bash** Make the directories\n\nThe tool was refused.", &[]),
        ("**Agent task list:**\n- [X] Make the directories\n- [ ] Describe them", &[]),
    ] {
        let found: Vec<String> = texts(message);
        assert_eq!(found, expected, "{message}");
    }
    assert!(
        is_added("<system-reminder>x</system-reminder>\n")
            && !is_added("a <system-reminder>x")
            && !is_added(" ")
    );
    assert!(has_calls("[shell: Bash]\nDone.") && !has_calls("[laughs] Done."));
    assert_eq!(without_added("a <system-reminder>x</system-reminder>b"), "a b");
}

#[test]
fn sentences_in_many_languages() {
    for (text, expected) in [
        ("fix it, e.g. twice. then commit it", &["fix it, e.g. twice.", "then commit it"][..]),
        ("One. Two!  Three?\nFour", &["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith paid 3.50 e.g. in cash. Fine.", &["Dr. Smith paid 3.50 e.g. in cash.", "Fine."]),
        ("1. Install it.\n2. Run it.", &["Install it.", "Run it."]),
        ("He said \"Stop!\" Then left.", &["He said \"Stop!\"", "Then left."]),
        ("What?! Really...", &["What?!", "Really..."]),
        (
            "Look at docs.$.tsx and docs.[page].tsx. Then go on.",
            &["Look at docs.$.tsx and docs.[page].tsx.", "Then go on."],
        ),
        ("See v1.2.3 of foo.rs. It works.", &["See v1.2.3 of foo.rs.", "It works."]),
        ("今日は雨です。明日は？「晴れ。」", &["今日は雨です。", "明日は？", "「晴れ。」"]),
        ("我们决定用SQLite。原因是简单！", &["我们决定用SQLite。", "原因是简单！"]),
        ("वह आया। वह गया।", &["वह आया।", "वह गया।"]),
        ("هل أنت هنا؟ نعم.", &["هل أنت هنا؟", "نعم."]),
        ("오늘은 비가 온다. 내일은?", &["오늘은 비가 온다.", "내일은?"]),
        ("Look! [shares image: a red barn] Nice.", &["Look!", "[shares image: a red barn]", "Nice."]),
        ("- first item\n- second item", &["first item", "second item"]),
        (
            "A line that was wrapped by its author at seventy columns or so\ngoes on. End.",
            &["A line that was wrapped by its author at seventy columns or so goes on.", "End."],
        ),
        (
            "A long line that ends without a full stop and goes on for a while\né = f(1);\nEnd.",
            &["A long line that ends without a full stop and goes on for a while", "End."],
        ),
        ("Run:\n```\nlet a = 1;\n\nb()\n```\nDone.", &["Run:", "Done."]),
        ("", &[]),
        ("?! ... \n\n", &[]),
    ] {
        assert_eq!(texts(text), expected, "{text:?}");
    }
    let thai = "วันนี้เราตัดสินใจใช้ฐานข้อมูลใหม่สำหรับโครงการ พรุ่งนี้จะเริ่มย้ายข้อมูลทั้งหมด";
    assert_eq!(texts(thai).len(), 2);
}

/// The end of the joined text used to be read again for each part.
#[test]
fn a_name_of_many_parts_takes_no_longer_than_its_length() {
    assert!(!said(&"docs.$.".repeat(100_000)).is_empty());
}

#[test]
fn only_whole_sentences_can_be_quoted() {
    for text in
        ["We use Redis.", "make it take a repo path", "Shall we?", "我们决定用它。", "Run it (twice)."]
    {
        assert!(said(text).iter().all(Sentence::is_whole), "{text}");
    }
    for text in [
        "Dear [Your Name], we met.",
        "Set it to <your-key> first.",
        "Name: ____ of it",
        "It is as follows:",
        "and so on...",
        "he said \"and then",
        "see (the first",
        "[a photo of a dog]",
        "Yes",
    ] {
        assert!(!said(text).iter().any(Sentence::is_whole), "{:?}", said(text));
    }
}

#[test]
fn code_and_output_are_told_from_prose() {
    for line in [
        "    let x = f(1);",
        "| a | b |",
        "at Object.run (/a/b.js:3:4)",
        "81 |     const taskRegex = 1",
        "SyntaxError: unmatched parentheses",
        "2024-03-01T10:00:00Z started",
        "$ cargo test",
        "mira@host:~/src$ ls",
        "import os.path as p;",
        "result.WriteString(fmt.Sprintf(\"x\", line))",
        "pkg/providers/tools.go:97:4: QF1012: Use fmt.Fprintf(...) instead of WriteString (staticcheck)",
        "[cloud] specstory-sync:dev: 11:56:19 AM [vite] re-optimizing dependencies",
        "/usr/bin/tar xz --warning=no-unknown-keyword --overwrite -C /home/runner/work",
        "persist-credentials: true\nclean: true\nfetch-depth: 1",
        "@app.route(\"/a\") # the list of all",
        "@media (max-width: 600px) {",
    ] {
        assert_eq!(
            read(line).iter().filter(|(kind, _)| *kind != Kind::Code && *kind != Kind::Table).count(),
            0,
            "{line}"
        );
    }
    for line in [
        "from the start we wanted it",
        "let us go on",
        "if it fails, tell me",
        "return to it later: it matters",
        "@src/routes/docs.tsx:93 factor this out (and the rest)",
        "@src/a.ts @src/b.ts:12-20 are = to each other",
    ] {
        assert_eq!(read(line), [(Kind::Prose, line.to_owned())]);
    }
}

#[test]
fn boilerplate_says_nothing_of_its_own() {
    for text in [
        "Certainly!",
        "Sure, here you go.",
        "I hope this helps!",
        "Let me know if it fails.",
        "Yes.",
        "Great, thanks!",
        "Implement the plan as specified, it is attached for your reference.",
        "To-do's from the plan have already been created.",
        "Mark them as in_progress as you work, starting with the first one.",
    ] {
        assert!(is_boilerplate(text), "{text}");
    }
    for text in [
        "Surely not.",
        "The tests pass now.",
        "No secret is stored in the log.",
        "Yes, and move it to Redis.",
    ] {
        assert!(!is_boilerplate(text), "{text}");
    }
}

#[test]
fn ranges_end_between_characters() {
    for message in
        ["[```qQGRKRv?é[```\n👩[``` \nfSAZfKwB4。[ไทยXZisWsFGj0決```", "a &amp; é. &eacute;b", "`é\nb` c."]
    {
        for sentence in blocks(message).iter().flat_map(sentences) {
            assert!(message.get(sentence.range.clone()).is_some(), "{message}: {:?}", sentence.range);
        }
    }
}

proptest! {
    #[test]
    fn blocks_and_sentences_lie_in_the_message(message in "([a-zA-Z .!?\n\\[\\]`*_#|>-]|<details>|</details>|東|。|ไทย|é|👩|&amp;){0,300}") {
        for block in blocks(&message) {
            prop_assert!(message.is_char_boundary(block.range.start) && message.is_char_boundary(block.range.end));
            for sentence in sentences(&block) {
                prop_assert!(message.get(sentence.range.clone()).is_some(), "{:?}", sentence.range);
                prop_assert!(sentence.range.start <= sentence.range.end && sentence.range.end <= message.len());
                prop_assert!(sentence.text.contains(char::is_alphanumeric) && !sentence.text.contains('\n'));
            }
        }
    }

    #[test]
    fn the_bytes_of_a_plain_sentence_are_its_text(words in proptest::collection::vec("[a-z]{2,8}", 2..9), marked in any::<bool>()) {
        let sentence = format!("X{}.", words.join(" "));
        let message = if marked { format!("# T\n\n- **a b.** {sentence}\n") } else { format!("é.\n\n{sentence}") };
        let found = said(&message);
        let last = found.last().unwrap();
        prop_assert_eq!(&message[last.range.clone()], last.text.as_str());
    }
}

/// The rest of a prompt that named a tag was lost.
#[test]
fn a_tag_that_a_person_writes_hides_nothing() {
    let prompt = "Put a <skill> element under <person>; then deploy to eu-west.";
    assert_eq!(texts(prompt), [prompt]);
    assert!(texts("<system-reminder>\nThe file changed. It has no end.").is_empty());
}

/// All took quadratic time: each tag and each stop read the text to its end, and each item all blocks before it. Fails
/// by taking many minutes.
#[test]
fn open_tags_long_runs_of_blanks_and_long_lists_take_linear_time() {
    is_added(&"<think>".repeat(150_000));
    for text in [
        "<details x>".repeat(90_000),
        format!("Done.{}x", " ".repeat(300_000)),
        format!(".{}", ")".repeat(300_000)),
        "- a\n".repeat(300_000),
    ] {
        blocks(&text).iter().for_each(|block| drop(sentences(block)));
    }
}

#[test]
fn results_of_tests_and_prompts_with_a_path_are_not_said() {
    let pasted = "Tasks:    0 successful, 3 total\n2026-05-17 23:28:40 Bootstrapping the ferries in default mode.\n\
        WARN[0000] the attribute of the ferries is obsolete, please remove it\n\
        ✓ parses a date [2.10ms]\n✗ reads a line [0.40ms]\nPASS all of it\n[02/20/26 17:41 dev ~/src/x] make check\n";
    assert!(texts(pasted).is_empty(), "{:?}", texts(pasted));
    assert!(said("I have allocated $[amount] for [details].").iter().all(|sentence| !sentence.is_whole()));
}

#[test]
fn a_pasted_document_begins_after_the_first_paragraph() {
    let plan = format!("# Plan\n\n{}", "- We store every ledger in Lisbon.\n".repeat(60));
    let message = format!("Look at this plan.\n\n{plan}");
    assert_eq!(pasted_from(&message).map(|from| message[..from].trim()), Some("Look at this plan."));
    assert_eq!(pasted_from(&plan), Some("# ".len()), "the text of the heading");
    assert_eq!(pasted_from(&"We store every ledger in Lisbon. ".repeat(60)), None);
    assert_eq!(pasted_from("# Plan\n\n- one\n- two\n- three\n- four"), None);
}
