-- The stash: which memories are put aside, since when and until when. The text of a segment is that of its memory. Triggers
-- keep cached answers and the caches of processes true, whatever program writes.

-- `is_held_out` says that contexts leave the memory out. `is_given` says that the memory was made by stashing its text, so
-- it is removed when it expires. `cause` is `call`, `pruning` or `compaction`.
CREATE TABLE stashed (
    memory       INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    owner        TEXT NOT NULL,
    stashed_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    is_protected INTEGER NOT NULL,
    is_held_out  INTEGER NOT NULL,
    is_given     INTEGER NOT NULL,
    topic        TEXT,
    cause        TEXT NOT NULL
) STRICT;
CREATE INDEX stashed_by_owner ON stashed (owner, stashed_at);
CREATE INDEX stashed_by_topic ON stashed (owner, topic);
CREATE INDEX stashed_by_pruning ON stashed (owner) WHERE cause = 'pruning';
CREATE INDEX stashed_by_expiry ON stashed (owner, expires_at) WHERE expires_at IS NOT NULL;

-- What the last assembled context of a session shows of each memory: the tokens of its lines, the number of the heading
-- above them, and the tokens of that heading. `assemblies.key` is the cache key of that context.
CREATE TABLE assemblies (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    key     BLOB NOT NULL
) STRICT;
CREATE TABLE assembly_lines (
    session        INTEGER NOT NULL REFERENCES assemblies ON DELETE CASCADE,
    memory         INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    tokens         INTEGER NOT NULL,
    heading        INTEGER NOT NULL,
    heading_tokens INTEGER NOT NULL,
    PRIMARY KEY (session, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX assembly_lines_by_memory ON assembly_lines (memory);

-- A context depends on what is held out of it, so its version changes with the stash.
CREATE TRIGGER stash_came AFTER INSERT ON stashed BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner)
        WHERE NEW.is_held_out AND seq = (SELECT session FROM memories WHERE seq = NEW.memory);
    INSERT INTO meta (key, value) VALUES ('stash_version', 1) ON CONFLICT DO UPDATE SET value = value + 1;
END;
CREATE TRIGGER stash_changed AFTER UPDATE OF is_held_out ON stashed WHEN OLD.is_held_out <> NEW.is_held_out BEGIN
    INSERT INTO versions (owner, version) VALUES (NEW.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = NEW.owner)
        WHERE seq = (SELECT session FROM memories WHERE seq = NEW.memory);
END;
CREATE TRIGGER stash_left AFTER DELETE ON stashed BEGIN
    INSERT INTO versions (owner, version) VALUES (OLD.owner, 1) ON CONFLICT DO UPDATE SET version = version + 1;
    UPDATE sessions SET version = (SELECT version FROM versions WHERE owner = OLD.owner)
        WHERE OLD.is_held_out AND seq = (SELECT session FROM memories WHERE seq = OLD.memory);
    INSERT INTO meta (key, value) VALUES ('stash_version', 1) ON CONFLICT DO UPDATE SET value = value + 1;
END;
