//! Templates of texts with one secret: how they are written, and how they become texts.
//!
//! A template starts with `== name | ground` and goes on until the next. `⟦kind|filter⟧` is where the secret stands;
//! `⟨user⟩`, `⟨host⟩`, … are drawn anew for each text. A line that starts with `~ ` is a harmless look-alike of the line
//! with the secret: in another text it stands in its place. `⏎` is a line break in it. `␛`, `␇`, `␍` and `␉` are the
//! characters that they picture. In the files of prose each line is a template; a look-alike follows after ` ⇒ `.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::harmless;
use super::values::{self, Secret, Vendor};
use crate::random::Random;

/// A template.
#[derive(Clone, Debug)]
pub struct Template {
    /// The class, such as `prose`.
    pub class: &'static str,
    /// The bullet within the class, such as `German`.
    pub bullet: &'static str,
    /// What tells it from the others of its bullet.
    pub name: String,
    /// The kind of harmless text around it.
    ground: String,
    /// The text, with one slot for the secret.
    body: String,
    /// Lines that may stand in the place of the line with the secret and are harmless.
    look_alikes: Vec<String>,
    /// The vendor whose token it is, if the template is for one.
    vendor: Option<Vendor>,
}

/// A text with a secret.
#[derive(Debug)]
pub struct Sample {
    /// The text.
    pub text: String,
    /// The same text without the secret.
    pub blank: String,
    /// The secret, as it is written in the text.
    pub secret: Secret,
}

/// The forms of a name, such as `DB_PASSWORD` and `dbPassword`.
struct Name(Vec<String>);

impl Template {
    /// Returns the templates of a file of blocks.
    pub fn of_blocks(class: &'static str, bullet: &'static str, text: &str) -> Result<Vec<Template>> {
        let mut templates: Vec<Template> = Vec::new();
        for line in text.lines().skip_while(|line| !line.starts_with("== ")) {
            if let Some(head) = line.strip_prefix("== ") {
                let (name, ground) =
                    head.split_once(" | ").with_context(|| format!("no ground in `{line}`"))?;
                templates.push(Template::empty(class, bullet, name, ground));
                continue;
            }
            let template = templates.last_mut().context("a file of templates starts with `== `")?;
            match line.strip_prefix("~ ") {
                Some(look_alike) => template.look_alikes.push(look_alike.replace('⏎', "\n")),
                None => template.body = [&template.body, line, "\n"].concat(),
            }
        }
        templates.iter().try_for_each(Template::check)?;
        Ok(templates)
    }

    /// Returns the templates of a file of prose, of which each line is one.
    pub fn of_lines(bullet: &'static str, text: &str) -> Result<Vec<Template>> {
        let mut templates = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let (body, look_alike) = line.split_once(" ⇒ ").unwrap_or((line, ""));
            let mut template = Template::empty("prose", bullet, &format!("line {}", number + 1), bullet);
            template.body = format!("{body}\n");
            template.look_alikes.extend(Some(look_alike).filter(|text| !text.is_empty()).map(str::to_owned));
            template.check()?;
            templates.push(template);
        }
        Ok(templates)
    }

    /// Returns one template for each vendor, in turn with the `frames`, whose secret is the vendor's token.
    pub fn of_vendors(frames: &[Template]) -> Vec<Template> {
        let vendors = Vendor::all().into_iter().zip(frames.iter().cycle());
        let template = |(vendor, frame): (Vendor, &Template)| Template {
            bullet: "tokens",
            name: format!("{}, {}", vendor.service, frame.name),
            vendor: Some(vendor),
            ..frame.clone()
        };
        vendors.map(template).collect()
    }

    fn empty(class: &'static str, bullet: &'static str, name: &str, ground: &str) -> Template {
        let (name, ground) = (name.to_owned(), ground.to_owned());
        Template { class, bullet, name, ground, body: String::new(), look_alikes: Vec::new(), vendor: None }
    }

    /// Fails unless the template has one slot, of a kind and with filters that there are.
    fn check(&self) -> Result<()> {
        let what = || format!("{}, {}, {}", self.class, self.bullet, self.name);
        if self.body.matches('⟦').count() != 1 || self.look_alikes.iter().any(|line| line.contains('⟦')) {
            bail!("{}: there must be one slot, in the text", what());
        }
        let (_, slot, _) = self.parts().with_context(what)?;
        let mut codes = slot.split('|');
        let kind = codes.next().unwrap_or_default();
        let drawn = values::draw(kind, &mut Random::new(1))
            .with_context(|| format!("{}: no kind `{kind}`", what()))?;
        codes.try_fold(drawn, |secret, filter| filtered(&secret, filter)).with_context(what)?;
        Ok(())
    }

    /// Returns what is before the slot, in it, and after it.
    fn parts(&self) -> Result<(&str, &str, &str)> {
        let (before, rest) = self.body.split_once('⟦').context("no slot")?;
        let (slot, after) = rest.split_once('⟧').context("a slot without an end")?;
        Ok((before, slot, after))
    }

    /// Returns a text with a secret.
    pub fn sample(&self, random: &mut Random) -> Result<Sample> {
        let (before, slot, after) = self.parts()?;
        let mut codes = slot.split('|');
        let kind = codes.next().unwrap_or_default();
        let drawn = match self.vendor {
            Some(vendor) => vendor.draw(random),
            None => values::draw(kind, random).with_context(|| format!("no kind `{kind}`"))?,
        };
        let name = Name::draw(kind, drawn.variable, random);
        let secret = codes.try_fold(drawn, |secret, filter| filtered(&secret, filter))?;
        let (head, tail) = harmless::around(&self.ground, random)?;
        let before = filled(&[&head, before].concat(), &name, random);
        let after = filled(&[after, &tail].concat(), &name, random);
        let text = [&before, secret.text.as_str(), &after].concat();
        Ok(Sample { text, blank: [before, after].concat(), secret })
    }

    /// Returns the harmless look-alikes: one with a placeholder, and one for each look-alike of the template.
    pub fn look_alikes(&self, random: &mut Random) -> Result<Vec<String>> {
        let (before, slot, after) = self.parts()?;
        let mut codes = slot.split('|');
        let kind = codes.next().unwrap_or_default();
        let placeholder = match self.vendor {
            Some(vendor) => harmless::vendor_placeholder(&vendor, random),
            None => harmless::placeholder(kind, random),
        };
        // Nobody encodes or numbers a placeholder.
        let mut written = Secret { text: placeholder, parts: Vec::new(), words: false, variable: None };
        for filter in codes.filter(|filter| ESCAPES.contains(filter)) {
            written = filtered(&written, filter)?;
        }
        let mut bodies = vec![[before, &written.text, after].concat()];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').unwrap_or(after.len());
        bodies.extend(self.look_alikes.iter().map(|line| [&before[..start], line, &after[end..]].concat()));
        let variable = self.vendor.map(|vendor| vendor.variable);
        let render = |body: String| {
            let name = Name::draw(kind, variable, random);
            let (head, tail) = harmless::around(&self.ground, random)?;
            Ok(filled(&[head, body, tail].concat(), &name, random))
        };
        bodies.into_iter().map(render).collect()
    }
}

/// The filters that apply to placeholders too. In URLs people write placeholders as they are.
const ESCAPES: &[&str] = &["json", "json2", "sq", "dq", "xml", "sql", "csv"];

/// Returns `secret` as it is written in a place: escaped, encoded, or laid out over lines.
fn filtered(secret: &Secret, filter: &str) -> Result<Secret> {
    let each = |change: &dyn Fn(&str) -> String| Secret {
        text: change(&secret.text),
        parts: secret.parts.iter().map(|part| change(part)).collect(),
        ..secret.clone()
    };
    let encoded = |before: &str, text: &str| {
        let text = STANDARD.encode([before, text].concat());
        // What encodes the name of the user is no secret.
        let parts = vec![text[before.len().div_ceil(3) * 4..].to_owned()];
        Secret { text, parts, words: false, variable: secret.variable }
    };
    let laid_out = |text: String| Secret { text, ..secret.clone() };
    let words = || secret.text.split(' ');
    let listed = |write: &dyn Fn(usize, &str) -> String, joint: &str| {
        let items: Vec<String> = words().enumerate().map(|(at, word)| write(at + 1, word)).collect();
        laid_out(items.join(joint))
    };
    Ok(match filter {
        "json" => each(&json_escaped),
        "json2" => each(&|text| json_escaped(&json_escaped(text))),
        "sq" => each(&|text| text.replace('\'', "'\\''")),
        "dq" => each(&|text| escaped(text, "\"\\$`", "\\")),
        "xml" => each(&|text| {
            text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        }),
        "sql" => each(&|text| text.replace('\'', "''")),
        "csv" => each(&|text| text.replace('"', "\"\"")),
        "url" => each(&url_encoded),
        "upper" => each(&|text| text.to_uppercase()),
        "b64" => encoded("", &secret.text),
        "basic" => encoded("deploy:", &secret.text),
        "sasl" => encoded("\0deploy\0", &secret.text),
        "split" => {
            let middle = secret.text.chars().count() / 2;
            let at = secret.text.char_indices().nth(middle).map_or(0, |(at, _)| at);
            let (first, second) = secret.text.split_at(at);
            let parts = vec![first.to_owned(), second.to_owned()];
            Secret { text: format!("{first}\x1b[m\x1b[K\x1b[01;31m{second}"), parts, ..secret.clone() }
        }
        "indent2" => laid_out(secret.text.replace('\n', "\n  ")),
        "indent4" => laid_out(secret.text.replace('\n', "\n    ")),
        "indent6" => laid_out(secret.text.replace('\n', "\n      ")),
        "log" => laid_out(secret.text.replace('\n', "\n2026-03-02T08:14:07.311Z INFO  deploy: ")),
        "numbered" => listed(&|at, word| format!("{at}. {word}"), "\n"),
        "inline" => listed(&|at, word| format!("{at}. {word}"), " "),
        "bullets" => listed(&|_, word| format!("- {word}"), "\n"),
        "commas" => listed(&|_, word| word.to_owned(), ", "),
        "strings" => listed(&|_, word| format!("\"{word}\""), ", "),
        "rows" => listed(&|at, word| format!("| {at} | {word} |"), "\n"),
        "columns" => {
            listed(&|at, word| format!("{at:>2}. {word:<12}{}", if at % 4 == 0 { "\n" } else { "" }), "")
        }
        "halves" => listed(&|at, word| format!("{word}{}", if at % 6 == 0 { "\n" } else { " " }), ""),
        "logged" => {
            listed(&|at, word| format!("{word}{}", if at % 4 == 0 { "\n[wallet] INFO  " } else { " " }), "")
        }
        "one a line" => listed(&|_, word| word.to_owned(), "\n"),
        "dashes" => listed(&|_, word| word.to_owned(), "-"),
        "title" => listed(&|_, word| [&word[..1].to_uppercase(), &word[1..]].concat(), " "),
        _ => bail!("no filter `{filter}`"),
    })
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn escaped(text: &str, signs: &str, with: &str) -> String {
    text.chars()
        .map(|sign| if signs.contains(sign) { format!("{with}{sign}") } else { sign.to_string() })
        .collect()
}

fn url_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Returns `text` with its placeholders and pictured characters replaced.
fn filled(text: &str, name: &Name, random: &mut Random) -> String {
    let mut filled = String::new();
    for piece in text.split('⟨') {
        match piece.split_once('⟩') {
            Some((code, rest)) => {
                filled += &name.form(code).unwrap_or_else(|| harmless::word(code, random));
                filled += rest;
            }
            None => filled += piece,
        }
    }
    filled.replace('␛', "\x1b").replace('␇', "\x07").replace('␍', "\r").replace('␉', "\t")
}

impl Name {
    /// Returns `variable` or a name that secrets of the kind `kind` have.
    fn draw(kind: &str, variable: Option<&str>, random: &mut Random) -> Name {
        let drawn = variable.unwrap_or_else(|| harmless::variable(kind, random));
        Name(drawn.split('_').map(str::to_lowercase).collect())
    }

    /// Returns the form that `code` stands for, or `None` if it stands for something else.
    fn form(&self, code: &str) -> Option<String> {
        let capital = |word: &String| {
            let mut signs = word.chars();
            signs
                .next()
                .map(|first| first.to_uppercase().chain(signs).collect::<String>())
                .unwrap_or_default()
        };
        let pascal = || self.0.iter().map(capital).collect::<String>();
        Some(match code {
            "NAME" => self.0.join("_").to_uppercase(),
            "name" => self.0.join("_"),
            "kebab" => self.0.join("-"),
            "dotted" => self.0.join("."),
            "words" => self.0.join(" "),
            "Pascal" => pascal(),
            "camel" => pascal()
                .chars()
                .take(1)
                .flat_map(char::to_lowercase)
                .chain(pascal().chars().skip(1))
                .collect(),
            "Header" => self.0.iter().map(capital).collect::<Vec<_>>().join("-"),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_alike_stands_in_the_place_of_the_line_with_the_secret() {
        let text = "== a | none\nfirst\npw=⟦plain⟧ x\nlast\n~ pw=$PW\n";
        let [template] = &Template::of_blocks("files", "env", text).unwrap()[..] else {
            panic!("one template")
        };
        let look_alikes = template.look_alikes(&mut Random::new(1)).unwrap();
        assert_eq!(look_alikes.len(), 2);
        assert_eq!(look_alikes[1], "first\npw=$PW\nlast\n");
        assert!(template.sample(&mut Random::new(1)).unwrap().text.starts_with("first\npw="));
    }

    #[test]
    fn filters_write_the_random_parts_as_they_stand_in_the_text() {
        let secret =
            Secret { text: "a\"b&c'd".into(), parts: vec!["a\"b&c'd".into()], words: false, variable: None };
        for (filter, written) in [
            ("json", "a\\\"b&c'd"),
            ("xml", "a&quot;b&amp;c'd"),
            ("url", "a%22b%26c%27d"),
            ("sql", "a\"b&c''d"),
            ("b64", "YSJiJmMnZA=="),
        ] {
            let written_secret = filtered(&secret, filter).unwrap();
            assert_eq!((written_secret.text.as_str(), written_secret.parts[0].as_str()), (written, written));
        }
        assert!(filtered(&secret, "unheard of").is_err());
    }
}
