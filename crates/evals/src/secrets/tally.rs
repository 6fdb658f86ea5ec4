//! Counts what redaction left of the secrets and took of the look-alikes, for each class and bullet.

use std::collections::BTreeSet;

use super::template::Sample;
use crate::stats::print_table;

/// How long a piece of a secret is that must not be left.
const WINDOW: usize = 6;

/// What is left of a secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Left {
    /// No piece of it.
    Nothing,
    /// Some pieces.
    Some,
    /// All of it.
    All,
}

impl Left {
    /// Returns what of the secret of `sample` is left in `redacted`.
    pub fn of(sample: &Sample, redacted: &str) -> Left {
        let parts = &sample.secret.parts;
        let (left, all) = if sample.secret.words {
            words_left(parts, &sample.blank, redacted)
        } else {
            let windows: Vec<String> = parts.iter().flat_map(|part| windows(part)).collect();
            // What the rest of the text has too says nothing.
            let own = windows.iter().filter(|window| !sample.blank.contains(window.as_str()));
            let left = own.clone().filter(|window| redacted.contains(window.as_str())).count();
            (left, own.count())
        };
        match left {
            0 => Left::Nothing,
            _ if left == all => Left::All,
            _ => Left::Some,
        }
    }
}

/// Returns the pieces of `part` that must not be left.
fn windows(part: &str) -> Vec<String> {
    let signs: Vec<char> = part.chars().collect();
    signs.windows(WINDOW.min(signs.len().max(1))).map(|window| window.iter().collect()).collect()
}

/// Returns how many of the words of a phrase are in `redacted` beyond those of the text around it, and how many it has.
fn words_left(words: &[String], blank: &str, redacted: &str) -> (usize, usize) {
    let count = |text: &str| {
        let lower = text.to_lowercase();
        let is_of_phrase = |word: &&str| words.iter().any(|of_phrase| of_phrase.eq_ignore_ascii_case(word));
        lower.split(|sign: char| !sign.is_alphanumeric()).filter(is_of_phrase).count()
    };
    (count(redacted).saturating_sub(count(blank)).min(words.len()), words.len())
}

/// What was counted for one bullet.
#[derive(Debug)]
pub struct Bullet {
    /// The class, such as `prose`.
    pub class: &'static str,
    /// The bullet.
    pub name: &'static str,
    /// How many secrets there were, how many are gone, and how many are left in part.
    pub secrets: (usize, usize, usize),
    /// How many look-alikes there were, and how many are unchanged.
    pub look_alikes: (usize, usize),
    /// How many templates there are.
    pub templates: usize,
    /// The templates with a secret that is not gone.
    pub failing: BTreeSet<String>,
}

impl Bullet {
    /// Returns a bullet of which nothing was counted.
    pub fn new(class: &'static str, name: &'static str) -> Bullet {
        let (secrets, look_alikes, failing) = ((0, 0, 0), (0, 0), BTreeSet::new());
        Bullet { class, name, secrets, look_alikes, templates: 0, failing }
    }

    /// Counts a secret of the template `template`.
    pub fn count(&mut self, template: &str, left: Left) {
        self.secrets.0 += 1;
        self.secrets.1 += usize::from(left == Left::Nothing);
        self.secrets.2 += usize::from(left == Left::Some);
        if left != Left::Nothing {
            self.failing.insert(template.to_owned());
        }
    }
}

/// Prints the bullets as a table, and which templates of each fail.
pub fn print(bullets: &[Bullet]) {
    let heads = ["class, bullet", "templates", "secrets", "gone %", "in part %", "look-alikes", "intact %"];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for bullet in bullets {
        let ((all, gone, partly), (harmless, intact)) = (bullet.secrets, bullet.look_alikes);
        rows.push(vec![
            format!("{}, {}", bullet.class, bullet.name),
            bullet.templates.to_string(),
            all.to_string(),
            format!("{:.1}", percent(gone, all)),
            format!("{:.1}", percent(partly, all)),
            harmless.to_string(),
            format!("{:.1}", percent(intact, harmless)),
        ]);
    }
    print_table(&rows);
    for bullet in bullets.iter().filter(|bullet| !bullet.failing.is_empty()) {
        let failing: Vec<&str> = bullet.failing.iter().map(String::as_str).collect();
        println!("\n{}, {} fails: {}", bullet.class, bullet.name, failing.join("; "));
    }
    println!();
}

/// Returns `part` as a percentage of `whole`.
pub fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::values::Secret;

    fn sample(before: &str, secret: &str, words: bool) -> Sample {
        let parts =
            if words { secret.split(' ').map(str::to_owned).collect() } else { vec![secret.to_owned()] };
        let secret = Secret { text: secret.to_owned(), parts, words, variable: None };
        Sample { text: [before, &secret.text].concat(), blank: before.to_owned(), secret }
    }

    #[test]
    fn six_characters_in_a_row_are_a_piece() {
        let sample = sample("pw: ", "Summer2024!", false);
        assert_eq!(Left::of(&sample, "pw: Summer2024!"), Left::All);
        assert_eq!(Left::of(&sample, "pw: [REDACTED]r2024!"), Left::Some);
        assert_eq!(Left::of(&sample, "pw: [REDACTED]2024!"), Left::Nothing);
    }

    #[test]
    fn words_of_a_phrase_count_beyond_those_around_it() {
        let sample = sample("about the zoo: ", "zoo about wrong", true);
        assert_eq!(Left::of(&sample, "about the zoo: [REDACTED]"), Left::Nothing);
        assert_eq!(Left::of(&sample, "about the zoo: [REDACTED] 3. wrong"), Left::Some);
        assert_eq!(Left::of(&sample, &sample.text.to_uppercase()), Left::All);
    }
}
