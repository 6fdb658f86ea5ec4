//! Distinguishes lines of code, logs and shell sessions from prose.

use std::collections::HashSet;

/// The minimum number of lines of a run that counts as pasted. Arbitrary.
const RUN: usize = 3;

/// A repeated line with at least this many bytes counts as output, because no person writes such a line twice.
/// Arbitrary.
const LONG: usize = 40;

/// Returns, for each line, whether it looks like code or a program's output.
///
/// After the prompt of a shell, the lines up to the next blank line are the command's output. A line of no recognised
/// form is output if it lies beside a run of output and is indented or isn't a sentence. Several lines such as
/// `key: value` are configuration. Long lines that occur more than once are output, too.
pub(super) fn marks(lines: &[&str]) -> Vec<bool> {
    let mut is_output = false;
    let mark = |line: &&str| {
        is_output = (is_output && !line.trim().is_empty()) || is_prompt(line.trim());
        is_output || is_code(line)
    };
    let mut marks: Vec<bool> = lines.iter().map(mark).collect();
    let mut start = 0;
    for end in 0..=lines.len() {
        if end < lines.len() && is_setting(lines[end].trim()) {
            continue;
        }
        if end - start >= RUN {
            marks[start..end].fill(true);
        }
        start = end + 1;
    }
    let mut seen = HashSet::new();
    let again: HashSet<&str> = lines
        .iter()
        .map(|line| line.trim())
        .filter(|line| line.len() >= LONG && !seen.insert(*line))
        .collect();
    for (line, mark) in lines.iter().zip(&mut marks) {
        *mark |= again.contains(line.trim());
    }
    for place in 0..lines.len() {
        let before = marks[..place].iter().rev().take(RUN).take_while(|mark| **mark).count();
        let after = marks[place + 1..].iter().take(RUN).take_while(|mark| **mark).count();
        let beside = before + after;
        let is_indented = lines[place].starts_with("  ") && !lines[place].trim().starts_with(['-', '*', '•']);
        if beside >= RUN && (is_indented || !is_sentence(lines[place].trim())) {
            marks[place] = true;
        }
    }
    marks
}

/// Returns whether a line ends as a sentence does.
fn is_sentence(line: &str) -> bool {
    line.ends_with(['.', '!', '?', ':', '。', '！', '？']) && line.contains(' ')
}

/// Returns whether a line is a setting such as `fetch-depth: 1`.
fn is_setting(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.\"'".contains(&byte))
            && value.split_whitespace().count() <= 2
    })
}

/// Returns whether the line begins with the prompt of a shell or of an interpreter.
pub(super) fn is_prompt(line: &str) -> bool {
    let prompts = ["❯ ", "$ ", "➜ ", "% ", "λ ", ">>> ", "PS C:\\", "C:\\>"];
    let at_host = || {
        let word = line.split_whitespace().next().unwrap_or_default();
        let end = line.split_once(['$', '#', '%']);
        word.contains('@')
            && word.contains(':')
            && end.is_some_and(|(before, after)| before.len() < 60 && after.starts_with(' '))
    };
    // `[02/20/26 17:41 dev ~/src/x] make`
    let in_brackets = || {
        let head = line.strip_prefix('[').and_then(|line| line.split_once("] ")).map(|(head, _)| head);
        head.is_some_and(|head| {
            head.len() < 80
                && head.split_whitespace().count() > 1
                && head.split_whitespace().any(|word| word.starts_with(['~', '/']))
        })
    };
    prompts.iter().any(|prompt| line.starts_with(prompt)) || at_host() || in_brackets()
}

/// Returns whether a line looks like code, a row of a table, or a program's output.
pub(super) fn is_code(line: &str) -> bool {
    let body = without_mentions(line.trim());
    let all = body.chars().count();
    if all <= 3 || body.chars().any(is_spaceless) {
        return false;
    }
    let letters = body.chars().filter(|c| c.is_alphabetic() || c.is_whitespace()).count();
    let marks = body.ends_with([';', '{', '}', '|', '>']) && !body.ends_with("->") && !body.ends_with("=>");
    letters * 2 < all
        || marks
        || (line.starts_with("    ") && body.contains(['(', '=', '{']))
        || is_trace(body)
        || is_labelled(body)
        || (!is_sentence(body) && (is_located(body) || has_code_words(body)))
        || is_log(body)
        || is_result(body)
        || is_statement(body)
}

/// Returns a line without the files with which it begins, as a person names them to an agent: `@src/a.ts:12-20 split this`.
fn without_mentions(mut body: &str) -> &str {
    let is_lines = |lines: &str| lines.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    while let Some((first, rest)) = body.split_once(' ') {
        let (path, lines) = first.split_once(':').unwrap_or((first, ""));
        let is_file =
            path.starts_with('@') && path.contains(['/', '.']) && !path.contains(['(', '=', '"', '\'']);
        let rest = rest.trim_start();
        if !is_file || !is_lines(lines) || !rest.contains(' ') {
            break;
        }
        body = rest;
    }
    body
}

/// Returns whether a line is a result of a test run, such as `✓ parses a date [2.10ms]` or `Tasks:    3 total`, or an
/// assignment of a shell.
fn is_result(body: &str) -> bool {
    let is_timed = body.ends_with(']')
        && body.rsplit_once('[').is_some_and(|(_, time)| {
            time.strip_suffix("ms]")
                .or_else(|| time.strip_suffix("s]"))
                .is_some_and(|time| time.parse::<f64>().is_ok())
        });
    let is_assigned = body.split_once("=$(").is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    let is_aligned = body.split_once(':').is_some_and(|(label, value)| {
        label.bytes().all(|byte| byte.is_ascii_alphabetic()) && value.starts_with("   ")
    });
    body.starts_with(['✓', '✗', '✔', '✘'])
        || is_aligned
        || body.starts_with("PASS ")
        || body.starts_with("FAIL ")
        || is_timed
        || is_assigned
}

/// Returns whether a line is part of a stack trace or of a compiler's message.
fn is_trace(body: &str) -> bool {
    let at = body.strip_prefix("at ").is_some_and(|rest| {
        rest.contains('(') && rest.ends_with(')') && rest.bytes().any(|byte| byte.is_ascii_digit())
    });
    let numbered = body.split_once('|').is_some_and(|(number, _)| {
        let number = number.trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let error = body.split_once(": ").is_some_and(|(name, _)| {
        (name.ends_with("Error") || name.ends_with("Exception")) && !name.contains(' ')
    });
    at || numbered
        || error
        || body.starts_with("File \"")
        || body.starts_with("--> ")
        || body.starts_with("error[")
        || body.starts_with("Traceback (most recent call last)")
}

/// Returns whether a line begins with the name of a task, such as `docs:lint:`, with a line and a column, such as
/// `88:6`, or with a file, a line and a column.
fn is_labelled(body: &str) -> bool {
    let first = body.split_whitespace().next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = first.split(':').collect();
    match parts.as_slice() {
        [task, script, ""] => {
            let is_name = |part: &&str| {
                part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '@')
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@/_.-".contains(&byte))
            };
            is_name(task) && is_name(script)
        }
        [line, column] => is_number(line) && is_number(column) && body.contains("  "),
        [file, line, column] | [file, line, column, ""] => {
            file.contains('.') && is_number(line) && is_number(column)
        }
        _ => false,
    }
}

/// Returns whether a line begins with a place in a file such as `src/a.go:97:4:`, with a path, or with a label in
/// brackets.
fn is_located(body: &str) -> bool {
    let first = body.split_whitespace().next().unwrap_or_default();
    let place = first.trim_end_matches(':').rsplit(':').next().unwrap_or_default();
    let is_place = first.contains(':')
        && first.contains('.')
        && !place.is_empty()
        && place.bytes().all(|b| b.is_ascii_digit());
    let is_path = first.starts_with('/') && first.matches('/').count() > 1 && body.contains(' ');
    let is_label = first.starts_with('[')
        && first.ends_with(']')
        && first.len() > 2
        && first[1..].starts_with(char::is_alphanumeric);
    is_place || is_path || is_label
}

/// Returns whether most words of a line are code, such as `fmt.Fprintf(...)` or `--clean`.
fn has_code_words(body: &str) -> bool {
    let words: Vec<&str> = body.split_whitespace().collect();
    let is_code = |word: &&&str| {
        word.contains("::")
            || word.contains("=\"")
            || word.contains("()")
            || word.contains("->")
            || word.contains("${")
            || word.starts_with("--")
            || (word.contains('(') && word.contains('.') && !word.starts_with('('))
            || word.matches('/').count() > 2
    };
    let is_call = words.len() <= 2 && body.ends_with(')') && body.contains('(') && body.contains('.');
    is_call || words.len() > 2 && words.iter().filter(is_code).count() * 5 >= words.len() * 2
}

/// Returns whether a line begins with a time or a level, as those of logs do.
fn is_log(body: &str) -> bool {
    let levels = ["INFO", "WARN", "ERROR", "DEBUG", "TRACE", "[INFO]", "[WARN]", "[ERROR]", "[DEBUG]"];
    let mut words = body.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    let is_numeric = |word: &str| word.bytes().all(|b| !b.is_ascii_alphabetic() || b"TZ".contains(&b));
    let is_dated = digits(first) >= 6 && is_numeric(first);
    let is_timed = digits(second) >= 4 && is_numeric(second) && second.contains(':');
    let is_time = is_dated && (first.contains(':') || is_timed);
    let is_clock = |word: &str| {
        word.len() == 8
            && word
                .bytes()
                .enumerate()
                .all(|(at, b)| if at % 3 == 2 { b == b':' } else { b.is_ascii_digit() })
    };
    let tools =
        ["npm error ", "npm ERR! ", "npm warn ", "npm WARN ", "error: ", "warning: ", "fatal: ", "make: ***"];
    // Docker writes `WARN[0000]`.
    let (level, _) = first.split_once('[').unwrap_or((first, ""));
    levels.contains(&first.trim_end_matches(':'))
        || levels.contains(&level)
        || body.starts_with("time=\"")
        || tools.iter().any(|start| body.starts_with(start))
        || is_time
        || (!is_sentence(body) && body.split_whitespace().any(is_clock))
}

/// Returns whether a line is a statement of a programming language.
fn is_statement(body: &str) -> bool {
    let starts = [
        "import ",
        "from ",
        "const ",
        "let ",
        "var ",
        "def ",
        "fn ",
        "pub ",
        "class ",
        "return ",
        "if (",
        "for (",
        "while (",
        "#include",
        "export ",
        "async ",
        "await ",
        "@",
        "//",
        "/*",
        "* ",
        "diff --git",
        "+++ ",
        "--- ",
        "@@ ",
    ];
    let has_mark = body.contains(['=', '{', '(', ';']) || body.ends_with(':');
    let code = ["//", "/*", "#include", "diff --git", "+++ ", "@@ ", "if (", "for (", "while ("];
    code.iter().any(|start| body.starts_with(start))
        || (starts.iter().any(|start| body.starts_with(start))
            && has_mark
            && !body.ends_with(['.', '!', '?']))
}

/// Returns whether the script of `character` has no spaces between words.
pub(super) fn is_spaceless(character: char) -> bool {
    matches!(character,
        '\u{e01}'..='\u{e4f}' | '\u{e81}'..='\u{edf}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}'
        | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}
