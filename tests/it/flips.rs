//! Flips bits of a store with everything in it, and counts which are noticed.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};
use tiro::testing::{Flavour, ProjectId, ReadRecords, Scope, SqliteStore, TenantId};

use crate::consults::{Ground, TOOL};
use crate::harness::{Ran, Server, eventually};

/// How many bits are flipped inside values, and how many anywhere in the file.
const FLIPS: (usize, usize) = (700, 300);

/// Tables whose rows are made again, counted, or looked up elsewhere: a wrong one does no harm, or not for long.
const BESIDE: &[&str] = &[
    "context_cache",
    "embedding_cache",
    "counters",
    "measurements",
    "assemblies",
    "assembly_lines",
    "file_tokens",
    "leases",
    "pending",
    "changes",
    "versions",
    "commit_graph",
    "imports",
    "repeats",
    "summary_queue",
    "summary_attempts",
    "meta",
    "operations",
    "operation_memories",
    "purged",
    "sqlite_sequence",
];

/// Columns that count changes, by table: a wrong number makes something be done again.
const COUNTS: &[(&str, &str)] = &[("sessions", "version"), ("sessions", "grown")];

/// A store with memories, embeddings, a stash, threads with copies of files, summaries and facts, in which nothing waits.
fn grown() -> (Ground, PathBuf) {
    let ground = Ground::with("window = 16000\n", "");
    let models = std::env::var("TIRO_MODEL_DIR").expect("TIRO_MODEL_DIR names the folder of the models");
    let mut command = ground.home.tiro(&ground.project.path, &["serve"]);
    command.env("TIRO_MODEL_DIR", &models);
    let mut server = Server::start(command);
    ground.project.commit("README.md", "# The press\n", "Begin the press");
    assert!(Ran::of(&mut ground.home.tiro(&ground.project.path, &["import", "git"])).is_ok);
    for session in ["press", "mill"] {
        let text = |n: usize| match n {
            3 => format!("We decided to keep 45 quince trees in the {session}, because it is small."),
            _ => format!(
                "Reading {n}: {}",
                format!("the quince {session} runs at {} kPa today. ", n * 37).repeat(12)
            ),
        };
        let role = |n: usize| if n.is_multiple_of(2) { "user" } else { "assistant" };
        let messages: Vec<Value> =
            (0..120).map(|n| json!({"id": n.to_string(), "role": role(n), "text": text(n)})).collect();
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
        server.data("summarize_conversation", json!({"session_id": session}));
        server.data("retrieve_context", json!({"query": "quince", "session_id": session}));
    }
    let segments = json!([{"text": "The boiler hums.", "source": "src/a.rs"}, {"text": "The boiler ticks."}]);
    server.data("stash_context", json!({"segments": segments, "topic": "boiler"}));
    server.data("stash_context", json!({"segment_ids": ["press#0-9"], "expires_in_days": 30}));
    server.data(
        "store_memory",
        json!({"text": "The cellar is cold.", "topic": "cellar", "source": "src/a.rs"}),
    );
    for n in 0..4 {
        ground.project.write("src/a.rs", &format!("fn a() {{}}\n{}", "fn b() {}\n".repeat(20 + n)));
        server.data(
            TOOL,
            json!({"session_id": "lease", "instructions": format!("Question {n}?"), "context": ["src"]}),
        );
    }
    let store = Connection::open(ground.home.store()).unwrap();
    let count = |sql: &str| -> i64 { store.query_row(sql, [], |row| row.get(0)).unwrap() };
    eventually(|| {
        count("SELECT count(*) FROM pending") == 0
            && count("SELECT count(*) FROM memories WHERE seq NOT IN (SELECT memory FROM memory_sums)") == 0
            && count("SELECT count(*) FROM row_sums WHERE part = 23")
                == count("SELECT count(*) FROM memories")
    });
    for table in ["summaries", "vectors", "thread_copies", "stashed", "statements"] {
        assert!(count(&format!("SELECT count(*) FROM {table}")) > 0, "{table}");
    }
    server.end();
    let whole = ground.home.path().join("whole.db");
    store.execute("VACUUM INTO ?1", [whole.to_str().unwrap()]).unwrap();
    (ground, whole)
}

/// A number that looks random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Returns the columns whose values are flipped, with their tables, by kind.
fn columns(store: &Connection) -> BTreeMap<&'static str, Vec<(String, String)>> {
    let mut statement = store
        .prepare(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND t.name NOT LIKE 'text_index%'",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut kinds: BTreeMap<&'static str, Vec<(String, String)>> = BTreeMap::new();
    for (table, column) in rows.map(Result::<(String, String), _>::unwrap) {
        let kind = match (table.as_str(), column.as_str()) {
            ("memories", "text") => "texts",
            ("memories", _) => "other columns of memories",
            ("vectors", _) => "vectors",
            ("blobs", "body") => "copies of files",
            (table, column) if is_beside(table) || COUNTS.contains(&(table, column)) => continue,
            _ => "other tables",
        };
        let is_empty: bool = store
            .query_row(&format!("SELECT count({column}) = 0 FROM {table}"), [], |row| row.get(0))
            .unwrap();
        if !is_empty {
            kinds.entry(kind).or_default().push((table, column));
        }
    }
    kinds
}

/// Returns whether a wrong row of the table does no harm for long.
fn is_beside(table: &str) -> bool {
    table.ends_with("_sums") || BESIDE.contains(&table)
}

/// Flips a bit of a value of the column, in any row, and nothing else. Returns whether that is possible.
fn flip_value(store: &Connection, (table, column): &(String, String), dice: &mut Dice) -> bool {
    let sql = format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk");
    let mut statement = store.prepare(&sql).unwrap();
    let keys: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = format!("SELECT {}, {column} FROM {table} WHERE {column} IS NOT NULL", keys.join(", "));
    let count: i64 =
        store.query_row(&format!("SELECT count(*) FROM ({rows})"), [], |row| row.get(0)).unwrap();
    let which = format!("{rows} LIMIT 1 OFFSET {}", dice.below(count as usize));
    let mut cells: Vec<Cell> =
        store.query_row(&which, [], |row| (0..=keys.len()).map(|at| row.get(at)).collect()).unwrap();
    let flip = |bytes: &mut Vec<u8>, dice: &mut Dice| {
        let at = dice.below(bytes.len());
        bytes[at] ^= 1 << dice.below(8);
    };
    let (set, flipped) = match cells.pop().unwrap() {
        Cell::Integer(number) => ("?1", Cell::Integer(number ^ (1 << dice.below(63)))),
        Cell::Real(number) => ("?1", Cell::Real(f64::from_bits(number.to_bits() ^ (1 << dice.below(62))))),
        Cell::Text(text) if !text.is_empty() => {
            let mut bytes = text.into_bytes();
            flip(&mut bytes, dice);
            ("CAST(?1 AS TEXT)", Cell::Blob(bytes))
        }
        Cell::Blob(mut bytes) if !bytes.is_empty() => {
            flip(&mut bytes, dice);
            ("?1", Cell::Blob(bytes))
        }
        _ => return false,
    };
    let is_key: Vec<String> = keys.iter().zip(2..).map(|(key, place)| format!("{key} IS ?{place}")).collect();
    let sql = format!("UPDATE {table} SET {column} = {set} WHERE {}", is_key.join(" AND "));
    let values = std::iter::once(flipped).chain(cells);
    // A key may be taken.
    store.execute(&sql, params_from_iter(values)).is_ok_and(|changed| changed == 1)
}

/// Returns what is in each table, as hashes; `None` if it can't be read.
fn contents(path: &Path) -> Option<BTreeMap<String, u64>> {
    let store = Connection::open(path).ok()?;
    let mut statement = store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").ok()?;
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).ok()?.collect::<Result<_, _>>().ok()?;
    let mut all = BTreeMap::new();
    for table in tables.into_iter().filter(|table| !matches!(table.as_str(), "text_index" | "text_terms")) {
        let mut statement = store.prepare(&format!("SELECT * FROM {table}")).ok()?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).ok()?;
        let mut hasher = DefaultHasher::new();
        while let Some(row) = rows.next().ok()? {
            (0..columns).for_each(|at| format!("{:?}", row.get_ref(at)).hash(&mut hasher));
        }
        all.insert(table, hasher.finish());
    }
    Some(all)
}

/// Returns whether the checks of `tiro doctor` find a fault in the store at `path`.
fn is_noticed(path: &Path, scope: &Scope, runtime: &tokio::runtime::Runtime) -> bool {
    let Ok(store) = SqliteStore::open(path, Flavour::Project, scope.project.clone()) else { return true };
    let check = runtime.block_on(store.check(scope));
    store.close(Duration::from_secs(5));
    check.map_or(true, |check| !check.is_sound())
}

/// How many bits of a kind were flipped, and what became of them.
#[derive(Default)]
struct Tally {
    flips: usize,
    noticed: usize,
    /// Flips that change nothing that is read.
    harmless: usize,
    /// Flips in what is made again: caches, counters, the text index.
    beside: usize,
    missed: Vec<String>,
}

/// `cargo test --test it -- --ignored --nocapture flipped_bits`; `TIRO_MODEL_DIR` must name the folder of the models.
#[test]
#[ignore = "takes minutes, and needs the model"]
fn a_thousand_flipped_bits_are_noticed() {
    let (ground, whole) = grown();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = Connection::open(&whole).unwrap();
    let owner: String = store.query_row("SELECT owner FROM memories LIMIT 1", [], |row| row.get(0)).unwrap();
    let scope = Scope::own(TenantId::new(owner), ProjectId::parse("0123456789abcdef").unwrap());
    let kinds = columns(&store);
    drop(store);
    let path = ground.home.path().join("flipped.db");
    let fresh = |bytes: &[u8]| {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        std::fs::write(&path, bytes).unwrap();
    };
    let bytes = std::fs::read(&whole).unwrap();
    fresh(&bytes);
    assert!(!is_noticed(&path, &scope, &runtime), "the store is sound");
    let sound = contents(&whole).unwrap();
    let mut dice = Dice(7);
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let names: Vec<&'static str> = kinds.keys().copied().collect();
    let mut number = 0;
    while number < FLIPS.0 {
        let kind = names[number % names.len()];
        let which = &kinds[kind];
        let column = &which[dice.below(which.len())];
        fresh(&bytes);
        let store = Connection::open(&path).unwrap();
        store.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
        store.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
        if !flip_value(&store, column, &mut dice) {
            continue;
        }
        drop(store);
        number += 1;
        let tally = tallies.entry(kind).or_default();
        tally.flips += 1;
        match is_noticed(&path, &scope, &runtime) {
            true => tally.noticed += 1,
            false => tally.missed.push(format!("{}.{}", column.0, column.1)),
        }
    }
    for _ in 0..FLIPS.1 {
        let mut flipped = bytes.clone();
        let at = dice.below(flipped.len());
        flipped[at] ^= 1 << dice.below(8);
        fresh(&flipped);
        let read = contents(&path);
        let tally = tallies.entry("anywhere in the file").or_default();
        tally.flips += 1;
        if is_noticed(&path, &scope, &runtime) {
            tally.noticed += 1;
            continue;
        }
        let other = |table: &&String| read.as_ref().is_none_or(|read| read.get(*table) != sound.get(*table));
        let others: Vec<&String> = sound.keys().filter(other).collect();
        match others.iter().all(|table| is_beside(table) || table.starts_with("text_index")) {
            _ if others.is_empty() => tally.harmless += 1,
            true => tally.beside += 1,
            false => tally.missed.push(format!("byte {at}: {others:?}")),
        }
    }
    for (kind, Tally { flips, noticed, harmless, beside, missed }) in &tallies {
        eprintln!(
            "{kind}: {flips} flips, {noticed} noticed, {harmless} change nothing that is read, {beside} in what is made \
             again, missed {missed:?}"
        );
    }
    assert!(tallies.values().all(|tally| tally.missed.is_empty()));
}
