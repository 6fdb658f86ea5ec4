//! The enums of a memory whose values are stored as one word: kind and group, provenance, the role of a speaker, and
//! the level of a summary.

/// Declares an enum. Each value of the enum is stored, parsed and shown as one word.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value, in order.
            #[allow(dead_code, reason = "of some enums, only tests list the values")]
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Returns the word by which the value is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Returns the value spelled `word`, or `None`.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub use words;

words! {
    /// The kind of a memory.
    Kind {
        /// One message of a conversation.
        Message = "message",
        /// A summary of messages.
        Summary = "summary",
        /// An exchange or a session, summarised.
        Conversation = "conversation",
        /// A git commit: message, stat and a bounded digest of its diff.
        Commit = "commit",
        /// A fact.
        Fact = "fact",
        /// A decision, and its reasons.
        Decision = "decision",
        /// A piece of code.
        CodeBlock = "code_block",
        /// A file, or part of one.
        FileContent = "file_content",
        /// An error message or a stack trace.
        ErrorLog = "error_log",
        /// Output of a program.
        DebugOutput = "debug_output",
        /// The state of a task.
        TaskState = "task_state",
        /// The findings of an inquiry.
        Research = "research",
        /// A document of the repository: instructions for agents, or the record of a decision.
        Document = "document",
    }
}

words! {
    /// The origin of a memory's text, which decides how far readers can trust it.
    Provenance {
        /// A user typed it.
        UserSaid = "user_said",
        /// A model wrote it.
        ModelSaid = "model_said",
        /// A tool printed it.
        ToolOutput = "tool_output",
        /// It was read from a file.
        File = "file",
        /// The memory was read from a git commit.
        GitCommit = "git_commit",
        /// The memory was read from another program's history.
        Imported = "imported",
        /// It was computed from other memories.
        Derived = "derived",
    }
}

words! {
    /// The role of a message's speaker.
    Role {
        /// The user, or an agent in the user's place.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool's result.
        Tool = "tool",
        /// Instructions of the client.
        System = "system",
    }
}

words! {
    /// The groups of kinds. A search takes candidates from each group separately, so that no kind crowds out another.
    Group {
        /// Conversations and summaries.
        Conversation = "conversation",
        /// Commits.
        Commit = "commit",
        /// Facts, decisions, research and task states.
        Note = "note",
        /// Messages.
        Message = "message",
        /// Documents of the repository.
        Document = "document",
        /// Code, files, logs and output. A search includes them only if its filter asks for them.
        Artifact = "artifact",
    }
}

words! {
    /// The level of detail of a summary.
    Level {
        /// One or two sentences: the outcome.
        Brief = "brief",
        /// A paragraph: the main points.
        Standard = "standard",
        /// Several paragraphs, which also say how the outcome was reached.
        Detailed = "detailed",
    }
}

impl Provenance {
    /// Every provenance, the most trusted first.
    ///
    /// The user and the model of a session are trusted most. A commit may come from anyone, and so may text that was
    /// computed from it. A file, another program's history and a tool's output may contain text of strangers.
    const BY_TRUST: [Provenance; 7] = [
        Provenance::UserSaid,
        Provenance::ModelSaid,
        Provenance::GitCommit,
        Provenance::Derived,
        Provenance::File,
        Provenance::Imported,
        Provenance::ToolOutput,
    ];

    /// Returns the least trusted of `all`, which is the provenance of a text made from all of them. Returns `derived`
    /// if `all` is empty.
    pub fn lowest(all: impl IntoIterator<Item = Provenance>) -> Provenance {
        let place = |one: &Provenance| Provenance::BY_TRUST.iter().position(|each| each == one);
        all.into_iter().max_by_key(place).unwrap_or(Provenance::Derived)
    }
}

/// Whether a text is prose or code. Different embedding models may be used for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Sentences.
    Prose,
    /// Code, files and logs.
    Code,
}

impl Kind {
    /// Returns what texts of this kind consist of.
    pub fn content(self) -> Content {
        match self.group() {
            Group::Artifact => Content::Code,
            _ => Content::Prose,
        }
    }

    /// Returns the group of the kind.
    pub fn group(self) -> Group {
        match self {
            Kind::Conversation | Kind::Summary => Group::Conversation,
            Kind::Commit => Group::Commit,
            Kind::Fact | Kind::Decision | Kind::Research | Kind::TaskState => Group::Note,
            Kind::Message => Group::Message,
            Kind::Document => Group::Document,
            Kind::CodeBlock | Kind::FileContent | Kind::ErrorLog | Kind::DebugOutput => Group::Artifact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_text_is_trusted_as_its_least_trusted_source() {
        use Provenance::*;
        assert_eq!(Provenance::lowest([UserSaid, ModelSaid]), ModelSaid);
        assert_eq!(Provenance::lowest([ToolOutput, UserSaid, Imported]), ToolOutput);
        assert_eq!(Provenance::lowest([]), Derived);
        for one in Provenance::ALL {
            assert_eq!(Provenance::lowest([*one, UserSaid]), *one);
        }
    }

    #[test]
    fn words_parse_as_they_print() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(Kind::parse("Message"), None);
    }
}
