-- A statement is replaced only by a later one that names it as no longer valid. Earlier versions compared values, and many
-- of their replacements were wrong. So their statements are removed, and the messages of all sessions are read again.
DELETE FROM statements;
UPDATE sessions SET noted = -1 WHERE noted >= 0;
