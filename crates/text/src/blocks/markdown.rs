//! Divides Markdown into blocks and removes the markup. The Markdown is CommonMark with tables, parsed by
//! `pulldown-cmark`.
//!
//! People and programs write plain text too. So a paragraph whose lines look like code or output becomes a block of
//! code, and a bold line that stands alone becomes a heading.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Block, Kind, Run, code};

/// Returns the blocks of `text` in order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = MarkdownReader { source: text, ..MarkdownReader::default() };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.read(event, range);
    }
    reader.close();
    reader.blocks
}

/// The state of a pass through a Markdown text.
#[derive(Default)]
struct MarkdownReader<'a> {
    source: &'a str,
    blocks: Vec<Block>,
    open: Option<Open>,
    quotations: usize,
    items: usize,
    /// Whether the current leaf is a heading, a row of a table or code.
    leaf: Option<Kind>,
    /// Where the bold text that is being read begins in the open block.
    bold: Option<usize>,
}

/// The block that is being read.
#[derive(Default)]
struct Open {
    text: String,
    range: Range<usize>,
    runs: Vec<Run>,
    /// The bold parts of `text`.
    bold: Vec<Range<usize>>,
}

impl<'a> MarkdownReader<'a> {
    fn read(&mut self, event: Event<'a>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(&tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => self.push(&text, range),
            Event::Code(text) => {
                // Code has the same number of backticks before and after it.
                let inner =
                    self.source[range.clone()].find(&*text).map_or(range.start, |at| range.start + at);
                self.push(&text, inner..range.end);
            }
            Event::SoftBreak | Event::HardBreak => self.push("\n", range),
            Event::Html(text) => {
                self.leaf = Some(Kind::Code);
                self.push(&text, range);
                self.close();
            }
            // A name in angle brackets, such as in `Vec<T>`, is text. Only tags that format text are markup.
            Event::InlineHtml(text) if !is_markup(&text) => self.push(&text, range),
            Event::Rule => self.close(),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::BlockQuote(_) => {
                self.close();
                self.quotations += 1;
            }
            Tag::Item => {
                self.close();
                self.items += 1;
            }
            Tag::List(_) | Tag::Paragraph | Tag::HtmlBlock => self.close(),
            // Chats hardly ever have underlined headings, but rules below paragraphs look like them.
            Tag::Heading { .. } if !self.source[range.clone()].trim_start().starts_with('#') => self.close(),
            Tag::Heading { .. } => self.start_leaf(Kind::Heading),
            Tag::CodeBlock(_) => self.start_leaf(Kind::Code),
            Tag::TableHead | Tag::TableRow => self.start_leaf(Kind::Table),
            Tag::TableCell if self.open.as_ref().is_some_and(|open| !open.text.is_empty()) => {
                self.push(" | ", range.start..range.start);
            }
            Tag::Strong | Tag::Emphasis => {
                self.underscores(range);
                if matches!(tag, Tag::Strong) {
                    self.bold = Some(self.open.as_ref().map_or(0, |open| open.text.len()));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::BlockQuote(_) => {
                self.close();
                self.quotations -= 1;
            }
            TagEnd::Item => {
                self.close();
                self.items -= 1;
            }
            TagEnd::List(_)
            | TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::HtmlBlock => self.close(),
            TagEnd::Strong | TagEnd::Emphasis => {
                if let (TagEnd::Strong, Some(open), Some(start)) = (tag, &mut self.open, self.bold.take()) {
                    open.bold.push(start..open.text.len());
                }
                self.underscores(range);
            }
            _ => {}
        }
    }

    fn start_leaf(&mut self, kind: Kind) {
        self.close();
        self.leaf = Some(kind);
    }

    /// Puts back the underscores of a name such as `__init__`, which Markdown reads as emphasis.
    fn underscores(&mut self, range: &Range<usize>) {
        let marked = &self.source[range.clone()];
        let bare = marked.trim_start_matches('_');
        if bare.len() < marked.len() && !marked.contains(char::is_whitespace) {
            let marks = marked.len() - bare.len();
            self.push(&marked[..marks], range.start..range.start + marks);
        }
    }

    fn push(&mut self, text: &str, range: Range<usize>) {
        let open = self.open.get_or_insert_with(|| Open { range: range.clone(), ..Open::default() });
        let is_verbatim = self.source.get(range.start..range.start + text.len()) == Some(text);
        open.runs.push(Run { start: open.text.len(), source: range.clone(), is_verbatim });
        open.text += text;
        open.range.end = open.range.end.max(range.end);
    }

    /// Ends the open block.
    fn close(&mut self) {
        let leaf = self.leaf.take();
        self.bold = None;
        let Some(open) = self.open.take().filter(|open| !open.text.trim().is_empty()) else { return };
        let kind = match leaf {
            Some(kind) => kind,
            None if self.quotations > 0 => Kind::Quotation,
            None if self.items > 0 => Kind::Item,
            None => Kind::Prose,
        };
        match kind {
            Kind::Prose | Kind::Item => self.divide(kind, &open),
            _ => self.blocks.push(open.part(kind, 0..open.text.len())),
        }
    }

    /// Adds a paragraph or list item. The paragraph's headings, and its lines that look like code, become blocks of
    /// their own.
    fn divide(&mut self, kind: Kind, open: &Open) {
        let lines: Vec<&str> = open.text.split_inclusive('\n').collect();
        let marks = code::marks(&lines);
        let (mut start, mut at) = (0, 0);
        let mut last = None;
        for (line, is_code) in lines.iter().zip(marks) {
            let here = match is_code {
                true => Kind::Code,
                false if open.is_bold(at..at + line.len()) => Kind::Heading,
                false => kind,
            };
            if let Some(last) = last
                && (last != here || here == Kind::Heading)
            {
                self.add(open.part(last, start..at));
                start = at;
            }
            last = Some(here);
            at += line.len();
        }
        if let Some(last) = last {
            self.add(open.part(last, start..at));
        }
    }

    /// Adds a block, unless it has no text.
    fn add(&mut self, block: Block) {
        if !block.text.is_empty() {
            self.blocks.push(block);
        }
    }
}

/// Returns whether an HTML tag only formats text.
fn is_markup(tag: &str) -> bool {
    let name = tag.trim_start_matches(['<', '/']).split(|c: char| !c.is_ascii_alphanumeric()).next();
    let names = [
        "a", "b", "br", "code", "del", "div", "em", "h1", "h2", "h3", "hr", "i", "img", "ins", "kbd", "li",
        "mark", "ol", "p", "pre", "q", "s", "small", "span", "strong", "sub", "sup", "table", "td", "th",
        "tr", "u", "ul",
    ];
    tag.starts_with("<!--") || name.is_some_and(|name| names.contains(&name.to_ascii_lowercase().as_str()))
}

impl Open {
    /// Returns whether the line `range` is bold from its beginning to its end, apart from punctuation.
    fn is_bold(&self, range: Range<usize>) -> bool {
        let is_word = |at: &usize| self.text[*at..].starts_with(char::is_alphanumeric);
        let words: Vec<usize> =
            self.text[range.clone()].char_indices().map(|(at, _)| range.start + at).filter(is_word).collect();
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
        self.bold.iter().any(|bold| bold.contains(first) && bold.contains(last))
    }

    /// Returns a part of the text as a block, without white space around it.
    fn part(&self, kind: Kind, range: Range<usize>) -> Block {
        let whole = &self.text[range.clone()];
        let start = range.start + whole.len() - whole.trim_start().len();
        let text = whole.trim();
        let end = start + text.len();
        let before = self.runs.partition_point(|run| run.start <= start).saturating_sub(1);
        let within = self.runs[before..].iter().take_while(|run| run.start < end.max(start + 1));
        let runs: Vec<Run> = within
            .map(|run| match run.start.checked_sub(start) {
                Some(at) => Run { start: at, ..run.clone() },
                None => {
                    let skipped = if run.is_verbatim { start - run.start } else { 0 };
                    Run { start: 0, source: run.source.start + skipped..run.source.end, ..run.clone() }
                }
            })
            .collect();
        let mut block = Block { kind, text: text.to_owned(), range: self.range.clone(), runs };
        if range != (0..self.text.len()) {
            block.range = block.source_range(0..text.len());
        }
        block
    }
}
