//! The file of a model. The installation writes it, and every process that computes embeddings reads it.
//!
//! Matrices are stored as integers of 11½ bits with a scale for each output, which takes half the bytes of floats. The
//! integers are in the order in which the product reads them, so they need not be rearranged when the file is loaded.
//! Word embeddings are half floats. Rounding changes the cosine of vectors by about 2e-6. The file also holds the
//! vocabulary.
//!
//! A header with digests precedes four sections: vocabulary, words, small parameters and matrices. The header and all
//! sections are verified when the file is opened, so a damaged model causes an error, never wrong vectors.
//!
//! The file is not memory-mapped, because truncating it would kill every process that maps it. The parameters are
//! copied into memory, except the word embeddings, which make up half of the file. A word embedding is read when a text
//! first contains its word. If the file has changed since it was opened, this reading fails.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use half::f16;

use super::model::Model;
use super::raw::{Columns, LARGEST_IN_COLUMNS, PANEL};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};

pub(crate) use super::model::WIDTH;
/// The width of the inner layer of a feed-forward step.
pub const INNER: usize = 4 * WIDTH;
/// The maximum number of tokens that are read of a text. The models have 512 positions, but MiniLM was trained with
/// texts of 256 tokens and is meant only for such texts.
pub const TOKENS: usize = 256;

/// The number of weights of a block.
pub const BLOCK: usize = 32;
/// The number of bytes of a block.
pub const BLOCK_BYTES: usize = 18;

/// The name of the file in the folder of a model.
pub const FILE: &str = "weights.tiro";
/// The maximum number of bytes of the file. Arbitrary: about ten times the 103 MB of the largest real file.
const LARGEST: u64 = 1 << 30;
const MAGIC: &[u8; 16] = b"tiro encoder v2\n";
const ALIGNMENT: usize = 4096;
const SECTIONS: usize = 4;
/// The size of a section's entry in the header, in bytes. The entry has the section's offset, length and digest.
const ENTRY: usize = 8 + 8 + 32;
const HEADER: usize = MAGIC.len() + SECTIONS * ENTRY + 32;

const LAYER_MATRICES: usize = WIDTH * 3 * WIDTH + WIDTH * WIDTH + 2 * WIDTH * INNER;
/// The number of small parameters of a layer: a bias and a scale for each output of its four matrices, and the
/// parameters of its two norms.
const LAYER_SMALL: usize = 2 * (3 * WIDTH + WIDTH + INNER + WIDTH) + 4 * WIDTH;

fn small_parameters(model: Model) -> usize {
    2 * WIDTH + TOKENS * WIDTH + model.layers() * LAYER_SMALL
}

/// An opened and verified model.
pub struct Weights {
    model: Model,
    vocabulary: Vec<u8>,
    words: Words,
    small: Vec<f32>,
    matrices: Vec<i16>,
}

/// The word embeddings, each read from the file at its first use.
struct Words {
    model: Model,
    path: PathBuf,
    file: File,
    /// The length and modification time that the file had when it was verified.
    verified: Stamp,
    /// The offset of the section in the file.
    start: u64,
    known: Vec<OnceLock<Box<[u16; WIDTH]>>>,
}

/// The length and the modification time of a file.
type Stamp = (u64, Option<SystemTime>);

/// The parameters of one layer.
pub struct Layer<'a> {
    /// The matrices of queries, keys and values, side by side.
    pub qkv: Matrix<'a>,
    /// The matrix from the outputs of the heads to the width of the model.
    pub attention: Matrix<'a>,
    /// The norm after the attention.
    pub attention_norm: Norm<'a>,
    /// The matrix from the width of the model to the width of the inner layer.
    pub up: Matrix<'a>,
    /// The matrix from the width of the inner layer back to the width of the model.
    pub down: Matrix<'a>,
    /// The norm after the inner layer.
    pub down_norm: Norm<'a>,
}

/// A matrix in panels, and the bias of each output.
pub struct Matrix<'a> {
    /// The weights.
    pub columns: Columns<'a>,
    /// The bias of each output.
    pub bias: &'a [f32],
}

/// The parameters of a layer norm.
pub struct Norm<'a> {
    /// The factor of each dimension.
    pub scale: &'a [f32],
    /// The number that is added to each dimension.
    pub shift: &'a [f32],
}

impl Weights {
    /// Opens the file of `model` at `path`, and reads and verifies all of it.
    pub fn open(model: Model, path: &Path) -> Result<Weights> {
        let damaged = |why: &str| damaged(model, path, why);
        if cfg!(target_endian = "big") {
            return Err(Error::new(Kind::Model, "embedding needs a little-endian processor"));
        }
        let mut file = file::open(path, Links::Followed, LARGEST).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged("is not installed"),
            _ => damaged("cannot be opened").source(error),
        })?;
        let cannot_read = |error| damaged("cannot be read").source(error);
        let verified = stamp(&file).map_err(cannot_read)?;
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(|_| damaged("is too short to be a model"))?;
        if !header.starts_with(MAGIC) {
            return Err(damaged("is not in the format of this version"));
        }
        let (content, digest) = header.split_at(HEADER - 32);
        if blake3::hash(content).as_bytes() != digest {
            return Err(damaged("is damaged in its header"));
        }
        let sections = sections(content);
        let [vocabulary, words, _, matrices] = sections.each_ref().map(|(range, _)| range);
        let small = small_parameters(model);
        let integers = model.layers() * LAYER_MATRICES;
        let expected = [vocabulary.len(), model.words() * word_bytes(model), small * 4, integers * 2];
        let fits = sections.iter().zip(expected).all(|((range, _), length)| range.len() == length);
        if !fits || sections.iter().any(|(range, _)| range.start % ALIGNMENT != 0) {
            return Err(damaged("is not in the format of this version"));
        }
        if verified.0 != matrices.end as u64 {
            return Err(damaged("is not as long as its header says"));
        }
        let mut tokens = Vec::with_capacity(vocabulary.len());
        let mut floats = Vec::with_capacity(small);
        let mut integers = Vec::with_capacity(integers);
        for (i, (range, digest)) in sections.iter().enumerate() {
            let found = read_section(&mut file, range, |bytes| match i {
                0 => tokens.extend_from_slice(bytes),
                // The word embeddings are only verified here; each is read again when it is needed.
                1 => {}
                2 => floats.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes))),
                _ => integers.extend(bytes.as_chunks().0.iter().map(|&bytes| i16::from_le_bytes(bytes))),
            });
            if found.map_err(cannot_read)?.as_bytes() != digest {
                return Err(damaged("is damaged"));
            }
        }
        let known = (0..model.words()).map(|_| OnceLock::new()).collect();
        let words = Words { model, path: path.to_owned(), file, verified, start: words.start as u64, known };
        Ok(Weights { model, vocabulary: tokens, words, small: floats, matrices: integers })
    }

    /// Returns the vocabulary in the form that the model's tokenizer reads.
    pub fn vocabulary(&self) -> &[u8] {
        &self.vocabulary
    }

    /// Returns how many layers the model has.
    pub fn layers(&self) -> usize {
        self.model.layers()
    }

    /// Returns the embedding of the token `id`; panics if the vocabulary has no such id.
    ///
    /// Errors with [`Kind::Model`] if the embedding is not in memory yet and the file has changed.
    pub fn word(&self, id: u32) -> Result<&[u16]> {
        let words = &self.words;
        let known = &words.known[id as usize];
        if let Some(word) = known.get() {
            return Ok(word.as_slice());
        }
        let word = words.read(id).map_err(|error| {
            let why = "changed since this process opened it";
            damaged(self.model, &words.path, why)
                .source(error)
                .hint(format!("run `{}`, then restart this process", self.model.installation()))
        })?;
        Ok(known.get_or_init(|| word).as_slice())
    }

    /// Returns the position embeddings.
    pub fn positions(&self) -> &[f32] {
        &self.small[2 * WIDTH..][..TOKENS * WIDTH]
    }

    /// Returns the parameters of the layer norm that is applied to the embeddings.
    pub fn input_norm(&self) -> Norm<'_> {
        Norm::read(&mut &self.small[..2 * WIDTH])
    }

    /// Returns the parameters of layer `i`, counted from 0.
    pub fn layer(&self, i: usize) -> Layer<'_> {
        let small = &mut &self.small[2 * WIDTH + TOKENS * WIDTH..][i * LAYER_SMALL..];
        let weights = &mut &self.matrices[i * LAYER_MATRICES..];
        Layer {
            qkv: Matrix::read(weights, small, WIDTH, 3 * WIDTH),
            attention: Matrix::read(weights, small, WIDTH, WIDTH),
            attention_norm: Norm::read(small),
            up: Matrix::read(weights, small, WIDTH, INNER),
            down: Matrix::read(weights, small, INNER, WIDTH),
            down_norm: Norm::read(small),
        }
    }
}

impl<'a> Matrix<'a> {
    fn read(weights: &mut &'a [i16], small: &mut &'a [f32], depth: usize, columns: usize) -> Matrix<'a> {
        let bias = take(small, columns);
        let scales = take(small, columns);
        Matrix { columns: Columns { values: take(weights, depth * columns), scales }, bias }
    }
}

impl<'a> Norm<'a> {
    fn read(small: &mut &'a [f32]) -> Norm<'a> {
        Norm { scale: take(small, WIDTH), shift: take(small, WIDTH) }
    }
}

fn take<'a, T>(rest: &mut &'a [T], length: usize) -> &'a [T] {
    let (taken, left) = rest.split_at(length);
    *rest = left;
    taken
}

/// Reads the table of sections in a header. The ranges are not checked and may lie beyond the end of the file, but no
/// range ends before it begins.
fn sections(content: &[u8]) -> [(Range<usize>, [u8; 32]); SECTIONS] {
    std::array::from_fn(|i| {
        let entry = &content[MAGIC.len() + i * ENTRY..][..ENTRY];
        let number =
            |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes")) as usize;
        let digest = entry[16..].try_into().expect("thirty-two bytes");
        (number(0)..number(0).saturating_add(number(8)), digest)
    })
}

/// Reads a section and passes it to `take` in parts. Values are never divided between two parts. Returns the digest of
/// the section.
fn read_section(
    file: &mut File,
    range: &Range<usize>,
    mut take: impl FnMut(&[u8]),
) -> std::io::Result<blake3::Hash> {
    file.seek(SeekFrom::Start(range.start as u64))?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 1 << 18]);
    let mut left = range.len();
    while left > 0 {
        let part = left.min(buffer.len());
        file.read_exact(&mut buffer[..part])?;
        hasher.update(&buffer[..part]);
        take(&buffer[..part]);
        left -= part;
    }
    Ok(hasher.finalize())
}

fn stamp(file: &File) -> std::io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

fn damaged(model: Model, path: &Path, why: &str) -> Error {
    Error::new(Kind::Model, format!("the embedding model `{}` {why}", quoted(path.display())))
        .hint(format!("run `{}`", model.installation()))
}

/// Returns the number of bytes of a word embedding in the file. If a model is published with four-bit weights in
/// blocks, its word embeddings are stored as these blocks, otherwise as half floats.
pub fn word_bytes(model: Model) -> usize {
    match model {
        Model::MiniLm => 2 * WIDTH,
        Model::E5 => WIDTH / BLOCK * BLOCK_BYTES,
    }
}

impl Words {
    fn read(&self, id: u32) -> std::io::Result<Box<[u16; WIDTH]>> {
        let length = word_bytes(self.model);
        let mut bytes = vec![0; length];
        file::read_at(&self.file, &mut bytes, self.start + u64::from(id) * length as u64)?;
        // Writing to the file changes its stamp. If the stamp is unchanged after the bytes were read, the bytes are
        // from before any change.
        if stamp(&self.file)? != self.verified {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let mut word = Box::new([0; WIDTH]);
        match self.model {
            Model::MiniLm => {
                for (number, bytes) in word.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *number = u16::from_le_bytes(*bytes);
                }
            }
            Model::E5 => {
                for (number, value) in word.iter_mut().zip(widened(&bytes)) {
                    *number = f16::from_f32(value).to_bits();
                }
            }
        }
        Ok(word)
    }
}

/// The content of the file of a model.
pub struct Content {
    /// The vocabulary in the form that the model's tokenizer reads.
    pub vocabulary: Vec<u8>,
    /// The word embeddings, each in [`word_bytes`] bytes.
    pub words: Vec<u8>,
    /// The parameters that stay floats.
    pub small: Vec<f32>,
    /// The integers of the matrices.
    pub matrices: Vec<i16>,
}

/// Writes the file of a model.
pub fn write(content: &Content, out: &File) -> Result<()> {
    let matrices: Vec<u8> = content.matrices.iter().flat_map(|x| x.to_le_bytes()).collect();
    let small: Vec<u8> = content.small.iter().flat_map(|x| x.to_le_bytes()).collect();
    let sections = [&content.vocabulary[..], &content.words, &small, &matrices];
    let mut header = MAGIC.to_vec();
    let mut offset = ALIGNMENT;
    for section in sections {
        header.extend((offset as u64).to_le_bytes());
        header.extend((section.len() as u64).to_le_bytes());
        header.extend(blake3::hash(section).as_bytes());
        offset = (offset + section.len()).next_multiple_of(ALIGNMENT);
    }
    let digest = blake3::hash(&header);
    header.extend(digest.as_bytes());

    let mut out = BufWriter::new(out);
    let mut written = 0;
    for part in std::iter::once(header.as_slice()).chain(sections) {
        let padding = written_up_to_alignment(written);
        out.write_all(&vec![0; padding]).and_then(|()| out.write_all(part)).context(Kind::Io, writing)?;
        written += padding + part.len();
    }
    out.flush().context(Kind::Io, writing)
}

fn writing() -> String {
    "cannot write the embedding model".into()
}

fn written_up_to_alignment(written: usize) -> usize {
    written.next_multiple_of(ALIGNMENT) - written
}

/// Returns the tensor with a name and a shape.
type Tensors<'a> = &'a dyn Fn(&str, &[usize]) -> Result<Vec<f32>>;

/// Returns the parameters that stay floats, and the integers of the matrices, both in the order in which [`Weights`]
/// reads them. `floats` returns the tensor with the given name (as in BERT) and the given shape.
pub fn parameters(model: Model, floats: Tensors<'_>) -> Result<(Vec<f32>, Vec<i16>)> {
    let mut small = Vec::with_capacity(small_parameters(model));
    let mut matrices = Vec::with_capacity(model.layers() * LAYER_MATRICES);
    let norm = |name: &str| {
        let mut norm = floats(&format!("{name}.weight"), &[WIDTH])?;
        norm.extend(floats(&format!("{name}.bias"), &[WIDTH])?);
        Ok::<_, Error>(norm)
    };
    small.extend(norm("embeddings.LayerNorm")?);
    // BERT adds an embedding for the first or the second sentence to each token. Here every text counts as a first
    // sentence, so the embedding for a first sentence is added to the position embeddings once.
    let positions = floats("embeddings.position_embeddings.weight", &[512, WIDTH])?;
    let types = floats("embeddings.token_type_embeddings.weight", &[2, WIDTH])?;
    small.extend(positions[..TOKENS * WIDTH].iter().zip(types[..WIDTH].iter().cycle()).map(|(a, b)| a + b));
    for i in 0..model.layers() {
        let mut matrix = |names: &[&str], depth: usize, columns: usize, small: &mut Vec<f32>| {
            let (mut weights, mut bias) = (vec![], vec![]);
            for name in names {
                let name = format!("encoder.layer.{i}.{name}");
                weights.extend(floats(&format!("{name}.weight"), &[columns, depth])?);
                bias.extend(floats(&format!("{name}.bias"), &[columns])?);
            }
            let (values, scales) = whole_numbers(&weights, depth)?;
            small.extend(bias.into_iter().chain(scales));
            matrices.extend(panels(&values, depth));
            Ok::<_, Error>(())
        };
        let qkv = ["attention.self.query", "attention.self.key", "attention.self.value"];
        matrix(&qkv, WIDTH, WIDTH, &mut small)?;
        matrix(&["attention.output.dense"], WIDTH, WIDTH, &mut small)?;
        small.extend(norm(&format!("encoder.layer.{i}.attention.output.LayerNorm"))?);
        matrix(&["intermediate.dense"], WIDTH, INNER, &mut small)?;
        matrix(&["output.dense"], INNER, WIDTH, &mut small)?;
        small.extend(norm(&format!("encoder.layer.{i}.output.LayerNorm"))?);
    }
    Ok((small, matrices))
}

/// Rounds a matrix to integers, with a scale for each output. The matrix has a row of `depth` inputs for each
/// output.
fn whole_numbers(matrix: &[f32], depth: usize) -> Result<(Vec<i16>, Vec<f32>)> {
    let (mut values, mut scales) = (Vec::with_capacity(matrix.len()), vec![]);
    for row in matrix.chunks_exact(depth) {
        let largest = row.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let scale = largest / f32::from(LARGEST_IN_COLUMNS);
        if !scale.is_normal() || row.iter().any(|x| x.is_nan()) {
            return Err(Error::new(Kind::Model, "a matrix of the published weights is out of range"));
        }
        values.extend(row.iter().map(|x| (x / scale).round() as i16));
        scales.push(scale);
    }
    Ok((values, scales))
}

/// Rearranges a matrix into the panels of [`Columns`]. The matrix has a row of `depth` inputs for each output.
fn panels(matrix: &[i16], depth: usize) -> Vec<i16> {
    let mut out = Vec::with_capacity(matrix.len());
    for panel in matrix.chunks_exact(depth * PANEL) {
        for input in (0..depth).step_by(2) {
            out.extend(panel.chunks_exact(depth).flat_map(|output| [output[input], output[input + 1]]));
        }
    }
    out
}

/// Returns the weights of blocks with four bits for each weight. A block is a half float (the scale), followed by
/// sixteen bytes. Byte i has weight i in its low half and weight i + 16 in its high half, each increased by 8.
pub fn widened(blocks: &[u8]) -> impl Iterator<Item = f32> + '_ {
    blocks.as_chunks::<BLOCK_BYTES>().0.iter().flat_map(|block| {
        let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
        let value = move |bits: u8| (f32::from(bits) - 8.0) * scale;
        let low = block[2..].iter().map(move |byte| value(byte & 15));
        low.chain(block[2..].iter().map(move |byte| value(byte >> 4)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_weights_in_halves_of_bytes() {
        let mut block = f16::from_f32(0.5).to_le_bytes().to_vec();
        block.extend([0x8f; 16]);
        let values: Vec<f32> = widened(&block).collect();
        assert_eq!((values[0], values[15], values[16], values[31]), (3.5, 3.5, 0.0, 0.0));
    }
}
