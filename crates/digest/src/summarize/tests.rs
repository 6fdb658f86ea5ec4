//! Checks what summaries promise, with invented conversations.

use proptest::prelude::*;

use super::*;
use tiro_text::tokens;

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
        corrected: &[],
    };
    said.iter().enumerate().map(source).collect()
}

/// The beginning of a summary of sources that can't be quoted.
const NOTHING: &str = "No sentence to quote";

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
    Ana: We decided in March to use URIs everywhere because the S3 backend needs them.
    Ben: One thing is open: who tests it on Windows ARM?
    [4, 5]
    ");
    insta::assert_snapshot!(shown(Level::Standard, 60, ""), @"
    Ana: I saw it in CI on Monday. We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink().
    Ben: I will do it by Friday. One thing is open: who tests it on Windows ARM?
    [2, 4, 5]
    ");
    insta::assert_snapshot!(shown(Level::Detailed, 110, ""), @r"
    #1 Ben: The export to Parquet fails on Windows since release 0.9.2, is that known?
    #2 Ana: It is the path separator: pyarrow gets C:\data with a colon. I saw it in CI on Monday.
    #4 Ana: We decided in March to use URIs everywhere because the S3 backend needs them. So let's convert in open_sink().
    #5 Ben: I will do it by Friday. One thing is open: who tests it on Windows ARM?
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
    let output = "cargo: check\nerror[E0382]: borrow of moved value: `store`\n  --> src/main.rs:4:5\n   |\n4  |     store.len();\n";
    let tool =
        Source { ordinal: 7, speaker: "cargo", role: Role::Tool, time: 0, text: output, corrected: &[] };
    let tool = extract(&[tool], Level::Brief, 60, "", &count);
    assert_eq!(
        (tool.text.as_str(), &tool.cited[..]),
        ("No sentence to quote: 1 tool call (cargo 1).", &[7][..])
    );
    assert_eq!(extract(&[], Level::Detailed, 100, "", &count), Summary::default());
    assert_eq!(extract(&sources(&[("Ana", "?! …")]), Level::Detailed, 100, "", &count), Summary::default());
}

/// A user's work with an agent: who speaks, and the text.
const WORK: &[(Role, &str)] = &[
    (Role::User, "add a `tasks` command with `list` and `get`. it should read process/tasks.md by default"),
    (
        Role::Assistant,
        "I'll look at the project first.\n\n### Structure\n\n| file |\n|---|\n| cli.ts |\n\nLet's start:",
    ),
    (Role::Tool, "Edit: src/commands/tasks.ts: + list\nok"),
    (
        Role::Assistant,
        "Great! The `tasks` command now lists and gets tasks.\n\n- Added `src/commands/tasks.ts`\n- Added a parser for \
         tasks.md\n\nWould you like me to add tests for the parser?",
    ),
    (Role::User, "yes"),
    (Role::Tool, "Bash: git commit -m \"tasks: parser\"\nok:\n[main 1a2b3c4] tasks: parser"),
    (Role::Assistant, "Done. All 12 tests of the parser pass."),
    (Role::User, "<system-reminder>Use the todo tool.</system-reminder>"),
    (
        Role::User,
        "❯ bun run . tasks list\nTasks:\n- #123: Task Title [TODO]\n\nthat is an example and shouldn't be listed. skip \
         code blocks from now on",
    ),
    (
        Role::Assistant,
        "Dear [Your Name], the parser now skips code blocks. It no longer lists example tasks.",
    ),
    (Role::User, "who updates the changelog?"),
];

fn work(said: &'static [(Role, &'static str)]) -> Vec<Source<'static>> {
    let source = |(ordinal, (role, text)): (usize, &(Role, &'static str))| Source {
        ordinal: ordinal as i64,
        speaker: role.as_str(),
        role: *role,
        time: 1_714_000_000_000 + ordinal as i64 * 3_600_000 * 8,
        text,
        corrected: &[],
    };
    said.iter().enumerate().map(source).collect()
}

#[test]
fn work_with_an_agent_at_every_level() {
    let shown = |level, max_tokens| {
        let summary = extract(&work(WORK), level, max_tokens, "", &count);
        format!("{}\n{:?}", summary.text, summary.cited)
    };
    insta::assert_snapshot!(shown(Level::Brief, 60), @"
    user: add a tasks command with list and get.
    Last, user: who updates the changelog?
    [0, 10]
    ");
    insta::assert_snapshot!(shown(Level::Standard, 200), @"
    #0 user: add a tasks command with list and get. it should read process/tasks.md by default.
      → #3: Added src/commands/tasks.ts. Added a parser for tasks.md.
    #3 assistant, and the user agreed: Would you like me to add tests for the parser?
      → #6: All 12 tests of the parser pass.
    #8 user: that is an example and shouldn't be listed. skip code blocks from now on.
    #10 user: who updates the changelog?
    [0, 3, 6, 8, 10]
    ");
    insta::assert_snapshot!(shown(Level::Detailed, 300), @"
    2024-04-24
    #0 user: add a tasks command with list and get. it should read process/tasks.md by default.
      → #3: Added src/commands/tasks.ts. Added a parser for tasks.md. [edited tasks.ts]
    2024-04-25
    #3 assistant, and the user agreed: Would you like me to add tests for the parser?
      → #6: All 12 tests of the parser pass. [commit 1a2b3c4]
    2024-04-27
    #8 user: that is an example and shouldn't be listed. skip code blocks from now on.
    2024-04-28
    #10 user: who updates the changelog?
    [0, 3, 6, 8, 10]
    ");
    for max_tokens in 0..300 {
        for level in Level::ALL {
            let summary = extract(&work(WORK), *level, max_tokens, "", &count);
            assert!(count(&summary.text) <= max_tokens && summary.cited.is_sorted());
            for hidden in
                ["todo tool", "Your Name", "cli.ts", "Structure", "example\u{20}task [TODO]", "Let's start"]
            {
                assert!(!summary.text.contains(hidden), "{hidden} in {}", summary.text);
            }
        }
    }
}

#[test]
fn what_the_assistant_takes_back_is_left_out_of_a_short_talk() {
    let said = [
        (Role::User, "The import is slow, why?"),
        (Role::Assistant, "The root cause is the connection pool, which has only one connection."),
        (Role::User, "Are you sure? The pool has 20 connections."),
        (
            Role::Assistant,
            "That was not it: the pool is fine. The time is spent in DNS lookups, 900 ms each.",
        ),
    ];
    let sources: Vec<Source<'_>> = (0..)
        .zip(said)
        .map(|(ordinal, (role, text))| Source { ordinal, speaker: "", role, time: 0, text, corrected: &[] })
        .collect();
    let summary = extract(&sources, Level::Standard, 60, "", &|text| text.split_whitespace().count()).text;
    assert!(summary.contains("DNS lookups") && !summary.contains("root cause"), "{summary}");
}

#[test]
fn a_corrected_sentence_is_marked_and_gives_way() {
    let said = [
        ("user", "The limit of the API is 40 requests."),
        ("user", "The limit of the API is now 60 requests."),
    ];
    let corrected = [Corrected { range: 0..36, by: 1 }];
    let mut sources = sources(&said);
    sources[0].corrected = &corrected;
    let shown = |most| extract(&sources, Level::Standard, most, "", &count).text;
    assert_eq!(shown(14), "The limit of the API is now 60 requests.");
    assert_eq!(
        shown(60),
        "The limit of the API is 40 requests. [corrected in #1] The limit of the API is now 60 requests."
    );
}

#[test]
fn a_title_is_what_the_user_asked_for() {
    let titled = |text: &str| {
        title(&[Source { ordinal: 0, speaker: "user", role: Role::User, time: 0, text, corrected: &[] }])
    };
    for (text, expected) in [
        ("add a `tasks` command with `list` and `get`", "Add a tasks command with list and get"),
        ("I'm trying to plan my release, can you help me?", "Plan my release, can you help me"),
        ("Hi! Please go ahead and fix the flaky test in src/cache.rs.", "Fix the flaky test in src/cache.rs"),
        ("useState breaks after the upgrade", "useState breaks after the upgrade"),
        (
            "look at @src/api/ and @src/api/README.md then make a plan for tokens that protect the endpoints",
            "Make a plan for tokens that protect the endpoints",
        ),
        ("@src @tests\n\nwhat tasks are open? start with the oldest", "What tasks are open"),
        (
            "ok. in src and docs we have a basic editor for ferries. Now we want to implement updates from several \
            authors.",
            "Implement updates from several authors",
        ),
        ("I have an old crane in src/crane.rs. It creaks.", "I have an old crane in src/crane.rs"),
        (
            "❯ press run --jar 008\nError: no jar\n\nwhy does the press refuse a jar",
            "Why does the press refuse a jar",
        ),
        ("我们决定到处使用URI，因为S3需要它。", "我们决定到处使用URI，因为S3需要它。"),
        ("<system-reminder>x</system-reminder>", ""),
        ("", ""),
    ] {
        assert_eq!(titled(text), expected);
    }
    let long = titled(&format!("rename {} everywhere", "the very long name of it ".repeat(9)));
    assert!(long.chars().count() <= 73 && long.ends_with('…'), "{long}");
}

#[test]
fn a_title_passes_over_what_many_sessions_begin_with() {
    let titled = |said: &[(Role, &'static str)]| title(&talk_of(said));
    let done = (Role::Assistant, "Done.");
    for (said, expected) in [
        (
            &[(Role::User, "what is next?"), done, (Role::User, "Make the harbour report print its totals")]
                [..],
            "Make the harbour report print its totals",
        ),
        (
            &[
                (Role::User, "continue working on task 17"),
                done,
                (Role::User, "why are the ferry tests skipped?"),
            ],
            "Continue working on task 17; Why are the ferry tests skipped",
        ),
        (
            &[(Role::User, "fix it"), (Role::Assistant, "The ledger now rounds amounts in `round_half.rs`.")],
            "Fix it; The ledger now rounds amounts in round_half.rs",
        ),
        (
            &[(
                Role::User,
                "I get this error:\n```\nCannot find the name of the harbour\n```\nhow can I resolve this?",
            )],
            "I get this error: Cannot find the name of the harbour",
        ),
        (
            &[(Role::User, "Proofread this letter:\n\nDear Ana,\n\nwe moved all ferries to Kafka.")],
            "Proofread this letter",
        ),
    ] {
        assert_eq!(titled(said), expected);
    }
}

/// Returns messages of a user, an agent and its tools.
fn talk_of(said: &[(Role, &'static str)]) -> Vec<Source<'static>> {
    let source = |(ordinal, (role, text)): (usize, &(Role, &'static str))| Source {
        ordinal: ordinal as i64,
        speaker: "",
        role: *role,
        time: 0,
        text,
        corrected: &[],
    };
    said.iter().enumerate().map(source).collect()
}

/// Returns the summary of a user's work with an agent who calls tools.
fn told(said: &[(Role, &'static str)]) -> String {
    extract(&talk_of(said), Level::Detailed, 400, "", &count).text
}

#[test]
fn only_the_last_answer_before_the_next_request_concludes() {
    let call = (Role::Tool, "Bash: cargo test\nok");
    let asked = (Role::User, "Make the ferry import of harbour 7 faster.");
    let end = (Role::User, "Thanks, then write the changelog of release 3.");
    for (answers, next, shown, hidden) in [
        // A guess in the middle of the work.
        (
            &[
                (Role::Assistant, "The index of table 7 is broken."),
                call,
                (Role::Assistant, "Table 7 has its index."),
            ][..],
            end,
            "Table 7 has its index",
            "is broken",
        ),
        // A claim that the user rejects.
        (
            &[call, (Role::Assistant, "The import of harbour 7 takes 2 seconds.")],
            (Role::User, "no, it still takes a minute"),
            "faster",
            "2 seconds",
        ),
        // A claim that the assistant takes back.
        (
            &[
                call,
                (Role::Assistant, "The import of harbour 7 takes 2 seconds."),
                (Role::User, "Show me the log of harbour 7."),
                (Role::Assistant, "I was wrong: the log of harbour 7 ends at minute 1."),
            ],
            end,
            "I was wrong",
            "2 seconds",
        ),
        // An intention, an instruction, a guess, an exclamation and praise.
        (
            &[
                call,
                (
                    Role::Assistant,
                    "I'll look at table 7. Run `make 7`. Table 7 may be slow. Table 7 works perfectly! The \
             import of table 7 is robust. Table 7 has two columns.",
                ),
            ],
            end,
            "Table 7 has two columns",
            "slow",
        ),
        // A thought that the client exports as an answer, and an answer that was interrupted.
        (
            &[call, (Role::Assistant, "The user wants table 7 to be fast. Table 7 has two columns.")],
            end,
            "Table 7 has two columns",
            "The user wants",
        ),
        (
            &[call, (Role::Assistant, "Table 7 has two columns. Let me look at table 8.")],
            end,
            "faster",
            "columns",
        ),
        // A step after which the assistant called a tool.
        (&[(Role::Assistant, "Table 7 has two columns."), call], end, "faster", "columns"),
    ] {
        let said: Vec<(Role, &'static str)> = [asked].iter().chain(answers).chain([&next]).copied().collect();
        let text = told(&said);
        assert!(text.contains(shown) && !text.contains(hidden), "{text}");
        for never in ["I'll look", "Run make", "perfectly", "robust"] {
            assert!(!text.contains(never), "{text}");
        }
    }
}

#[test]
fn a_claim_of_an_effect_needs_something_that_bears_it_out() {
    let asked = (Role::User, "The ferry import of harbour 7 loses rows, repair it.");
    let edit = (Role::Tool, "Edit: src/ferry.rs\nok");
    let claims = (Role::Assistant, "Fixed the lost rows of harbour 7.");
    let next = (Role::User, "Write the changelog of release 3.");
    for (between, is_shown) in [
        (&[edit, claims, next][..], false),
        (&[edit, claims], false),
        (&[edit, claims, (Role::User, "Great, that works. Write the changelog of release 3.")], true),
        (&[edit, (Role::Tool, "Bash: cargo test\nok:\n12 passed; 0 failed"), claims, next], true),
        (&[(Role::Tool, "Bash: cargo test\nok:\n12 passed; 0 failed"), edit, claims, next], false),
        (&[edit, (Role::Tool, "Read: docs/log.md\nok:\n12 passed; 0 failed"), claims, next], false),
        (&[edit, (Role::Tool, "Bash: cargo test\nok:\n11 passed; 1 failed"), claims, next], false),
        (&[edit, (Role::Tool, "Bash: git commit -m x\nok:\n[main 1a2b3c4] x"), claims, next], true),
    ] {
        let said: Vec<(Role, &'static str)> = [asked].iter().chain(between).copied().collect();
        let text = told(&said);
        assert_eq!(text.contains("Fixed the lost rows"), is_shown, "{text}");
        assert!(text.contains("loses rows"), "{text}");
    }
}

#[test]
fn a_claim_that_is_not_english_needs_something_that_bears_it_out() {
    let said = |end: &'static [(Role, &'static str)]| {
        let talk = [
            (Role::User, "Покажи паромы гавани 7 в таблице отчёта."),
            (Role::Tool, "Edit: src/ferry.rs\nok"),
            (Role::Assistant, "Таблица паромов гавани 7 теперь полностью работает в отчёте src/ferry.rs."),
        ];
        told(&[&talk[..], end].concat())
    };
    let text = said(&[]);
    assert!(text.contains("Покажи паромы") && !text.contains("полностью работает"), "{text}");
    assert!(said(&[(Role::User, "Great, that works.")]).contains("полностью работает"));
}

#[test]
fn an_account_leaves_out_what_was_undone_and_what_says_nothing() {
    let edit = (Role::Tool, "Edit: src/ferry.rs\nok");
    let text = told(&[
        (Role::User, "Show the ferries of harbour 7 in a table."),
        edit,
        (
            Role::Assistant,
            "- Added a prototypes folder for harbour 7\n- Added to the model of 7 harbours\n- Added a table of 40 ferries",
        ),
        (Role::User, "please proceed"),
        edit,
        (Role::Assistant, "Added the timetable of harbour 7."),
        (Role::User, "delete the prototypes folder if nothing of harbour 7 needs it"),
        edit,
        (Role::Assistant, "Removed 3 files of harbour 7."),
    ]);
    assert!(!text.contains("Added a prototypes folder") && !text.contains("please proceed"), "{text}");
    assert!(text.contains("Added a table of 40 ferries") && !text.contains("Added to the"), "{text}");
    assert!(text.contains("\n#5 assistant: Added the timetable"), "{text}");
}

#[test]
fn a_request_with_a_log_names_its_error() {
    let log = "please see the log of the deployment\n\n```\n[20:31:05] Cloning ferry\n[20:31:09] Error: Command \"npm \
               run build\" exited with 1\n```";
    let text = told(&[(Role::User, log), (Role::Tool, "Read: a.json\nok"), (Role::Assistant, "I see.")]);
    assert_eq!(
        text,
        "#0 user: please see the log of the deployment: Error: Command \"npm run build\" exited with 1."
    );
}

#[test]
fn the_title_of_a_client_gives_way_if_it_is_not_about_the_requests() {
    let said = talk_of(&[
        (Role::User, "@notes.md let's pick up where we left off"),
        (Role::Tool, "Edit: src/ferry.rs\nok"),
        (Role::Assistant, "Done."),
        (Role::User, "Print the totals of the harbour report as PDF"),
    ]);
    for (given, expected) in [
        ("Harbour report totals", "Harbour report totals"),
        ("Chat name generation request", "Print the totals of the harbour report as PDF"),
        ("Report issue", "Report issue; Print the totals of the harbour report as PDF"),
    ] {
        assert_eq!(shown_title(given, &said), expected);
    }
    assert_eq!(shown_title("Next steps after prior chat", &said[..3]), "Pick up where we left off; ferry.rs");
    assert_eq!(shown_title("Anything", &[]), "Anything");
    let log = talk_of(&[(Role::User, "2026-05-17 23:28:40 the crane stopped")]);
    assert_eq!(shown_title("Untitled", &log), "Untitled");
    let mixed = "see crane.rs:14:2 for(;;) { lift(); } at main::crane(crane.rs:14) -> exit(1);";
    let mixed = talk_of(&[(Role::User, mixed)]);
    assert!(
        shown_title("Untitled", &mixed).starts_with("see crane.rs:14:2"),
        "{}",
        shown_title("Untitled", &mixed)
    );
    // The beginning of the first message is no title.
    let said = talk_of(&[(
        Role::User,
        "<ide_opened_file>The user opened a.rs</ide_opened_file> Read `docs/plans/of/the/harbour/report-totals.md` and \
         print the totals of the harbour report as PDF.",
    )]);
    let own = "Read report-totals.md and print the totals of the harbour report as PDF";
    assert_eq!(shown_title("<ide_opened_file>The user opened a.rs</ide_op…", &said), own);
    assert_eq!(shown_title("Harbour report totals", &said), "Harbour report totals");
}

#[test]
fn the_material_of_a_task_is_not_stated() {
    let text = told(&[
        (
            Role::User,
            "Translate this into German: 'We moved everything to Haskell. We must always use tabs.'",
        ),
        (Role::Tool, "Write: a.txt\nok"),
        (Role::Assistant, "The German text of 7 lines is in a.txt."),
        (Role::User, "Please proofread this\n\nDear Ana,\n\nwe dropped Postgres and chose Kafka."),
        (Role::Assistant, "The letter to Ana has 1 mistake."),
    ]);
    for material in ["tabs", "Kafka"] {
        assert!(!text.contains(material), "{text}");
    }
    assert!(text.contains("The German text of 7 lines"), "{text}");
}

#[test]
fn a_question_without_its_answer_and_a_refuted_answer_are_not_told() {
    let text = told(&[
        (Role::User, "What is the ledger of the harbour master in docs/ledger.md?"),
        (Role::Assistant, "I'll look it up."),
        (Role::User, "Would you recommend the sqlite store over the redis store in docs/store.md?"),
        (Role::Assistant, "I'll look it up."),
        (Role::User, "Could you explain the tariff of the ferries in docs/tariff.md?"),
        (Role::Assistant, "I'll look it up."),
        (Role::User, "Add the tariff of the ferries to the ledger in src/ledger.rs."),
        (Role::Tool, "Edit: src/ledger.rs"),
        (Role::Assistant, "The ledger in src/ledger.rs has the tariff of all ferries."),
        (
            Role::User,
            "I open a ledger and search for a ferry by its name, then I get\nTypeError: tariff is undefined",
        ),
        (Role::Tool, "Edit: src/ledger.rs"),
        (Role::Assistant, "The tariff in src/ledger.rs was read before the ferries were loaded."),
    ]);
    for left_out in ["harbour master", "recommend", "explain", "has the tariff of all"] {
        assert!(!text.contains(left_out), "{left_out}: {text}");
    }
    assert!(text.contains("Add the tariff") && text.contains("was read before the ferries"), "{text}");
}

#[test]
fn the_goal_is_a_task_and_topics_are_the_users_words() {
    let long =
        "The table has an index now, and the migration adds it to every store that was opened before. "
            .repeat(8);
    let talk: Vec<(Role, &str)> = vec![
        (Role::User, "read README.md and docs/plan.md"),
        (Role::Assistant, &long),
        (Role::User, "Add an index on the date column of the ledger so that exports are fast."),
        (Role::Tool, "Edit: src/ledger.rs"),
        (Role::Assistant, "Added the index on the date column of the ledger. Exports read the index now."),
        (Role::User, "update docs/plan.md"),
        (Role::Assistant, "Updated the plan. The migration is described there."),
        (Role::User, "Does the export of the ledger need a test?"),
        (Role::Assistant, "The export of the ledger now has a test."),
    ];
    let sources: Vec<Source<'_>> = talk
        .iter()
        .zip(0..)
        .map(|((role, text), ordinal)| {
            let (role, speaker) = (*role, role.as_str());
            Source { ordinal, speaker, role, time: 0, text, corrected: &[] }
        })
        .collect();
    let brief = extract(&sources, Level::Brief, 90, "", &count).text;
    assert!(brief.starts_with("user: Add an index on the date column"), "{brief}");
    let named: Vec<String> = topics(&sources, 6).into_iter().map(|topic| topic.name).collect();
    assert!(named.iter().any(|name| name == "ledger"), "{named:?}");
    for other in ["migration", "table", "store", "Add", "update"] {
        assert!(!named.iter().any(|name| name == other), "{named:?}");
    }
}

#[test]
fn odd_conversations_have_a_sound_summary_or_none() {
    let list: String = (0..2000).map(|n| format!("- item number {n} of the list\n")).collect();
    let code = format!("```rust\n{}```", "let a = 1;\n".repeat(400));
    let corrections: Vec<String> = (0..200).map(|n| format!("The limit is {n} requests now.")).collect();
    let corrected: Vec<(&str, &str)> = corrections.iter().map(|text| ("Ana", text.as_str())).collect();
    for (name, sources) in [
        ("a list", sources(&[("Ana", list.as_str())])),
        ("code", sources(&[("Ana", code.as_str()), ("Ben", code.as_str())])),
        ("corrections", sources(&corrected)),
        (
            "one name",
            sources(&[("Alex", "I will paint the barn red."), ("Alex", "No, you painted it blue in May.")]),
        ),
    ] {
        for level in Level::ALL {
            let summary = extract(&sources, *level, 200, "", &count);
            assert!(count(&summary.text) <= 200 && !summary.text.is_empty(), "{name}");
            assert!(!summary.text.contains("let a"), "{name}: {}", summary.text);
        }
    }
    assert_eq!(
        extract(&sources(&[("Ana", code.as_str())]), Level::Brief, 50, "", &count).text,
        "No sentence to quote: 1 message with 1 block of code."
    );
}

#[test]
fn the_end_of_a_long_message_begins_with_a_whole_sentence() {
    for separator in ["\n\n", " "] {
        let long = ["The failing machines of shard nine are to be replaced on Monday."; 1500].join(separator);
        let summary = extract(&sources(&[("Ana", &long)]), Level::Standard, 200, "", &count);
        for sentence in summary.text.split_inclusive('.') {
            assert!(sentence.trim().starts_with("The failing machines"), "{}", summary.text);
        }
    }
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
    let score = |text: &str| quality(text, &sources);
    assert!(score(good) > 0.8, "{}", score(good));
    let extracted = extract(&sources, Level::Standard, 80, "", &count).text;
    assert!(score(&extracted) > 0.8, "{} {extracted}", score(&extracted));
    for bad in [made_up, off_topic, "", "  \n", "🙂", "I can't help with that."] {
        assert!(score(bad) < 0.5 && score(bad).is_sign_positive(), "{} {bad}", score(bad));
    }
    assert!(score(good) > score(vague) && score(vague) > score(off_topic));
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
        let place = |line: &str| {
            let (number, said) = line.strip_prefix('#').unwrap().split_once(' ').unwrap();
            let place: usize = number.parse().unwrap();
            assert_eq!(said, format!("{}: {}", talk[place].0, talk[place].1));
            place
        };
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
    // Each line has one speaker, and there are no headings.
    assert!(!standard.text.contains("\n\n"), "{}", standard.text);
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
        let cited = cited.replace('`', "");
        for word in summary.text.split_whitespace().filter(|_| !summary.text.starts_with(NOTHING)) {
            let is_frame = word.ends_with(':') || word.starts_with('#');
            prop_assert!(cited.contains(word.replace('`', "").trim_end_matches('.')) || is_frame, "{} in {}", word, cited);
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
        // Markdown takes the spaces at both ends of code away, so words are compared without spaces.
        let cited = cited.replace(['`', ' '], "");
        // Every word occurs in a source, except the speakers' names, which end with a colon, and the messages' numbers.
        for word in summary.text.split_whitespace().filter(|_| !summary.text.starts_with(NOTHING)) {
            let is_frame = word.ends_with(':') || word.starts_with('#');
            prop_assert!(cited.contains(word.replace('`', "").trim_end_matches('.')) || is_frame, "{} in {}", word, cited);
        }
        let score = quality(&summary.text, &sources);
        prop_assert!((0.0..=1.0).contains(&score));
    }
}
