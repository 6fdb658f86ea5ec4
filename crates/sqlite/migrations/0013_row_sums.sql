-- Sums by which damage is noticed inside the rows of tables that memories and threads have beside them. `part` is the
-- number of the table, and `key` a row of it; or, if the rows of the table belong to others, the row that they belong to: a
-- sum then covers all of them, so that one that went elsewhere is noticed too. Sums are computed while the program rests.
-- Triggers remove a sum when what it covers changes, whatever program writes.
CREATE TABLE row_sums (
    part INTEGER NOT NULL,
    key  INTEGER NOT NULL,
    sum  BLOB NOT NULL,
    PRIMARY KEY (part, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sessions_sum_of_removed AFTER DELETE ON sessions BEGIN
    DELETE FROM row_sums WHERE part = 1 AND key = OLD.seq;
END;
CREATE TRIGGER sessions_sum_of_changed AFTER UPDATE OF seq, name, branch, head_sha, client, worktree, title,
    noted, last, retired ON sessions BEGIN
    DELETE FROM row_sums WHERE part = 1 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER session_aliases_sum_of_added AFTER INSERT ON session_aliases BEGIN
    DELETE FROM row_sums WHERE part = 2 AND key = NEW.session;
END;
CREATE TRIGGER session_aliases_sum_of_removed AFTER DELETE ON session_aliases BEGIN
    DELETE FROM row_sums WHERE part = 2 AND key = OLD.session;
END;
CREATE TRIGGER session_aliases_sum_of_changed AFTER UPDATE OF session, alias ON session_aliases BEGIN
    DELETE FROM row_sums WHERE part = 2 AND key IN (OLD.session, NEW.session);
END;

CREATE TRIGGER memory_paths_sum_of_added AFTER INSERT ON memory_paths BEGIN
    DELETE FROM row_sums WHERE part = 3 AND key = NEW.memory;
END;
CREATE TRIGGER memory_paths_sum_of_removed AFTER DELETE ON memory_paths BEGIN
    DELETE FROM row_sums WHERE part = 3 AND key = OLD.memory;
END;
CREATE TRIGGER memory_paths_sum_of_changed AFTER UPDATE OF memory, path ON memory_paths BEGIN
    DELETE FROM row_sums WHERE part = 3 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER memory_references_sum_of_added AFTER INSERT ON memory_references BEGIN
    DELETE FROM row_sums WHERE part = 4 AND key = NEW.memory;
END;
CREATE TRIGGER memory_references_sum_of_removed AFTER DELETE ON memory_references BEGIN
    DELETE FROM row_sums WHERE part = 4 AND key = OLD.memory;
END;
CREATE TRIGGER memory_references_sum_of_changed AFTER UPDATE OF memory, target ON memory_references BEGIN
    DELETE FROM row_sums WHERE part = 4 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER commit_ids_sum_of_added AFTER INSERT ON commit_ids BEGIN
    DELETE FROM row_sums WHERE part = 5 AND key = NEW.memory;
END;
CREATE TRIGGER commit_ids_sum_of_removed AFTER DELETE ON commit_ids BEGIN
    DELETE FROM row_sums WHERE part = 5 AND key = OLD.memory;
END;
CREATE TRIGGER commit_ids_sum_of_changed AFTER UPDATE OF memory, sha ON commit_ids BEGIN
    DELETE FROM row_sums WHERE part = 5 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER commit_parents_sum_of_added AFTER INSERT ON commit_parents BEGIN
    DELETE FROM row_sums WHERE part = 6 AND key = NEW.memory;
END;
CREATE TRIGGER commit_parents_sum_of_removed AFTER DELETE ON commit_parents BEGIN
    DELETE FROM row_sums WHERE part = 6 AND key = OLD.memory;
END;
CREATE TRIGGER commit_parents_sum_of_changed AFTER UPDATE OF memory, place, sha ON commit_parents BEGIN
    DELETE FROM row_sums WHERE part = 6 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER commit_sessions_sum_of_added AFTER INSERT ON commit_sessions BEGIN
    DELETE FROM row_sums WHERE part = 7 AND key = NEW.memory;
END;
CREATE TRIGGER commit_sessions_sum_of_removed AFTER DELETE ON commit_sessions BEGIN
    DELETE FROM row_sums WHERE part = 7 AND key = OLD.memory;
END;
CREATE TRIGGER commit_sessions_sum_of_changed AFTER UPDATE OF memory, place, session, confidence
    ON commit_sessions BEGIN
    DELETE FROM row_sums WHERE part = 7 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER chunks_sum_of_removed AFTER DELETE ON chunks BEGIN
    DELETE FROM row_sums WHERE part = 8 AND key = OLD.seq;
END;
CREATE TRIGGER chunks_sum_of_changed AFTER UPDATE OF seq, memory, ordinal, start_byte, end_byte, tokens
    ON chunks BEGIN
    DELETE FROM row_sums WHERE part = 8 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER segments_sum_of_added AFTER INSERT ON segments BEGIN
    DELETE FROM row_sums WHERE part = 9 AND key = NEW.session;
END;
CREATE TRIGGER segments_sum_of_removed AFTER DELETE ON segments BEGIN
    DELETE FROM row_sums WHERE part = 9 AND key = OLD.session;
END;
CREATE TRIGGER segments_sum_of_changed AFTER UPDATE OF session, number, first, last, messages, tokens
    ON segments BEGIN
    DELETE FROM row_sums WHERE part = 9 AND key IN (OLD.session, NEW.session);
END;

CREATE TRIGGER summaries_sum_of_removed AFTER DELETE ON summaries BEGIN
    DELETE FROM row_sums WHERE part = 10 AND key = OLD.seq;
END;
CREATE TRIGGER summaries_sum_of_changed AFTER UPDATE OF seq, id, session, segment, level, first, last,
    messages, version, provider, model, quality, provenance, made_at, source_hash, cited, tokens, text
    ON summaries BEGIN
    DELETE FROM row_sums WHERE part = 10 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER conversations_sum_of_removed AFTER DELETE ON conversations BEGIN
    DELETE FROM row_sums WHERE part = 11 AND key = OLD.session;
END;
CREATE TRIGGER conversations_sum_of_changed AFTER UPDATE OF session, memory, last, made_at, due ON conversations BEGIN
    DELETE FROM row_sums WHERE part = 11 AND key IN (OLD.session, NEW.session);
END;

CREATE TRIGGER statements_sum_of_removed AFTER DELETE ON statements BEGIN
    DELETE FROM row_sums WHERE part = 12 AND key = OLD.seq;
END;
CREATE TRIGGER statements_sum_of_changed AFTER UPDATE OF seq, memory, number, start_byte, end_byte, voice,
    value, words, time, subject ON statements BEGIN
    DELETE FROM row_sums WHERE part = 12 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER superseded_sum_of_added AFTER INSERT ON superseded BEGIN
    DELETE FROM row_sums WHERE part = 13 AND key = NEW.memory;
END;
CREATE TRIGGER superseded_sum_of_removed AFTER DELETE ON superseded BEGIN
    DELETE FROM row_sums WHERE part = 13 AND key = OLD.memory;
END;
CREATE TRIGGER superseded_sum_of_changed AFTER UPDATE OF memory, newer ON superseded BEGIN
    DELETE FROM row_sums WHERE part = 13 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER threads_sum_of_removed AFTER DELETE ON threads BEGIN
    DELETE FROM row_sums WHERE part = 14 AND key = OLD.seq;
END;
CREATE TRIGGER threads_sum_of_changed AFTER UPDATE OF seq, session, assistant, epoch, turns, is_fixed, window,
    rules, created, updated, context ON threads BEGIN
    DELETE FROM row_sums WHERE part = 14 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER blobs_sum_of_removed AFTER DELETE ON blobs BEGIN
    DELETE FROM row_sums WHERE part = 15 AND key = OLD.seq;
END;
CREATE TRIGGER blobs_sum_of_changed AFTER UPDATE OF seq, hash, length, bytes ON blobs BEGIN
    DELETE FROM row_sums WHERE part = 15 AND key IN (OLD.seq, NEW.seq);
END;

CREATE TRIGGER thread_blocks_sum_of_added AFTER INSERT ON thread_blocks BEGIN
    DELETE FROM row_sums WHERE part = 16 AND key = NEW.thread;
END;
CREATE TRIGGER thread_blocks_sum_of_removed AFTER DELETE ON thread_blocks BEGIN
    DELETE FROM row_sums WHERE part = 16 AND key = OLD.thread;
END;
CREATE TRIGGER thread_blocks_sum_of_changed AFTER UPDATE OF thread, place, turn, part, path, tokens, memory,
    blob ON thread_blocks BEGIN
    DELETE FROM row_sums WHERE part = 16 AND key IN (OLD.thread, NEW.thread);
END;

CREATE TRIGGER thread_files_sum_of_added AFTER INSERT ON thread_files BEGIN
    DELETE FROM row_sums WHERE part = 17 AND key = NEW.thread;
END;
CREATE TRIGGER thread_files_sum_of_removed AFTER DELETE ON thread_files BEGIN
    DELETE FROM row_sums WHERE part = 17 AND key = OLD.thread;
END;
CREATE TRIGGER thread_files_sum_of_changed AFTER UPDATE OF thread, path, is_inline, is_removed, size, mtime,
    ctime, inode, raw, sent, tokens ON thread_files BEGIN
    DELETE FROM row_sums WHERE part = 17 AND key IN (OLD.thread, NEW.thread);
END;

CREATE TRIGGER thread_copies_sum_of_added AFTER INSERT ON thread_copies BEGIN
    DELETE FROM row_sums WHERE part = 18 AND key = NEW.thread;
END;
CREATE TRIGGER thread_copies_sum_of_removed AFTER DELETE ON thread_copies BEGIN
    DELETE FROM row_sums WHERE part = 18 AND key = OLD.thread;
END;
CREATE TRIGGER thread_copies_sum_of_changed AFTER UPDATE OF thread, blob ON thread_copies BEGIN
    DELETE FROM row_sums WHERE part = 18 AND key IN (OLD.thread, NEW.thread);
END;

CREATE TRIGGER thread_turns_sum_of_added AFTER INSERT ON thread_turns BEGIN
    DELETE FROM row_sums WHERE part = 19 AND key = NEW.thread;
END;
CREATE TRIGGER thread_turns_sum_of_removed AFTER DELETE ON thread_turns BEGIN
    DELETE FROM row_sums WHERE part = 19 AND key = OLD.thread;
END;
CREATE TRIGGER thread_turns_sum_of_changed AFTER UPDATE OF thread, number, epoch, call, question, answer,
    model, time, prompt, appended, whole, input, cached, output, micros, receipt ON thread_turns BEGIN
    DELETE FROM row_sums WHERE part = 19 AND key IN (OLD.thread, NEW.thread);
END;

CREATE TRIGGER stashed_sum_of_removed AFTER DELETE ON stashed BEGIN
    DELETE FROM row_sums WHERE part = 20 AND key = OLD.memory;
END;
CREATE TRIGGER stashed_sum_of_changed AFTER UPDATE OF memory, stashed_at, expires_at, is_protected,
    is_held_out, is_given, topic, cause ON stashed BEGIN
    DELETE FROM row_sums WHERE part = 20 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER file_writes_sum_of_added AFTER INSERT ON file_writes BEGIN
    DELETE FROM row_sums WHERE part = 21 AND key = NEW.memory;
END;
CREATE TRIGGER file_writes_sum_of_removed AFTER DELETE ON file_writes BEGIN
    DELETE FROM row_sums WHERE part = 21 AND key = OLD.memory;
END;
CREATE TRIGGER file_writes_sum_of_changed AFTER UPDATE OF memory, time, path, worktree, branch, lines
    ON file_writes BEGIN
    DELETE FROM row_sums WHERE part = 21 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER commit_calls_sum_of_added AFTER INSERT ON commit_calls BEGIN
    DELETE FROM row_sums WHERE part = 22 AND key = NEW.memory;
END;
CREATE TRIGGER commit_calls_sum_of_removed AFTER DELETE ON commit_calls BEGIN
    DELETE FROM row_sums WHERE part = 22 AND key = OLD.memory;
END;
CREATE TRIGGER commit_calls_sum_of_changed AFTER UPDATE OF memory, began, ended, sha, worktree ON commit_calls BEGIN
    DELETE FROM row_sums WHERE part = 22 AND key IN (OLD.memory, NEW.memory);
END;

CREATE TRIGGER memories_sum_of_removed AFTER DELETE ON memories BEGIN
    DELETE FROM row_sums WHERE part = 23 AND key = OLD.seq;
END;
CREATE TRIGGER memories_sum_of_changed AFTER UPDATE OF seq, session ON memories BEGIN
    DELETE FROM row_sums WHERE part = 23 AND key IN (OLD.seq, NEW.seq);
END;
