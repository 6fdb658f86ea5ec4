//! The entry of a posting: the group of a document, how many words the document has, and where a stem stands in it.
//!
//! One value has all, because a search reads ten thousands of postings, and each further column takes time. The first
//! byte is the number of the group, the next three are the number of words, and every two further ones are a place: the
//! column in the upper bits, and the number of the word in this column in the lower ones.

/// How many bits of a place are for the number of the word in its column. The column is in the bits above.
pub(crate) const PLACE_BITS: u32 = 14;

/// The places of words with a greater number are not stored. The last number is left out, so that the place after a
/// stored place is never in the next column. Arbitrary: a chunk has about 300 tokens.
const LAST_WORD: usize = (1 << PLACE_BITS) - 2;

/// How many places are stored. Arbitrary: further ones would change the score by less than 1%, and a row of an index of
/// PostgreSQL must be short.
const MOST_PLACES: usize = 256;

/// The greatest number of words that is stored. Arbitrary: it is the greatest number of three bytes.
const MOST_WORDS: u32 = (1 << 24) - 1;

/// The bytes before the places.
const HEAD: usize = 4;

/// Adds the place of the word with the number `word` to `places`, if there is room.
pub(crate) fn add_place(places: &mut Vec<u8>, column: u16, word: usize) {
    if word <= LAST_WORD && places.len() < 2 * MOST_PLACES {
        places.extend((column << PLACE_BITS | word as u16).to_be_bytes());
    }
}

/// Returns the entry of a document of the group `facet` with so many words, in which a stem stands at `places`.
pub(crate) fn encode(facet: i16, words: u32, places: &[u8]) -> Vec<u8> {
    let head = (facet as u32) << 24 | words.min(MOST_WORDS);
    [&head.to_be_bytes(), places].concat()
}

/// Returns the group, the number of words and the places of an entry.
pub(crate) fn decode(entry: &[u8]) -> (i16, u32, impl Iterator<Item = u16>) {
    let head = u32::from_be_bytes(entry.first_chunk::<HEAD>().copied().unwrap_or_default());
    let places = entry.get(HEAD..).unwrap_or_default().chunks_exact(2);
    let places = places.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    ((head >> 24) as i16, head & MOST_WORDS, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_decoded_as_it_was_encoded() {
        let mut places = Vec::new();
        add_place(&mut places, 0, 7);
        add_place(&mut places, 3, LAST_WORD);
        add_place(&mut places, 3, LAST_WORD + 1);
        let entry = encode(5, 70_000, &places);
        let (facet, words, places) = decode(&entry);
        let expected = [7, 3 << PLACE_BITS | LAST_WORD as u16];
        assert_eq!((facet, words, places.collect::<Vec<_>>()), (5, 70_000, expected.to_vec()));
        let mut many = Vec::new();
        (0..1000).for_each(|word| add_place(&mut many, 1, word));
        assert_eq!(encode(0, u32::MAX, &many).len(), HEAD + 2 * MOST_PLACES);
        assert_eq!(decode(&encode(0, u32::MAX, &many)).1, MOST_WORDS);
        assert_eq!(decode(&[]).2.count(), 0);
    }
}
