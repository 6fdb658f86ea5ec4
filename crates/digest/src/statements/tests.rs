use std::ops::Range;

use super::read::statements;
use super::*;
use tiro_base::memory::MemoryKey;

/// Returns the statements of a text that is one sentence.
fn read(text: &str) -> Vec<Stated> {
    let whole: Range<usize> = 0..text.len();
    statements(text, &[whole])
}

/// Returns the values of a text, each with its unit.
fn values(text: &str) -> Vec<String> {
    read(text)
        .iter()
        .map(|stated| format!("{} {}", stated.value, stated.about.unit).trim().to_owned())
        .collect()
}

/// Returns, for each text, the subjects of its statements, and the values.
fn subjects(texts: &[&str]) -> Vec<Vec<(usize, String)>> {
    let mut subjects = Subjects::default();
    let mut told = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let memory = MemoryKey::from_store(number as i64);
        let mut own = Vec::new();
        for Stated { value, about, .. } in read(text) {
            let about = About::parse(&about.line());
            let place = subjects.compare(value.clone(), about, memory).place;
            own.push((subjects.subject(place), value));
        }
        told.push(own);
    }
    told
}

/// Returns whether the second text replaces a value of the first.
fn replaces(first: &str, second: &str) -> bool {
    let told = subjects(&[first, second]);
    told[1].iter().any(|(subject, value)| told[0].iter().any(|(other, old)| other == subject && old != value))
}

/// Returns the pairs of texts in which the later text answers a question instead of the earlier one.
fn outdated(question: &str, texts: &[&str]) -> Vec<(usize, usize)> {
    let told: Vec<Told> = texts
        .iter()
        .enumerate()
        .flat_map(|(number, text)| {
            let (memory, time) = (MemoryKey::from_store(number as i64), number as i64);
            of_message(text).into_iter().map(move |stated| Told { memory, time, voice: "ada".into(), stated })
        })
        .collect();
    let place = |at: usize| told[at].time as usize;
    let questions = Question::read(question);
    let replaced = questions.iter().flat_map(|question| replaced(question, &told));
    replaced.map(|each| (place(each.earlier), place(each.by))).collect()
}

#[test]
fn of_several_answers_to_a_question_the_latest_holds() {
    let texts = [
        "My essay draft has 4,500 words, and I submit it on Friday.",
        "The abstract of the essay may have 200 words at most.",
        "I finished the final draft of the essay, and it came to 4,700 words.",
        "The letter to my editor has 300 words.",
    ];
    assert_eq!(outdated("How many words does my final essay draft contain?", &texts), [(0, 2)]);
    let texts = [
        "The test coverage of the billing module is at 65%.",
        "The billing module went up to 78% test coverage today.",
        "Our core modules have 85% test coverage.",
    ];
    assert_eq!(outdated("What is the test coverage of the billing module?", &texts), [(0, 1)]);
    let texts =
        ["The review is on March 3 at 4 PM.", "They moved the review to March 9.", "I fly home on March 12."];
    assert_eq!(outdated("When is the review?", &texts), [(0, 1)]);
    assert_eq!(Question::read("Why is the review late?"), []);
    assert_eq!(Question::read("How do I book a review?"), []);
    assert_eq!(Question::read("How many"), []);
    for span in [
        "How many days passed between the review and the release?",
        "How many weeks after the review was the release?",
        "What happened first, the review of 40 pages or the release?",
        "How many pages did I review across all sessions?",
    ] {
        assert_eq!(Question::read(span), [], "{span}");
    }
}

/// Statements of one message used to be compared with each other, so that a message of 64 KiB took ten seconds.
#[test]
fn a_statement_that_a_message_repeats_is_one_and_of_many_the_first_are_read() {
    assert_eq!(of_message(&"The reason is 7. ".repeat(900)).len(), 1);
    let many: String = (0..300).map(|n| format!("Room {n} has {n} chairs. ")).collect();
    assert_eq!(of_message(&many).len(), 24);
}

#[test]
fn a_word_that_begins_like_a_half_of_the_day_is_no_time() {
    assert_eq!(values("Our plan now has 5 amazing goals."), ["5 goal"]);
}

#[test]
fn a_question_for_two_values_is_two_questions() {
    let texts =
        ["I solved 10 triangle problems.", "By now I solved 15 triangle problems, with an accuracy of 80%."];
    let question =
        "How many triangle problems did I solve, and what accuracy in identifying types did I reach?";
    assert_eq!(outdated(question, &texts), [(0, 1)]);
    assert_eq!(Question::read("How many triangle problems did I collect when I began?").len(), 1);
}

#[test]
fn values_are_numbers_with_units_dates_times_and_names() {
    assert_eq!(values("The cellar holds 1,200 bottles of wine."), ["1200 bottl"]);
    assert_eq!(values("It answers within 250ms, 95% of the time."), ["250 ms", "95 %"]);
    assert_eq!(values("Rent is $1,200 per month."), ["1200 $/month"]);
    assert_eq!(
        values("We meet on March 3 at 4:30 PM, not on Friday."),
        ["03-03 4:30pm date", "4:30pm time", "day 4 date"]
    );
    assert_eq!(values("My latency went from 60% to 85%."), ["85 %"]);
    assert_eq!(values("We use Redis for the queue."), ["redis name"]);
    let nothing = "See version 1.2.3, issue #12, step 4, src/v2/main.rs, in 2024 or the 3rd time";
    assert_eq!(values(nothing), Vec::<String>::new());
}

#[test]
fn a_line_is_read_as_it_was_written() {
    for stated in read("My quota is now 1,200 calls per day, switched from Redis to Postgres.") {
        assert_eq!(About::parse(&stated.about.line()), stated.about);
    }
    assert_eq!(About::parse("no line|at|all").unit, "no line");
}

#[test]
fn a_later_value_of_the_same_thing_replaces_the_earlier() {
    let pairs = [
        ("My wine cellar holds 120 bottles.", "The wine cellar now holds 134 bottles."),
        (
            "The gallery opening has a deadline of April 1.",
            "The new deadline of the gallery opening is April 5.",
        ),
        (
            "I have a call with the landlord on June 3 at 3 PM.",
            "The call with the landlord was moved to June 4 at 11 AM.",
        ),
        (
            "I budgeted $3,000 for the kitchen renovation.",
            "I increased the kitchen renovation budget to $3,500.",
        ),
        (
            "Test coverage of the parser module is at 65%.",
            "Coverage of the parser module tests has improved to 78%.",
        ),
        ("The permit takes 5-7 months in our county.", "The permit in our county now takes up to 9 months."),
        ("My yearly budget for boots is $600 a year.", "I bumped my yearly boots budget up to $650."),
        ("The choir meets on Saturday at 3 PM.", "The choir now meets at 4 PM instead."),
        ("We use Redis for the job queue.", "Actually, let's use RabbitMQ for the job queue."),
        ("We use Redis for the job queue.", "I switched the job queue from Redis to RabbitMQ."),
    ];
    for (first, second) in pairs {
        assert!(replaces(first, second), "{first} / {second}");
    }
}

#[test]
fn values_of_other_things_stay() {
    let pairs = [
        ("My wine cellar holds 120 bottles.", "My medicine cabinet now holds 6 bottles."),
        ("I solved 5 geometry problems.", "I now solved 8 chemistry problems."),
        ("The gallery opening has a deadline of April 1.", "The tax deadline moved to April 5."),
        ("We use Redis for the job queue.", "We use Postgres for the invoices."),
        (
            "The triangle has sides of 7 cm, 24 cm and 25 cm.",
            "The triangle has sides of 3 cm, 4 cm and 5 cm.",
        ),
        ("I want to answer in under 200 ms.", "The dashboard answers in 250 ms."),
        ("I need 3 eggs for the cake.", "I need 200 g of sugar for the cake."),
    ];
    for (first, second) in pairs {
        assert!(!replaces(first, second), "{first} / {second}");
    }
}

#[test]
fn two_hundred_corrections_of_a_number_are_about_one_thing() {
    let texts: Vec<String> = (100..300).map(|number| format!("The retry limit is {number} now.")).collect();
    let told = subjects(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let first = told[0][0].0;
    assert!(told.iter().all(|own| own.len() == 1 && own[0].0 == first));
}
