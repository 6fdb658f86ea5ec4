//! Tests with objects that state false sizes, and with trees that stand for a huge number of files.

use std::fs;
use std::time::{Duration, Instant};

use crate::testing::Fixture;
use crate::tests::walked;
use crate::{Changes, Lines, Sha};

/// A time limit that is far longer than any of these tests takes, even on a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// Returns the bytes of a tree entry.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let mut entry = format!("{mode} {name}\0").into_bytes();
    entry.extend_from_slice(id.parse::<Sha>().unwrap().as_bytes());
    entry
}

/// Stores a tree with ten entries that all name `id`.
fn ten_times(fixture: &Fixture, mode: &str, id: &str) -> String {
    let entries: Vec<u8> = (0..10).flat_map(|n| entry(mode, &n.to_string(), id)).collect();
    fixture.raw("tree", &entries)
}

/// Commits a tree on top of the commit that is checked out.
fn commit_tree(fixture: &Fixture, tree: &str) -> Sha {
    let commit = fixture.git(&["commit-tree", tree, "-p", "HEAD", "-m", "a tree"]);
    fixture.git(&["update-ref", "HEAD", &commit]);
    commit.parse().unwrap()
}

fn changes_in_time(fixture: &Fixture, sha: &Sha) -> Changes {
    let began = Instant::now();
    let changes = fixture.detail(sha).changes;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    changes
}

#[test]
fn a_tree_that_names_ten_billion_files_is_cut_and_reported() {
    let fixture = Fixture::new();
    fixture.commit("a.txt", "a", "Begin");
    for leaf in [fixture.raw("blob", b"leaf"), fixture.raw("tree", b"")] {
        let is_file = fixture.git(&["cat-file", "-t", &leaf]) == "blob";
        let before = fixture.git(&["rev-parse", "HEAD^{tree}"]);
        let mut tree = ten_times(&fixture, if is_file { "100644" } else { "40000" }, &leaf);
        for _ in 0..9 {
            tree = ten_times(&fixture, "40000", &tree);
        }
        let bomb = commit_tree(&fixture, &tree);
        let reverted = commit_tree(&fixture, &before);
        for sha in [bomb, reverted] {
            let changes = changes_in_time(&fixture, &sha);
            // A folder without files is no change, and equal folders are read only once, so these trees are compared to
            // the end.
            assert_eq!(changes.partial, is_file, "{:?}", changes.unknown);
            assert!(changes.files.len() + changes.more_files <= 20_001);
        }
    }
}

#[test]
fn trees_and_commits_that_contain_themselves_come_to_an_end() {
    let fixture = Fixture::new();
    let first = fixture.commit("a.txt", "a", "Begin");
    let itself = "1234567890123456789012345678901234567890";
    let tree = fixture.raw("tree", &entry("40000", "again", itself));
    // A loose object is found by its file name, whatever its content is, so this tree can contain itself.
    fs::create_dir_all(fixture.object(itself).parent().unwrap()).unwrap();
    fs::copy(fixture.object(&tree), fixture.object(itself)).unwrap();
    let bomb = commit_tree(&fixture, &tree);
    assert!(changes_in_time(&fixture, &bomb).partial);

    let other = "abcdefabcdefabcdefabcdefabcdefabcdefabcd";
    let tree = fixture.git(&["rev-parse", &format!("{first}^{{tree}}")]);
    let commit = fixture.raw("commit", format!("tree {tree}\nparent {other}\n\nagain\n").as_bytes());
    fs::create_dir_all(fixture.object(other).parent().unwrap()).unwrap();
    fs::copy(fixture.object(&commit), fixture.object(other)).unwrap();
    fs::write(fixture.path.join(".git/refs/heads/main"), commit.as_bytes()).unwrap();
    assert_eq!(walked(&fixture.repository()).commits.len(), 2);
    let reach = fixture.repository().reached(&[commit.parse().unwrap()], &[first], None);
    assert_eq!(reach, [crate::Reach::No]);
}

/// Returns bytes that inflate to `bytes` and are not smaller: zlib's format for data that can't be compressed.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let length = u16::try_from(bytes.len()).unwrap();
    let mut stored = vec![0x78, 0x01, 0x01];
    stored.extend_from_slice(&length.to_le_bytes());
    stored.extend_from_slice(&(!length).to_le_bytes());
    stored.extend_from_slice(bytes);
    stored.extend_from_slice(&(b << 16 | a).to_be_bytes());
    stored
}

#[test]
fn the_size_that_an_object_states_is_checked() {
    let fixture = Fixture::new();
    fixture.commit("a.txt", "a", "Begin");
    let blob = fixture.git(&["rev-parse", "HEAD:a.txt"]);
    let head = fixture.head();
    for (content, lines) in [
        ("blob 5\0three".to_owned(), Lines::Counted { insertions: 1, deletions: 0 }),
        ("blob 4000000000\0three".to_owned(), Lines::TooLarge),
        ("blob 18446744073709551615\0three".to_owned(), Lines::TooLarge),
        ("blob 99999999999999999999999999\0three".to_owned(), Lines::Missing),
        ("blob 6\0three".to_owned(), Lines::Missing),
        ("blob 1\0three".to_owned(), Lines::Missing),
        ("tree 5\0three".to_owned(), Lines::Missing),
        (String::new(), Lines::Missing),
    ] {
        fs::remove_file(fixture.object(&blob)).unwrap();
        fs::write(fixture.object(&blob), stored(content.as_bytes())).unwrap();
        assert_eq!(changes_in_time(&fixture, &head).files[0].lines, lines, "{content:?}");
    }
    // If the file of the object has gigabytes, it isn't read either.
    fs::File::create(fixture.object(&blob)).unwrap().set_len(3 << 30).unwrap();
    assert_eq!(changes_in_time(&fixture, &head).files[0].lines, Lines::TooLarge);
}

#[test]
fn commits_with_absurd_parents_are_left_out_with_the_reason() {
    let fixture = Fixture::new();
    fixture.commit("a.txt", "a", "Begin");
    let head = fixture.head();
    let parents: String = (0..10_000).map(|_| format!("parent {head}\n")).collect();
    let octopus = fixture.raw_commit(format!("{parents}\nmany\n").as_bytes());
    let history = walked(&fixture.repository());
    assert_eq!(history.unreadable[0].sha, octopus);
    assert!(history.unreadable[0].reason.contains("more than 1000 parents"));
    fixture.git(&["update-ref", "HEAD", &head.to_string()]);
    let novel = fixture.raw_commit(&[b"\n".as_slice(), &b"word ".repeat(5 << 20)].concat());
    let history = walked(&fixture.repository());
    assert_eq!(history.unreadable[0].sha, novel);
    assert!(history.unreadable[0].reason.contains("bytes"), "{}", history.unreadable[0].reason);
}

#[test]
fn packs_that_appear_and_vanish_are_read_and_damage_never_panics() {
    let fixture = Fixture::new();
    let lines: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    let shas: Vec<Sha> = (0..20)
        .map(|n| {
            fixture.commit("a.txt", lines.replace("line 7\n", &format!("line {n}\n")), &format!("step {n}"))
        })
        .collect();
    let repository = fixture.repository();
    let mut reader = repository.reader(&|_| false);
    let before: Vec<_> = shas.iter().map(|sha| reader.commit(sha).unwrap()).collect();
    // The reader that was opened before finds the objects in their new places.
    fixture.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    assert!(!fixture.object(&shas[0].to_string()).exists());
    let mut fresh = fixture.repository().reader(&|_| false).commit(&shas[3]).unwrap();
    assert_eq!(fresh, before[3]);
    let repository = fixture.repository();
    for (sha, before) in shas.iter().zip(&before) {
        fresh = repository.reader(&|_| false).commit(sha).unwrap();
        assert_eq!(&fresh, before);
    }
    assert!(shas.iter().all(|sha| reader.commit(sha).is_ok()));

    let pack = fs::read_dir(fixture.path.join(".git/objects/pack")).unwrap().map(|it| it.unwrap().path());
    let files: Vec<_> =
        pack.filter(|path| path.extension().is_some_and(|it| it == "pack" || it == "idx")).collect();
    for path in files {
        let whole = fs::read(&path).unwrap();
        for round in 0..60 {
            let mut damaged = whole.clone();
            for hit in 0..=round / 6 {
                let at = (round * 7919 + hit * 104_729) % damaged.len();
                damaged[at] = damaged[at].wrapping_add(1 + (round % 250) as u8);
            }
            if round % 10 == 9 {
                damaged.truncate(whole.len() * round / 60);
            }
            fs::remove_file(&path).unwrap();
            fs::write(&path, &damaged).unwrap();
            let repository = fixture.repository();
            let mut reader = repository.reader(&|_| false);
            let began = Instant::now();
            shas.iter().for_each(|sha| drop(reader.commit(sha)));
            assert!(began.elapsed() < SOON);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_delta_that_grows_is_not_unpacked() {
    let fixture = Fixture::new();
    // A run of a single byte is compressed a thousandfold, and the second text is stored as a small delta of the first.
    let bytes = vec![b'a'; 40 << 20];
    fixture.commit("a.bin", &bytes, "large");
    let sha = fixture.commit("a.bin", [&bytes[..], b"b"].concat(), "larger");
    fixture.git(&["gc", "-q"]);
    assert_eq!(changes_in_time(&fixture, &sha).files[0].lines, Lines::TooLarge);
}

/// The worst case for a comparison is two texts of a megabyte that consist of the same few lines, repeated in random
/// order.
#[test]
fn blobs_that_are_slow_to_compare_are_given_up() {
    let fixture = Fixture::new();
    let mut state = 1u64;
    let mut noise = |kinds: u64| -> Vec<u8> {
        let mut line = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            [b'a' + ((state >> 33) % kinds) as u8, b'\n']
        };
        (0..500_000).flat_map(|_| line()).collect()
    };
    for kinds in [2, 20] {
        fixture.commit("a.txt", noise(kinds), "one");
        let sha = fixture.commit("a.txt", noise(kinds), "other");
        let changes = changes_in_time(&fixture, &sha);
        assert_eq!(changes.files.len(), 1);
    }
}

#[test]
fn a_huge_number_of_branches_is_cut_and_reported() {
    let fixture = Fixture::new();
    let head = fixture.commit("a.txt", "a", "Begin");
    let packed: String = (0..30_000).map(|n| format!("{head} refs/heads/b{n:05}\n")).collect();
    fs::write(fixture.path.join(".git/packed-refs"), packed).unwrap();
    let tips = fixture.repository().tips();
    assert_eq!(tips.found.len(), 20_001);
    assert!(tips.faults[0].contains("only the first"), "{:?}", tips.faults);
}
