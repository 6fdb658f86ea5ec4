//! Makes what arrived from a peer ready to be stored. Except for the choice of the models, everything here is pure.

use crate::config::Encoding;
use crate::engine::Engine;
use tiro_base::memory::{Content, Draft, Millis, Provenance};
use tiro_base::scope::{SessionId, Visibility};
use tiro_embed::Model;
use tiro_intake::prepare::prepare;
use tiro_redact::Redactor;
use tiro_store::{ExchangedChunk, Incoming, IncomingMemory, PreparedChunk, PreparedMemory};
use tiro_sync::line::{Arrived, ArrivedMemory};

/// The longest hexadecimal id of a change of git, in digits.
const LONGEST_HEX: usize = 64;

/// The models of this machine that embed prose and code. Vectors of their spaces are taken over. All others would have
/// to be computed again anyway, because searches use only the spaces of these models.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Models {
    prose: Option<Model>,
    code: Option<Model>,
}

impl Models {
    /// Returns the models that embed the texts of `engine`. A provider is none.
    pub(super) fn of(engine: &Engine) -> Models {
        let sources = &engine.config().sources;
        let Ok(options) = sources.options() else { return Models::default() };
        let model = |content| match sources.encoding(&options, content) {
            Ok(Encoding::Local(name)) => engine.model(name.as_deref()).ok(),
            Ok(Encoding::Provider(_)) | Err(_) => None,
        };
        Models { prose: model(Content::Prose), code: model(Content::Code) }
    }

    fn takes(self, content: Content, space: &str, vector: &[f32]) -> bool {
        let model = match content {
            Content::Prose => self.prose,
            Content::Code => self.code,
        };
        model.is_some_and(|model| model.space() == space && model.dimensions() == vector.len())
    }
}

/// Returns `arrived`, ready to be merged. The memory is seen as `visibility` says if it is new. A memory whose time is after
/// `now` gets the time `now`, so that it doesn't stay the newest one until then.
pub(super) fn ready(
    redactor: &Redactor,
    models: Models,
    arrived: Arrived,
    visibility: Visibility,
    now: Millis,
) -> Incoming {
    let Arrived { id, kind, author, state, content } = arrived;
    let content = content.map(|mut content| {
        content.draft.time = content.draft.time.min(now);
        Box::new(memory(redactor, models, *content))
    });
    Incoming { id, kind, author, visibility, state, content }
}

fn memory(redactor: &Redactor, models: Models, arrived: ArrivedMemory) -> IncomingMemory {
    let ArrivedMemory { draft, ordinal, superseded_by, is_indexed, embedded } = arrived;
    let (draft, is_named) = named(redactor, draft);
    // The id is known, so nothing random is needed.
    let (mut memory, found) = prepare(redactor, draft, &mut || [0; 16]);
    if !is_indexed && memory.draft.provenance == Provenance::Derived {
        memory.chunks.clear();
    }
    // A vector is that of the text that was sent, with its title and its other names.
    if found.is_empty() && is_named {
        take_over(models, &mut memory, embedded);
    }
    IncomingMemory { memory, ordinal, superseded_by }
}

/// Returns the draft with the fields that [`prepare`] takes as they are, and whether all of them stayed the same. A name
/// with a secret is left out.
fn named(redactor: &Redactor, mut draft: Draft) -> (Draft, bool) {
    let is_clean = |text: &str| redactor.redact(text).text == text;
    let is_hex = |text: &str| text.len() <= LONGEST_HEX && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let before = draft.session.clone();
    draft.session = draft.session.filter(|session: &SessionId| is_clean(session.as_str()));
    draft.head_sha = draft.head_sha.filter(|sha| is_hex(sha));
    if let Some(commit) = &mut draft.commit {
        commit.patch_id = commit.patch_id.take().filter(|patch| is_hex(patch));
    }
    let is_same = draft.session == before;
    (draft, is_same)
}

/// Gives the chunks the vectors that came with the same pieces of the text.
fn take_over(models: Models, memory: &mut PreparedMemory, embedded: Vec<ExchangedChunk>) {
    let content = memory.draft.kind.content();
    let fits = |own: &PreparedChunk, sent: &ExchangedChunk| {
        let is_taken = |(space, vector): &(String, Vec<f32>)| models.takes(content, space, vector);
        (own.start, own.end) == (sent.start, sent.end) && sent.embedding.as_ref().is_some_and(is_taken)
    };
    // Both are in the order of the text.
    let mut sent = embedded.into_iter().peekable();
    for own in &mut memory.chunks {
        while sent.next_if(|sent| sent.start < own.start).is_some() {}
        if let Some(found) = sent.next_if(|sent| fits(own, sent)) {
            own.embedding = found.embedding;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{CommitRecord, Identity, Kind, MemoryId};
    use tiro_base::scope::AuthorId;
    use tiro_store::ExchangedState;

    const BOTH: Models = Models { prose: Some(Model::MiniLm), code: Some(Model::MiniLm) };

    fn arrived(change: impl FnOnce(&mut ArrivedMemory)) -> Arrived {
        let id = MemoryId::derive(Kind::Decision, None, "1");
        let mut draft = Draft::new(Kind::Decision, Provenance::UserSaid, "We use granite.", 5);
        draft.identity = Identity::Known(id.clone());
        draft.author = Some(AuthorId::new("ana"));
        let end = draft.text.len();
        let mut vector = vec![0.0; Model::MiniLm.dimensions()];
        vector[0] = 1.0;
        let embedding = Some((Model::MiniLm.space().to_owned(), vector));
        let mut content = ArrivedMemory {
            draft,
            ordinal: None,
            superseded_by: Vec::new(),
            is_indexed: true,
            embedded: vec![ExchangedChunk { start: 0, end, embedding }],
        };
        change(&mut content);
        let (kind, author) = (content.draft.kind, AuthorId::new("ana"));
        Arrived { id, kind, author, state: ExchangedState::default(), content: Some(Box::new(content)) }
    }

    fn stored(models: Models, change: impl FnOnce(&mut ArrivedMemory)) -> PreparedMemory {
        let redactor = Redactor::new([1; 32]);
        ready(&redactor, models, arrived(change), Visibility::Project, 1_000).content.unwrap().memory
    }

    #[test]
    fn a_vector_is_taken_over_only_if_it_is_that_of_the_same_piece_in_our_own_space() {
        let is_taken = |models, change: fn(&mut ArrivedMemory)| {
            let memory = stored(models, change);
            assert_eq!(memory.chunks.len(), 1);
            memory.chunks[0].embedding.is_some()
        };
        assert!(is_taken(BOTH, |_| {}));
        assert!(!is_taken(Models::default(), |_| {}));
        assert!(!is_taken(Models { prose: Some(Model::E5), ..BOTH }, |_| {}));
        let wrong: [fn(&mut ArrivedMemory); 6] = [
            |it| it.embedded[0].end -= 1,
            |it| it.embedded[0].start += 1,
            |it| it.embedded[0].embedding.as_mut().unwrap().0 = "other/mean/l2".into(),
            |it| {
                it.embedded[0].embedding.as_mut().unwrap().1.pop();
            },
            // The vector is that of another text.
            |it| it.draft.title = Some("ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w".into()),
            |it| it.draft.session = SessionId::parse("ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w"),
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            assert!(!is_taken(BOTH, change), "{number}");
        }
    }

    #[test]
    fn a_memory_of_the_future_is_one_of_now() {
        assert_eq!(stored(BOTH, |it| it.draft.time = 4_070_908_800_000).draft.time, 1_000);
        assert_eq!(stored(BOTH, |it| it.draft.time = 7).draft.time, 7);
    }

    #[test]
    fn no_field_keeps_a_secret() {
        let secret = "ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w";
        let memory = stored(BOTH, |it| {
            let draft = &mut it.draft;
            draft.text = format!("The token is {secret}.");
            draft.kind = Kind::Commit;
            draft.session = SessionId::parse(secret);
            for field in [&mut draft.title, &mut draft.speaker, &mut draft.topic, &mut draft.branch] {
                *field = Some(secret.to_owned());
            }
            draft.head_sha = Some(secret.to_owned());
            let files = vec![secret.to_owned()];
            let patch_id = Some(secret.to_owned());
            draft.commit =
                Some(CommitRecord { sha: "a".repeat(40), patch_id, files, ..CommitRecord::default() });
        });
        assert!(!format!("{memory:?}").contains(secret), "{memory:?}");
    }

    #[test]
    fn a_derived_memory_that_is_found_only_by_its_source_stays_so() {
        let derived = |is_indexed| {
            stored(BOTH, |it| {
                (it.is_indexed, it.draft.provenance) = (is_indexed, Provenance::Derived);
            })
        };
        assert!(derived(false).chunks.is_empty() && !derived(true).chunks.is_empty());
        let original = stored(BOTH, |it| it.is_indexed = false);
        assert!(!original.chunks.is_empty(), "nobody hides an original");
    }
}
