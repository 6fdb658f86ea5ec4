//! Prepares a draft for the store: redacts it, derives its id, divides it into chunks, and counts its tokens. The
//! functions here are pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tiro_base::memory::{Content, Draft, Identity, Kind, Memory, MemoryId};
use tiro_redact::Redactor;
use tiro_store::{ChunkRange, PendingChunk, PreparedChunk, PreparedMemory};
use tiro_text::chunk::excerpt::Shown;
use tiro_text::chunk::index_text::About;
use tiro_text::chunk::{Chunk, Language, chunks, code};
use tiro_text::tokens::{self, joins_exactly};
use tiro_text::tuning::{CHUNK_OVERLAP, CHUNK_TOKENS};

/// The result of preparing drafts.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The memories, in the order of the drafts. Their chunks have no embeddings yet.
    pub memories: Vec<PreparedMemory>,
    /// How many secrets each rule replaced in the memories, in the order of the rules' names.
    pub redactions: Vec<(String, usize)>,
}

/// Prepares each of `drafts` with [`prepare`].
pub fn prepare_all(
    redactor: &Redactor,
    drafts: Vec<Draft>,
    fresh: &mut impl FnMut() -> [u8; 16],
) -> Prepared {
    let mut redactions = BTreeMap::<String, usize>::new();
    let mut memories: Vec<PreparedMemory> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let (memory, found) = prepare(redactor, draft, fresh);
        for (rule, count) in found {
            *redactions.entry(rule).or_default() += count;
        }
        memories.push(memory);
    }
    Prepared { memories, redactions: redactions.into_iter().collect() }
}

/// Turns `draft` into a memory. Returns the memory, and how many secrets each rule replaced in it.
///
/// `redactor` is the redactor of the project. The same secret gets the same mark everywhere in the draft's session. In
/// drafts without a session, a secret gets the same mark only in drafts of the same kind and name. `fresh` returns a
/// random key, which is used for a draft without an identity.
pub fn prepare(
    redactor: &Redactor,
    mut draft: Draft,
    fresh: &mut impl FnMut() -> [u8; 16],
) -> (PreparedMemory, Vec<(String, usize)>) {
    let redactor = redactor.within(&match (&draft.session, &draft.identity) {
        (Some(session), _) => format!("session {session}"),
        (None, Identity::Named(key)) => format!("{} {key}", draft.kind),
        (None, Identity::Text | Identity::Segment | Identity::Fresh | Identity::Known(_)) => {
            draft.kind.to_string()
        }
    });
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut clean = |text: &mut String| {
        let redacted = redactor.redact(text);
        found.extend(redacted.found.iter().map(|finding| (finding.rule.to_string(), finding.count)));
        if let Cow::Owned(cleaned) = redacted.text {
            *text = cleaned;
        }
    };
    clean(&mut draft.text);
    for field in [
        &mut draft.indexed,
        &mut draft.lead,
        &mut draft.speaker,
        &mut draft.title,
        &mut draft.topic,
        &mut draft.source_id,
        &mut draft.path,
        &mut draft.branch,
    ] {
        field.iter_mut().for_each(&mut clean);
    }
    if let Identity::Named(key) = &mut draft.identity {
        clean(key);
    }
    draft.files.iter_mut().for_each(&mut clean);
    draft.work.writes.iter_mut().for_each(|write| clean(&mut write.path));
    if let Some(commit) = &mut draft.commit {
        commit.files.iter_mut().for_each(&mut clean);
    }

    let derived = |key: &str| MemoryId::derive(draft.kind, draft.session.as_ref(), key);
    let id = match &draft.identity {
        Identity::Named(key) => derived(key),
        Identity::Text => {
            let same = same_text(draft.kind, &draft.text);
            derived(&format!("text:{}", blake3::hash(same.as_bytes()).to_hex()))
        }
        Identity::Segment => derived(&format!("segment:{}", blake3::hash(draft.text.as_bytes()).to_hex())),
        Identity::Fresh => derived(&format!("fresh:{}", blake3::hash(&fresh()).to_hex())),
        Identity::Known(id) => id.clone(),
    };
    let chunks = pieces(&draft, &id);
    let tokens = tokens::count(&draft.text) as i64;
    (PreparedMemory { id, tokens, chunks, draft }, found)
}

/// Returns the form of `text` that is equal for texts that count as the same. In prose, case, spaces and the stops at the
/// ends of words make no difference.
fn same_text(kind: Kind, text: &str) -> Cow<'_, str> {
    const STOPS: [char; 9] = ['.', ',', ';', ':', '!', '…', '。', '，', '！'];
    let words = text.split_whitespace().map(|word| word.trim_end_matches(STOPS));
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    match kind.content() == Content::Code || words.is_empty() {
        true => Cow::Borrowed(text.trim()),
        false => Cow::Owned(words.join(" ")),
    }
}

/// Returns the chunks of `draft`, which has the id `id`. They have no embeddings yet.
pub fn pieces(draft: &Draft, id: &MemoryId) -> Vec<PreparedChunk> {
    let line = Shown::of_draft(draft, id).line();
    let line_tokens = tokens::count(&line);
    // If redaction changed the beginning of the text, the whole text is embedded.
    let lead = draft.lead.as_deref().filter(|lead| draft.text.starts_with(lead)).unwrap_or(&draft.text);
    let pieces = match draft.path.as_deref() {
        Some(path) if matches!(draft.kind, Kind::CodeBlock | Kind::FileContent) => {
            let language = Language::of_path(path);
            let pieces = code(lead, language, &|text| tokens::count(text), CHUNK_TOKENS, CHUNK_OVERLAP);
            pieces.into_iter().map(|piece| piece.range).collect()
        }
        _ => chunks(lead, &|text| tokens::count(text), CHUNK_TOKENS, CHUNK_OVERLAP),
    };
    let piece = |Chunk { start, end }| {
        let piece = &draft.text[start..end];
        let tokens = excerpt_tokens(&line, line_tokens, piece) as i64;
        PreparedChunk { start, end, tokens, embedding: None }
    };
    pieces.into_iter().map(piece).collect()
}

/// Returns how many tokens the excerpts of `memory` have, one for each of its `chunks`.
pub fn shown_tokens(memory: &Memory, chunks: &[ChunkRange]) -> Vec<i64> {
    let line = Shown::of_memory(memory).line();
    let line_tokens = tokens::count(&line);
    let piece = |chunk: &ChunkRange| memory.text.get(chunk.start..chunk.end).unwrap_or_default();
    chunks.iter().map(|chunk| excerpt_tokens(&line, line_tokens, piece(chunk)) as i64).collect()
}

/// Returns how many tokens `line` and `piece` have when an answer shows them. All pieces of a memory have the same
/// line, which may be longer than a piece. So the tokens of the line are counted once, and are added wherever the sum
/// is exact.
fn excerpt_tokens(line: &str, line_tokens: usize, piece: &str) -> usize {
    let body = Shown::body(piece);
    match joins_exactly(line, &body) {
        true => line_tokens + tokens::count(&body),
        false => tokens::count(&format!("{line}{body}")),
    }
}

/// Returns the text to embed for a chunk of `memory`.
pub fn embedded_text(memory: &PreparedMemory, chunk: &PreparedChunk) -> String {
    About::from(&memory.draft).embedded(&memory.draft.text[chunk.start..chunk.end])
}

/// Returns the text to embed for a pending chunk.
pub fn pending_text(chunk: &PendingChunk) -> String {
    let about = About {
        kind: chunk.kind,
        role: chunk.role,
        speaker: chunk.speaker.as_deref(),
        title: chunk.title.as_deref(),
        topic: chunk.topic.as_deref(),
        path: chunk.path.as_deref(),
        time: chunk.time,
    };
    about.embedded(&chunk.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::Provenance;

    #[test]
    fn code_with_a_path_is_cut_between_items() {
        let function = |name: &str| {
            let lines: String = (0..8).map(|n| format!("    {name}_{n}(1, 2);\n\n")).collect();
            format!("fn {name}() {{\n{lines}}}\n\n")
        };
        let text = function("load") + &function("save");
        let cut = |path: Option<&str>, kind| {
            let mut draft = Draft::new(kind, Provenance::UserSaid, text.clone(), 0);
            draft.path = path.map(str::to_owned);
            let pieces = pieces(&draft, &MemoryId::derive(kind, None, "1"));
            pieces.iter().any(|piece| text[piece.start..].starts_with("fn save"))
        };
        assert!(cut(Some("src/a.rs"), Kind::FileContent) && cut(Some("src/a.rs"), Kind::CodeBlock));
        assert!(!cut(None, Kind::CodeBlock) && !cut(Some("src/a.rs"), Kind::Message));
    }
}
