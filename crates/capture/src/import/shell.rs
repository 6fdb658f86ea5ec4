//! Splits a command line of a POSIX shell, as far as needed to find the files that the command line writes
//! (POSIX.1-2024, Shell Command Language, 2.2 quoting, 2.3 token recognition, 2.7 redirection). These functions are
//! pure.
//!
//! Nothing is expanded, so a word that contains a variable stays unchanged. The script in `bash -c` is split too.

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// The words, without their quotes. The first one is usually the name.
    pub(super) words: Vec<String>,
    /// The files to which the command's output is redirected.
    pub(super) writes: Vec<String>,
    /// The text of the command's here-document.
    pub(super) reads: Option<String>,
}

/// The maximum number of commands that are read. Arbitrary.
const MOST_COMMANDS: usize = 256;

/// Words that may precede the name of a command.
const BEFORE: [&str; 14] = [
    "sudo", "env", "time", "nice", "command", "exec", "nohup", "then", "do", "else", "if", "while", "!", "{",
];

impl Command {
    /// Returns the name of the command, without its folder, and the words after the name.
    pub(super) fn name(&self) -> (&str, &[String]) {
        let is_before = |word: &String| {
            let is_set = word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
            });
            is_set || BEFORE.contains(&word.as_str())
        };
        let start = self.words.iter().take_while(|word| is_before(word)).count();
        match &self.words[start..] {
            [] => ("", &[]),
            [name, rest @ ..] => (name.rsplit('/').next().unwrap_or(name), rest),
        }
    }
}

/// Returns the commands of one or more lines, in order.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let mut all = Vec::new();
    let mut texts = vec![(text.to_owned(), 0)];
    while let Some((text, depth)) = texts.pop() {
        for command in ShellReader::new(&text).read() {
            let (name, rest) = command.name();
            let is_shell = matches!(name, "sh" | "bash" | "zsh" | "dash");
            let handed = rest.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
            if let Some(script) = handed.filter(|_| is_shell && depth < 2).and_then(|at| rest.get(at + 1)) {
                texts.push((script.clone(), depth + 1));
            }
            all.push(command);
            if all.len() == MOST_COMMANDS {
                return all;
            }
        }
    }
    all
}

/// The meaning of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Word,
    /// The word is the file to which output is redirected.
    Output,
    /// The word is a file, text or descriptor that is ignored.
    Ignored,
    /// The word is the delimiter of a here-document. `is_indented` is true if leading tabs are removed from its lines.
    End {
        is_indented: bool,
    },
}

/// A here-document that was announced. Its text begins on the next line.
struct Awaited {
    command: usize,
    end: String,
    is_indented: bool,
}

struct ShellReader<'a> {
    rest: &'a str,
    done: Vec<Command>,
    command: Command,
    word: String,
    /// Whether a word has begun. The word may be empty, because a quoted word may be empty.
    has_word: bool,
    is_quoted: bool,
    next: Next,
    awaited: Vec<Awaited>,
}

impl<'a> ShellReader<'a> {
    fn new(text: &'a str) -> ShellReader<'a> {
        ShellReader {
            rest: text,
            done: Vec::new(),
            command: Command::default(),
            word: String::new(),
            has_word: false,
            is_quoted: false,
            next: Next::Word,
            awaited: Vec::new(),
        }
    }

    fn read(mut self) -> Vec<Command> {
        while let Some(c) = self.take() {
            if self.done.len() == MOST_COMMANDS {
                return self.done;
            }
            match c {
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '\\' => match self.take() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '#' if !self.has_word => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                }
                '&' if self.rest.starts_with('>') => {
                    self.end_word();
                    self.redirect();
                }
                '>' => {
                    let is_error = self.word == "2" && !self.is_quoted;
                    self.end_descriptor();
                    self.redirect();
                    if is_error {
                        self.next = Next::Ignored;
                    }
                }
                '<' => {
                    self.end_descriptor();
                    self.input();
                }
                '\n' => {
                    self.end_command();
                    self.here_documents();
                }
                ';' | '|' | '&' | '(' | ')' | '`' => self.end_command(),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
        self.done
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, what: &str) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn push(&mut self, c: char) {
        self.word.push(c);
        self.has_word = true;
    }

    /// Reads the text up to the closing quote. Within double quotes, a backslash escapes the next character.
    fn quoted(&mut self, quote: char) {
        (self.has_word, self.is_quoted) = (true, true);
        while let Some(c) = self.take() {
            match c {
                c if c == quote => return,
                '\\' if quote == '"' => match self.take() {
                    Some('\n') | None => {}
                    Some(c) => {
                        if !matches!(c, '$' | '`' | '"' | '\\') {
                            self.word.push('\\');
                        }
                        self.word.push(c);
                    }
                },
                c => self.word.push(c),
            }
        }
    }

    /// Ends the word before `>` or `<`. A number is dropped, because it is a file descriptor.
    fn end_descriptor(&mut self) {
        if !self.is_quoted && self.word.bytes().all(|b| b.is_ascii_digit()) {
            self.word.clear();
            self.has_word = false;
        }
        self.end_word();
    }

    /// Reads the rest of an operator that begins with `>`.
    fn redirect(&mut self) {
        while self.skip(">") || self.skip("|") {}
        self.next = if self.skip("&") { Next::Ignored } else { Next::Output };
    }

    /// Reads the rest of an operator that begins with `<`.
    fn input(&mut self) {
        if self.skip("<<") {
            self.next = Next::Ignored;
        } else if self.skip("<") {
            self.next = Next::End { is_indented: self.skip("-") };
        } else {
            self.skip("&");
            self.next = Next::Ignored;
        }
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.has_word) {
            return;
        }
        self.is_quoted = false;
        let word = std::mem::take(&mut self.word);
        match std::mem::replace(&mut self.next, Next::Word) {
            Next::Word => self.command.words.push(word),
            Next::Output => self.command.writes.push(word),
            Next::Ignored => {}
            // A real line has one or two here-documents. If there are too many, the text of further ones is read as
            // commands.
            Next::End { .. } if self.awaited.len() == MOST_COMMANDS => {}
            Next::End { is_indented } => {
                self.awaited.push(Awaited { command: self.done.len(), end: word, is_indented });
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.next = Next::Word;
        // `awaited` is in the order of the commands, so only its last element can belong to this command.
        let is_awaited = self.awaited.last().is_some_and(|awaited| awaited.command == self.done.len());
        if self.command != Command::default() || is_awaited {
            self.done.push(std::mem::take(&mut self.command));
        }
    }

    /// Reads the texts of the here-documents that were announced on the line before.
    fn here_documents(&mut self) {
        for Awaited { command, end, is_indented } in std::mem::take(&mut self.awaited) {
            let mut text = String::new();
            while !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let line = if is_indented { line.trim_start_matches('\t') } else { line };
                if line == end {
                    break;
                }
                text += line;
                text.push('\n');
            }
            // If there were too many commands, this command was not kept.
            if let Some(command) = self.done.get_mut(command) {
                command.reads = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        commands(line).into_iter().map(|command| command.words).collect()
    }

    #[test]
    fn quotes_keep_a_word_and_what_is_in_it_together() {
        let table: [(&str, &[&[&str]]); 9] = [
            ("sed -i '$ a fn x() -> u8; {' a.rs", &[&["sed", "-i", "$ a fn x() -> u8; {", "a.rs"]]),
            (r#"git commit -m "a \"b\"; c" && ls"#, &[&["git", "commit", "-m", "a \"b\"; c"], &["ls"]]),
            (r"echo a\ b\;c", &[&["echo", "a b;c"]]),
            ("a;b|c&d||e\nf", &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]]),
            ("a # b; c\nd", &[&["a"], &["d"]]),
            ("a \\\n b", &[&["a", "b"]]),
            ("a '' b", &[&["a", "", "b"]]),
            ("bash -lc 'x y; z'", &[&["bash", "-lc", "x y; z"], &["x", "y"], &["z"]]),
            ("a 'never ended", &[&["a", "never ended"]]),
        ];
        for (line, expected) in table {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn output_goes_to_files_and_a_descriptor_is_no_file() {
        let table: [(&str, &[&str]); 8] = [
            ("a > b", &["b"]),
            ("a >>b 2>&1", &["b"]),
            ("a 2>b", &[]),
            ("a 1> b >| c", &["b", "c"]),
            ("a &> b", &["b"]),
            ("a <b >c", &["c"]),
            ("a -> 'b > c'", &["b > c"]),
            ("a '->' b", &[]),
        ];
        for (line, expected) in table {
            assert_eq!(commands(line)[0].writes, expected, "{line}");
        }
    }

    #[test]
    fn a_here_document_is_text_not_commands() {
        let found = commands("cat > a.txt <<'EOF' && ls\nrm b.txt\n  EOF\nEOF\ntee c <<-END\n\tx\n\tEND\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            (found[0].writes.as_slice(), found[0].reads.as_deref()),
            (&["a.txt".to_owned()][..], Some("rm b.txt\n  EOF\n"))
        );
        assert_eq!((found[1].words.as_slice(), &found[1].reads), (&["ls".to_owned()][..], &None));
        assert_eq!(found[2].reads.as_deref(), Some("x\n"));
        assert_eq!(commands("cat <<EOF\nnever ended")[0].reads.as_deref(), Some("never ended\n"));
    }

    #[test]
    fn the_name_comes_after_assignments_and_wrappers() {
        for line in ["git add .", "sudo /usr/bin/git add .", "GIT_DIR=x env A=b git add .", "{ git add .; }"]
        {
            let found = commands(line);
            let (name, rest) = found[0].name();
            assert_eq!((name, rest), ("git", &["add".to_owned(), ".".to_owned()][..]), "{line}");
        }
        assert_eq!(commands("> a")[0].name().0, "");
    }

    /// Guards against two former faults: at the end of each command, all here-documents were searched, and the number
    /// of commands was not limited.
    #[test]
    fn only_the_first_of_very_many_commands_are_read() {
        for part in ["<<a ", "b;", "a <<b;", "(", "<<a;\n", "'"] {
            let line = part.repeat(1_000_000 / part.len());
            assert!(ShellReader::new(&line).read().len() <= MOST_COMMANDS, "{part}");
            assert!(commands(&line).len() <= MOST_COMMANDS, "{part}");
        }
        let line = "a <<b;".repeat(MOST_COMMANDS - 1) + "c\ntext\nb\n";
        assert_eq!(commands(&line)[0].reads.as_deref(), Some("text\n"));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line in "(\\PC|[ \n'\"\\\\<>|&;()`#-]|EOF){0,60}") {
            let count = commands(&line).len();
            proptest::prop_assert!(count <= MOST_COMMANDS);
        }
    }
}
