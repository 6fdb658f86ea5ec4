//! Extracts the text of Jupyter notebooks: cells and their output.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Extracted, Fault, Note, Text};

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Lines,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    /// What a program printed.
    #[serde(default)]
    text: Lines,
    /// A result in several forms, by media type.
    #[serde(default)]
    data: BTreeMap<String, Box<RawValue>>,
    /// The name and the message of an error.
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
}

/// A text, either as one string or as a list of lines with their line feeds.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Each(Vec<String>),
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::Each(Vec::new())
    }
}

impl Lines {
    fn text(self) -> String {
        match self {
            Lines::Whole(text) => text,
            Lines::Each(lines) => lines.concat(),
        }
    }
}

/// Returns the text of a notebook.
pub(super) fn text(bytes: &[u8]) -> Result<Extracted, Fault> {
    let notebook: Notebook = serde_json::from_slice(bytes).map_err(|_| Fault::Malformed)?;
    let mut text = Text::default();
    let mut images = 0;
    for cell in notebook.cells {
        text.begin(&cell.cell_type)?;
        text.push(&cell.source.text())?;
        for mut output in cell.outputs {
            images += output.data.keys().filter(|kind| kind.starts_with("image/")).count();
            let plain = output.data.remove("text/plain");
            let plain = plain.and_then(|plain| serde_json::from_str::<Lines>(plain.get()).ok());
            let error = match output.ename.as_str() {
                "" => String::new(),
                name => format!("{name}: {}", output.evalue),
            };
            let shown = output.text.text() + &plain.unwrap_or_default().text() + &error;
            if !shown.is_empty() {
                text.begin("output")?;
                text.push(&shown)?;
            }
        }
    }
    let notes = (images > 0).then_some(Note::ImagesLeftOut(images));
    Ok(Extracted { text: text.0 + "\n", notes: notes.into_iter().collect() })
}
