//! Reads JSON messages that other programs exported. Fields may have one of several names.
//!
//! An object is a message, or a conversation with a list of messages. For each part that can't be read, the reason is
//! returned, so that the caller can report it with the number of the line.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::clean::{self, Private};
use super::entry::time;
use super::evidence::WrittenFile;
use super::fields::{Fields, scalar};
use super::gist;
use super::transcript::objects;
use tiro_base::memory::{Millis, Role};

/// The names of fields, in order of preference.
const ROLES: [&str; 6] = ["role", "author", "from", "sender", "speaker", "type"];
const TEXTS: [&str; 6] = ["text", "content", "message", "body", "value", "parts"];
const TIMES: [&str; 7] = ["time", "timestamp", "created_at", "createdAt", "create_time", "date", "ts"];
const SESSIONS: [&str; 8] = [
    "session",
    "session_id",
    "sessionId",
    "conversation_id",
    "conversationId",
    "thread_id",
    "thread",
    "chat_id",
];
const IDS: [&str; 4] = ["id", "uuid", "message_id", "messageId"];
const SPEAKERS: [&str; 2] = ["speaker", "name"];
const LISTS: [&str; 5] = ["messages", "conversations", "conversation", "turns", "items"];

/// A message that another program kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The role of the speaker.
    pub role: Role,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// The text.
    pub text: String,
    /// The time when it was said.
    pub time: Option<Millis>,
    /// The other program's id of the message.
    pub id: Option<String>,
    /// The other program's name of the conversation.
    pub session: Option<String>,
    /// The files that it changed, if it is a tool call. The paths are those of the machine on which it ran.
    pub written: Vec<WrittenFile>,
    /// The files one or more of which it may have changed, if it is a tool call of which the export leaves out the path.
    /// The paths may be names without folders.
    pub likely: Vec<WrittenFile>,
    /// The abbreviated ids of the commits that it made, as far as git printed them; `None` if it made none.
    pub commits: Option<Vec<String>>,
}

impl Said {
    /// Returns a message of which nothing more is known than its role and text.
    pub fn new(role: Role, text: String) -> Said {
        let (speaker, time, id, session) = (None, None, None, None);
        let (written, likely) = (Vec::new(), Vec::new());
        Said { role, speaker, text, time, id, session, written, likely, commits: None }
    }
}

/// Returns the messages in a line of JSON, and the reasons why parts of the line can't be read.
pub fn read(line: &str) -> (Vec<Said>, Vec<&'static str>) {
    let (objects, rest) = objects(line);
    let mut problems = Vec::new();
    if !rest.is_empty() || objects.is_empty() {
        problems.push("is not JSON with an object");
    }
    let mut found = Vec::new();
    for object in objects {
        let list = LISTS.iter().map(|name| object.items(name)).find(|items| !items.is_empty());
        let Some(list) = list else {
            match said(&object) {
                Ok(said) => found.push(said),
                Err(problem) => problems.push(problem),
            }
            continue;
        };
        // If an object contains messages, its id is the id of the conversation.
        let session = first(&object, &SESSIONS).or_else(|| first(&object, &IDS)).map(Cow::into_owned);
        for each in list {
            match said(&Fields::of(each)) {
                Ok(said) => found.push(Said { session: said.session.or_else(|| session.clone()), ..said }),
                Err(problem) => problems.push(problem),
            }
        }
    }
    (found, problems)
}

fn said(fields: &Fields<'_>) -> Result<Said, &'static str> {
    let inner = fields.object("message");
    let role = roles(&inner)
        .or_else(|| roles(fields))
        .ok_or("has no role, or one that is not user, assistant, tool or system")?;
    let text = texts(&inner).or_else(|| texts(fields)).ok_or("has no text")?;
    let text = clean::readable(Private::default().strip(text)).trim().to_owned();
    if text.is_empty() {
        return Err("has no text");
    }
    let either = |names: &[&str]| first(fields, names).or_else(|| first(&inner, names)).map(Cow::into_owned);
    let speaker = either(&SPEAKERS).filter(|name| self::role(name).is_none());
    let time = time(first(fields, &TIMES).or_else(|| first(&inner, &TIMES)));
    Ok(Said { speaker, time, id: either(&IDS), session: either(&SESSIONS), ..Said::new(role, text) })
}

fn first<'a>(fields: &Fields<'a>, names: &[&str]) -> Option<Cow<'a, str>> {
    names.iter().find_map(|name| fields.filled(name))
}

fn roles(fields: &Fields<'_>) -> Option<Role> {
    // The role may be in an object: `"author": {"role": "user"}`.
    let inner = fields.object("author");
    ROLES.iter().find_map(|name| role(&fields.filled(name)?)).or_else(|| role(&inner.filled("role")?))
}

fn role(name: &str) -> Option<Role> {
    match name.trim().to_ascii_lowercase().as_str() {
        "user" | "human" | "prompter" | "person" | "me" => Some(Role::User),
        "assistant" | "ai" | "model" | "bot" | "agent" | "gpt" | "gemini" | "claude" => Some(Role::Assistant),
        "tool" | "function" | "tool_result" => Some(Role::Tool),
        "system" | "developer" => Some(Role::System),
        _ => None,
    }
}

fn texts<'a>(fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    let text = |raw: &'a RawValue| scalar(raw).unwrap_or_else(|| gist::content(raw));
    TEXTS.iter().filter_map(|name| fields.raw(name).map(text)).find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_under_the_usual_names() {
        for (line, role, text) in [
            (r#"{"role":"user","text":"a"}"#, Role::User, "a"),
            (r#"{"from":"human","value":"a"}"#, Role::User, "a"),
            (r#"{"author":{"role":"assistant"},"content":{"parts":["a"]}}"#, Role::Assistant, "a"),
            (
                r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"}]}}"#,
                Role::User,
                "a",
            ),
            (r#"{"sender":"AI","body":42}"#, Role::Assistant, "42"),
            (r#"{"messages":[{"role":"user","content":"a \ud83d"}]}"#, Role::User, "a \u{fffd}"),
        ] {
            let (found, problems) = read(line);
            assert_eq!(problems, [""; 0], "{line}");
            assert_eq!((found[0].role, found[0].text.as_str()), (role, text), "{line}");
        }
    }

    #[test]
    fn what_belongs_to_a_message_is_read() {
        let (found, _) =
            read(r#"{"role":"user","name":"Mara","content":"a","ts":1770000000,"id":7,"thread_id":"t"}"#);
        let said = &found[0];
        assert_eq!((said.speaker.as_deref(), said.time), (Some("Mara"), Some(1_770_000_000_000)));
        assert_eq!((said.id.as_deref(), said.session.as_deref()), (Some("7"), Some("t")));
        let (found, _) =
            read(r#"{"id":"c","messages":[{"role":"user","text":"a"},{"role":"assistant","text":"b"}]}"#);
        assert!(found.len() == 2 && found.iter().all(|said| said.session.as_deref() == Some("c")));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (line, problem) in [
            ("x", "is not JSON with an object"),
            ("[1]", "is not JSON with an object"),
            (r#"{"role":"user"}"#, "has no text"),
            (r#"{"text":"a"}"#, "has no role, or one that is not user, assistant, tool or system"),
            (r#"{"role":"user","text":"a"}{"#, "is not JSON with an object"),
        ] {
            assert_eq!(read(line).1, [problem], "{line}");
        }
    }
}
