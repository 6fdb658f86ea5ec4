//! Tests of what an agent is told of an answer.

use super::*;
use tiro_host::consult::{Files, Reported, Skipped};

const ANSWER: &str = "Keep the lease at thirty seconds, as `src/lease.rs` says.";

/// Returns the answer of `assistant` with `receipt` as text.
fn shown(assistant: &str, model: &str, receipt: Receipt) -> String {
    let consulted = Consulted { answer: ANSWER.into(), model: model.into(), receipt };
    let output = Output { status: "done", assistant: assistant.into(), ..Output::default() };
    output.with(consulted, &[7; 32]).text()
}

/// Returns a receipt in which everything occurs `count` times, with names of `length` characters.
fn receipt(count: usize, length: usize) -> Receipt {
    let letters = ["src/a-", "数据/é", "\u{202e}x_", "Q7fz"].map(|piece| piece.repeat(length / 4 + 1));
    let word = |at: usize| letters[at % 4].chars().take(length).collect::<String>() + &at.to_string();
    let words: Vec<String> = (0..count).map(word).collect();
    let files = || Files { count: 3 * count, paths: words.clone() };
    let why = "is not read, because its name says that it holds secrets; copy what may be shown";
    let mut receipt = Receipt {
        turn: 17,
        epoch: 3,
        tokens: words.iter().map(|word| (word.clone(), 12_345)).collect(),
        window: 118_511,
        unchanged_prefix: 99_999,
        sent: files(),
        diffed: files(),
        removed: files(),
        unchanged: 40 * count,
        overflow: files(),
        attached: files(),
        moved: files(),
        skipped: words.iter().map(|path| Skipped { path: path.clone(), why: why.into() }).collect(),
        skipped_more: count,
        redacted: words.iter().map(|place| (place.clone(), 3)).collect(),
        new_epoch: (count > 0).then(|| "stored copies had been removed, so all files were sent again".into()),
        saved: 7_777,
        functions: Vec::new(),
        reported: Reported { input: 12_345, cached: 9_999, output: 777, is_estimate: false },
        disclosures: vec![
            "sent 12,345 tokens to o3 (o3) at api.openai.com in 3 requests, cost $0.034".into(),
        ],
        own_ms: 12,
        without_files: count == 1,
        about_prompt: count,
        notices: words.iter().map(|word| format!("{word}: the text was converted from GBK")).collect(),
    };
    receipt.notices.push("the answer was cut at its limit of tokens; ask it to go on".into());
    receipt
}

#[test]
fn whatever_a_turn_did_its_receipt_has_at_most_150_tokens() {
    let long = "abcdefghij-klmnopqrst_uvwxyz0123456789-x";
    for count in [0, 1, 2, 3, 5, 20] {
        for length in [1, 8, 30, 120, 400] {
            for (assistant, model) in
                [("o3", "o3"), (long, "accounts/x/models/llama-v3p1-405b-instruct-hf-turbo")]
            {
                let text = shown(assistant, model, receipt(count, length));
                let tokens = tokens::count(&text.replace(ANSWER, ""));
                assert!(tokens <= RECEIPT_TOKENS, "{count} {length}: {tokens} tokens\n{text}");
                assert!(text.contains(ANSWER) && text.contains("\nTurn 17"), "{text}");
                let is_cut = text.ends_with(": describe_session.");
                assert!(is_cut || count == 0, "{count} {length}\n{text}");
                if assistant == "o3" {
                    let first = "tokens to o3 (o3) at api.openai.com in 3 requests, cost $0.034.";
                    assert!(text.contains(first) && text.contains("The answer was cut"), "{text}");
                }
            }
        }
    }
    let few = shown("o3", "o3", receipt(2, 8));
    assert!(few.contains("Left out: 4 paths (") && few.contains("Secrets replaced: 6"), "{few}");
}

#[test]
fn a_receipt_that_fits_is_shown_whole() {
    let small = Receipt { turn: 2, window: 1_000, ..Receipt::default() };
    assert!(shown("o3", "o3", small.clone()).ends_with(&small.text()));
}
