use super::*;

/// Returns the sentence of `earlier` that `later` corrects.
fn corrected<'e>(earlier: &'e str, later: &str) -> Option<&'e str> {
    let found =
        corrections(later).into_iter().find_map(|correction| correction.corrected(&Statements::of(earlier)));
    found.map(|corrected| &earlier[corrected.sentence])
}

#[test]
fn a_value_that_is_named_as_replaced_is_corrected() {
    for (earlier, later) in [
        ("We deploy on Tuesdays.", "We deploy on Thursdays now, not Tuesdays."),
        ("The cache is Redis.", "The cache is Valkey instead of Redis."),
        ("Our goal is 60% test coverage.", "We raised our goal for test coverage from 60% to 85%."),
        ("All sessions are in Redis.", "We moved the sessions from Redis to Postgres."),
        ("We deploy by hand to staging.", "We no longer deploy to staging by hand."),
        ("Die Sitzungen liegen in Redis.", "Die Sitzungen liegen jetzt in Postgres statt Redis."),
        (
            "My accuracy in area problems is 70%, can you help?",
            "I'm trying to see how my accuracy in area problems improved from 70% to 90%, any idea?",
        ),
        ("部署使用 Redis 缓存", "部署使用 Valkey 缓存，而不是 Redis"),
    ] {
        assert_eq!(corrected(earlier, later), Some(earlier), "{later}");
    }
}

#[test]
fn what_names_no_earlier_value_of_the_same_thing_corrects_nothing() {
    for (earlier, later) in [
        (
            "Our family car has a budget of $15,000.",
            "The budget for holiday gifts went up from $300 to $400.",
        ),
        ("We deploy on Tuesdays.", "The team meets on Thursdays, not Tuesdays."),
        ("The cache is Redis.", "The queue is RabbitMQ instead of Redis."),
        ("We deploy on Tuesdays.", "We deploy on Thursdays."),
        ("We deploy on Tuesdays.", "Should we deploy on Thursdays, not Tuesdays?"),
        ("We deploy on Tuesdays.", "If we deploy on Thursdays instead of Tuesdays, the team is tired."),
        (
            "My accuracy in area problems is 70%.",
            "How can I raise my accuracy in area problems from 70% to 90%?",
        ),
        (
            "My accuracy in area problems is 70%.",
            "I try to raise my accuracy in area problems from 70% to 90%.",
        ),
        ("Should we deploy on Tuesdays?", "We deploy on Thursdays, not Tuesdays."),
        ("We deploy on Thursdays, not Tuesdays.", "We deploy on Mondays, not Tuesdays."),
        ("We never deploy by hand to staging.", "We no longer deploy to staging by hand."),
        ("Write a test for deploys on Tuesdays.", "The message is \"we deploy on Thursdays, not Tuesdays\"."),
        ("The trip takes 5 days.", "The price went from 5 to 6 euros."),
        (
            "Add a command called git with a subcommand clone, which clones a repository to a directory.",
            "Add a start command that clones a repository by the domain methods, not the git commands.",
        ),
    ] {
        assert_eq!(corrected(earlier, later), None, "{later}");
    }
}

#[test]
fn the_sentence_about_the_same_thing_is_corrected() {
    let earlier = "We deploy on Tuesdays. Reviews are on Tuesdays too. The cache is Redis.";
    assert_eq!(
        corrected(earlier, "Reviews are on Fridays, not Tuesdays."),
        Some("Reviews are on Tuesdays too.")
    );
}

#[test]
fn a_message_that_is_taken_back_is_corrected_in_the_sentence_about_the_same_thing() {
    let rule = "The deploy script must never run on Fridays.";
    let later = "Actually, scratch that: Fridays are fine, but the deploy script must never run on Mondays.";
    assert_eq!(corrected(rule, later), Some(rule));
    assert_eq!(corrected(rule, "Scratch that."), Some(rule));
    assert_eq!(corrected("One thing. And another thing.", "Scratch that."), None, "it is unclear which");
    assert_eq!(corrected("The logo is green.", later), None);
    let back = corrections(later).remove(0);
    assert!(
        back.is_of_message_before()
            && !corrections("Not Tuesdays.").iter().any(Correction::is_of_message_before)
    );
}

#[test]
fn a_question_is_about_a_statement_with_enough_of_its_words() {
    assert!(concerns("When do we deploy?", "deploy tuesday"));
    assert!(!concerns("How many words does the essay have?", "deploy tuesday"));
}
