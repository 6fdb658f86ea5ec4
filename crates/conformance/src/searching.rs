//! Promises about searching by words and by meaning: the hits, their order, and the memories that the scope and the
//! filter exclude.

use super::fixture::{
    Answered, Fixture, SPACE, by_meaning, by_words, commit, embedded, fact, message, message_at, note,
    prepared, sha,
};
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
async fn admits(fixture: &Fixture, filter: Filter, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|text| format!("maple {text}")).collect();
    let mut listed = fixture.listed(&filter).await;
    listed.reverse();
    assert_eq!(listed, expected, "{filter:?}");
    let found = fixture.candidates(&fixture.scope, &filter, "maple").await;
    let mut found = fixture.texts(found.into_iter().map(|candidate| candidate.memory).collect()).await;
    found.sort_by_key(|text| expected.iter().position(|one| one == text));
    assert_eq!(found, expected, "{filter:?}");
    let mut near = fixture.near(&fixture.scope, &filter, NEAR, 9).await;
    near.sort_by_key(|text| expected.iter().position(|one| one == text));
    assert_eq!(near, expected, "{filter:?}");
}

pub async fn a_word_finds_the_memories_that_hold_it(fixture: Fixture) {
    let id = fixture.put(note("a red maple")).await;
    fixture.put(note("a red willow")).await;
    let found = fixture.candidates(&fixture.scope, &Filter::default(), "maple").await;
    let found: Vec<(MemoryKey, Group)> = found.iter().map(|hit| (hit.memory, hit.group)).collect();
    assert_eq!(found, [(fixture.key(&id).await, Group::Note)]);
    assert_eq!(
        (fixture.found("red").await, fixture.found("maples").await, fixture.found("larch").await),
        (2, 1, 0)
    );
}

pub async fn the_best_are_found_first(fixture: Fixture) {
    let filler = "of many other words about nothing in particular ".repeat(8);
    fixture.put(note(&format!("{filler} maple {filler}"))).await;
    let best = fixture.put(note("maple maple maple")).await;
    fixture.put(note("an oak of the same length")).await;
    let found = fixture.candidates(&fixture.scope, &Filter::default(), "maple").await;
    assert_eq!((found.len(), found[0].memory), (2, fixture.key(&best).await));
    assert!(found[0].score > found[1].score, "{found:?}");
}

pub async fn the_nearest_are_found_first(fixture: Fixture) {
    for (text, embedding) in [("far", FAR), ("near", NEAR), ("next", NEXT)] {
        fixture.put(embedded(note(text), embedding)).await;
    }
    assert_eq!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await, ["near", "next", "far"]);
}

pub async fn each_group_has_its_own_limit(fixture: Fixture) {
    fixture.save(maples(["a", "b", "c", "d"], |_, _| {})).await;
    for session in ["s", "t", "u"] {
        fixture.put(embedded(message(session, &format!("maple {session}")), NEAR)).await;
    }
    let filter = Filter::default();
    let groups = vec![Group::Note, Group::Message];
    let query = CandidateQuery { groups, ..by_words(&filter, &["maple"], 2) };
    let found = fixture.store.candidates(&fixture.scope, query).await.answered();
    let (found, _) = found.words.answered();
    let of = |group| found.iter().filter(|candidate| candidate.group == group).count();
    assert_eq!((of(Group::Note), of(Group::Message)), (2, 2));
    assert_eq!(fixture.near(&fixture.scope, &filter, NEAR, 2).await.len(), 4);
}

pub async fn only_named_groups_are_searched(fixture: Fixture) {
    fixture.put(embedded(message("s", "maple said"), NEAR)).await;
    fixture.save(maples(["noted"], |_, _| {})).await;
    let groups = vec![Group::Note];
    let found =
        fixture.store.candidates(&fixture.scope, CandidateQuery { groups, ..both() }).await.answered();
    let words = found.words.answered().0;
    assert_eq!(words.iter().map(|candidate| candidate.group).collect::<Vec<_>>(), [Group::Note]);
    assert_eq!(found.near.answered().len(), 1);
}

pub async fn a_filter_of_kinds_narrows_every_search(fixture: Fixture) {
    let kinds = [Kind::Decision, Kind::Research, Kind::TaskState];
    fixture.save(maples(["a", "b", "c"], |place, draft| draft.kind = kinds[place])).await;
    let filter = |kinds: &[Kind]| Filter { kinds: Some(kinds.to_vec()), ..Filter::default() };
    admits(&fixture, filter(&[Kind::Research]), &["b"]).await;
    admits(&fixture, filter(&[Kind::Decision, Kind::TaskState]), &["a", "c"]).await;
}

pub async fn a_filter_of_branches_narrows_every_search(fixture: Fixture) {
    let branches = [Some("main".to_owned()), Some("main2".to_owned()), None];
    fixture.save(maples(["a", "b", "c"], |place, draft| draft.branch = branches[place].clone())).await;
    admits(&fixture, Filter { branch: Some("main".into()), ..Filter::default() }, &["a"]).await;
}

pub async fn a_filter_of_paths_admits_a_file_or_a_directory(fixture: Fixture) {
    let paths = ["src/a.rs", "src/deep/b.rs", "srcs/c.rs", "src"];
    fixture.save(maples(["a", "b", "c", "d"], |place, draft| draft.files = vec![paths[place].into()])).await;
    let filter = |path: &str| Filter { path: Some(path.into()), ..Filter::default() };
    admits(&fixture, filter("src/a.rs"), &["a"]).await;
    admits(&fixture, filter("src"), &["a", "b", "d"]).await;
    admits(&fixture, filter("./src/deep/"), &["b"]).await;
}

pub async fn a_filter_of_topics_narrows_every_search(fixture: Fixture) {
    fixture
        .save(maples(["a", "b"], |place, draft| draft.topic = Some(["trees", "tree"][place].into())))
        .await;
    let trees = Filter { topic: Some("trees".into()), ..Filter::default() };
    admits(&fixture, trees.clone(), &["a"]).await;
    // What a filter admits is current at each search: after a write, after forgetting, after a memory came back.
    fixture.save(maples(["c"], |_, draft| draft.topic = Some("trees".into()))).await;
    admits(&fixture, trees.clone(), &["a", "c"]).await;
    let found = fixture.store.list(&fixture.scope, &trees, None, 9).await.answered();
    let first = found.iter().find(|memory| memory.text == "maple a").expect("it is there").id.clone();
    fixture.store.forget(&fixture.scope, &Selection::Ids(vec![first]), "o1", 5).await.answered();
    admits(&fixture, trees.clone(), &["c"]).await;
    fixture.store.undo(&fixture.scope, Some("o1"), 6).await.answered();
    admits(&fixture, trees, &["a", "c"]).await;
}

pub async fn a_filter_of_client_ids_narrows_every_search(fixture: Fixture) {
    fixture
        .save(maples(["a", "b"], |place, draft| draft.source_id = Some(["id 1", "id 2"][place].into())))
        .await;
    fixture.put(embedded(commit('a', "maple commit", 10), NEAR)).await;
    let filter = |id: &str| Filter { source_id: Some(id.into()), ..Filter::default() };
    admits(&fixture, filter("id 1"), &["a"]).await;
    admits(&fixture, filter(&sha('a')), &["commit"]).await;
    // Ten digits of a commit's id are enough.
    admits(&fixture, filter(&sha('a')[..10]), &["commit"]).await;
}

pub async fn a_filter_of_times_admits_from_the_first_until_the_last(fixture: Fixture) {
    fixture.save(maples(["a", "b", "c"], |place, draft| draft.time = 10 * (place as i64 + 1))).await;
    let filter = |since, until| Filter { since, until, ..Filter::default() };
    admits(&fixture, filter(Some(20), None), &["b", "c"]).await;
    admits(&fixture, filter(None, Some(20)), &["a"]).await;
    admits(&fixture, filter(Some(20), Some(30)), &["b"]).await;
}

pub async fn all_conditions_of_a_filter_hold(fixture: Fixture) {
    let change = |place: usize, draft: &mut Draft| {
        draft.branch = Some(["main", "main", "side"][place].into());
        draft.topic = Some(["trees", "shrubs", "trees"][place].into());
    };
    fixture.save(maples(["a", "b", "c"], change)).await;
    let filter = Filter { branch: Some("main".into()), topic: Some("trees".into()), ..Filter::default() };
    admits(&fixture, filter, &["a"]).await;
}

/// Stores a note with the topic `rare`, and notes that match a search for `maple` better. Returns the filter that
/// admits only that topic.
async fn outmatched(fixture: &Fixture) -> Filter {
    for number in 0..5 {
        fixture.put(embedded(note(&format!("maple maple maple {number}")), NEAR)).await;
    }
    let mut rare = embedded(note("a single maple among some other words of a note"), NEXT);
    rare.draft.topic = Some("rare".into());
    fixture.put(rare).await;
    Filter { topic: Some("rare".into()), ..Filter::default() }
}

pub async fn a_filter_holds_before_the_best_are_chosen(fixture: Fixture) {
    let filter = outmatched(&fixture).await;
    let query = by_words(&filter, &["maple"], 1);
    let found = fixture.store.candidates(&fixture.scope, query).await.answered();
    assert_eq!(found.words.answered().0.len(), 1, "the best of those that the filter admits is found");
}

pub async fn a_filter_holds_before_the_nearest_are_chosen(fixture: Fixture) {
    let filter = outmatched(&fixture).await;
    let near = fixture.near(&fixture.scope, &filter, NEAR, 1).await;
    assert_eq!(near, ["a single maple among some other words of a note"]);
}

pub async fn a_scope_of_sessions_holds_before_the_best_are_chosen(fixture: Fixture) {
    for session in ["a", "b", "c"] {
        fixture.put(message(session, &format!("maple maple {session}"))).await;
    }
    let own = fixture.put(message("s", "one maple among some other words of a message")).await;
    let query = by_words(&Filter::default(), &["maple"], 1);
    let found = fixture.store.candidates(&fixture.only(&["s"]), query).await.answered();
    let (found, _) = found.words.answered();
    assert_eq!(found.iter().map(|hit| hit.memory).collect::<Vec<_>>(), [fixture.key(&own).await]);
}

pub async fn a_scope_of_sessions_holds_before_the_nearest_are_chosen(fixture: Fixture) {
    fixture.put(embedded(message("other", "maple"), NEAR)).await;
    fixture.put(embedded(message("s", "willow"), FAR)).await;
    fixture.put(embedded(note("larch"), NEAR)).await;
    assert_eq!(fixture.near(&fixture.only(&["s"]), &Filter::default(), NEAR, 1).await, ["willow"]);
    assert!(fixture.near(&fixture.only(&["unknown"]), &Filter::default(), NEAR, 9).await.is_empty());
}

pub async fn a_search_finds_nothing_of_another_owner(fixture: Fixture) {
    let stranger = fixture.stranger();
    let memories = vec![embedded(note("a maple of theirs"), NEAR)];
    fixture.store.save(&stranger, memories, 1).await.answered();
    assert_eq!(fixture.found("maple").await, 0);
    assert!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await.is_empty());
    assert_eq!(fixture.candidates(&stranger, &Filter::default(), "maple").await.len(), 1);
}

pub async fn vectors_of_another_space_are_not_found(fixture: Fixture) {
    fixture.put(embedded(note("maple"), NEAR)).await;
    let found = async |space| {
        let query = CandidateQuery {
            embeddings: vec![(space, NEAR.to_vec())],
            ..by_words(&Filter::default(), &["maple"], 9)
        };
        let mut found = fixture.store.candidates(&fixture.scope, query).await.answered();
        (found.near.answered().len(), found.cosines.remove(0).answered().len())
    };
    assert_eq!(found(SPACE.to_owned()).await, (1, 1));
    assert_eq!(found("other".to_owned()).await, (0, 0), "words alone find it");
}

pub async fn cosines_are_exact(fixture: Fixture) {
    for (text, embedding) in [("near", NEAR), ("next", NEXT), ("far", FAR)] {
        fixture.put(embedded(note(text), embedding)).await;
    }
    let query = by_meaning(&Filter::default(), SPACE, &NEAR, 9);
    let mut found = fixture.store.candidates(&fixture.scope, query).await.answered();
    let (near, cosines) = (found.near.answered(), found.cosines.remove(0).answered());
    assert_eq!(near.len(), 3);
    for (hit, expected) in near.iter().zip([1.0, 0.8, 0.0]) {
        let (_, cosine) = cosines.iter().find(|(own, _)| *own == hit.chunk).expect("it has a vector");
        assert!((cosine - expected).abs() < 0.001, "{cosine} is not {expected}");
    }
}

/// Returns a search for `maple` by words and by meaning.
fn both() -> CandidateQuery {
    let embeddings = vec![(SPACE.to_owned(), NEAR.to_vec())];
    CandidateQuery { embeddings, ..by_words(&Filter::default(), &["maple"], 9) }
}

pub async fn each_candidate_has_its_cosine_and_its_place(fixture: Fixture) {
    fixture.put(embedded(note("a maple"), FAR)).await;
    fixture.put(embedded(message("s", "willow"), NEAR)).await;
    fixture.put(commit('a', "maple commit", 10)).await;
    fixture.put(commit('b', "larch commit", 10)).await;
    let query = CandidateQuery { commits: vec![sha('b')[..9].to_owned(), sha('c')], ..both() };
    let found = fixture.store.candidates(&fixture.scope, query).await.answered();
    let (words, near) = (found.words.answered().0, found.near.answered());
    let named = found.named.answered();
    assert_eq!((words.len(), near.len(), named.len()), (2, 2, 1), "{words:?} {near:?} {named:?}");
    let cosines = found.cosines.into_iter().map(|cosines| cosines.answered().len()).collect::<Vec<_>>();
    assert_eq!(cosines, [2], "commits have no vectors");
    let mut keys: Vec<MemoryKey> = words.iter().map(|each| each.memory).collect();
    keys.extend(near.iter().map(|each| each.memory).chain(named.iter().map(|(memory, _)| *memory)));
    keys.sort_unstable();
    keys.dedup();
    let places = found.places.answered();
    assert_eq!(places.iter().map(|place| place.key).collect::<Vec<_>>(), keys);
    let ordinals: Vec<_> = places.iter().filter_map(|place| place.ordinal).collect();
    assert_eq!((keys.len(), ordinals, found.pending), (4, vec![0], Some(2)));
    // A search for nothing finds nothing, and doesn't fail.
    let nothing = CandidateQuery { terms: Vec::new(), embeddings: Vec::new(), ..both() };
    let found = fixture.store.candidates(&fixture.scope, nothing).await.answered();
    assert!(found.words.answered().0.is_empty() && found.near.answered().is_empty());
    assert!(found.named.answered().is_empty() && found.places.answered().is_empty());
}

pub async fn what_replaced_a_memory_comes_with_its_place(fixture: Fixture) {
    let (old, other) = (fixture.put(note("maple")).await, fixture.put(note("larch")).await);
    let mut newer = note("willow");
    newer.draft.supersedes = vec![old.clone()];
    let newer = fixture.put(newer).await;
    fixture.save(vec![commit('a', "one", 10), commit('b', "two", 20)]).await;
    let rows = fixture.store.commits_made(&fixture.scope, (0, None), 99, 9).await.answered();
    let commits: Vec<MemoryKey> = rows.into_iter().map(|row| row.key).collect();
    let replaced = vec![(commits[0], commits[1])];
    fixture.store.replace_commits(&fixture.scope, vec![commits[0]], None, replaced).await.answered();
    let memories = vec![fixture.key(&old).await, fixture.key(&other).await];
    let query = ReplacementQuery { commits: commits.clone(), memories, ..ReplacementQuery::default() };
    let query = ReplacementQuery { with_statements: true, with_holding: true, ..query };
    let found = fixture.store.replacements(&fixture.scope, query.clone()).await.answered();
    assert_eq!(found.superseded.iter().map(|each| &each.by).collect::<Vec<_>>(), [&newer]);
    assert!(matches!(found.stand_ins[..], [(old, (by, _))] if (old, by) == (commits[0], commits[1])));
    assert_eq!(found.holding.iter().map(|memory| &memory.id).collect::<Vec<_>>(), [&newer]);
    assert!(found.statements.is_empty() && found.texts.is_empty(), "none is stored, and none is asked for");
    let places: Vec<MemoryKey> = found.places.iter().map(|place| place.key).collect();
    assert_eq!(places, [fixture.key(&newer).await, commits[1]]);
    let strange = fixture.store.replacements(&fixture.stranger(), query).await.answered();
    assert!(strange.superseded.is_empty() && strange.places.is_empty(), "{strange:?}");
}

pub async fn a_search_follows_what_other_handles_write(fixture: Fixture) {
    let first = fixture.put(embedded(note("maple"), NEAR)).await;
    let near = async || fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await;
    assert_eq!(near().await, ["maple"]);
    let other = fixture.engine.open();
    other.save(&fixture.scope, vec![embedded(note("willow"), NEXT)], 1).await.answered();
    assert_eq!(near().await, ["maple", "willow"]);
    let selection = Selection::Ids(vec![first]);
    other.forget(&fixture.scope, &selection, "f1", 5).await.answered();
    assert_eq!(near().await, ["willow"]);
    other.undo(&fixture.scope, None, 6).await.answered();
    assert_eq!(near().await, ["maple", "willow"]);
}

pub async fn words_are_counted_by_the_documents_that_hold_them(fixture: Fixture) {
    for text in ["maple maple", "maple willow", "larch"] {
        fixture.put(note(text)).await;
    }
    let query = by_words(&Filter::default(), &["maple", "willow", "oak"], 9);
    let found = fixture.store.candidates(&fixture.scope, query).await.answered();
    let (_, vocabulary) = found.words.answered();
    assert_eq!((vocabulary.documents, vocabulary.counts), (3, vec![2, 1, 0]));
}

pub async fn a_text_has_a_share_of_the_words(fixture: Fixture) {
    let words = ["maple", "willow"].map(Term::new).to_vec();
    let texts = ["a maple and a willow", "one maple", "an oak"].map(str::to_owned).to_vec();
    let shares = fixture.store.shares(&fixture.scope, words, vec![3.0, 1.0], texts).await.answered();
    assert_eq!(shares, [1.0, 0.75, 0.0]);
}

pub async fn chunks_without_an_embedding_wait_for_one(fixture: Fixture) {
    let receipt = fixture.save(vec![note("maple"), embedded(note("willow"), NEAR)]).await;
    assert_eq!((receipt.pending, fixture.store.pending(&fixture.scope).await.answered()), (1, 1));
    let waiting = fixture.store.pending_chunks(&fixture.scope, None, 9).await.answered();
    let named = waiting.iter().map(|chunk| (chunk.text.as_str(), chunk.kind, chunk.time));
    assert_eq!(named.collect::<Vec<_>>(), [("maple", Kind::Decision, 10)]);
}

pub async fn a_chunk_is_found_once_it_is_embedded(fixture: Fixture) {
    fixture.put(note("maple")).await;
    assert!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await.is_empty());
    let waiting = fixture.store.pending_chunks(&fixture.scope, None, 9).await.answered();
    let embeddings = waiting.into_iter().map(|chunk| (chunk, NEAR.to_vec())).collect();
    fixture.store.save_embeddings(&fixture.scope, SPACE, embeddings).await.answered();
    assert_eq!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await, ["maple"]);
    assert_eq!(fixture.store.pending(&fixture.scope).await.answered(), 0);
}

pub async fn chunks_wait_in_the_order_of_storing(fixture: Fixture) {
    fixture.save(vec![message_at("s", "maple", 90), message_at("t", "willow", 10)]).await;
    fixture.put(note("larch")).await;
    let waiting = async |limit| {
        let chunks = fixture.store.pending_chunks(&fixture.scope, None, limit).await.answered();
        chunks.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
    };
    assert_eq!(waiting(9).await, ["maple", "willow", "larch"]);
    assert_eq!(waiting(2).await, ["maple", "willow"]);
}

pub async fn an_embedding_of_a_purged_chunk_is_passed_over(fixture: Fixture) {
    let ids = fixture.save(vec![note("maple"), note("willow")]).await.outcomes;
    let waiting = fixture.store.pending_chunks(&fixture.scope, None, 9).await.answered();
    let selection = Selection::Ids(vec![ids[0].0.clone()]);
    fixture.store.forget_for_good(&fixture.scope, &selection, "p1", 5).await.answered();
    // A new chunk may get the key of the purged chunk.
    fixture.put(note("larch")).await;
    let embeddings = waiting.into_iter().map(|chunk| (chunk, NEAR.to_vec())).collect();
    fixture.store.save_embeddings(&fixture.scope, SPACE, embeddings).await.answered();
    assert_eq!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
    assert_eq!(fixture.store.pending(&fixture.scope).await.answered(), 1);
    let check = fixture.store.check(&fixture.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

pub async fn embeddings_of_other_spaces_are_made_again(fixture: Fixture) {
    let mut old = note("maple");
    old.chunks[0].embedding = Some(("old".into(), NEAR.to_vec()));
    fixture.save(vec![old, embedded(note("willow"), NEXT)]).await;
    assert_eq!(fixture.store.mark_other_spaces_pending(&fixture.scope, SPACE, SPACE).await.answered(), 1);
    let waiting = fixture.store.pending_chunks(&fixture.scope, None, 9).await.answered();
    assert_eq!(waiting.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>(), ["maple"]);
    assert_eq!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
    assert_eq!(fixture.store.mark_other_spaces_pending(&fixture.scope, SPACE, SPACE).await.answered(), 0);
}

pub async fn code_and_prose_have_spaces_of_their_own(fixture: Fixture) {
    let code = |text: &str| {
        let mut memory = embedded(note(text), NEAR);
        memory.draft.kind = Kind::CodeBlock;
        memory
    };
    fixture.save(vec![embedded(note("willow"), NEXT), code("fn maple() {}")]).await;
    let waiting = async |content| {
        let chunks = fixture.store.pending_chunks(&fixture.scope, content, 9).await.answered();
        chunks.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
    };
    let marked = fixture.store.mark_other_spaces_pending(&fixture.scope, SPACE, "code").await.answered();
    assert_eq!(marked, 1);
    assert_eq!(waiting(Some(Content::Code)).await, ["fn maple() {}"]);
    assert_eq!(waiting(Some(Content::Prose)).await, [""; 0]);
    let chunks = fixture.store.pending_chunks(&fixture.scope, None, 9).await.answered();
    let embeddings = chunks.into_iter().map(|chunk| (chunk, vec![1.0, 0.0])).collect();
    fixture.store.save_embeddings(&fixture.scope, "code", embeddings).await.answered();
    // A search in one space finds nothing of the other, in either order, and the numbers of dimensions may differ.
    for _ in 0..2 {
        assert_eq!(fixture.near(&fixture.scope, &Filter::default(), NEAR, 9).await, ["willow"]);
        let groups = vec![Group::Artifact];
        let query = CandidateQuery { groups, ..by_meaning(&Filter::default(), "code", &[1.0, 0.0], 9) };
        let found = fixture.store.candidates(&fixture.scope, query).await.answered();
        assert_eq!(found.near.answered().len(), 1);
    }
    assert_eq!(fixture.store.mark_other_spaces_pending(&fixture.scope, SPACE, "code").await.answered(), 0);
}

pub async fn embeddings_of_providers_are_kept_by_their_keys_until_a_purge(fixture: Fixture) {
    let entries = vec![([1; 32], vec![0.5, -0.25]), ([2; 32], vec![1.0])];
    fixture.store.cache_embeddings(&fixture.scope, entries).await.answered();
    fixture.store.cache_embeddings(&fixture.scope, vec![([2; 32], vec![0.75])]).await.answered();
    let keys = vec![[2; 32], [3; 32], [1; 32]];
    let found = fixture.store.cached_embeddings(&fixture.scope, keys.clone()).await.answered();
    assert_eq!(found, [Some(vec![0.75]), None, Some(vec![0.5, -0.25])]);
    let id = fixture.put(note("a willow")).await;
    fixture.store.forget_for_good(&fixture.scope, &Selection::Ids(vec![id]), "p1", 5).await.answered();
    assert_eq!(fixture.store.cached_embeddings(&fixture.scope, keys).await.answered(), [None, None, None]);
}

pub async fn derived_memories_without_chunks_get_theirs_later(fixture: Fixture) {
    let said = fixture.say("s", &["a message"]).await;
    let id = fixture.put(fact("s", "a maple in short", &[&said[0]])).await;
    let bare = fixture.store.derived_without_chunk(&fixture.scope, 9).await.answered();
    assert_eq!(bare.iter().map(|memory| &memory.id).collect::<Vec<_>>(), [&id]);
    let mut draft = Draft::new(Kind::Fact, Provenance::Derived, "a maple in short", 10);
    draft.session = bare[0].session.clone();
    let chunks = prepared(draft.clone(), "any").chunks;
    let add = async |chunks: Vec<PreparedChunk>| {
        let found = vec![(bare[0].key, draft.clone(), chunks)];
        fixture.store.add_chunks(&fixture.scope, found).await.answered();
    };
    add(chunks.clone()).await;
    add(chunks).await; // A slower process that does the same work.
    assert!(fixture.store.derived_without_chunk(&fixture.scope, 9).await.answered().is_empty());
    let check = fixture.store.check(&fixture.scope).await.answered();
    assert_eq!((fixture.found("maple").await, check.is_sound()), (1, true));
}
