//! PostgreSQL has no text with U+0000. Such a character, for example in the output of a tool, is stored as U+001A, the
//! control character that stands for one that can't be represented. It has one byte too, so that places in the text stay
//! what they are.

use std::borrow::Cow;

use tiro_base::memory::Draft;
use tiro_store::PreparedMemory;

/// Returns the memory as it can be stored.
pub(crate) fn storable(memory: &PreparedMemory) -> Cow<'_, PreparedMemory> {
    match texts(&memory.draft).any(|text| text.contains('\0')) {
        true => Cow::Owned(replaced(memory.clone())),
        false => Cow::Borrowed(memory),
    }
}

/// Returns a text as it can be stored.
pub(crate) fn storable_text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{1a}") } else { text }
}

fn replaced(mut memory: PreparedMemory) -> PreparedMemory {
    let draft = &mut memory.draft;
    let optional = [
        &mut draft.indexed,
        &mut draft.speaker,
        &mut draft.title,
        &mut draft.topic,
        &mut draft.source_id,
        &mut draft.path,
        &mut draft.occurrence,
        &mut draft.branch,
        &mut draft.head_sha,
    ];
    let changed = draft.commit.iter_mut().flat_map(|commit| &mut commit.files);
    let every =
        optional.into_iter().flatten().chain(&mut draft.files).chain([&mut draft.text]).chain(changed);
    every.for_each(|text| *text = storable_text(std::mem::take(text)));
    memory
}

fn texts(draft: &Draft) -> impl Iterator<Item = &String> {
    let optional = [
        &draft.indexed,
        &draft.speaker,
        &draft.title,
        &draft.topic,
        &draft.source_id,
        &draft.path,
        &draft.occurrence,
        &draft.branch,
        &draft.head_sha,
    ];
    let changed = draft.commit.iter().flat_map(|commit| &commit.files);
    optional.into_iter().flatten().chain(&draft.files).chain([&draft.text]).chain(changed)
}
