-- The owner's projects and where each was last seen. Lives in owner.db beside the owner's own memories.

CREATE TABLE projects (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    folder  TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A place is the canonical path of a git common directory, or of a directory that is no repository.
CREATE TABLE places (
    path    TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects ON DELETE CASCADE,
    seen    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX places_by_project ON places (project);
