//! BM25 for words whose documents were counted before the query.
//!
//! In every query, the function `bm25()` of FTS5 reads the list of each word's documents once more to count them.
//! Counting them takes half of the time of a search in 100,000 documents. The store already has these counts, so
//! `counted_bm25` takes the weight of each word as an argument. Otherwise it computes the formula of FTS5
//! (<https://sqlite.org/fts5.html#the_bm25_function>), in which the frequency of a word is weighted by column.
//!
//! FTS5 accepts ranking functions only through a C interface
//! (<https://sqlite.org/fts5.html#custom_auxiliary_functions>), so this file contains the `unsafe` code of the store.

use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::{Connection, ffi};

use crate::error::Result;
use tiro_store::tuning::{BM25_B, BM25_K1, COLUMNS};

/// Returns the SQL expression that calls the ranking function for a query. If `words` is `None`, it calls FTS5's own
/// function. Otherwise, `words` has, for each word of the query in order, the number that identifies the word, and the
/// weight of the word. A word with the weight 0 is skipped. If several words have the same number, only one word
/// counts. Numbers are at most 63.
pub(super) fn by(words: Option<&[(usize, f64)]>) -> String {
    match words {
        None => format!("bm25({})", COLUMNS.map(|weight| weight.to_string()).join(", ")),
        Some(words) => {
            let words: Vec<String> =
                words.iter().map(|(number, weight)| format!("{number}, {weight}")).collect();
            format!("counted_bm25({})", words.join(", "))
        }
    }
}

/// Adds the function `counted_bm25` to a connection.
#[expect(unsafe_code, reason = "FTS5 hands out its interface by a pointer")]
pub(crate) fn add_to(connection: &Connection) -> Result<()> {
    let failed = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    let mut api: *mut ffi::fts5_api = ptr::null_mut();
    // SAFETY: the handle lives as long as `connection`; the statement is finalized on every path; `api` is
    // written while the statement runs and outlives it, and FTS5 keeps the interface that `api` points to as
    // long as the connection is open. The function has no data and no destructor.
    let code = unsafe {
        let handle = connection.handle();
        let mut statement: *mut ffi::sqlite3_stmt = ptr::null_mut();
        let sql = c"SELECT fts5(?1)".as_ptr();
        let mut code = ffi::sqlite3_prepare_v2(handle, sql, -1, &mut statement, ptr::null_mut());
        if code == ffi::SQLITE_OK {
            let out = ptr::from_mut(&mut api).cast::<c_void>();
            code = ffi::sqlite3_bind_pointer(statement, 1, out, c"fts5_api_ptr".as_ptr(), None);
            if code == ffi::SQLITE_OK {
                ffi::sqlite3_step(statement);
            }
        }
        ffi::sqlite3_finalize(statement);
        match api.as_ref().and_then(|api| api.xCreateFunction) {
            Some(create) if code == ffi::SQLITE_OK => {
                create(api, c"counted_bm25".as_ptr(), ptr::null_mut(), Some(counted_bm25), None)
            }
            _ if code == ffi::SQLITE_OK => ffi::SQLITE_ERROR,
            _ => code,
        }
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(failed(code).into()) }
}

/// Computes the score of one row. A lower score is better, as FTS5 expects.
#[expect(unsafe_code, reason = "FTS5 calls it")]
unsafe extern "C" fn counted_bm25(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    answer: *mut ffi::sqlite3_context,
    count: c_int,
    words: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: FTS5 passes its interface, a row, a place for the result, and `count` values, all of which live
    // until this function returns. Each word has two values.
    unsafe {
        let Some(api) = api.as_ref() else { return };
        let word = |place: c_int| {
            let of = words.add(2 * place as usize);
            (ffi::sqlite3_value_int(*of), ffi::sqlite3_value_double(*of.add(1)))
        };
        match score(api, row, count / 2, word) {
            Ok(score) => ffi::sqlite3_result_double(answer, -score),
            Err(code) => ffi::sqlite3_result_error_code(answer, code),
        }
    }
}

/// Returns the score of a row for `count` words. `word` returns the numbers and weights of the words. If the index
/// can't be read, or if reading was interrupted, the error is SQLite's error code.
///
/// # Safety
///
/// `row` must be a row that FTS5 passed together with `api`.
#[expect(unsafe_code, reason = "FTS5 answers through pointers")]
unsafe fn score(
    api: &ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    count: c_int,
    word: impl Fn(c_int) -> (c_int, f64),
) -> Result<f64, c_int> {
    let is_ok = |code: c_int| if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) };
    let (Some(column_size), Some(total_size), Some(row_count)) =
        (api.xColumnSize, api.xColumnTotalSize, api.xRowCount)
    else {
        return Err(ffi::SQLITE_MISUSE);
    };
    let (Some(phrase_count), Some(phrase_first), Some(phrase_next)) =
        (api.xPhraseCount, api.xPhraseFirst, api.xPhraseNext)
    else {
        return Err(ffi::SQLITE_MISUSE);
    };
    let (mut own, mut all, mut rows) = (0, 0, 0);
    let mut score = 0.0;
    let mut seen = 0_u64;
    // SAFETY: the caller promises that `row` belongs to `api`; FTS5 writes only to variables on the stack.
    unsafe {
        is_ok(column_size(row, -1, &mut own))?;
        is_ok(total_size(row, -1, &mut all))?;
        is_ok(row_count(row, &mut rows))?;
        let length = f64::from(own) * rows.max(1) as f64 / all.max(1) as f64;
        for place in 0..count.min(phrase_count(row)) {
            let (number, weight) = word(place);
            let bit = 1_u64.wrapping_shl(number as u32);
            if weight == 0.0 || seen & bit != 0 {
                continue;
            }
            let mut at = ffi::Fts5PhraseIter { a: ptr::null(), b: ptr::null() };
            let (mut column, mut offset) = (0, 0);
            let mut frequency = 0.0;
            is_ok(phrase_first(row, place, &mut at, &mut column, &mut offset))?;
            while let Some(counts) = usize::try_from(column).ok().and_then(|column| COLUMNS.get(column)) {
                frequency += counts;
                phrase_next(row, &mut at, &mut column, &mut offset);
            }
            if frequency > 0.0 {
                seen |= bit;
                score += weight * frequency * (BM25_K1 + 1.0)
                    / (frequency + BM25_K1 * (1.0 - BM25_B + BM25_B * length));
            }
        }
    }
    Ok(score)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_store::decide::words::weight;

    /// Returns an index of texts about lanterns and plums.
    fn index() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../../../migrations/0001_memories.sql")).unwrap();
        add_to(&connection).unwrap();
        for number in 0..60_usize {
            let text =
                ["plum "; 3].concat() + &"lantern ".repeat(1 + number % 4) + &"of glass ".repeat(number % 7);
            let text = if number % 3 == 0 { text } else { format!("a quince {number}") };
            let insert = "INSERT INTO text_index (rowid, speaker, header, text) VALUES (?1, 'plum', ?2, ?3)";
            connection.execute(insert, (number as i64, format!("lantern {number}"), text)).unwrap();
        }
        connection
    }

    fn ranked(connection: &Connection, query: &str, by: &str) -> Vec<(i64, f64)> {
        let sql = "SELECT rowid, rank FROM text_index WHERE text_index MATCH ?1 AND rank MATCH ?2 ORDER BY rank, rowid";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map((query, by), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_score_is_that_of_fts5_where_the_documents_were_counted() {
        let connection = index();
        for words in [&["quince"][..], &["glass", "quince"], &["of glass", "lantern", "nothing", "7"]] {
            let query = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
            let with = |word: &&str| -> i64 {
                let sql = "SELECT count(*) FROM text_index WHERE text_index MATCH ?1";
                connection.query_row(sql, [format!("\"{word}\"")], |row| row.get(0)).unwrap()
            };
            let weigh = |(number, word)| (number, weight(60, with(word)));
            let weights: Vec<_> = words.iter().enumerate().map(weigh).collect();
            let (own, theirs) =
                (ranked(&connection, &query, &by(Some(&weights))), ranked(&connection, &query, &by(None)));
            assert!(own.len() > 10, "{query}");
            assert_eq!(own.len(), theirs.len());
            for (own, theirs) in own.iter().zip(&theirs) {
                assert!(own.0 == theirs.0 && (own.1 - theirs.1).abs() < 1e-9, "{query}: {own:?} {theirs:?}");
            }
        }
    }

    #[test]
    fn a_word_that_the_query_has_twice_counts_once() {
        let connection = index();
        let once = ranked(&connection, "glass OR 7", &by(Some(&[(0, 1.5), (1, 2.0)])));
        let twice = ranked(
            &connection,
            "(glass AND 9999) OR (glass OR 7)",
            &by(Some(&[(0, 1.5), (2, 9.0), (0, 1.5), (1, 2.0)])),
        );
        assert_eq!(once, twice);
        assert_ne!(once, ranked(&connection, "glass OR 7", &by(Some(&[(0, 0.0), (1, 2.0)]))), "it counts");
    }

    #[test]
    fn a_query_with_more_or_fewer_words_than_weights_is_no_error() {
        let connection = index();
        for by in [
            "counted_bm25()",
            "counted_bm25(0)",
            "counted_bm25(0, 1.0, 1, 1.0, 2, 1.0)",
            "counted_bm25(-1, 'x')",
        ] {
            assert_eq!(ranked(&connection, "glass", by).len(), 17, "{by}");
        }
    }
}
