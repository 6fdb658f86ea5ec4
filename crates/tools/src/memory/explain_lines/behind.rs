//! Finds the conversations in which lines were written, and the sentences in them that say why.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::groups::{self, Group};
use super::making;
use super::page::{self, Explained, Reason, escaped, open};
use crate::common::beginning_in_bytes;
use crate::memory::show;
use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryKey, Millis, Role};
use tiro_base::scope::SessionId;
use tiro_base::times::minute;
use tiro_digest::reasons::{self, Part, Quote, Said, Topic, files};
use tiro_digest::statements::answers::is_dialog;
use tiro_host::project::OpenProject;
use tiro_store::{ReplacementQuery, SessionKey, WriteRow};

/// How many changes of a file are compared with the lines. Arbitrary: a file that was changed more often has a year of
/// work in it.
const MOST_WRITES: usize = 5_000;

/// How much later than its commit a change of a session that is not linked to the commit may be, in milliseconds. The
/// time of a commit may be that of its first version.
const AFTER_COMMIT: Millis = 60 * 60 * 1000;

/// How much later than its commit a change may be that is not known to have its lines. The times of commits are whole
/// seconds.
const SECOND: Millis = 999;

/// How much older than its commit the original of a copied file may be, in milliseconds. Arbitrary: two days of work.
const BEFORE_COPY: Millis = 2 * 24 * 60 * 60 * 1000;

/// For how many commits the originals of copied files are looked for. Arbitrary: most answers show fewer commits.
const MOST_COPIES: usize = 8;

/// How many entries of a session are read before the call that wrote the lines. Arbitrary: an agent often makes dozens of
/// calls after one request.
const ENTRIES: usize = 250;

/// The extension of documents, and the parts of their paths that say that they are plans.
const DOCUMENT: &str = ".md";
const PLANS: [&str; 6] = ["plan", "spec", "design", "todo", "prd", "roadmap"];

/// The maximum number of bytes that are shown of a session's title. Arbitrary: about half a line.
const LONGEST_TITLE: usize = 60;

/// A request in a weakly linked session has at least this many words of the lines. Of the answers that this leaves out, a
/// reader found ten in twenty wrong; of those that it keeps, two in ten.
const WORDS_OF_WEAK_LINK: usize = 4;

/// Finds the sessions that led to the commits of `groups`, and the tool calls that wrote their lines. Returns the groups
/// divided by these calls, in the order of their first lines.
pub async fn with_writers(project: &OpenProject, mut groups: Vec<Group>, now: Millis) -> Result<Vec<Group>> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    for group in groups.iter_mut() {
        if let Some(sha) = group.origin.commit() {
            group.memory = store.commit_named(scope, sha).await?.map(|(key, _)| key);
        }
    }
    let commits: Vec<MemoryKey> = groups.iter().filter_map(|group| group.memory).collect();
    let links: HashMap<MemoryKey, _> = store.links_of(scope, commits).await?.into_iter().collect();
    let paths: BTreeSet<String> = groups.iter().flat_map(|group| group.paths.clone()).collect();
    let rows = store.writes_of(scope, paths.iter().cloned().collect(), now, MOST_WRITES).await?;
    let mut divided: Vec<Group> = Vec::new();
    let mut near: HashMap<Millis, Vec<WriteRow>> = HashMap::new();
    for mut group in groups {
        group.links = group.memory.and_then(|commit| links.get(&commit)).cloned().unwrap_or_default();
        let until = group.commit.as_ref().map_or(now, |commit| commit.time + AFTER_COMMIT);
        group.find_changes(&rows, group.commit.as_ref().map_or(now, |commit| commit.time + SECOND));
        for group in group.by_writer(&rows, until) {
            let is_enough = near.len() == MOST_COPIES && !near.contains_key(&until);
            if is_enough || !group.may_be_copied() {
                divided.push(group);
                continue;
            }
            let near = match near.entry(until) {
                Entry::Occupied(read) => read.into_mut(),
                Entry::Vacant(none) => {
                    let all = store.file_writes(scope, until - BEFORE_COPY, until).await?;
                    none.insert(groups::originals(all, &paths))
                }
            };
            divided.extend(group.by_original(near, until));
        }
    }
    divided.sort_by_key(|group| group.lines.first().map(|line| line.number));
    Ok(divided)
}

/// Finds the reasons of the lines of `group`.
pub async fn explain(project: &OpenProject, group: &Group) -> Result<Explained> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut explained = Explained::of(group);
    let topic = topic(group);
    let (conversation, quotes) = match &group.writer {
        Some(writer) => {
            let conversation = before(project, group, writer.memory).await?;
            let quotes = conversation.quotes(&topic);
            (conversation, quotes)
        }
        None => likely(project, group, &topic, &mut explained).await?,
    };
    let keys = quotes.iter().map(|quote| conversation.messages[quote.message].key).collect();
    let replaced =
        store.replacements(scope, ReplacementQuery { memories: keys, ..Default::default() }).await?;
    for quote in quotes {
        let memory = &conversation.messages[quote.message];
        let by = replaced.superseded.iter().find(|replaced| {
            let overlaps = |(start, end): (usize, usize)| start < quote.range.end && quote.range.start < end;
            replaced.memory == memory.key && replaced.statement.is_none_or(overlaps)
        });
        explained.reasons.push(Reason {
            part: name_of(quote.part),
            text: escaped(&quote.text),
            speaker: memory.speaker.as_deref().or(memory.role.map(|role| role.as_str())).map(escaped),
            author: memory.author.other_than(&scope.reader),
            time: minute(memory.time),
            open: open(memory),
            superseded: by.map(|by| by.by.to_string()),
        });
    }
    let reason = group.commit.as_ref().and_then(|commit| reasons::in_commit(&commit.message, &topic));
    if let (Some(sentence), Some(commit)) = (reason, &group.commit) {
        explained.reasons.push(Reason {
            part: "committed",
            text: escaped(&sentence.text),
            speaker: Some(escaped(&commit.author)),
            author: None,
            time: minute(commit.time),
            open: group.origin.commit().unwrap_or_default().to_owned(),
            superseded: None,
        });
    }
    explained.session = conversation.session.map(|session| escaped(session.as_str()));
    let title = conversation.title.as_deref().and_then(show::line);
    explained.title = title.map(|title| escaped(&beginning_in_bytes(&title, LONGEST_TITLE)));
    Ok(explained)
}

/// What was said in a session before some lines were written.
#[derive(Default)]
struct Conversation {
    session: Option<SessionId>,
    title: Option<String>,
    /// The messages of the user and the assistant, in order.
    messages: Vec<Memory>,
    /// The ordinals of the calls that changed files; empty if none is recorded.
    changes: BTreeSet<i64>,
    /// The ordinal of the call that wrote the lines.
    at: i64,
}

impl Conversation {
    /// Returns the sentences that say why lines about this topic were written.
    fn quotes(&self, topic: &Topic) -> Vec<Quote> {
        let last = self.messages.last().and_then(|memory| memory.ordinal);
        let announces = last.is_some_and(|last| self.changes.range(last..=self.at).next() == Some(&self.at));
        reasons::in_conversation(&self.said(), topic, announces)
    }

    fn said(&self) -> Vec<Said<'_>> {
        let before =
            std::iter::once(i64::MIN).chain(self.messages.iter().filter_map(|memory| memory.ordinal));
        let said = |(memory, before)| -> Said<'_> {
            let memory: &Memory = memory;
            let until = memory.ordinal.unwrap_or(before);
            let is_known = !self.changes.is_empty();
            let is_after_change = is_known.then(|| self.changes.range(before..until).next().is_some());
            let role = memory.role.unwrap_or(Role::Assistant);
            Said { role, speaker: memory.speaker.as_deref(), text: &memory.text, is_after_change }
        };
        self.messages.iter().zip(before).map(said).collect()
    }
}

/// Returns what was said before the tool call `call`.
async fn before(project: &OpenProject, group: &Group, call: MemoryKey) -> Result<Conversation> {
    let found = project.store.memories(&project.scope, vec![call]).await?.pop();
    let place = found.and_then(|memory| Some((memory.session?, memory.ordinal?)));
    let Some((session, ordinal)) = place else { return Ok(Conversation::default()) };
    conversation(project, group, session, ordinal).await
}

/// Returns the likeliest session behind the commit of `group`, and what was said about the lines if no call is known that
/// wrote them.
///
/// If the commit made the file, the first change of the file counts, or what the session said before it made the file, which
/// `explained` then says. If the session changed the file for several requests, only a request about the lines counts, and
/// only if not all lines of its changes are recorded; of a weakly linked session, only one that is clearly about them.
/// Otherwise the session is named, but nothing is quoted.
async fn likely(
    project: &OpenProject,
    group: &Group,
    topic: &Topic,
    explained: &mut Explained,
) -> Result<(Conversation, Vec<Quote>)> {
    let behind = behind(project, group).await?;
    // Most lines of a new file were there from the beginning. If its making is not recorded, what the session said before
    // it comes before later changes.
    if let Some(session) = behind.clone().filter(|_| !group.is_guessed)
        && let Some(made) = made(project, group, session, topic, explained).await?
    {
        return Ok(made);
    }
    let found = requests(project, group, topic).await?;
    let is_only = found.len() == 1;
    let best = match group.makes_file() {
        true => found.into_iter().next(),
        false => found.into_iter().rev().max_by_key(|(shared, ..)| *shared),
    };
    let is_likely = |(shared, of): (usize, SessionKey)| match group.is_weakly_linked(of) {
        true => group.is_guessed && shared >= WORDS_OF_WEAK_LINK,
        false if group.is_guessed => shared > 1,
        // If all recorded changes have other lines, the line was there when the file was made.
        false => is_only && !group.makes_file(),
    };
    if let Some((_, of, conversation, quotes)) = best.filter(|(shared, of, ..)| is_likely((*shared, *of))) {
        explained.link = page::changed(group, of);
        return Ok((conversation, quotes));
    }
    // Requests that only share words with the lines were mostly wrong, so none is quoted.
    let (Some(commit), Some(session)) = (&group.commit, behind) else {
        return Ok((Conversation::default(), Vec::new()));
    };
    Ok((led_to(project, session, commit.time).await?, Vec::new()))
}

/// Returns what `session` said before it made the file of `group`, if the commit made it.
async fn made(
    project: &OpenProject,
    group: &Group,
    session: SessionId,
    topic: &Topic,
    explained: &mut Explained,
) -> Result<Option<(Conversation, Vec<Quote>)>> {
    let Some(at) = making::announced(project, &session, group).await? else { return Ok(None) };
    let conversation = conversation(project, group, session, at).await?;
    let quotes = conversation.quotes(topic);
    if quotes.iter().all(|quote| quote.part == Part::Decided) {
        return Ok(None);
    }
    explained.link = page::made(group);
    Ok(Some((conversation, quotes)))
}

/// Returns the likeliest session behind the commit of `group`, if it is surely linked.
async fn behind(project: &OpenProject, group: &Group) -> Result<Option<SessionId>> {
    let Some(memory) = group.memory.filter(|_| group.has_sure_link()) else { return Ok(None) };
    let behind = project.store.sessions_behind(&project.scope, vec![memory]).await?;
    Ok(behind.into_iter().flatten().next().map(|(session, _)| session))
}

/// Returns whether a file is a document that says in its path that it plans something.
fn is_plan(path: &str) -> bool {
    let lower = path.to_lowercase();
    lower.ends_with(DOCUMENT) && PLANS.iter().any(|part| lower.contains(part))
}

/// Returns the requests for which the changes of `group` were made, each once: how many words it shares with the lines, its
/// session and conversation, and what it says about the lines. Of a file that the commit made, the first request is enough
/// if not all lines of the changes are recorded.
async fn requests(
    project: &OpenProject,
    group: &Group,
    topic: &Topic,
) -> Result<Vec<(usize, SessionKey, Conversation, Vec<Quote>)>> {
    let changes = group.changes_after(making::changed_before(project, group).await?);
    let calls = changes.iter().map(|change| change.memory).collect();
    let calls = project.store.memories(&project.scope, calls).await?;
    let mut found = Vec::new();
    let mut keys: HashSet<MemoryKey> = HashSet::new();
    // Of each exchange that was read, its session, the ordinal of its request, and that of the change.
    let mut read: Vec<(SessionId, i64, i64)> = Vec::new();
    for change in changes {
        let call = calls.iter().find(|call| call.key == change.memory);
        let Some((session, at)) = call.and_then(|call| Some((call.session.clone()?, call.ordinal?))) else {
            continue;
        };
        if read.iter().any(|(of, from, to)| *of == session && (*from..=*to).contains(&at)) {
            continue;
        }
        let conversation = conversation(project, group, session.clone(), at).await?;
        let is_request = |memory: &&Memory| memory.role == Some(Role::User);
        let request = conversation.messages.iter().rfind(is_request).and_then(|memory| memory.ordinal);
        read.push((session, request.unwrap_or(at), at));
        let quotes = conversation.quotes(topic);
        // The last one is what was asked right before the change.
        let Some(last) = quotes.iter().rfind(|quote| quote.part != Part::Decided) else { continue };
        let key = conversation.messages[last.message].key;
        if keys.insert(key) {
            let shared = quotes.iter().map(|quote| reasons::shared(&quote.text, topic)).max().unwrap_or(0);
            found.push((shared, change.session, conversation, quotes));
            if group.is_guessed && group.makes_file() {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns a session that led to a commit of `time`, without its messages.
async fn led_to(project: &OpenProject, session: SessionId, time: Millis) -> Result<Conversation> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let row = store.behind(scope, vec![session], time).await?.into_iter().next();
    Ok(row.map_or_else(Conversation::default, |row| Conversation {
        session: Some(row.session),
        title: row.title,
        ..Conversation::default()
    }))
}

/// Returns what `session` said before `ordinal`. While an assistant writes only a plan, a request for code is open.
async fn conversation(
    project: &OpenProject,
    group: &Group,
    session: SessionId,
    ordinal: i64,
) -> Result<Conversation> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut messages = store.surroundings(scope, &session, ordinal, ENTRIES, 0).await?;
    let times = || messages.iter().map(|memory| memory.time);
    let (from, until) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let writes = store.file_writes(scope, from, until).await?;
    let is_code = group.paths.iter().all(|path| !is_plan(path));
    let writes = writes.into_iter().filter(|row| !(is_code && is_plan(&row.path)));
    let writes: HashSet<MemoryKey> = writes.map(|row| row.memory).collect();
    let calls = messages.iter().filter(|memory| writes.contains(&memory.key));
    let changes = calls.filter_map(|memory| memory.ordinal).collect();
    messages.retain(|memory| {
        let is_said = matches!(memory.role, Some(Role::User | Role::Assistant))
            || is_dialog(memory.role, memory.speaker.as_deref());
        is_said && memory.ordinal.is_some_and(|at| at < ordinal) && !memory.is_damaged
    });
    let about = store.about_sessions(scope, vec![session.clone()]).await?.pop();
    let title = about.and_then(|about| about.title);
    Ok(Conversation { session: Some(session), title, messages, changes, at: ordinal })
}

/// Returns what the lines of `group` are about.
fn topic(group: &Group) -> Topic {
    let subject = group.commit.as_ref().and_then(|commit| commit.message.lines().next()).unwrap_or_default();
    // The names of the file and of its folder. Its extension is a word of too many sentences.
    let name = |path: &str| path.rsplit('/').take(2).collect::<Vec<_>>().join(" ");
    let extension = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.rfind('.').filter(|dot| *dot > 0).map(|dot| file[dot + 1..].to_owned()).unwrap_or_default()
    };
    let names: Vec<String> = group.paths.iter().map(|path| name(path)).collect();
    let extensions: Vec<String> = group.paths.iter().map(|path| extension(path)).collect();
    let texts = |texts: &[String]| reasons::words_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<&str> = group.lines.iter().map(|line| line.text.as_str()).chain([subject]).collect();
    let names = &texts(&names) - &texts(&extensions);
    let files = group.paths.iter().filter_map(|path| files::name(path)).map(str::to_owned).collect();
    Topic { words: &names | &reasons::words_of(&lines), files }
}

fn name_of(part: Part) -> &'static str {
    match part {
        Part::Asked => "asked",
        Part::Answered => "answered",
        Part::Accepted => "accepted",
        Part::Decided => "decided",
    }
}
