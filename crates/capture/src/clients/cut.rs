//! Removes our entries from settings in JSON.
//!
//! A member is cut out of the text by its position, together with one comma and the white space before it. If the
//! member were removed from the syntax tree that [`edit`](super::edit) uses, comments next to it would be removed too,
//! and they may be the user's.

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, Scanner, ScannerOptions, parse_to_ast};

use super::edit::{Ours, STRICT, is_ours, split_mark, value};
use tiro_base::error::{Context, Kind, Result};

/// Returns `text` without our entries. A value that `before` had in place of our entry is restored. Objects and arrays
/// that become empty are removed, unless `before` contained them.
///
/// # Errors
///
/// [`Kind::BadInput`] if `text` is not valid JSON.
pub fn remove(text: &str, before: Option<&str>, ours: &Ours) -> Result<String> {
    let (mark, body) = split_mark(text);
    let before = before.map_or("", |text| split_mark(text).1);
    let mut text = body.to_owned();
    value(&text)?;
    for path in ours.members {
        let Some(member) = find(&text, path) else { continue };
        match find(before, path) {
            Some(former) => text.replace_range(member.value, &before[former.value]),
            None => {
                text = cut(&text, member.whole)?;
                text = prune(text, &path[..path.len() - 1], before)?;
            }
        }
    }
    while let Some((event, hook)) = first_hook(&text, ours) {
        text = cut(&text, hook)?;
        text = prune(text, &["hooks", &event], before)?;
    }
    while let Some((path, element)) = first_element(&text, before, ours) {
        text = cut(&text, element)?;
        text = prune(text, path, before)?;
    }
    value(&text)?;
    Ok(format!("{mark}{text}"))
}

/// Returns `text` without the member at `path`. Returns `text` unchanged if there is no such member.
pub fn member(text: &str, path: &[&str]) -> Result<String> {
    let (mark, body) = split_mark(text);
    let Some(member) = find(body, path) else { return Ok(text.to_owned()) };
    Ok(format!("{mark}{}", cut(body, member.whole)?))
}

/// The position of a member in the text.
struct MemberSpan {
    whole: Range<usize>,
    value: Range<usize>,
}

fn object<T>(text: &str, look: impl FnOnce(&Object<'_>) -> Option<T>) -> Option<T> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).ok()?;
    look(parsed.value.as_ref()?.as_object()?)
}

fn find(text: &str, path: &[&str]) -> Option<MemberSpan> {
    object(text, |object| {
        let (key, parents) = path.split_last()?;
        let member = parents.iter().try_fold(object, |object, key| object.get_object(key))?.get(key)?;
        Some(MemberSpan { whole: range(member), value: range(&member.value) })
    })
}

/// Returns the event of our first hook and the position to cut. If the hook's group contains no other hook, this is the
/// position of the whole group.
fn first_hook(text: &str, ours: &Ours) -> Option<(String, Range<usize>)> {
    let command = |hook: &Value<'_>| {
        let hook = hook.as_object()?;
        let arguments = hook.get_array("args").into_iter().flat_map(|arguments| &arguments.elements);
        let arguments = arguments.filter_map(|each| Some(each.as_string_lit()?.value.to_string()));
        let words = std::iter::once(hook.get_string("command")?.value.to_string()).chain(arguments);
        Some(words.collect::<Vec<_>>().join(" "))
    };
    object(text, |object| {
        for event in &object.get_object("hooks")?.properties {
            for group in event.value.as_array().iter().flat_map(|groups| &groups.elements) {
                let Some(hooks) = group.as_object().and_then(|group| group.get_array("hooks")) else {
                    continue;
                };
                let is_ours =
                    |hook: &&Value<'_>| command(hook).is_some_and(|command| is_ours(&command, ours));
                if let Some(hook) = hooks.elements.iter().find(is_ours) {
                    let place = if hooks.elements.len() == 1 { range(group) } else { range(hook) };
                    return Some((event.name.as_str().to_owned(), place));
                }
            }
        }
        None
    })
}

/// Returns the path of our list and the position of its first element that is ours and was not in `before`.
fn first_element(text: &str, before: &str, ours: &Ours) -> Option<(&'static [&'static str], Range<usize>)> {
    let (path, beginning) = ours.list?;
    let (key, parents) = path.split_last()?;
    fn words<'a>(list: &'a Value<'a>) -> Option<std::borrow::Cow<'a, str>> {
        Some(std::borrow::Cow::Borrowed(list.as_string_lit()?.value.as_ref()))
    }
    let had: Vec<String> = object(before, |object| {
        let list = parents.iter().try_fold(object, |object, key| object.get_object(key))?.get_array(key)?;
        Some(list.elements.iter().filter_map(words).map(|word| word.into_owned()).collect())
    })
    .unwrap_or_default();
    let found = object(text, |object| {
        let list = parents.iter().try_fold(object, |object, key| object.get_object(key))?.get_array(key)?;
        let is_ours = |element: &&Value<'_>| {
            words(element)
                .is_some_and(|word| word.starts_with(beginning) && !had.iter().any(|had| *had == word))
        };
        list.elements.iter().find(is_ours).map(range)
    })?;
    Some((path, found))
}

fn range(node: &impl Ranged) -> Range<usize> {
    node.start()..node.end()
}

/// Cuts out the member at `path`, then each of its parents that is now empty and was not in `before`.
fn prune(mut text: String, path: &[&str], before: &str) -> Result<String> {
    for end in (1..=path.len()).rev() {
        let Some(member) = find(&text, &path[..end]) else { continue };
        if !matches!(&text[member.value], "{}" | "[]") || find(before, &path[..end]).is_some() {
            break;
        }
        text = cut(&text, member.whole)?;
    }
    Ok(text)
}

/// Returns `text` without the member or element in `range`, and without the comma that would be left over.
fn cut(text: &str, range: Range<usize>) -> Result<String> {
    let (mut before, mut after) = (None, None);
    let mut ends_in_comment = None;
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    while let Some(token) =
        scanner.scan().context(Kind::BadInput, || "the settings are not valid JSON".to_owned())?
    {
        let place = scanner.token_start()..scanner.token_end();
        match token {
            Token::CommentLine(_) if place.end <= range.start => ends_in_comment = Some(place.end),
            Token::CommentLine(_) | Token::CommentBlock(_) => {}
            _ if place.end <= range.start => before = Some((matches!(token, Token::Comma), place)),
            _ if place.start >= range.end => {
                after = Some((matches!(token, Token::Comma), place));
                break;
            }
            _ => {}
        }
    }
    let mut start = text[..range.start].trim_end().len();
    if ends_in_comment == Some(start)
        && !text[range.end..].trim_start_matches([' ', '\t', ',']).starts_with(['\r', '\n'])
    {
        // The text after the member must not become part of the comment before it.
        start = range.start;
    }
    let (head, between, tail) = match (before, after) {
        (_, Some((true, comma))) => {
            (text[..start].to_owned(), &text[range.end..comma.start], &text[comma.end..])
        }
        (Some((true, comma)), _) => {
            (format!("{}{}", &text[..comma.start], &text[comma.end..start]), "", &text[range.end..])
        }
        _ => (text[..start].to_owned(), "", &text[range.end..]),
    };
    let between = if between.trim().is_empty() { "" } else { between };
    let is_empty =
        head.ends_with(['{', '[']) && between.is_empty() && tail.trim_start().starts_with(['}', ']']);
    let tail = if is_empty { tail.trim_start() } else { tail };
    Ok(format!("{head}{between}{tail}"))
}
