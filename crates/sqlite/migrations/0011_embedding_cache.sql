-- Embeddings that a provider made, by a keyed hash of their space and text, so that no text is paid for twice. The oldest
-- entries are removed when there are too many.
CREATE TABLE embedding_cache (
    seq       INTEGER PRIMARY KEY,
    owner     TEXT NOT NULL,
    key       BLOB NOT NULL,
    embedding BLOB NOT NULL,
    UNIQUE (owner, key)
) STRICT;
