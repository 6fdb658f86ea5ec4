use super::*;

const USER: Role = Role::User;
const ASSISTANT: Role = Role::Assistant;

fn about(lines: &[&str]) -> Topic {
    Topic { words: words_of(lines), files: vec!["pumps/valve.rs".into()] }
}

fn found(messages: &[(Role, &str)], lines: &str) -> Vec<(Part, usize, String)> {
    let messages: Vec<Said<'_>> = messages
        .iter()
        .map(|(role, text)| Said { role: *role, speaker: None, text, is_after_change: None })
        .collect();
    let quotes = in_conversation(&messages, &about(&[lines]), false);
    quotes.into_iter().map(|quote| (quote.part, quote.message, quote.text)).collect()
}

#[test]
fn the_request_about_the_lines_and_the_reason_of_the_assistant_are_quoted() {
    let lines = "let delay = retry_delay(attempt);\nsleep(delay);";
    let messages = [
        (
            USER,
            "Rename the crate. The API answers 429 if two workers retry at once, so wait longer each time.",
        ),
        (
            ASSISTANT,
            "I looked at the client. The retry delay is fixed because the attempt is not counted. Let me fix it.",
        ),
    ];
    assert_eq!(
        found(&messages, lines),
        [
            (
                Part::Asked,
                0,
                "Rename the crate. The API answers 429 if two workers retry at once, so wait longer each time.".to_owned()
            ),
            (Part::Decided, 1, "The retry delay is fixed because the attempt is not counted.".to_owned()),
        ]
    );
}

#[test]
fn what_the_user_accepted_is_the_proposal_and_a_short_reply_leads_to_the_request_before() {
    let lines = "const RETRIES: u32 = 5;";
    let messages = [
        (USER, "The upload fails on a slow network."),
        (ASSISTANT, "I could raise the number of retries to five. Shall I?"),
        (USER, "yes please"),
    ];
    assert_eq!(
        found(&messages, "let mut upload = slow(network);"),
        [
            (Part::Asked, 0, "The upload fails on a slow network.".to_owned()),
            (Part::Accepted, 1, "I could raise the number of retries to five.".to_owned())
        ]
    );
    assert_eq!(
        found(&messages, &format!("{lines} // number of retries")),
        [(Part::Accepted, 1, "I could raise the number of retries to five.".to_owned())]
    );
    let list = "Please go ahead.\n\n1. New pages\n   * `faq.html`: answers of the support\n2. Old pages\n   * `index.html`: no numbers of users\n   * `upload.html`: the slow network\n";
    let whole = "Please go ahead. New pages · faq.html: answers of the support · Old pages · index.html: no numbers of users · upload.html: the slow network";
    assert_eq!(found(&[(USER, list)], "let index = pages();")[0].2, whole);
    let long = list.to_owned()
        + &"   * `team.html`: the people who answer the mails of the guests by day\n".repeat(9);
    assert_eq!(found(&[(USER, &long)], "slow(network)")[0].2, "upload.html: the slow network");
    assert_eq!(found(&[(USER, "go on"), (ASSISTANT, "Done.")], lines), []);
    let next = [messages[0], (ASSISTANT, "Done."), (USER, "carry on with the steps")];
    assert_eq!(found(&next, lines)[0].2, "The upload fails on a slow network.");
    assert_eq!(found(&next[1..], lines)[0].2, "carry on with the steps");
    let asked = [
        (USER, "Add a footer component with a column for each group of links."),
        (ASSISTANT, "Done."),
        (USER, "write the docs for it too"),
    ];
    let said: Vec<String> = found(&asked, "docs").into_iter().map(|(.., text)| text).collect();
    assert_eq!(said, [asked[0].1, asked[2].1]);
    let long = "raise the number of retries and then do this and that ".repeat(12);
    let [(Part::Asked, 0, text)] = &found(&[(USER, &long)], lines)[..] else { panic!() };
    assert!(text.len() <= LONGEST_REQUEST + 4 && text.ends_with(" …"), "{text}");
}

#[test]
fn of_a_plan_that_is_carried_out_the_part_that_comes_next_is_quoted() {
    let mut messages = vec![
        (USER, "Implement the plan as specified, it is attached for your reference."),
        (ASSISTANT, "I read the plan.\n\nNow let me create the upload fixtures:"),
        (ASSISTANT, "Done."),
    ];
    let said = "Now let me create the upload fixtures".to_owned();
    assert_eq!(found(&messages, "upload()"), [(Part::Decided, 1, said)]);
    assert_eq!(found(&messages, "retry()"), []);
    messages[0].1 = "The upload fails on a slow network.";
    assert_eq!(found(&messages, "upload()").len(), 1);
}

#[test]
fn a_bare_yes_leads_to_the_last_proposal_and_what_the_assistant_announced() {
    let messages = [
        (USER, "can the tests fail, or are they just pretend tests?"),
        (
            ASSISTANT,
            "They can.\n\n- **Phase 3: API**, done\n- **Phase 4: dialogs**, not begun\n\n\
             Would you like me to continue with the other phases, or add a database?",
        ),
        (USER, "approved, please continue"),
        (ASSISTANT, "I continue with the tests of the dialog."),
    ];
    let told = found(&messages, "dialog.open();");
    let parts: Vec<_> = told.iter().map(|(part, place, _)| (*part, *place)).collect();
    assert_eq!(parts, [(Part::Accepted, 1)], "{told:?}");
    let accepted = "Phase 4: dialogs, not begun … Would you like me to continue with the other phases, or add a database?";
    assert_eq!(told[0].2, accepted);
    let told = found(&messages, "retry();");
    assert_eq!(told.len(), 1, "{told:?}");
    let plain = [messages[0], (ASSISTANT, "They can. Shall I add the others?"), messages[2], messages[3]];
    let parts: Vec<_> =
        found(&plain, "dialog.open();").into_iter().map(|(part, place, _)| (part, place)).collect();
    assert_eq!(parts, [(Part::Accepted, 1), (Part::Decided, 3)]);
}

#[test]
fn an_answer_to_a_question_comes_with_what_was_asked() {
    let messages = [
        (USER, "The list of orders is too long, the guests scroll for minutes."),
        (ASSISTANT, "A) pages\nB) a filter\nC) both\n\nWhich one?"),
        (USER, "option C for all orders please"),
    ];
    let texts = |messages: &[(Role, &str)]| -> Vec<String> {
        found(messages, "orders.filter(paid)").into_iter().map(|(.., text)| text).collect()
    };
    assert_eq!(texts(&messages), [messages[0].1, messages[2].1]);
    let long = "1. the newest orders come first, as the guests expect it\n2. only orders that are paid, please, and no drafts";
    let several =
        [messages[0], (ASSISTANT, "1. Which orders come first?\n2. Which ones are shown?"), (USER, long)];
    assert_eq!(texts(&several).len(), 2);
    let anew = [
        messages[0],
        messages[1],
        (
            USER,
            "Forget that, show the orders of today in a new window with a large font for the kitchen staff.",
        ),
    ];
    assert_eq!(texts(&anew), [anew[2].1]);
}

#[test]
fn a_report_of_what_was_done_is_no_proposal() {
    let messages = [
        (USER, "The upload of large files fails on a slow network in the train."),
        (
            ASSISTANT,
            "The upload now retries five times on a slow network. Shall I raise the number of retries?",
        ),
        (USER, "yes"),
    ];
    let texts: Vec<String> = found(&messages, "const RETRIES: u32 = 5; // number of retries")
        .into_iter()
        .map(|(.., text)| text)
        .collect();
    assert_eq!(texts, [messages[0].1, "Shall I raise the number of retries?"]);
}

#[test]
fn an_error_of_a_log_is_not_quoted_as_the_users_words() {
    let request = "The upload fails again after the last change.\n\n```\nTypeError: fetch failed\n```";
    assert_eq!(found(&[(USER, request)], "upload()")[0].2, "The upload fails again after the last change.");
    let request = "Please rename `upload` to **send** everywhere in the client.";
    assert_eq!(
        found(&[(USER, request)], "upload()")[0].2,
        "Please rename upload to send everywhere in the client."
    );
    let log = "TypeError: fetch failed\n    at upload (src/client.ts:7:9)\n    at main (src/main.ts:3:1)\n";
    assert_eq!(found(&[(USER, log)], "upload()")[0].2, "TypeError: fetch failed");
    assert_eq!(found(&[(USER, "/implement S1")], "upload()")[0].2, "/implement S1");
    let with_command = "/fix the gauge shows bars, the crew wants kilopascals";
    assert_eq!(found(&[(USER, log), (USER, with_command)], "upload()").pop().unwrap().2, with_command);
    let request =
        "@src/routes/docs.$.tsx:93 factor this out into the upload components and change useLocation";
    assert_eq!(found(&[(USER, request)], "upload()")[0].2, request);
    let request = "We are going to create a component for uploads\n\nIt should:\n\n- @src/upload.$.tsx adapt the styles (h1, h2) of uploads\n- need no other changes";
    assert_eq!(
        found(&[(USER, request)], "const styles = create();")[0].2,
        "We are going to create a component for uploads · It should: @src/upload.$.tsx adapt the styles (h1, h2) of uploads; need no other changes"
    );
}

#[test]
fn a_commit_says_why_only_after_its_subject_and_with_a_reason() {
    let words = about(&["fn retry_delay()"]);
    let why = |message: &str| in_commit(message, &words).map(|sentence| sentence.text);
    assert_eq!(why("Retry longer because of 429"), None);
    assert_eq!(why("Retry longer\n\nAdds a delay.\n\nSigned-off-by: A"), None);
    let message = "Retry longer\n\nAdds a delay. Two workers got 429 because they retried at once.";
    assert_eq!(why(message).unwrap(), "Two workers got 429 because they retried at once.");
    let several =
        "Retry longer\n\nThe table is new because rows were lost. The log is short because of its size.";
    assert_eq!(why(several), None, "no reason is about the lines");
    let list = "Be kinder\n\n- Says what to avoid, because the guide was unclear\n- Names the retry delay, because it is needed";
    assert_eq!(why(list).unwrap(), "Names the retry delay, because it is needed");
    assert_eq!(why(&list.replace("Be kinder", "Improve the retry delay")), None, "every item is about it");
    let range = in_commit(message, &words).unwrap().range;
    assert_eq!(&message[range], "Two workers got 429 because they retried at once.");
}

#[test]
fn a_file_is_known_by_its_name_with_the_extension() {
    let said = "The upload.setup.ts needs to be conditional:";
    let messages = [(USER, "continue"), (ASSISTANT, said), (ASSISTANT, "Now let me list the tests:")];
    let text = said.trim_end_matches(':').to_owned();
    assert_eq!(found(&messages, "upload.setup.ts"), [(Part::Decided, 1, text)]);
}

#[test]
fn a_talk_about_a_plan_is_quoted_with_its_first_request() {
    let messages = [
        (USER, "Share the code of the dialogs, because each of them repeats sixty lines."),
        (ASSISTANT, "I would make two components."),
        (USER, "where are you going to put them in the tree of folders?"),
        (ASSISTANT, "In the shared folder."),
        (USER, "they are about our business, would another folder be better for them?"),
    ];
    let said = messages.iter().map(|(role, text)| Said {
        role: *role,
        speaker: None,
        text,
        is_after_change: Some(false),
    });
    let quotes = in_conversation(&said.collect::<Vec<_>>(), &about(&["<DocumentPanel />"]), false);
    let places: Vec<usize> = quotes.iter().map(|quote| quote.message).collect();
    assert_eq!(places, [0, 4], "{quotes:?}");
    assert_eq!(found(&[(USER, "Implement phase 12")], "upload()")[0].2, "Implement phase 12");
}

#[test]
fn a_plan_that_is_carried_out_is_quoted_with_its_item_about_the_lines() {
    let steps =
        "1. Measure the pressure in each of the tanks\n2. Close `pumps/valve.rs` before the tank is full\n\n";
    let plan = format!(
        "# Safer tanks\n\nThe tanks must not overflow.\n\n{steps}{}",
        "More is said here. ".repeat(40)
    );
    let messages = [
        (USER, "Paint all the tanks blue before the winter comes."),
        (ASSISTANT, "Done."),
        (USER, "How do we keep the tanks from running over in the night?"),
        (ASSISTANT, plan.as_str()),
        (
            USER,
            "Implement the plan as specified, it is attached for your reference. Do NOT edit the plan file itself.",
        ),
        (ASSISTANT, "I begin."),
    ];
    let said = messages.iter().enumerate().map(|(place, (role, text))| Said {
        role: *role,
        speaker: None,
        text,
        is_after_change: Some(place == 1),
    });
    let quotes = in_conversation(&said.collect::<Vec<_>>(), &about(&["fn shut() {}"]), false);
    let texts: Vec<_> = quotes.iter().map(|quote| (quote.part, quote.text.as_str())).collect();
    let accepted =
        "Safer tanks · The tanks must not overflow. … Close pumps/valve.rs before the tank is full";
    assert_eq!(texts, [(Part::Accepted, accepted)]);
}

#[test]
fn a_request_is_open_until_something_changes() {
    let texts = |changes: Option<&[usize]>| -> Vec<String> {
        let messages = [
            (USER, "Write a mail to the guests about parking, and ask me what you need to know."),
            (ASSISTANT, "I look at the web page."),
            (USER, "In winter the guests have to park in the village and walk to the house."),
        ];
        let said = messages.iter().enumerate().map(|(place, (role, text))| Said {
            role: *role,
            speaker: None,
            text,
            is_after_change: changes.map(|changes| changes.contains(&place)),
        });
        let quotes = in_conversation(&said.collect::<Vec<_>>(), &about(&["park in the village"]), false);
        quotes.into_iter().map(|quote| quote.text).collect()
    };
    for changes in [Some(&[][..]), Some(&[0])] {
        assert_eq!(texts(changes).len(), 2, "{changes:?}");
    }
    for changes in [None, Some(&[1][..]), Some(&[2])] {
        assert_eq!(texts(changes).len(), 1, "{changes:?}");
    }
}

/// "1) all of them" used to be quoted without the questions that it answers.
#[test]
fn answers_are_quoted_with_their_questions() {
    let questions = "Before I begin:\n\n1. Where does the stock dialog open from?\n2. Which tanks get a valve?\n\
        3. Who may open the activity log?\n";
    let messages = [
        (USER, "We need an activity log of every operation. Plan all of the work."),
        (ASSISTANT, questions),
        (USER, "1) from the table of articles 2) all of those 3) only the admin and the seller"),
    ];
    let answer = "Who may open the activity log? – only the admin and the seller";
    let asked = "We need an activity log of every operation. Plan all of the work.";
    assert_eq!(
        found(&messages, "fn may_open(log: &ActivityLog, admin: bool) -> bool {"),
        [(Part::Asked, 0, asked.to_owned()), (Part::Answered, 2, answer.to_owned())]
    );
}

#[test]
fn what_was_chosen_in_a_dialog_is_quoted() {
    let chosen = "Tool: AskUserQuestion\nUser has answered your questions: \"Which engine should be the default?\"=\"The \
        offline engine\", \"How is the flag called?\"=\"--bilingual\".";
    let plan =
        format!("# Bilingual output\n\nShow both languages.\n\n- Skip lines of code\n- {}", "x ".repeat(300));
    let approved = "Tool: ExitPlanMode\nUser has approved your plan. You can now start coding.";
    let messages = [
        (Role::User, None, "The command should keep the original beside the translation."),
        (Role::Assistant, None, "I look at the pipe first."),
        (Role::Tool, Some("AskUserQuestion"), chosen),
        (Role::Assistant, None, plan.as_str()),
        (Role::Tool, Some("ExitPlanMode"), approved),
        (Role::Assistant, None, "I begin."),
    ];
    let said = |until: usize| -> Vec<Said<'_>> {
        let said = messages[..until].iter();
        said.map(|(role, speaker, text)| Said {
            role: *role,
            speaker: *speaker,
            text,
            is_after_change: Some(false),
        })
        .collect()
    };
    let quotes = in_conversation(&said(3), &about(&["let flag = Flag::named(\"bilingual\");"]), false);
    let texts: Vec<_> = quotes.iter().map(|quote| (quote.part, quote.text.as_str())).collect();
    let asked = (Part::Asked, messages[0].2);
    assert_eq!(texts, [asked, (Part::Answered, "How is the flag called? – --bilingual")]);
    let quotes = in_conversation(&said(6), &about(&["if line.is_code() { continue; } // skip"]), false);
    let texts: Vec<_> = quotes.iter().map(|quote| (quote.part, quote.text.as_str())).collect();
    let accepted = "Bilingual output · Show both languages. … Skip lines of code";
    assert_eq!(texts, [asked, (Part::Accepted, accepted)]);
}

/// "Address 2 and 4" used to be quoted as it is, and says nothing.
#[test]
fn an_item_that_is_named_by_its_number_is_quoted() {
    let review = "## Major\n\n### 1. The tank overflows\n\nNobody closes the valve.\n\n### 2. Retries are not counted\n\n\
        The retry delay stays the same, so the pump asks too often.\n\n## Verdict\n\nFix 1 first.\n";
    let item = "2. Retries are not counted … The retry delay stays the same, so the pump asks too often.";
    let lines = "let delay = retry_delay(attempt);";
    let told = |request: &str, review: &str| {
        let messages = [(USER, "/review 244"), (ASSISTANT, review), (USER, request)];
        found(&messages, lines).into_iter().map(|(part, _, text)| (part, text)).collect::<Vec<_>>()
    };
    let accepted = [(Part::Accepted, item.to_owned())];
    assert_eq!(told("Let's address #1-2", review), accepted);
    assert_eq!(told("fix 2", review), accepted);
    assert_eq!(told("fix 1", review), [(Part::Accepted, "1. The tank overflows".to_owned())]);
    assert!(told("fix MIP 2", review).iter().all(|(part, _)| *part != Part::Accepted));
}

#[test]
fn a_session_that_begins_with_a_plan_quotes_its_item() {
    let plan = "Implement the following plan:\n\n# Plan: Counted retries\n\nThe server answers 429.\n\n## Steps\n\n\
        1. Count the attempt in the retry delay\n2. Close the tank\n";
    let quoted = "Plan: Counted retries · The server answers 429. … Count the attempt in the retry delay";
    assert_eq!(
        found(&[(USER, plan)], "let delay = retry_delay(attempt);"),
        [(Part::Accepted, 0, quoted.to_owned())]
    );
}

#[test]
fn a_request_that_was_sent_again_is_quoted_once() {
    let messages = [
        (USER, "The retry delay is too short."),
        (USER, "The retry delay is too short. Count the attempt, too."),
    ];
    let quoted = "The retry delay is too short. Count the attempt, too.";
    assert_eq!(found(&messages, "retry_delay(attempt)"), [(Part::Asked, 1, quoted.to_owned())]);
}

/// A short request after a change asks for something else, so the request before it is not its reason.
#[test]
fn an_order_after_a_change_stands_for_itself() {
    let messages = [
        (USER, "Sum the counts of what was redacted, because the log understates them."),
        (ASSISTANT, "Done. The flags of both commands are still defined twice."),
        (USER, "Refactor now"),
        (ASSISTANT, "The flags and their defaults get one home."),
    ];
    let said = messages.iter().enumerate().map(|(place, (role, text))| Said {
        role: *role,
        speaker: None,
        text,
        is_after_change: Some(place == 1),
    });
    let quotes = in_conversation(&said.collect::<Vec<_>>(), &about(&["fn defaults() -> Flags {"]), false);
    let texts: Vec<_> = quotes.iter().map(|quote| (quote.part, quote.text.as_str())).collect();
    let decided = "The flags and their defaults get one home.";
    assert_eq!(texts, [(Part::Asked, "Refactor now"), (Part::Decided, decided)]);
}

#[test]
fn a_request_for_a_commit_is_no_reason() {
    let messages = [
        (USER, "Write a commit message that is worthy of 1.1"),
        (ASSISTANT, "Here it is."),
        (USER, "it seems that the tests fail"),
    ];
    let failing = [(Part::Asked, 2, "it seems that the tests fail".to_owned())];
    assert_eq!(found(&messages, "fn close() {}"), failing);
    assert!(found(&[(USER, "Fix the hook that runs before a commit")], "fn hook() {}").len() == 1);
}

/// A sentence from further up used to be quoted, because it has more words of the lines.
#[test]
fn what_the_assistant_says_right_before_the_lines_is_quoted() {
    let said = |(role, text): &(Role, &'static str)| Said {
        role: *role,
        speaker: None,
        text,
        is_after_change: Some(false),
    };
    let messages = [
        (USER, "implementiere auch Tests"),
        (ASSISTANT, "Zuerst erweitere ich die Tests der Pumpe: retry_delay und attempt"),
        (ASSISTANT, "Jetzt erstelle ich umfassende Tests für die neuen Felder"),
    ];
    let messages: Vec<Said<'_>> = messages.iter().map(said).collect();
    let told = |announces: bool| {
        let quotes = in_conversation(&messages, &about(&["retry_delay(attempt)"]), announces);
        quotes.into_iter().find(|quote| quote.part == Part::Decided).map(|quote| quote.message)
    };
    assert_eq!((told(true), told(false)), (Some(2), Some(1)));
}

#[test]
fn an_item_of_a_long_request_that_names_the_file_is_quoted() {
    let wish = "I want to develop version 2 of the server, which is all about security.";
    let rules =
        "Each of the old clients has to work as before, whatever it sends and however old it is. ".repeat(8);
    let request = format!(
        "{wish}\n\n{rules}\n\n- keep a list of all changes\n- describe what changes in pumps/valve.rs, too\n- be brief\n"
    );
    let quoted = found(&[(USER, &request)], "fn version() -> u32 { 2 }");
    assert!(quoted[0].2.starts_with(wish), "{quoted:?}");
    assert!(quoted[0].2.ends_with(" … describe what changes in pumps/valve.rs, too"), "{quoted:?}");
}

/// The proposal that a first "yes" accepted used to be lost after a second one.
#[test]
fn a_second_yes_is_another_answer() {
    let messages = [
        (USER, "The pump stops too early."),
        (ASSISTANT, "I would raise the retries in pumps/valve.rs to seven. Shall I?"),
        (USER, "yes"),
        (ASSISTANT, "The tests pass."),
        (USER, "yes"),
    ];
    let quoted = found(&messages, "const RETRIES: u32 = 7;");
    assert!(quoted.iter().any(|(part, ..)| *part == Part::Accepted), "{quoted:?}");
}

#[test]
fn a_plan_of_one_long_paragraph_is_shortened() {
    let plan =
        format!("Implement the following plan: {}", "count the attempt in the retry delay, ".repeat(300));
    let quoted = found(&[(USER, &plan)], "retry_delay(attempt)");
    assert!(quoted.iter().all(|(.., text)| text.len() < 2 * LONGEST_REQUEST), "{quoted:?}");
}
