//! `evals spend`: whether processes that call a paid model in parallel overspend their shared limit.
//!
//! Each process works in its own project and calls a mock as fast as it can until the ledger refuses. The sum that the
//! mock would bill is then compared with the limit and with the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::calls::LONG;
use crate::client::{Place, Tiro};
use crate::mock::{self, USED};
use crate::stats::Report;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Processes at once, each in a project of its own
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// The limit, in US dollars
    #[arg(long, default_value_t = 1.0)]
    limit: f64,
}

/// The prices of input and output tokens, in dollars per million.
const PRICE: (u64, u64) = (50, 500);

/// What the mock bills for an answer, in millionths of a dollar.
const BILLED: u64 = USED.0 * PRICE.0 + USED.1 * PRICE.1;

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let root = root.path().canonicalize()?;
    let answers = Arc::new(AtomicU64::new(0));
    let port = {
        let answers = Arc::clone(&answers);
        // The answer is counted before it is sent, since a lost answer costs the same.
        mock::start(move || {
            answers.fetch_add(1, Ordering::SeqCst);
            "ready".to_owned()
        })?
    };
    let first = Place::create(&root)?;
    let config = root.join("config.toml");
    std::fs::write(
        &config,
        format!(
            "[providers.mock]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:{port}/v1'\nmodel = 'm'\n\
             max_output = 40\nprice = {{ input = {}, output = {} }}\n\
             [limits]\ncall = 'none'\nday = 'none'\ntotal = {}\n",
            PRICE.0, PRICE.1, args.limit
        ),
    )?;
    let places: Vec<Place> = (0..args.processes.max(1))
        .map(|number| {
            let project = root.join(format!("project{number}"));
            std::fs::create_dir_all(&project)?;
            Ok(Place { data_dir: first.data_dir.clone(), project })
        })
        .collect::<Result<_>>()?;
    let began = Instant::now();
    let granted: u64 = std::thread::scope(|scope| {
        let config = &config;
        let racers = places.iter().map(|place| {
            scope.spawn(move || {
                let ask = || {
                    let mut command = tiro.command(place, &["provider", "test", "mock"]);
                    command.env("TIRO_CONFIG", config);
                    crate::client::run_to_end(command, LONG).is_ok_and(|(status, ..)| status.success())
                };
                std::iter::repeat_with(ask).take_while(|is_granted| *is_granted).count() as u64
            })
        });
        let racers: Vec<_> = racers.collect();
        racers.into_iter().map(|racer| racer.join().unwrap_or_default()).sum()
    });
    let seconds = began.elapsed().as_secs_f64();
    let mut command = tiro.command(&places[0], &["stats", "--json"]);
    command.env("TIRO_CONFIG", &config);
    let (_, stats, _) = crate::client::run_to_end(command, LONG)?;
    let stats: Value = serde_json::from_str(&stats).context("reading the answer of `tiro stats`")?;
    let days = stats["spending"].as_array().context("`tiro stats` has no `spending`")?;
    let ledger: f64 = days.iter().filter_map(|day| day["cost"].as_f64()).sum();
    let billed = (answers.load(Ordering::SeqCst) * BILLED) as f64 / 1e6;

    let mut report = Report::default();
    let overspent = ((billed - args.limit) * 1e6).round().max(0.0) as usize;
    report.add("limit", args.limit, "$");
    report.add("billed", billed, "$");
    report.add("in the ledger", ledger, "$");
    report.add("calls granted", granted as f64, "");
    report.add("calls a second", granted as f64 / seconds, "/s");
    report.must_be_zero("overspent, millionths of a dollar", overspent);
    report.must_be_zero(
        "billed and not in the ledger, millionths",
        ((billed - ledger) * 1e6).round().max(0.0) as usize,
    );
    report.detail = json!({"processes": places.len(), "days": days});
    Ok(report)
}
