-- What tells which session a commit came of, how sure that is, and how the repository's commits follow one another.

-- Links made before were made by time alone. They are made anew.
DELETE FROM commit_sessions;
ALTER TABLE commit_sessions ADD COLUMN confidence REAL NOT NULL DEFAULT 0;

CREATE INDEX commit_parents_by_sha ON commit_parents (sha);

-- Each time a tool call changed a file: 32-bit hashes of the lines it put in and took out, where the call says so.
CREATE TABLE file_writes (
    memory   INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    time     INTEGER NOT NULL,
    path     TEXT NOT NULL,
    worktree TEXT,
    branch   TEXT,
    lines    BLOB,
    PRIMARY KEY (memory, time, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_writes_by_time ON file_writes (time);
CREATE INDEX file_writes_by_path ON file_writes (path, time);

-- Edits imported before this table existed: their lines are not known.
INSERT OR IGNORE INTO file_writes (memory, time, path, worktree, branch)
    SELECT m.seq, m.time, p.path, s.worktree, m.branch
    FROM memories m JOIN memory_paths p ON p.memory = m.seq JOIN sessions s ON s.seq = m.session
    WHERE m.role = 'tool' AND m.speaker IN ('Edit', 'Write', 'MultiEdit', 'NotebookEdit', 'apply_patch', 'replace', 'write_file')
        AND instr(m.text, char(10) || 'failed') = 0;

-- Each tool call that committed: the beginning of the id that git printed, or nothing where it printed none.
CREATE TABLE commit_calls (
    memory   INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    began    INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    sha      TEXT NOT NULL,
    worktree TEXT,
    PRIMARY KEY (memory, began, sha)
) STRICT, WITHOUT ROWID;
CREATE INDEX commit_calls_by_time ON commit_calls (began);

-- How commits follow one another, parents before children, in parts that are only added to. `stamp` names where a shallow
-- history ended when the part was made.
CREATE TABLE commit_graph (
    owner   TEXT NOT NULL,
    first   INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    stamp   TEXT NOT NULL,
    commits BLOB NOT NULL,
    PRIMARY KEY (owner, stamp, first)
) STRICT;

-- The id of the memory that stood for a session when `tiro gc` forgot it by its age. What sums up its quarter stays then: it
-- was made to replace it. It leaves where the user forgets any of the session.
ALTER TABLE sessions ADD COLUMN retired TEXT;

DROP TRIGGER conversation_left;
CREATE TRIGGER conversation_left AFTER DELETE ON memories WHEN OLD.kind = 'conversation'
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.seq = OLD.session AND s.retired = OLD.id) BEGIN
    INSERT INTO changes (chunk, change)
        SELECT c.seq, 'removed' FROM chunks c JOIN vectors v ON v.chunk = c.seq WHERE c.memory IN (
            SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
            WHERE r.target = OLD.id AND m.owner = OLD.owner AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM text_index WHERE rowid IN (
        SELECT c.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory JOIN chunks c ON c.memory = m.seq
        WHERE r.target = OLD.id AND m.owner = OLD.owner AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM operation_memories WHERE memory IN (
        SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
        WHERE r.target = OLD.id AND m.owner = OLD.owner AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM memories WHERE seq IN (
        SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
        WHERE r.target = OLD.id AND m.owner = OLD.owner AND m.kind = 'summary' AND m.provenance = 'derived');
END;

-- A session that was brought back has a memory of its own again, and the summary of its quarter is of that.
CREATE TRIGGER conversation_came_back AFTER INSERT ON conversations
    WHEN EXISTS (SELECT 1 FROM sessions s WHERE s.seq = NEW.session AND s.retired IS NOT NULL) BEGIN
    INSERT OR IGNORE INTO memory_references (memory, target)
        SELECT r.memory, n.id FROM sessions s JOIN memory_references r ON r.target = s.retired
        JOIN memories n ON n.seq = NEW.memory JOIN memories q ON q.seq = r.memory
        WHERE s.seq = NEW.session AND q.kind = 'summary' AND q.provenance = 'derived';
    DELETE FROM memory_references WHERE target = (SELECT retired FROM sessions WHERE seq = NEW.session)
        AND target <> (SELECT id FROM memories WHERE seq = NEW.memory);
    UPDATE sessions SET retired = NULL WHERE seq = NEW.session;
END;
