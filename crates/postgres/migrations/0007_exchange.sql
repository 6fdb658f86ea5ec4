-- What a store exchanges with other stores: of each memory the number of its last change, the peer whose change that was
-- (NULL if it was made here), and the stamps of its two registers: milliseconds << 16 | counter. Triggers keep it. Numbers
-- are keys, so they rise within a store in the order in which changes become visible.
CREATE TABLE exchange (
    owner        bigint NOT NULL,
    memory       bigint NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    changed      bigint NOT NULL,
    changed_by   text COLLATE "C",
    marked_at    bigint NOT NULL DEFAULT 0,
    forgotten_at bigint NOT NULL DEFAULT 0,
    -- The id under which it travels; NULL while that is its own.
    exchange_id  text COLLATE "C",
    PRIMARY KEY (owner, memory)
);

-- The states of memories that are not here: they were purged, or only their state came from a peer.
CREATE TABLE absent (
    owner        bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    author       text COLLATE "C" NOT NULL,
    changed      bigint NOT NULL,
    changed_by   text COLLATE "C",
    is_marked    boolean NOT NULL DEFAULT false,
    importance   double precision,
    marked_at    bigint NOT NULL DEFAULT 0,
    is_forgotten boolean NOT NULL DEFAULT false,
    forgotten_at bigint NOT NULL DEFAULT 0,
    is_purged    boolean NOT NULL DEFAULT false,
    exchange_id  text COLLATE "C",
    PRIMARY KEY (owner, id)
);

-- The rows of all owners are there for the owner of the table as long as the second wall isn't forced.
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
INSERT INTO exchange (owner, memory, kind, changed) SELECT owner, seq, kind, seq FROM memories;
ALTER TABLE exchange ADD FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE INDEX exchange_by_change ON exchange (owner, changed);
CREATE INDEX exchange_by_id ON exchange (owner, exchange_id) WHERE exchange_id IS NOT NULL;
CREATE INDEX absent_by_change ON absent (owner, changed);
CREATE INDEX absent_by_id ON absent (owner, exchange_id) WHERE exchange_id IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['exchange', 'absent'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_owners ON %I USING (owner = ANY (
            string_to_array(current_setting(''tiro.owners'', true), '','')::bigint[]))', name);
    END LOOP;
END $$;

-- Returns the time as the number that stamps begin with: milliseconds since 1970 UTC.
CREATE FUNCTION milliseconds() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE FUNCTION memories_stored_for_exchange() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM added) THEN RETURN NULL; END IF;
    DELETE FROM absent a USING added n WHERE a.owner = n.owner AND a.id = n.id AND NOT a.is_purged;
    INSERT INTO exchange (owner, memory, kind, changed) SELECT owner, seq, kind, seq FROM added;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_stored_for_exchange AFTER INSERT ON memories REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION memories_stored_for_exchange();

-- A memory is forgotten at the time that its tombstone says, and comes back now. The rows before and after are paired by
-- grouping, as in `memories_changed`.
CREATE FUNCTION memories_changed_for_exchange() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes record;
BEGIN
    SELECT array_agg(owner) AS owners, array_agg(seq) AS seqs, array_agg(is_marked_anew) AS marked,
        array_agg(is_moved) AS moved, array_agg(tombstoned_at) AS tombstones
    INTO changes FROM (
        SELECT owner, seq,
            bool_or(marked) FILTER (WHERE is_new) <> bool_or(marked) FILTER (WHERE NOT is_new)
                OR max(importance) FILTER (WHERE is_new) IS DISTINCT FROM max(importance) FILTER (WHERE NOT is_new)
                AS is_marked_anew,
            count(tombstoned_at) = 1 AS is_moved, max(tombstoned_at) FILTER (WHERE is_new) AS tombstoned_at
        FROM (SELECT owner, seq, marked, importance, tombstoned_at, true AS is_new FROM after_change
              UNION ALL SELECT owner, seq, marked, importance, tombstoned_at, false FROM before_change) r
        GROUP BY owner, seq) p
    WHERE is_marked_anew OR is_moved;
    IF changes.owners IS NULL THEN RETURN NULL; END IF;
    UPDATE exchange x SET changed = nextval('keys'), changed_by = NULL,
        marked_at = CASE WHEN c.is_marked_anew THEN greatest(milliseconds() << 16, x.marked_at + 1) ELSE x.marked_at END,
        forgotten_at = CASE WHEN c.is_moved THEN greatest(
            least(greatest(coalesce(c.tombstoned_at, milliseconds()), 0), 140737488355327) << 16, x.forgotten_at + 1)
            ELSE x.forgotten_at END
    FROM unnest(changes.owners, changes.seqs, changes.marked, changes.moved, changes.tombstones)
        AS c (owner, seq, is_marked_anew, is_moved, tombstoned_at)
    WHERE x.owner = c.owner AND x.memory = c.seq;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_changed_for_exchange AFTER UPDATE ON memories
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION memories_changed_for_exchange();

-- A peer that has the memory learns what it replaced since.
CREATE FUNCTION superseded_for_exchange() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE exchange x SET changed = nextval('keys'), changed_by = NULL
        FROM (SELECT DISTINCT newer_owner, newer FROM added) a WHERE x.owner = a.newer_owner AND x.memory = a.newer;
    RETURN NULL;
END $$;
CREATE TRIGGER superseded_for_exchange AFTER INSERT ON superseded REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION superseded_for_exchange();

CREATE FUNCTION memories_purged_for_exchange() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO absent (owner, id, kind, author, changed, is_marked, importance, marked_at, is_forgotten, forgotten_at,
            is_purged, exchange_id)
        SELECT m.owner, m.id, m.kind, m.author, nextval('keys'), m.marked, m.importance, x.marked_at,
            m.tombstoned_at IS NOT NULL, x.forgotten_at, true, x.exchange_id
        FROM added a JOIN memories m ON m.owner = a.owner AND m.id = a.id
        JOIN exchange x ON x.owner = m.owner AND x.memory = m.seq
        WHERE NOT (m.provenance = 'derived' AND m.kind IN ('conversation', 'summary'))
        ON CONFLICT DO NOTHING;
    DELETE FROM exchange x USING added a JOIN memories m ON m.owner = a.owner AND m.id = a.id
        WHERE x.owner = m.owner AND x.memory = m.seq;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_purged_for_exchange AFTER INSERT ON purged REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION memories_purged_for_exchange();
