//! Finds where a session said that it makes a file, and when the file was changed before. Generators, shells and exports of
//! some clients record no change of a new file.

use super::groups::Group;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, Millis, Role};
use tiro_base::scope::SessionId;
use tiro_digest::reasons::files::{SHORT_NAME, name, names_it};
use tiro_host::project::OpenProject;

/// How many entries of a session are read for the first one that names a file. Arbitrary: longer sessions are rare.
const MOST_MESSAGES: usize = 4_000;

/// Words with which an assistant says that it makes something, in the languages of most conversations.
const MAKES: [&str; 20] = [
    "creat",
    "new file",
    "write a",
    "writing a",
    "generat",
    "scaffold",
    "ایجاد",
    "创建",
    "新建",
    "建立",
    "作成",
    "erstell",
    "crear",
    "creo",
    "créer",
    "criar",
    "crie",
    "созда",
    "생성",
    "만들",
];

/// Returns the ordinal of the message in which `session` first named the file of `group`, if the commit of the group made
/// the file, and the assistant said in this answer that it makes something.
pub async fn announced(project: &OpenProject, session: &SessionId, group: &Group) -> Result<Option<i64>> {
    let Some(commit) = group.commit.as_ref().filter(|commit| commit.makes_file) else { return Ok(None) };
    let names: Vec<&str> = group.paths.iter().filter_map(|path| name(path)).collect();
    let has_name = |text: &str| names.iter().any(|name| names_it(text, name));
    let numbered: Vec<&str> = group.paths.iter().filter_map(|path| numbered(path)).collect();
    let generates =
        |command: &str| command.starts_with("bash") && numbered.iter().any(|name| names_it(command, name));
    let runs = |command: &str| command.starts_with("bash") && has_name(command) || generates(command);
    let messages = project.store.surroundings(&project.scope, session, 0, 0, MOST_MESSAGES).await?;
    let is_first = |memory: &Memory| {
        memory.time <= commit.time && (has_name(&memory.text) || runs(command(&memory.text)))
    };
    let Some(at) = messages.iter().position(is_first) else { return Ok(None) };
    // What the user names, or a program prints, was there before. A command is in the first block of its call, and a plan
    // says in one line that it makes the file.
    let text = &messages[at].text;
    let is_said = match messages[at].role {
        Some(Role::Assistant) => true,
        Some(Role::Tool) => {
            let is_planned = |line: &str| has_name(line) && makes(line);
            runs(command(text)) || text.lines().any(is_planned)
        }
        _ => false,
    };
    let answer = messages[..=at].iter().rev().take_while(|memory| memory.role != Some(Role::User));
    let mut said =
        answer.filter(|memory| memory.role != Some(Role::Tool) || memory.ordinal == messages[at].ordinal);
    let is_made = is_said && (generates(command(text)) || said.any(|memory| makes(&memory.text)));
    Ok(messages[at].ordinal.filter(|_| is_made))
}

/// Returns the time of the last commit before that of `group` that changed the file.
pub async fn changed_before(project: &OpenProject, group: &Group) -> Result<Option<Millis>> {
    let Some(commit) = group.commit.as_ref().filter(|_| group.changes.len() > 1) else { return Ok(None) };
    let mut last = None;
    for path in &group.paths {
        let (kinds, path, until) = (Some(vec![Kind::Commit]), Some(path.clone()), Some(commit.time));
        let filter = Filter { kinds, path, until, ..Filter::default() };
        let found = project.store.latest(&project.scope, &filter, 1).await?;
        last = last.max(found.first().map(|memory| memory.time));
    }
    Ok(last)
}

/// Returns the command of a call.
fn command(call: &str) -> &str {
    call.split("```").nth(1).unwrap_or_default()
}

/// Returns the name that a generator of migrations was given, which puts a number before it and an ending after it.
fn numbered(path: &str) -> Option<&str> {
    let file = path.rsplit('/').next()?;
    let name = file.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(['_', '-'])?;
    let name = name.split('.').next().unwrap_or(name);
    (name.len() >= SHORT_NAME && !file.starts_with(['_', '-'])).then_some(name)
}

/// Returns whether a text says that something is made.
fn makes(text: &str) -> bool {
    let lower = text.to_lowercase();
    MAKES.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_file_is_known_by_its_words_or_its_name() {
        assert!(makes("Let me create it") && !makes("I read it"));
        assert_eq!(numbered("db/20260714070041_RegisterAmendment.Designer.cs"), Some("RegisterAmendment"));
        assert_eq!((numbered("db/_register_amendment.rb"), numbered("db/0001_init.sql")), (None, None));
    }
}
