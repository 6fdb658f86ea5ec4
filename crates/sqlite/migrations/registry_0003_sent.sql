-- What was sent to providers of models, without any text of it. Lives in owner.db, beside the ledger of spending.

-- A request with its repetitions. The row is written with its reservation, before anything is sent, and has its id.
CREATE TABLE sent (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    project  TEXT NOT NULL,
    provider TEXT NOT NULL,
    model    TEXT NOT NULL,
    -- The host, or in words that it is this machine.
    place    TEXT NOT NULL,
    is_local INTEGER NOT NULL,
    purpose  TEXT NOT NULL,
    -- How many times it was sent, and the tokens and the replaced secrets of all times together.
    requests INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    received INTEGER NOT NULL,
    secrets  INTEGER NOT NULL,
    -- Whether an answer came; absent until that is known, so also if the process died.
    answered INTEGER,
    -- How many memories and files are named, also after their names were removed.
    memories INTEGER NOT NULL,
    files    INTEGER NOT NULL,
    -- The session and the assistant of the thread; the names as JSON. Absent after a purge.
    session   TEXT,
    assistant TEXT,
    sources   TEXT
) STRICT;

CREATE INDEX sent_sessions ON sent (project, session) WHERE session IS NOT NULL;
