//! Consults an assistant in a thread.
//!
//! [`consult`] shows the steps of a call. It takes the thread's lease, looks at the files, plans which content is sent,
//! asks, runs the functions that the assistant calls, and records the turn. A turn is recorded in one transaction, and
//! only after the provider has accepted the prompt. If anything fails before that, the thread is unchanged.
//!
//! The caller passes its searches to the assistant as functions, so an assistant can never do more than its caller.

mod attached;
mod compose;
mod functions;
mod history;
mod lease;
mod look;
mod notes;
mod prepare;
mod receipt;
mod record;
mod rounds;
mod running;
mod window;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::functions::Functions;
use self::rounds::{Answered, Round};
use crate::ask::{self, Bill, Foreseen};
use crate::caller::{Caller, WritingCaller};
use crate::config::{Configured, Options};
use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::Millis;
use tiro_base::thread::{Spent, ThreadName};
use tiro_files::Ending;
use tiro_inline::Said;
use tiro_llm::{Effort, Image, Request, Turn};
use tiro_redact::Stream;
use tiro_store::{Matter, Purpose, Sources};

pub use self::functions::{Callable, Returned};
pub use self::lease::{missing, take as lease};
pub use self::prepare::Prepared;
pub use self::receipt::{Files, Receipt, Reported, Skipped};
pub use self::running::{Running, Standing};
pub use self::window::window;

/// The maximum number of tokens that a dialect adds around a message.
pub const AROUND_MESSAGE: usize = 8;

/// The system prompt; `{project}` stands for the project's name.
const SYSTEM: &str = include_str!("prompts/system.md");

/// A question to an assistant.
#[derive(Clone, Debug)]
pub struct Question {
    /// The thread.
    pub name: ThreadName,
    /// The instructions.
    pub instructions: String,
    /// Files and folders that stay in the thread.
    pub context: Vec<String>,
    /// Files and folders that get their places before other files.
    pub priority: Vec<String>,
    /// Files that can be searched during this call.
    pub attachments: Vec<String>,
    /// Images that are shown together with this message.
    pub images: Vec<String>,
    /// The form of the answer, in words.
    pub format: Option<String>,
    /// The JSON schema of the answer.
    pub schema: Option<Value>,
    /// How much the assistant should think.
    pub effort: Option<Effort>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The name of the call.
    pub call_id: String,
    /// The branch and the commit that are checked out.
    pub head: (Option<String>, Option<String>),
    /// Files of secrets that the user allowed on the terminal. Tools can't set this field.
    pub allowed: Vec<String>,
    /// Whether the question is only prepared, and nothing is stored.
    pub is_preview: bool,
}

/// The answer of an assistant, with its receipt.
#[derive(Clone, Debug)]
pub struct Consulted {
    /// The answer.
    pub answer: String,
    /// The model that answered.
    pub model: String,
    /// The receipt, which lists what was sent and its cost.
    pub receipt: Receipt,
}

/// An event that is reported to the caller while it waits for the answer.
#[derive(Clone, Debug)]
pub enum Event {
    /// A description of what Tiro is doing.
    Doing(String),
    /// A piece of the answer.
    Text(String),
}

/// A function that is called with each event.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// Asks `assistant` the question, and records the turn. `callables` are the functions that the assistant may call in
/// addition to the search of attachments.
pub async fn consult(
    engine: &Arc<Engine>,
    caller: &WritingCaller,
    assistant: &Configured,
    question: Question,
    callables: Vec<Callable>,
    listener: &Listener,
) -> Result<Consulted> {
    let began = (Instant::now(), engine.now());
    let project = caller.begin_project(engine).await?;
    let lease = lease::take(engine, &project, &question.name).await?;
    let work = ask_and_record(engine, caller, &project, assistant, &question, callables, listener, began);
    let outcome = lease.hold_during(work).await;
    lease.release().await;
    outcome
}

/// Returns the recorded answer of the call, if there is one. If the recorded call had other instructions, the receipt
/// says so.
pub async fn recorded(project: &OpenProject, question: &Question) -> Result<Option<Consulted>> {
    let Question { name, call_id, .. } = question;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let Some(row) = store.turn_by_call(scope, name, call_id).await? else { return Ok(None) };
    let Some(answer) = row.answer_text else {
        return Err(Error::not_found(format!("the answer of call `{}` was forgotten", quoted(call_id))));
    };
    let receipt = row.receipt.as_deref().and_then(|receipt| serde_json::from_str(receipt).ok());
    let mut consulted = Consulted { answer, model: row.model, receipt: receipt.unwrap_or_default() };
    let asked = match &row.question {
        Some(id) => store.memory(scope, id).await?.map(|memory| memory.text),
        None => None,
    };
    if asked.is_some_and(|asked| asked != prepare::worded(question, &project.redactor).0) {
        consulted.receipt.notices.push(other_instructions(call_id));
    }
    Ok(Some(consulted))
}

/// Returns the notice that the recorded answer belongs to other instructions than those of this call.
pub fn other_instructions(call_id: &str) -> String {
    format!(
        "call `{call_id}` was made before with other instructions, and this is its answer; what you ask now was not sent: \
         leave `call_id` out to ask it"
    )
}

#[expect(clippy::too_many_arguments, reason = "each is another part of the call")]
async fn ask_and_record(
    engine: &Arc<Engine>,
    caller: &Caller,
    project: &WritableProject,
    assistant: &Configured,
    question: &Question,
    callables: Vec<Callable>,
    listener: &Listener,
    (began, asked_at): (Instant, Millis),
) -> Result<Consulted> {
    if let Some(recorded) = recorded(project, question).await? {
        return Ok(recorded);
    }
    let options = engine.config().sources.options()?;
    let Ready { mut prepared, mut functions, request, ends: _ends } =
        ready(engine, project, &options, assistant, question, callables).await?;
    listener(Event::Doing(format!(
        "{} reads {} tokens",
        assistant.provider.name,
        tiro_base::humanize::thousands(prepared.receipt.tokens.values().sum::<usize>() as u64)
    )));
    let bill = Bill::default();
    let deadline = Duration::from_secs(options.consult_deadline_s);
    let stream = Mutex::new(Stream::new(engine.begin_installation().await?.redactor.clone()));
    let (on_text, on_functions) = (told(listener, &stream), told_functions(listener));
    let round = Round {
        engine,
        caller,
        options: &options,
        assistant,
        until: Instant::now() + deadline,
        bill: &bill,
        on_text: Some(&on_text),
        on_functions: &on_functions,
        matter: matter(&question.name, std::mem::take(&mut prepared.sources)),
    };
    let asked = rounds::until_answered(round, request, &mut functions, prepared.results_room).await;
    let rest = stream.lock().unwrap_or_else(PoisonError::into_inner).end();
    if !rest.is_empty() {
        listener(Event::Text(rest));
    }
    prepared.attached.end();
    let mut answered = asked.map_err(|error| unrecorded(error, &bill))?;
    // The redacted answer is used everywhere, so that the answer is returned, stored and sent again in the same words.
    answered.text = engine.begin_installation().await?.redactor.redact(&answered.text).text.into_owned();
    let own_ms = || began.elapsed().saturating_sub(answered.waited).as_millis() as u64;
    let mut receipt = complete(&prepared, question, &answered, functions, &bill);
    receipt.own_ms = own_ms();
    let spent = spent(&prepared, &receipt, &bill);
    let exchange = record::Exchange {
        name: &question.name,
        instructions: &prepared.instructions,
        answer: &answered.text,
        model: &assistant.provider.model,
        call_id: &question.call_id,
        receipt: serde_json::to_string(&receipt).expect("a receipt is JSON"),
        spent,
        head: question.head.clone(),
        times: (asked_at, engine.now()),
    };
    let recorded = record::record(engine, project, &prepared.thread, &prepared, exchange).await;
    match recorded {
        Ok(recorded) if recorded.evicted > 0 => receipt.notices.push(format!(
            "stored copies of other threads were removed to save space ({}); they send their files again",
            recorded.evicted
        )),
        Ok(_) => {}
        // The answer was paid for, so it is returned even if the turn could not be stored.
        Err(error) => receipt.notices.push(format!(
            "the turn could not be recorded, so the thread is as before and the next call sends the files again: {}",
            error.with_hint()
        )),
    }
    receipt.own_ms = own_ms();
    Ok(Consulted { answer: answered.text, model: assistant.provider.model.clone(), receipt })
}

/// A question that is ready to be sent.
struct Ready {
    prepared: Prepared,
    functions: Functions,
    /// The request of the first round.
    request: Request,
    /// Ends the call's budget for documents when it is dropped.
    ends: Ending,
}

/// Prepares `question`. Sends and records nothing.
async fn ready(
    engine: &Arc<Engine>,
    project: &OpenProject,
    options: &Options,
    assistant: &Configured,
    question: &Question,
    callables: Vec<Callable>,
) -> Result<Ready> {
    let system = SYSTEM.replace("{project}", &tiro_base::envelope::one_line(&project.name));
    let system = system.trim_end().to_owned();
    let budget = prepare::budget(options);
    let ends = budget.ends_with_call();
    let reader = Arc::new(prepare::reader(engine, project, options, &budget, Some(question)).await?);
    let preparing =
        prepare::prepare(engine, project, options, assistant, question, &system, &callables, reader);
    let mut prepared = preparing.await?;
    let mut offered = callables;
    offered.extend(attached::search(engine, &prepared.attached).await?);
    let functions = Functions::new(offered, engine.installation().await?.redactor.clone());
    let request = request(question, system, &mut prepared, &functions, options);
    Ok(Ready { prepared, functions, request, ends })
}

/// The preview of a question.
pub struct Previewed {
    /// The prepared turn, without its prompt.
    pub prepared: Prepared,
    /// The size and cost of the first request.
    pub foreseen: Foreseen,
    /// The functions that the assistant could call.
    pub functions: Vec<String>,
}

/// Returns the preview of `question`. Sends and stores nothing.
pub async fn preview(
    engine: &Arc<Engine>,
    project: &OpenProject,
    assistant: &Configured,
    question: Question,
    callables: Vec<Callable>,
) -> Result<Previewed> {
    let options = engine.config().sources.options()?;
    let question = Question { is_preview: true, ..question };
    let Ready { mut prepared, functions, request, ends: _ends } =
        ready(engine, project, &options, assistant, &question, callables).await?;
    let mut seen = HashSet::new();
    prepared.receipt.skipped.retain(|skipped| seen.insert(skipped.path.clone()));
    let foreseen = ask::foresee(engine, assistant, &request).await?;
    let functions = functions.offered().into_iter().map(|function| function.name).collect();
    Ok(Previewed { prepared, foreseen, functions })
}

/// Returns the receipt of an answered turn, without Tiro's own time.
fn complete(
    prepared: &Prepared,
    question: &Question,
    answered: &Answered,
    functions: Functions,
    bill: &Bill,
) -> Receipt {
    let mut receipt = prepared.receipt.clone();
    receipt.about_prompt = receipt.notices.len();
    receipt.functions = functions.ran;
    receipt.reported = answered.reported;
    receipt.disclosures = bill.summed();
    receipt.skipped.extend(prepared.attached.unread());
    let mut seen = HashSet::new();
    receipt.skipped.retain(|skipped| seen.insert(skipped.path.clone()));
    receipt.notices.extend(answered.notices.iter().cloned());
    if question.schema.is_some() && serde_json::from_str::<Value>(&answered.text).is_err() {
        receipt.notices.push("the answer is not JSON, although a schema was given".to_owned());
    }
    receipt.shorten();
    receipt
}

/// Returns the purpose and the sources of the first request of a turn.
fn matter(name: &ThreadName, sources: Sources) -> Matter {
    Matter {
        session: Some(name.session.as_str().to_owned()),
        assistant: Some(name.assistant.clone()),
        ..Matter::of(Purpose::Consultation, sources)
    }
}

/// Returns the request of the first round.
fn request(
    question: &Question,
    system: String,
    prepared: &mut Prepared,
    functions: &Functions,
    options: &Options,
) -> Request {
    let turn = |said| match said {
        Said::Caller(text) => Turn::user(text),
        Said::Assistant(text) => Turn::Assistant { text, calls: Vec::new(), kept: None },
    };
    let mut turns: Vec<Turn> = std::mem::take(&mut prepared.said).into_iter().map(turn).collect();
    if let Some(Turn::User { images, .. }) = turns.last_mut() {
        let shown = std::mem::take(&mut prepared.images).into_iter();
        images
            .extend(shown.map(|image| Image { media_type: image.media_type.to_owned(), bytes: image.bytes }));
    }
    let ThreadName { session, assistant: name } = &question.name;
    let (chosen, usual) = options.temperatures();
    let key = blake3::hash(format!("{session}\n{name}\n{}", prepared.epoch).as_bytes()).to_hex();
    Request {
        system,
        turns,
        functions: functions.offered(),
        schema: question.schema.clone().map(|schema| ("answer".to_owned(), schema)),
        max_output: prepared.most_output,
        temperature: question.temperature.or(chosen),
        usual_temperature: usual,
        effort: question.effort,
        keeps_prefix: true,
        cache_key: Some(key[..32].to_owned()),
        is_embedding: false,
    }
}

/// Returns a function that passes on the pieces of an answer, without secrets. A secret that is split between two
/// pieces is found too.
fn told<'a>(listener: &Listener, stream: &'a Mutex<Stream>) -> impl Fn(&str) + Send + Sync + use<'a> {
    let listener = Arc::clone(listener);
    move |text: &str| {
        let text = stream.lock().unwrap_or_else(PoisonError::into_inner).piece(text);
        if !text.is_empty() {
            listener(Event::Text(text));
        }
    }
}

fn told_functions(listener: &Listener) -> impl Fn(&[String]) + Send + Sync {
    let listener = Arc::clone(listener);
    move |names: &[String]| listener(Event::Doing(format!("it calls {}", names.join(", "))))
}

/// Returns the error of a call that was not recorded. The error says what was sent and how much was paid.
fn unrecorded(failed: Error, bill: &Bill) -> Error {
    let sent = bill.summed();
    failed.reworded(match sent.is_empty() {
        true => format!("{failed}; nothing was recorded"),
        false => format!("{failed}; nothing was recorded, but: {}", sent.join("; ")),
    })
}

fn spent(prepared: &Prepared, receipt: &Receipt, bill: &Bill) -> Spent {
    let tokens = |parts: &BTreeMap<String, usize>| parts.values().sum::<usize>() as u64;
    Spent {
        prompt: tokens(&receipt.tokens),
        appended: prepared.appended as u64,
        whole: prepared.whole as u64,
        input: receipt.reported.input,
        cached: receipt.reported.cached,
        output: receipt.reported.output,
        micros: bill.total().0,
    }
}

/// Files with their numbers of tokens.
#[derive(Default)]
pub struct CountedFiles {
    /// The path of each file, with the number of tokens of its redacted text.
    pub files: Vec<(String, usize)>,
    /// The paths that were left out.
    pub skipped: Vec<Skipped>,
    /// The number of secrets that are replaced in these files.
    pub secrets: usize,
    /// Remarks, each of which is a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Counts the tokens of the files at `paths`, as they would be sent.
pub async fn count(
    engine: &Engine,
    project: &OpenProject,
    options: &Options,
    paths: &[String],
) -> Result<CountedFiles> {
    let budget = prepare::budget(options);
    let _ends = budget.ends_with_call();
    let reader = Arc::new(prepare::reader(engine, project, options, &budget, None).await?);
    look::count(&reader, project, paths).await
}
