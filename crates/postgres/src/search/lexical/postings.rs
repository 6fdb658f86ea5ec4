//! Reads which documents contain words and phrases.

use std::collections::HashMap;

use super::rank::{Occurrence, frequency, phrase};
use crate::error::Result;
use crate::search::entry::decode;
use crate::search::vocabulary::Sizes;
use crate::transactions::Transaction;
use tiro_text::words::{Term, stems};

/// The documents that contain forms of terms, read so far.
pub(super) struct Postings<'a> {
    tx: &'a Transaction,
    sizes: &'a Sizes,
    /// How many documents contain each stem.
    counts: &'a HashMap<String, i64>,
    found: HashMap<String, Vec<Occurrence>>,
}

impl<'a> Postings<'a> {
    /// Returns postings, of which none is read yet.
    pub fn new(tx: &'a Transaction, sizes: &'a Sizes, counts: &'a HashMap<String, i64>) -> Postings<'a> {
        Postings { tx, sizes, counts, found: HashMap::new() }
    }

    /// Reads the documents that contain `terms`, unless they are read already.
    pub async fn read(&mut self, terms: Vec<&Term>) -> Result<()> {
        // The forms that are a word or a phrase, with their stems.
        let mut words: Vec<(String, String)> = Vec::new();
        let mut phrases: Vec<(String, Vec<String>)> = Vec::new();
        for form in terms.iter().flat_map(|term| term.forms()) {
            if self.found.contains_key(form) {
                continue;
            }
            // A form without words is in no document.
            self.found.insert(form.clone(), Vec::new());
            let mut stems = stems(form);
            match stems.len() {
                0 => {}
                1 => words.extend(stems.pop().map(|stem| (form.clone(), stem))),
                _ => phrases.push((form.clone(), stems)),
            }
        }
        self.read_words(words).await?;
        for (form, stems) in phrases {
            let found = self.phrase(&stems).await?;
            self.found.insert(form, found);
        }
        Ok(())
    }

    /// Returns the documents that were read for a form of a term.
    pub fn of(&self, term: &Term, form: usize) -> &[Occurrence] {
        term.forms().get(form).and_then(|form| self.found.get(form)).map_or(&[], Vec::as_slice)
    }

    /// Reads the documents of words, each with its stem. They come as arrays, because a common word has many.
    async fn read_words(&mut self, words: Vec<(String, String)>) -> Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        let (forms, stems): (Vec<String>, Vec<String>) = words.into_iter().unzip();
        let sql =
            "SELECT w.place, p.chunks, p.entries FROM unnest($2::text[]) WITH ORDINALITY w (stem, place)
            CROSS JOIN LATERAL (
                SELECT array_agg(p.chunk) AS chunks, array_agg(p.entry) AS entries
                FROM postings p WHERE p.owner = ANY ($1) AND p.stem = w.stem) p
            WHERE p.chunks IS NOT NULL";
        for row in &self.tx.rows(sql, &[&self.tx.seen.parts, &stems]).await? {
            let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or_default();
            let (chunks, entries): (Vec<i64>, Vec<&[u8]>) = (row.try_get(1)?, row.try_get(2)?);
            let found = chunks.into_iter().zip(entries).map(|(chunk, entry)| {
                let (facet, words, places) = decode(entry);
                self.occurrence(chunk, facet, words, places)
            });
            let found = found.collect();
            self.found.insert(forms[place].clone(), found);
        }
        Ok(())
    }

    /// Returns the documents that contain a phrase. Begins with those that contain its rarest word.
    async fn phrase(&self, stems: &[String]) -> Result<Vec<Occurrence>> {
        let count = |stem: &&String| self.counts.get(*stem).copied().unwrap_or_default();
        let Some(rarest) = stems.iter().min_by_key(count) else { return Ok(Vec::new()) };
        let sql = "SELECT r.chunk, array_agg(p.entry ORDER BY w.place)
            FROM postings r CROSS JOIN unnest($3::text[]) WITH ORDINALITY w (stem, place)
            JOIN postings p ON p.owner = r.owner AND p.stem = w.stem AND p.chunk = r.chunk
            WHERE r.owner = ANY ($1) AND p.owner = ANY ($1) AND r.stem = $2 GROUP BY r.chunk";
        let mut found = Vec::new();
        for row in &self.tx.rows(sql, &[&self.tx.seen.parts, rarest, &stems]).await? {
            let entries: Vec<&[u8]> = row.try_get(1)?;
            if entries.len() == stems.len() {
                let words: Vec<Vec<u16>> = entries.iter().map(|entry| decode(entry).2.collect()).collect();
                let begins = phrase(&words);
                if !begins.is_empty() {
                    let (facet, words, _) = decode(entries[0]);
                    found.push(self.occurrence(row.try_get(0)?, facet, words, begins.into_iter()));
                }
            }
        }
        Ok(found)
    }

    fn occurrence(
        &self,
        chunk: i64,
        facet: i16,
        words: u32,
        places: impl Iterator<Item = u16>,
    ) -> Occurrence {
        let (frequency, own) = frequency(places);
        Occurrence { chunk, facet, length: self.sizes.length(words), frequency, own }
    }
}
