//! Draws the state of the interactive search: the question, the list, a preview of the chosen memory, and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::text::{Line, Span as Piece, Text};
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph, Wrap};
use unicode_width::UnicodeWidthStr;

use super::state::{Found, State};
use crate::cli::terminal::{Span, Style, ago};
use tiro_base::envelope;

/// The least number of columns and rows at which a preview is shown.
const ROOM_FOR_PREVIEW: (u16, u16) = (60, 10);

/// The text before the question.
const PROMPT: &str = "find: ";

/// The keys, the most useful first. A narrow terminal shows only the first.
const KEYS: [&str; 6] =
    ["Esc leave", "Enter open", "↑↓ choose", "Ctrl-T mark", "Ctrl-D forget", "Ctrl-Z undo"];

/// Draws `state`.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let rows = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    match &state.opened {
        Some((id, text)) => opened(frame, state, (id, text), top, middle),
        None => {
            question(frame, state, top);
            let has_room = middle.width >= ROOM_FOR_PREVIEW.0 && middle.height >= ROOM_FOR_PREVIEW.1;
            match has_room {
                true => {
                    let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
                    let [left, right] = Layout::horizontal(halves).areas(middle);
                    list(frame, state, left);
                    preview(frame, state, right);
                }
                false => list(frame, state, middle),
            }
        }
    }
    frame.render_widget(Paragraph::new(last_line(state, usize::from(bottom.width))), bottom);
}

fn question(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let query = envelope::one_line(&state.query);
    let room = usize::from(area.width).saturating_sub(PROMPT.width() + 1);
    // Of a long question the end is shown, where the user types.
    let mut from = 0;
    while query[from..].width() > room {
        from += query[from..].chars().next().map_or(1, char::len_utf8);
    }
    let shown = &query[from..];
    let line = Line::from(vec![piece(state, Style::Faint, PROMPT), piece(state, Style::Strong, shown)]);
    frame.render_widget(Paragraph::new(line), area);
    let column = PROMPT.width() + shown.width();
    let column = area.x + u16::try_from(column).unwrap_or(0).min(area.width.saturating_sub(1));
    frame.set_cursor_position(Position::new(column, area.y));
}

fn list(frame: &mut Frame<'_>, state: &State, area: Rect) {
    if state.found.is_empty() {
        let text = if state.waits { "Searching …" } else { "Nothing found." };
        frame.render_widget(Paragraph::new(Line::from(piece(state, Style::Faint, text))), area);
        return;
    }
    let items = state.found.iter().map(|found| ListItem::new(item(state, found)));
    let chosen = match state.colour {
        true => Look::new().add_modifier(Modifier::REVERSED),
        false => Look::new(),
    };
    let list = List::new(items).highlight_symbol("> ").highlight_style(chosen);
    let mut place = ListState::default().with_selected(Some(state.chosen));
    frame.render_stateful_widget(list, area, &mut place);
}

/// Returns the two lines of a memory in the list: what it is, and how it begins.
fn item(state: &State, found: &Found) -> Text<'static> {
    let mut heading = vec![match (&found.speaker, found.kind.as_str()) {
        (Some(speaker), "message") => piece(state, Style::Name, speaker),
        (_, kind) => piece(state, Style::Strong, kind),
    }];
    heading.extend(found.author.iter().map(|author| piece(state, Style::Name, format!("  by {author}"))));
    heading.push(piece(state, Style::Faint, format!("  {}", ago(&found.time, state.now))));
    if found.important == Some(true) {
        heading.push(piece(state, Style::Match, "  important"));
    }
    heading.extend(found.warning.is_some().then(|| piece(state, Style::Warning, "  !")));
    heading.extend(found.session.iter().map(|name| piece(state, Style::Faint, format!("  {name}"))));
    let first = found.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let marked = state.marks.spans(first.trim()).into_iter().map(|span| styled(state, &span));
    Text::from(vec![Line::from(heading), Line::from_iter([Piece::raw("  ")].into_iter().chain(marked))])
}

fn preview(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let Some(found) = state.chosen() else { return };
    let mut lines: Vec<Line<'static>> = found
        .text
        .lines()
        .map(|line| state.marks.spans(&line.replace('\t', "    ")))
        .map(|spans| Line::from_iter(spans.iter().map(|span| styled(state, span))))
        .collect();
    lines.push(Line::default());
    lines.extend(found.warning.iter().map(|warning| Line::from(piece(state, Style::Warning, warning))));
    lines.push(Line::from(piece(state, Style::Id, &found.id)));
    let border = Block::new().borders(Borders::LEFT);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(border), area);
}

fn opened(frame: &mut Frame<'_>, state: &State, (id, text): (&str, &str), top: Rect, middle: Rect) {
    frame.render_widget(Paragraph::new(Line::from(piece(state, Style::Strong, id))), top);
    let lines = text.lines().skip(state.scrolled).take(usize::from(middle.height));
    let lines: Vec<Line<'static>> = lines.map(|line| Line::from(piece(state, Style::Plain, line))).collect();
    frame.render_widget(Paragraph::new(lines), middle);
}

/// Returns the line at the bottom: a question, what was done or went wrong, or the keys.
fn last_line(state: &State, width: usize) -> Line<'static> {
    if state.asks.is_some() {
        return Line::from(piece(state, Style::Warning, "Forget this memory? y yes, any other key no"));
    }
    if let Some(said) = &state.said {
        let style = if said.starts_with("error") { Style::Warning } else { Style::Strong };
        return Line::from(piece(state, style, said));
    }
    let mut keys = String::new();
    for key in KEYS {
        let more = if keys.is_empty() { key.to_owned() } else { format!("{keys} · {key}") };
        if more.width() > width {
            break;
        }
        keys = more;
    }
    Line::from(piece(state, Style::Faint, keys))
}

/// Returns a piece of one style, with control characters escaped.
fn piece(state: &State, style: Style, text: impl AsRef<str>) -> Piece<'static> {
    styled(state, &Span::new(style, text))
}

fn styled(state: &State, span: &Span) -> Piece<'static> {
    let plain = Look::new();
    let look = match span.style() {
        _ if !state.colour => plain,
        Style::Plain => plain,
        Style::Strong => plain.add_modifier(Modifier::BOLD),
        Style::Faint => plain.add_modifier(Modifier::DIM),
        Style::Name => plain.fg(Color::Cyan),
        Style::Id => plain.fg(Color::Yellow),
        Style::Match => plain.fg(Color::Green).add_modifier(Modifier::BOLD),
        Style::Warning => plain.fg(Color::Red),
    };
    Piece::styled(span.text().to_owned(), look)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn screen(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    fn state(text: &str) -> State {
        let mut state = State::new("quince".to_owned(), 1_772_357_400_000, false);
        state.search();
        let found = Found {
            id: "mchzykhkfjbr9a".to_owned(),
            kind: "message".to_owned(),
            speaker: Some("Ada".to_owned()),
            session: Some("larder".to_owned()),
            time: "2026-02-26T09:30:00Z".to_owned(),
            text: text.to_owned(),
            ..Found::default()
        };
        state.take(1, vec![found], None);
        state
    }

    #[test]
    fn the_list_has_a_preview_beside_it_if_there_is_room() {
        let state = state("The quince press\nlags behind by one batch.");
        insta::assert_snapshot!(screen(&state, 70, 12).join("\n"), @r"
        find: quince
        > Ada  3 days ago  larder          │The quince press
            The quince press               │lags behind by one batch.
                                           │
                                           │mchzykhkfjbr9a
                                           │
                                           │
                                           │
                                           │
                                           │
                                           │
        Esc leave · Enter open · ↑↓ choose · Ctrl-T mark · Ctrl-D forget
        ");
        insta::assert_snapshot!(screen(&state, 20, 4).join("\n"), @r"
        find: quince
        > Ada  3 days ago  l
            The quince press
        Esc leave
        ");
    }

    proptest! {
        /// Terminals may be of any size, and texts of any kind.
        #[test]
        fn nothing_stored_breaks_the_screen(
            text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202a}-\u{202e} ]|quince|\n){0,80}",
            width in 1..90_u16, height in 1..20_u16, is_open in any::<bool>(),
        ) {
            let mut state = state(&text);
            state.query = text.clone();
            if is_open {
                state.open("m1".to_owned(), text.clone());
            }
            for row in screen(&state, width, height) {
                prop_assert!(!row.contains(|c: char| c.is_control()), "{row:?}");
                prop_assert!(!row.contains(|c: char| ('\u{202a}'..='\u{202e}').contains(&c)), "{row:?}");
            }
        }
    }
}
