-- A vector says in which list of a search its chunk belongs: the number of the group of its kind, or that of long answers
-- (`search/label.rs`). So a search reads the nearest chunks of each list from this table alone. Joined with chunks and
-- memories, the vectors of a store that had just been filled took seconds: the planner knew nothing of them yet.
ALTER TABLE vectors ADD COLUMN label smallint;
ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chunks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
UPDATE vectors v SET label = CASE
        WHEN m.kind = 'message' AND m.role IS NOT DISTINCT FROM 'assistant' AND m.tokens > 150 THEN 6
        WHEN m.kind = 'message' THEN 3
        WHEN m.kind IN ('conversation', 'summary') THEN 0
        WHEN m.kind = 'commit' THEN 1
        WHEN m.kind IN ('fact', 'decision', 'research', 'task_state') THEN 2
        WHEN m.kind = 'document' THEN 4
        ELSE 5 END
    FROM chunks c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory WHERE c.owner = v.owner AND c.seq = v.chunk;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
ALTER TABLE chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE vectors ALTER label SET NOT NULL;
DROP INDEX vectors_by_space;
CREATE INDEX vectors_by_label ON vectors (owner, space, label);
