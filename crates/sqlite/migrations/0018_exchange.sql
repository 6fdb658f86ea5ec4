-- What a store exchanges with other stores: of each memory the number of its last change, the peer whose change that was (NULL
-- if it was made here), and the stamps of its two registers: milliseconds << 16 | counter. Triggers keep it, whatever program
-- writes. Numbers rise with each change of the file.
CREATE TABLE exchange (
    memory       INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    owner        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    changed      INTEGER NOT NULL,
    changed_by   TEXT,
    marked_at    INTEGER NOT NULL DEFAULT 0,
    forgotten_at INTEGER NOT NULL DEFAULT 0,
    -- The id under which it travels; NULL while that is its own.
    exchange_id  TEXT
) STRICT;
INSERT INTO exchange (memory, owner, kind, changed) SELECT seq, owner, kind, seq FROM memories;
INSERT INTO meta (key, value) SELECT 'changed', coalesce(max(changed), 0) FROM exchange;
CREATE INDEX exchange_by_change ON exchange (owner, changed);
CREATE INDEX exchange_by_id ON exchange (owner, exchange_id) WHERE exchange_id IS NOT NULL;

-- The states of memories that are not here: they were purged, or only their state came from a peer.
CREATE TABLE absent (
    owner        TEXT NOT NULL,
    id           TEXT NOT NULL,
    kind         TEXT NOT NULL,
    -- NULL where it is the tenant.
    author       TEXT,
    changed      INTEGER NOT NULL,
    changed_by   TEXT,
    is_marked    INTEGER NOT NULL DEFAULT 0,
    importance   REAL,
    marked_at    INTEGER NOT NULL DEFAULT 0,
    is_forgotten INTEGER NOT NULL DEFAULT 0,
    forgotten_at INTEGER NOT NULL DEFAULT 0,
    is_purged    INTEGER NOT NULL DEFAULT 0,
    exchange_id  TEXT,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX absent_by_change ON absent (owner, changed);
CREATE INDEX absent_by_id ON absent (owner, exchange_id) WHERE exchange_id IS NOT NULL;

CREATE TRIGGER memory_stored_for_exchange AFTER INSERT ON memories BEGIN
    UPDATE meta SET value = value + 1 WHERE key = 'changed';
    DELETE FROM absent WHERE owner = NEW.owner AND id = NEW.id AND NOT is_purged;
    INSERT INTO exchange (memory, owner, kind, changed)
        SELECT NEW.seq, NEW.owner, NEW.kind, value FROM meta WHERE key = 'changed';
END;

CREATE TRIGGER memory_marked_for_exchange AFTER UPDATE OF marked, importance ON memories
WHEN OLD.marked <> NEW.marked OR OLD.importance IS NOT NEW.importance BEGIN
    UPDATE meta SET value = value + 1 WHERE key = 'changed';
    UPDATE exchange SET changed = (SELECT value FROM meta WHERE key = 'changed'), changed_by = NULL,
        marked_at = max(CAST(unixepoch('subsec') * 1000 AS INTEGER) << 16, marked_at + 1) WHERE memory = NEW.seq;
END;

-- A memory is forgotten at the time that its tombstone says, and comes back now.
CREATE TRIGGER memory_forgotten_for_exchange AFTER UPDATE OF tombstoned_at ON memories
WHEN (OLD.tombstoned_at IS NULL) <> (NEW.tombstoned_at IS NULL) BEGIN
    UPDATE meta SET value = value + 1 WHERE key = 'changed';
    UPDATE exchange SET changed = (SELECT value FROM meta WHERE key = 'changed'), changed_by = NULL,
        forgotten_at = max(min(max(coalesce(NEW.tombstoned_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0),
            140737488355327) << 16, forgotten_at + 1) WHERE memory = NEW.seq;
END;

-- A peer that has the memory learns what it replaced since.
CREATE TRIGGER superseded_for_exchange AFTER INSERT ON superseded BEGIN
    UPDATE meta SET value = value + 1 WHERE key = 'changed';
    UPDATE exchange SET changed = (SELECT value FROM meta WHERE key = 'changed'), changed_by = NULL
        WHERE memory = NEW.newer;
END;

CREATE TRIGGER memory_purged_for_exchange AFTER INSERT ON purged
WHEN EXISTS (SELECT 1 FROM memories m JOIN exchange e ON e.memory = m.seq WHERE m.owner = NEW.owner AND m.id = NEW.id) BEGIN
    UPDATE meta SET value = value + 1 WHERE key = 'changed';
    INSERT INTO absent (owner, id, kind, author, changed, is_marked, importance, marked_at, is_forgotten,
            forgotten_at, is_purged, exchange_id)
        SELECT m.owner, m.id, m.kind, m.author, (SELECT value FROM meta WHERE key = 'changed'), m.marked, m.importance,
            e.marked_at, m.tombstoned_at IS NOT NULL, e.forgotten_at, 1, e.exchange_id
        FROM memories m JOIN exchange e ON e.memory = m.seq WHERE m.owner = NEW.owner AND m.id = NEW.id
            AND NOT (m.provenance = 'derived' AND m.kind IN ('conversation', 'summary'));
    DELETE FROM exchange WHERE memory = (SELECT seq FROM memories WHERE owner = NEW.owner AND id = NEW.id);
END;
