-- The stores of all tenants. Times are milliseconds since 1970 UTC.
--
-- Every row has an owner, and every key begins with it. An owner is a part of a store: what a tenant shares in a
-- project, or what an author of the tenant keeps private there. So one reader's rows lie side by side, in one partition
-- and on one shard.
--
-- The transactions that write to a store take turns: each locks the row of the store's shared part. So within a store,
-- keys rise in the order in which the writes become visible.

CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

CREATE SEQUENCE keys;

-- The parts of all stores. The shared part has the author ''.
CREATE TABLE owners (
    seq     bigint PRIMARY KEY DEFAULT nextval('keys'),
    tenant  text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    author  text COLLATE "C" NOT NULL,
    UNIQUE (tenant, project, author)
);

-- Changes with every change of an owner's memories: the number of the transaction.
CREATE TABLE versions (
    owner   bigint PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    version bigint NOT NULL
);

CREATE TABLE sessions (
    owner      bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    seq        bigint NOT NULL DEFAULT nextval('keys'),
    name       text COLLATE "C" NOT NULL,
    branch     text COLLATE "C",
    head_sha   text COLLATE "C",
    client     text COLLATE "C",
    worktree   text COLLATE "C",
    title      text COLLATE "C",
    -- The version when the session changed last; and when its messages did, until that was worked off.
    version    bigint NOT NULL DEFAULT 0,
    grown      bigint,
    -- The last ordinal that was given. It isn't given again if its message is purged.
    last       bigint NOT NULL DEFAULT -1,
    -- The memory that summarised the session when it was forgotten because of its age.
    retired    text COLLATE "C",
    -- The ordinal of the last message whose facts were extracted.
    noted      bigint NOT NULL DEFAULT -1,
    -- The living memories.
    memories   bigint NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    first_time bigint,
    last_time  bigint,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, name)
);
CREATE INDEX sessions_grown ON sessions (owner, grown) WHERE grown IS NOT NULL;
CREATE INDEX sessions_by_last ON sessions (owner, last_time DESC) WHERE memories > 0;

-- Other names of a session: those of the sessions it resumed or was forked from.
CREATE TABLE session_aliases (
    owner   bigint NOT NULL,
    alias   text COLLATE "C" NOT NULL,
    session bigint NOT NULL,
    PRIMARY KEY (owner, alias),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX session_aliases_by_session ON session_aliases (owner, session);

CREATE TABLE memories (
    owner         bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    seq           bigint NOT NULL DEFAULT nextval('keys'),
    id            text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    provenance    text COLLATE "C" NOT NULL,
    author        text COLLATE "C" NOT NULL,
    session       bigint,
    ordinal       bigint,
    role          text COLLATE "C",
    speaker       text COLLATE "C",
    title         text COLLATE "C",
    topic         text COLLATE "C",
    source_id     text COLLATE "C",
    path          text COLLATE "C",
    branch        text COLLATE "C",
    head_sha      text COLLATE "C",
    time          bigint NOT NULL,
    stored_at     bigint NOT NULL,
    importance    double precision,
    marked        boolean NOT NULL DEFAULT false,
    tombstoned_at bigint,
    tokens        bigint NOT NULL,
    text_hash     bytea NOT NULL,
    text          text COLLATE "C" NOT NULL,
    -- What the indexes hold of it, where that isn't the text.
    indexed       text COLLATE "C",
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, id),
    FOREIGN KEY (owner, session) REFERENCES sessions
);
CREATE INDEX memories_by_session ON memories (owner, session, ordinal) WHERE session IS NOT NULL;
-- Counts read only this index.
CREATE INDEX memories_by_kind ON memories (owner, kind, time) INCLUDE (tombstoned_at, provenance, tokens);
CREATE INDEX memories_by_time ON memories (owner, time) WHERE tombstoned_at IS NULL;
CREATE INDEX memories_by_source ON memories (owner, source_id) WHERE source_id IS NOT NULL;
CREATE INDEX memories_by_head ON memories (owner, head_sha) WHERE head_sha IS NOT NULL;
CREATE INDEX memories_important ON memories (owner, session, ordinal) WHERE marked OR importance IS NOT NULL;

CREATE TABLE memory_paths (
    owner  bigint NOT NULL,
    path   text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    PRIMARY KEY (owner, path, memory),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_paths_by_memory ON memory_paths (owner, memory);

-- The target may be in another part of the store, or unknown.
CREATE TABLE memory_references (
    owner  bigint NOT NULL,
    memory bigint NOT NULL,
    target text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, memory, target),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_references_by_target ON memory_references (owner, target);

-- A commit that was rebased or picked is one memory with several ids.
CREATE TABLE commit_ids (
    owner  bigint NOT NULL,
    sha    text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    PRIMARY KEY (owner, sha),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX commit_ids_by_memory ON commit_ids (owner, memory);
CREATE INDEX commit_ids_by_beginning ON commit_ids (owner, sha text_pattern_ops);

CREATE TABLE commit_parents (
    owner  bigint NOT NULL,
    memory bigint NOT NULL,
    place  bigint NOT NULL,
    sha    text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, memory, place),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX commit_parents_by_sha ON commit_parents (owner, sha);

-- The sessions that led to a commit, the likeliest first. A session of another part of the store has an owner of its
-- own: links leave with the commit and, by a trigger, with the session.
CREATE TABLE commit_sessions (
    owner         bigint NOT NULL,
    memory        bigint NOT NULL,
    place         bigint NOT NULL,
    session_owner bigint NOT NULL,
    session       bigint NOT NULL,
    confidence    double precision NOT NULL CHECK (confidence >= 0.5),
    PRIMARY KEY (owner, memory, place),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX commit_sessions_by_session ON commit_sessions (session_owner, session);

-- What tool calls did, by which sessions are linked with commits. Lines are 32-bit hashes.
CREATE TABLE file_writes (
    owner    bigint NOT NULL,
    memory   bigint NOT NULL,
    time     bigint NOT NULL,
    path     text COLLATE "C" NOT NULL,
    worktree text COLLATE "C",
    branch   text COLLATE "C",
    lines    bytea,
    PRIMARY KEY (owner, memory, time, path),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX file_writes_by_time ON file_writes (owner, time);
CREATE INDEX file_writes_by_path ON file_writes (owner, path, time);

CREATE TABLE commit_calls (
    owner    bigint NOT NULL,
    memory   bigint NOT NULL,
    began    bigint NOT NULL,
    ended    bigint NOT NULL,
    sha      text COLLATE "C" NOT NULL,
    worktree text COLLATE "C",
    PRIMARY KEY (owner, memory, began, sha),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX commit_calls_by_time ON commit_calls (owner, began);

CREATE TABLE commit_graph (
    owner   bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    stamp   text COLLATE "C" NOT NULL,
    first   bigint NOT NULL,
    count   bigint NOT NULL,
    commits bytea NOT NULL,
    seq     bigint NOT NULL DEFAULT nextval('keys'),
    PRIMARY KEY (owner, stamp, first)
);

-- Outputs so like an earlier one that only their number is kept.
CREATE TABLE repeats (
    owner  bigint NOT NULL,
    memory bigint NOT NULL,
    key    text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, memory, key),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX repeats_by_key ON repeats (owner, key);

-- Byte ranges of a memory's text. A chunk has an embedding, or waits for one.
CREATE TABLE chunks (
    owner      bigint NOT NULL,
    seq        bigint NOT NULL DEFAULT nextval('keys'),
    memory     bigint NOT NULL,
    ordinal    bigint NOT NULL,
    start_byte bigint NOT NULL,
    end_byte   bigint NOT NULL,
    tokens     bigint NOT NULL,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, memory, ordinal),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);

CREATE TABLE vectors (
    owner     bigint NOT NULL,
    chunk     bigint NOT NULL,
    space     text COLLATE "C" NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (owner, chunk),
    FOREIGN KEY (owner, chunk) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX vectors_by_space ON vectors (owner, space);

CREATE TABLE pending (
    owner bigint NOT NULL,
    chunk bigint NOT NULL,
    PRIMARY KEY (owner, chunk),
    FOREIGN KEY (owner, chunk) REFERENCES chunks ON DELETE CASCADE
);

-- The text index. A document is the row of a chunk: how many words it has, and the number of its group of kinds.
CREATE TABLE documents (
    owner bigint NOT NULL,
    chunk bigint NOT NULL,
    words integer NOT NULL,
    facet smallint NOT NULL,
    PRIMARY KEY (owner, chunk),
    FOREIGN KEY (owner, chunk) REFERENCES chunks ON DELETE CASCADE
);

-- The stems of each document. An entry has what is needed to rank the document: its group, how many words it has, and
-- the places of the stem (`search/entry.rs`). Everything is in the index of the key, so a search reads only that. Postings
-- leave with their document by a trigger, because a foreign key would be checked for each of some hundred postings of a
-- memory.
CREATE TABLE postings (
    owner bigint NOT NULL,
    stem  text COLLATE "C" NOT NULL,
    chunk bigint NOT NULL,
    entry bytea NOT NULL,
    PRIMARY KEY (owner, stem, chunk) INCLUDE (entry)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX postings_by_chunk ON postings (owner, chunk);

-- How many documents of each group there are, and how many words they have together. Triggers keep it.
CREATE TABLE index_sizes (
    owner     bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    facet     smallint NOT NULL,
    documents bigint NOT NULL,
    words     bigint NOT NULL,
    PRIMARY KEY (owner, facet)
);

-- Which memories later ones replaced by request, and the statements of which the latest of a subject holds.
CREATE TABLE superseded (
    owner       bigint NOT NULL,
    memory      bigint NOT NULL,
    newer_owner bigint NOT NULL,
    newer       bigint NOT NULL CHECK (memory <> newer),
    PRIMARY KEY (owner, memory, newer),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (newer_owner, newer) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX superseded_by_newer ON superseded (newer_owner, newer);

CREATE TABLE statements (
    owner      bigint NOT NULL,
    seq        bigint NOT NULL DEFAULT nextval('keys'),
    memory     bigint NOT NULL,
    number     bigint NOT NULL,
    start_byte bigint NOT NULL,
    end_byte   bigint NOT NULL,
    voice      text COLLATE "C" NOT NULL,
    value      text COLLATE "C" NOT NULL,
    words      text COLLATE "C" NOT NULL,
    time       bigint NOT NULL,
    subject    bigint,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, memory, number),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX statements_by_voice ON statements (owner, voice, time, seq);
CREATE INDEX statements_by_subject ON statements (owner, subject, time, seq) WHERE subject IS NOT NULL;

-- What forgetting did, so that it can be undone. The memories may be of other parts of the store.
CREATE TABLE operations (
    owner     bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id        text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    undone_at bigint,
    PRIMARY KEY (owner, id)
);
CREATE TABLE operation_memories (
    owner        bigint NOT NULL,
    operation    text COLLATE "C" NOT NULL,
    memory_owner bigint NOT NULL,
    memory       bigint NOT NULL,
    PRIMARY KEY (owner, operation, memory),
    FOREIGN KEY (owner, operation) REFERENCES operations ON DELETE CASCADE
);
CREATE INDEX operation_memories_by_memory ON operation_memories (memory_owner, memory);

-- Ids that were purged: an import must not bring them back.
CREATE TABLE purged (
    owner bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    id    text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, id)
);

CREATE TABLE leases (
    owner   bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    name    text COLLATE "C" NOT NULL,
    holder  text COLLATE "C" NOT NULL,
    expires bigint NOT NULL,
    PRIMARY KEY (owner, name)
);

-- How far an import came.
CREATE TABLE imports (
    owner  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    source text COLLATE "C" NOT NULL,
    cursor text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (owner, source)
);

-- How often each tool was called and how long it took: a bucket is a quarter of a doubling, in microseconds.
CREATE TABLE measurements (
    owner  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    name   text COLLATE "C" NOT NULL,
    bucket bigint NOT NULL,
    count  bigint NOT NULL,
    PRIMARY KEY (owner, name, bucket)
);
CREATE TABLE counters (
    owner bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    name  text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (owner, name)
);

-- Runs of messages by ordinal, each beginning where the one before ended. Messages and tokens are those not forgotten.
CREATE TABLE segments (
    owner    bigint NOT NULL,
    session  bigint NOT NULL,
    number   bigint NOT NULL,
    first    bigint NOT NULL,
    last     bigint NOT NULL,
    messages bigint NOT NULL,
    tokens   bigint NOT NULL,
    PRIMARY KEY (owner, session, number),
    UNIQUE (owner, session, first),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);

-- Never changed: what is made anew of the same range is the next version.
CREATE TABLE summaries (
    owner       bigint NOT NULL,
    seq         bigint NOT NULL DEFAULT nextval('keys'),
    id          text COLLATE "C" NOT NULL,
    session     bigint NOT NULL,
    segment     bigint,
    level       text COLLATE "C" NOT NULL,
    first       bigint NOT NULL,
    last        bigint NOT NULL,
    messages    bigint NOT NULL,
    version     bigint NOT NULL,
    provider    text COLLATE "C" NOT NULL,
    model       text COLLATE "C" NOT NULL,
    quality     double precision NOT NULL,
    provenance  text COLLATE "C" NOT NULL,
    made_at     bigint NOT NULL,
    source_hash bytea NOT NULL,
    cited       text COLLATE "C" NOT NULL,
    tokens      bigint NOT NULL,
    text        text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, id),
    UNIQUE (owner, session, first, last, level, version),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);

-- The memory that a session as a whole was summarised as, and up to which message; where more were said since, when it
-- is to be made anew.
CREATE TABLE conversations (
    owner   bigint NOT NULL,
    session bigint NOT NULL,
    memory  bigint NOT NULL,
    last    bigint NOT NULL,
    made_at bigint NOT NULL,
    due     bigint,
    PRIMARY KEY (owner, session),
    UNIQUE (owner, memory),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE,
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX conversations_by_due ON conversations (owner, due) WHERE due IS NOT NULL;

-- Summaries that were asked for and are to be made by a provider.
CREATE TABLE summary_queue (
    owner      bigint NOT NULL,
    seq        bigint NOT NULL DEFAULT nextval('keys'),
    session    bigint NOT NULL,
    level      text COLLATE "C" NOT NULL,
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    provider   text COLLATE "C" NOT NULL,
    by_user    boolean NOT NULL,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed')),
    holder     text COLLATE "C",
    expires    bigint NOT NULL DEFAULT 0,
    tries      bigint NOT NULL DEFAULT 0,
    not_before bigint NOT NULL,
    error      text COLLATE "C",
    queued_at  bigint NOT NULL,
    changed_at bigint NOT NULL,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, session, first, last, level, provider),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX summary_queue_by_state ON summary_queue (owner, state, by_user, seq);

-- Every time a summary was tried: by whom, at what cost in millionths of a dollar, with what success.
CREATE TABLE summary_attempts (
    owner         bigint NOT NULL,
    seq           bigint NOT NULL DEFAULT nextval('keys'),
    session       bigint NOT NULL,
    level         text COLLATE "C" NOT NULL,
    first         bigint NOT NULL,
    last          bigint NOT NULL,
    provider      text COLLATE "C" NOT NULL,
    model         text COLLATE "C" NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros   bigint NOT NULL,
    took_ms       bigint NOT NULL,
    quality       double precision,
    error         text COLLATE "C",
    at            bigint NOT NULL,
    PRIMARY KEY (owner, seq),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX summary_attempts_by_session ON summary_attempts (owner, session);

-- Answers by the hash of what was asked and of the version of what they were made from.
CREATE TABLE context_cache (
    owner   bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    key     bytea NOT NULL,
    expires bigint NOT NULL,
    used    bigint NOT NULL,
    bytes   bigint NOT NULL,
    body    text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL DEFAULT nextval('keys'),
    PRIMARY KEY (owner, key)
);
CREATE INDEX context_cache_by_use ON context_cache (owner, used);

-- Vectors that a provider was paid for, by the hash of what was embedded.
CREATE TABLE embedding_cache (
    owner     bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    key       bytea NOT NULL,
    embedding bytea NOT NULL,
    seq       bigint NOT NULL DEFAULT nextval('keys'),
    PRIMARY KEY (owner, key)
);
CREATE INDEX embedding_cache_by_age ON embedding_cache (owner, seq);

CREATE TABLE file_tokens (
    owner  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    hash   bytea NOT NULL,
    tokens bigint NOT NULL,
    seq    bigint NOT NULL DEFAULT nextval('keys'),
    PRIMARY KEY (owner, hash)
);
CREATE INDEX file_tokens_by_age ON file_tokens (owner, seq);

CREATE TABLE stashed (
    owner        bigint NOT NULL,
    memory       bigint NOT NULL,
    stashed_at   bigint NOT NULL,
    expires_at   bigint,
    is_protected boolean NOT NULL,
    is_held_out  boolean NOT NULL,
    is_given     boolean NOT NULL,
    topic        text COLLATE "C",
    cause        text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, memory),
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX stashed_by_time ON stashed (owner, stashed_at);
CREATE INDEX stashed_by_pruning ON stashed (owner) WHERE cause = 'pruning';
CREATE INDEX stashed_by_expiry ON stashed (owner, expires_at) WHERE expires_at IS NOT NULL;

-- What the last context of a session showed, in the part of the session.
CREATE TABLE assemblies (
    owner   bigint NOT NULL,
    session bigint NOT NULL,
    key     bytea NOT NULL,
    PRIMARY KEY (owner, session),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE TABLE assembly_lines (
    owner          bigint NOT NULL,
    session        bigint NOT NULL,
    memory_owner   bigint NOT NULL,
    memory         bigint NOT NULL,
    tokens         bigint NOT NULL,
    heading        bigint NOT NULL,
    heading_tokens bigint NOT NULL,
    PRIMARY KEY (owner, session, memory),
    FOREIGN KEY (owner, session) REFERENCES assemblies ON DELETE CASCADE,
    FOREIGN KEY (memory_owner, memory) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX assembly_lines_by_memory ON assembly_lines (memory_owner, memory);

-- Conversations with assistants: append-only blocks, the ledger of files, and copies of what was sent.
CREATE TABLE threads (
    owner     bigint NOT NULL,
    seq       bigint NOT NULL DEFAULT nextval('keys'),
    session   bigint NOT NULL,
    assistant text COLLATE "C" NOT NULL,
    epoch     bigint NOT NULL,
    turns     bigint NOT NULL,
    is_fixed  boolean NOT NULL,
    "window"  bigint NOT NULL,
    rules     bigint NOT NULL,
    created   bigint NOT NULL,
    updated   bigint NOT NULL,
    context   text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, session, assistant),
    FOREIGN KEY (owner, session) REFERENCES sessions ON DELETE CASCADE
);
CREATE TABLE blobs (
    owner  bigint NOT NULL REFERENCES owners ON DELETE CASCADE,
    seq    bigint NOT NULL DEFAULT nextval('keys'),
    hash   bytea NOT NULL,
    length bigint NOT NULL,
    bytes  bigint NOT NULL,
    body   bytea,
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, hash)
);
CREATE TABLE thread_blocks (
    owner  bigint NOT NULL,
    thread bigint NOT NULL,
    place  bigint NOT NULL,
    turn   bigint NOT NULL,
    part   text COLLATE "C" NOT NULL,
    path   text COLLATE "C",
    tokens bigint NOT NULL,
    memory bigint,
    blob   bigint,
    PRIMARY KEY (owner, thread, place),
    CHECK ((memory IS NULL) <> (blob IS NULL)),
    FOREIGN KEY (owner, thread) REFERENCES threads ON DELETE CASCADE,
    FOREIGN KEY (owner, memory) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (owner, blob) REFERENCES blobs
);
CREATE INDEX thread_blocks_by_memory ON thread_blocks (owner, memory) WHERE memory IS NOT NULL;
CREATE INDEX thread_blocks_by_blob ON thread_blocks (owner, blob) WHERE blob IS NOT NULL;
CREATE TABLE thread_files (
    owner      bigint NOT NULL,
    thread     bigint NOT NULL,
    path       text COLLATE "C" NOT NULL,
    is_inline  boolean NOT NULL,
    is_removed boolean NOT NULL,
    size       bigint,
    mtime      bigint,
    ctime      bigint,
    inode      bigint,
    raw        bytea NOT NULL,
    sent       bytea,
    tokens     bigint NOT NULL,
    PRIMARY KEY (owner, thread, path),
    FOREIGN KEY (owner, thread) REFERENCES threads ON DELETE CASCADE
);
CREATE TABLE thread_copies (
    owner  bigint NOT NULL,
    blob   bigint NOT NULL,
    thread bigint NOT NULL,
    PRIMARY KEY (owner, blob, thread),
    FOREIGN KEY (owner, blob) REFERENCES blobs,
    FOREIGN KEY (owner, thread) REFERENCES threads ON DELETE CASCADE
);
CREATE INDEX thread_copies_by_thread ON thread_copies (owner, thread);
CREATE TABLE thread_turns (
    owner    bigint NOT NULL,
    thread   bigint NOT NULL,
    number   bigint NOT NULL,
    epoch    bigint NOT NULL,
    call     text COLLATE "C" NOT NULL,
    question bigint,
    answer   bigint,
    model    text COLLATE "C" NOT NULL,
    time     bigint NOT NULL,
    prompt   bigint NOT NULL,
    appended bigint NOT NULL,
    whole    bigint NOT NULL,
    input    bigint NOT NULL,
    cached   bigint NOT NULL,
    output   bigint NOT NULL,
    micros   bigint NOT NULL,
    receipt  text COLLATE "C",
    PRIMARY KEY (owner, thread, number),
    UNIQUE (owner, thread, call),
    FOREIGN KEY (owner, thread) REFERENCES threads ON DELETE CASCADE,
    FOREIGN KEY (owner, question) REFERENCES memories ON DELETE SET NULL (question),
    FOREIGN KEY (owner, answer) REFERENCES memories ON DELETE SET NULL (answer)
);
CREATE INDEX thread_turns_by_question ON thread_turns (owner, question) WHERE question IS NOT NULL;
CREATE INDEX thread_turns_by_answer ON thread_turns (owner, answer) WHERE answer IS NOT NULL;

-- The samples of values that ANALYZE keeps would outlive a purge. No plan needs those of texts and embeddings.
ALTER TABLE memories ALTER text SET STATISTICS 0, ALTER indexed SET STATISTICS 0, ALTER title SET STATISTICS 0,
    ALTER topic SET STATISTICS 0;
ALTER TABLE sessions ALTER title SET STATISTICS 0;
ALTER TABLE vectors ALTER embedding SET STATISTICS 0;
ALTER TABLE embedding_cache ALTER embedding SET STATISTICS 0;
ALTER TABLE summaries ALTER text SET STATISTICS 0, ALTER cited SET STATISTICS 0;
ALTER TABLE statements ALTER value SET STATISTICS 0, ALTER words SET STATISTICS 0;
ALTER TABLE stashed ALTER topic SET STATISTICS 0;
ALTER TABLE context_cache ALTER body SET STATISTICS 0;
ALTER TABLE blobs ALTER body SET STATISTICS 0;
ALTER TABLE thread_turns ALTER receipt SET STATISTICS 0;
