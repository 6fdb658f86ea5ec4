//! Finds names, paths and identifiers in a text.

/// The maximum number of bytes of a text that are read. Arbitrary: longer texts are mostly pasted files.
const MOST_READ: usize = 16 * 1024;

/// Returns the entities of `text`: code in backquotes, paths, identifiers, and capitalised words that are not the first
/// word of a sentence. Each entity is returned once, in order.
pub fn entities(text: &str) -> Vec<String> {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if name.chars().count() > 1 && name.len() <= 80 && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    let mut begins_sentence = true;
    for (place, part) in text.split('`').enumerate() {
        let is_code = place % 2 == 1 && !part.contains('\n');
        if is_code {
            add(part.trim());
            begins_sentence = false;
            continue;
        }
        for (number, line) in part.split('\n').enumerate() {
            begins_sentence |= number > 0;
            for word in line.split_whitespace() {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
                let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
                if is_identifier(bare) || (!begins_sentence && is_name(bare)) {
                    add(bare);
                }
                begins_sentence = word.ends_with(['.', '!', '?', ':']);
            }
        }
    }
    found
}

/// Returns whether a word is spelled like an identifier: `snake_case`, `camelCase`, `src/main.rs`, `main.rs`, `v1.2`.
fn is_identifier(word: &str) -> bool {
    let mut letters = word.chars();
    let has_inner_capital =
        word.chars().next().is_some_and(char::is_lowercase) && word.contains(|c: char| c.is_uppercase());
    let has_digit_and_letter =
        word.contains(|c: char| c.is_ascii_digit()) && letters.any(|c| c.is_ascii_alphabetic());
    // `fly.io` is a name, `e.g` is not.
    let has_ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.len() >= 2
            && (2..=5).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_lowercase())
    });
    (word.is_ascii()
        && (has_ending
            || word.contains('_')
            || word.contains('/')
            || word.contains("::")
            || has_inner_capital))
        || (word.is_ascii() && has_digit_and_letter)
}

fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 1
        && !matches!(word, "I'm" | "I'll" | "I've" | "I'd" | "OK")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_names_code_and_identifiers() {
        let text = "Then Ines opened `Cargo.toml`. She read src/main.rs, HttpClient and parse_header's v1.2 with Ada's help.";
        assert_eq!(
            entities(text),
            ["Ines", "Cargo.toml", "src/main.rs", "HttpClient", "parse_header", "v1.2", "Ada"]
        );
        assert_eq!(entities("run main.py on fly.io, e.g. today, i.e. now"), ["main.py", "fly.io"]);
        assert!(entities("It rains. Nothing else happens. OK").is_empty());
    }

    #[test]
    fn megabytes_are_read_at_once() {
        assert!(entities(&"語".repeat(1 << 20)).is_empty());
    }
}
