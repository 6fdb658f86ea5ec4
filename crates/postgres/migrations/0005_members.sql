-- The users of a server: their keys and teams, what is shared with the teams, and who did what.

-- A personal key. Its secret is not stored.
CREATE TABLE user_keys (
    tenant  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    access  text COLLATE "C" NOT NULL,
    hash    text COLLATE "C" NOT NULL,
    made    bigint NOT NULL,
    expires bigint,
    revoked bigint,
    -- The beginning of the day, in UTC, on which it was used last.
    used    bigint,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, hash)
);

CREATE TABLE teams (
    tenant text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    made   bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE team_members (
    tenant   text COLLATE "C" NOT NULL,
    team     text COLLATE "C" NOT NULL,
    username text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, username, team),
    FOREIGN KEY (tenant, team) REFERENCES teams ON DELETE CASCADE
);
CREATE INDEX team_members_by_team ON team_members (tenant, team);

-- A project that is shared with a team. The kinds, separated by commas, are the same for all teams of a project.
CREATE TABLE shares (
    tenant    text COLLATE "C" NOT NULL,
    project   text COLLATE "C" NOT NULL,
    team      text COLLATE "C" NOT NULL,
    may_write boolean NOT NULL,
    kinds     text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, team),
    FOREIGN KEY (tenant, project) REFERENCES projects ON DELETE CASCADE,
    FOREIGN KEY (tenant, team) REFERENCES teams ON DELETE CASCADE
);
CREATE INDEX shares_by_team ON shares (tenant, team);

-- A call, without any text. The ids are those of the first memories.
CREATE TABLE audit (
    tenant   text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL DEFAULT nextval('keys'),
    at       bigint NOT NULL,
    username text COLLATE "C" NOT NULL,
    verb     text COLLATE "C" NOT NULL,
    project  text COLLATE "C",
    memories text[] NOT NULL,
    count    bigint NOT NULL,
    authors  text[] NOT NULL,
    outcome  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);

DO $$
DECLARE
    name text COLLATE "C";
BEGIN
    FOREACH name IN ARRAY ARRAY['user_keys', 'teams', 'team_members', 'shares', 'audit'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_tenant ON %I USING (tenant = current_setting(''tiro.tenant'', true))', name);
    END LOOP;
END $$;
