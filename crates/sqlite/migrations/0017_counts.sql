-- Counts that pages show, so that a page takes as long in a large store as in a small one. Triggers keep them, whatever
-- program writes. They are not kept when a row gets another owner; who does that counts anew (`sqlite/file/counts.rs`).
--
-- A day is the number of the day since 1970 (UTC).

-- The memories of a session that are not forgotten, their tokens, and the times of the first and the last of them.
ALTER TABLE sessions ADD COLUMN memories INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN first_time INTEGER;
ALTER TABLE sessions ADD COLUMN last_time INTEGER;

-- Of each kind and the day of their times: memories that are not forgotten, how many of these are derived, the bytes and
-- tokens of their texts, and memories that are forgotten.
CREATE TABLE memory_counts (
    owner     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    day       INTEGER NOT NULL,
    memories  INTEGER NOT NULL,
    derived   INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    PRIMARY KEY (owner, kind, day)
) STRICT, WITHOUT ROWID;

-- Memories that are not forgotten, by the time of the write that stored them.
CREATE TABLE stored_counts (
    owner     TEXT NOT NULL,
    stored_at INTEGER NOT NULL,
    memories  INTEGER NOT NULL,
    PRIMARY KEY (owner, stored_at)
) STRICT, WITHOUT ROWID;

-- Chunks with an embedding, chunks that wait for one, and outputs that were the same as a stored output.
CREATE TABLE owner_counts (
    owner    TEXT PRIMARY KEY,
    embedded INTEGER NOT NULL DEFAULT 0,
    pending  INTEGER NOT NULL DEFAULT 0,
    repeats  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Stashed memories with one topic and session that are not forgotten, their tokens, and when the last was stashed.
CREATE TABLE stash_groups (
    seq      INTEGER PRIMARY KEY,
    owner    TEXT NOT NULL,
    topic    TEXT,
    session  INTEGER,
    memories INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    last     INTEGER NOT NULL
) STRICT;
CREATE INDEX stash_groups_by_place ON stash_groups (owner, topic, session);

-- The session of the memory, for the index by group.
ALTER TABLE stashed ADD COLUMN session INTEGER;
UPDATE stashed SET session = (SELECT session FROM memories WHERE seq = stashed.memory);
DROP INDEX stashed_by_topic;
CREATE INDEX stashed_by_topic ON stashed (owner, topic, session, stashed_at DESC, memory);

CREATE INDEX memories_living_in_session ON memories (session, time)
    WHERE session IS NOT NULL AND tombstoned_at IS NULL;

UPDATE sessions SET (memories, tokens, first_time, last_time) = (
    SELECT count(*), coalesce(sum(m.tokens), 0), min(m.time), max(m.time) FROM memories m
    WHERE m.session = sessions.seq AND m.tombstoned_at IS NULL);
INSERT INTO memory_counts
    SELECT owner, kind, time / 86400000 - (time % 86400000 < 0), sum(tombstoned_at IS NULL),
        sum(tombstoned_at IS NULL AND provenance = 'derived'),
        sum(iif(tombstoned_at IS NULL, bytes, 0)), sum(iif(tombstoned_at IS NULL, tokens, 0)),
        sum(tombstoned_at IS NOT NULL)
    -- The limit keeps SQLite from sorting the texts themselves.
    FROM (SELECT owner, kind, time, tombstoned_at, provenance, tokens, octet_length(text) AS bytes
        FROM memories LIMIT -1) GROUP BY 1, 2, 3;
INSERT INTO stored_counts
    SELECT owner, stored_at, count(*) FROM memories WHERE tombstoned_at IS NULL GROUP BY 1, 2;
INSERT INTO owner_counts (owner, embedded, pending, repeats)
    SELECT owner, sum(embedded), sum(pending), sum(repeats) FROM (
        SELECT m.owner AS owner, count(*) AS embedded, 0 AS pending, 0 AS repeats FROM vectors v
            JOIN chunks c ON c.seq = v.chunk JOIN memories m ON m.seq = c.memory GROUP BY 1
        UNION ALL SELECT m.owner, 0, count(*), 0 FROM pending p
            JOIN chunks c ON c.seq = p.chunk JOIN memories m ON m.seq = c.memory GROUP BY 1
        UNION ALL SELECT m.owner, 0, 0, count(*) - count(DISTINCT r.memory) FROM repeats r
            JOIN memories m ON m.seq = r.memory GROUP BY 1)
    GROUP BY 1;
INSERT INTO stash_groups (owner, topic, session, memories, tokens, last)
    SELECT s.owner, s.topic, m.session, count(*), sum(m.tokens), max(s.stashed_at)
    FROM stashed s JOIN memories m ON m.seq = s.memory WHERE m.tombstoned_at IS NULL GROUP BY 1, 2, 3;

-- The order in which sessions are listed.
CREATE INDEX sessions_by_last ON sessions (owner, (coalesce(client, '') LIKE '% headless'), last_time DESC, name)
    WHERE memories > 0;

DROP TRIGGER memory_added;
CREATE TRIGGER memory_added AFTER INSERT ON memories BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner),
        grown = CASE WHEN NEW.ordinal IS NULL THEN grown ELSE (SELECT version FROM versions WHERE owner = NEW.owner) END,
        last = max(last, coalesce(NEW.ordinal, -1)),
        memories = memories + (NEW.tombstoned_at IS NULL),
        tokens = tokens + iif(NEW.tombstoned_at IS NULL, NEW.tokens, 0),
        first_time = iif(NEW.tombstoned_at IS NULL, min(coalesce(first_time, NEW.time), NEW.time), first_time),
        last_time = iif(NEW.tombstoned_at IS NULL, max(coalesce(last_time, NEW.time), NEW.time), last_time)
    WHERE seq = NEW.session;
    INSERT INTO memory_counts (owner, kind, day, memories, derived, bytes, tokens, forgotten)
        VALUES (NEW.owner, NEW.kind, NEW.time / 86400000 - (NEW.time % 86400000 < 0), NEW.tombstoned_at IS NULL,
            NEW.tombstoned_at IS NULL AND NEW.provenance = 'derived',
            iif(NEW.tombstoned_at IS NULL, octet_length(NEW.text), 0),
            iif(NEW.tombstoned_at IS NULL, NEW.tokens, 0), NEW.tombstoned_at IS NOT NULL)
        ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, derived = derived + excluded.derived,
            bytes = bytes + excluded.bytes, tokens = tokens + excluded.tokens, forgotten = forgotten + excluded.forgotten;
    INSERT INTO stored_counts (owner, stored_at, memories)
        SELECT NEW.owner, NEW.stored_at, 1 WHERE NEW.tombstoned_at IS NULL
        ON CONFLICT DO UPDATE SET memories = memories + 1;
END;

-- Once the memory is gone, its owner isn't known any more, so what is counted for its owner is removed before it.
CREATE TRIGGER memory_leaves BEFORE DELETE ON memories BEGIN
    DELETE FROM stashed WHERE memory = OLD.seq;
    DELETE FROM repeats WHERE memory = OLD.seq;
    DELETE FROM pending WHERE chunk IN (SELECT seq FROM chunks WHERE memory = OLD.seq);
    DELETE FROM vectors WHERE chunk IN (SELECT seq FROM chunks WHERE memory = OLD.seq);
END;
CREATE TRIGGER chunk_leaves BEFORE DELETE ON chunks BEGIN
    DELETE FROM pending WHERE chunk = OLD.seq;
    DELETE FROM vectors WHERE chunk = OLD.seq;
END;

CREATE TRIGGER memory_uncounted AFTER DELETE ON memories BEGIN
    UPDATE memory_counts SET memories = memories - (OLD.tombstoned_at IS NULL),
        derived = derived - (OLD.tombstoned_at IS NULL AND OLD.provenance = 'derived'),
        bytes = bytes - iif(OLD.tombstoned_at IS NULL, octet_length(OLD.text), 0),
        tokens = tokens - iif(OLD.tombstoned_at IS NULL, OLD.tokens, 0),
        forgotten = forgotten - (OLD.tombstoned_at IS NOT NULL)
        WHERE owner = OLD.owner AND kind = OLD.kind AND day = OLD.time / 86400000 - (OLD.time % 86400000 < 0);
    DELETE FROM memory_counts WHERE owner = OLD.owner AND kind = OLD.kind
        AND day = OLD.time / 86400000 - (OLD.time % 86400000 < 0) AND memories = 0 AND forgotten = 0;
    UPDATE stored_counts SET memories = memories - 1
        WHERE OLD.tombstoned_at IS NULL AND owner = OLD.owner AND stored_at = OLD.stored_at;
    DELETE FROM stored_counts WHERE owner = OLD.owner AND stored_at = OLD.stored_at AND memories = 0;
    UPDATE sessions SET memories = memories - 1, tokens = tokens - OLD.tokens,
        first_time = (SELECT min(m.time) FROM memories m WHERE m.session = OLD.session AND m.tombstoned_at IS NULL),
        last_time = (SELECT max(m.time) FROM memories m WHERE m.session = OLD.session AND m.tombstoned_at IS NULL)
        WHERE OLD.tombstoned_at IS NULL AND seq = OLD.session;
END;

CREATE TRIGGER memory_counted_anew AFTER UPDATE OF tombstoned_at, time, stored_at, session, tokens, text, kind, provenance
ON memories WHEN (OLD.tombstoned_at IS NULL) <> (NEW.tombstoned_at IS NULL) OR OLD.time <> NEW.time
    OR OLD.stored_at <> NEW.stored_at OR OLD.session IS NOT NEW.session OR OLD.tokens <> NEW.tokens
    OR octet_length(OLD.text) <> octet_length(NEW.text) OR OLD.kind <> NEW.kind OR OLD.provenance <> NEW.provenance
BEGIN
    UPDATE memory_counts SET memories = memories - (OLD.tombstoned_at IS NULL),
        derived = derived - (OLD.tombstoned_at IS NULL AND OLD.provenance = 'derived'),
        bytes = bytes - iif(OLD.tombstoned_at IS NULL, octet_length(OLD.text), 0),
        tokens = tokens - iif(OLD.tombstoned_at IS NULL, OLD.tokens, 0),
        forgotten = forgotten - (OLD.tombstoned_at IS NOT NULL)
        WHERE owner = NEW.owner AND kind = OLD.kind AND day = OLD.time / 86400000 - (OLD.time % 86400000 < 0);
    INSERT INTO memory_counts (owner, kind, day, memories, derived, bytes, tokens, forgotten)
        VALUES (NEW.owner, NEW.kind, NEW.time / 86400000 - (NEW.time % 86400000 < 0), NEW.tombstoned_at IS NULL,
            NEW.tombstoned_at IS NULL AND NEW.provenance = 'derived',
            iif(NEW.tombstoned_at IS NULL, octet_length(NEW.text), 0),
            iif(NEW.tombstoned_at IS NULL, NEW.tokens, 0), NEW.tombstoned_at IS NOT NULL)
        ON CONFLICT DO UPDATE SET memories = memories + excluded.memories, derived = derived + excluded.derived,
            bytes = bytes + excluded.bytes, tokens = tokens + excluded.tokens, forgotten = forgotten + excluded.forgotten;
    DELETE FROM memory_counts WHERE owner = NEW.owner AND kind = OLD.kind
        AND day = OLD.time / 86400000 - (OLD.time % 86400000 < 0) AND memories = 0 AND forgotten = 0;
    UPDATE stored_counts SET memories = memories - 1
        WHERE OLD.tombstoned_at IS NULL AND owner = NEW.owner AND stored_at = OLD.stored_at;
    INSERT INTO stored_counts (owner, stored_at, memories)
        SELECT NEW.owner, NEW.stored_at, 1 WHERE NEW.tombstoned_at IS NULL
        ON CONFLICT DO UPDATE SET memories = memories + 1;
    DELETE FROM stored_counts WHERE owner = NEW.owner AND stored_at = OLD.stored_at AND memories = 0;
    UPDATE sessions SET memories = memories - 1, tokens = tokens - OLD.tokens
        WHERE OLD.tombstoned_at IS NULL AND seq = OLD.session;
    UPDATE sessions SET memories = memories + 1, tokens = tokens + NEW.tokens
        WHERE NEW.tombstoned_at IS NULL AND seq = NEW.session;
    UPDATE sessions SET
        first_time = (SELECT min(m.time) FROM memories m WHERE m.session = sessions.seq AND m.tombstoned_at IS NULL),
        last_time = (SELECT max(m.time) FROM memories m WHERE m.session = sessions.seq AND m.tombstoned_at IS NULL)
        WHERE seq IN (OLD.session, NEW.session);
END;

CREATE TRIGGER vector_replaced BEFORE INSERT ON vectors WHEN EXISTS (SELECT 1 FROM vectors WHERE chunk = NEW.chunk) BEGIN
    DELETE FROM vectors WHERE chunk = NEW.chunk;
END;
CREATE TRIGGER vector_counted AFTER INSERT ON vectors BEGIN
    INSERT INTO owner_counts (owner, embedded)
        SELECT m.owner, 1 FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = NEW.chunk
        ON CONFLICT DO UPDATE SET embedded = embedded + 1;
END;
CREATE TRIGGER vector_uncounted AFTER DELETE ON vectors BEGIN
    UPDATE owner_counts SET embedded = embedded - 1
        WHERE owner = (SELECT m.owner FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = OLD.chunk);
END;
CREATE TRIGGER pending_counted AFTER INSERT ON pending BEGIN
    INSERT INTO owner_counts (owner, pending)
        SELECT m.owner, 1 FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = NEW.chunk
        ON CONFLICT DO UPDATE SET pending = pending + 1;
END;
CREATE TRIGGER pending_uncounted AFTER DELETE ON pending BEGIN
    UPDATE owner_counts SET pending = pending - 1
        WHERE owner = (SELECT m.owner FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = OLD.chunk);
END;
CREATE TRIGGER repeat_counted AFTER INSERT ON repeats
WHEN EXISTS (SELECT 1 FROM repeats WHERE memory = NEW.memory AND key <> NEW.key) BEGIN
    INSERT INTO owner_counts (owner, repeats) SELECT owner, 1 FROM memories WHERE seq = NEW.memory
        ON CONFLICT DO UPDATE SET repeats = repeats + 1;
END;
CREATE TRIGGER repeat_uncounted AFTER DELETE ON repeats
WHEN EXISTS (SELECT 1 FROM repeats WHERE memory = OLD.memory) BEGIN
    UPDATE owner_counts SET repeats = repeats - 1 WHERE owner = (SELECT owner FROM memories WHERE seq = OLD.memory);
END;

-- A group is removed with its last memory. The time of the last is found by the index by topic.
CREATE TRIGGER stashed_counted AFTER INSERT ON stashed BEGIN
    UPDATE stashed SET session = (SELECT session FROM memories WHERE seq = NEW.memory) WHERE memory = NEW.memory;
    INSERT INTO stash_groups (owner, topic, session, memories, tokens, last)
        SELECT NEW.owner, NEW.topic, m.session, 0, 0, NEW.stashed_at FROM memories m
        WHERE m.seq = NEW.memory AND m.tombstoned_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM stash_groups g WHERE g.owner = NEW.owner AND g.topic IS NEW.topic AND g.session IS m.session);
    UPDATE stash_groups SET memories = memories + 1, tokens = stash_groups.tokens + m.tokens,
        last = max(last, NEW.stashed_at)
        FROM memories m WHERE m.seq = NEW.memory AND m.tombstoned_at IS NULL AND stash_groups.owner = NEW.owner
            AND stash_groups.topic IS NEW.topic AND stash_groups.session IS m.session;
END;
CREATE TRIGGER stashed_uncounted AFTER DELETE ON stashed BEGIN
    UPDATE stash_groups SET memories = memories - 1, tokens = stash_groups.tokens - m.tokens
        FROM memories m WHERE m.seq = OLD.memory AND m.tombstoned_at IS NULL AND stash_groups.owner = OLD.owner
            AND stash_groups.topic IS OLD.topic AND stash_groups.session IS OLD.session;
    DELETE FROM stash_groups
        WHERE owner = OLD.owner AND topic IS OLD.topic AND session IS OLD.session AND memories = 0;
    UPDATE stash_groups SET last = coalesce((
            SELECT s.stashed_at FROM stashed s JOIN memories m ON m.seq = s.memory WHERE s.owner = OLD.owner
                AND s.topic IS OLD.topic AND s.session IS OLD.session AND m.tombstoned_at IS NULL
            ORDER BY s.stashed_at DESC LIMIT 1), last)
        WHERE owner = OLD.owner AND topic IS OLD.topic AND session IS OLD.session AND last = OLD.stashed_at;
END;
CREATE TRIGGER stashed_moved AFTER UPDATE OF topic, stashed_at ON stashed
WHEN OLD.topic IS NOT NEW.topic OR OLD.stashed_at <> NEW.stashed_at BEGIN
    UPDATE stash_groups SET memories = memories - 1, tokens = stash_groups.tokens - m.tokens
        FROM memories m WHERE m.seq = OLD.memory AND m.tombstoned_at IS NULL AND stash_groups.owner = OLD.owner
            AND stash_groups.topic IS OLD.topic AND stash_groups.session IS OLD.session;
    DELETE FROM stash_groups
        WHERE owner = OLD.owner AND topic IS OLD.topic AND session IS OLD.session AND memories = 0;
    UPDATE stash_groups SET last = coalesce((
            SELECT s.stashed_at FROM stashed s JOIN memories m ON m.seq = s.memory WHERE s.owner = OLD.owner
                AND s.topic IS OLD.topic AND s.session IS OLD.session AND m.tombstoned_at IS NULL
            ORDER BY s.stashed_at DESC LIMIT 1), last)
        WHERE owner = OLD.owner AND topic IS OLD.topic AND session IS OLD.session AND last = OLD.stashed_at;
    INSERT INTO stash_groups (owner, topic, session, memories, tokens, last)
        SELECT NEW.owner, NEW.topic, m.session, 0, 0, NEW.stashed_at FROM memories m
        WHERE m.seq = NEW.memory AND m.tombstoned_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM stash_groups g WHERE g.owner = NEW.owner AND g.topic IS NEW.topic AND g.session IS m.session);
    UPDATE stash_groups SET memories = memories + 1, tokens = stash_groups.tokens + m.tokens,
        last = max(last, NEW.stashed_at)
        FROM memories m WHERE m.seq = NEW.memory AND m.tombstoned_at IS NULL AND stash_groups.owner = NEW.owner
            AND stash_groups.topic IS NEW.topic AND stash_groups.session IS m.session;
END;
CREATE TRIGGER stashed_memory_left AFTER UPDATE OF tombstoned_at ON memories
WHEN OLD.tombstoned_at IS NULL AND NEW.tombstoned_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM stashed WHERE memory = NEW.seq) BEGIN
    UPDATE stash_groups SET memories = memories - 1, tokens = tokens - NEW.tokens
        FROM stashed s WHERE s.memory = NEW.seq AND stash_groups.owner = s.owner
            AND stash_groups.topic IS s.topic AND stash_groups.session IS s.session;
    DELETE FROM stash_groups WHERE memories = 0 AND seq IN (
        SELECT g.seq FROM stashed s JOIN stash_groups g
            ON g.owner = s.owner AND g.topic IS s.topic AND g.session IS s.session WHERE s.memory = NEW.seq);
    UPDATE stash_groups SET last = coalesce((
            SELECT l.stashed_at FROM stashed l JOIN memories m ON m.seq = l.memory WHERE l.owner = stash_groups.owner
                AND l.topic IS stash_groups.topic AND l.session IS stash_groups.session AND m.tombstoned_at IS NULL
            ORDER BY l.stashed_at DESC LIMIT 1), last)
        FROM stashed s WHERE s.memory = NEW.seq AND stash_groups.owner = s.owner
            AND stash_groups.topic IS s.topic AND stash_groups.session IS s.session AND stash_groups.last = s.stashed_at;
END;
CREATE TRIGGER stashed_memory_came_back AFTER UPDATE OF tombstoned_at ON memories
WHEN OLD.tombstoned_at IS NOT NULL AND NEW.tombstoned_at IS NULL
    AND EXISTS (SELECT 1 FROM stashed WHERE memory = NEW.seq) BEGIN
    INSERT INTO stash_groups (owner, topic, session, memories, tokens, last)
        SELECT s.owner, s.topic, s.session, 0, 0, s.stashed_at FROM stashed s
        WHERE s.memory = NEW.seq AND NOT EXISTS (
            SELECT 1 FROM stash_groups g WHERE g.owner = s.owner AND g.topic IS s.topic AND g.session IS s.session);
    UPDATE stash_groups SET memories = memories + 1, tokens = tokens + NEW.tokens, last = max(last, s.stashed_at)
        FROM stashed s WHERE s.memory = NEW.seq AND stash_groups.owner = s.owner
            AND stash_groups.topic IS s.topic AND stash_groups.session IS s.session;
END;

-- Lists of the latest memories. Without it, all memories of an owner are sorted for each list.
CREATE INDEX memories_by_time ON memories (owner, time) WHERE tombstoned_at IS NULL;
