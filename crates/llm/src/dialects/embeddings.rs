//! OpenAI's Embeddings API, which many other servers offer too.

use serde_json::{Value, json};

use super::super::Service;
use super::super::request::Turn;
use super::parts::{Answer, Asked, Counts, Misread, Post, Read, Stop};

/// Returns the path, headers and body of the request. The body has every text of a user.
pub(super) fn post(asked: &Asked<'_>) -> Post {
    let texts = asked.request.turns.iter().filter_map(|turn| match turn {
        Turn::User { text, .. } => Some(text.as_str()),
        Turn::Assistant { .. } | Turn::Result { .. } => None,
    });
    let body = json!({
        "model": asked.provider.model,
        "input": texts.collect::<Vec<_>>(),
        "encoding_format": "float",
    });
    // Ollama offers this API in addition to its own.
    let path = if asked.provider.service == Service::Ollama { "v1/embeddings" } else { "embeddings" };
    Post { path: path.to_owned(), headers: &[], body }
}

/// Reads the vectors. The answer never comes in pieces.
pub(super) struct EmbeddingsReader;

impl Read for EmbeddingsReader {
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread> {
        let items = body.get("data").and_then(Value::as_array).ok_or(Misread::Unreadable)?;
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; items.len()];
        for (place, item) in items.iter().enumerate() {
            // If the server gives no places, the vectors are in the order of the texts.
            let place = item.get("index").and_then(Value::as_u64).map_or(place, |index| index as usize);
            let numbers = item.get("embedding").and_then(Value::as_array).ok_or(Misread::Unreadable)?;
            let numbers = numbers.iter().map(|number| Some(number.as_f64()? as f32));
            let vector = numbers.collect::<Option<Vec<f32>>>().and_then(unit).ok_or(Misread::Unreadable)?;
            *vectors.get_mut(place).ok_or(Misread::Unreadable)? = Some(vector);
        }
        answer.vectors = vectors.into_iter().collect::<Option<_>>().ok_or(Misread::Unreadable)?;
        let sent = body.get("usage").and_then(|usage| usage.get("prompt_tokens")).and_then(Value::as_u64);
        answer.counts = Counts { input: sent, ..Counts::default() };
        answer.stop = Some(Stop::Done);
        Ok(())
    }

    fn event(&mut self, _: &mut Answer, _: &Value) -> Result<bool, Misread> {
        Err(Misread::Unreadable)
    }

    fn kept(&mut self, _: &Answer) -> Option<Value> {
        None
    }
}

/// Returns the vector scaled to length 1; `None` if it has no direction.
fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length < f64::from(f32::MIN_POSITIVE) {
        return None;
    }
    vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_order_of_the_texts_and_length_1() {
        let body = json!({
            "data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3.0, -4.0]}],
            "usage": {"prompt_tokens": 9, "total_tokens": 9},
        });
        let mut answer = Answer::default();
        EmbeddingsReader.whole(&mut answer, &body).unwrap();
        assert_eq!(answer.vectors, [vec![0.6, -0.8], vec![0.0, 1.0]]);
        assert_eq!(answer.counts.input, Some(9));
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        let items = [
            json!({"index": 0, "embedding": [0.0, 0.0]}),
            json!({"index": 0, "embedding": []}),
            json!({"index": 0, "embedding": ["a"]}),
            json!({"index": 1, "embedding": [1.0]}),
            json!({"index": 0, "embedding": [1e39]}),
            json!({"index": 0}),
        ];
        for item in items {
            let mut answer = Answer::default();
            assert_eq!(
                EmbeddingsReader.whole(&mut answer, &json!({"data": [item]})),
                Err(Misread::Unreadable),
                "{item}"
            );
        }
    }
}
