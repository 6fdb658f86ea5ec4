use super::*;

fn said(ordinal: i64, role: Role, text: &str) -> Said<'_> {
    Said { ordinal, role: Some(role), speaker: None, text }
}

/// Returns the facts as lines: kind, ordinal and text.
fn lines(messages: &[(Role, &str)]) -> Vec<String> {
    let messages: Vec<Said<'_>> =
        messages.iter().zip(0..).map(|((role, text), ordinal)| said(ordinal, *role, text)).collect();
    facts(&messages).iter().map(|fact| format!("{} {}: {}", fact.kind, fact.ordinal, fact.text)).collect()
}

#[test]
fn a_person_states_facts_rules_and_choices() {
    let told = "Hello there! I moved the ledger to Lisbon last week. Every invoice must have a tax number. How are you?";
    assert_eq!(
        lines(&[(Role::User, told)]),
        [
            "fact 0: I moved the ledger to Lisbon last week.",
            "decision 0: Every invoice must have a tax number."
        ]
    );
    assert_eq!(lines(&[(Role::User, "We decided to keep SQLite for the index.")]).len(), 1);
}

#[test]
fn requests_questions_and_courtesies_state_nothing() {
    let nothing = [
        "run the tests again",
        "Can you move the ledger to Lisbon by Friday?",
        "please commit the 3 files in src/ledger and push them",
        "Thanks, that looks great to me!",
        "fix the bug in src/main.rs that we saw yesterday",
        "I wonder what you think of it.",
        "ok",
    ];
    for text in nothing {
        assert_eq!(lines(&[(Role::User, text)]), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn only_whole_sentences_of_prose_and_list_items_are_taken() {
    let text = "# We must always use port 8080\n\n| we decided | port 8080 in 2024 |\n|---|---|\n\n> We must never use port 8081.\n\n\
        ```\nwe must never use port = 8082;\n```\n\nDear [Your Name], we must always meet on [Date] at noon.\n\n\
        <system-reminder>We must never use port 8083 again.</system-reminder>\n\n- Every service must log to stderr.";
    assert_eq!(lines(&[(Role::User, text)]), ["decision 0: Every service must log to stderr."]);
}

#[test]
fn what_an_assistant_proposed_counts_once_it_is_accepted() {
    let proposal = "I recommend using `fallocate` for the ledger file, since it never fragments.";
    let talk = |reply| lines(&[(Role::User, "how?"), (Role::Assistant, proposal), (Role::User, reply)]);
    assert_eq!(talk("yes, go ahead").len(), 0, "it speaks of itself");
    let proposal = "We should use `fallocate` for the ledger file, since it never fragments.";
    let talk = |reply| lines(&[(Role::User, "how?"), (Role::Assistant, proposal), (Role::User, reply)]);
    assert_eq!(talk("yes, go ahead"), [format!("decision 1: {}", proposal.replace('`', ""))]);
    assert!(talk("no, keep it simple").is_empty() && talk("what else is there?").is_empty());
    // Without a reply it is not judged yet.
    assert!(lines(&[(Role::User, "how?"), (Role::Assistant, proposal)]).is_empty());
}

#[test]
fn what_an_assistant_did_counts_unless_it_is_rejected() {
    let done = "The `ledger close` command now writes a backup before it rotates the file.";
    let talk = |reply| {
        lines(&[
            (Role::User, "make it safe"),
            (Role::Tool, "Edit src/ledger.rs"),
            (Role::Assistant, done),
            (Role::User, reply),
        ])
    };
    assert_eq!(talk("commit it"), [format!("fact 2: {}", done.replace('`', ""))]);
    assert!(talk("that doesn't work").is_empty() && talk("still broken").is_empty());
    let only_told = lines(&[(Role::User, "why?"), (Role::Assistant, done), (Role::User, "commit it")]);
    assert!(only_told.is_empty(), "no work was done: {only_told:?}");
}

#[test]
fn a_decision_that_is_taken_back_is_named() {
    let messages = [
        said(0, Role::User, "We decided to use Postgres for the queue."),
        said(1, Role::Assistant, "I'll set it up."),
        said(2, Role::User, "Forget that, we stay with Redis."),
    ];
    let found = facts(&messages);
    assert_eq!(
        found.iter().map(|fact| (fact.ordinal, fact.takes_back)).collect::<Vec<_>>(),
        [(0, None), (2, Some(0))]
    );
    assert_eq!(found[1].text, "Forget that, we stay with Redis.");
}

#[test]
fn two_people_who_talk_are_two_persons() {
    let voice = |role, speaker| Said { ordinal: 0, role: Some(role), speaker, text: "" }.voice();
    assert_eq!(voice(Role::Assistant, Some("Ines Moreau")), Voice::Person("assistant ines moreau".into()));
    assert_ne!(voice(Role::User, Some("Ines")), voice(Role::Assistant, Some("Ines")));
    for name in [None, Some("assistant"), Some("Claude Opus"), Some("gpt-5")] {
        assert_eq!(voice(Role::Assistant, name), Voice::Assistant, "{name:?}");
    }
    assert_eq!(voice(Role::Tool, Some("Edit")), Voice::Other);
}

#[test]
fn odd_conversations_give_few_facts_or_none() {
    let list: String =
        (0..5000).map(|number| format!("- item {number} is always number {number}\n")).collect();
    assert!(lines(&[(Role::User, &list)]).len() <= OF_MESSAGE);
    let code = "fn main() {\n    let limit = 30; // we must never change it\n}\n".repeat(200);
    assert!(lines(&[(Role::User, &code)]).is_empty());
    let tools: Vec<(Role, &str)> =
        (0..200).map(|_| (Role::Tool, "Edit: we decided to use port 8080")).collect();
    assert!(lines(&tools).is_empty());
    let same: Vec<(Role, &str)> =
        (0..50).map(|_| (Role::User, "Every invoice must have a number.")).collect();
    assert_eq!(lines(&same).len(), 1);
    assert!(facts(&[said(0, Role::User, &"x ".repeat(2 << 20))]).is_empty());
}

/// A session in which an assistant works: `said`, then a tool call, then `answer`, then a reply.
fn work<'a>(said: &'a str, answer: &'a str) -> Vec<(Role, &'a str)> {
    vec![
        (Role::User, said),
        (Role::Tool, "Edit src/ledger.rs"),
        (Role::Assistant, answer),
        (Role::User, "commit it"),
    ]
}

#[test]
fn where_an_assistant_works_a_person_states_what_lasts() {
    let lasting = [
        "We don't need multi-user accounts or anything like that.",
        "I already have a fly.io account and flyctl is installed on the server.",
        "Any invoice that's only in Lisbon must get its own tax number.",
        "The ledger in `src/ledger.rs` must never be read by two processes.",
    ];
    for text in lasting {
        assert_eq!(lines(&work(text, "I see.")).len(), 1, "{text}");
    }
    let passing = [
        "I tried it with the ledger of Lisbon last week and it was empty.",
        "I saw no evidence of src/hook.rs running on my machine today.",
        "We weren't sure what we were gonna do w/ it in 2024.",
        "The first thing we need to look into is the schema of Lisbon in the cloud.",
        "It must function like what we described in docs/init.md, always.",
        "Maybe we should always switch to Postgres in Lisbon.",
        "should i always run the ledger with debug",
        "Failed to update: reading the ledger: must never be empty: code 4",
        "If that upload throws, the row must never say that we finished in Lisbon.",
    ];
    for text in passing {
        assert_eq!(lines(&work(text, "I see.")), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_a_person_pasted_is_not_their_statement() {
    let review = "Every service must log to **stderr** in Lisbon, since `stdout` is parsed.";
    let pasted = "Every service must log to stderr in Lisbon, since stdout is parsed.";
    let mut messages = work("review it", review);
    assert_eq!(lines(&messages).len(), 0, "not accepted");
    messages.push((Role::User, pasted));
    assert_eq!(lines(&messages).len(), 0);
    let plan = format!("# Plan\n\n{}", "We must never store a ledger in Lisbon. ".repeat(40));
    assert_eq!(lines(&work(&plan, "I see.")).len(), 0);
}

#[test]
fn a_report_counts_if_it_says_how_something_is_from_now_on() {
    let lasting = [
        "The `ledger close` command now writes a backup before it rotates the file.",
        "Fixed the ledger in `src/ledger.rs` by renaming `pipeline` to `tasks`, which version 2 requires.",
    ];
    for text in lasting {
        assert_eq!(lines(&work("make it safe", text)).len(), 1, "{text}");
    }
    let of_moment = [
        "Updated the README of the ledger to describe what `src/ledger.rs` does now.",
        "Done — `src/ledger.rs` now has the three fields that the ledger asks for.",
        "Removed option B from D7, so `src/ledger.rs` now states the way it is read.",
        "All three calls in `src/ledger.rs` are now fixed in the same way as before.",
        "The dialog of `src/ledger.rs` should now handle long names without covering it.",
        "My stand-in for `src/ledger.rs` now stalls at the end because it speaks no gRPC.",
    ];
    for text in of_moment {
        assert_eq!(lines(&work("make it safe", text)), Vec::<String>::new(), "{text}");
    }
}
