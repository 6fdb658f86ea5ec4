//! Reads the questions that a client asked the user in a dialog, and the answers.
//!
//! Codex and Cursor state in the call which questions they ask, and in its result only the ids of the questions and of
//! the chosen options. Both together become a text in the form that Claude Code writes.

use crate::import::fields::{Fields, string};

/// A question of a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::import) struct Question {
    id: String,
    text: String,
    /// The id and the label of each option.
    options: Vec<(String, String)>,
}

/// Returns the questions in the arguments of a call; none if the call asks nothing.
pub(in crate::import) fn questions(fields: &Fields<'_>) -> Vec<Question> {
    let question = |fields: Fields<'_>| {
        let text = fields.filled("question").or_else(|| fields.filled("prompt"))?;
        let option = |fields: Fields<'_>| {
            let label = fields.filled("label")?.into_owned();
            Some((fields.filled("id").map_or_else(|| label.clone(), |id| id.into_owned()), label))
        };
        Some(Question {
            id: fields.filled("id")?.into_owned(),
            text: one_line(&text),
            options: fields.items("options").into_iter().map(Fields::of).filter_map(option).collect(),
        })
    };
    fields.items("questions").into_iter().map(Fields::of).filter_map(question).collect()
}

/// Returns the questions with their answers in one text. `output` is the result of the call in JSON. Returns `None` if
/// it answers none of the questions.
pub(in crate::import) fn answered(questions: &[Question], output: &str) -> Option<String> {
    let fields = Fields::parse(output).ok()?;
    let list = fields.items("answers");
    let by_id = fields.object("answers");
    let pairs = questions.iter().filter_map(|question| {
        let answer = match list.is_empty() {
            // Cursor: a list of objects, each with the id of its question.
            false => {
                let of_question =
                    |answer: &Fields<'_>| answer.text("questionId").as_deref() == Some(&question.id);
                let answer = list.iter().map(|raw| Fields::of(raw)).find(of_question)?;
                let chosen = answer.items("selectedOptionIds").into_iter().filter_map(string);
                chosen.chain(answer.filled("freeformText")).map(|text| text.into_owned()).collect()
            }
            // Codex: an object with a list of answers for each id.
            true => {
                let answers = by_id.object(&question.id).items("answers");
                answers.into_iter().filter_map(string).map(|text| text.into_owned()).collect::<Vec<_>>()
            }
        };
        let label = |id: &String| {
            let option = question.options.iter().find(|(each, _)| each == id);
            one_line(option.map_or(id.as_str(), |(_, label)| label))
        };
        let answer: Vec<String> = answer.iter().map(label).collect();
        (!answer.is_empty()).then(|| (question.text.as_str(), answer.join("; ")))
    });
    told(pairs)
}

/// Returns pairs of a question and its answer in one text; `None` if there are none.
pub(in crate::import) fn told<'t>(pairs: impl IntoIterator<Item = (&'t str, String)>) -> Option<String> {
    let pair =
        |(question, answer): (&str, String)| format!("\"{}\"=\"{}\"", one_line(question), one_line(&answer));
    let pairs: Vec<String> = pairs.into_iter().filter(|(_, answer)| !answer.is_empty()).map(pair).collect();
    (!pairs.is_empty()).then(|| format!("User has answered your questions: {}.", pairs.join(", ")))
}

/// Returns a text in one line, without quotation marks, which surround it later.
fn one_line(text: &str) -> String {
    text.replace('"', "'").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(arguments: &str, output: &str) -> Option<String> {
        answered(&questions(&Fields::parse(arguments).unwrap()), output)
    }

    #[test]
    fn ids_become_questions_and_labels() {
        let cursor = r#"{"questions":[{"id":"q","prompt":"Which \"crane\"?","options":[
            {"id":"b","label":"The blue one"},{"id":"r","label":"The red one"}]},{"id":"n","prompt":"Its name?"}]}"#;
        let chosen = r#"{"answers":[{"freeformText":"","questionId":"q","selectedOptionIds":["b","r"]},
            {"freeformText":"Ada","questionId":"n","selectedOptionIds":[]}]}"#;
        let expected = "User has answered your questions: \"Which 'crane'?\"=\"The blue one; The red one\", \
            \"Its name?\"=\"Ada\".";
        assert_eq!(answer(cursor, chosen).as_deref(), Some(expected));
        let codex = r#"{"questions":[{"id":"q","header":"Crane","question":"Which crane?","options":[
            {"label":"Blue (Recommended)","description":"It is free"}]}]}"#;
        let chosen = r#"{"answers":{"q":{"answers":["Blue (Recommended)"]}}}"#;
        let expected = "User has answered your questions: \"Which crane?\"=\"Blue (Recommended)\".";
        assert_eq!(answer(codex, chosen).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_not_answered_is_left_out() {
        let asked = r#"{"questions":[{"id":"q","prompt":"Which?","options":[]},{"prompt":"No id"},7]}"#;
        for output in ["", "cancelled", "{}", r#"{"answers":[]}"#, r#"{"answers":{"x":{"answers":["y"]}}}"#] {
            assert_eq!(answer(asked, output), None, "{output}");
        }
        assert!(questions(&Fields::parse(r#"{"questions":"all"}"#).unwrap()).is_empty());
    }
}
