//! Random histories of edits: what the assistant has is always what the files contain, and no file moves unreported.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use tiro_base::thread::{Block, BlockText, ContentHash, FilePlace, Part, Thread};
use tiro_text::tokens;

/// An assistant that changes its copies as the prompt says.
#[derive(Default)]
struct CopyingAssistant(BTreeMap<String, String>);

impl CopyingAssistant {
    fn take(&mut self, part: Part, path: &str, text: &str) {
        match part {
            Part::File => {
                self.0.insert(path.to_owned(), text.to_owned());
            }
            Part::Change => {
                let new = apply(&self.0[path], text).expect("the diff applies to the copy");
                self.0.insert(path.to_owned(), new);
            }
            _ => {
                self.0.remove(path);
            }
        }
    }
}

/// A project and a thread about it.
#[derive(Default)]
struct World {
    files: BTreeMap<String, String>,
    thread: Thread,
    reader: CopyingAssistant,
    copies: BTreeMap<ContentHash, String>,
    moves: Vec<Moved>,
}

impl World {
    fn seen(&self) -> Vec<Seen> {
        let known = self.thread.ledger.iter().map(|entry| &entry.path);
        let mut paths: Vec<&String> = self.files.keys().chain(known).collect();
        paths.sort();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| {
                let entry = self.thread.ledger.iter().find(|entry| entry.path == *path);
                let state = match self.files.get(path) {
                    None => FileState::Gone("it no longer exists".into()),
                    Some(text) => {
                        let sent = ContentHash::of(text.as_bytes());
                        match entry.filter(|entry| entry.sent == sent && !entry.is_removed) {
                            Some(_) => FileState::Unchanged,
                            None => FileState::Read {
                                stat: None,
                                raw: sent,
                                sent,
                                tokens: tokens::count(text) as u32,
                                text: Some(text.as_str().into()),
                                before: entry
                                    .and_then(|entry| self.copies.get(&entry.sent))
                                    .map(|copy| Arc::from(copy.as_str())),
                            },
                        }
                    }
                };
                Seen { path: path.clone(), is_first: path.contains("first"), state }
            })
            .collect()
    }

    /// Plans a turn, and lets the reader and the thread take it.
    fn turn(&mut self, room: Room) -> Result<Plan, Full> {
        let places: BTreeMap<String, FilePlace> =
            self.thread.ledger.iter().map(|entry| (entry.path.clone(), entry.place)).collect();
        let plan = plan(&self.thread, &self.seen(), room, None, true)?;
        self.thread.turns += 1;
        if plan.new_epoch.is_some() {
            self.thread.epoch += 1;
            self.thread.blocks.clear();
            self.thread.ledger.clear();
            self.reader.0.clear();
        }
        for entry in &plan.entries {
            self.thread.ledger.retain(|known| known.path != entry.path);
            self.thread.ledger.push(entry.clone());
            let moved = places.get(&entry.path).is_some_and(|place| *place != entry.place);
            assert_eq!(moved, plan.moved.iter().any(|moved| moved.path == entry.path), "a silent move");
        }
        for sending in &plan.sendings {
            let text = match &sending.text {
                Some(text) => text.to_string(),
                None => self.files[&sending.path].clone(),
            };
            self.reader.take(sending.part, &sending.path, &text);
            let hash = ContentHash::of(text.as_bytes());
            self.thread.blocks.push(Block {
                turn: self.thread.turns,
                part: sending.part,
                path: Some(sending.path.clone()),
                tokens: sending.tokens as u32,
                text: BlockText::Blob(hash, None),
            });
        }
        for text in self.files.values() {
            self.copies.insert(ContentHash::of(text.as_bytes()), text.clone());
        }
        self.thread.is_fixed = plan.is_fixed;
        self.moves.extend(plan.moved.iter().cloned());
        Ok(plan)
    }

    fn inline(&self) -> Vec<&str> {
        let inline = self.thread.ledger.iter().filter(|entry| entry.place == FilePlace::Inline);
        let mut paths: Vec<&str> =
            inline.filter(|entry| !entry.is_removed).map(|entry| entry.path.as_str()).collect();
        paths.sort_unstable();
        paths
    }
}

fn room(window: usize) -> Room {
    Room { window, answer: 100, growth: 200, inline: usize::MAX, fixed: 50, history: 0 }
}

fn words(count: usize) -> String {
    (0..count).map(|n| if n % 9 == 8 { format!("word{n}\n") } else { format!("word{n} ") }).collect()
}

#[test]
fn small_files_go_inline_and_keep_their_places() {
    let mut world = World::default();
    for (path, size) in [("big.rs", 900), ("a.rs", 40), ("b.rs", 80), ("c.rs", 40)] {
        world.files.insert(path.into(), words(size));
    }
    let plan = world.turn(room(1500)).unwrap();
    assert_eq!(world.inline(), ["a.rs", "b.rs", "c.rs"]);
    assert_eq!(plan.overflow, ["big.rs"]);
    assert!(plan.is_fixed && plan.new_epoch.is_none());

    // The large file shrinks and a small one is new: both stay where they are searched.
    world.files.insert("big.rs".into(), words(5));
    world.files.insert("new.rs".into(), words(5));
    let plan = world.turn(room(1500)).unwrap();
    assert_eq!(plan.overflow, ["big.rs", "new.rs"]);
    assert_eq!((plan.sendings.len(), plan.unchanged.len()), (0, 3));

    // A change is sent as a diff, a removal is reported once, and a file that comes back is sent whole.
    let changed = world.files["b.rs"].replace("word17", "changed");
    world.files.insert("b.rs".into(), changed);
    let a = world.files.remove("a.rs").unwrap();
    let plan = world.turn(room(1500)).unwrap();
    let parts: Vec<(Part, &str)> = plan.sendings.iter().map(|sent| (sent.part, &*sent.path)).collect();
    assert_eq!(parts, [(Part::Removal, "a.rs"), (Part::Change, "b.rs")]);
    assert_eq!(world.turn(room(1500)).unwrap().sendings, []);
    world.files.insert("a.rs".into(), a);
    let plan = world.turn(room(1500)).unwrap();
    assert_eq!(plan.sendings.iter().map(|sent| sent.part).collect::<Vec<_>>(), [Part::File]);
    assert_eq!(world.reader.0["a.rs"], world.files["a.rs"]);
    assert!(world.moves.is_empty());
}

#[test]
fn files_with_priority_get_their_places_first() {
    let mut world = World::default();
    for (path, size) in [("a.rs", 200), ("first.rs", 280), ("first-too-large.rs", 3000), ("b.rs", 200)] {
        world.files.insert(path.into(), words(size));
    }
    world.turn(room(1500)).unwrap();
    assert_eq!(world.inline(), ["first.rs"]);
    // One file that is too large keeps no other out.
    let mut world = World::default();
    for (path, size) in [("a.rs", 50), ("first-too-large.rs", 3000), ("b.rs", 50)] {
        world.files.insert(path.into(), words(size));
    }
    world.turn(room(1500)).unwrap();
    assert_eq!(world.inline(), ["a.rs", "b.rs"]);
}

#[test]
fn a_file_that_grows_past_the_window_moves_and_is_reported() {
    let mut world = World::default();
    world.files.insert("a.rs".into(), words(40));
    world.files.insert("b.rs".into(), words(50));
    assert!(!world.turn(room(1500)).unwrap().is_fixed);
    world.files.insert("b.rs".into(), words(2000));
    let plan = world.turn(room(1500)).unwrap();
    assert_eq!(plan.new_epoch, Some(Why::Full));
    assert_eq!(plan.moved, [Moved { path: "b.rs".into(), to: FilePlace::Overflow }]);
    assert_eq!((world.inline(), plan.is_fixed), (vec!["a.rs"], true));
}

#[test]
fn the_history_is_shortened_before_a_file_moves() {
    let mut world = World::default();
    world.files.insert("a.rs".into(), words(100));
    world.turn(room(1500)).unwrap();
    let crowded = Room { history: 1200, ..room(1500) };
    let seen = world.seen();
    assert_eq!(plan(&world.thread, &seen, crowded, None, false), {
        let goal = (1500 - 100 - 50 - 1200_usize).saturating_sub(200);
        let whole = world.thread.blocks[0].tokens as usize;
        Err(Full::History(whole - goal))
    });
    let full = Room { fixed: 1500, ..room(1500) };
    assert_eq!(plan(&world.thread, &seen, full, None, true), Err(Full::Everything(100)));
}

#[test]
fn many_small_changes_end_in_a_new_epoch() {
    let mut world = World::default();
    world.files.insert("a.rs".into(), words(300));
    world.files.insert("b.rs".into(), words(300));
    let mut epochs = 0;
    for turn in 0..60 {
        let text = world.files["a.rs"].replacen("word", &format!("w{turn}"), 3);
        world.files.insert("a.rs".into(), text);
        let plan = world.turn(room(6000)).unwrap();
        epochs += usize::from(plan.new_epoch == Some(Why::Outdated));
        let blocks: usize = world.thread.blocks.iter().map(|block| block.tokens as usize).sum();
        assert!(blocks - plan.whole <= 6000 / 3);
        assert_eq!(world.reader.0, world.files);
    }
    assert!(epochs > 0 && world.moves.is_empty());
}

/// An edit of a file: its number, and what happens to it.
#[derive(Clone, Debug)]
enum Edit {
    Write(u8, usize),
    Append(u8, usize),
    Replace(u8, u8),
    Remove(u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..8u8, 0..400usize).prop_map(|(file, size)| Edit::Write(file, size)),
        (0..8u8, 0..60usize).prop_map(|(file, size)| Edit::Append(file, size)),
        (0..8u8, any::<u8>()).prop_map(|(file, word)| Edit::Replace(file, word)),
        (0..8u8).prop_map(Edit::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_assistant_has_what_the_files_contain(
        turns in prop::collection::vec((prop::collection::vec(edit(), 0..5), 900..4000usize), 1..14),
        shrinks in any::<bool>(),
    ) {
        let mut world = World::default();
        let first = turns[0].1;
        for (edits, window) in turns {
            for edit in edits {
                let name = |file: u8| format!("src/f{file}.rs");
                match edit {
                    Edit::Write(file, size) => {
                        world.files.insert(name(file), words(size));
                    }
                    Edit::Append(file, size) => world.files.entry(name(file)).or_default().push_str(&words(size)),
                    Edit::Replace(file, word) => {
                        if let Some(text) = world.files.get_mut(&name(file)) {
                            *text = text.replace(&format!("word{word} "), "other\n");
                        }
                    }
                    Edit::Remove(file) => {
                        world.files.remove(&name(file));
                    }
                }
            }
            let room = room(if shrinks { window } else { first });
            let plan = world.turn(room).unwrap();
            // Its copies of the inline files are current, and it has no others.
            let inline: BTreeMap<String, String> =
                world.inline().into_iter().map(|path| (path.to_owned(), world.files[path].clone())).collect();
            prop_assert_eq!(&world.reader.0, &inline);
            // Every file is somewhere, and the prompt fits.
            prop_assert_eq!(world.inline().len() + plan.overflow.len(), world.files.len());
            let blocks: usize = world.thread.blocks.iter().map(|block| block.tokens as usize).sum();
            prop_assert!(blocks + room.answer + room.fixed <= room.window);
            // A second turn without edits sends nothing.
            let again = super::plan(&world.thread, &world.seen(), room, None, true).unwrap();
            prop_assert!(again.sendings.is_empty() && again.new_epoch.is_none());
        }
    }
}
