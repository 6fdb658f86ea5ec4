-- Finds the postings of a document that is removed. Row security keeps `chunk + 0` from an index, because this sum may fail
-- and so tell something: each removal read all postings of an owner. A conversion can't fail. Each document is looked up by
-- itself, because the planner doesn't know how few leave.
DROP INDEX postings_by_chunk;
CREATE INDEX postings_by_chunk ON postings (owner, (chunk::float8));
CREATE OR REPLACE FUNCTION documents_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    document record;
BEGIN
    IF NOT EXISTS (SELECT FROM removed) THEN RETURN NULL; END IF;
    FOR document IN SELECT owner, chunk FROM removed LOOP
        DELETE FROM postings p WHERE p.owner = document.owner AND p.chunk::float8 = document.chunk::float8;
    END LOOP;
    UPDATE index_sizes s SET documents = s.documents - r.documents, words = s.words - r.words
        FROM (SELECT owner, facet, count(*) AS documents, sum(words) AS words FROM removed GROUP BY 1, 2) r
        WHERE s.owner = r.owner AND s.facet = r.facet;
    RETURN NULL;
END $$;
