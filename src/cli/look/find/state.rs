//! The state of the interactive search, and what each key does. Pure.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::cli::terminal::Marks;
use tiro_base::memory::Millis;
use tiro_tools::memory::list_memories::Listed;
use tiro_tools::memory::search_project_memory::Hit;

/// What is to be done beside the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Search the memory. The number tells answers to older questions apart.
    Search(u64, String),
    /// Open the memory with this id.
    Open(String),
    /// Mark the memory as important, or remove the mark.
    Mark(String, bool),
    /// Forget the memory.
    Forget(String),
    /// Undo the operation with this name.
    Undo(String),
}

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing but what the state shows.
    Nothing,
    /// The end of the search.
    Leave,
    /// A task.
    Run(Task),
}

/// A memory in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Who said it, or the author of a commit.
    pub speaker: Option<String>,
    /// Who shared it, if that was somebody else.
    pub author: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// The text of the preview.
    pub text: String,
    /// Why it may no longer hold.
    pub warning: Option<String>,
    /// Whether it is marked as important; `None` if unknown.
    pub important: Option<bool>,
}

impl Found {
    /// Returns a hit of a search.
    pub fn hit(hit: Hit) -> Found {
        let superseded = hit.superseded.as_ref().map(|superseded| superseded.sentence());
        Found {
            warning: superseded.or_else(|| hit.stale()),
            id: hit.id,
            kind: hit.kind,
            speaker: hit.speaker,
            author: hit.author,
            session: hit.session_id,
            time: hit.time,
            text: hit.text,
            important: None,
        }
    }

    /// Returns a memory of a list.
    pub fn listed(memory: Listed) -> Found {
        Found {
            id: memory.id,
            kind: memory.kind,
            speaker: memory.speaker,
            author: memory.author,
            session: memory.session_id,
            time: memory.time,
            text: memory.line,
            warning: None,
            important: Some(memory.important),
        }
    }
}

/// The state of the interactive search.
pub struct State {
    /// What the user typed.
    pub query: String,
    /// What was found.
    pub found: Vec<Found>,
    /// The place of the chosen memory in `found`.
    pub chosen: usize,
    /// The id of the memory that is open, and the memory as text.
    pub opened: Option<(String, String)>,
    /// The first line of the open memory that is shown.
    pub scrolled: usize,
    /// The line at the bottom: what was done, or what went wrong.
    pub said: Option<String>,
    /// The id of the memory that the user is asked about: whether it shall be forgotten.
    pub asks: Option<String>,
    /// Whether the answer to the question is not there yet.
    pub waits: bool,
    /// The words of the question.
    pub marks: Marks,
    /// Whether colours are shown.
    pub colour: bool,
    /// The present.
    pub now: Millis,
    number: u64,
    operation: Option<String>,
}

impl State {
    /// Returns the state at the beginning.
    pub fn new(query: String, now: Millis, colour: bool) -> State {
        State {
            marks: Marks::of(&query),
            query,
            found: Vec::new(),
            chosen: 0,
            opened: None,
            scrolled: 0,
            said: None,
            asks: None,
            waits: false,
            colour,
            now,
            number: 0,
            operation: None,
        }
    }

    /// Returns the task that searches for what was typed.
    pub fn search(&mut self) -> Task {
        self.number += 1;
        self.waits = true;
        self.marks = Marks::of(&self.query);
        Task::Search(self.number, self.query.clone())
    }

    /// Takes what was found for the question with this number. An older answer is dropped.
    pub fn take(&mut self, number: u64, found: Vec<Found>, notice: Option<String>) {
        if number != self.number {
            return;
        }
        let before = self.chosen().map(|chosen| chosen.id.clone());
        self.waits = false;
        self.asks = None;
        self.found = found;
        let same = self.found.iter().position(|found| Some(&found.id) == before.as_ref());
        // After a change, the list stays where it was; a new question begins at its best hit.
        self.chosen = same.filter(|_| self.said.is_some()).unwrap_or(0);
        if self.said.is_none() {
            self.said = notice.map(|notice| format!("Note: {notice}."));
        }
    }

    /// Shows an open memory.
    pub fn open(&mut self, id: String, text: String) {
        (self.opened, self.scrolled) = (Some((id, text)), 0);
    }

    /// Says what was changed. `operation` can be undone.
    pub fn changed(&mut self, said: String, operation: Option<String>) {
        (self.said, self.operation) = (Some(said), operation);
        if self.operation.is_some() {
            self.opened = None;
        }
    }

    /// Says what went wrong.
    pub fn fail(&mut self, message: &str) {
        self.waits = false;
        self.said = Some(format!("error: {message}"));
    }

    /// Returns the chosen memory.
    pub fn chosen(&self) -> Option<&Found> {
        self.found.get(self.chosen)
    }

    /// Returns what an event leads to, and changes the state.
    pub fn react(&mut self, event: &Event) -> Act {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Paste(text) => self.typed(text),
            _ => Act::Nothing,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Act {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Act::Leave;
        }
        if let Some(id) = self.asks.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Act::Run(Task::Forget(id)),
                _ => Act::Nothing,
            };
        }
        self.said = None;
        match (key.code, control) {
            (KeyCode::Esc, _) if self.opened.is_some() => {
                self.opened = None;
                Act::Nothing
            }
            (KeyCode::Esc, _) => Act::Leave,
            (KeyCode::Up, _) | (KeyCode::Char('p'), true) => self.moved(-1),
            (KeyCode::Down, _) | (KeyCode::Char('n'), true) => self.moved(1),
            (KeyCode::PageUp, _) => self.moved(-10),
            (KeyCode::PageDown, _) => self.moved(10),
            (KeyCode::Char('z'), true) => match self.operation.take() {
                Some(operation) => Act::Run(Task::Undo(operation)),
                None => {
                    self.said = Some("Nothing was forgotten here.".to_owned());
                    Act::Nothing
                }
            },
            (KeyCode::Enter, _) if self.opened.is_none() => self.on_shown(|id, _| Task::Open(id)),
            (KeyCode::Char('t'), true) => self.on_shown(|id, important| Task::Mark(id, !important)),
            (KeyCode::Char('d'), true) => {
                self.asks = self.shown_id();
                Act::Nothing
            }
            // An open memory covers the question.
            _ if self.opened.is_some() => Act::Nothing,
            (KeyCode::Char('u'), true) if !self.query.is_empty() => {
                self.query.clear();
                Act::Run(self.search())
            }
            (KeyCode::Char('w'), true) => {
                let kept = self.query.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.query.truncate(kept);
                Act::Run(self.search())
            }
            (KeyCode::Backspace, _) if self.query.pop().is_some() => Act::Run(self.search()),
            (KeyCode::Char(character), false) => self.typed(&character.to_string()),
            _ => Act::Nothing,
        }
    }

    fn typed(&mut self, text: &str) -> Act {
        self.query.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        Act::Run(self.search())
    }

    /// Returns the id of the memory that is open, or else of the chosen one.
    fn shown_id(&self) -> Option<String> {
        let opened = self.opened.as_ref().map(|(id, _)| id.clone());
        opened.or_else(|| self.chosen().map(|chosen| chosen.id.clone()))
    }

    /// Returns a task on the memory that is shown. The task gets its id, and whether it is known to be important.
    fn on_shown(&self, task: impl FnOnce(String, bool) -> Task) -> Act {
        let Some(id) = self.shown_id() else { return Act::Nothing };
        let known = self.found.iter().find(|found| found.id == id);
        Act::Run(task(id, known.is_some_and(|found| found.important == Some(true))))
    }

    /// Moves the choice, or the lines of an open memory.
    fn moved(&mut self, by: isize) -> Act {
        match &self.opened {
            Some((_, text)) => {
                let last = text.lines().count().saturating_sub(1);
                self.scrolled = self.scrolled.saturating_add_signed(by).min(last);
            }
            None => {
                let last = self.found.len().saturating_sub(1);
                self.chosen = self.chosen.saturating_add_signed(by).min(last);
            }
        }
        Act::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, code: KeyCode, modifiers: KeyModifiers) -> Act {
        state.react(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    fn found(id: &str) -> Found {
        Found { id: id.to_owned(), ..Found::default() }
    }

    #[test]
    fn every_letter_searches_and_only_the_latest_answer_counts() {
        let mut state = State::new(String::new(), 0, false);
        assert_eq!(state.search(), Task::Search(1, String::new()));
        for (number, letter) in [(2, 'q'), (3, 'u')] {
            let act = press(&mut state, KeyCode::Char(letter), KeyModifiers::NONE);
            assert_eq!(act, Act::Run(Task::Search(number, state.query.clone())));
        }
        state.take(2, vec![found("old")], None);
        assert!(state.found.is_empty() && state.waits, "the answer to `q` is late");
        state.take(3, vec![found("a"), found("b")], None);
        assert_eq!(press(&mut state, KeyCode::Down, KeyModifiers::NONE), Act::Nothing);
        assert_eq!(press(&mut state, KeyCode::PageDown, KeyModifiers::NONE), Act::Nothing);
        let act = press(&mut state, KeyCode::Enter, KeyModifiers::NONE);
        assert_eq!(act, Act::Run(Task::Open("b".to_owned())), "the choice ends at the last");
        assert_eq!(
            press(&mut state, KeyCode::Backspace, KeyModifiers::NONE),
            Act::Run(Task::Search(4, "q".into()))
        );
    }

    #[test]
    fn nothing_is_forgotten_without_a_second_key_and_it_can_be_undone() {
        let mut state = State::new("quince".to_owned(), 0, false);
        state.search();
        state.take(1, vec![found("a")], None);
        let forget = |state: &mut State| press(state, KeyCode::Char('d'), KeyModifiers::CONTROL);
        assert_eq!(forget(&mut state), Act::Nothing);
        assert_eq!(press(&mut state, KeyCode::Char('n'), KeyModifiers::NONE), Act::Nothing);
        assert_eq!(state.query, "quince", "the answer is no part of the question");
        assert_eq!(forget(&mut state), Act::Nothing);
        let act = press(&mut state, KeyCode::Char('y'), KeyModifiers::NONE);
        assert_eq!(act, Act::Run(Task::Forget("a".to_owned())));
        // Later results don't change what was asked about.
        assert_eq!(forget(&mut state), Act::Nothing);
        state.take(1, vec![found("b")], None);
        assert_eq!(
            press(&mut state, KeyCode::Char('y'), KeyModifiers::NONE),
            Act::Run(Task::Search(2, "quincey".to_owned()))
        );
        state.open("a".to_owned(), "text".to_owned());
        assert_eq!(forget(&mut state), Act::Nothing);
        let act = press(&mut state, KeyCode::Char('y'), KeyModifiers::NONE);
        assert_eq!(act, Act::Run(Task::Forget("a".to_owned())), "the open memory, not the chosen one");
        state.changed("Forgotten.".to_owned(), Some("f1".to_owned()));
        let undo = |state: &mut State| press(state, KeyCode::Char('z'), KeyModifiers::CONTROL);
        assert_eq!(undo(&mut state), Act::Run(Task::Undo("f1".to_owned())));
        assert_eq!(undo(&mut state), Act::Nothing);
    }

    #[test]
    fn escape_closes_what_is_open_first() {
        let mut state = State::new(String::new(), 0, false);
        state.open("a".to_owned(), "one\ntwo".to_owned());
        assert_eq!(press(&mut state, KeyCode::Char('x'), KeyModifiers::NONE), Act::Nothing);
        press(&mut state, KeyCode::PageDown, KeyModifiers::NONE);
        assert_eq!((state.scrolled, state.query.as_str()), (1, ""));
        assert_eq!(press(&mut state, KeyCode::Esc, KeyModifiers::NONE), Act::Nothing);
        assert_eq!(press(&mut state, KeyCode::Esc, KeyModifiers::NONE), Act::Leave);
    }
}
