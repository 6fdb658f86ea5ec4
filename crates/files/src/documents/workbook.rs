//! Extracts the text of workbooks: the values of all cells, with a line for each row.

use std::io::Cursor;

use calamine::{DataRef, Reader, Xlsx, XlsxError};

use super::{Extracted, Fault, Note, Text};

/// Returns the text of a workbook. A formula is shown by its last computed value.
pub(super) fn text(bytes: &[u8]) -> Result<Extracted, Fault> {
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|error| match error {
        XlsxError::Password => Fault::Encrypted,
        _ => Fault::Malformed,
    })?;
    let names = workbook.sheet_names();
    let mut text = Text::default();
    for name in &names {
        text.begin(&format!("sheet {name}"))?;
        let mut cells = match workbook.worksheet_cells_reader(name) {
            Ok(cells) => cells,
            // A sheet may be a chart.
            Err(XlsxError::NotAWorksheet(_)) => continue,
            Err(_) => return Err(Fault::Malformed),
        };
        let mut at: Option<(u32, u32)> = None;
        // Cells are read one at a time. A table of all cells would be huge if a single cell is far away from the
        // others.
        while let Some(cell) = cells.next_cell().map_err(|_| Fault::Malformed)? {
            let Some(value) = value(cell.get_value()) else { continue };
            let (row, column) = cell.get_position();
            let tabs = match at {
                Some((last, before)) if last == row => column.saturating_sub(before),
                Some(_) => {
                    text.push("\n")?;
                    column
                }
                None => column,
            };
            text.push(&"\t".repeat(tabs as usize))?;
            text.push(&value)?;
            at = Some((row, column));
        }
        text.push("\n")?;
    }
    Ok(Extracted { text: text.0, notes: vec![Note::Sheets(names.len())] })
}

fn value(value: &DataRef<'_>) -> Option<String> {
    let one_line = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    Some(match value {
        DataRef::Empty => return None,
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::Bool(bool) => bool.to_string(),
        DataRef::String(text) => one_line(text),
        DataRef::SharedString(text) => one_line(text),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => one_line(text),
        DataRef::DateTime(time) if time.is_duration() => format!("{} days", time.as_f64()),
        DataRef::DateTime(time) => match time.to_ymd_hms_milli() {
            (year, month, day, 0, 0, 0, _) => format!("{year:04}-{month:02}-{day:02}"),
            (year, month, day, hour, minute, second, _) => {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
            }
        },
        DataRef::Error(_) => "#error".to_owned(),
    })
}
