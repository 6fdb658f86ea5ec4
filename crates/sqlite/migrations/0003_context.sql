-- What long conversations come down to: their segments, summaries of them, what is still to be made, answers made before.
-- Triggers keep it true whoever writes: what was made of a message doesn't outlive its being forgotten.

-- Grows with every change of an owner's memories.
CREATE TABLE versions (
    owner   TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The owner's version when the session changed last; and when its messages did, until that was worked off; and the last
-- ordinal it gave, which isn't given again where that message is purged.
ALTER TABLE sessions ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN grown INTEGER;
ALTER TABLE sessions ADD COLUMN last INTEGER NOT NULL DEFAULT -1;
UPDATE sessions SET grown = 0, last = coalesce((SELECT max(ordinal) FROM memories WHERE session = sessions.seq), -1);
CREATE INDEX sessions_grown ON sessions (owner, grown) WHERE grown IS NOT NULL;

-- What is shown whatever its age.
CREATE INDEX memories_important ON memories (session, ordinal) WHERE marked = 1 OR importance IS NOT NULL;

-- Runs of messages by ordinal, each beginning where the one before ended. Messages and tokens are those not forgotten.
CREATE TABLE segments (
    session  INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX segments_by_first ON segments (session, first);

-- Never changed: what is made anew of the same range is the next version.
CREATE TABLE summaries (
    seq         INTEGER PRIMARY KEY,
    owner       TEXT NOT NULL,
    id          TEXT NOT NULL,
    session     INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    segment     INTEGER,
    level       TEXT NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    messages    INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    quality     REAL NOT NULL,
    provenance  TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    source_hash BLOB NOT NULL,
    cited       TEXT NOT NULL,
    tokens      INTEGER NOT NULL,
    text        TEXT NOT NULL,
    UNIQUE (owner, id),
    UNIQUE (session, first, last, level, version)
) STRICT;

-- The memory that a session as a whole was summarised as, and up to which message; where more were said since, when it
-- is to be made anew.
CREATE TABLE conversations (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    memory  INTEGER NOT NULL UNIQUE REFERENCES memories ON DELETE CASCADE,
    last    INTEGER NOT NULL,
    made_at INTEGER NOT NULL,
    due     INTEGER
) STRICT;
CREATE INDEX conversations_by_due ON conversations (due) WHERE due IS NOT NULL;

-- Summaries that were asked for and are to be made by a provider.
CREATE TABLE summary_queue (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    session    INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    level      TEXT NOT NULL,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    provider   TEXT NOT NULL,
    by_user    INTEGER NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed')),
    holder     TEXT,
    expires    INTEGER NOT NULL DEFAULT 0,
    tries      INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL,
    error      TEXT,
    queued_at  INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    UNIQUE (session, first, last, level, provider)
) STRICT;
CREATE INDEX summary_queue_by_state ON summary_queue (state, by_user, seq);

-- Every time a summary was tried: by whom, at what cost in millionths of a dollar, with what success.
CREATE TABLE summary_attempts (
    seq           INTEGER PRIMARY KEY,
    session       INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    level         TEXT NOT NULL,
    first         INTEGER NOT NULL,
    last          INTEGER NOT NULL,
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros   INTEGER NOT NULL,
    took_ms       INTEGER NOT NULL,
    quality       REAL,
    error         TEXT,
    at            INTEGER NOT NULL
) STRICT;
CREATE INDEX summary_attempts_by_session ON summary_attempts (session);

-- Answers by the hash of what was asked and of the version of what they were made from.
CREATE TABLE context_cache (
    seq     INTEGER PRIMARY KEY,
    owner   TEXT NOT NULL,
    key     BLOB NOT NULL,
    expires INTEGER NOT NULL,
    used    INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    body    TEXT NOT NULL,
    UNIQUE (owner, key)
) STRICT;
CREATE INDEX context_cache_by_use ON context_cache (owner, used, bytes);

CREATE TABLE counters (
    owner TEXT NOT NULL,
    name  TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER memory_added AFTER INSERT ON memories BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner),
        grown = CASE WHEN NEW.ordinal IS NULL THEN grown ELSE (SELECT version FROM versions WHERE owner = NEW.owner) END,
        last = max(last, coalesce(NEW.ordinal, -1))
    WHERE seq = NEW.session;
END;

CREATE TRIGGER memory_changed AFTER UPDATE OF tombstoned_at, marked, importance ON memories BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner),
        grown = CASE WHEN NEW.ordinal IS NULL OR OLD.tombstoned_at IS NEW.tombstoned_at THEN grown
                     ELSE (SELECT version FROM versions WHERE owner = NEW.owner) END
    WHERE seq = NEW.session;
END;

CREATE TRIGGER message_left_or_came_back AFTER UPDATE OF tombstoned_at ON memories
WHEN NEW.ordinal IS NOT NULL AND (OLD.tombstoned_at IS NULL) <> (NEW.tombstoned_at IS NULL) BEGIN
    UPDATE segments SET messages = messages + iif(NEW.tombstoned_at IS NULL, 1, -1),
        tokens = tokens + iif(NEW.tombstoned_at IS NULL, NEW.tokens, -NEW.tokens)
    WHERE session = NEW.session AND last >= NEW.ordinal AND first =
        (SELECT first FROM segments WHERE session = NEW.session AND first <= NEW.ordinal ORDER BY first DESC LIMIT 1);
    DELETE FROM summaries WHERE session = NEW.session AND first <= NEW.ordinal AND last >= NEW.ordinal;
    DELETE FROM conversations WHERE session = NEW.session AND last >= NEW.ordinal;
END;

CREATE TRIGGER memory_removed AFTER DELETE ON memories BEGIN
    INSERT INTO versions (owner, version) VALUES (OLD.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = OLD.owner) WHERE seq = OLD.session;
END;

-- What is purged was forgotten before, and what was made of it left then.
CREATE TRIGGER message_removed AFTER DELETE ON memories WHEN OLD.ordinal IS NOT NULL AND OLD.tombstoned_at IS NULL BEGIN
    UPDATE segments SET messages = messages - 1, tokens = tokens - OLD.tokens
    WHERE session = OLD.session AND last >= OLD.ordinal AND first =
        (SELECT first FROM segments WHERE session = OLD.session AND first <= OLD.ordinal ORDER BY first DESC LIMIT 1);
    DELETE FROM summaries WHERE session = OLD.session AND first <= OLD.ordinal AND last >= OLD.ordinal;
    DELETE FROM conversations WHERE session = OLD.session AND last >= OLD.ordinal;
END;

-- The memory leaves with its place in the indexes.
CREATE TRIGGER conversation_removed AFTER DELETE ON conversations BEGIN
    INSERT INTO changes (chunk, change)
        SELECT c.seq, 'removed' FROM chunks c JOIN vectors v ON v.chunk = c.seq WHERE c.memory = OLD.memory;
    DELETE FROM text_index WHERE rowid IN (SELECT seq FROM chunks WHERE memory = OLD.memory);
    DELETE FROM operation_memories WHERE memory = OLD.memory;
    DELETE FROM memories WHERE seq = OLD.memory;
END;

CREATE TRIGGER summary_made AFTER INSERT ON summaries BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner) WHERE seq = NEW.session;
END;
