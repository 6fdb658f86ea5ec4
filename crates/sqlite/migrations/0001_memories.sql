-- Memories, what finds them again, and what happened to them. Times are milliseconds since 1970 UTC.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    seq      INTEGER PRIMARY KEY,
    owner    TEXT NOT NULL,
    name     TEXT NOT NULL,
    branch   TEXT,
    head_sha TEXT,
    UNIQUE (owner, name)
) STRICT;

CREATE TABLE memories (
    seq           INTEGER PRIMARY KEY,
    owner         TEXT NOT NULL,
    id            TEXT NOT NULL,
    kind          TEXT NOT NULL,
    provenance    TEXT NOT NULL,
    session       INTEGER REFERENCES sessions,
    ordinal       INTEGER,
    role          TEXT,
    speaker       TEXT,
    title         TEXT,
    topic         TEXT,
    source_id     TEXT,
    path          TEXT,
    branch        TEXT,
    head_sha      TEXT,
    time          INTEGER NOT NULL,
    stored_at     INTEGER NOT NULL,
    importance    REAL,
    marked        INTEGER NOT NULL DEFAULT 0,
    tombstoned_at INTEGER,
    tokens        INTEGER NOT NULL,
    text_hash     BLOB NOT NULL,
    text          TEXT NOT NULL,
    -- What the indexes hold of it, where that isn't the text.
    indexed       TEXT,
    UNIQUE (owner, id)
) STRICT;
CREATE INDEX memories_by_session ON memories (session, ordinal) WHERE session IS NOT NULL;
CREATE INDEX memories_by_kind ON memories (owner, kind, time);
CREATE INDEX memories_by_source ON memories (source_id) WHERE source_id IS NOT NULL;
CREATE INDEX memories_by_head ON memories (head_sha) WHERE head_sha IS NOT NULL;

CREATE TABLE memory_paths (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    path   TEXT NOT NULL,
    PRIMARY KEY (path, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_paths_by_memory ON memory_paths (memory);

CREATE TABLE memory_references (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    target TEXT NOT NULL,
    PRIMARY KEY (memory, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_references_by_target ON memory_references (target);

-- A commit that was rebased or picked is one memory with several ids.
CREATE TABLE commit_ids (
    owner  TEXT NOT NULL,
    sha    TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    PRIMARY KEY (owner, sha)
) STRICT, WITHOUT ROWID;
CREATE INDEX commit_ids_by_memory ON commit_ids (memory);

CREATE TABLE commit_parents (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    place  INTEGER NOT NULL,
    sha    TEXT NOT NULL,
    PRIMARY KEY (memory, place)
) STRICT, WITHOUT ROWID;

-- Byte ranges of a memory's text; each has one embedding.
CREATE TABLE chunks (
    seq        INTEGER PRIMARY KEY,
    memory     INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    UNIQUE (memory, ordinal)
) STRICT;

-- Embeddings as little-endian f16; a chunk without one is pending.
CREATE TABLE vectors (
    chunk     INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    space     TEXT NOT NULL,
    embedding BLOB NOT NULL
) STRICT;

CREATE TABLE pending (
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE
) STRICT;

-- What a cache of vectors has to catch up with.
CREATE TABLE changes (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk  INTEGER NOT NULL,
    change TEXT NOT NULL CHECK (change IN ('added', 'removed'))
) STRICT;

-- Keyed by chunk. The facets narrow, the header says when, the context is what stands around the chunk.
CREATE VIRTUAL TABLE text_index USING fts5 (
    facets, speaker, header, text, context,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE text_terms USING fts5vocab (text_index, row);

-- What forgetting did, so that it can be undone.
CREATE TABLE operations (
    id        TEXT PRIMARY KEY,
    owner     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    at        INTEGER NOT NULL,
    undone_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE operation_memories (
    operation TEXT NOT NULL REFERENCES operations ON DELETE CASCADE,
    memory    INTEGER NOT NULL,
    PRIMARY KEY (operation, memory)
) STRICT, WITHOUT ROWID;

-- Ids that were purged: an import must not bring them back.
CREATE TABLE purged (
    owner TEXT NOT NULL,
    id    TEXT NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far an import came.
CREATE TABLE imports (
    owner  TEXT NOT NULL,
    source TEXT NOT NULL,
    cursor TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (owner, source)
) STRICT, WITHOUT ROWID;
