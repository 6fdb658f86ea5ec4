-- What follows from a change of a memory, whoever changes it. What was made of a message doesn't outlive its being
-- forgotten. All triggers act once for a statement.

-- Gives the owners of changed rows a new version, which is the number of the transaction: writers of a store take turns.
CREATE FUNCTION touch(owners bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    now_version bigint := pg_current_xact_id()::text::bigint;
BEGIN
    INSERT INTO versions (owner, version) SELECT DISTINCT o, now_version FROM unnest(owners) o
        ON CONFLICT (owner) DO UPDATE SET version = excluded.version WHERE versions.version <> excluded.version;
    RETURN now_version;
END $$;

-- Gives sessions, and their owners, a new version. Sessions that are NULL are passed over.
CREATE FUNCTION touch_sessions(owners bigint[], seqs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now_version bigint;
BEGIN
    IF owners IS NULL THEN RETURN; END IF;
    now_version := touch(owners);
    UPDATE sessions s SET version = now_version FROM (SELECT DISTINCT * FROM unnest(owners, seqs) AS u (owner, seq)) c
        WHERE s.owner = c.owner AND s.seq = c.seq;
END $$;

-- Returns all parts of the store to which a part belongs.
CREATE FUNCTION parts_of_store(part bigint) RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(b.seq) FROM owners a JOIN owners b ON b.tenant = a.tenant AND b.project = a.project WHERE a.seq = part
$$;

-- Counts living memories that came to sessions (sign 1) or left them (sign -1); those with sign 0, and those without a
-- session, are passed over. Only if the first or the last one of a session left, its memories are read.
CREATE FUNCTION count_sessions(owners bigint[], seqs bigint[], signs integer[], sizes bigint[], times bigint[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions s SET memories = s.memories + c.memories, tokens = s.tokens + c.tokens,
        first_time = CASE WHEN c.first_left IS NULL OR s.first_time < c.first_left THEN least(s.first_time, c.first_came)
            ELSE (SELECT min(m.time) FROM memories m
                WHERE m.owner = s.owner AND m.session = s.seq AND m.tombstoned_at IS NULL) END,
        last_time = CASE WHEN c.last_left IS NULL OR s.last_time > c.last_left THEN greatest(s.last_time, c.last_came)
            ELSE (SELECT max(m.time) FROM memories m
                WHERE m.owner = s.owner AND m.session = s.seq AND m.tombstoned_at IS NULL) END
    FROM (SELECT u.owner, u.seq, sum(u.sign) AS memories, sum(u.sign * u.size)::bigint AS tokens,
              min(u.time) FILTER (WHERE u.sign > 0) AS first_came, max(u.time) FILTER (WHERE u.sign > 0) AS last_came,
              min(u.time) FILTER (WHERE u.sign < 0) AS first_left, max(u.time) FILTER (WHERE u.sign < 0) AS last_left
          FROM unnest(owners, seqs, signs, sizes, times) AS u (owner, seq, sign, size, time)
          WHERE u.seq IS NOT NULL AND u.sign <> 0 GROUP BY 1, 2) c
    WHERE s.owner = c.owner AND s.seq = c.seq;
END $$;

-- Removes what was made of messages, and counts their segments anew. Messages that follow one another are compared as one
-- run with the ranges of the session.
CREATE FUNCTION messages_changed(owners bigint[], session_seqs bigint[], ordinals bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    runs record;
BEGIN
    SELECT array_agg(owner) AS owners, array_agg(session) AS sessions, array_agg(first) AS firsts, array_agg(last) AS lasts
    INTO runs FROM (
        SELECT owner, session, min(ordinal) AS first, max(ordinal) AS last FROM (
            SELECT *, ordinal - row_number() OVER (PARTITION BY owner, session ORDER BY ordinal) AS run
            FROM unnest(owners, session_seqs, ordinals) AS u (owner, session, ordinal)
            WHERE session IS NOT NULL AND ordinal IS NOT NULL) u
        GROUP BY owner, session, run) r;
    IF runs.owners IS NULL THEN RETURN; END IF;
    DELETE FROM summaries s USING unnest(runs.owners, runs.sessions, runs.firsts, runs.lasts) AS r (owner, session, first, last)
        WHERE s.owner = r.owner AND s.session = r.session AND s.first <= r.last AND s.last >= r.first;
    DELETE FROM conversations c USING unnest(runs.owners, runs.sessions, runs.firsts) AS r (owner, session, first)
        WHERE c.owner = r.owner AND c.session = r.session AND r.first <= c.last;
    UPDATE segments g SET messages = n.messages, tokens = n.tokens
    FROM (SELECT DISTINCT g.owner, g.session, g.number, g.first, g.last
          FROM unnest(runs.owners, runs.sessions, runs.firsts, runs.lasts) AS r (owner, session, first, last)
          JOIN segments g ON g.owner = r.owner AND g.session = r.session AND g.first <= r.last AND g.last >= r.first) d
    CROSS JOIN LATERAL (
        SELECT count(*) AS messages, coalesce(sum(m.tokens), 0)::bigint AS tokens FROM memories m
        WHERE m.owner = d.owner AND m.session = d.session AND m.ordinal BETWEEN d.first AND d.last
            AND m.tombstoned_at IS NULL) n
    WHERE g.owner = d.owner AND g.session = d.session AND g.number = d.number;
END $$;

CREATE FUNCTION memories_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_version bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM added) THEN RETURN NULL; END IF;
    now_version := touch(ARRAY(SELECT DISTINCT owner FROM added));
    UPDATE sessions s SET version = now_version,
        grown = CASE WHEN n.last IS NULL THEN s.grown ELSE now_version END,
        last = greatest(s.last, n.last), memories = s.memories + n.memories, tokens = s.tokens + n.tokens,
        first_time = least(s.first_time, n.first_time), last_time = greatest(s.last_time, n.last_time)
    FROM (SELECT owner, session, max(ordinal) AS last,
              count(*) FILTER (WHERE tombstoned_at IS NULL) AS memories,
              coalesce(sum(tokens) FILTER (WHERE tombstoned_at IS NULL), 0) AS tokens,
              min(time) FILTER (WHERE tombstoned_at IS NULL) AS first_time,
              max(time) FILTER (WHERE tombstoned_at IS NULL) AS last_time
          FROM added WHERE session IS NOT NULL GROUP BY 1, 2) n
    WHERE s.owner = n.owner AND s.seq = n.session;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_added AFTER INSERT ON memories REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION memories_added();

-- The rows before and after are paired by grouping: a plan is kept from call to call, and joining them would take a time
-- that grows with the square of their number if the first call had only a few.
CREATE FUNCTION memories_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_version bigint;
    changed record;
BEGIN
    IF NOT EXISTS (SELECT FROM after_change) THEN RETURN NULL; END IF;
    now_version := touch(ARRAY(SELECT DISTINCT owner FROM after_change));
    -- `moved` left or came back, `gone` left; `other` differ in what is counted of their session.
    SELECT array_agg(owner) AS owners, array_agg(session) AS sessions,
        array_agg(ordinal IS NOT NULL AND is_dated) AS growing,
        array_agg(owner) FILTER (WHERE is_other) AS other_owners,
        array_agg(session) FILTER (WHERE is_other) AS other_sessions,
        array_agg(former) FILTER (WHERE is_other) AS other_formers,
        array_agg(is_living::int) FILTER (WHERE is_other) AS came, array_agg(-was_living::int) FILTER (WHERE is_other) AS went,
        array_agg(size) FILTER (WHERE is_other) AS sizes, array_agg(former_size) FILTER (WHERE is_other) AS former_sizes,
        array_agg(time) FILTER (WHERE is_other) AS times, array_agg(former_time) FILTER (WHERE is_other) AS former_times,
        array_agg(owner) FILTER (WHERE is_living <> was_living) AS moved_owners,
        array_agg(seq) FILTER (WHERE is_living <> was_living) AS moved_seqs,
        array_agg(session) FILTER (WHERE is_living <> was_living) AS moved_sessions,
        array_agg(ordinal) FILTER (WHERE is_living <> was_living) AS moved_ordinals,
        array_agg(owner) FILTER (WHERE was_living AND NOT is_living) AS gone_owners,
        array_agg(seq) FILTER (WHERE was_living AND NOT is_living) AS gone_seqs
    INTO changed FROM (
        SELECT *, is_living <> was_living OR time <> former_time OR size <> former_size
            OR session IS DISTINCT FROM former AS is_other FROM (
            SELECT owner, seq, max(session) FILTER (WHERE is_new) AS session, max(session) FILTER (WHERE NOT is_new) AS former,
                max(ordinal) FILTER (WHERE is_new) AS ordinal,
                bool_or(tombstoned_at IS NULL) FILTER (WHERE is_new) AS is_living,
                bool_or(tombstoned_at IS NULL) FILTER (WHERE NOT is_new) AS was_living,
                count(tombstoned_at) = 1 OR coalesce(min(tombstoned_at) <> max(tombstoned_at), false) AS is_dated,
                max(tokens) FILTER (WHERE is_new) AS size, max(tokens) FILTER (WHERE NOT is_new) AS former_size,
                max(time) FILTER (WHERE is_new) AS time, max(time) FILTER (WHERE NOT is_new) AS former_time
            FROM (SELECT owner, seq, session, ordinal, tombstoned_at, tokens, time, true AS is_new FROM after_change
                  UNION ALL SELECT owner, seq, session, ordinal, tombstoned_at, tokens, time, false FROM before_change) r
            GROUP BY owner, seq) p) p;
    UPDATE sessions s SET version = now_version, grown = CASE WHEN c.has_grown THEN now_version ELSE s.grown END
    FROM (SELECT u.owner, u.session, bool_or(u.is_growing) AS has_grown
          FROM unnest(changed.owners, changed.sessions, changed.growing) AS u (owner, session, is_growing)
          WHERE u.session IS NOT NULL GROUP BY 1, 2) c
    WHERE s.owner = c.owner AND s.seq = c.session;
    IF changed.other_owners IS NOT NULL THEN
        PERFORM count_sessions(changed.other_owners || changed.other_owners,
            changed.other_formers || changed.other_sessions, changed.went || changed.came,
            changed.former_sizes || changed.sizes, changed.former_times || changed.times);
    END IF;
    IF changed.moved_owners IS NULL THEN RETURN NULL; END IF;
    -- Memories that these replaced hold again, or no longer.
    PERFORM touch_sessions(array_agg(c.owner), array_agg(c.session)) FROM (
        SELECT m.owner, m.session FROM unnest(changed.moved_owners, changed.moved_seqs) AS u (owner, seq)
            JOIN superseded r ON r.newer_owner = u.owner AND r.newer = u.seq
            JOIN memories m ON m.owner = r.owner AND m.seq = r.memory
        UNION SELECT m.owner, m.session FROM unnest(changed.moved_owners, changed.moved_seqs) AS u (owner, seq)
            JOIN statements o ON o.owner = u.owner AND o.memory = u.seq AND o.subject IS NOT NULL
            JOIN statements t ON t.owner = o.owner AND t.subject = o.subject
            JOIN memories m ON m.owner = t.owner AND m.seq = t.memory) c;
    -- A consulted assistant no longer gets the opening that may quote a forgotten message.
    DELETE FROM thread_blocks b USING threads t, thread_turns u, threads o,
            unnest(changed.gone_owners, changed.gone_seqs) AS q (owner, seq)
        WHERE u.owner = q.owner AND (u.question = q.seq OR u.answer = q.seq) AND o.owner = u.owner AND o.seq = u.thread
            AND t.owner = o.owner AND t.session = o.session AND b.owner = t.owner AND b.thread = t.seq
            AND b.part = 'opening';
    PERFORM messages_changed(changed.moved_owners, changed.moved_sessions, changed.moved_ordinals);
    RETURN NULL;
END $$;
CREATE TRIGGER memories_changed AFTER UPDATE ON memories
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION memories_changed();

-- A memory that a removed one replaced is replaced by what replaced the removed one.
CREATE FUNCTION memory_goes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The same statement may have removed others of them already: their rows leave only at its end.
    INSERT INTO superseded (owner, memory, newer_owner, newer)
        SELECT o.owner, o.memory, n.newer_owner, n.newer FROM superseded o
        JOIN superseded n ON n.owner = o.newer_owner AND n.memory = o.newer
        JOIN memories a ON a.owner = o.owner AND a.seq = o.memory
        JOIN memories b ON b.owner = n.newer_owner AND b.seq = n.newer
        WHERE o.newer_owner = OLD.owner AND o.newer = OLD.seq AND o.memory <> n.newer
        ON CONFLICT DO NOTHING;
    RETURN OLD;
END $$;
CREATE TRIGGER memory_goes BEFORE DELETE ON memories FOR EACH ROW EXECUTE FUNCTION memory_goes();

-- The foreign key of a turn forgets a message that was removed. A receipt may quote the message.
CREATE FUNCTION turn_lost_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.receipt := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER turn_lost_message BEFORE UPDATE ON thread_turns FOR EACH ROW
    WHEN (NEW.question IS NULL OR NEW.answer IS NULL) EXECUTE FUNCTION turn_lost_message();

CREATE FUNCTION memories_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    parts bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM removed) THEN RETURN NULL; END IF;
    PERFORM touch(ARRAY(SELECT DISTINCT owner FROM removed));
    PERFORM touch_sessions(array_agg(owner), array_agg(session)) FROM removed WHERE session IS NOT NULL;
    -- What is purged was forgotten before, and what was made of it left then.
    PERFORM count_sessions(array_agg(owner), array_agg(session), array_agg(-1), array_agg(tokens), array_agg(time)),
        messages_changed(array_agg(owner), array_agg(session), array_agg(ordinal))
        FROM removed WHERE tombstoned_at IS NULL AND session IS NOT NULL HAVING count(*) > 0;
    -- A summary of a quarter leaves with a session that it summarises, unless that session was retired. The summary may
    -- be of another part of the store.
    IF EXISTS (SELECT FROM removed WHERE kind = 'conversation') THEN
        parts := parts_of_store((SELECT owner FROM removed LIMIT 1));
        DELETE FROM memories m USING removed c, memory_references r
            WHERE c.kind = 'conversation' AND r.owner = ANY (parts) AND r.target = c.id
                AND m.owner = r.owner AND m.seq = r.memory AND m.kind = 'summary' AND m.provenance = 'derived'
                AND NOT EXISTS (SELECT FROM sessions s WHERE s.owner = c.owner AND s.seq = c.session AND s.retired = c.id);
    END IF;
    DELETE FROM operation_memories o USING removed c WHERE o.memory_owner = c.owner AND o.memory = c.seq;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_removed AFTER DELETE ON memories REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION memories_removed();

-- The memory that summarised a session leaves with the row that says so.
CREATE FUNCTION conversations_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memories m USING removed c WHERE m.owner = c.owner AND m.seq = c.memory;
    RETURN NULL;
END $$;
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION conversations_removed();

-- A retired session that is remembered again: summaries of quarters refer to its new summary.
CREATE FUNCTION conversation_came_back() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    former text := (SELECT retired FROM sessions WHERE owner = NEW.owner AND seq = NEW.session);
    present text := (SELECT id FROM memories WHERE owner = NEW.owner AND seq = NEW.memory);
    parts bigint[];
BEGIN
    IF former IS NULL THEN RETURN NULL; END IF;
    parts := parts_of_store(NEW.owner);
    INSERT INTO memory_references (owner, memory, target)
        SELECT r.owner, r.memory, present FROM memory_references r
        JOIN memories q ON q.owner = r.owner AND q.seq = r.memory
        WHERE r.owner = ANY (parts) AND r.target = former AND q.kind = 'summary' AND q.provenance = 'derived'
            AND present IS NOT NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM memory_references WHERE owner = ANY (parts) AND target = former AND target <> present;
    UPDATE sessions SET retired = NULL WHERE owner = NEW.owner AND seq = NEW.session;
    RETURN NULL;
END $$;
CREATE TRIGGER conversation_came_back AFTER INSERT ON conversations
    FOR EACH ROW EXECUTE FUNCTION conversation_came_back();

CREATE FUNCTION summaries_made() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_sessions(array_agg(owner), array_agg(session)) FROM added HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER summaries_made AFTER INSERT ON summaries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION summaries_made();

CREATE FUNCTION superseded_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_sessions(array_agg(m.owner), array_agg(m.session)) FROM added a
        JOIN memories m ON m.owner = a.owner AND m.seq = a.memory HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER superseded_added AFTER INSERT ON superseded REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION superseded_added();

CREATE FUNCTION statements_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_sessions(array_agg(m.owner), array_agg(m.session)) FROM added a
        JOIN statements t ON t.owner = a.owner AND t.subject = a.subject
        JOIN memories m ON m.owner = t.owner AND m.seq = t.memory
        WHERE a.subject IS NOT NULL HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER statements_added AFTER INSERT ON statements REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION statements_added();

-- Contexts leave out what is held out.
CREATE FUNCTION stash_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM changed) THEN RETURN NULL; END IF;
    PERFORM touch(ARRAY(SELECT DISTINCT owner FROM changed));
    PERFORM touch_sessions(array_agg(m.owner), array_agg(m.session))
        FROM changed c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
        WHERE c.is_held_out AND m.session IS NOT NULL HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER stash_came AFTER INSERT ON stashed REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION stash_changed();
CREATE TRIGGER stash_left AFTER DELETE ON stashed REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION stash_changed();

CREATE FUNCTION stash_held() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_sessions(array_agg(m.owner), array_agg(m.session))
        FROM (SELECT owner, memory FROM (SELECT * FROM after_change UNION ALL SELECT * FROM before_change) r
              GROUP BY owner, memory HAVING bool_or(is_held_out) <> bool_and(is_held_out)) n
        JOIN memories m ON m.owner = n.owner AND m.seq = n.memory HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER stash_held AFTER UPDATE ON stashed
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION stash_held();

-- A copy of a file leaves with the last thread that has it.
CREATE FUNCTION blobs_left() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM blobs b USING removed r WHERE b.owner = r.owner AND b.seq = r.blob
        AND NOT EXISTS (SELECT FROM thread_blocks t WHERE t.owner = b.owner AND t.blob = b.seq)
        AND NOT EXISTS (SELECT FROM thread_copies c WHERE c.owner = b.owner AND c.blob = b.seq);
    RETURN NULL;
END $$;
CREATE TRIGGER blocks_removed AFTER DELETE ON thread_blocks REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION blobs_left();
CREATE TRIGGER copies_removed AFTER DELETE ON thread_copies REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION blobs_left();

-- Links of commits of other parts of the store leave with the session.
CREATE FUNCTION sessions_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM commit_sessions l USING removed s WHERE l.session_owner = s.owner AND l.session = s.seq;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_removed AFTER DELETE ON sessions REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION sessions_removed();

-- The sizes of the text index; the postings leave with their documents.
CREATE FUNCTION documents_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO index_sizes AS s (owner, facet, documents, words)
        SELECT owner, facet, count(*), sum(words) FROM added GROUP BY 1, 2
        ON CONFLICT (owner, facet) DO UPDATE
            SET documents = s.documents + excluded.documents, words = s.words + excluded.words;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_added AFTER INSERT ON documents REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION documents_added();

CREATE FUNCTION documents_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM removed) THEN RETURN NULL; END IF;
    DELETE FROM postings p USING removed r WHERE p.owner = r.owner AND p.chunk = r.chunk;
    UPDATE index_sizes s SET documents = s.documents - r.documents, words = s.words - r.words
        FROM (SELECT owner, facet, count(*) AS documents, sum(words) AS words FROM removed GROUP BY 1, 2) r
        WHERE s.owner = r.owner AND s.facet = r.facet;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_removed AFTER DELETE ON documents REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION documents_removed();
