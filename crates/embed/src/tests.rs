//! Tests that need the model. They load it from the installer's folder, and print that they are skipped if it is
//! missing.
//!
//! The reference data and the script that wrote it are in `tests/golden`.
#![expect(clippy::disallowed_methods, reason = "the environment says where the model is")]

use std::fs;
use std::path::{Path, PathBuf};

use half::f16;
use sha2::{Digest, Sha256};

use super::Tokenize;
use super::forward::Kernel;
use super::unigram::Unigram;
use super::weights::{FILE, Weights};
use super::wordpiece::WordPiece;
use super::*;
use tiro_base::error::Kind;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// Returns the folder of the default model, or says that the test is skipped.
fn folder() -> Option<PathBuf> {
    folder_of(Model::MiniLm)
}

/// Returns the folder of a model, or says that the test is skipped.
fn folder_of(model: Model) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let models = variable("TIRO_MODEL_DIR")
        .or_else(|| Some(variable("TIRO_DATA_DIR")?.join("models")))
        .or_else(|| Some(variable("XDG_DATA_HOME")?.join("tiro/models")))
        .or_else(|| Some(variable("HOME")?.join(".local/share/tiro/models")))?;
    let folder = model.folder(&models);
    if folder.join(FILE).exists() {
        return Some(folder);
    }
    eprintln!("skipped: the model is not installed in {}", folder.display());
    None
}

/// Returns the kernels that this processor has.
fn kernels() -> Vec<Kernel> {
    let mut kernels = vec![Kernel::Floats, Kernel::best()];
    kernels.dedup();
    kernels
}

#[derive(serde::Deserialize)]
struct Golden {
    text: String,
    ids: Vec<u32>,
}

fn golden() -> Vec<Golden> {
    serde_json::from_slice(&fs::read(Path::new(GOLDEN).join("minilm.json")).unwrap()).unwrap()
}

#[test]
fn vectors_agree_with_the_reference() {
    let Some(folder) = folder() else { return };
    let mut model = Embedder::load(Model::MiniLm, &folder).unwrap();
    let golden = golden();
    let reference = fs::read(Path::new(GOLDEN).join("minilm.f16")).unwrap();
    let reference: Vec<f32> =
        reference.chunks(2).map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()).collect();
    assert_eq!(reference.len(), golden.len() * model.dimensions());
    let texts: Vec<&str> = golden.iter().map(|golden| golden.text.as_str()).collect();
    for kernel in kernels() {
        model.kernel = kernel;
        let vectors = model.embed(&texts, 2).unwrap();
        let mut lowest: f64 = 1.0;
        for ((text, vector), reference) in
            texts.iter().zip(&vectors).zip(reference.chunks(model.dimensions()))
        {
            let dot = |a: &[f32], b: &[f32]| {
                a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>()
            };
            assert!((dot(vector, vector) - 1.0).abs() < 1e-5, "not of length 1: {text:?}");
            let cosine = dot(vector, reference) / dot(reference, reference).sqrt();
            assert!(cosine >= 0.9999, "{kernel:?}: cosine {cosine} for {text:?}");
            lowest = lowest.min(cosine);
        }
        eprintln!("{kernel:?}: lowest cosine {lowest:.7}");
    }
}

#[test]
fn tokens_are_those_of_the_reference() {
    let Some(folder) = folder() else { return };
    let weights = Weights::open(Model::MiniLm, &folder.join(FILE)).unwrap();
    let wordpiece = WordPiece::new(weights.vocabulary()).unwrap();
    for golden in golden() {
        assert_eq!(wordpiece.encode(&golden.text, usize::MAX), golden.ids, "{:?}", golden.text);
        assert_eq!(wordpiece.count(&golden.text), golden.ids.len());
    }
    let blocks: Vec<String> =
        serde_json::from_slice(&fs::read(Path::new(GOLDEN).join("wordpiece.json")).unwrap()).unwrap();
    for (block, expected) in blocks.iter().enumerate() {
        let mut digest = Sha256::new();
        for c in (block as u32 * 4096..(block as u32 + 1) * 4096).filter_map(char::from_u32) {
            for id in wordpiece.encode(&format!("a{c}b {c}"), usize::MAX) {
                digest.update(id.to_le_bytes());
            }
        }
        let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(&digest, expected, "code points from {:#x}", block * 4096);
    }
}

#[test]
fn the_multilingual_model_agrees_with_its_reference() {
    let Some(folder) = folder_of(Model::E5) else { return };
    let model = Embedder::load(Model::E5, &folder).unwrap();
    let texts: Vec<String> = golden().into_iter().map(|golden| golden.text).collect();
    let ids: Vec<Vec<u32>> =
        serde_json::from_slice(&fs::read(Path::new(GOLDEN).join("e5.json")).unwrap()).unwrap();
    let weights = Weights::open(Model::E5, &folder.join(FILE)).unwrap();
    let unigram = Unigram::new(weights.vocabulary()).unwrap();
    for (text, ids) in texts.iter().zip(&ids) {
        assert_eq!(&unigram.encode(&format!("passage: {text}"), usize::MAX), ids, "{text:?}");
        assert_eq!(model.count(text), ids.len(), "{text:?}");
    }
    let reference = fs::read(Path::new(GOLDEN).join("e5.f16")).unwrap();
    let reference: Vec<f32> =
        reference.chunks(2).map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()).collect();
    // Only every third text is used, since a build without optimisation is slow.
    let texts: Vec<&str> = texts.iter().step_by(3).map(String::as_str).collect();
    let vectors = model.embed(&texts, 2).unwrap();
    for ((text, vector), reference) in
        texts.iter().zip(&vectors).zip(reference.chunks(model.dimensions()).step_by(3))
    {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosine = product(vector, reference) / product(reference, reference).sqrt();
        assert!(cosine >= 0.9995, "cosine {cosine} for {text:?}");
    }
    let question = model.embed_question("Wo liegen die Sicherungen?").unwrap();
    let cosine = |text: &str| -> f32 {
        model.embed(&[text], 1).unwrap()[0].iter().zip(&question).map(|(a, b)| a * b).sum()
    };
    assert!(
        cosine("The backups are kept on the second disk.") > cosine("The parser accepts trailing commas.")
    );
}

#[test]
fn a_vector_does_not_depend_on_its_batch() {
    let Some(folder) = folder() else { return };
    let mut model = Embedder::load(Model::MiniLm, &folder).unwrap();
    let golden = golden();
    // Only every fourth text is used, beginning with the longest, since a build without optimisation is slow.
    let texts: Vec<&str> = golden.iter().rev().step_by(4).map(|golden| golden.text.as_str()).collect();
    for kernel in kernels() {
        model.kernel = kernel;
        let together = model.embed(&texts, 1).unwrap();
        for (text, vector) in texts.iter().zip(&together) {
            assert_eq!(&model.embed(&[text], 1).unwrap()[0], vector, "{kernel:?}: {text:?}");
        }
        assert_eq!(model.embed(&texts, 3).unwrap(), together);
    }
}

#[test]
fn pieces_are_within_the_limit_and_cut_nothing_apart() {
    let Some(folder) = folder() else { return };
    let model = Embedder::load(Model::MiniLm, &folder).unwrap();
    let text: String = golden().iter().map(|golden| golden.text.as_str()).collect::<Vec<_>>().join(" ");
    for (limit, overlap) in [(256, 0), (256, 32), (128, 16)] {
        let pieces = model.split(&text, limit, overlap);
        assert!(pieces.len() > 10);
        let counts: Vec<usize> = pieces.iter().map(|piece| model.count(&text[piece.clone()])).collect();
        assert!(counts.iter().all(|&count| count <= limit), "{counts:?}");
        if overlap == 0 {
            let tokens: usize = counts.iter().map(|count| count - 2).sum();
            assert_eq!(tokens + 2, model.count(&text));
        }
    }
}

#[test]
fn ten_megabytes_of_anything_are_split() {
    let Some(folder) = folder() else { return };
    let model = Embedder::load(Model::MiniLm, &folder).unwrap();
    for unit in ["a", "word ", "\n", "z\u{301}", "日", "x9.", "\u{200d}"] {
        let text = unit.repeat(10_000_000 / unit.len());
        let pieces = model.split(&text, 256, 32);
        assert!(pieces.windows(2).all(|pair| pair[0].start < pair[1].start && pair[0].end < pair[1].end));
        assert!(pieces.last().is_none_or(|last| last.end <= text.len()));
    }
}

#[test]
fn a_damaged_model_is_an_error_that_says_what_to_do() {
    let Some(folder) = folder() else { return };
    let good = fs::read(folder.join(FILE)).unwrap();
    let other = tempfile::tempdir().unwrap();
    let load = |bytes: &[u8]| {
        fs::write(other.path().join(FILE), bytes).unwrap();
        Embedder::load(Model::MiniLm, other.path()).err().map(|error| {
            assert_eq!(error.kind(), Kind::Model);
            assert_eq!(error.way_out(), Some("run `tiro model install`"));
            error.to_string()
        })
    };
    assert_eq!(load(&good), None);
    assert!(load(&good[..good.len() - 1]).unwrap().contains("is not as long"));
    for at in [20, 5000, 1_000_000, 20_000_000, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(load(&bad).unwrap().contains("is damaged"), "byte {at}");
    }
}

/// When the file was memory-mapped, this ended the process with SIGBUS.
#[test]
fn a_model_that_is_cut_short_or_written_to_while_it_is_open_ends_nothing() {
    let Some(folder) = folder() else { return };
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join(FILE);
    for length in [None, Some(0), Some(5000), Some(20_000_000)] {
        fs::copy(folder.join(FILE), &path).unwrap();
        let model = Embedder::load(Model::MiniLm, other.path()).unwrap();
        let before = model.embed(&["the harbour is closed"], 1).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        match length {
            Some(length) => file.set_len(length).unwrap(),
            None => file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap(),
        }
        assert_eq!(model.embed(&["the harbour is closed"], 1).unwrap(), before, "words it knows");
        let error = model.embed(&["a vellichorometer on every quay"], 1).unwrap_err();
        assert_eq!(error.kind(), Kind::Model);
        assert!(error.to_string().contains("changed since this process opened it"), "{error}");
        assert!(error.way_out().unwrap().contains("restart this process"), "{error:?}");
    }
}

#[test]
fn a_missing_or_foreign_model_is_an_error_that_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let error = Embedder::load(Model::MiniLm, empty.path()).err().unwrap();
    assert!(error.to_string().contains("is not installed"), "{error}");
    for (content, says) in [(vec![], "too short"), (b"tiro".to_vec(), "too short"), (vec![7; 9999], "format")]
    {
        fs::write(empty.path().join(FILE), content).unwrap();
        let error = Embedder::load(Model::MiniLm, empty.path()).err().unwrap();
        assert_eq!((error.kind(), error.way_out()), (Kind::Model, Some("run `tiro model install`")));
        assert!(error.to_string().contains(says), "{error}");
    }
}
