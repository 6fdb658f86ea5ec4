-- Stores in several databases. The registries are in the first one.

-- The databases over which stores are spread, in the order of their addresses. Each has a random id in its `meta`.
CREATE TABLE databases (
    number integer PRIMARY KEY,
    id     bigint NOT NULL UNIQUE
);
INSERT INTO meta (key, value)
    VALUES ('id', ('x' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16))::bit(64)::bigint);

-- Where the store of a project is. A store without a row is in the first database.
CREATE TABLE placed (
    tenant   text COLLATE "C" NOT NULL,
    project  text COLLATE "C" NOT NULL,
    database integer NOT NULL,
    PRIMARY KEY (tenant, project)
);
ALTER TABLE placed ENABLE ROW LEVEL SECURITY;
ALTER TABLE placed FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON placed USING (tenant = current_setting('tiro.tenant', true));
