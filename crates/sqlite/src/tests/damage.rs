//! Damage inside what is stored, which SQLite doesn't notice.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::file::verify;
use crate::tests::engine::OnFile;
use crate::{SqliteBackup, SqliteStore};
use tiro_base::filter::Filter;
use tiro_base::memory::{DAMAGED, Kind, MemoryId};
use tiro_base::scope::{Scope, TenantId};
use tiro_conformance::fixture::{embedded, name, note};
use tiro_conformance::subject::project;
use tiro_store::WriteMemories;
use tiro_store::{Damage, Flavour, ForeignPart, Mended, Outcome};

const RIGHT: &str = "the valve opens at 473 kPa";

#[tokio::test]
async fn a_damaged_text_is_noticed_and_repaired_by_the_right_one() {
    let fixture = OnFile::new();
    fixture.say("s", &["oak"]).await;
    let id = fixture.put(note(RIGHT)).await;
    let damages = [
        "UPDATE memories SET text = replace(text, '473', '673') WHERE text LIKE '%473%'",
        // A byte that can't be in a text, and a text of another type.
        "UPDATE memories SET text = CAST(x'74686520ff' || substr(text, 6) AS TEXT) WHERE text LIKE '%473%'",
        "UPDATE memories SET text_hash = zeroblob(32) WHERE text LIKE '%473%'",
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        damaged(&fixture, damage);
        let check = fixture.store.check(&fixture.scope).await.unwrap();
        assert_eq!(check.damage.memories, [id.to_string()], "{damage}");
        let opened = fixture.store.memory(&fixture.scope, &id).await.unwrap().unwrap();
        assert!(opened.is_damaged && opened.text.len() == RIGHT.len(), "{damage}");
        let target = fixture.engine.folder().join(format!("{number}.db"));
        assert_eq!(fixture.store.back_up(&fixture.scope, &target).await.unwrap().memories, [id.to_string()]);
        let mut foreign = SqliteBackup::open(&fixture.scope, &target).await.unwrap();
        let page = foreign.next(ForeignPart::Original).await.unwrap().unwrap();
        assert_eq!((page.damaged, page.memories.len()), (1, 1));
        let receipt = fixture.store.save(&fixture.scope, vec![note(RIGHT)], 9).await.unwrap();
        assert_eq!(receipt.outcomes[0].1, Outcome::AlreadyStored);
        let opened = fixture.store.memory(&fixture.scope, &id).await.unwrap().unwrap();
        assert!(!opened.is_damaged && opened.text == RIGHT);
        assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
    }
    assert_eq!(fixture.listed(&Filter::default()).await, [RIGHT, "oak"]);
    assert_eq!(fixture.rows("s").await.len(), 1, "{:?}", name("s"));
}

#[tokio::test]
async fn another_text_under_the_id_repairs_nothing() {
    let fixture = OnFile::new();
    let right = note(RIGHT);
    fixture.put(note(RIGHT)).await;
    damaged(&fixture, "UPDATE memories SET text = 'the valve opens at 673 kPa'");
    let mut other = note("something else");
    other.id = right.id.clone();
    let receipt = fixture.store.save(&fixture.scope, vec![other], 9).await.unwrap();
    assert_eq!(receipt.outcomes[0].1, Outcome::Conflict);
    assert!(!fixture.store.check(&fixture.scope).await.unwrap().is_sound());
}

/// What in a row is damaged is noticed by the check, by a backup, and when it is read.
#[tokio::test]
async fn a_damaged_row_and_a_damaged_vector_are_noticed() {
    let fixture = OnFile::new();
    let said = fixture.say("s", &["oak", "elm"]).await;
    fixture.put(embedded(note(RIGHT), [1.0, 0.0, 0.0, 0.0])).await;
    fixture.store.mark(&fixture.scope, &said[..1], true, None).await.unwrap();
    // The mark changed what the sum covers; the idle worker computes it again, with those of other rows.
    assert!(fixture.store.sum_up(&fixture.scope, 99).await.unwrap() > 1);
    assert_eq!(fixture.store.sum_up(&fixture.scope, 99).await.unwrap(), 0);
    assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
    for (damage, undo) in [
        ("kind = 'research'", "kind = 'message'"),
        ("provenance = 'imported'", "provenance = 'user_said'"),
        ("time = time + 1", "time = time - 1"),
        ("marked = 0", "marked = 1"),
        ("ordinal = 7", "ordinal = 0"),
        ("tokens = tokens + 1", "tokens = tokens - 1"),
        ("speaker = 'Eve'", "speaker = NULL"),
        ("tombstoned_at = 5", "tombstoned_at = NULL"),
        ("owner = 'eve'", "owner = 'ines'"),
    ] {
        let was = row(&fixture);
        damaged(&fixture, &format!("UPDATE memories SET {damage} WHERE text = 'oak'"));
        let found = fixture.store.check(&fixture.scope).await.unwrap().damage.memories;
        assert_eq!(found, [said[0].to_string()], "{damage}");
        damaged(&fixture, &format!("UPDATE memories SET {undo} WHERE text = 'oak'"));
        if row(&fixture) == was {
            assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound(), "{undo}");
        }
    }
    damaged(&fixture, "UPDATE vectors SET embedding = zeroblob(8)");
    assert_eq!(fixture.store.check(&fixture.scope).await.unwrap().damage.vectors, 1);
    let target = fixture.engine.folder().join("damaged.db");
    assert_eq!(fixture.store.back_up(&fixture.scope, &target).await.unwrap().vectors, 1);
}

/// What memories have beside them is covered too: a single row, and rows that belong to another row together.
#[tokio::test]
async fn a_damaged_row_beside_memories_is_noticed() {
    let fixture = OnFile::new();
    fixture.say("s", &["oak", "elm"]).await;
    fixture.say("t", &["ash"]).await;
    fixture.put(note(RIGHT)).await;
    let connection = Connection::open(fixture.store.path()).unwrap();
    connection
        .execute("INSERT INTO memory_paths (memory, path) VALUES (4, 'a.rs'), (4, 'b.rs')", [])
        .unwrap();
    fixture.store.sum_up(&fixture.scope, 99).await.unwrap();
    assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
    for (damage, undo, rows) in [
        ("UPDATE sessions SET title = 'u' WHERE name = 's'", "UPDATE sessions SET title = NULL", 1),
        ("UPDATE chunks SET end_byte = 2 WHERE seq = 1", "UPDATE chunks SET end_byte = 3 WHERE seq = 1", 1),
        (
            "UPDATE memory_paths SET path = 'c.rs' WHERE path = 'b.rs'",
            "UPDATE memory_paths SET path = 'b.rs' WHERE path = 'c.rs'",
            1,
        ),
        // The path went to another memory, where no sum is.
        (
            "UPDATE memory_paths SET memory = 1 WHERE path = 'b.rs'",
            "UPDATE memory_paths SET memory = 4 WHERE path = 'b.rs'",
            1,
        ),
    ] {
        damaged(&fixture, damage);
        assert_eq!(fixture.store.check(&fixture.scope).await.unwrap().damage.rows, rows, "{damage}");
        damaged(&fixture, undo);
        assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound(), "{undo}");
    }
    // A row that belongs to another owner than what it is about.
    let owner = "UPDATE sessions SET owner = 'jnes' WHERE name = 't'";
    damaged(&fixture, owner);
    assert_eq!(fixture.store.check(&fixture.scope).await.unwrap().damage.rows, 1);
    damaged(&fixture, &owner.replace("jnes", "ines"));
    // A summary is marked where it is shown.
    let id = MemoryId::derive(Kind::Summary, None, "of s");
    let insert = "INSERT INTO summaries (owner, id, session, level, first, last, messages, version, provider, model, quality,
            provenance, made_at, source_hash, cited, tokens, text)
        VALUES ('ines', ?1, 1, 'brief', 0, 1, 2, 1, 'extractive', '', 1.0, 'derived', 1, zeroblob(32), '0', 3, 'an oak of 473')";
    connection.execute(insert, [id.as_str()]).unwrap();
    fixture.store.sum_up(&fixture.scope, 99).await.unwrap();
    damaged(&fixture, "UPDATE summaries SET text = 'an oak of 673'");
    let shown = fixture.store.summary(&fixture.scope, &id).await.unwrap().unwrap().summary.text;
    assert_eq!(shown, format!("[{DAMAGED}] an oak of 673"));
    damaged(&fixture, "UPDATE summaries SET text = 'an oak of 473'");
    assert_eq!(
        fixture.store.summary(&fixture.scope, &id).await.unwrap().unwrap().summary.text,
        "an oak of 473"
    );
    // Triggers remove the sums of what programs change.
    connection.execute("UPDATE sessions SET title = 'a title'", []).unwrap();
    connection.execute("DELETE FROM memory_paths WHERE path = 'b.rs'", []).unwrap();
    assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
    assert!(fixture.store.sum_up(&fixture.scope, 99).await.unwrap() > 0);
    assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
}

/// A cached answer quotes texts.
#[tokio::test]
async fn a_damaged_answer_is_not_taken_from_the_cache() {
    let fixture = OnFile::new();
    let cached = async || fixture.store.cached(&fixture.scope, [7; 32], 5).await.unwrap();
    fixture.store.cache(&fixture.scope, [7; 32], RIGHT.to_owned(), 5, 100, 1000).await.unwrap();
    assert_eq!(cached().await.as_deref(), Some(RIGHT));
    for damage in [
        "UPDATE context_cache SET body = replace(body, '473', '673')",
        "UPDATE context_cache SET body = CAST(x'ff' || body AS TEXT)",
        "UPDATE context_cache SET body = ''",
    ] {
        damaged(&fixture, damage);
        assert_eq!(cached().await, None, "{damage}");
    }
    fixture.store.cache(&fixture.scope, [7; 32], RIGHT.to_owned(), 6, 100, 1000).await.unwrap();
    assert_eq!(cached().await.as_deref(), Some(RIGHT));
}

#[tokio::test]
async fn what_can_be_made_again_is_mended() {
    let fixture = OnFile::new();
    fixture.say("s", &["oak", "elm"]).await;
    fixture.put(embedded(note(RIGHT), [1.0, 0.0, 0.0, 0.0])).await;
    let waited = fixture.store.pending(&fixture.scope).await.unwrap();
    let before = (fixture.found("oak").await, fixture.found("valve").await);
    damaged(&fixture, "UPDATE vectors SET embedding = zeroblob(8)");
    // A vector is not made again from a damaged text.
    damaged(&fixture, "UPDATE memories SET text = 'the valve opens at 673 kPa' WHERE kind <> 'message'");
    let left = Mended { left: 1, ..Mended::default() };
    assert_eq!(fixture.store.mend(&fixture.scope).await.unwrap(), left);
    fixture.store.save(&fixture.scope, vec![note(RIGHT)], 9).await.unwrap();
    let mended = fixture.store.mend(&fixture.scope).await.unwrap();
    assert_eq!((mended.vectors, mended.left), (1, 0));
    assert_eq!(fixture.store.pending(&fixture.scope).await.unwrap(), waited + 1);
    assert!(fixture.store.check(&fixture.scope).await.unwrap().damage == Damage::default());
    for rows in
        ["DELETE FROM text_index WHERE rowid IN (SELECT max(seq) FROM chunks)", "DELETE FROM text_index"]
    {
        damaged(&fixture, rows);
        assert!(fixture.store.check(&fixture.scope).await.unwrap().chunks_unindexed > 0);
        assert!(fixture.store.mend(&fixture.scope).await.unwrap().rows > 0);
        assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound());
        assert_eq!((fixture.found("oak").await, fixture.found("valve").await), before);
    }
    assert_eq!(fixture.store.mend(&fixture.scope).await.unwrap(), Mended::default());
    for wrong in [
        "UPDATE sessions SET memories = 9",
        "UPDATE memory_counts SET bytes = 1",
        "DELETE FROM owner_counts",
        "INSERT INTO stash_groups (owner, memories, tokens, last) VALUES ('ines', 1, 1, 1)",
    ] {
        damaged(&fixture, wrong);
        assert!(fixture.store.check(&fixture.scope).await.unwrap().counts_off > 0, "{wrong}");
        assert!(fixture.store.mend(&fixture.scope).await.unwrap().counts > 0, "{wrong}");
        assert!(fixture.store.check(&fixture.scope).await.unwrap().is_sound(), "{wrong}");
    }
}

/// A backup from another machine names another owner. What is damaged in it stays known as damaged.
#[tokio::test]
async fn a_whole_copy_is_given_to_another_owner() {
    let fixture = OnFile::new();
    let said = fixture.say("s", &["oak", "elm"]).await;
    damaged(&fixture, "UPDATE memories SET time = time + 1 WHERE text = 'oak'");
    let copy = fixture.engine.folder().join("copy.db");
    fixture.store.copy_whole(&fixture.scope, &copy).await.unwrap();
    let owner = TenantId::new("tomasz");
    SqliteStore::settle(&copy, Flavour::Project, &owner).await.unwrap();
    let contents = SqliteStore::contents(&copy).await.unwrap();
    assert_eq!((contents.memories, &contents.damage.memories), (2, &vec![said[0].to_string()]));
    let store = SqliteStore::open(&copy, Flavour::Project, project()).unwrap();
    let scope = Scope::own(owner, project());
    assert_eq!(store.memory(&scope, &said[1]).await.unwrap().unwrap().text, "elm");
    assert_eq!(store.check(&scope).await.unwrap().damage.memories.len(), 1);
    // A file that defines code of its own is refused.
    let hostile = Connection::open(&copy).unwrap();
    hostile
        .execute_batch("CREATE TRIGGER evil AFTER INSERT ON memories BEGIN DELETE FROM memories; END")
        .unwrap();
    drop(hostile);
    store.close(std::time::Duration::from_secs(1));
    let refused = SqliteStore::settle(&copy, Flavour::Project, &TenantId::new("ines")).await.unwrap_err();
    assert!(refused.to_string().contains("tables of Tiro"), "{refused}");
}

/// Measures how fast texts are verified: `cargo test -p tiro-store -- --ignored --nocapture texts_are_verified`.
#[tokio::test]
#[ignore = "measures"]
async fn texts_are_verified_fast() {
    for (count, size) in [(60, 4 << 20), (60_000, 4 << 10)] {
        let fixture = OnFile::new();
        {
            let mut connection = Connection::open(fixture.store.path()).unwrap();
            let changes = connection.transaction().unwrap();
            for number in 0..count {
                let text = format!("{number:08} quince ").repeat(size / 16);
                let hash = blake3::hash(text.as_bytes());
                let sql = "INSERT INTO memories (owner, id, kind, provenance, time, stored_at, tokens, text_hash, text)
                    VALUES ('ines', ?1, 'note', 'user_said', 1, 1, 1, ?2, ?3)";
                changes.execute(sql, (number.to_string(), hash.as_bytes(), text)).unwrap();
            }
            changes.commit().unwrap();
        }
        let began = std::time::Instant::now();
        let damage = verify::damage(fixture.store.path()).unwrap();
        let rate = (count * size) as f64 / began.elapsed().as_secs_f64() / 1e6;
        eprintln!("{count} texts of {size} bytes: {rate:.0} MB/s");
        assert_eq!(damage, Damage::default());
    }
}

/// Returns the columns of a memory, as text.
fn row(fixture: &OnFile) -> String {
    let connection = Connection::open(fixture.store.path()).unwrap();
    let sql =
        "SELECT kind || provenance || time || marked || ordinal || tokens || coalesce(speaker, '') || owner
        FROM memories WHERE text = 'oak'";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Changes the file as damage does: no trigger notices it.
fn damaged(fixture: &OnFile, sql: &str) {
    let connection = Connection::open(fixture.store.path()).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

/// Flips single bits of a closed file, in the pages of the tables with memories and vectors, and counts how many are
/// noticed of those that change anything that is read.
#[tokio::test]
async fn flipped_bits_are_noticed() {
    let fixture = OnFile::new();
    for number in 0..40 {
        let words = format!("reading {number}: the press runs at {} kPa. ", number * 37).repeat(20);
        fixture.put(embedded(note(&words), [1.0, number as f32, 0.0, 0.5])).await;
    }
    let target = fixture.engine.folder().join("sound.db");
    fixture.store.back_up(&fixture.scope, &target).await.unwrap();
    let bytes = std::fs::read(&target).unwrap();
    let sound = content(&target).unwrap();
    let pages = pages(&target);
    let mut random = 7_u64;
    let (mut flips, mut harmless, mut noticed, mut missed) = (0, 0, 0, Vec::new());
    while flips < 200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (pages[(random >> 40) as usize % pages.len()] - 1) * 4096 + (random >> 13) as usize % 4096;
        let bit = (random >> 8) as u8 % 8;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        let path = fixture.engine.folder().join(format!("flipped-{flips}.db"));
        std::fs::write(&path, &flipped).unwrap();
        flips += 1;
        match content(&path) {
            Ok(read) if read == sound => harmless += 1,
            _ if is_noticed(&path).await => noticed += 1,
            _ => missed.push((at, bit)),
        }
    }
    eprintln!(
        "{flips} flips: {harmless} change nothing that is read, {noticed} are noticed, missed {missed:?}"
    );
    assert!(missed.is_empty(), "{missed:?}");
    assert!(noticed > 100, "{noticed}");
}

/// Returns whether the check, or opening the file, notices that it is damaged.
async fn is_noticed(path: &std::path::Path) -> bool {
    let Ok(store) = SqliteStore::open(path, Flavour::Project, project()) else { return true };
    let scope = Scope::own(TenantId::new("ines"), project());
    store.check(&scope).await.map_or(true, |check| !check.is_sound())
}

/// Returns the pages of the tables that hold memories and vectors.
fn pages(path: &std::path::Path) -> Vec<usize> {
    let connection = Connection::open(path).unwrap();
    let size: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    assert_eq!(size, 4096);
    let roots = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name IN ('memories', 'vectors')";
    let mut statement = connection.prepare(roots).unwrap();
    let roots: Vec<i64> =
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let roots: Vec<usize> = roots.into_iter().map(|root| root as usize).collect();
    let bytes = std::fs::read(path).unwrap();
    let mut pages = Vec::new();
    let mut open = roots;
    while let Some(page) = open.pop() {
        pages.push(page);
        let body = &bytes[(page - 1) * 4096..page * 4096];
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        if body[0] == 5 {
            let cells = u16::from_be_bytes([body[3], body[4]]) as usize;
            let at = |cell: usize| u16::from_be_bytes([body[12 + 2 * cell], body[13 + 2 * cell]]) as usize;
            open.extend((0..cells).map(|cell| number(at(cell))));
            open.push(number(8));
        }
    }
    pages
}

/// Returns everything in the tables with memories and vectors.
fn content(path: &std::path::Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open(path)?;
    let mut all = Vec::new();
    for table in ["memories", "vectors"] {
        let mut statement = connection.prepare(&format!("SELECT rowid, * FROM {table} ORDER BY rowid"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<String> = (0..columns).map(|at| format!("{:?}", row.get_ref(at))).collect();
            all.push(values.join("|"));
        }
    }
    Ok(all)
}
