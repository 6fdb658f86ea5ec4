//! Finds the error in a program's output.

/// The maximum number of bytes of an error that are returned. Arbitrary: a line of a summary.
const LONGEST: usize = 160;

/// Returns the first error that a program's output names, without the time or the place before it, such as `TypeError:
/// x is undefined`. A long error is cut at a space, with an ellipsis. Returns `None` if no line names an error.
pub fn first_error(output: &str) -> Option<String> {
    output.lines().find_map(|line| {
        let mut at = 0;
        for word in line.split_inclusive(' ') {
            let rest = &line[at + word.len()..];
            if is_name(word.trim_end(), rest) {
                return Some(shortened(line[at..].trim_end(), LONGEST));
            }
            at += word.len();
        }
        None
    })
}

/// Returns whether `word` is the name of an error and `rest` its message.
fn is_name(word: &str, rest: &str) -> bool {
    let Some(name) = word.strip_suffix(':') else { return false };
    // As in `error[E0382]:`.
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let name = name.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_error = ["Error", "Exception"].iter().any(|end| name.ends_with(end))
        || ["error", "fatal"].iter().any(|each| name.eq_ignore_ascii_case(each));
    is_error && rest.contains(char::is_alphanumeric)
}

/// Returns a text of at most `longest` bytes. A longer text is cut at a space, with an ellipsis after it.
pub fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let cut = &text[..text.floor_char_boundary(longest)];
    format!("{}…", cut.rsplit_once(' ').map_or(cut, |(head, _)| head).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_found_without_what_stands_before_it() {
        for (output, error) in [
            (
                "[20:31:05.123] Cloning\n[20:31:09.1] Error: Command \"npm run build\" exited with 1",
                Some("Error: Command \"npm run build\" exited with 1"),
            ),
            (
                "> tsc\nsrc/a.ts(4,7): error TS2339: no property\nTypeError: x is undefined",
                Some("TypeError: x is undefined"),
            ),
            ("error[E0382]: borrow of moved value", Some("error[E0382]: borrow of moved value")),
            ("fatal: not a git repository", Some("fatal: not a git repository")),
            ("Errors: none\nThe error: \nall fine", None),
            ("", None),
        ] {
            assert_eq!(first_error(output).as_deref(), error, "{output}");
        }
        let long = first_error(&format!("Error: {}", "word ".repeat(90))).unwrap();
        assert!(long.len() <= LONGEST + 3 && long.ends_with("word…"), "{long}");
    }
}
