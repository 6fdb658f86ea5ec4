-- Threads, which are conversations of a session with one assistant: the blocks of a prompt, the files that the assistant
-- has, the turns, and the texts that were sent. Triggers keep this true whatever program writes: what quotes a purged
-- message is removed with it, and a text is removed with the last thread that needs it.

-- `epoch` is the number of the current epoch, `turns` the number of turns in all epochs, `window` the context window for
-- which the last prompt was made, `rules` the version of the rules that redacted its files, `context` the paths that
-- callers named as context, as a JSON array.
CREATE TABLE threads (
    seq       INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    assistant TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    turns     INTEGER NOT NULL,
    is_fixed  INTEGER NOT NULL,
    window    INTEGER NOT NULL,
    rules     INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    updated   INTEGER NOT NULL,
    context   TEXT NOT NULL,
    UNIQUE (session, assistant)
) STRICT;

-- Texts of blocks and copies of files, by the first 16 bytes of their BLAKE3 hash. `body` is compressed (zlib); it is NULL
-- if it was removed to save space. `length` is the length of the text, `bytes` that of the body.
CREATE TABLE blobs (
    seq    INTEGER PRIMARY KEY,
    owner  TEXT NOT NULL,
    hash   BLOB NOT NULL,
    length INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    body   BLOB,
    UNIQUE (owner, hash)
) STRICT;
CREATE INDEX blobs_by_size ON blobs (owner, bytes);

-- The blocks of the current epoch of each thread, in order. The text is that of a memory or of a blob.
CREATE TABLE thread_blocks (
    thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    place  INTEGER NOT NULL,
    turn   INTEGER NOT NULL,
    part   TEXT NOT NULL,
    path   TEXT,
    tokens INTEGER NOT NULL,
    memory INTEGER REFERENCES memories ON DELETE CASCADE,
    blob   INTEGER REFERENCES blobs,
    PRIMARY KEY (thread, place),
    CHECK ((memory IS NULL) <> (blob IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_blocks_by_memory ON thread_blocks (memory) WHERE memory IS NOT NULL;
CREATE INDEX thread_blocks_by_blob ON thread_blocks (blob) WHERE blob IS NOT NULL;

-- The ledger: the files of each thread. `size` and the next three columns are NULL if the file had just changed when it was
-- read; `ctime` counts from `mtime`, both in nanoseconds. `sent` is NULL if it equals `raw`.
CREATE TABLE thread_files (
    thread     INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    path       TEXT NOT NULL,
    is_inline  INTEGER NOT NULL,
    is_removed INTEGER NOT NULL,
    size       INTEGER,
    mtime      INTEGER,
    ctime      INTEGER,
    inode      INTEGER,
    raw        BLOB NOT NULL,
    sent       BLOB,
    tokens     INTEGER NOT NULL,
    PRIMARY KEY (thread, path)
) STRICT, WITHOUT ROWID;

-- Copies of files that no block of their thread has: of such a file, only the changes were sent.
CREATE TABLE thread_copies (
    blob   INTEGER NOT NULL REFERENCES blobs,
    thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    PRIMARY KEY (blob, thread)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_copies_by_thread ON thread_copies (thread);

-- The turns of each thread in all epochs, and what each cost, in tokens and in millionths of a US dollar. A repeated call
-- is answered from the receipt.
CREATE TABLE thread_turns (
    thread   INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    call     TEXT NOT NULL,
    question INTEGER REFERENCES memories ON DELETE SET NULL,
    answer   INTEGER REFERENCES memories ON DELETE SET NULL,
    model    TEXT NOT NULL,
    time     INTEGER NOT NULL,
    prompt   INTEGER NOT NULL,
    appended INTEGER NOT NULL,
    whole    INTEGER NOT NULL,
    input    INTEGER NOT NULL,
    cached   INTEGER NOT NULL,
    output   INTEGER NOT NULL,
    micros   INTEGER NOT NULL,
    receipt  TEXT,
    PRIMARY KEY (thread, number),
    UNIQUE (thread, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_turns_by_question ON thread_turns (question) WHERE question IS NOT NULL;
CREATE INDEX thread_turns_by_answer ON thread_turns (answer) WHERE answer IS NOT NULL;

-- How many tokens contents have, by the first 16 bytes of their BLAKE3 hash. Only the last ones noted are kept.
CREATE TABLE file_tokens (
    seq    INTEGER PRIMARY KEY,
    owner  TEXT NOT NULL,
    hash   BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    UNIQUE (owner, hash)
) STRICT;

-- A receipt may quote both messages.
CREATE TRIGGER quoted_message_removed BEFORE DELETE ON memories BEGIN
    UPDATE thread_turns SET receipt = NULL WHERE question = OLD.seq OR answer = OLD.seq;
END;

-- So may the notes that quote earlier turns, or the exchanges of other assistants in the session.
CREATE TRIGGER quoted_message_forgotten AFTER UPDATE OF tombstoned_at ON memories
WHEN NEW.tombstoned_at IS NOT NULL AND OLD.tombstoned_at IS NULL AND NEW.kind = 'message' BEGIN
    DELETE FROM thread_blocks WHERE part = 'opening'
        AND thread IN (SELECT seq FROM threads WHERE session = NEW.session)
        AND EXISTS (SELECT 1 FROM thread_turns WHERE question = NEW.seq
            UNION ALL SELECT 1 FROM thread_turns WHERE answer = NEW.seq);
END;

CREATE TRIGGER block_removed AFTER DELETE ON thread_blocks WHEN OLD.blob IS NOT NULL BEGIN
    DELETE FROM blobs WHERE seq = OLD.blob AND NOT EXISTS (SELECT 1 FROM thread_blocks WHERE blob = OLD.blob)
        AND NOT EXISTS (SELECT 1 FROM thread_copies WHERE blob = OLD.blob);
END;

CREATE TRIGGER copy_removed AFTER DELETE ON thread_copies BEGIN
    DELETE FROM blobs WHERE seq = OLD.blob AND NOT EXISTS (SELECT 1 FROM thread_blocks WHERE blob = OLD.blob)
        AND NOT EXISTS (SELECT 1 FROM thread_copies WHERE blob = OLD.blob);
END;
