//! Reads the answer of `retrieve_context` as the passages that it shows.
//!
//! A passage begins with a line that begins with `#` and a number, or with `[`. Lines that name a session and a day, or
//! a day of commits, are no passages. A passage's place is the session that was named last.

/// A passage of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage<'t> {
    /// The session that the passage is from; `None` for commits and notes.
    pub session: Option<&'t str>,
    /// The number of the message in its session, for a message or for a fact that names one.
    pub ordinal: Option<usize>,
    /// The day of the session, if it is named.
    pub day: Option<&'t str>,
    /// The beginning of the commit's id.
    pub commit: Option<&'t str>,
    /// What replaced the passage: the id of a memory, or `#` and the number of a message in the same session.
    pub superseded_by: Option<&'t str>,
    /// The whole passage with its frame.
    pub text: &'t str,
    /// Where the passage begins in the answer.
    pub start: usize,
}

/// What follows the word in the mark of a superseded passage.
const MARK: &str = "superseded by ";

/// The line above the user's standing instructions.
const WANTED: &str = "[what the user wants]";

/// Returns the passages of the answer `text`, in their order.
pub fn passages(text: &str) -> Vec<Passage<'_>> {
    let mut found: Vec<Passage<'_>> = Vec::new();
    let (mut session, mut day) = (None, None);
    let mut at = 0;
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let bare = line.trim_end();
        if bare.starts_with("[data ") || bare.starts_with("[/data ") {
            is_inside = bare.starts_with("[data ");
            (session, day) = (None, None);
            continue;
        }
        if !is_inside {
            continue;
        }
        if bare == WANTED {
            (session, day) = (None, None);
        } else if let Some(head) = heading(bare) {
            (session, day) = match head {
                ("", date) => (session, Some(date)),
                ("committed", _) => (None, None),
                (name, date) => (Some(name), Some(date)),
            };
        } else if is_start(bare) {
            found.push(passage(bare, session, day, &text[start..at], start));
        } else if let Some(last) = found.last_mut() {
            last.text = &text[last.start..at];
        }
    }
    found.iter_mut().for_each(|passage| passage.text = passage.text.trim_end());
    found
}

/// Returns the name and the date of a line such as `[auth-refactor 2026-03-01]`. The name is empty in a line such as
/// `[2026-03-01]`, which continues the session before it.
fn heading(line: &str) -> Option<(&str, &str)> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, date) = inner.rsplit_once(' ').unwrap_or(("", inner));
    let shape: Vec<bool> = date.chars().map(|c| c.is_ascii_digit()).collect();
    let is_date = shape.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    (is_date && !shape[4] && !shape[7]).then_some((name, date))
}

fn is_start(line: &str) -> bool {
    line.starts_with('[')
        || line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reads the frame at the beginning of a passage.
fn passage<'t>(
    line: &'t str,
    session: Option<&'t str>,
    day: Option<&'t str>,
    text: &'t str,
    start: usize,
) -> Passage<'t> {
    let end = if line.starts_with('#') { line.find(": ") } else { line.find(']') };
    let frame = &line[..end.unwrap_or(line.len())];
    let number = |text: &str| -> Option<usize> {
        text.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?.parse().ok()
    };
    let superseded_by =
        frame.split_once(MARK).map(|(_, rest)| rest.split([' ', ',', ')']).next().unwrap_or(rest));
    let source = frame.split_once(MARK).map_or(frame, |(before, _)| before);
    let mut found = Passage { session, ordinal: None, day, commit: None, superseded_by, text, start };
    if let Some(rest) = source.strip_prefix('#') {
        found.ordinal = number(rest);
    } else if let Some(rest) = source.strip_prefix("[commit ") {
        found.commit = rest.split([',', ' ']).next();
        found.session = None;
    } else if let Some((before, rest)) = source.rsplit_once('#') {
        found.ordinal = number(rest);
        // A valid statement names its session: `[now 2026-03-01 Ada in auth#7] …`.
        if let Some((_, named)) = before.split_once(" in ") {
            found.session = Some(named);
        }
    }
    found
}

/// Returns where `part` ends in `text`, if `text` contains it. White space counts as nothing, because an answer may wrap
/// or indent the lines of what it quotes.
pub fn end_of(text: &str, part: &str) -> Option<usize> {
    let solid: Vec<(usize, char)> = text.char_indices().filter(|(_, c)| !c.is_whitespace()).collect();
    let wanted: Vec<char> = part.chars().filter(|c| !c.is_whitespace()).collect();
    if wanted.is_empty() {
        return None;
    }
    let first = solid.windows(wanted.len()).position(|window| window.iter().map(|(_, c)| c).eq(&wanted))?;
    let (at, last) = solid[first + wanted.len() - 1];
    Some(at + last.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "The text is quoted.\n[data ab12]\n[now 2026-03-09 Ada in auth#7] Use TLS.\n\
        [what the user wants]\n[committed 2026-03-01]\n[commit fb804efe7b] Add TLS\n\nIt was\nasked for.\n[auth 2026-03-02]\n\
        #3 Ada (superseded by #7 on 2026-03-09): No TLS.\n [quoted]\n #4 forged\n\
        [fact #5, superseded by m2 on 2026-03-09] Port 80.\n[2026-03-03]\n#12-14 in short: So.\n[/data ab12]\n\
        90 of 4000 tokens.\n[x 2026-01-01]\n";

    #[test]
    fn a_context_is_read_as_passages() {
        let found = passages(TEXT);
        let short: Vec<_> =
            found.iter().map(|each| (each.session, each.ordinal, each.commit, each.superseded_by)).collect();
        assert_eq!(
            short,
            [
                (Some("auth"), Some(7), None, None),
                (None, None, Some("fb804efe7b"), None),
                (Some("auth"), Some(3), None, Some("#7")),
                (Some("auth"), Some(5), None, Some("m2")),
                (Some("auth"), Some(12), None, None),
            ]
        );
        assert!(found[1].text.ends_with("asked for."), "{}", found[1].text);
        assert_eq!((found[2].day, found[4].day), (Some("2026-03-02"), Some("2026-03-03")));
        assert!(found.iter().all(|each| TEXT[each.start..].starts_with(each.text)));
    }

    #[test]
    fn the_shortest_prefix_ends_with_the_part() {
        let text = "One. It was\n  asked for. Two.";
        assert_eq!(end_of(text, "It was asked for."), text.find(" Two."));
        assert_eq!(end_of(text, "It was not asked for."), None);
        assert_eq!(end_of("é — ü", "— ü"), Some("é — ü".len()));
        assert_eq!(end_of(text, " "), None);
    }
}
