//! `tiro bench`: measures the time that parts of the program take on given data. The evals compare the times with those
//! of similar programs. Prints JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::print::Out;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::memory::{Level, Role};
use tiro_base::times::parse_time;
use tiro_digest::summarize::{self, Source};
use tiro_embed::{Embedder, embed_whole};
use tiro_host::engine::Engine;
use tiro_redact::Redactor;
use tiro_sqlite::vectors::{Filter, VectorIndex, VectorRow, encode_f16, rescore};
use tiro_text::tokens;

/// The number of dimensions of the vectors in the files that `tiro bench vectors` reads.
const DIMENSIONS: usize = 384;

/// The number of candidates that the search by int8 codes returns for each wanted hit.
const CANDIDATES: usize = 4;

/// The arguments of `tiro bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Embeds the texts of a file with one JSON string or `{"text"}` object per line.
    Embed {
        #[arg(long)]
        texts: PathBuf,
        #[arg(long, default_value_t = 2)]
        rounds: usize,
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
    /// Redacts the texts of a file with one JSON string or `{"text"}` object per line.
    Redact {
        #[arg(long)]
        texts: PathBuf,
        #[arg(long, default_value_t = 2)]
        rounds: usize,
    },
    /// Scores the summaries of a file with one object `{"sources": [{"speaker", "role", "time", "text"}],
    /// "summary"}` per line. A time is in milliseconds.
    Quality {
        #[arg(long)]
        summaries: PathBuf,
    },
    /// Makes the title and the summaries of each session of a file with one message `{"session", "speaker", "role",
    /// "time", "text"}` per line, without a model.
    Summarize {
        #[arg(long)]
        messages: PathBuf,
        /// Only of this session.
        #[arg(long)]
        session: Option<String>,
    },
    /// Counts the tokens of several files. `--files` names a file that lists their paths, one per line.
    Tokens {
        #[arg(long)]
        files: PathBuf,
        #[arg(long, default_value_t = 2)]
        rounds: usize,
    },
    /// Searches vectors that are read from files of little-endian f32, 384 per vector.
    Vectors {
        #[arg(long)]
        data: PathBuf,
        #[arg(long)]
        queries: PathBuf,
        #[arg(long, default_value_t = 10)]
        k: usize,
        #[arg(long, default_value_t = 2)]
        rounds: usize,
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
}

/// Runs the chosen part of the program and prints the times that it took.
pub fn run(engine: &Engine, args: Args) -> Result<ExitCode> {
    let answer = match args.part {
        Part::Embed { texts, rounds, threads } => embed(engine, &texts, rounds, threads)?,
        Part::Redact { texts, rounds } => redact(&texts, rounds)?,
        Part::Quality { summaries } => quality(&summaries)?,
        Part::Summarize { messages, session } => summaries(&messages, session.as_deref())?,
        Part::Tokens { files, rounds } => tokens(&files, rounds)?,
        Part::Vectors { data, queries, k, rounds, threads } => vectors(&data, &queries, k, rounds, threads)?,
    };
    Out { json: true }.answer(&answer, "")
}

/// Loads the embedding model that is in use.
fn embedder_of(engine: &Engine) -> Result<Embedder> {
    let models = &engine.config().models;
    let model = models.chosen();
    Embedder::load(model, &models.folder(model))
}

fn embed(engine: &Engine, path: &Path, rounds: usize, threads: usize) -> Result<Value> {
    let embedder = embedder_of(engine)?;
    let texts = read_texts(path)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let tokens: usize = texts.iter().map(|text| embedder.count(text).min(embedder.max_tokens())).sum();
    let mut seconds = Vec::new();
    let mut vectors = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        // Like the reference implementation, the embedder cuts a text at its limit.
        vectors = embedder.embed(&texts, threads)?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    let query = "how does the cache get invalidated when two workers race?";
    let mut query_ms = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        embed_whole(&embedder, &[query], 1)?;
        query_ms.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let file = std::env::temp_dir().join(format!("tiro-bench-{}.f32", std::process::id()));
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(&file, bytes)
        .context(Kind::Io, || format!("cannot write `{}`", quoted(file.display())))?;
    Ok(json!({"rounds": seconds, "tokens": tokens, "query_ms": query_ms, "vectors_file": file}))
}

fn redact(path: &Path, rounds: usize) -> Result<Value> {
    let redactor = Redactor::new([0; 32]);
    let texts = read_texts(path)?;
    let bytes: usize = texts.iter().map(String::len).sum();
    let (mut seconds, mut slowest) = (Vec::new(), 0.0_f64);
    let mut redacted = Vec::new();
    for _ in 0..rounds {
        redacted.clear();
        slowest = 0.0;
        let began = Instant::now();
        for text in &texts {
            let each = Instant::now();
            redacted.push(redactor.redact(text).text.into_owned());
            slowest = slowest.max(each.elapsed().as_secs_f64());
        }
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok(json!({"rounds": seconds, "bytes": bytes, "slowest": slowest, "redacted": redacted}))
}

fn quality(path: &Path) -> Result<Value> {
    let mut scores = Vec::new();
    for line in read(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line)
            .context(Kind::BadInput, || format!("a line of `{}` is not JSON", quoted(path.display())))?;
        let sources =
            value["sources"].as_array().into_iter().flatten().zip(0..).map(|(each, ordinal)| Source {
                ordinal,
                speaker: each["speaker"].as_str().unwrap_or_default(),
                role: each["role"].as_str().and_then(Role::parse).unwrap_or(Role::User),
                time: each["time"].as_i64().unwrap_or(0),
                text: each["text"].as_str().unwrap_or_default(),
                corrected: &[],
            });
        let sources: Vec<Source<'_>> = sources.collect();
        scores.push(summarize::quality(value["summary"].as_str().unwrap_or_default(), &sources));
    }
    Ok(json!({ "quality": scores }))
}

fn summaries(path: &Path, only: Option<&str>) -> Result<Value> {
    let mut sessions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in read(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line)
            .context(Kind::BadInput, || format!("a line of `{}` is not JSON", quoted(path.display())))?;
        let session = value["session"].as_str().unwrap_or_default().to_owned();
        if only.is_none_or(|only| only == session) {
            sessions.entry(session).or_default().push(value);
        }
    }
    let summarised = |(session, messages): (String, Vec<Value>)| {
        let sources = messages.iter().zip(0..).map(|(each, ordinal)| Source {
            ordinal,
            speaker: each["speaker"].as_str().unwrap_or_default(),
            role: each["role"].as_str().and_then(Role::parse).unwrap_or(Role::User),
            time: each["time"].as_str().and_then(|time| parse_time("time", time).ok()).unwrap_or(0),
            text: each["text"].as_str().unwrap_or_default(),
            corrected: &[],
        });
        let sources: Vec<Source<'_>> = sources.collect();
        let tokens = sources.iter().map(|source| tokens::count(source.text)).sum();
        let began = Instant::now();
        let made = Level::ALL.iter().map(|level| {
            let most = summarize::length(*level, tokens);
            let summary = summarize::extract(&sources, *level, most, "", &|text| tokens::count(text));
            (level.as_str().to_owned(), Value::String(summary.text))
        });
        let made: serde_json::Map<String, Value> = made.collect();
        let ms = began.elapsed().as_secs_f64() * 1000.0;
        json!({"session": session, "tokens": tokens, "title": summarize::title(&sources), "summaries": made, "ms": ms})
    };
    Ok(Value::Array(sessions.into_iter().map(summarised).collect()))
}

fn tokens(list: &Path, rounds: usize) -> Result<Value> {
    let files: Vec<String> = read(list)?
        .lines()
        .filter(|line| !line.is_empty())
        .map(|file| read(Path::new(file)))
        .collect::<Result<_>>()?;
    let bytes: usize = files.iter().map(String::len).sum();
    let mut seconds = Vec::new();
    let mut counts = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        counts = files.iter().map(|text| tokens::count(text)).collect();
        seconds.push(began.elapsed().as_secs_f64());
    }
    let one_char = [" ", "a", "A", "\n", "0", "!", "-", "é", "日", "🙂", "\u{301}", "\t"].map(|each| {
        let text = each.repeat((1 << 20) / each.len());
        let began = Instant::now();
        let count = tokens::count(&text);
        json!({"char": each, "seconds": began.elapsed().as_secs_f64(), "tokens": count})
    });
    Ok(json!({"rounds": seconds, "bytes": bytes, "counts": counts, "one_char": one_char}))
}

fn vectors(data: &Path, queries: &Path, k: usize, rounds: usize, threads: usize) -> Result<Value> {
    let rows = read_vectors(data)?;
    let queries = read_vectors(queries)?;
    let mut index = VectorIndex::new(DIMENSIONS);
    let mut stored: Vec<Vec<u8>> = Vec::with_capacity(rows.len());
    for (row, vector) in rows.iter().enumerate() {
        index.insert(VectorRow { chunk: row as i64, memory: row as i64, session: 0, group: 0 }, vector);
        stored.push(encode_f16(vector));
    }
    drop(rows);
    let search = |query: &[f32], filter: Filter<'_>| {
        let hits = index.search(query, k * CANDIDATES, filter, threads);
        rescore(query, &hits, k, |chunk| Ok(Some(stored[chunk as usize].clone())))
    };
    // The filter admits every hundredth row.
    let admitted: Vec<i64> = (0..stored.len() as i64).step_by(100).collect();
    let (mut per_query_ms, mut filtered_ms, mut top) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        (per_query_ms, filtered_ms, top) = (Vec::new(), Vec::new(), Vec::new());
        for query in &queries {
            let began = Instant::now();
            let hits = search(query, Filter::All)?;
            per_query_ms.push(began.elapsed().as_secs_f64() * 1000.0);
            top.push(hits.iter().map(|hit| hit.chunk).collect::<Vec<i64>>());
            let began = Instant::now();
            search(query, Filter::Chunks(&admitted))?;
            filtered_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    Ok(json!({"per_query_ms": per_query_ms, "filtered_ms": filtered_ms, "top": top}))
}

/// Reads the texts of a file with one JSON string or `{"text"}` object per line.
fn read_texts(path: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for line in read(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line)
            .context(Kind::BadInput, || format!("a line of `{}` is not JSON", quoted(path.display())))?;
        let text = value.as_str().or_else(|| value["text"].as_str()).unwrap_or_default();
        texts.push(text.to_owned());
    }
    Ok(texts)
}

fn read(path: &Path) -> Result<String> {
    let bytes =
        std::fs::read(path).context(Kind::Io, || format!("cannot read `{}`", quoted(path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_vectors(path: &Path) -> Result<Vec<Vec<f32>>> {
    let bytes =
        std::fs::read(path).context(Kind::Io, || format!("cannot read `{}`", quoted(path.display())))?;
    if bytes.len() % (DIMENSIONS * 4) != 0 {
        return Err(Error::bad_input(format!(
            "`{}` doesn't hold vectors of {DIMENSIONS} numbers each",
            quoted(path.display())
        )));
    }
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let vector = |bytes: &[u8]| bytes.chunks_exact(4).map(number).collect();
    Ok(bytes.chunks_exact(DIMENSIONS * 4).map(vector).collect())
}
