//! The part of the demonstration that assembles a context from a long conversation within a budget. It then opens the
//! message from which the question was made.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use crate::context::retrieve_context;
use crate::memory::expand_detail;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::Kind;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_text::blocks;

/// The maximum number of tokens of the demonstration's context. The conversation has several times as many.
const MAX_TOKENS: usize = 4000;

/// The maximum number of tokens of the opened message.
const OPENED_TOKENS: usize = 600;

/// The context that an agent would get for a question about the conversation.
#[derive(Debug, Serialize)]
pub struct Assembled {
    /// The question.
    pub question: String,
    /// Tokens of all messages of the conversation.
    pub conversation_tokens: i64,
    /// Tokens of each part of the context.
    pub parts: BTreeMap<String, usize>,
    /// The number of passages of each part that were left out.
    pub dropped: BTreeMap<String, usize>,
    /// Tokens of the answer.
    pub tokens_used: usize,
    /// The budget of the context in tokens.
    pub max_tokens: usize,
    /// Whether the context quotes a sentence of the message from which the question was made.
    pub holds_the_source: bool,
    /// How long assembling it took, in milliseconds.
    pub milliseconds: u64,
    /// The message from which the question was made, with its neighbours. Absent if the project does not have this
    /// message.
    pub opened: Option<Opened>,
}

/// A message in full.
#[derive(Debug, Serialize)]
pub struct Opened {
    /// Its name: the conversation and the number of the message.
    pub name: String,
    /// Its text.
    pub text: String,
    /// How many messages are shown around it.
    pub neighbours: usize,
    /// Tokens of the message with its neighbours.
    pub tokens_used: usize,
}

/// Assembles the context for `question`, and opens the message from which the question was made. `source` is the source
/// id of this message.
pub async fn assemble(engine: &Engine, caller: &Caller, question: String, source: &str) -> Result<Assembled> {
    let began = Instant::now();
    let args = retrieve_context::Args {
        query: question.clone(),
        max_tokens: Some(MAX_TOKENS),
        ..retrieve_context::Args::default()
    };
    let context = retrieve_context::run(engine, caller, args).await?;
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let project = caller.project(engine).await?;
    let kinds = project.store.stats(&project.scope, engine.now()).await?.kinds;
    let messages = kinds.iter().find(|each| each.kind == Kind::Message.as_str());
    let conversation_tokens = messages.map_or(0, |each| each.tokens);
    let named = Filter { source_id: Some(source.to_owned()), ..Filter::default() };
    let found = project.store.list(&project.scope, &named, None, 1).await?.pop();
    let text = found.as_ref().map_or("", |message| message.text.trim());
    let opened = match found.as_ref().and_then(|message| message.session.as_ref().zip(message.ordinal)) {
        Some((session, ordinal)) => Some(open(engine, caller, format!("{session}#{ordinal}")).await?),
        None => None,
    };
    Ok(Assembled {
        question,
        conversation_tokens,
        parts: context.parts,
        dropped: context.dropped,
        tokens_used: context.tokens_used,
        max_tokens: MAX_TOKENS,
        holds_the_source: quotes(&context.context, text),
        milliseconds,
        opened,
    })
}

/// Returns whether `context` quotes a sentence of the message `text`.
fn quotes(context: &str, text: &str) -> bool {
    let bare = |text: &str| text.replace(['`', '*'], "").split_whitespace().collect::<Vec<_>>().join(" ");
    let context = bare(context);
    blocks::quotable(text).iter().any(|sentence| context.contains(&bare(&sentence.text)))
}

async fn open(engine: &Engine, caller: &Caller, name: String) -> Result<Opened> {
    let args = expand_detail::Args {
        id: name.clone(),
        before: Some(1),
        after: Some(1),
        max_tokens: Some(OPENED_TOKENS),
        ..expand_detail::Args::default()
    };
    let opened = expand_detail::run(engine, caller, args).await?;
    let neighbours = opened.neighbours.len();
    Ok(Opened { name, text: opened.text, neighbours, tokens_used: opened.tokens_used })
}

impl Assembled {
    /// Returns the result as text. `first_words` shortens a message to one line.
    pub fn text(&self, first_words: fn(&str) -> String) -> String {
        let listed = |counts: &BTreeMap<String, usize>| {
            counts.iter().map(|(part, count)| format!("{part} {count}")).collect::<Vec<_>>().join(", ")
        };
        let Assembled { question, conversation_tokens, tokens_used, max_tokens, milliseconds, .. } = self;
        let mut text =
            format!("\n? {question}\n  Asked of the bundled conversation, {conversation_tokens} tokens.\n");
        text += &format!("  Context: {tokens_used} of {max_tokens} tokens used ({}); ", listed(&self.parts));
        if !self.dropped.is_empty() {
            text += &format!("left out: {}; ", listed(&self.dropped));
        }
        text += &format!("{milliseconds} ms\n");
        let holds =
            if self.holds_the_source { "quotes the right message" } else { "lacks the right message" };
        text += &format!("  The context {holds}. Its source, opened:\n");
        if let Some(opened) = &self.opened {
            text += &format!(
                "  [{}] {}\n  Shown with {} messages around it; {} tokens used\n",
                opened.name,
                first_words(&opened.text),
                opened.neighbours,
                opened.tokens_used
            );
        }
        text
    }
}
