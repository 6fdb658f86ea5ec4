-- Which memories were replaced by later ones, and how far the facts of each session are extracted.

-- Memories that were replaced by request. Such a memory is superseded as long as a memory that replaced it, directly or
-- through others, is living.
CREATE TABLE superseded (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    newer  INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    PRIMARY KEY (memory, newer),
    CHECK (memory <> newer)
) STRICT, WITHOUT ROWID;
CREATE INDEX superseded_by_newer ON superseded (newer);

-- Statements of a value: a range of a memory's text, who stated it, the value, and the words that say what it is the value
-- of. Statements of one voice about the same thing have the same subject; of these, the latest living one holds.
CREATE TABLE statements (
    seq        INTEGER PRIMARY KEY,
    owner      TEXT NOT NULL,
    memory     INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte   INTEGER NOT NULL,
    voice      TEXT NOT NULL,
    value      TEXT NOT NULL,
    words      TEXT NOT NULL,
    time       INTEGER NOT NULL,
    subject    INTEGER,
    UNIQUE (memory, number)
) STRICT;
CREATE INDEX statements_by_voice ON statements (owner, voice, time, seq);
CREATE INDEX statements_by_subject ON statements (subject, time, seq) WHERE subject IS NOT NULL;

-- The ordinal of the last message whose facts are extracted. Sessions that were stored before are read again: the facts of
-- earlier versions are replaced.
ALTER TABLE sessions ADD COLUMN noted INTEGER NOT NULL DEFAULT -1;
UPDATE sessions SET grown = coalesce(grown, 0);

-- If a memory in the middle of a chain is purged, its predecessors are replaced by its successors.
CREATE TRIGGER replacement_removed BEFORE DELETE ON memories
WHEN EXISTS (SELECT 1 FROM superseded WHERE newer = OLD.seq) BEGIN
    INSERT OR IGNORE INTO superseded (memory, newer)
        SELECT o.memory, n.newer FROM superseded o JOIN superseded n ON n.memory = o.newer
        WHERE o.newer = OLD.seq AND o.memory <> n.newer;
END;

-- Answers that show a superseded memory are out of date once it is superseded, or no longer is.
CREATE TRIGGER superseded_added AFTER INSERT ON superseded BEGIN
    INSERT INTO versions (owner, version) SELECT owner, 1 FROM memories WHERE seq = NEW.memory
        ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions v WHERE v.owner = sessions.owner)
        WHERE seq = (SELECT session FROM memories WHERE seq = NEW.memory);
END;

CREATE TRIGGER statement_added AFTER INSERT ON statements WHEN NEW.subject IS NOT NULL BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner)
        WHERE seq IN (SELECT m.session FROM statements t JOIN memories m ON m.seq = t.memory WHERE t.subject = NEW.subject);
END;

CREATE TRIGGER replacement_left_or_came_back AFTER UPDATE OF tombstoned_at ON memories
WHEN EXISTS (SELECT 1 FROM superseded WHERE newer = NEW.seq)
    OR EXISTS (SELECT 1 FROM statements WHERE memory = NEW.seq AND subject IS NOT NULL) BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner) WHERE seq IN (
        SELECT m.session FROM superseded s JOIN memories m ON m.seq = s.memory WHERE s.newer = NEW.seq
        UNION SELECT m.session FROM statements o JOIN statements t ON t.subject = o.subject
            JOIN memories m ON m.seq = t.memory WHERE o.memory = NEW.seq);
END;
