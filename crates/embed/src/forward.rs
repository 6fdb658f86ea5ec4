//! The forward pass of the network. The forward pass turns the token ids of several texts into vectors.
//!
//! The network is BERT with six or twelve layers. The vector of a text is the mean of the last layer's outputs. The
//! tokens of all texts follow one another without padding, so every matrix product outside of attention is one large
//! product over all tokens.
//!
//! Two kernels can compute these products, and the processor decides which kernel is used. With AVX-512 VNNI,
//! activations are rounded to 13 bits, token by token, and multiplied as integers. Multiplying these integers is twice
//! as fast as multiplying floats. On other processors, the weights are widened to floats, two panels at a time, right
//! before `gemm` multiplies them. The vectors of both kernels agree with the vectors of the reference to a cosine above
//! .9999. Each kernel gives a text exactly the same vector, whatever other texts are in the batch.

use super::kernels::{
    add_and_norm, gelu, layer_norm, pool, round_rows, scale_rows, softmax, stride, widen, widen_panel,
};
use super::raw::{self, Before, LARGEST_IN_ROWS, PANEL, Right, Rows, Shape, product};
use super::weights::{INNER, Matrix, Norm, WIDTH, Weights};
use tiro_base::error::Result;

const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;
/// How many columns of weights are widened at once for a product of floats.
const WIDE: usize = 2 * PANEL;

/// The way in which products with the weights are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// As integers; needs AVX-512 VNNI.
    Integers,
    /// As floats, by `gemm`.
    Floats,
}

impl Kernel {
    /// Returns the fastest kernel of this processor.
    pub fn best() -> Kernel {
        if raw::has_integer_product() { Kernel::Integers } else { Kernel::Floats }
    }
}

/// The memory for one thread's intermediate results, which is reused for each batch.
#[derive(Default)]
pub struct Workspace {
    x: Vec<f32>,
    qkv: Vec<f32>,
    context: Vec<f32>,
    update: Vec<f32>,
    inner: Vec<f32>,
    scores: Vec<f32>,
    row_factors: Vec<f32>,
    factors: Factors,
}

/// Buffers for the factors of a product in the form that the kernels need.
#[derive(Default)]
struct Factors {
    values: Vec<i16>,
    scales: Vec<f32>,
    panel: Vec<f32>,
}

/// Returns a vector of length 1 for each of `texts`, which are given as token ids.
///
/// Fails if [`Weights::word`] fails.
pub fn forward(
    weights: &Weights,
    kernel: Kernel,
    texts: &[&[u32]],
    room: &mut Workspace,
) -> Result<Vec<Vec<f32>>> {
    let tokens: usize = texts.iter().map(|ids| ids.len()).sum();
    let longest = texts.iter().map(|ids| ids.len()).max().unwrap_or(0);
    let x = fit(&mut room.x, tokens * WIDTH);
    let qkv = fit(&mut room.qkv, tokens * 3 * WIDTH);
    let context = fit(&mut room.context, tokens * WIDTH);
    let update = fit(&mut room.update, tokens * WIDTH);
    let inner = fit(&mut room.inner, tokens * INNER);
    let scores = fit(&mut room.scores, longest * stride(longest));
    let row_factors = fit(&mut room.row_factors, longest);
    let factors = &mut room.factors;

    embed(weights, texts, x)?;
    for i in 0..weights.layers() {
        let layer = weights.layer(i);
        multiply(kernel, qkv, x, &layer.qkv, factors);
        let mut start = 0;
        for ids in texts {
            let end = start + ids.len();
            attend(
                &qkv[start * 3 * WIDTH..end * 3 * WIDTH],
                &mut context[start * WIDTH..end * WIDTH],
                scores,
                row_factors,
            );
            start = end;
        }
        multiply(kernel, update, context, &layer.attention, factors);
        let Norm { scale, shift } = layer.attention_norm;
        add_and_norm(x, update, scale, shift);
        multiply(kernel, inner, x, &layer.up, factors);
        gelu(inner);
        multiply(kernel, update, inner, &layer.down, factors);
        let Norm { scale, shift } = layer.down_norm;
        add_and_norm(x, update, scale, shift);
    }

    let mut rest = &*x;
    let mut vectors = Vec::with_capacity(texts.len());
    for ids in texts {
        let (rows, after) = rest.split_at(ids.len() * WIDTH);
        vectors.push(pool(rows, WIDTH));
        rest = after;
    }
    Ok(vectors)
}

/// Returns the first `length` elements of `room`, and grows `room` if it is too short. The values of the elements are
/// arbitrary.
fn fit<T: Clone + Default>(room: &mut Vec<T>, length: usize) -> &mut [T] {
    if room.len() < length {
        room.resize(length, T::default());
    }
    &mut room[..length]
}

/// Fills `x` with the normalised sums of the word and position embeddings.
fn embed(weights: &Weights, texts: &[&[u32]], x: &mut [f32]) -> Result<()> {
    let mut rows = x.chunks_exact_mut(WIDTH);
    for ids in texts {
        for ((&id, position), row) in ids.iter().zip(weights.positions().chunks_exact(WIDTH)).zip(&mut rows) {
            widen(weights.word(id)?, row);
            for (x, position) in row.iter_mut().zip(position) {
                *x += position;
            }
        }
    }
    let norm = weights.input_norm();
    layer_norm(x, norm.scale, norm.shift);
    Ok(())
}

/// Computes `out = x · matrix + bias`.
fn multiply(kernel: Kernel, out: &mut [f32], x: &[f32], matrix: &Matrix, factors: &mut Factors) {
    let (values, columns) = (matrix.columns.values, matrix.bias.len());
    let depth = values.len() / columns;
    let rows = x.len() / depth;
    match kernel {
        Kernel::Integers => {
            let (values, scales) = (fit(&mut factors.values, x.len()), fit(&mut factors.scales, rows));
            round_rows(x, depth, LARGEST_IN_ROWS, values, scales);
            let rows = Rows { values, scales };
            match depth {
                INNER => raw::integer_product::<INNER>(out, matrix.bias, &rows, &matrix.columns),
                _ => raw::integer_product::<WIDTH>(out, matrix.bias, &rows, &matrix.columns),
            }
        }
        Kernel::Floats => {
            for row in out.chunks_exact_mut(columns) {
                row.copy_from_slice(matrix.bias);
            }
            let panel = fit(&mut factors.panel, depth * WIDE);
            for (i, (values, scales)) in
                values.chunks_exact(depth * WIDE).zip(matrix.columns.scales.chunks_exact(WIDE)).enumerate()
            {
                let parts = values.chunks_exact(depth * PANEL).zip(scales.chunks_exact(PANEL)).enumerate();
                for (part, (values, scales)) in parts {
                    widen_panel(values, scales, &mut panel[part * PANEL..], WIDE);
                }
                // The depth is cut into equal parts here, because `gemm` would choose the parts by the number of rows.
                // The sums would then depend on the other texts in the batch.
                for (part, panel) in panel.chunks_exact(WIDTH * WIDE).enumerate() {
                    product(
                        &mut out[i * WIDE..],
                        Shape { rows, columns: WIDE, stride: columns },
                        Before::AddTo,
                        &x[part * WIDTH..],
                        Shape { rows, columns: WIDTH, stride: depth },
                        panel,
                        Shape { rows: WIDTH, columns: WIDE, stride: WIDE },
                        Right::Plain,
                        1.0,
                    );
                }
            }
        }
    }
}

/// Computes the attention of one text from its queries, keys and values.
fn attend(qkv: &[f32], context: &mut [f32], scores: &mut [f32], factors: &mut [f32]) {
    let tokens = context.len() / WIDTH;
    let part = Shape { rows: tokens, columns: HEAD, stride: 3 * WIDTH };
    let square = Shape { rows: tokens, columns: tokens, stride: stride(tokens) };
    let out = Shape { rows: tokens, columns: HEAD, stride: WIDTH };
    let scores = &mut scores[..tokens * square.stride];
    let factors = &mut factors[..tokens];
    let scale = std::f32::consts::LOG2_E / (HEAD as f32).sqrt();
    for head in (0..WIDTH).step_by(HEAD) {
        let (queries, keys, values) = (&qkv[head..], &qkv[WIDTH + head..], &qkv[2 * WIDTH + head..]);
        product(scores, square, Before::Overwrite, queries, part, keys, part, Right::Transposed, scale);
        softmax(scores, tokens, square.stride, factors);
        product(
            &mut context[head..],
            out,
            Before::Overwrite,
            scores,
            square,
            values,
            part,
            Right::Plain,
            1.0,
        );
        scale_rows(&mut context[head..], HEAD, WIDTH, factors);
    }
}
