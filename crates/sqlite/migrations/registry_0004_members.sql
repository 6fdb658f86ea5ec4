-- The users of a server: their keys and teams, what is shared with the teams, and who did what. Lives in owner.db.

-- A personal key. Its secret is not stored.
CREATE TABLE user_keys (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    access  TEXT NOT NULL,
    hash    TEXT NOT NULL UNIQUE,
    made    INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER,
    -- The beginning of the day, in UTC, on which it was used last.
    used    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE teams (
    name TEXT PRIMARY KEY,
    made INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE team_members (
    team TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,
    user TEXT NOT NULL,
    PRIMARY KEY (user, team)
) STRICT, WITHOUT ROWID;
CREATE INDEX team_members_by_team ON team_members (team);

-- A project that is shared with a team. The kinds, separated by commas, are the same for all teams of a project.
CREATE TABLE shares (
    project   TEXT NOT NULL REFERENCES projects ON DELETE CASCADE,
    team      TEXT NOT NULL REFERENCES teams ON DELETE CASCADE,
    may_write INTEGER NOT NULL,
    kinds     TEXT NOT NULL,
    PRIMARY KEY (project, team)
) STRICT, WITHOUT ROWID;
CREATE INDEX shares_by_team ON shares (team);

-- A call, without any text. The ids are those of the first memories; the ids and the authors are JSON.
CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    user     TEXT NOT NULL,
    verb     TEXT NOT NULL,
    project  TEXT,
    memories TEXT NOT NULL,
    count    INTEGER NOT NULL,
    authors  TEXT NOT NULL,
    outcome  TEXT NOT NULL
) STRICT;
