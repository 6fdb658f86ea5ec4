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

-- Only the removal of a document looks for its postings. As an index of an expression, this one can't be chosen to find a
-- phrase: the planner takes the postings of a document for one or two, and read all hundred of each document that has one
-- word of the phrase.
DROP INDEX postings_by_chunk;
CREATE INDEX postings_by_chunk ON postings (owner, (chunk + 0));
CREATE OR REPLACE FUNCTION documents_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM removed) THEN RETURN NULL; END IF;
    DELETE FROM postings p USING removed r WHERE p.owner = r.owner AND p.chunk + 0 = r.chunk;
    UPDATE index_sizes s SET documents = s.documents - r.documents, words = s.words - r.words
        FROM (SELECT owner, facet, count(*) AS documents, sum(words) AS words FROM removed GROUP BY 1, 2) r
        WHERE s.owner = r.owner AND s.facet = r.facet;
    RETURN NULL;
END $$;

-- The second wall once more, as a condition that the planner takes for true half of the time. As `owner = ANY (...)`, beside
-- the same condition of the statement itself and that of a join, it made every owner's rows seem one, so that any index
-- that begins with the owner seemed as good as the key: 600 memories were looked up in 66 ms instead of 2. The setting is
-- read once for a statement.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_policies WHERE schemaname = current_schema() AND policyname = 'of_owners' LOOP
        EXECUTE format('ALTER POLICY of_owners ON %I USING (CASE WHEN owner = ANY (
            (SELECT string_to_array(current_setting(''tiro.owners'', true), '','')::bigint[])::bigint[])
            THEN true ELSE false END)', name);
    END LOOP;
END $$;
