//! Computes stems of words with the tokenizer of the text index, and caches counts of documents.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::error::Result;

/// Cached counts of documents by stem and by word, and the tokenizer that stems words.
#[derive(Default)]
pub(crate) struct CommonTerms {
    pub(super) documents_by_stem: HashMap<String, i64>,
    pub(super) documents_by_word: HashMap<String, i64>,
    pub(super) read_at: i64,
    stemmer: Option<Connection>,
}

impl CommonTerms {
    /// Returns the stems of each of `terms`, as computed by the tokenizer of the index. To compute the stems, the terms
    /// are inserted into a temporary index, which is rolled back afterwards.
    pub(super) fn stems(&mut self, terms: &[&String]) -> Result<Vec<Vec<String>>> {
        if self.stemmer.is_none() {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(
                "CREATE VIRTUAL TABLE words USING fts5 (
                     text, content = '', contentless_delete = 1,
                     tokenize = 'porter unicode61 remove_diacritics 2'
                 );
                 CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance);",
            )?;
            self.stemmer = Some(connection);
        }
        let connection = self.stemmer.as_mut().expect("made above");
        let transaction = connection.transaction()?;
        let mut stems = vec![Vec::new(); terms.len()];
        {
            let mut insert = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
            for (place, term) in terms.iter().enumerate() {
                insert.execute((place as i64, term))?;
            }
            let mut select =
                transaction.prepare_cached("SELECT doc, term FROM stems ORDER BY doc, offset")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                stems[row.get::<_, i64>(0)? as usize].push(row.get(1)?);
            }
        }
        transaction.rollback()?;
        Ok(stems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stemmed_as_the_index_does_it_and_nothing_is_kept() {
        let mut common = CommonTerms::default();
        let words = ["running", "Größe", "x", "no colors"].map(str::to_owned);
        let terms: Vec<&String> = words.iter().collect();
        let expected: [&[&str]; 4] = [&["run"], &["groß"], &["x"], &["no", "color"]];
        assert_eq!(common.stems(&terms).unwrap(), expected);
        assert_eq!(common.stems(&terms[..1]).unwrap(), [["run"]]);
    }
}
