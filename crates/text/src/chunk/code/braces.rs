//! Finds the structure of a file in a language with braces, by its brackets, semicolons and lines.

use super::headers;
use super::language::Language;
use super::outline::{Mark, Outline};

/// Reads the structure of `text`.
pub(super) fn read(text: &str, language: Language) -> Outline {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        language,
        at: 0,
        frames: Vec::new(),
        inner: 0,
        lead: None,
        attribute: None,
        statement: None,
        has_ended: true,
        last: b';',
        outline: Outline::default(),
    };
    while scanner.at < text.len() {
        scanner.line();
    }
    for span in std::mem::take(&mut scanner.frames).into_iter().rev().filter_map(|frame| frame.span) {
        scanner.outline.close(span, text.len());
    }
    scanner.outline
}

/// An open bracket.
struct Frame {
    is_brace: bool,
    has_items: bool,
    /// The indentation of the statement that opened the block.
    indent: usize,
    span: Option<usize>,
}

/// A statement that has begun.
#[derive(Clone, Copy)]
struct Statement {
    /// Where its code begins.
    code: usize,
    /// Where the statement begins, with the comments and attributes before it.
    start: usize,
    indent: usize,
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    language: Language,
    at: usize,
    frames: Vec<Frame>,
    /// The number of frames that do not contain items.
    inner: usize,
    /// Where the comments and attributes before the next statement begin.
    lead: Option<usize>,
    /// The number of frames around the attribute that is being read.
    attribute: Option<usize>,
    statement: Option<Statement>,
    /// Whether the last statement has ended.
    has_ended: bool,
    /// The last character that is neither white space nor part of a comment.
    last: u8,
    outline: Outline,
}

impl Scanner<'_> {
    /// Reads a line, and the following lines if a string or comment extends into them.
    fn line(&mut self) {
        let line = self.at;
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | 0xb | 0xc)) {
            self.at += 1;
        }
        let indent = self.at - line;
        let rest = &self.bytes[self.at..];
        match rest.first() {
            None => return,
            Some(b'\n') => {
                // A comment that is followed by a blank line is not about the next statement only.
                self.lead = self.lead.filter(|_| self.attribute.is_some());
                self.at += 1;
                return;
            }
            _ => {}
        }
        if self.attribute == Some(self.frames.len()) {
            self.has_ended = true;
        }
        let ends_by_line = self.language.ends_statements_by_lines() && !self.is_open_ended();
        let ends_by_label = self.last == b':' && self.language != Language::Rust;
        let begins = self.has_ended || ((ends_by_line || ends_by_label) && !self.continues(rest));
        let is_in_block = self.frames.last().is_none_or(|frame| frame.is_brace);
        if self.attribute.is_some_and(|frames| self.frames.len() > frames) {
            // The rest of an attribute.
        } else if rest.starts_with(b"//") || rest.starts_with(b"/*") {
            if begins && is_in_block {
                self.lead.get_or_insert(line);
                (self.has_ended, self.statement) = (true, None);
            }
        } else if rest[0] == b'#' && self.language.has_directives() {
            let start = self.lead.take().unwrap_or(line);
            self.mark(start);
            self.skip_directive();
            (self.has_ended, self.statement) = (true, None);
            return;
        } else if begins && is_in_block && self.is_attribute(rest) {
            let start = *self.lead.get_or_insert(line);
            self.attribute = Some(self.frames.len());
            self.statement = Some(Statement { code: self.at, start, indent });
            self.has_ended = false;
        } else if begins && is_in_block && !matches!(rest[0], b'}' | b')' | b']' | b'.' | b'?') {
            let start = self.lead.take().unwrap_or(line);
            self.attribute = None;
            if indent == 0 && self.language.has_directives() {
                self.close_at_margin(start);
            }
            if !self.is_branch(rest) {
                self.mark(start);
            }
            self.statement = Some(Statement { code: self.at, start, indent });
            self.has_ended = false;
        } else {
            self.lead = None;
        }
        self.code(indent);
    }

    /// Reads the code of a line up to its end.
    fn code(&mut self, indent: usize) {
        let first = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    return;
                }
                b' ' | b'\t' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                b'/' if self.bytes[self.at..].starts_with(b"//") => {
                    self.skip_line();
                    continue;
                }
                b'/' if self.bytes[self.at..].starts_with(b"/*") => {
                    self.skip_comment();
                    continue;
                }
                _ => {}
            }
            if self.statement.is_none() && self.attribute.is_none() && !b"{}()[];,".contains(&byte) {
                let start = self.lead.take().unwrap_or(self.at);
                if self.frames.last().is_none_or(|frame| frame.is_brace) {
                    self.mark(start);
                }
                self.statement = Some(Statement { code: self.at, start, indent });
                self.has_ended = false;
            }
            let end = self.skip_literal();
            if end > self.at {
                (self.at, self.last) = (end, b'"');
                continue;
            }
            match byte {
                b'{' => self.open_brace(indent),
                b'(' | b'[' => self.push(Frame { is_brace: false, has_items: false, indent, span: None }),
                b'}' => self.close_brace(indent, self.at == first),
                b')' | b']' if self.frames.last().is_some_and(|frame| !frame.is_brace) => {
                    self.pop(self.at + 1)
                }
                b';' if self.frames.last().is_none_or(|frame| frame.is_brace) => self.end_statement(),
                b',' if self.separates_by_commas() => self.end_statement(),
                _ => {}
            }
            self.last = if byte == b'>' && self.last == b'=' { b'=' } else { byte };
            self.at += 1;
        }
    }

    fn mark(&mut self, start: usize) {
        self.outline.mark(Mark { start, is_item: self.inner == 0, depth: self.frames.len() });
    }

    fn end_statement(&mut self) {
        (self.has_ended, self.statement) = (true, None);
    }

    fn open_brace(&mut self, indent: usize) {
        let statement = self.statement.unwrap_or(Statement { code: self.at, start: self.at, indent });
        let is_member = self.inner == 0;
        let header = headers::read(&self.text[statement.code..self.at], self.language, is_member);
        let has_items = header.as_ref().is_some_and(|header| header.has_items);
        let span = header.and_then(|header| self.outline.open(statement.start, header.label));
        self.push(Frame { is_brace: true, has_items, indent: statement.indent.min(indent), span });
        self.end_statement();
    }

    /// Closes the open functions that begin at the margin, because another statement begins at the margin. Such
    /// functions are still open if the braces of both branches of an `#if` were counted. A label may be at the margin
    /// within a function, so it closes nothing.
    fn close_at_margin(&mut self, start: usize) {
        let line = &self.text[self.at..];
        let line = line[..line.find('\n').unwrap_or(line.len())].trim_end();
        while !line.ends_with(':')
            && !line.starts_with('{')
            && self.frames.last().is_some_and(|frame| frame.is_brace && !frame.has_items && frame.indent == 0)
        {
            self.pop(start);
        }
    }

    /// Closes the innermost block. A brace at the beginning of a line closes the block whose statement has the same
    /// indentation. So a missing or additional brace, as around `#else` in C, does not affect the rest of the file.
    fn close_brace(&mut self, indent: usize, is_first: bool) {
        while self.frames.last().is_some_and(|frame| !frame.is_brace || (is_first && frame.indent > indent)) {
            self.pop(self.at + 1);
        }
        self.pop(self.at + 1);
        self.end_statement();
    }

    fn push(&mut self, frame: Frame) {
        self.inner += usize::from(!frame.has_items);
        self.frames.push(frame);
    }

    /// Closes the innermost bracket, whose item ends at `end`.
    fn pop(&mut self, end: usize) {
        if let Some(frame) = self.frames.pop() {
            self.inner -= usize::from(!frame.has_items);
            if let Some(span) = frame.span {
                self.outline.close(span, end);
            }
        }
    }

    /// Returns whether a comma ends a field, a variant or an arm here.
    fn separates_by_commas(&self) -> bool {
        let is_in_list = self.frames.last().is_some_and(|frame| frame.is_brace && !frame.has_items);
        is_in_list && (self.language == Language::Rust || self.language.ends_statements_by_lines())
    }

    /// Returns whether the last line ended with an operator, so that the statement goes on.
    fn is_open_ended(&self) -> bool {
        b"+-*%=<&|^!?,.([~".contains(&self.last)
    }

    /// Returns whether a line that begins with `rest` continues the previous statement.
    fn continues(&self, rest: &[u8]) -> bool {
        b"{.?:,)]}&|+-*%=<>^".contains(&rest[0])
    }

    /// Returns whether `rest` begins a further branch of the previous statement, such as `else`.
    fn is_branch(&self, rest: &[u8]) -> bool {
        [&b"else"[..], b"catch", b"finally"].iter().any(|word| rest.starts_with(word))
    }

    fn is_attribute(&self, rest: &[u8]) -> bool {
        match self.language {
            Language::Rust => rest.starts_with(b"#["),
            Language::Java | Language::JavaScript | Language::TypeScript => {
                rest[0] == b'@' && !rest.starts_with(b"@interface")
            }
            _ => false,
        }
    }

    fn skip_line(&mut self) {
        self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
    }

    /// Skips a comment of several lines. In Rust, such comments can be nested.
    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            if rest.starts_with(b"/*") && (depth == 0 || self.language == Language::Rust) {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
        self.at = self.bytes.len();
    }

    /// Skips a directive of the preprocessor, and the lines that continue it after a backslash.
    fn skip_directive(&mut self) {
        loop {
            let start = self.at;
            self.skip_line();
            let is_continued = self.text[start..self.at].trim_end_matches('\r').ends_with('\\');
            self.at = (self.at + 1).min(self.bytes.len());
            if !is_continued || self.at == self.bytes.len() {
                return;
            }
        }
    }

    /// Returns the end of the string, character or regular expression that begins here. Returns the present place if
    /// none begins.
    fn skip_literal(&mut self) -> usize {
        super::literals::end(self.text, self.at, self.language, self.last)
    }
}
