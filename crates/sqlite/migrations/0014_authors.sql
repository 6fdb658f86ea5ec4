-- Who said a memory, and who sees it.
--
-- The column `owner` of all tables names a part of the store: what a tenant shares, by the name of the tenant; or what an
-- author of the tenant keeps private, by the names of both with U+001F between them. So a statement that names a tenant
-- sees nothing private. `meta` has the key `private` once there was such a part.

-- NULL where it is the tenant.
ALTER TABLE memories ADD COLUMN author TEXT;
-- 0: only its author sees it; 1: it is shared.
ALTER TABLE memories ADD COLUMN visibility INTEGER NOT NULL DEFAULT 1;

-- What sums up a quarter may be private to one who read shared sessions; it leaves with the memories that stand for these.
DROP TRIGGER conversation_left;
CREATE TRIGGER conversation_left AFTER DELETE ON memories WHEN OLD.kind = 'conversation'
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.seq = OLD.session AND s.retired = OLD.id) BEGIN
    INSERT INTO changes (chunk, change)
        SELECT c.seq, 'removed' FROM chunks c JOIN vectors v ON v.chunk = c.seq WHERE c.memory IN (
            SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
            WHERE r.target = OLD.id AND substr(m.owner, 1, instr(m.owner || char(31), char(31)) - 1)
                = substr(OLD.owner, 1, instr(OLD.owner || char(31), char(31)) - 1)
                AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM text_index WHERE rowid IN (
        SELECT c.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory JOIN chunks c ON c.memory = m.seq
        WHERE r.target = OLD.id AND substr(m.owner, 1, instr(m.owner || char(31), char(31)) - 1)
                = substr(OLD.owner, 1, instr(OLD.owner || char(31), char(31)) - 1)
            AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM operation_memories WHERE memory IN (
        SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
        WHERE r.target = OLD.id AND substr(m.owner, 1, instr(m.owner || char(31), char(31)) - 1)
                = substr(OLD.owner, 1, instr(OLD.owner || char(31), char(31)) - 1)
            AND m.kind = 'summary' AND m.provenance = 'derived');
    DELETE FROM memories WHERE seq IN (
        SELECT m.seq FROM memory_references r CROSS JOIN memories m ON m.seq = r.memory
        WHERE r.target = OLD.id AND substr(m.owner, 1, instr(m.owner || char(31), char(31)) - 1)
                = substr(OLD.owner, 1, instr(OLD.owner || char(31), char(31)) - 1)
            AND m.kind = 'summary' AND m.provenance = 'derived');
END;
