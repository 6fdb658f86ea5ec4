-- What asking models has cost and may still cost. Lives in owner.db: one limit holds for all projects.
-- Amounts are millionths of a US dollar, days those since 1970 UTC.

-- Calls under way, each with the most that it may cost. One that is not settled in time counts as spent in full.
CREATE TABLE reservations (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    day      INTEGER NOT NULL,
    project  TEXT NOT NULL,
    provider TEXT NOT NULL,
    model    TEXT NOT NULL,
    reserved INTEGER NOT NULL,
    expires  INTEGER NOT NULL
) STRICT;

CREATE TABLE spending (
    day      INTEGER NOT NULL,
    project  TEXT NOT NULL,
    provider TEXT NOT NULL,
    model    TEXT NOT NULL,
    calls    INTEGER NOT NULL,
    -- Of the calls those that gave no answer; what they may have cost is counted in full.
    failed   INTEGER NOT NULL,
    spent    INTEGER NOT NULL,
    input    INTEGER NOT NULL,
    output   INTEGER NOT NULL,
    PRIMARY KEY (day, project, provider, model)
) STRICT, WITHOUT ROWID;
