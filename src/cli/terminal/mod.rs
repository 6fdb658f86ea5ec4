//! Shows answers to people. An answer consists of lines of styled text, which are coloured and wrapped if the output is
//! a terminal.
//!
//! A [`Page`] has lines of [`Span`]s, each of which has a style and a text. A text is escaped when it becomes a span,
//! so stored text can't control the terminal. Colour codes come only from the styles. Headings are at the margin, and
//! the text under them is indented, so no line of that text can look like a heading. A page that is written to a pipe
//! has no colours and no wrapped lines, and its dates are absolute.

mod dates;
mod marks;
mod wrap;

use std::borrow::Cow;

use anstyle::{AnsiColor, Style as Ansi};

use super::flags;
use tiro_base::envelope;
use tiro_base::error::partial;
pub use tiro_base::humanize::thousands as number;
use tiro_base::memory::Millis;

pub use dates::{ago, clock};
pub use marks::Marks;

/// The output on which a page is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// The number of columns of the terminal; `None` if the output is not a terminal.
    pub width: Option<usize>,
    /// Whether the output shows colours.
    pub colour: bool,
}

/// The role of a part of a line. The role decides the colour of the part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Strong,
    /// Secondary text: dates, counts, notes.
    Faint,
    /// A speaker's name.
    Name,
    /// An id that `tiro show` takes.
    Id,
    /// A word that was searched for.
    Match,
    /// An error, or something outdated.
    Warning,
}

impl Style {
    fn ansi(self) -> Ansi {
        let plain = Ansi::new();
        match self {
            Style::Plain => plain,
            Style::Strong => plain.bold(),
            Style::Faint => plain.dimmed(),
            Style::Name => plain.fg_color(Some(AnsiColor::Cyan.into())),
            Style::Id => plain.fg_color(Some(AnsiColor::Yellow.into())),
            Style::Match => plain.bold().fg_color(Some(AnsiColor::Green.into())),
            Style::Warning => plain.fg_color(Some(AnsiColor::Red.into())),
        }
    }
}

/// A text of one style. The text is escaped and has no line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    style: Style,
    text: String,
}

impl Span {
    /// Returns `text`, escaped and on one line.
    pub fn new(style: Style, text: impl AsRef<str>) -> Span {
        Span { style, text: envelope::one_line(text.as_ref()).into_owned() }
    }

    /// Returns the style.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Returns the escaped text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

struct Line {
    indent: usize,
    spans: Vec<Span>,
}

/// An answer for people.
pub struct Page {
    screen: Screen,
    now: Millis,
    lines: Vec<Line>,
}

impl Page {
    /// Returns an empty page. Dates on the page will be relative to `now`.
    pub fn new(screen: Screen, now: Millis) -> Page {
        Page { screen, now, lines: Vec::new() }
    }

    /// Adds a line, `indent` columns from the margin.
    pub fn line(&mut self, indent: usize, spans: impl IntoIterator<Item = Span>) {
        self.lines.push(Line { indent, spans: spans.into_iter().collect() });
    }

    /// Adds an empty line, unless the page is empty or ends with one.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.spans.is_empty()) {
            self.line(0, []);
        }
    }

    /// Adds all lines of `text`, each indented by `indent` columns in addition to its own indentation.
    pub fn text(&mut self, indent: usize, style: Style, text: &str) {
        self.each(indent, text, |line| vec![Span::new(style, line)]);
    }

    /// Like [`Page::text`], but also highlights the words of `marks`.
    pub fn marked(&mut self, indent: usize, text: &str, marks: &Marks) {
        self.each(indent, text, |line| marks.spans(line));
    }

    fn each(&mut self, indent: usize, text: &str, spans: impl Fn(&str) -> Vec<Span>) {
        for line in text.trim_end().lines() {
            let line = line.trim_end().replace('\t', "    ");
            let own = line.len() - line.trim_start_matches(' ').len();
            self.line(indent + own, spans(&line[own..]));
        }
    }

    /// Adds the first line of a page, which says what is missing from the answer because it could not be read. Adds
    /// nothing if the answer is complete.
    pub fn incomplete(&mut self, notices: &[String]) {
        let line = flags::without_tools(&partial::line(notices));
        if !line.is_empty() {
            self.line(0, [Span::new(Style::Strong, line.trim_end())]);
        }
    }

    /// Adds a line for each of `notices`, except the ones that [`Page::incomplete`] shows. Names of tools are replaced
    /// by subcommands.
    pub fn notices(&mut self, notices: &[String]) {
        for notice in partial::others(notices) {
            let notice = flags::without_tools(notice);
            self.line(0, [Span::new(Style::Faint, format!("Note: {notice}."))]);
        }
    }

    /// Returns the RFC 3339 time `time` for display. On a terminal, the result is relative, such as `3 days ago`.
    /// Elsewhere, the result is the day and the minute.
    pub fn when(&self, time: &str) -> String {
        match self.screen.width {
            Some(_) => ago(time, self.now),
            None => dates::minute(time),
        }
    }

    /// Returns `day`, such as `2026-03-01`, for display. On a terminal, it is relative. Elsewhere, it is unchanged.
    pub fn day(&self, day: &str) -> String {
        match self.screen.width {
            Some(_) => dates::days_ago(day, self.now),
            None => day.to_owned(),
        }
    }

    /// Returns the RFC 3339 time `time` for display, with the day and the minute. On a terminal, also says how long ago
    /// that time was.
    pub fn at(&self, time: &str) -> String {
        match self.screen.width {
            Some(_) => format!("{} ({})", dates::minute(time), ago(time, self.now)),
            None => dates::minute(time),
        }
    }

    /// Returns the text of the page for its screen. Each line ends with a line feed.
    pub fn render(&self) -> String {
        let mut written = String::new();
        for line in &self.lines {
            for (indent, spans) in wrap::wrap(line, self.screen.width) {
                self.row(indent, &spans, &mut written);
            }
        }
        written
    }

    fn row(&self, indent: usize, spans: &[(Style, Cow<'_, str>)], written: &mut String) {
        if spans.iter().any(|(_, text)| !text.is_empty()) {
            written.extend(std::iter::repeat_n(' ', indent));
        }
        for (style, text) in spans {
            match self.screen.colour && *style != Style::Plain {
                true => {
                    let ansi = style.ansi();
                    *written += &format!("{}{text}{}", ansi.render(), ansi.render_reset());
                }
                false => *written += text,
            }
        }
        written.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCREENS: [Screen; 4] = [
        Screen { width: None, colour: false },
        Screen { width: None, colour: true },
        Screen { width: Some(40), colour: false },
        Screen { width: Some(40), colour: true },
    ];

    fn page(screen: Screen, text: &str) -> String {
        let mut page = Page::new(screen, 0);
        page.line(
            0,
            [Span::new(Style::Id, "m1"), Span::new(Style::Plain, " "), Span::new(Style::Name, text)],
        );
        page.marked(3, text, &Marks::of("lantern"));
        page.gap();
        page.gap();
        page.text(0, Style::Faint, "end");
        page.render()
    }

    #[test]
    fn colours_come_from_styles_and_from_no_text() {
        let text = "a \u{1b}[31mred\u{1b}[0m lantern\u{9b}2J\n\tshines";
        let plain = page(SCREENS[0], text);
        assert_eq!(
            plain,
            "m1 a \\u{1b}[31mred\\u{1b}[0m lantern\\u{9b}2J  shines\n   a \\u{1b}[31mred\\u{1b}[0m lantern\\u{9b}2J\n       shines\n\nend\n"
        );
        let coloured = page(SCREENS[1], text);
        assert!(coloured.contains("\u{1b}[33mm1\u{1b}[0m \u{1b}[36ma "), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[1m\u{1b}[32mlantern\u{1b}[0m"), "{coloured:?}");
        assert!(!coloured.contains("\u{1b}[31m") && !coloured.contains('\u{9b}'), "{coloured:?}");
    }

    #[test]
    fn numbers_have_their_thousands_apart() {
        for (count, shown) in [(0, "0"), (999, "999"), (1204, "1,204"), (3_314_000, "3,314,000")] {
            assert_eq!(number(count), shown);
        }
    }

    proptest! {
        #[test]
        fn nothing_quoted_commands_the_terminal_or_reaches_the_margin(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202a}-\u{202e} ]|lantern){0,60}") {
            for screen in SCREENS {
                let mut page = Page::new(screen, 0);
                page.marked(3, &text, &Marks::of("lantern"));
                let mut shown = page.render();
                for code in ["\u{1b}[1m", "\u{1b}[32m", "\u{1b}[0m"] {
                    shown = shown.replace(code, "");
                }
                prop_assert!(!shown.contains(|c: char| c != '\n' && c.is_control()), "{shown:?}");
                prop_assert!(!shown.contains(|c: char| ('\u{202a}'..='\u{202e}').contains(&c)), "{shown:?}");
                prop_assert!(shown.lines().all(|line| line.is_empty() || line.starts_with("   ")), "{shown:?}");
            }
        }
    }
}
