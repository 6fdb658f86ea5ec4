//! Promises about searching by words and by meaning: the hits, their order, and the memories that the scope and the
//! filter exclude.

use super::place::{
    Answered, Place, SPACE, commit, embedded, fact, message, message_at, note, prepared, sha,
};
use super::subject::Engine;
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Draft, Group, Kind, MemoryKey, Provenance};
use tiro_store::*;
use tiro_text::words::Term;

const NEAR: [f32; 4] = [1.0, 0.0, 0.0, 0.0];
const NEXT: [f32; 4] = [0.8, 0.6, 0.0, 0.0];
const FAR: [f32; 4] = [0.0, 1.0, 0.0, 0.0];

/// Returns notes about maples that have the same embedding, after `change` has changed the draft of each.
fn maples<const N: usize>(texts: [&str; N], change: impl Fn(usize, &mut Draft)) -> Vec<PreparedMemory> {
    let maple = |(place, text): (usize, &&str)| {
        let mut memory = embedded(note(&format!("maple {text}")), NEAR);
        change(place, &mut memory.draft);
        memory
    };
    texts.iter().enumerate().map(maple).collect()
}

/// Asserts that the list of memories and both kinds of search, when given the filter, return exactly the notes
/// `expected`.
async fn admits<E: Engine>(place: &Place<E>, filter: Filter, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|text| format!("maple {text}")).collect();
    let mut listed = place.listed(&filter).await;
    listed.reverse();
    assert_eq!(listed, expected, "{filter:?}");
    let found = place.candidates(&place.scope, &filter, "maple").await;
    let mut found = place.texts(found.into_iter().map(|candidate| candidate.memory).collect()).await;
    found.sort_by_key(|text| expected.iter().position(|one| one == text));
    assert_eq!(found, expected, "{filter:?}");
    let mut near = place.near(&place.scope, &filter, NEAR, 9).await;
    near.sort_by_key(|text| expected.iter().position(|one| one == text));
    assert_eq!(near, expected, "{filter:?}");
}

pub async fn a_word_finds_the_memories_that_hold_it<E: Engine>(place: Place<E>) {
    let id = place.put(note("a red maple")).await;
    place.put(note("a red willow")).await;
    let found = place.candidates(&place.scope, &Filter::default(), "maple").await;
    let found: Vec<(MemoryKey, Group)> = found.iter().map(|hit| (hit.memory, hit.group)).collect();
    assert_eq!(found, [(place.key(&id).await, Group::Note)]);
    assert_eq!(
        (place.found("red").await, place.found("maples").await, place.found("larch").await),
        (2, 1, 0)
    );
}

pub async fn the_best_are_found_first<E: Engine>(place: Place<E>) {
    let filler = "of many other words about nothing in particular ".repeat(8);
    place.put(note(&format!("{filler} maple {filler}"))).await;
    let best = place.put(note("maple maple maple")).await;
    place.put(note("an oak of the same length")).await;
    let found = place.candidates(&place.scope, &Filter::default(), "maple").await;
    assert_eq!((found.len(), found[0].memory), (2, place.key(&best).await));
    assert!(found[0].score > found[1].score, "{found:?}");
}

pub async fn the_nearest_are_found_first<E: Engine>(place: Place<E>) {
    for (text, embedding) in [("far", FAR), ("near", NEAR), ("next", NEXT)] {
        place.put(embedded(note(text), embedding)).await;
    }
    assert_eq!(place.near(&place.scope, &Filter::default(), NEAR, 9).await, ["near", "next", "far"]);
}

pub async fn each_group_has_its_own_limit<E: Engine>(place: Place<E>) {
    place.save(maples(["a", "b", "c", "d"], |_, _| {})).await;
    for session in ["s", "t", "u"] {
        place.put(embedded(message(session, &format!("maple {session}")), NEAR)).await;
    }
    let (filter, groups) = (Filter::default(), [Group::Note, Group::Message]);
    let words = vec![Term::new("maple")];
    let (found, _) = place.store.lexical(&place.scope, &filter, &groups, words, 2).await.answered();
    let of = |group| found.iter().filter(|candidate| candidate.group == group).count();
    assert_eq!((of(Group::Note), of(Group::Message)), (2, 2));
    assert_eq!(place.near(&place.scope, &filter, NEAR, 2).await.len(), 4);
}

pub async fn only_named_groups_are_searched<E: Engine>(place: Place<E>) {
    place.put(embedded(message("s", "maple said"), NEAR)).await;
    place.save(maples(["noted"], |_, _| {})).await;
    let (filter, groups) = (Filter::default(), [Group::Note]);
    let words = vec![Term::new("maple")];
    let (found, _) = place.store.lexical(&place.scope, &filter, &groups, words, 9).await.answered();
    assert_eq!(found.iter().map(|candidate| candidate.group).collect::<Vec<_>>(), groups);
    let near = place.store.dense(&place.scope, &filter, &groups, SPACE, &NEAR, 9).await.answered();
    assert_eq!(near.len(), 1);
}

pub async fn a_filter_of_kinds_narrows_every_search<E: Engine>(place: Place<E>) {
    let kinds = [Kind::Decision, Kind::Research, Kind::TaskState];
    place.save(maples(["a", "b", "c"], |place, draft| draft.kind = kinds[place])).await;
    let filter = |kinds: &[Kind]| Filter { kinds: Some(kinds.to_vec()), ..Filter::default() };
    admits(&place, filter(&[Kind::Research]), &["b"]).await;
    admits(&place, filter(&[Kind::Decision, Kind::TaskState]), &["a", "c"]).await;
}

pub async fn a_filter_of_branches_narrows_every_search<E: Engine>(place: Place<E>) {
    let branches = [Some("main".to_owned()), Some("main2".to_owned()), None];
    place.save(maples(["a", "b", "c"], |place, draft| draft.branch = branches[place].clone())).await;
    admits(&place, Filter { branch: Some("main".into()), ..Filter::default() }, &["a"]).await;
}

pub async fn a_filter_of_paths_admits_a_file_or_a_directory<E: Engine>(place: Place<E>) {
    let paths = ["src/a.rs", "src/deep/b.rs", "srcs/c.rs", "src"];
    place.save(maples(["a", "b", "c", "d"], |place, draft| draft.files = vec![paths[place].into()])).await;
    let filter = |path: &str| Filter { path: Some(path.into()), ..Filter::default() };
    admits(&place, filter("src/a.rs"), &["a"]).await;
    admits(&place, filter("src"), &["a", "b", "d"]).await;
    admits(&place, filter("./src/deep/"), &["b"]).await;
}

pub async fn a_filter_of_topics_narrows_every_search<E: Engine>(place: Place<E>) {
    place.save(maples(["a", "b"], |place, draft| draft.topic = Some(["trees", "tree"][place].into()))).await;
    let trees = Filter { topic: Some("trees".into()), ..Filter::default() };
    admits(&place, trees.clone(), &["a"]).await;
    // What a filter admits is current at each search: after a write, after forgetting, after a memory came back.
    place.save(maples(["c"], |_, draft| draft.topic = Some("trees".into()))).await;
    admits(&place, trees.clone(), &["a", "c"]).await;
    let found = place.store.list(&place.scope, &trees, None, 9).await.answered();
    let first = found.iter().find(|memory| memory.text == "maple a").expect("it is there").id.clone();
    place.store.forget(&place.scope, &Selection::Ids(vec![first]), "o1", 5).await.answered();
    admits(&place, trees.clone(), &["c"]).await;
    place.store.undo(&place.scope, Some("o1"), 6).await.answered();
    admits(&place, trees, &["a", "c"]).await;
}

pub async fn a_filter_of_client_ids_narrows_every_search<E: Engine>(place: Place<E>) {
    place
        .save(maples(["a", "b"], |place, draft| draft.source_id = Some(["id 1", "id 2"][place].into())))
        .await;
    place.put(embedded(commit('a', "maple commit", 10), NEAR)).await;
    let filter = |id: &str| Filter { source_id: Some(id.into()), ..Filter::default() };
    admits(&place, filter("id 1"), &["a"]).await;
    admits(&place, filter(&sha('a')), &["commit"]).await;
    // Ten digits of a commit's id are enough.
    admits(&place, filter(&sha('a')[..10]), &["commit"]).await;
}

pub async fn a_filter_of_times_admits_from_the_first_until_the_last<E: Engine>(place: Place<E>) {
    place.save(maples(["a", "b", "c"], |place, draft| draft.time = 10 * (place as i64 + 1))).await;
    let filter = |since, until| Filter { since, until, ..Filter::default() };
    admits(&place, filter(Some(20), None), &["b", "c"]).await;
    admits(&place, filter(None, Some(20)), &["a"]).await;
    admits(&place, filter(Some(20), Some(30)), &["b"]).await;
}

pub async fn all_conditions_of_a_filter_hold<E: Engine>(place: Place<E>) {
    let change = |place: usize, draft: &mut Draft| {
        draft.branch = Some(["main", "main", "side"][place].into());
        draft.topic = Some(["trees", "shrubs", "trees"][place].into());
    };
    place.save(maples(["a", "b", "c"], change)).await;
    let filter = Filter { branch: Some("main".into()), topic: Some("trees".into()), ..Filter::default() };
    admits(&place, filter, &["a"]).await;
}

/// Stores a note with the topic `rare`, and notes that match a search for `maple` better. Returns the filter that
/// admits only that topic.
async fn outmatched<E: Engine>(place: &Place<E>) -> Filter {
    for number in 0..5 {
        place.put(embedded(note(&format!("maple maple maple {number}")), NEAR)).await;
    }
    let mut rare = embedded(note("a single maple among some other words of a note"), NEXT);
    rare.draft.topic = Some("rare".into());
    place.put(rare).await;
    Filter { topic: Some("rare".into()), ..Filter::default() }
}

pub async fn a_filter_holds_before_the_best_are_chosen<E: Engine>(place: Place<E>) {
    let filter = outmatched(&place).await;
    let words = vec![Term::new("maple")];
    let groups = [Group::Note];
    let (found, _) = place.store.lexical(&place.scope, &filter, &groups, words, 1).await.answered();
    assert_eq!(found.len(), 1, "the best of those that the filter admits is found");
}

pub async fn a_filter_holds_before_the_nearest_are_chosen<E: Engine>(place: Place<E>) {
    let filter = outmatched(&place).await;
    let near = place.near(&place.scope, &filter, NEAR, 1).await;
    assert_eq!(near, ["a single maple among some other words of a note"]);
}

pub async fn a_scope_of_sessions_holds_before_the_best_are_chosen<E: Engine>(place: Place<E>) {
    for session in ["a", "b", "c"] {
        place.put(message(session, &format!("maple maple {session}"))).await;
    }
    let own = place.put(message("s", "one maple among some other words of a message")).await;
    let (filter, groups, words) = (Filter::default(), [Group::Message], vec![Term::new("maple")]);
    let scope = place.only(&["s"]);
    let (found, _) = place.store.lexical(&scope, &filter, &groups, words, 1).await.answered();
    assert_eq!(found.iter().map(|hit| hit.memory).collect::<Vec<_>>(), [place.key(&own).await]);
}

pub async fn a_scope_of_sessions_holds_before_the_nearest_are_chosen<E: Engine>(place: Place<E>) {
    place.put(embedded(message("other", "maple"), NEAR)).await;
    place.put(embedded(message("s", "willow"), FAR)).await;
    place.put(embedded(note("larch"), NEAR)).await;
    assert_eq!(place.near(&place.only(&["s"]), &Filter::default(), NEAR, 1).await, ["willow"]);
    assert!(place.near(&place.only(&["unknown"]), &Filter::default(), NEAR, 9).await.is_empty());
}

pub async fn a_search_finds_nothing_of_another_owner<E: Engine>(place: Place<E>) {
    let stranger = place.stranger();
    let memories = vec![embedded(note("a maple of theirs"), NEAR)];
    place.store.save(&stranger, memories, 1).await.answered();
    assert_eq!(place.found("maple").await, 0);
    assert!(place.near(&place.scope, &Filter::default(), NEAR, 9).await.is_empty());
    assert_eq!(place.candidates(&stranger, &Filter::default(), "maple").await.len(), 1);
}

pub async fn vectors_of_another_space_are_not_found<E: Engine>(place: Place<E>) {
    place.put(embedded(note("maple"), NEAR)).await;
    let (filter, groups) = (Filter::default(), [Group::Note]);
    let near =
        async |space| place.store.dense(&place.scope, &filter, &groups, space, &NEAR, 9).await.answered();
    assert_eq!((near("other").await, near(SPACE).await.len()), (Vec::new(), 1));
    let chunks = near(SPACE).await.iter().map(|hit: &DenseCandidate| hit.chunk).collect();
    assert!(place.store.cosines(&place.scope, "other", &NEAR, chunks).await.answered().is_empty());
}

pub async fn cosines_are_exact<E: Engine>(place: Place<E>) {
    for (text, embedding) in [("near", NEAR), ("next", NEXT), ("far", FAR)] {
        place.put(embedded(note(text), embedding)).await;
    }
    let (filter, groups) = (Filter::default(), [Group::Note]);
    let near = place.store.dense(&place.scope, &filter, &groups, SPACE, &NEAR, 9).await.answered();
    let chunks: Vec<_> = near.iter().map(|hit| hit.chunk).collect();
    let cosines = place.store.cosines(&place.scope, SPACE, &NEAR, chunks.clone()).await.answered();
    for (chunk, expected) in chunks.iter().zip([1.0, 0.8, 0.0]) {
        let (_, cosine) = cosines.iter().find(|(own, _)| own == chunk).expect("it has a vector");
        assert!((cosine - expected).abs() < 0.001, "{cosine} is not {expected}");
    }
}

pub async fn a_search_follows_what_other_handles_write<E: Engine>(place: Place<E>) {
    let first = place.put(embedded(note("maple"), NEAR)).await;
    let near = async || place.near(&place.scope, &Filter::default(), NEAR, 9).await;
    assert_eq!(near().await, ["maple"]);
    let other = place.engine.open();
    other.save(&place.scope, vec![embedded(note("willow"), NEXT)], 1).await.answered();
    assert_eq!(near().await, ["maple", "willow"]);
    let selection = Selection::Ids(vec![first]);
    other.forget(&place.scope, &selection, "f1", 5).await.answered();
    assert_eq!(near().await, ["willow"]);
    other.undo(&place.scope, None, 6).await.answered();
    assert_eq!(near().await, ["maple", "willow"]);
}

pub async fn words_are_counted_by_the_documents_that_hold_them<E: Engine>(place: Place<E>) {
    for text in ["maple maple", "maple willow", "larch"] {
        place.put(note(text)).await;
    }
    let (filter, groups) = (Filter::default(), [Group::Note]);
    let words = ["maple", "willow", "oak"].map(Term::new).to_vec();
    let (_, vocabulary) = place.store.lexical(&place.scope, &filter, &groups, words, 9).await.answered();
    assert_eq!((vocabulary.documents, vocabulary.counts), (3, vec![2, 1, 0]));
}

pub async fn a_text_has_a_share_of_the_words<E: Engine>(place: Place<E>) {
    let words = ["maple", "willow"].map(Term::new).to_vec();
    let texts = ["a maple and a willow", "one maple", "an oak"].map(str::to_owned).to_vec();
    let shares = place.store.shares(&place.scope, words, vec![3.0, 1.0], texts).await.answered();
    assert_eq!(shares, [1.0, 0.75, 0.0]);
}

pub async fn chunks_without_an_embedding_wait_for_one<E: Engine>(place: Place<E>) {
    let receipt = place.save(vec![note("maple"), embedded(note("willow"), NEAR)]).await;
    assert_eq!((receipt.pending, place.store.pending(&place.scope).await.answered()), (1, 1));
    let waiting = place.store.pending_chunks(&place.scope, None, 9).await.answered();
    let named = waiting.iter().map(|chunk| (chunk.text.as_str(), chunk.kind, chunk.time));
    assert_eq!(named.collect::<Vec<_>>(), [("maple", Kind::Decision, 10)]);
}

pub async fn a_chunk_is_found_once_it_is_embedded<E: Engine>(place: Place<E>) {
    place.put(note("maple")).await;
    assert!(place.near(&place.scope, &Filter::default(), NEAR, 9).await.is_empty());
    let waiting = place.store.pending_chunks(&place.scope, None, 9).await.answered();
    let embeddings = waiting.into_iter().map(|chunk| (chunk, NEAR.to_vec())).collect();
    place.store.save_embeddings(&place.scope, SPACE, embeddings).await.answered();
    assert_eq!(place.near(&place.scope, &Filter::default(), NEAR, 9).await, ["maple"]);
    assert_eq!(place.store.pending(&place.scope).await.answered(), 0);
}

pub async fn chunks_wait_in_the_order_of_storing<E: Engine>(place: Place<E>) {
    place.save(vec![message_at("s", "maple", 90), message_at("t", "willow", 10)]).await;
    place.put(note("larch")).await;
    let waiting = async |limit| {
        let chunks = place.store.pending_chunks(&place.scope, None, limit).await.answered();
        chunks.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
    };
    assert_eq!(waiting(9).await, ["maple", "willow", "larch"]);
    assert_eq!(waiting(2).await, ["maple", "willow"]);
}

pub async fn an_embedding_of_a_purged_chunk_is_passed_over<E: Engine>(place: Place<E>) {
    let ids = place.save(vec![note("maple"), note("willow")]).await.outcomes;
    let waiting = place.store.pending_chunks(&place.scope, None, 9).await.answered();
    let selection = Selection::Ids(vec![ids[0].0.clone()]);
    place.store.forget_for_good(&place.scope, &selection, "p1", 5).await.answered();
    // A new chunk may get the key of the purged chunk.
    place.put(note("larch")).await;
    let embeddings = waiting.into_iter().map(|chunk| (chunk, NEAR.to_vec())).collect();
    place.store.save_embeddings(&place.scope, SPACE, embeddings).await.answered();
    assert_eq!(place.near(&place.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
    assert_eq!(place.store.pending(&place.scope).await.answered(), 1);
    let check = place.store.check(&place.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

pub async fn embeddings_of_other_spaces_are_made_again<E: Engine>(place: Place<E>) {
    let mut old = note("maple");
    old.chunks[0].embedding = Some(("old".into(), NEAR.to_vec()));
    place.save(vec![old, embedded(note("willow"), NEXT)]).await;
    assert_eq!(place.store.mark_other_spaces_pending(&place.scope, SPACE, SPACE).await.answered(), 1);
    let waiting = place.store.pending_chunks(&place.scope, None, 9).await.answered();
    assert_eq!(waiting.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>(), ["maple"]);
    assert_eq!(place.near(&place.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
    assert_eq!(place.store.mark_other_spaces_pending(&place.scope, SPACE, SPACE).await.answered(), 0);
}

pub async fn code_and_prose_have_spaces_of_their_own<E: Engine>(place: Place<E>) {
    let code = |text: &str| {
        let mut memory = embedded(note(text), NEAR);
        memory.draft.kind = Kind::CodeBlock;
        memory
    };
    place.save(vec![embedded(note("willow"), NEXT), code("fn maple() {}")]).await;
    let waiting = async |content| {
        let chunks = place.store.pending_chunks(&place.scope, content, 9).await.answered();
        chunks.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
    };
    let marked = place.store.mark_other_spaces_pending(&place.scope, SPACE, "code").await.answered();
    assert_eq!(marked, 1);
    assert_eq!(waiting(Some(Content::Code)).await, ["fn maple() {}"]);
    assert_eq!(waiting(Some(Content::Prose)).await, [""; 0]);
    let chunks = place.store.pending_chunks(&place.scope, None, 9).await.answered();
    let embeddings = chunks.into_iter().map(|chunk| (chunk, vec![1.0, 0.0])).collect();
    place.store.save_embeddings(&place.scope, "code", embeddings).await.answered();
    // A search in one space finds nothing of the other, in either order, and the numbers of dimensions may differ.
    for _ in 0..2 {
        assert_eq!(place.near(&place.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
        let (filter, groups) = (Filter::default(), [Group::Artifact]);
        let near = place.store.dense(&place.scope, &filter, &groups, "code", &[1.0, 0.0], 9).await.answered();
        assert_eq!(near.len(), 1);
    }
    assert_eq!(place.store.mark_other_spaces_pending(&place.scope, SPACE, "code").await.answered(), 0);
}

pub async fn embeddings_of_providers_are_kept_by_their_keys_until_a_purge<E: Engine>(place: Place<E>) {
    let entries = vec![([1; 32], vec![0.5, -0.25]), ([2; 32], vec![1.0])];
    place.store.cache_embeddings(&place.scope, entries).await.answered();
    place.store.cache_embeddings(&place.scope, vec![([2; 32], vec![0.75])]).await.answered();
    let keys = vec![[2; 32], [3; 32], [1; 32]];
    let found = place.store.cached_embeddings(&place.scope, keys.clone()).await.answered();
    assert_eq!(found, [Some(vec![0.75]), None, Some(vec![0.5, -0.25])]);
    let id = place.put(note("a willow")).await;
    place.store.forget_for_good(&place.scope, &Selection::Ids(vec![id]), "p1", 5).await.answered();
    assert_eq!(place.store.cached_embeddings(&place.scope, keys).await.answered(), [None, None, None]);
}

pub async fn derived_memories_without_chunks_get_theirs_later<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["a message"]).await;
    let id = place.put(fact("s", "a maple in short", &[&said[0]])).await;
    let bare = place.store.derived_without_chunk(&place.scope, 9).await.answered();
    assert_eq!(bare.iter().map(|memory| &memory.id).collect::<Vec<_>>(), [&id]);
    let mut draft = Draft::new(Kind::Fact, Provenance::Derived, "a maple in short", 10);
    draft.session = bare[0].session.clone();
    let chunks = prepared(draft.clone(), "any").chunks;
    let add = async |chunks: Vec<PreparedChunk>| {
        let found = vec![(bare[0].key, draft.clone(), chunks)];
        place.store.add_chunks(&place.scope, found).await.answered();
    };
    add(chunks.clone()).await;
    // The second call stands for a slower process that does the same work.
    add(chunks).await;
    assert!(place.store.derived_without_chunk(&place.scope, 9).await.answered().is_empty());
    let check = place.store.check(&place.scope).await.answered();
    assert_eq!((place.found("maple").await, check.is_sound()), (1, true));
}
