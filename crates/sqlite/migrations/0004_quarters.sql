-- What sums up a quarter is of the memories that stand for its conversations: it leaves with the first of them.

CREATE TRIGGER conversation_left AFTER DELETE ON memories WHEN OLD.kind = 'conversation' BEGIN
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
