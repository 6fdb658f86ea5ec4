//! Recognises boilerplate, which are sentences without information: greetings, thanks, offers of help, and
//! announcements of what follows.

/// A sentence with one of these beginnings is boilerplate, whatever words follow.
const BEGINNINGS: [&str; 73] = [
    "@agent continue",
    "absolutely",
    "apologies",
    "as an ai",
    "by following",
    "by implementing these",
    "certainly",
    "congratulations",
    "do you want me to",
    "feel free",
    "first, let's",
    "good luck",
    "great question",
    "happy coding",
    "happy to help",
    "hello",
    "here are",
    "here is",
    "here's",
    "hey ",
    "hi ",
    "hi!",
    "hi,",
    "hope that helps",
    "hope this helps",
    "i apologize",
    "i can help",
    "i hope",
    "i'd be happy",
    "i'll help",
    "i'm glad",
    "i'm happy to",
    "i'm here to help",
    "i'm sorry",
    "if you encounter",
    "if you have any",
    "if you have more",
    "if you have specific",
    "if you need",
    "if you want",
    "if you'd like",
    "in summary,",
    "is there anything",
    "it is great that",
    "it looks like you",
    "it's great",
    "it's wonderful",
    "let me know",
    "let's break",
    "let's dive",
    "let's go through",
    "let's start by",
    "let's walk",
    "my apologies",
    "next, let's",
    "no problem",
    "now let's",
    "now, let's",
    "of course",
    "please let me know",
    "please provide",
    "shall i",
    "sounds good",
    "sure",
    "thank you",
    "thanks",
    "that sounds",
    "that's a great",
    "that's great",
    "would you like",
    "you're absolutely right",
    "you're right",
    "you're welcome",
];

/// What Cursor writes in the user's name, mostly when the user starts to carry out a plan.
const OF_CLIENT: [&str; 8] = [
    "implement the plan as specified",
    "user provided an image",
    "do not edit the plan file itself",
    "to-do's from the plan have already been created",
    "do not create them again",
    "mark them as in_progress as you work",
    "don't stop until you have completed all the to-dos",
    "don't stop until you have completed all of them",
];

/// Short answers and acknowledgements. A sentence that begins with an entry of this list and has at most [`SHORT`]
/// words is boilerplate.
const ACKNOWLEDGEMENTS: [&str; 22] = [
    "ok",
    "okay",
    "yes",
    "no",
    "yep",
    "yeah",
    "nope",
    "right",
    "great",
    "good",
    "nice",
    "perfect",
    "cool",
    "awesome",
    "excellent",
    "wow",
    "continue",
    "proceed",
    "done",
    "fine",
    "alright",
    "understood",
];

/// The maximum number of words of an acknowledgement.
const SHORT: usize = 3;

/// Returns whether `sentence`, a sentence without markup, is boilerplate.
pub fn is_boilerplate(sentence: &str) -> bool {
    let lower = sentence.trim().trim_start_matches(['"', '\'', '*', ' ']).to_lowercase().replace('’', "'");
    let begins = |start: &str| {
        lower
            .strip_prefix(start)
            .is_some_and(|rest| !rest.starts_with(char::is_alphabetic) || start.ends_with(' '))
    };
    let promises = lower.starts_with("by ")
        && [", you can", ", you'll", ", you will", ", you should"].iter().any(|you| lower.contains(you));
    if promises || BEGINNINGS.iter().chain(&OF_CLIENT).any(|start| begins(start)) {
        return true;
    }
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.len() <= SHORT && words.first().is_some_and(|first| ACKNOWLEDGEMENTS.contains(first))
}
