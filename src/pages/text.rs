//! Shows stored texts. No text becomes HTML: tags come from this program alone, and every text is escaped.
//!
//! Markdown is read by `pulldown-cmark`. HTML in it is shown as text. A link is a link only if it leads to `http` or
//! `https`; an image is its description, so that nothing is fetched. Characters that hide text or change its direction
//! are shown as escapes, as on the terminal.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use tiro_base::envelope;
use tiro_text::words::Marks;

/// The deepest nesting that is shown. What is nested more deeply, which no person writes, is shown at this depth.
const DEEPEST: usize = 24;

/// The most bytes of a text that are shown at once. Arbitrary: more than a person reads without opening it.
pub const LONGEST: usize = 16 * 1024;

/// Returns `text` with hidden characters as escapes.
pub fn plain(text: &str) -> Cow<'_, str> {
    envelope::escape(text)
}

/// Returns `text` on one line, with the words of `marks` marked.
pub fn marked(text: &str, marks: &Marks) -> Markup {
    let text = plain(text);
    html! {
        @for (part, is_marked) in marks.parts(&text) {
            @if is_marked { mark { (part) } } @else { (part) }
        }
    }
}

/// Returns the beginning of `text`, at most [`LONGEST`] bytes, and whether it was cut.
pub fn beginning(text: &str) -> (&str, bool) {
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    (cut, cut.len() < text.len())
}

/// Returns a text of a program, such as the output of a tool: monospaced, with the lines of a diff coloured.
pub fn verbatim(text: &str, marks: &Marks) -> Markup {
    let text = plain(text);
    html! { pre { code { (lines(&text, is_diff(&text), marks)) } } }
}

fn lines(text: &str, is_diff: bool, marks: &Marks) -> Markup {
    if !is_diff {
        return marked(text, marks);
    }
    html! {
        @for line in text.lines() {
            @let class = diff_class(line);
            @if class.is_empty() { (marked(line, marks)) } @else { span class=(class) { (marked(line, marks)) } }
            "\n"
        }
    }
}

/// Returns whether `text` is the difference of two files.
fn is_diff(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.starts_with("@@ -") || line.starts_with("diff --git "))
}

fn diff_class(line: &str) -> &'static str {
    match line {
        _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") => "file",
        _ if line.starts_with("@@") => "hunk",
        _ if line.starts_with('+') => "added",
        _ if line.starts_with('-') => "removed",
        _ => "",
    }
}

/// Returns `text` as Markdown, with the words of `marks` marked.
pub fn markdown(text: &str, marks: &Marks) -> Markup {
    let text = plain(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer { html: String::new(), open: Vec::new(), code: None, marks };
    for event in Parser::new_ext(&text, options) {
        writer.take(event);
    }
    while let Some(end) = writer.open.pop() {
        writer.html += end;
    }
    html! { div.prose { (PreEscaped(writer.html)) } }
}

/// Writes the events of a Markdown text. `html` gets only literal tags, and texts that maud escaped.
struct Writer<'m> {
    html: String,
    /// The ends of the open tags.
    open: Vec<&'static str>,
    /// The text of the block of code that is being read, and whether it says that it is a diff.
    code: Option<(String, bool)>,
    marks: &'m Marks,
}

impl Writer<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) => match &mut self.code {
                Some((code, _)) => *code += &text,
                None => self.text(&text),
            },
            Event::Code(code) => {
                self.html += "<code>";
                self.text(&code);
                self.html += "</code>";
            }
            Event::Html(html) | Event::InlineHtml(html) => self.text(&html),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html += "<br>",
            Event::Rule => self.html += "<hr>",
            Event::TaskListMarker(is_done) => self.html += if is_done { "☑ " } else { "☐ " },
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
        }
    }

    fn text(&mut self, text: &str) {
        marked(text, self.marks).render_to(&mut self.html);
    }

    fn push(&mut self, start: &str, end: &'static str) {
        match self.open.len() < DEEPEST {
            true => {
                self.html += start;
                self.open.push(end);
            }
            false => self.open.push(""),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.push("<p>", "</p>"),
            // Headings of a text are no headings of the page.
            Tag::Heading { .. } => self.push("<p class=\"heading\">", "</p>"),
            Tag::BlockQuote(_) => self.push("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => {
                let name = match &kind {
                    CodeBlockKind::Fenced(name) => name.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((String::new(), matches!(name, "diff" | "patch")));
                self.push("", "");
            }
            Tag::List(Some(first)) => {
                // The number is one of ours, whatever the text says.
                let start = format!("<ol start=\"{first}\">");
                self.push(&start, "</ol>");
            }
            Tag::List(None) => self.push("<ul>", "</ul>"),
            Tag::Item => self.push("<li>", "</li>"),
            Tag::Table(_) => self.push("<table>", "</table>"),
            Tag::TableHead => self.push("<thead><tr>", "</tr></thead>"),
            Tag::TableRow => self.push("<tr>", "</tr>"),
            Tag::TableCell => self.push("<td>", "</td>"),
            Tag::Emphasis => self.push("<em>", "</em>"),
            Tag::Strong => self.push("<strong>", "</strong>"),
            Tag::Strikethrough => self.push("<del>", "</del>"),
            Tag::Link { dest_url, .. } if is_web(&dest_url) => {
                let start = html! { (dest_url.as_ref()) }.into_string();
                let start = format!("<a rel=\"noopener noreferrer nofollow\" href=\"{start}\">");
                self.push(&start, "</a>");
            }
            Tag::Image { dest_url, .. } => {
                self.push("<span class=\"image\">[image: ", "]</span>");
                self.text(&dest_url);
                self.html.push(' ');
            }
            _ => self.push("", ""),
        }
    }

    fn end(&mut self, end: TagEnd) {
        if matches!(end, TagEnd::CodeBlock)
            && let Some((code, is_named)) = self.code.take()
        {
            let shown = lines(&code, is_named || is_diff(&code), self.marks);
            html! { pre { code { (shown) } } }.render_to(&mut self.html);
        }
        self.html += self.open.pop().unwrap_or_default();
    }
}

fn is_web(address: &str) -> bool {
    let lower = address.get(..8).unwrap_or(address).to_ascii_lowercase();
    lower.starts_with("https://") || lower.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        markdown(text, &Marks::default()).into_string()
    }

    #[test]
    fn markdown_becomes_elements() {
        assert_eq!(
            shown("# A\n\n- *b* `c`\n- [d](https://e.example)\n\n> f\n"),
            "<div class=\"prose\"><p class=\"heading\">A</p><ul><li><em>b</em> <code>c</code></li><li>\
             <a rel=\"noopener noreferrer nofollow\" href=\"https://e.example\">d</a></li></ul>\
             <blockquote><p>f</p></blockquote></div>"
        );
        let diff = shown("```diff\n-a\n+b\n```");
        assert!(
            diff.contains("<span class=\"removed\">-a</span>\n<span class=\"added\">+b</span>"),
            "{diff}"
        );
        let marked = markdown("flush the caches", &Marks::of("cache")).into_string();
        assert!(marked.contains("the <mark>caches</mark>"), "{marked}");
    }

    #[test]
    fn no_text_becomes_html() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[a](javascript:alert(1))",
            "[a](  JaVaScRiPt:alert(1))",
            "![a](https://evil.example/x.png)",
            "```\n</code></pre><script>alert(1)</script>\n```",
            "[a](https://e.example/\"onmouseover=\"alert(1))",
            "<https://e.example/\"><script>>",
        ] {
            let html = shown(text);
            for bad in ["<script", "<img", "href=\"j", "href=\"J", "\"onmouseover"] {
                assert!(!html.contains(bad), "{text:?}: {html}");
            }
        }
        assert!(shown("a\u{202e}b").contains("\\u{202e}") || !shown("a\u{202e}b").contains('\u{202e}'));
    }

    #[test]
    fn deep_nesting_stays_shallow() {
        let html = shown(&">".repeat(5_000));
        assert!(html.matches("<blockquote>").count() <= DEEPEST);
        assert_eq!(html.matches("<blockquote>").count(), html.matches("</blockquote>").count());
    }
}
