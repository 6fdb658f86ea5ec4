-- The projects of a tenant, the ledger of spending, and what was sent to providers. Amounts are millionths of a US
-- dollar, days those since 1970 UTC.

CREATE TABLE projects (
    tenant  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    -- NULL if the project has a store but is not registered.
    created bigint,
    PRIMARY KEY (tenant, id)
);

-- A place is where a project was last seen, for example the path of a git common directory.
CREATE TABLE places (
    tenant  text COLLATE "C" NOT NULL,
    path    text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    seen    bigint NOT NULL,
    PRIMARY KEY (tenant, path),
    FOREIGN KEY (tenant, project) REFERENCES projects ON DELETE CASCADE
);
CREATE INDEX places_by_project ON places (tenant, project);

-- The secret of a tenant, by which envelopes are marked; the copies of projects; when providers may be asked again.
CREATE TABLE notes (
    tenant text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    value  bytea NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- Calls under way, each with the most that it may cost. One that is not settled in time counts as spent in full.
CREATE TABLE reservations (
    tenant   text COLLATE "C" NOT NULL,
    id       bigint NOT NULL DEFAULT nextval('keys'),
    day      bigint NOT NULL,
    project  text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model    text COLLATE "C" NOT NULL,
    reserved bigint NOT NULL,
    expires  bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE spending (
    tenant   text COLLATE "C" NOT NULL,
    day      bigint NOT NULL,
    project  text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model    text COLLATE "C" NOT NULL,
    calls    bigint NOT NULL,
    -- Of the calls those that gave no answer; what they may have cost is counted in full.
    failed   bigint NOT NULL,
    spent    bigint NOT NULL,
    input    bigint NOT NULL,
    output   bigint NOT NULL,
    PRIMARY KEY (tenant, day, project, provider, model)
);

-- A request with its repetitions. The row is written with its reservation, before anything is sent, and has its id.
CREATE TABLE sent (
    tenant   text COLLATE "C" NOT NULL,
    id       bigint NOT NULL,
    at       bigint NOT NULL,
    project  text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model    text COLLATE "C" NOT NULL,
    -- The host, or in words that it is this machine.
    place    text COLLATE "C" NOT NULL,
    is_local boolean NOT NULL,
    purpose  text COLLATE "C" NOT NULL,
    -- How many times it was sent, and the tokens and the replaced secrets of all times together.
    requests bigint NOT NULL,
    tokens   bigint NOT NULL,
    received bigint NOT NULL,
    secrets  bigint NOT NULL,
    -- Whether an answer came; absent until that is known, so also if the process died.
    answered boolean,
    -- How many memories and files are named, also after their names were removed.
    memories bigint NOT NULL,
    files    bigint NOT NULL,
    -- The session and the assistant of the thread; the names as JSON. Absent after a purge.
    session   text COLLATE "C",
    assistant text COLLATE "C",
    sources   text COLLATE "C",
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sent_sessions ON sent (tenant, project, session) WHERE session IS NOT NULL;

DO $$
DECLARE
    name text COLLATE "C";
BEGIN
    FOREACH name IN ARRAY ARRAY['projects', 'places', 'notes', 'reservations', 'spending', 'sent'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_tenant ON %I USING (tenant = current_setting(''tiro.tenant'', true))', name);
    END LOOP;
END $$;
