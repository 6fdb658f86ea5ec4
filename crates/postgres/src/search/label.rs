//! The list of a search to which a chunk belongs: the group of its memory's kind, or long answers, which would fill the
//! list of messages.

use tiro_base::memory::{Group, Kind, Role};
use tiro_text::tuning::CHUNK_TOKENS;

/// The label of long answers: the number after those of the groups.
const ANSWERS: i16 = Group::ALL.len() as i16;

/// Returns the label of the chunks of a memory with so many tokens.
pub(crate) fn label(kind: Kind, role: Option<Role>, tokens: i64) -> i16 {
    let is_answer = kind == Kind::Message && role == Some(Role::Assistant) && tokens > CHUNK_TOKENS as i64;
    if is_answer { ANSWERS } else { kind.group() as i16 }
}

/// Returns the SQL expression for the label of the memory `m`.
pub(crate) fn label_sql() -> String {
    let of_kind = |kind: &Kind| format!(" WHEN '{}' THEN {}", kind.as_str(), kind.group() as i16);
    let of_kinds: String = Kind::ALL.iter().map(of_kind).collect();
    format!(
        "(CASE WHEN {} THEN {ANSWERS} ELSE CASE m.kind{of_kinds} END END)::int2",
        crate::columns::is_answer()
    )
}

/// Returns the labels of the lists that a search of the groups fills, in order.
pub(crate) fn labels(groups: &[Group]) -> Vec<i16> {
    let answers = groups.contains(&Group::Message).then_some(ANSWERS);
    groups.iter().map(|group| *group as i16).chain(answers).collect()
}
