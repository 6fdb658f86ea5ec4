//! Other names of arguments, synonyms of their values, and an example of each argument.

use serde_json::{Map, Value};

use super::values::unquoted;
use crate::common::plain;

/// The names of wrapper objects that clients put around the arguments.
pub(super) const WRAPPERS: [&str; 8] =
    ["arguments", "args", "kwargs", "input", "parameters", "params", "tool_input", "toolInput"];

/// The names of arguments, each with other names that models and clients use for it. If a name is listed for several
/// arguments, it means the first of them that the tool has.
const ALSO_CALLED: [(&str, &[&str]); 64] = [
    ("k", COUNTS),
    ("limit", COUNTS),
    ("top_k", COUNTS),
    ("messages", &["message", "history", "chat_history", "turns", "transcript"]),
    (
        "text",
        &["content", "contents", "memory", "message", "body", "value", "fact", "note", "statement", "data"],
    ),
    (
        "instructions",
        &[
            "instruction",
            "prompt",
            "question",
            "message",
            "query",
            "task",
            "request",
            "text",
            "input",
            "content",
        ],
    ),
    (
        "query",
        &[
            "q",
            "question",
            "search",
            "search_query",
            "search_term",
            "search_terms",
            "keywords",
            "keyword",
            "prompt",
            "input",
            "text",
            "content",
            "term",
            "queries",
        ],
    ),
    ("ids", &["id", "memory_id", "memory_ids", "memories", "message_ids", "message_id"]),
    (
        "segment_ids",
        &["ids", "id", "segment_id", "memory_ids", "memory_id", "message_ids", "segments", "messages"],
    ),
    (
        "id",
        &[
            "memory_id",
            "ids",
            "message_id",
            "session_id",
            "session",
            "conversation_id",
            "commit",
            "commit_id",
            "sha",
            "hash",
            "name",
            "ref",
            "reference",
            "uuid",
            "msg_id",
        ],
    ),
    ("session_id", SESSIONS),
    ("sessions", SESSIONS),
    ("conversation_ids", SESSIONS),
    ("kinds", &["kind", "type", "types", "memory_type", "memory_types", "categories", "category"]),
    ("type", &["kind", "memory_type", "category", "kinds"]),
    ("topic", &["tag", "tags", "label", "labels", "topics", "subject"]),
    ("since", BEGINNINGS),
    ("start", BEGINNINGS),
    ("start_time", BEGINNINGS),
    ("until", ENDS),
    ("end", ENDS),
    ("end_time", ENDS),
    (
        "max_tokens",
        &[
            "tokens",
            "token_limit",
            "token_budget",
            "budget",
            "max_token",
            "limit_tokens",
            "max_output_tokens",
        ],
    ),
    ("path", FILES),
    ("lines", &["line", "line_range", "range", "line_number", "line_numbers"]),
    ("rev", &["revision", "commit", "commit_id", "sha", "ref", "branch"]),
    ("file", FILES),
    (
        "source",
        &["source_id", "commit", "commit_id", "sha", "message_id", "path", "file", "file_path", "filename"],
    ),
    ("branch", &["branch_name", "git_branch", "branches"]),
    ("cursor", &["next_cursor", "page_token", "next_page_token", "offset", "next"]),
    ("role", &["from", "sender", "author_role"]),
    ("speaker", &["name", "author", "user", "sender"]),
    ("time", &["timestamp", "date", "created_at", "datetime", "at", "ts"]),
    ("importance", &["priority", "weight", "salience"]),
    ("important", &["is_important", "mark", "flag", "marked", "value"]),
    ("references", &["refs", "related", "related_ids", "related_to", "links", "reference_ids"]),
    ("supersedes", &["replaces", "supersede", "overrides", "superseded", "replaced_ids"]),
    ("dry_run", &["dryrun", "preview", "simulate", "estimate"]),
    ("purge", &["permanent", "permanently", "hard_delete"]),
    ("undo", &["restore", "operation", "operation_id", "undo_id"]),
    ("level", &["detail", "detail_level", "level_of_detail", "depth", "granularity"]),
    ("include_level", &["level", "detail", "detail_level", "mode"]),
    ("strategy", &["mode", "order", "sort", "sort_by", "order_by"]),
    ("expand_context", &["expand", "include_context", "with_context", "include_neighbors"]),
    ("focus", &["topic", "topics", "about", "query", "question"]),
    ("before", &["messages_before", "context_before"]),
    ("after", &["messages_after", "context_after"]),
    ("segments", &["texts", "text", "content", "contents", "items"]),
    ("expires_in_days", &["ttl_days", "expire_in_days", "expiry_days", "expiration_days", "expires_days"]),
    ("protected", &["protect", "pinned"]),
    ("min_similarity", &["similarity", "threshold", "similarity_threshold", "min_score", "score_threshold"]),
    ("from_segment", &["segment_id", "segment", "from_id", "id"]),
    ("max_hops", &["hops"]),
    ("provider", &["provider_name", "name", "service"]),
    ("config", &["settings", "configuration"]),
    ("set_as_default", &["default", "is_default", "make_default", "as_default"]),
    ("operation", &["action", "command", "op"]),
    ("endpoint", &["base_url", "url", "api_base", "host"]),
    ("api_key_env", &["key_variable", "api_key_variable", "api_key_env_var", "env"]),
    ("model", &["model_name", "model_id"]),
    ("context", &["files", "paths", "file_paths", "context_paths", "context_files"]),
    ("wait_s", &["wait", "wait_seconds", "timeout", "timeout_s"]),
    ("assistant", &["assistant_name", "model", "provider", "name"]),
    ("paths", &["path", "files", "file", "file_path", "file_paths", "context", "directory", "folder"]),
];

const COUNTS: &[&str] = &[
    "k",
    "limit",
    "top_k",
    "n",
    "top_n",
    "num_results",
    "n_results",
    "max_results",
    "results",
    "num",
    "count",
    "page_size",
    "max_hits",
];
const SESSIONS: &[&str] = &[
    "session_id",
    "session_ids",
    "session",
    "sessions",
    "session_name",
    "conversation_id",
    "conversation_ids",
    "conversation",
    "conversations",
    "thread_id",
    "thread",
    "chat_id",
];
const BEGINNINGS: &[&str] = &[
    "since",
    "start",
    "start_time",
    "start_date",
    "from",
    "from_date",
    "date_from",
    "from_time",
    "after",
    "after_date",
    "newer_than",
];
const ENDS: &[&str] = &[
    "until",
    "end",
    "end_time",
    "end_date",
    "to",
    "to_date",
    "date_to",
    "to_time",
    "before",
    "before_date",
    "older_than",
];
const FILES: &[&str] =
    &["path", "file", "file_path", "filename", "file_name", "current_file", "directory", "folder"];

/// Lists of words with the same meaning as a value of an argument. If a word occurs in two lists, it means the first
/// value that the argument takes.
const SAME: [&[&str]; 16] = [
    &["brief", "short", "concise", "low", "minimal", "small", "summary"],
    &["standard", "normal", "medium", "default", "regular", "balanced", "mixed"],
    &["detailed", "detail", "details", "long", "high", "verbose", "deep", "full"],
    &["messages", "raw", "transcript", "original", "all", "everything"],
    &["summary", "summaries", "brief", "short", "compact"],
    &["mixed", "auto", "hybrid", "both", "balanced", "standard", "default", "medium"],
    &["full", "all", "complete", "everything", "detailed", "messages"],
    &["relevance", "relevant", "similarity", "semantic", "best"],
    &["recency", "recent", "latest", "newest", "time", "date"],
    &["files", "context"],
    &["thread", "session", "conversation", "history", "all", "everything"],
    &["set", "add", "update", "configure", "create", "change", "edit"],
    &["show", "list", "get", "read", "view", "status"],
    &["default", "set_default", "make_default"],
    &["high", "max", "maximum", "xhigh", "very_high"],
    &["medium", "auto", "normal", "default"],
];

/// An example, as JSON, of each argument that is described better by its name than by its type.
const EXAMPLES: [(&str, &str); 38] = [
    ("", r#"{"query": "why is the cache off"}"#),
    ("query", r#""why is the cache off""#),
    ("text", r#""The cache is off because it returned stale rows""#),
    ("instructions", r#""Review src/main.rs""#),
    ("messages", r#"[{"role": "user", "text": "Why is the cache off?"}]"#),
    ("segments", r#"[{"text": "output of the failing test"}]"#),
    ("role", r#""user""#),
    ("id", r#""m1a2b3c4d5e6f7" or "auth#12""#),
    ("lines", r#""12-20""#),
    ("rev", r#""HEAD~2""#),
    ("ids", r#"["m1a2b3c4d5e6f7"]"#),
    ("segment_ids", r#"["m1a2b3c4d5e6f7", "auth#0-49"]"#),
    ("references", r#"["m1a2b3c4d5e6f7"]"#),
    ("supersedes", r#"["m1a2b3c4d5e6f7"]"#),
    ("from_segment", r#""m1a2b3c4d5e6f7""#),
    ("session_id", r#""auth""#),
    ("sessions", r#"["auth"]"#),
    ("conversation_ids", r#"["auth"]"#),
    ("kinds", r#"["decision", "commit"]"#),
    ("type", r#""decision""#),
    ("k", "10"),
    ("limit", "20"),
    ("top_k", "5"),
    ("max_tokens", "2000"),
    ("importance", "0.8"),
    ("min_similarity", "0.3"),
    ("expires_in_days", "7"),
    ("temperature", "0.7"),
    ("since", r#""2026-03-01""#),
    ("until", r#""2026-03-31""#),
    ("start", r#""2026-03-01""#),
    ("end", r#""2026-03-31""#),
    ("time_range", r#"{"start": "2026-03-01", "end": "2026-03-31"}"#),
    ("time", r#""2026-03-01T09:30:00Z""#),
    ("filters", r#"{"type": "decision"}"#),
    ("config", r#"{"model": "llama3.2"}"#),
    ("context", r#"["src/main.rs"]"#),
    ("paths", r#"["src"]"#),
];

/// The argument that a given name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedArgument<'a> {
    /// An argument of the tool.
    Own(&'a str),
    /// A field of an argument that is an object.
    Inner(&'a str, &'a str),
}

impl<'a> NamedArgument<'a> {
    /// Returns the argument's own name.
    pub fn name(self) -> &'a str {
        match self {
            NamedArgument::Own(name) | NamedArgument::Inner(_, name) => name,
        }
    }
}

/// Returns the argument of `properties` that `name` means, in camelCase, kebab-case or snake_case. Returns `None` if
/// there is none. A field of an argument counts as an argument if no other argument has a field of that name.
pub(super) fn resolve<'a>(name: &str, properties: &'a Map<String, Value>) -> Option<NamedArgument<'a>> {
    let name = snake_case(name);
    if let Some(own) = known(&name, properties) {
        return Some(NamedArgument::Own(own));
    }
    let inner = |(outer, schema): (&'a String, &'a Value)| {
        let fields = schema.get("properties").and_then(Value::as_object)?;
        Some(NamedArgument::Inner(outer, known(&name, fields)?))
    };
    let mut inner = properties.iter().filter_map(inner);
    inner.next().filter(|_| inner.next().is_none())
}

fn known<'a>(name: &str, properties: &'a Map<String, Value>) -> Option<&'a str> {
    let own = |name: &str| properties.get_key_value(name).map(|(own, _)| own.as_str());
    own(name).or_else(|| {
        let also = ALSO_CALLED.iter().filter(|(_, others)| others.contains(&name));
        also.map(|(own, _)| *own).find_map(own)
    })
}

/// Returns the choice in `choices` that `word` means, ignoring case and spaces. Returns `None` if there is none.
pub(super) fn choice<'a>(word: &str, choices: &[&'a str]) -> Option<&'a str> {
    let word = plain(unquoted(word));
    let is_same = |choice: &&&str| {
        **choice == word || format!("{choice}s") == word || choice.strip_suffix('s') == Some(word.as_str())
    };
    choices.iter().find(is_same).copied().or_else(|| {
        let same = SAME.iter().filter(|words| words.contains(&word.as_str()));
        same.map(|words| words[0]).find_map(|first| choices.iter().find(|choice| **choice == first).copied())
    })
}

/// Returns an example, as JSON, of the argument `name` with the schema `schema`.
pub(super) fn example(name: &str, schema: &Map<String, Value>) -> String {
    if let Some((_, example)) = EXAMPLES.iter().find(|(known, _)| *known == name) {
        return (*example).to_owned();
    }
    let first = schema.get("enum").and_then(Value::as_array).and_then(|choices| choices.first());
    match (first, schema.get("type").and_then(Value::as_str)) {
        (Some(first), _) => first.to_string(),
        (None, Some("integer")) => schema.get("minimum").map_or("10".to_owned(), |least| least.to_string()),
        (None, Some("number")) => "0.5".to_owned(),
        (None, Some("boolean")) => "true".to_owned(),
        (None, Some("array")) => "[\"…\"]".to_owned(),
        (None, Some("object")) => "{}".to_owned(),
        _ => "\"…\"".to_owned(),
    }
}

/// Returns a camelCase or kebab-case name in snake_case. Several capitals in a row count as one word: `sessionID`
/// becomes `session_id`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut previous = '_';
    for letter in name.trim().chars() {
        if letter.is_ascii_uppercase() && (previous.is_ascii_lowercase() || previous.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(if letter == '-' || letter == ' ' { '_' } else { letter.to_ascii_lowercase() });
        previous = letter;
    }
    snake
}
