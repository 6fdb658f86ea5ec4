//! Fills a database with the memories of many users, and measures what a memory takes there.
//!
//! The first user saves messages through a replica. Their rows are then copied for all other users, with another owner:
//! every key of the schema begins with the owner, so the copies are what the program itself would have stored. A search
//! reads only the rows of one owner, so it makes no difference that the texts repeat. Without a model, vectors are made
//! up: they take the same space, but searches work by words alone. The rows are copied when the replica has done its work
//! on the messages; otherwise, the work would be copied too, and done for all users at once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::database::Database;
use super::ground::Replica;
use super::http::Caller;
use crate::corpus::Corpus;
use crate::stats::Report;

/// How long one call of the first user may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the first user's memories may take to be embedded.
const EMBEDDING: Duration = Duration::from_secs(3600);

/// How many messages are saved in one call.
const PER_CALL: usize = 500;

/// The columns that name the owner of other rows, beside `owner` itself.
const OTHER_OWNERS: [&str; 3] = ["session_owner", "memory_owner", "newer_owner"];

/// Tables that are not copied: who works on something at the moment.
const PASSING: [&str; 2] = ["leases", "pending"];

/// Saves `each` messages of the first of `callers` through `replica`, and copies them for all others. All call one project,
/// which is in `database`.
pub fn fill(
    database: &Database,
    replica: &Replica,
    callers: &[Caller],
    each: usize,
    corpus: &Corpus,
    has_model: bool,
) -> Result<()> {
    let first = callers.first().context("somebody must save")?;
    save(replica.port, first, each, corpus)?;
    database.run("SET search_path = tiro, public")?;
    embed(database, has_model)?;
    rest(database)?;
    let owner = format!("SELECT seq FROM owners WHERE author = '{}'", first.name);
    let [template] = &database.texts(&owner)?[..] else { bail!("one user saved, so one owner is private") };
    // Triggers and checks of foreign keys would do again what is copied.
    database.run("SET session_replication_role = replica")?;
    for caller in &callers[1..] {
        copy(database, template, &caller.name)?;
    }
    database.run("SET session_replication_role = origin")?;
    // The server does this by itself, some minutes later.
    database.run("VACUUM (ANALYZE)")?;
    Ok(())
}

fn save(port: u16, first: &Caller, each: usize, corpus: &Corpus) -> Result<()> {
    let messages: Vec<_> = (0..each).map(|index| corpus.message(index)).collect();
    for session in messages.chunk_by(|a, b| a.session == b.session) {
        for part in session.chunks(PER_CALL) {
            let fields: Vec<_> = part
                .iter()
                .map(|it| json!({"id": it.id, "role": it.role, "text": it.text, "time": it.time}))
                .collect();
            let arguments = json!({"session_id": part[0].session, "messages": fields});
            let outcome = first.insist(port, "save_messages", &arguments, PATIENCE);
            if outcome.structured()["saved"].as_u64() != Some(part.len() as u64) {
                bail!("{} messages were not saved: {outcome:?}", part.len());
            }
        }
    }
    Ok(())
}

/// Waits until everything is embedded, or makes vectors up if there is no model.
fn embed(database: &Database, has_model: bool) -> Result<()> {
    if has_model {
        let began = Instant::now();
        while database.number("SELECT count(*) FROM pending")? > 0 {
            if began.elapsed() > EMBEDDING {
                bail!("the messages were not embedded within {} s", EMBEDDING.as_secs());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        return Ok(());
    }
    database.run(
        "INSERT INTO vectors (owner, chunk, space, label, embedding)
             SELECT p.owner, p.chunk, 'made up', d.facet, v.embedding FROM pending p JOIN documents d USING (owner, chunk), LATERAL (
                 SELECT array_agg(random() - 0.5)::real[]::halfvec AS embedding
                 FROM generate_series(1, 384) WHERE p.chunk IS NOT NULL) v;
         DELETE FROM pending",
    )
}

/// Waits until the replica has nothing left to do about the messages.
fn rest(database: &Database) -> Result<()> {
    const QUIET: Duration = Duration::from_secs(5);
    let (began, mut since, mut known) = (Instant::now(), Instant::now(), 0);
    while since.elapsed() < QUIET {
        if began.elapsed() > EMBEDDING {
            bail!("the replica was not done within {} s", EMBEDDING.as_secs());
        }
        let waiting = database.number("SELECT count(*) FROM sessions WHERE grown IS NOT NULL")?;
        let memories = database.number("SELECT count(*) FROM memories")?;
        if waiting > 0 || memories != known {
            (since, known) = (Instant::now(), memories);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Copies all rows of the owner `template` for the author `name`.
fn copy(database: &Database, template: &str, name: &str) -> Result<()> {
    let make = format!(
        "INSERT INTO owners (tenant, project, author) SELECT tenant, project, '{name}' FROM owners WHERE seq = {template}
         RETURNING seq"
    );
    let owner = database.number(&make)?;
    for (table, columns) in tables(database)? {
        if PASSING.contains(&table.as_str()) {
            continue;
        }
        let value = |column: &String| match column.as_str() {
            "owner" => owner.to_string(),
            other if OTHER_OWNERS.contains(&other) => {
                format!("CASE {other} WHEN {template} THEN {owner} ELSE {other} END")
            }
            other => format!("\"{other}\""),
        };
        let names: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let values: Vec<String> = columns.iter().map(value).collect();
        database.run(&format!(
            "INSERT INTO \"{table}\" ({}) SELECT {} FROM \"{table}\" WHERE owner = {template}",
            names.join(", "),
            values.join(", ")
        ))?;
    }
    Ok(())
}

/// Returns the tables whose rows have an owner, each with its columns.
pub fn tables(database: &Database) -> Result<Vec<(String, Vec<String>)>> {
    let rows = database.rows(
        "SELECT c.table_name, string_agg(c.column_name, ',' ORDER BY c.ordinal_position)
         FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
         WHERE c.table_schema = 'tiro' AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
         GROUP BY c.table_name HAVING bool_or(c.column_name = 'owner') ORDER BY c.table_name",
    )?;
    let table = |row: &tokio_postgres::SimpleQueryRow| {
        let columns = row.get(1).unwrap_or_default().split(',').map(str::to_owned).collect();
        (row.get(0).unwrap_or_default().to_owned(), columns)
    };
    Ok(rows.iter().map(table).collect())
}

/// Adds how many bytes a memory takes, in all and by table.
pub fn sizes(database: &Database, report: &mut Report) -> Result<()> {
    let memories = database.number("SELECT count(*) FROM tiro.memories")?.max(1) as f64;
    let text =
        database.number("SELECT coalesce(sum(octet_length(text)), 0)::bigint FROM tiro.memories")? as f64;
    let chunks = database.number("SELECT count(*) FROM tiro.chunks")? as f64;
    let postings = database.number("SELECT count(*) FROM tiro.postings")? as f64;
    report.add("bytes of a memory's text", text / memories, "B");
    report.add("chunks of a memory", chunks / memories, "");
    report.add("postings of a memory", postings / memories, "");
    let rows = database.rows(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
         WHERE relnamespace = 'tiro'::regnamespace AND relkind = 'r' ORDER BY pg_total_relation_size(oid) DESC",
    )?;
    let (mut whole, mut rest) = (0.0, 0.0);
    let mut shown = Vec::new();
    for row in &rows {
        let size = |at| row.get(at).and_then(|text: &str| text.parse::<f64>().ok()).unwrap_or(0.0) / memories;
        let (table, indexes) = (size(1), size(2));
        whole += table + indexes;
        match shown.len() < 6 {
            true => shown.push((row.get(0).unwrap_or_default().to_owned(), table, indexes)),
            false => rest += table + indexes,
        }
    }
    report.add("bytes of a memory in the database", whole, "B");
    for (name, table, indexes) in shown {
        report.add(format!("  {name}: rows"), table, "B");
        report.add(format!("  {name}: indexes"), indexes, "B");
    }
    report.add("  all other tables", rest, "B");
    Ok(())
}
