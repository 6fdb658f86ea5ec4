use tiro_base::memory::Role;

use super::*;

fn said(ordinal: i64, role: Role, text: &str) -> Said<'_> {
    Said { ordinal, role: Some(role), speaker: None, text }
}

/// Returns the facts of a conversation in which the user and an assistant take turns, beginning with the user.
fn talk(texts: &[&str]) -> Vec<Fact> {
    let role = |ordinal: i64| if ordinal % 2 == 0 { Role::User } else { Role::Assistant };
    let messages: Vec<Said<'_>> =
        texts.iter().zip(0..).map(|(text, ordinal)| said(ordinal, role(ordinal), text)).collect();
    facts(&messages)
}

/// Returns the texts of the facts in one message of a user.
fn texts(message: &str) -> Vec<String> {
    talk(&[message]).into_iter().map(|fact| fact.text).collect()
}

#[test]
fn standing_instructions_and_decisions_are_taken_whole() {
    let lasting = [
        "The deploy script must never run on Fridays.",
        "Every invoice must have a tax number.",
        "Please never commit directly to main.",
        "do not update seeds, never update seeds please.",
        "The export of the ledger should be a CSV file with a header.",
        "default mode should be casual and not polished",
        "there must be no direct print statements in the backend",
        "config for the agent should not be stored in the ledger",
        "when reading the ledger, always use `jq`, never grep",
        "From now on, answer in German.",
        "You must always use type hints in Python code.",
        "I'd like you to always run the formatter before committing.",
        "don't push without asking me first",
        "Tests must not use the network.",
        "there should be no duplication across rules",
        "I prefer small commits over large ones.",
        "never ask me questions like \"Shall I proceed with the next one?\"",
        "We decided to keep SQLite for the index.",
        "We've decided: the release is named after harbours.",
        "Decision: we keep the monolith.",
        "I've decided on three parts: auth, ledger and reports.",
        "We agreed that all API errors are returned as JSON.",
        "Let's go with SQLite for storage.",
        "use pnpm, not npm",
        "We use Postgres for the queue and Redis for the cache.",
        "we dont need backward compatibility",
        "i want the ledger entry to contain the name of the harbour.",
    ];
    for text in lasting {
        assert_eq!(texts(text), [text.replace('`', "")], "{text}");
    }
    let asked = "I prefer weekly releases over nightly ones, like every Monday, how can I plan them?";
    assert_eq!(texts(asked), ["I prefer weekly releases over nightly ones, like every Monday"]);
    let both = "Hello there! We decided to name the release after harbours. Is it ready? Never push without asking me.";
    assert_eq!(
        texts(both),
        ["We decided to name the release after harbours.", "Never push without asking me."]
    );
}

#[test]
fn requests_questions_guesses_and_remarks_state_nothing() {
    let nothing = [
        "run the tests again",
        "Never mind, the tests pass.",
        "Don't touch src/main.rs now, we're in the middle of the release.",
        "create a task to ensure that all changes, like adding a new one, always take place in the main folder",
        "let's use the other port for now",
        "let's keep going with the ledger",
        "lets keep work on more sophisticated ledgers.",
        "So the commands of the ledger don't work when we use the old harbour.",
        "Can you move the ledger to Lisbon by Friday?",
        "should i always run the ledger with debug",
        "What would change if we decided to drop Postgres?",
        "What if we decided to drop Postgres",
        "If we decided to drop Postgres, what would change?",
        "Tests must never use the network, is that right?",
        "Suppose we decided to use Rust for the parser.",
        "I wonder whether we should always pin versions in the lock file.",
        "Maybe we should always switch to Postgres in Lisbon.",
        "I chose the north harbour for the ledger, but I'm not sure if it was right.",
        "I'm looking for a must-read series about every harbour.",
        "I'm curious how long each session in Lisbon should be.",
        "We should also keep an eye on any mistakes in the ledger.",
        "We haven't decided on a database for the ledger.",
        "There must be a bug in the parser.",
        "the ledger must have been empty in the morning",
        "you always forget the changelog of the ledger",
        "The goal should be to finish the ledger on Friday.",
        "it looks like the ledger should be empty",
        "Those should be in the ledger.",
        "the border should be orange",
        "I don't see the light it must be too far behind",
        "Failed to update: reading the ledger: must never be empty: code 4",
        "ok",
    ];
    for text in nothing {
        assert_eq!(texts(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn sentences_that_need_their_conversation_are_left_out() {
    let dangling = [
        "It must never run on Fridays in Lisbon.",
        "This must always be a list of harbours.",
        "They must never call our API.",
        "We decided to use that for the ledger.",
        "We decided to keep the harbours above.",
        "I prefer the latter of the two.",
        "Yeah, let's go with those ledgers.",
        "always use it",
    ];
    for text in dangling {
        assert_eq!(texts(text), Vec::<String>::new(), "{text}");
    }
    let long = format!("We decided to keep {} harbours.", "many small ".repeat(20));
    assert!(texts(&long).is_empty());
    assert_eq!(texts("Every file in this project must have a header.").len(), 1);
}

#[test]
fn the_words_of_others_are_not_the_speakers() {
    let foreign = [
        "Translate this: 'We decided to rewrite everything in Haskell. We must always use tabs.'",
        "Translate this into German. We decided to rewrite everything in Haskell.",
        "Übersetze: „We decided to rewrite everything in Haskell. We must always use tabs.“",
        "Traduis : « We decided to rewrite everything. We must always use tabs. »",
        "翻訳して「We decided to rewrite everything. We must always use tabs.」",
        "Write a test whose message is \"we decided to ship on Fridays\".",
        "Make the button say “We never share data with others”.",
        "Proofread: We decided to move everything to AWS. Everyone must use the new console.",
        "Please fix the grammar of the following text.\n\nWe decided to moves everything to AWS.",
        "Write a post that begins with: We decided to ship on Fridays.",
        "Here is the README of another project, please shorten it:\n\n> We chose Kafka for all events.",
        "Here is the README of another project:\n\nWe chose Kafka for all events.\n\nUsers must never log in twice.",
        "See the README:\n```\nUsers must never call the internal API.\n```",
        "I got a mail.\n\nHi team,\n\nWe decided to move everything to AWS.\n\nBest,\nBob",
        "Subject: Plans\nFrom: bob@example.org\n\nWe decided to use Kafka for events.",
        "<system-reminder>We must never use port 8083 again.</system-reminder>",
        "# We must always use port 8080\n\n| we decided | port 8080 |\n|---|---|",
        "Bob said we must never use tabs in the ledger.",
        "In my last company we always used Jira for tickets.",
        "Bob's team decided to use Kafka for events.",
        "Dear [Your Name], we must always meet on [Date] at noon.",
    ];
    for text in foreign {
        assert_eq!(texts(text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(texts("Remember: users' data must never leave the harbour's ledger.").len(), 1, "apostrophes");
}

#[test]
fn what_a_person_pasted_is_not_their_statement() {
    let review = "Every service must log to **stderr** in Lisbon, since `stdout` is parsed.";
    let pasted = "Every service must log to stderr in Lisbon, since stdout is parsed.";
    assert!(talk(&["review it", review, pasted]).is_empty());
    let plan = format!("# Plan\n\n{}", "We must never store a ledger in Lisbon. ".repeat(40));
    assert!(texts(&plan).is_empty());
}

#[test]
fn a_proposal_counts_once_it_is_accepted() {
    let proposal = "We should use `fallocate` for the ledger file rather than a loop of writes.";
    assert_eq!(talk(&["how?", proposal, "yes, go ahead"])[0].text, proposal.replace('`', ""));
    for reply in
        ["no, keep it simple", "what else is there?", "Yes, but what does the other one cost in Lisbon?"]
    {
        assert!(talk(&["how?", proposal, reply]).is_empty(), "{reply}");
    }
    assert!(talk(&["how?", proposal]).is_empty(), "not answered yet");
    let two = format!("{proposal} We should keep a backup of the ledger.");
    assert!(talk(&["how?", &two, "yes"]).is_empty(), "which of the two?");
}

#[test]
fn an_assistants_report_or_guess_is_no_fact() {
    let told = [
        "I found the cause: the search endpoint is broken and returns empty results.",
        "The `ledger close` command now writes a backup before it rotates the file.",
        "We must never run the ledger in Lisbon.",
    ];
    for text in told {
        assert!(talk(&["look", text, "ok, commit it"]).is_empty(), "{text}");
    }
}

/// Returns for each fact its ordinal and the texts of the facts that it takes back.
fn fates(told: &[&str]) -> Vec<(i64, Vec<String>)> {
    let texts = |fact: Fact| fact.takes_back.into_iter().map(|taken| taken.text).collect();
    talk(told).into_iter().map(|fact| (fact.ordinal, texts(fact))).collect()
}

#[test]
fn a_fact_is_superseded_by_what_its_speaker_says_instead() {
    let changes = [
        (
            "The deploy script must never run on Fridays.",
            "Actually, scratch that: Fridays are fine, but the deploy script must never run on Mondays.",
        ),
        ("We decided to use Postgres for the queue.", "Forget that, we stay with Redis."),
        ("Always squash commits before merging.", "I changed my mind: never squash commits before merging."),
        ("We use tabs in all files.", "We don't use tabs in all files."),
        ("We decided to use Postgres for the queue.", "We decided to use Redis for the queue instead."),
        ("let's use the Bodoni font instead", "ok, I have no license, let's use the Garamond font instead"),
    ];
    for (old, new) in changes {
        assert_eq!(fates(&[old, "Noted.", new]), [(0, vec![]), (2, vec![old.to_owned()])], "{new}");
    }
    // Only what it names is taken back, and only what was said shortly before.
    let two = "We decided to use Postgres for the queue. The deploy script must never run on Fridays.";
    let back = "Scratch that, we use Redis for the queue.";
    assert_eq!(fates(&[two, "ok", back])[2].1, ["We decided to use Postgres for the queue."]);
    let late = ["Tests must not use the network.", "ok", "go", "ok", "go", "ok", "go", "ok", back];
    assert_eq!(fates(&late)[1].1, Vec::<String>::new());
    // Rules for several things stand beside each other.
    let beside = ["The script must never run on Fridays.", "ok", "The script must never run on Mondays."];
    assert_eq!(fates(&beside)[1].1, Vec::<String>::new());
}

#[test]
fn a_fact_that_is_taken_back_without_another_is_left_out() {
    assert!(talk(&["We decided to use Postgres for the queue.", "ok", "Scratch that."]).is_empty());
    let other = ["We decided to use Postgres for the queue.", "ok", "Don't forget that."];
    assert_eq!(talk(&other).len(), 1);
}

#[test]
fn two_people_who_talk_tell_of_themselves() {
    let voice = |role, speaker| Said { ordinal: 0, role: Some(role), speaker, text: "" }.voice();
    assert_eq!(voice(Role::Assistant, Some("Ines Moreau")), Voice::Person("assistant ines moreau".into()));
    assert_ne!(voice(Role::User, Some("Ines")), voice(Role::Assistant, Some("Ines")));
    for name in [None, Some("assistant"), Some("Claude Opus"), Some("gpt-5")] {
        assert_eq!(voice(Role::Assistant, name), Voice::Assistant, "{name:?}");
    }
    assert_eq!(voice(Role::Tool, Some("Edit")), Voice::Other);

    let between = |texts: &[&str]| -> Vec<String> {
        let speaker = |ordinal: i64| if ordinal % 2 == 0 { "Ines" } else { "Ada" };
        let told: Vec<Said<'_>> = texts
            .iter()
            .zip(0..)
            .map(|(text, ordinal)| Said {
                speaker: Some(speaker(ordinal)),
                ..said(ordinal, Role::User, text)
            })
            .collect();
        facts(&told).into_iter().map(|fact| fact.text).collect()
    };
    let told = [
        "I moved to Lisbon in May 2024.",
        "Let's keep exploring the town!",
        "You must be so proud of the boat.",
    ];
    assert_eq!(between(&told), [told[0]]);
    assert!(texts(told[0]).is_empty(), "an assistant needs rules and decisions");
}

#[test]
fn odd_conversations_give_few_facts_or_none() {
    let list: String =
        (0..5000).map(|number| format!("- harbour {number} must never be harbour {number}\n")).collect();
    assert!(texts(&list).len() <= OF_MESSAGE);
    let code = "fn main() {\n    let limit = 30; // we must never change it\n}\n".repeat(200);
    assert!(texts(&code).is_empty());
    let tools: Vec<Said<'_>> =
        (0..200).map(|ordinal| said(ordinal, Role::Tool, "We decided to use port 8080.")).collect();
    assert!(facts(&tools).is_empty());
    let same = ["Every invoice must have a number."; 51];
    assert_eq!(talk(&same).len(), 1);
    for odd in
        ["x ".repeat(2 << 20), "\"".repeat(1 << 16), "' a".repeat(1 << 16), "we decided: ".repeat(1 << 12)]
    {
        assert!(talk(&[&odd]).is_empty());
    }
}

#[test]
fn questions_and_their_answers_are_decisions() {
    let asked = "I need to clarify a few things:\n\n## Questions\n\n1. **Location**: Where should the switch be?\n   \
        - Only in the shop?\n   - Everywhere?\n\n2. **Conversion**: When an order changes its kind:\n   - Any restrictions?\n   \
        - Shall we track the history?\n\n3. **Permissions**: Should everybody be able to see service orders?\n\n4. Which \
        export should contain this?\n\nPlease answer!";
    let reply =
        "1. just in the shop\n2. never change paid orders, no history is needed\n3. yes\n4. the monthly one";
    let found: Vec<String> = pair(asked, reply);
    let expected = [
        "Location: Where should the switch be? – just in the shop",
        "Conversion: never change paid orders, no history is needed",
        "Permissions: Should everybody be able to see service orders? – yes",
    ];
    assert_eq!(
        found, expected,
        "a question with several questions in it needs an answer that says what it is about"
    );
    let asked = "How shall I build it?\n1. Where should prices be stored?\n2. Should a discount have a reason?\n3. Which tax applies?";
    assert!(!is_standing(
        "Permissions: Who may see them? – you should never show them (asked for: a list of orders)"
    ));
    let found = pair(asked, "1) in the order, as decimals\n2) yes please\n3) not sure, what do you think?");
    let expected = [
        "Where should prices be stored? – in the order, as decimals",
        "Should a discount have a reason? – yes please",
    ];
    assert_eq!(found, expected);

    // Offers, other numbers, a single item, and lists that are no answers.
    let offer = "Done. Would you like me to:\n1. Generate the migration?\n2. Show the schema?";
    assert!(pair(offer, "1. yes\n2. only the orders table").is_empty());
    assert!(pair(asked, "1. in the order\n5. and a report").is_empty());
    let cut = "1. in the metadata of the cards?\n2. Should the labels of the ledger be translated?\n3. Which sum comes first?";
    assert_eq!(
        pair(cut, "1. yes, include them as well\n2. yes\n3. keep the current one"),
        ["Should the labels of the ledger be translated? – yes"]
    );
    assert!(pair("I changed 3 files.", "1. the button is red\n2. the page is slow").is_empty());
    assert!(pair(asked, "Errors:\n1. a\n2. b\n\nWarnings:\n1. c").is_empty());
}

#[test]
fn a_chosen_option_is_a_decision() {
    let asked = "Which layout?\n\n### Option 1: Tabs by workflow\n- fast\n\n### Option 2: One page with a search\n\n**Option 3**: \
        Collapsible cards (large)\n\nI recommend option 3.";
    let chosen = "Chosen: One page with a search, not: Tabs by workflow; Collapsible cards";
    assert_eq!(pair(asked, "Let's go with option 2, please"), [chosen]);
    assert_eq!(pair(asked, "Option 2"), [chosen]);
    for other in
        ["Let's go with option 2. What would that look like?", "not option 2", "option 7", "why option 2"]
    {
        assert!(pair(asked, other).is_empty(), "{other}");
    }
    assert!(pair(asked, "Great, let's go with your recommendation.").is_empty());
}

#[test]
fn what_the_user_chose_in_a_dialog_is_a_decision() {
    let dialog = |name, text| Said { speaker: Some(name), ..said(1, Role::Tool, text) };
    let output = "AskUserQuestion: Which?\nok:\nUser has answered your questions: \"Which queue should the importer use?\"=\"Redis \
        Streams\", \"Should retries be kept?\"=\"Yes\". You can now continue with the user's answers in mind.";
    let found = |name| -> Vec<String> {
        facts(&[said(0, Role::User, "go"), dialog(name, output)]).into_iter().map(|fact| fact.text).collect()
    };
    let expected = ["Which queue should the importer use? – Redis Streams", "Should retries be kept? – Yes"];
    assert_eq!(found("AskUserQuestion"), expected);
    assert!(found("Bash").is_empty(), "a program may print anything");
    // A dialog is no second person, whatever the user's name is.
    let named = |ordinal, text| Said { speaker: Some("Ada"), ..said(ordinal, Role::User, text) };
    let talk =
        [named(0, "go"), dialog("AskUserQuestion", output), named(2, "Every invoice must have a number.")];
    assert_eq!(facts(&talk).len(), 3);
}

#[test]
fn an_approved_plan_is_a_decision() {
    let plan = "# Plan: Blue cranes\n\nAll cranes become blue, because blue is the cheapest.\n\n## Steps\n\n1. Paint.";
    let decision =
        "Approved plan: Blue cranes. All cranes become blue, because blue is the cheapest.".to_owned();
    let tool = |ordinal, name, text| Said { speaker: Some(name), ..said(ordinal, Role::Tool, text) };
    let texts =
        |said: &[Said<'_>]| -> Vec<String> { facts(said).into_iter().map(|fact| fact.text).collect() };
    let (asked, shown) = (said(0, Role::User, "paint the cranes"), said(1, Role::Assistant, plan));
    let approved =
        tool(2, "ExitPlanMode", "ExitPlanMode\nok:\nUser has approved your plan. You can now start.");
    assert_eq!(texts(&[asked, shown, approved]), std::slice::from_ref(&decision));
    let implement =
        said(3, Role::User, "Implement the plan as specified, it is attached for your reference.");
    assert_eq!(
        texts(&[asked, shown, tool(2, "create_plan", "create_plan"), implement]),
        std::slice::from_ref(&decision)
    );
    let proposed = format!("I looked.\n<proposed_plan>\n{plan}\n</proposed_plan>");
    let proposed = said(1, Role::Assistant, &proposed);
    let implement = said(2, Role::User, "Implement the plan.");
    assert_eq!(texts(&[asked, proposed, implement]), std::slice::from_ref(&decision));
    let following = format!("Implement the following plan:\n\n{plan}");
    assert_eq!(texts(&[said(0, Role::User, &following)]), [decision]);
    let list = "Implement the following plan:\n\n# Cranes\n\n## Summary\n\nThis is to:\n1. Paint `all` cranes\n2. Sell the old ones\n";
    assert_eq!(
        texts(&[said(0, Role::User, list)]),
        ["Approved plan: Cranes. This is to: Paint all cranes; Sell the old ones"]
    );
    let scoped =
        format!("{plan}\n\n**Out of scope:**\n- `old` cranes\n- The winch\n\n## Files\n\n- crane.rs");
    let expected = "Approved plan: Blue cranes. Out of scope: old cranes; The winch";
    assert_eq!(texts(&[asked, said(1, Role::Assistant, &scoped), approved])[1..], [expected]);
    let doubts = said(3, Role::User, "why blue?");
    let implement = said(4, Role::User, "Implement the plan.");
    assert!(texts(&[asked, proposed, doubts, implement]).is_empty(), "the plan may have been changed");
    let partly = said(3, Role::User, "Implement the plan but keep the red ones.");
    assert!(texts(&[asked, shown, tool(2, "create_plan", "create_plan"), partly]).is_empty());
    // A plan that was only shown, a plan that was refused, and an answer that is no plan.
    let refused = tool(2, "ExitPlanMode", "ExitPlanMode\nfailed:\nThe user doesn't want to proceed.");
    for said in [&[asked, shown, refused][..], &[asked, proposed], &[asked, shown, implement]] {
        assert!(texts(said).is_empty(), "{said:?}");
    }
}

#[test]
fn a_choice_comes_with_the_sentence_that_says_what_it_is_about() {
    let message =
        "There is a card with all ledgers. The tables should be visually separated from each other.";
    assert_eq!(texts(message), [message]);
    assert_eq!(
        texts("when the ledger is closed. the export should not be a CSV file"),
        ["when the ledger is closed. the export should not be a CSV file"]
    );
    let both = "My notes for the ledger page:\n\n- the date should be in the first column of 12\n- the sum should be in bold with 2 digits";
    assert_eq!(
        texts(both),
        [
            "My notes for the ledger page: the date should be in the first column of 12",
            "My notes for the ledger page: the sum should be in bold with 2 digits"
        ]
    );
    let points = "1. use the old syntax\n2. The sum should be in bold with 2 digits\n3. look at the page. The date should be in the \
        first column of 12";
    assert_eq!(
        texts(points),
        [
            "The sum should be in bold with 2 digits",
            "look at the page. The date should be in the first column of 12"
        ]
    );
    assert!(
        texts("which type has no order? the 1st and 3rd row should be mapped into the same id").is_empty()
    );
    let told = "Ada: \"we decided to drop the mill.\" The export of the ledger should be a CSV file.";
    assert!(texts(told).iter().all(|text| !text.contains("drop the mill")), "{:?}", texts(told));
    let rule = "never ask me \"Shall I go on?\" if the answer is obvious.";
    assert_eq!(texts(rule), [rule]);
    assert!(texts("i want the last three columns of the ledger also to be frozen").is_empty());
    assert!(texts("The last column should also be frozen, like the first one of 12.").is_empty());
    let things = "A few things:\n\n- The sum of the ledger should be in bold with 2 digits.";
    assert_eq!(texts(things), ["The sum of the ledger should be in bold with 2 digits."]);
    assert!(texts("The CRANE_TOKEN of the ledger in .env should be ready for use.").is_empty());
    // What a rule for everything is about, it says itself.
    assert_eq!(texts("I saw the log. Never push without asking me."), ["Never push without asking me."]);
}

fn pair(asked: &str, reply: &str) -> Vec<String> {
    let said = [said(0, Role::User, "go"), said(1, Role::Assistant, asked), said(2, Role::User, reply)];
    facts(&said).into_iter().map(|fact| fact.text).collect()
}
