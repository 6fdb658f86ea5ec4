//! Who speaks: a person, an assistant, or neither.

use tiro_base::memory::Role;

/// Names of assistants and of roles. A speaker with such a name is not a person.
const ASSISTANTS: [&str; 18] = [
    "agent",
    "ai",
    "assistant",
    "bot",
    "chatgpt",
    "claude",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "gpt",
    "llama",
    "model",
    "opus",
    "sonnet",
    "haiku",
    "system",
    "tool",
];

/// The kind of speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// A person: the user, or anyone with a name of their own.
    Person(String),
    /// An assistant.
    Assistant,
    /// A tool, or the system.
    Other,
}

impl Voice {
    /// Returns the kind of speaker of a message. `speaker` is the speaker's name, and `role` is the speaker's role.
    ///
    /// In a conversation of two people, one of them may have the role of the assistant. The name then shows that the
    /// speaker is a person.
    pub fn of(role: Option<Role>, speaker: Option<&str>) -> Voice {
        let name = speaker.map(str::trim).filter(|name| !name.is_empty());
        match (role, name) {
            (Some(Role::User), name) => Voice::Person(name.unwrap_or("user").to_lowercase()),
            (Some(Role::Assistant), Some(name)) if is_persons_name(name) => {
                Voice::Person(format!("assistant {}", name.to_lowercase()))
            }
            (Some(Role::Assistant), _) => Voice::Assistant,
            _ => Voice::Other,
        }
    }
}

/// A message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// The ordinal of the message in the session.
    pub ordinal: i64,
    /// The speaker's role.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<&'a str>,
    /// The text.
    pub text: &'a str,
}

impl Said<'_> {
    /// Returns the kind of speaker.
    pub fn voice(&self) -> Voice {
        Voice::of(self.role, self.speaker)
    }
}

/// Returns whether a speaker's name is the name of a person.
fn is_persons_name(name: &str) -> bool {
    let begins =
        name.starts_with(char::is_uppercase) && name.chars().all(|c| c.is_alphabetic() || " .'-".contains(c));
    let is_assistants = |word: &str| ASSISTANTS.contains(&word.to_lowercase().as_str());
    begins && !name.split(|c: char| !c.is_alphanumeric()).any(is_assistants)
}
