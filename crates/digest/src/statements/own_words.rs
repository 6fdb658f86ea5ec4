//! Finds a user's own words in a message to an assistant, without the material that the message contains.
//!
//! A user often gives material for a task, such as a mail to correct, a plan, or a program's output. A sentence of the
//! material is not a statement of the user: "We moved to Kafka" in a text to be translated says nothing about the
//! project. Material is quoted text, a pasted document, and what follows an introduction such as "shorten this:". The
//! first sentence after an introduction is quoted together with the introduction, so that a reader sees what it is.

use tiro_text::blocks::{self, Block, Form, Kind, Sentence, blocks, first_error, pasted_from, quotations};

/// The last words of a sentence that announces material.
const ANNOUNCE: [&str; 5] = ["this", "these", "below", "following", "here"];

/// Returns the sentences of the user in `message`, in order.
pub fn own_words(message: &str) -> Vec<Sentence> {
    let pasted = pasted_from(message).unwrap_or(usize::MAX);
    let quoted = quotations(message);
    let mut own: Vec<Sentence> = Vec::new();
    let mut lead: Option<Sentence> = None;
    // The kind of the block with which the material began.
    let mut material: Option<Kind> = None;
    for block in blocks(message) {
        let is_over = match block.kind {
            Kind::Code | Kind::Quotation | Kind::Tool | Kind::Added => true,
            Kind::Prose => material == Some(Kind::Item),
            Kind::Heading => {
                // What follows a heading is a document. If the message begins with it, the heading names the document.
                if own.is_empty() {
                    own.extend(blocks::sentences(&block).into_iter().filter(Sentence::is_whole).take(1));
                }
                material = material.or((!own.is_empty()).then_some(Kind::Prose));
                false
            }
            _ => false,
        };
        if is_over {
            material = None;
        }
        if !block.is_said() {
            own.extend(lead.take().and_then(|lead| with_code(lead, &block)));
            continue;
        }
        if material == Some(Kind::Item) && block.kind == Kind::Item {
            add_item(&mut own, &block);
            continue;
        }
        if material.is_some() || (block.range.start >= pasted && own.iter().any(|said| is_prose(&said.text)))
        {
            continue;
        }
        for (place, sentence) in blocks::sentences(&block).into_iter().enumerate() {
            // Of lines without a mark between them, such as a program's output, only the first one is the user's.
            if place > 0 && sentence.is_item && block.kind == Kind::Prose {
                break;
            }
            if quoted
                .iter()
                .any(|quoted| quoted.start <= sentence.range.start && sentence.range.end <= quoted.end)
            {
                continue;
            }
            if let Some(lead) = lead.take() {
                own.extend(joined(lead, sentence));
                material = Some(block.kind);
                break;
            }
            match sentence.form {
                Form::Introduction if sentence.text.ends_with([':', '：']) => lead = Some(sentence),
                _ if sentence.is_whole() || sentence.form == Form::Aside => own.push(sentence),
                _ => {}
            }
        }
        if material.is_none() && lead.is_none() && announces_material(&block) {
            material = Some(Kind::Prose);
        }
    }
    own.extend(lead.and_then(alone));
    name_error(&mut own, message);
    own
}

/// Adds the first error in the material to the sentence before the material, because "see the log" says nothing
/// without the error.
fn name_error(own: &mut [Sentence], message: &str) {
    let Some(last) = own.last_mut() else { return };
    let Some(named) = first_error(&message[last.range.end..]) else { return };
    let head = last.text.trim_end_matches(['.', ':', ' ']);
    let text = format!("{head}: {named}");
    let both = Sentence { text, form: Form::Statement, is_open: true, ..last.clone() };
    if !last.text.contains(named.trim_end_matches('…')) && both.is_whole() {
        *last = both;
    }
}

/// Returns an introduction and the first sentence of its material as one sentence. If they are too long together,
/// returns the introduction alone.
fn joined(lead: Sentence, first: Sentence) -> Option<Sentence> {
    let text = format!("{} {}", lead.text, first.text);
    let both = Sentence { text, range: lead.range.start..first.range.end, ..first };
    if both.is_whole() { Some(both) } else { alone(lead) }
}

/// A sentence with items of a list has at most this many bytes. Arbitrary: two lines of a summary.
const LONGEST_LIST: usize = 240;

/// Adds an item of a list to the sentence with the list's introduction, as far as there is room.
fn add_item(own: &mut [Sentence], item: &Block) {
    let Some(last) = own.last_mut().filter(|last| last.is_item) else { return };
    let text = format!("{}; {}", last.text, item.text.trim().trim_end_matches('.'));
    if text.len() <= LONGEST_LIST && !item.text.contains('\n') {
        last.text = text;
        last.range.end = item.range.end;
    }
}

/// Returns an introduction together with the first sentence of the code after it, if this is prose, as an error message
/// is. Otherwise returns the introduction alone.
fn with_code(lead: Sentence, code: &Block) -> Option<Sentence> {
    let error = first_error(&code.text);
    let line = code.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let line = error.as_deref().unwrap_or(line);
    let first = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
    let text = format!("{} {first}", lead.text);
    let both = Sentence { text, form: Form::Statement, is_open: true, ..lead.clone() };
    if code.kind == Kind::Code && (error.is_some() || is_prose(first)) && both.is_whole() {
        Some(both)
    } else {
        alone(lead)
    }
}

/// Returns an introduction as a sentence of its own.
fn alone(lead: Sentence) -> Option<Sentence> {
    let text = lead.text.trim_end_matches([':', '：', ' ']).to_owned();
    let whole = Sentence { text, form: Form::Statement, ..lead };
    (whole.is_whole() && !announces(&whole.text)).then_some(whole)
}

/// Returns whether a paragraph announces that material follows, as "please proofread this" does.
fn announces_material(block: &Block) -> bool {
    block.kind == Kind::Prose && announces(&block.text)
}

/// Returns whether the last word of a text announces what follows it.
fn announces(text: &str) -> bool {
    let last = text.rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    last.is_some_and(|last| ANNOUNCE.contains(&last.to_lowercase().as_str()))
}

/// A sentence has at least this many words of letters only, or twice as many letters in a script without spaces. A
/// path, a command, a line of a log and a list of names have fewer. Arbitrary.
const LEAST_WORDS: usize = 3;

/// Returns whether a sentence is what a person writes, not a command, a path, a line of a log, or data.
pub fn is_prose(text: &str) -> bool {
    let begins =
        text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '"' | '“' | '`' | '@' | '¿' | '¡'));
    let is_word = |word: &str| {
        let word = word
            .trim_matches(|c: char| matches!(c, '.' | ',' | ':' | ';' | '!' | '?' | '"' | '(' | ')' | '`'));
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-'))
    };
    let words = text.split_whitespace().filter(|word| is_word(word)).count();
    let letters = text.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()).count();
    begins && (words >= LEAST_WORDS || letters >= 2 * LEAST_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn material_is_not_said_by_the_user() {
        for (message, expected) in [
            ("Fix the cache. It must stay small.", &["Fix the cache.", "It must stay small."][..]),
            (
                "Translate this: 'We moved to Kafka. We must use tabs.' Then commit it.",
                &["Translate this: 'We moved to Kafka.", "Then commit it."],
            ),
            (
                "Please proofread this\n\nDear Ana,\n\nWe moved to Kafka. We must use tabs.",
                &["Please proofread this"],
            ),
            (
                "Shorten the following mail:\n\nWe moved to Kafka. We must use tabs.\n\nBen decided it.",
                &["Shorten the following mail: We moved to Kafka."],
            ),
            (
                "Do these things:\n- Rename the cache\n- Drop the log\n\nThen run the tests.",
                &["Do these things: Rename the cache; Drop the log", "Then run the tests."],
            ),
            ("I get this error:\n```\nno cache\n```\nWhat is it?", &["I get this error", "What is it?"]),
        ] {
            let own: Vec<String> = own_words(message).into_iter().map(|sentence| sentence.text).collect();
            assert_eq!(own, expected, "{message}");
        }
    }
}
