-- Where sessions come from, which of them led to a commit, what was said again, and what was measured.

ALTER TABLE sessions ADD COLUMN client TEXT;
ALTER TABLE sessions ADD COLUMN worktree TEXT;
ALTER TABLE sessions ADD COLUMN title TEXT;

-- Other names of a session: those of the sessions it resumed or was forked from.
CREATE TABLE session_aliases (
    owner   TEXT NOT NULL,
    alias   TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    PRIMARY KEY (owner, alias)
) STRICT, WITHOUT ROWID;

-- The sessions at work before a commit was made, the likeliest first.
CREATE TABLE commit_sessions (
    memory  INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    PRIMARY KEY (memory, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX commit_sessions_by_session ON commit_sessions (session);

-- Outputs so like an earlier one that only their number is kept.
CREATE TABLE repeats (
    memory INTEGER NOT NULL REFERENCES memories ON DELETE CASCADE,
    key    TEXT NOT NULL,
    PRIMARY KEY (memory, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX repeats_by_key ON repeats (key);

-- How often each tool was called and how long it took: a bucket is a quarter of a doubling, in microseconds.
CREATE TABLE measurements (
    owner  TEXT NOT NULL,
    name   TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (owner, name, bucket)
) STRICT, WITHOUT ROWID;

CREATE INDEX memories_in_sessions_by_time ON memories (owner, time, session) WHERE session IS NOT NULL;
