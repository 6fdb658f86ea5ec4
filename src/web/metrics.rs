//! Counts what a server does, and writes the counts as OpenMetrics text for a monitoring program.
//!
//! The labels come from fixed lists, so they contain no text of a memory and no name of a person, and their number is
//! bounded.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of the histogram's buckets, in seconds. Arbitrary: an answer takes milliseconds, and a consultation
/// minutes.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

/// The counts of a server. Clones share them.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    open: usize,
    /// The machines that wait for changes.
    waiting: usize,
    /// The answered requests, by method and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    durations: [u64; BUCKETS.len()],
    slower: u64,
    seconds: f64,
    /// The refused requests and connections, by reason.
    refused: BTreeMap<&'static str, u64>,
}

/// A request that is counted as open until this value is dropped.
pub struct Counted {
    metrics: Metrics,
    /// Whether it is that of a machine that waits, which is counted apart.
    is_wait: bool,
}

impl Metrics {
    /// Counts a request that begins.
    pub fn begin(&self) -> Counted {
        self.change(|counts| counts.open += 1);
        Counted { metrics: self.clone(), is_wait: false }
    }

    /// Counts a machine that begins to wait.
    pub fn begin_wait(&self) -> Counted {
        self.change(|counts| counts.waiting += 1);
        Counted { metrics: self.clone(), is_wait: true }
    }

    /// Counts an answered request. `method` is of a fixed list. How long a machine waited isn't counted.
    pub fn answered(&self, counted: &Counted, method: &'static str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        self.change(|counts| {
            *counts.requests.entry((method, status)).or_default() += 1;
            if counted.is_wait {
                return;
            }
            counts.seconds += seconds;
            match BUCKETS.iter().position(|most| seconds <= *most) {
                Some(bucket) => counts.durations[bucket] += 1,
                None => counts.slower += 1,
            }
        });
    }

    /// Counts a refused request or connection. `reason` is of a fixed list.
    pub fn refused(&self, reason: &'static str) {
        self.change(|counts| *counts.refused.entry(reason).or_default() += 1);
    }

    /// Returns the counts as OpenMetrics text.
    pub fn text(&self) -> String {
        self.change(|counts| written(counts)).expect("writing to a string doesn't fail")
    }

    fn change<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let is_wait = self.is_wait;
        self.metrics.change(|counts| match is_wait {
            true => counts.waiting -= 1,
            false => counts.open -= 1,
        });
    }
}

fn written(counts: &Counts) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(
        text,
        "# TYPE tiro_open_requests gauge\n# HELP tiro_open_requests Requests without a whole answer."
    )?;
    writeln!(text, "tiro_open_requests {}", counts.open)?;
    writeln!(text, "# TYPE tiro_waiting_machines gauge")?;
    writeln!(text, "# HELP tiro_waiting_machines Machines that wait for what others share.")?;
    writeln!(text, "tiro_waiting_machines {}", counts.waiting)?;
    writeln!(
        text,
        "# TYPE tiro_requests counter\n# HELP tiro_requests Answered requests by method and status."
    )?;
    for ((method, status), count) in &counts.requests {
        writeln!(text, "tiro_requests_total{{method=\"{method}\",status=\"{status}\"}} {count}")?;
    }
    writeln!(
        text,
        "# TYPE tiro_refused counter\n# HELP tiro_refused Refused requests and connections by reason."
    )?;
    for (reason, count) in &counts.refused {
        writeln!(text, "tiro_refused_total{{reason=\"{reason}\"}} {count}")?;
    }
    writeln!(text, "# TYPE tiro_request_seconds histogram\n# UNIT tiro_request_seconds seconds")?;
    writeln!(text, "# HELP tiro_request_seconds Time from a request to the end of its answer.")?;
    let mut total = 0;
    for (most, count) in BUCKETS.iter().zip(counts.durations) {
        total += count;
        writeln!(text, "tiro_request_seconds_bucket{{le=\"{most:?}\"}} {total}")?;
    }
    total += counts.slower;
    writeln!(text, "tiro_request_seconds_bucket{{le=\"+Inf\"}} {total}")?;
    writeln!(text, "tiro_request_seconds_count {total}\ntiro_request_seconds_sum {}", counts.seconds)?;
    writeln!(text, "# EOF")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_written_as_open_metrics() {
        let metrics = Metrics::default();
        let (open, waiting) = (metrics.begin(), metrics.begin_wait());
        metrics.answered(&open, "tools/call", 200, Duration::from_millis(30));
        metrics.answered(&open, "tools/call", 200, Duration::from_secs(1000));
        metrics.answered(&open, "other", 404, Duration::ZERO);
        metrics.answered(&waiting, "sync wait", 200, Duration::from_secs(50));
        metrics.refused("host");
        let text = metrics.text();
        for line in [
            "tiro_open_requests 1",
            "tiro_waiting_machines 1",
            "tiro_requests_total{method=\"sync wait\",status=\"200\"} 1",
            "tiro_requests_total{method=\"tools/call\",status=\"200\"} 2",
            "tiro_requests_total{method=\"other\",status=\"404\"} 1",
            "tiro_refused_total{reason=\"host\"} 1",
            "tiro_request_seconds_bucket{le=\"0.005\"} 1",
            "tiro_request_seconds_bucket{le=\"0.05\"} 2",
            "tiro_request_seconds_bucket{le=\"300.0\"} 2",
            "tiro_request_seconds_bucket{le=\"+Inf\"} 3",
            "tiro_request_seconds_count 3",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
        drop((open, waiting));
        for line in ["tiro_open_requests 0\n", "tiro_waiting_machines 0\n"] {
            assert!(metrics.text().contains(line), "{line}");
        }
    }
}
