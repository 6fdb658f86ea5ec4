//! Reads the published files of all-MiniLM-L6-v2: `model.safetensors` and `tokenizer.json`.

use half::f16;
use safetensors::{Dtype, SafeTensors};

use super::model::Model;
use super::weights::{Content, WIDTH, parameters};
use tiro_base::error::{Context, Error, Kind, Result};

/// Returns the content of the model's file.
pub fn content(tensors: &[u8], tokenizer: &[u8]) -> Result<Content> {
    let vocabulary = vocabulary(tokenizer)?.into_bytes();
    let tensors = SafeTensors::deserialize(tensors)
        .context(Kind::Model, || "the published weights are not in the safetensors format".into())?;
    let words = [Model::MiniLm.words(), WIDTH];
    let words = halves(&floats(&tensors, "embeddings.word_embeddings.weight", &words)?)?;
    let (small, matrices) = parameters(Model::MiniLm, &|name, shape| floats(&tensors, name, shape))?;
    Ok(Content { vocabulary, words, small, matrices })
}

/// Returns the tokens of a `tokenizer.json` in the order of their ids, one per line.
fn vocabulary(tokenizer: &[u8]) -> Result<String> {
    let malformed = || Error::new(Kind::Model, "`tokenizer.json` has no usable vocabulary");
    let tokenizer: serde_json::Value =
        serde_json::from_slice(tokenizer).context(Kind::Model, || "`tokenizer.json` is not JSON".into())?;
    let ids = tokenizer["model"]["vocab"].as_object().ok_or_else(malformed)?;
    let mut tokens: Vec<(u64, &str)> = Vec::with_capacity(ids.len());
    for (token, id) in ids {
        tokens.push((id.as_u64().ok_or_else(malformed)?, token));
    }
    tokens.sort_unstable();
    let consecutive =
        tokens.iter().enumerate().all(|(i, (id, token))| i as u64 == *id && !token.contains('\n'));
    if !consecutive {
        return Err(malformed());
    }
    Ok(tokens.into_iter().map(|(_, token)| token).collect::<Vec<_>>().join("\n"))
}

fn floats(tensors: &SafeTensors, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let tensor = tensors
        .tensor(name)
        .context(Kind::Model, || format!("the published weights have no tensor `{name}`"))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        let (dtype, found) = (tensor.dtype(), tensor.shape());
        return Err(Error::new(
            Kind::Model,
            format!("the tensor `{name}` is {dtype:?} {found:?}, not F32 {shape:?}"),
        ));
    }
    let (numbers, _) = tensor.data().as_chunks::<4>();
    Ok(numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

fn halves(floats: &[f32]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(floats.len() * 2);
    for &float in floats {
        let half = f16::from_f32(float);
        if !half.is_finite() {
            return Err(Error::new(Kind::Model, format!("a published weight is out of range: {float}")));
        }
        bytes.extend(half.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_in_the_order_of_ids() {
        assert_eq!(vocabulary(br#"{"model":{"vocab":{"b":1,"a":0,"c":2}}}"#).unwrap(), "a\nb\nc");
        assert!(vocabulary(br#"{"model":{"vocab":{"b":1,"a":0,"c":3}}}"#).is_err());
        assert!(vocabulary(b"{}").is_err());
    }
}
