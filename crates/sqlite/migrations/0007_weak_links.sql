-- Links by time alone: a server of an earlier version that is still running goes on making them.

-- Below 0.5 there is no link. What is left of the links that such a server replaced is made anew.
DELETE FROM commit_sessions WHERE confidence < 0.5;
DELETE FROM imports WHERE source = 'links';

CREATE TRIGGER no_link_by_time BEFORE INSERT ON commit_sessions WHEN NEW.confidence < 0.5 BEGIN
    DELETE FROM imports WHERE source = 'links';
    SELECT RAISE(IGNORE);
END;
