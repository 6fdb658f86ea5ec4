//! Reads the header of an item: the code before its block, which contains the item's name.

use super::Language;

/// The maximum number of bytes of a header that are read. Arbitrary: the name is near the beginning.
const LONGEST: usize = 400;

/// The maximum number of characters of a name. Arbitrary.
const LONGEST_NAME: usize = 80;

/// An item with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The kind of the item and its name, such as `fn save`.
    pub(super) label: String,
    /// Whether the block contains items, as the block of a class does.
    pub(super) has_items: bool,
}

/// The words that may stand before the keyword of an item, such as `pub` before `fn`.
const MODIFIERS: &[&str] = &[
    "abstract",
    "async",
    "const",
    "constexpr",
    "declare",
    "default",
    "export",
    "extern",
    "final",
    "inline",
    "non-sealed",
    "private",
    "protected",
    "pub",
    "public",
    "sealed",
    "static",
    "strictfp",
    "synchronized",
    "typedef",
    "unsafe",
    "virtual",
];

/// The keywords of statements with a block. The block of such a statement is not an item.
const CONTROL: &[&str] = &[
    "await",
    "case",
    "catch",
    "do",
    "else",
    "finally",
    "for",
    "foreach",
    "if",
    "new",
    "return",
    "switch",
    "synchronized",
    "throw",
    "try",
    "using",
    "while",
    "with",
    "yield",
];

/// Returns the header of the item that begins with `code`. `code` is the text before a block, without the comments
/// before it. `is_member` is true if all blocks around it contain items.
pub(super) fn read(code: &str, language: Language, is_member: bool) -> Option<Header> {
    let code = &code[..code.floor_char_boundary(LONGEST)];
    let rest = without_modifiers(code.trim(), language);
    let (word, after) = word(rest);
    let has_parameters = rest.contains('(');
    let has_items = match (language, word) {
        (Language::Rust, "impl") => return Some(Header { label: implementation(after), has_items: true }),
        (Language::Rust, "mod" | "trait") => true,
        (Language::Rust, "fn" | "struct" | "enum" | "union") => false,
        (Language::Rust, "macro_rules") => {
            return named("macro_rules!", after.trim_start_matches('!'), false);
        }
        (Language::Go, "func") => return Some(Header { label: go_function(after), has_items: false }),
        (Language::Go, "type") => false,
        (Language::Java, "class" | "interface" | "enum" | "record" | "@interface") => true,
        (Language::JavaScript | Language::TypeScript, "class" | "namespace" | "module") => true,
        (Language::JavaScript | Language::TypeScript, "function" | "interface" | "enum" | "type") => false,
        (Language::Cpp, "namespace" | "class") => true,
        (Language::Cpp, "struct" | "union") if !has_parameters => true,
        (Language::Cpp, "enum") if !has_parameters => false,
        (Language::C, "struct" | "union" | "enum") if !has_parameters => false,
        (Language::C | Language::Cpp, "\"C\"") => {
            return Some(Header { label: "extern \"C\"".to_owned(), has_items: true });
        }
        _ => {
            let name = function(rest, language, is_member)?;
            return Some(Header { label: shortened(&format!("{name}()")), has_items: false });
        }
    };
    named(word, after, has_items)
}

/// Returns the name of the function that `code` begins, in a language that has no word for functions.
fn function(code: &str, language: Language, is_member: bool) -> Option<&str> {
    let (first, after) = word(code);
    if CONTROL.contains(&first) || matches!(language, Language::Rust | Language::Go) {
        return None;
    }
    if language.is_script() {
        let (name, after) = match first {
            "let" | "var" => word(after),
            _ => (first, after),
        };
        let (sign, value) = after.trim_start().split_at_checked(1)?;
        let is_function = code.ends_with("=>") || value.trim_start().starts_with("function");
        if matches!(sign, "=" | ":") && !value.starts_with(['=', '>']) && is_function {
            return Some(name).filter(|name| !name.is_empty());
        }
    }
    if !is_member {
        return None;
    }
    let open = code.find('(')?;
    let before = code[..open].trim_end();
    if before.contains('=') && !before.contains("operator") {
        return None;
    }
    let is_of_name = |c: char| is_of_word(c) || matches!(c, ':' | '~' | '#');
    let start = before.rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1);
    let start = before.ceil_char_boundary(start);
    let name = before[start..].trim_start_matches(':');
    (!name.is_empty() && !CONTROL.contains(&name)).then_some(name)
}

fn named(word: &str, after: &str, has_items: bool) -> Option<Header> {
    let is_of_name = |c: char| is_of_word(c) || matches!(c, ':' | '.');
    let after = after.trim_start();
    let name = &after[..after.find(|c| !is_of_name(c)).unwrap_or(after.len())];
    let label = format!("{word} {}", name.trim_end_matches(':'));
    Some(Header { label: shortened(label.trim_end()), has_items })
}

/// Returns the label of a Rust `impl` block. `after` is the code after the word `impl`.
fn implementation(after: &str) -> String {
    let after = after.trim_start();
    let after = if after.starts_with('<') { after_angles(after) } else { after };
    let end = after.find("where").filter(|end| after[..*end].ends_with(char::is_whitespace));
    shortened(&format!("impl {}", after[..end.unwrap_or(after.len())].trim()))
}

/// Returns the label of a function in Go: `func Save`, or `func (s *Store) Save`. `after` is the code after the word
/// `func`.
fn go_function(after: &str) -> String {
    let after = after.trim_start();
    let receiver = if after.starts_with('(') { after.find(')').map_or(0, |end| end + 1) } else { 0 };
    let name = &after[receiver..];
    let end = receiver + name.find(['(', '[']).unwrap_or(name.len());
    shortened(&format!("func {}", &after[..end]))
}

fn without_modifiers(code: &str, language: Language) -> &str {
    let mut rest = code;
    loop {
        rest = rest.trim_start();
        if language == Language::Cpp && rest.starts_with("template") {
            let after = after_angles(rest);
            if after.len() == rest.len() {
                return rest;
            }
            rest = after;
            continue;
        }
        if language == Language::Rust && rest.starts_with("#[") {
            rest = rest.find(']').map_or("", |end| &rest[end + 1..]);
            continue;
        }
        if rest.starts_with('@') && !rest.starts_with("@interface") {
            rest = rest.trim_start_matches(|c: char| is_of_word(c) || matches!(c, '@' | '.'));
            if rest.starts_with('(') {
                rest = rest.find(')').map_or("", |end| &rest[end + 1..]);
            }
            continue;
        }
        let (first, after) = word(rest);
        if !MODIFIERS.contains(&first) {
            return rest;
        }
        rest = match after.starts_with('(') {
            true => after.find(')').map_or("", |end| &after[end + 1..]),
            false => after,
        };
        // In Rust, a string may stand before `fn`, as in `extern "C" fn`. In C and C++, `extern "C"` begins a block of
        // its own.
        if language == Language::Rust && rest.trim_start().starts_with('"') {
            rest = rest.trim_start().trim_start_matches('"');
            rest = rest.find('"').map_or("", |end| &rest[end + 1..]);
        }
    }
}

/// Returns the first word of `code` and the rest.
fn word(code: &str) -> (&str, &str) {
    let code = code.trim_start();
    let end = code.find(|c| !(is_of_word(c) || matches!(c, '"' | '@'))).unwrap_or(code.len());
    code.split_at(end)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Returns the part of `code` after its first pair of angle brackets, or all of `code` if there is none.
fn after_angles(code: &str) -> &str {
    let (mut depth, mut before) = (0, ' ');
    for (at, c) in code.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' && depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return &code[at + 1..];
                }
            }
            _ => {}
        }
        before = c;
    }
    code
}

/// Returns `label` on one line, cut if it is too long.
pub(super) fn shortened(label: &str) -> String {
    let mut short = String::new();
    for word in label.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    match short.char_indices().nth(LONGEST_NAME) {
        None => short,
        Some((end, _)) => format!("{}…", &short[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_its_kind_and_name() {
        use Language::{C, Cpp, Go, Java, JavaScript, Rust, TypeScript};
        for (language, code, expected) in [
            (Rust, "pub async fn save<'a>(&'a self) -> Result<()>", "fn save"),
            (
                Rust,
                "impl<T: Fn(u8) -> u8> fmt::Display for Wrapper<T>\nwhere\n    T: X,",
                "impl fmt::Display for Wrapper<T>",
            ),
            (Rust, "macro_rules! vec_of", "macro_rules! vec_of"),
            (Rust, "pub unsafe extern \"C\" fn hook()", "fn hook"),
            (Rust, "let x = match y", ""),
            (Rust, "Some(x) =>", ""),
            (Go, "func (s *Store) Save(ctx context.Context) error", "func (s *Store) Save"),
            (Go, "func Map[T any](x []T)", "func Map"),
            (Go, "type Store struct", "type Store"),
            (Go, "if err := f(); err != nil", ""),
            (Java, "@Override @Named(\"x\") public static <T> List<T> of(T one) throws E", "of()"),
            (Java, "public final class Store<T> extends Base", "class Store"),
            (Java, "for (int i = 0; i < n; i++)", ""),
            (JavaScript, "export default async function load(url)", "function load"),
            (JavaScript, "export const load = async (url) =>", "load()"),
            (JavaScript, "const load = function (url)", "load()"),
            (JavaScript, "constructor(a)", "constructor()"),
            (TypeScript, "private async save(x: number): Promise<void>", "save()"),
            (TypeScript, "export interface Options", "interface Options"),
            (JavaScript, "} else if (a)", ""),
            (C, "static struct foo *bar(int a, char **b)", "bar()"),
            (C, "typedef struct node", "struct node"),
            (C, "int a[] =", ""),
            (Cpp, "template <typename T> class Stack : public Base<T>", "class Stack"),
            (Cpp, "Store::~Store() noexcept", "Store::~Store()"),
            (Cpp, "namespace a::b", "namespace a::b"),
            (Cpp, "extern \"C\"", "extern \"C\""),
            (Cpp, "switch (x)", ""),
        ] {
            let label = read(code, language, true).map(|header| header.label).unwrap_or_default();
            assert_eq!(label, expected, "{code}");
        }
        assert_eq!(read("describe(\"x\", () =>", JavaScript, false), None);
    }
}
