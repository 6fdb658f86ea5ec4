//! How long a machine with many memories takes to exchange them with the server, and how much memory both sides take.
//!
//! The memories are messages, which are private, so that a second machine of the same user gets all of them. They are saved
//! by the program. Their vectors are made up, because embedding so many takes hours: they take as much room, and travel
//! as real ones do. No side has a model.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rusqlite::Connection;

use super::super::Sizes;
use super::{Crew, Machine, Ran};
use crate::calls;
use crate::client::{Era, Tiro};
use crate::corpus::Corpus;
use crate::random::Random;
use crate::stats::{Goal, Report};

/// The longest first exchange of a developer's machine, in seconds.
const FIRST: f64 = 90.0;

/// The longest exchange with nothing new, in seconds.
const NOTHING: f64 = 1.0;

/// How much memory an exchange may take more than a process that does nothing, in MiB.
const ABOVE: f64 = 64.0;

/// The space of the vectors: that of the model that is used unless another one is installed.
const SPACE: &str = "all-MiniLM-L6-v2/mean/l2";

/// How many numbers a vector has.
const NUMBERS: usize = 384;

/// How many different vectors are made. They repeat so far apart that nothing compresses them better for it.
const DIFFERENT: usize = 1000;

/// Measures, and adds the figures.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let none = tempfile::tempdir().context("making a temporary directory")?;
    let tiro = tiro.without_model(none.path())?;
    let crew = Crew::new("sync", "decision,commit", url, &tiro)?;
    let one = Machine::new(&tiro)?;
    // Before it is connected: a server that stores memories of a connected project exchanges them by itself.
    let chunks = fill(&one, sizes)?;
    crew.connect(&one)?;
    let server = || {
        let replica = crew.replica().context("the server runs")?;
        anyhow::Ok((replica.resident_mib().unwrap_or(0.0), replica.peak_mib().unwrap_or(0.0)))
    };
    let idle_server = server()?.0;
    let first = one.sync()?;
    let of_server = server()?.1;
    check(&crew, &first, chunks, sizes)?;
    let nothing = one.sync()?;
    let idle = idle(&one)?;
    let two = Machine::new(&tiro)?;
    crew.connect(&two)?;
    let pulled = two.sync()?;
    let pulled_from = server()?.1;
    let here = vectors(&two.store()?)?;
    // The server of the machine may have found further decisions, which are not embedded yet.
    if pulled.added("received") < first.added("sent") || here < chunks {
        bail!("the second machine got {} with {here} of {chunks} vectors", pulled.answer);
    }
    report.add("memories of a machine", sizes.machine as f64, "");
    report.add("  pieces with a made-up vector", chunks as f64, "");
    report.aim("first exchange", first.seconds, "s", Goal::AtMost(FIRST));
    report.add("  memories sent in a second", sizes.machine as f64 / first.seconds, "");
    report.aim("exchange with nothing new", nothing.seconds, "s", Goal::AtMost(NOTHING));
    report.add("second machine gets everything", pulled.seconds, "s");
    report.add("  memories received in a second", sizes.machine as f64 / pulled.seconds, "");
    report.add("resident memory of a server on the machine after one call", idle, "MiB");
    report.add("  of `tiro sync` with nothing new, peak", nothing.peak_mib, "MiB");
    let least = nothing.peak_mib.min(idle);
    let above = |name: &str, peak: f64, least: f64, report: &mut Report| {
        report.add(format!("  of {name}, peak"), peak, "MiB");
        report.aim("    above an idle process", peak - least, "MiB", Goal::AtMost(ABOVE));
    };
    above("the first `tiro sync`", first.peak_mib, least, report);
    above("the `tiro sync` that gets everything", pulled.peak_mib, least, report);
    report.add("  of the team's server before", idle_server, "MiB");
    above("the team's server, while it takes everything", of_server, idle_server, report);
    above("the team's server, while it gives everything", pulled_from, idle_server, report);
    Ok(())
}

/// Returns the resident memory of a server of `machine` that answered one call and does nothing, in MiB.
fn idle(machine: &Machine) -> Result<f64> {
    let mut server = machine.tiro.serve(&machine.place, Era::Session)?;
    calls::search(&mut server, "what was decided about the harbor", 10)?;
    server.resident_mib().context("there is no /proc to read")
}

/// Saves the memories, and makes up their vectors. Returns how many vectors there are.
fn fill(machine: &Machine, sizes: &Sizes) -> Result<usize> {
    let corpus = Corpus::new(sizes.seed);
    let messages: Vec<_> = (0..sizes.machine).map(|index| corpus.message(index)).collect();
    let mut server = machine.tiro.serve(&machine.place, Era::Session)?;
    calls::save_messages(&mut server, &messages)?;
    server.kill();
    let made: Vec<Vec<u8>> = {
        let mut random = Random::new(sizes.seed);
        (0..DIFFERENT).map(|_| vector(&mut random)).collect()
    };
    let mut connection = Connection::open(machine.store()?)?;
    let transaction = connection.transaction()?;
    let pending: Vec<i64> = transaction
        .prepare("SELECT chunk FROM pending ORDER BY chunk")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for (place, chunk) in pending.iter().enumerate() {
        let insert = "INSERT INTO vectors (chunk, space, embedding) VALUES (?1, ?2, ?3)";
        transaction.prepare_cached(insert)?.execute((chunk, SPACE, &made[place % DIFFERENT]))?;
        let insert = "INSERT INTO changes (chunk, change) VALUES (?1, 'added')";
        transaction.prepare_cached(insert)?.execute([chunk])?;
    }
    transaction.execute("DELETE FROM pending", [])?;
    transaction.commit()?;
    Ok(pending.len())
}

/// Returns a random vector of length 1, as half-precision floats.
fn vector(random: &mut Random) -> Vec<u8> {
    let numbers: Vec<f64> = (0..NUMBERS).map(|_| random.normal()).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    numbers.iter().flat_map(|number| half((number / length) as f32).to_le_bytes()).collect()
}

/// Returns a number between -1 and 1 as a half-precision float. Its last bits are cut off.
fn half(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    // The exponents are stored with 127 and with 15 added.
    match ((bits >> 23) & 0xff) as i32 - 127 + 15 {
        exponent @ 1.. => sign | (exponent as u16) << 10 | ((bits >> 13) & 0x3ff) as u16,
        _ => sign,
    }
}

/// Checks that the server has everything that was sent.
fn check(crew: &Crew, first: &Ran, chunks: usize, sizes: &Sizes) -> Result<()> {
    let database = crew.ground.database()?;
    let messages = database.number("SELECT count(*) FROM tiro.memories WHERE kind = 'message'")?;
    let vectors = database.number("SELECT count(*) FROM tiro.vectors")?;
    // A decision that a message contains is a memory of its own.
    let has_all = messages as usize == sizes.machine && first.added("sent") >= messages as u64;
    match has_all && vectors as usize == chunks {
        true => Ok(()),
        false => {
            bail!("the server has {messages} messages and {vectors} of {chunks} vectors: {}", first.answer)
        }
    }
}

/// Returns how many vectors a store has.
fn vectors(store: &Path) -> Result<usize> {
    let count: i64 =
        Connection::open(store)?.query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))?;
    Ok(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_halved() {
        for (number, bits) in
            [(0.5, 0x3800), (-0.5, 0xb800), (0.25, 0x3400), (0.1, 0x2e66), (0.0, 0), (1e-9, 0)]
        {
            assert_eq!(half(number), bits, "{number}");
        }
    }
}
