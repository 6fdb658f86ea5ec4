-- The index holds all that the timeline reads of a message, so it reads no rows.
DROP INDEX memories_in_sessions_by_time;
CREATE INDEX memories_in_sessions_by_time ON memories (owner, time, session, kind, tombstoned_at, tokens)
    WHERE session IS NOT NULL;
