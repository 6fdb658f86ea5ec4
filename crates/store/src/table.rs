//! The table of a store's methods.

/// Passes the table of a store's methods, by trait, to the macro `then`. An engine that has methods of these names
/// implements the traits with this macro. The first argument of every method is a scope. A method returns a `Result` of
/// the type after the arrow. [`Lifecycle`](crate::Lifecycle) is not in the table, because each engine implements it in
/// its own way.
#[macro_export]
macro_rules! methods {
    ($then:ident) => {
        $then! {
            ReadMemories {
                memory(id: &MemoryId) -> Option<Memory>;
                memories(keys: Vec<MemoryKey>) -> Vec<Memory>;
                keys_of(ids: Vec<MemoryId>) -> Vec<Option<MemoryKey>>;
                ids_beginning(beginning: &str, limit: usize) -> Vec<MemoryId>;
                list(filter: &Filter, after: Option<MemoryKey>, limit: usize) -> Vec<Memory>;
                latest(filter: &Filter, limit: usize) -> Vec<Memory>;
                shown(found: Vec<(MemoryKey, ChunkKey)>) -> Vec<ShownMemory>;
                texts(keys: Vec<MemoryKey>) -> Vec<(MemoryKey, String)>;
                checked_texts(keys: Vec<MemoryKey>) -> Vec<(MemoryKey, String, bool)>;
                surroundings(session: &SessionId, ordinal: i64, before: usize, after: usize) -> Vec<Memory>;
                beside(keys: Vec<MemoryKey>, before: Option<Before>) -> (Vec<Memory>, Vec<Memory>);
                references(memory: MemoryKey) -> Vec<MemoryKey>;
                refers_to(memory: MemoryKey) -> Vec<MemoryKey>;
                supersedes(memory: MemoryKey) -> Vec<MemoryKey>;
            }
            WriteMemories {
                save_reporting(memories: Vec<PreparedMemory>, now: Millis, on_batch: &mut (dyn FnMut(usize) + Send)) -> Receipt;
                mark(ids: &[MemoryId], marked: bool, importance: Option<f64>) -> Vec<MemoryId>;
            }
            ReadSessions {
                sessions(offset: usize, limit: usize) -> Vec<SessionRow>;
                activity(filter: &Filter) -> Vec<ActivityRow>;
                session_stands(session: &SessionId) -> (Option<String>, Option<String>);
                about_sessions(sessions: Vec<SessionId>) -> Vec<About>;
                sessions_called(text: &str, limit: usize) -> Vec<SessionId>;
                session_messages(session: &SessionId, from_ordinal: i64) -> Vec<MessageRow>;
                known_elsewhere(session: &SessionId, ids: Vec<String>) -> HashSet<String>;
                context_parts(session: &SessionId, query: ContextQuery) -> ContextParts;
                source_state() -> SourceState;
                grown_sessions(limit: usize) -> Vec<GrownSession>;
                left_sessions(before: Millis) -> Vec<LeftSession>;
            }
            WriteSessions {
                describe_session(session: &SessionId, origin: Origin) -> ();
                worked_off(grown: GrownSession) -> ();
            }
            Search {
                candidates(query: CandidateQuery) -> Candidates;
                replacements(query: ReplacementQuery) -> Replacements;
                completions(beginning: &str, limit: usize) -> Vec<String>;
                shares(terms: Vec<Term>, rarity: Vec<f64>, texts: Vec<String>) -> Vec<f64>;
            }
            ReadEmbeddings {
                pending() -> usize;
                pending_chunks(content: Option<Content>, limit: usize) -> Vec<PendingChunk>;
                derived_without_chunk(limit: usize) -> Vec<Memory>;
                cached_embeddings(keys: Vec<[u8; 32]>) -> Vec<Option<Vec<f32>>>;
                chunks_of(keys: Vec<MemoryKey>) -> Vec<(MemoryKey, ChunkRange)>;
            }
            WriteEmbeddings {
                save_embeddings(space: &str, embeddings: Vec<(PendingChunk, Vec<f32>)>) -> ();
                mark_other_spaces_pending(prose: &str, code: &str) -> usize;
                add_chunks(found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>) -> ();
            }
            ReadCommits {
                commit_named(prefix: &str) -> Option<(MemoryKey, ChunkKey)>;
                known_commits() -> Vec<String>;
                commits_of(session: &SessionId) -> Vec<MemoryKey>;
                sessions_behind(commits: Vec<MemoryKey>) -> Vec<Vec<(SessionId, f64)>>;
                behind(sessions: Vec<SessionId>, time: Millis) -> Vec<BehindRow>;
                linked_commits(session: &SessionId, head: Option<String>, time: Millis, limit: usize) -> (Vec<LinkedCommit>, usize);
                commits_without_summary(limit: usize) -> Vec<MemoryKey>;
                summary_of_commit(id: &MemoryId) -> Option<MemoryId>;
                commits_before(places: Vec<(String, Millis)>) -> Vec<Option<String>>;
                commits_made(after: (Millis, Option<MemoryKey>), until: Millis, limit: usize) -> Vec<CommitRow>;
                links_of(commits: Vec<MemoryKey>) -> Vec<CommitLinks>;
                replaced_commits() -> Vec<(MemoryKey, String)>;
                first_evidence() -> Option<Millis>;
                file_writes(from: Millis, until: Millis) -> Vec<WriteRow>;
                writes_of(paths: Vec<String>, until: Millis, limit: usize) -> Vec<WriteRow>;
                commit_calls(from: Millis, until: Millis) -> Vec<CallRow>;
                commit_graph() -> Vec<GraphRow>;
                commit_authors(before: Option<MemoryKey>, limit: usize) -> Vec<AuthorRow>;
            }
            WriteCommits {
                link_commits(links: Vec<CommitLinks>) -> ();
                replace_commits(commits: Vec<MemoryKey>, among: Option<HashSet<MemoryKey>>, replaced: Vec<(MemoryKey, MemoryKey)>) -> ();
                add_to_commit_graph(part: GraphRow) -> bool;
                rename_authors(renamed: Vec<Renamed>) -> ();
            }
            ReadStatements {
                noted(session: &SessionId) -> i64;
            }
            WriteStatements {
                add_statements(statements: Vec<NewStatement>, noted: Option<(SessionId, i64)>) -> ();
                remove_extracts(session: &SessionId, limit: usize) -> usize;
            }
            ReadForgotten {
                undoable(operation: Option<&str>) -> Forgotten;
                operations(limit: usize) -> Vec<Operation>;
                selected(selection: &Selection, reach: Reach) -> Forgotten;
                forgotten_with(words: Vec<String>, most: usize) -> (Vec<(MemoryId, String)>, usize);
                forgotten_at(session: &SessionId, ordinal: i64) -> Option<MemoryId>;
                is_purged(id: &MemoryId) -> bool;
            }
            Forget {
                forget(selection: &Selection, operation: &str, now: Millis) -> Forgotten;
                retire(session: &SessionId, operation: &str, now: Millis) -> Forgotten;
                undo(operation: Option<&str>, now: Millis) -> Forgotten;
                purge(operation: &str, now: Millis) -> Forgotten;
                forget_for_good(selection: &Selection, operation: &str, now: Millis) -> Forgotten;
                finish_purges(before: Millis) -> Forgotten;
            }
            ReadSummaries {
                segments(session: &SessionId) -> Vec<SegmentRow>;
                foresee_version(summary: Summary, since: Millis) -> Saved;
                summaries(session: &SessionId, level: Option<Level>) -> Vec<SummaryRow>;
                summary(id: &MemoryId) -> Option<SummaryRow>;
                conversation(session: &SessionId) -> Option<ConversationRow>;
                due_conversations(now: Millis, limit: usize) -> Vec<SessionId>;
                quarter_is_retired(topic: &str) -> bool;
                summary_counts() -> Vec<LevelCount>;
                summarised_segments() -> Vec<SummarisedSegment>;
            }
            WriteSummaries {
                add_segments(session: &SessionId, segments: Vec<SegmentRow>) -> ();
                save_summary(summary: Summary, now: Millis) -> Saved;
                save_version(summary: Summary, since: Millis, now: Millis) -> Saved;
                save_conversation(memory: PreparedMemory, last: i64, source_hash: [u8; 32], now: Millis) -> Saved;
                postpone_conversation(session: &SessionId, due: Millis) -> ();
                save_quarter(memory: PreparedMemory, now: Millis) -> Outcome;
            }
            ReadQueue {
                is_queue_due(now: Millis) -> bool;
                queue_counts() -> QueueCounts;
                paces(provider: String, model: String, most: usize) -> Vec<Pace>;
                is_leased(name: &str) -> bool;
            }
            WorkQueue {
                next_queued(holder: &str, lease: Millis, now: Millis) -> Option<Queued>;
                finish(entry: QueueKey, holder: &str, now: Millis) -> ();
                fail(entry: QueueKey, holder: &str, error: &str, not_before: Millis, now: Millis) -> ();
                drop_queued(entry: QueueKey, holder: &str) -> ();
            }
            ReadStash {
                stashed(keys: Vec<MemoryKey>) -> Vec<StashedMemory>;
                list_stash(filter: &Filter, after: Option<MemoryKey>, limit: usize) -> Vec<StashedMemory>;
                stash_contents(page: StashPage) -> StashContents;
                expiring_stash(now: Millis, made_before: Millis) -> StashExpired;
                newest() -> Option<Millis>;
            }
            WriteStash {
                stash(stashing: Stashing, now: Millis) -> StashReceipt;
                unstash(ids: &[MemoryId], keep: bool) -> Vec<MemoryId>;
                expire_stash(times: (Millis, Millis), operation: &str, limit: usize) -> StashExpired;
            }
            ReadThreads {
                thread(name: &ThreadName) -> Option<Thread>;
                copies(name: &ThreadName, paths: Vec<String>) -> HashMap<String, String>;
                turn_by_call(name: &ThreadName, call_id: &str) -> Option<TurnRow>;
                turns(name: &ThreadName, limit: usize) -> Vec<TurnRow>;
                threads(session: Option<&SessionId>) -> Vec<ThreadRow>;
                other_exchanges(name: &ThreadName, limit: usize) -> Vec<Exchange>;
                token_counts(hashes: &[ContentHash]) -> HashMap<ContentHash, u32>;
            }
            WriteThreads {
                record_turn(name: &ThreadName, turn: TurnRecord) -> Recorded;
                reset_thread(name: &ThreadName, what: Reset) -> ResetDone;
            }
            ReadRecords {
                import_cursor(source: &str) -> Option<String>;
                has_import_cursor(end: &str) -> bool;
                cached(key: [u8; 32], now: Millis) -> Option<String>;
                cache_stats() -> CacheStats;
                sizes() -> Sizes;
                is_empty() -> bool;
                measurements() -> Vec<Measurement>;
                savings() -> Savings;
                stats(now: Millis) -> Stats;
                growth() -> Growth;
                check() -> Check;
                expired(now: Millis, before: Millis) -> Expired;
            }
            WriteRecords {
                set_import_cursor(source: &str, cursor: &str, now: Millis) -> ();
                measure(measurements: Vec<Measurement>, savings: Savings) -> ();
                remove_expired(now: Millis, before: Millis) -> Expired;
            }
            Bookkeeping {
                cache_embeddings(entries: Vec<([u8; 32], Vec<f32>)>) -> ();
                enqueue(wanted: Wanted, not_before: Millis, now: Millis) -> ();
                attempt(attempt: Attempt) -> ();
                lease(name: &str, holder: &str, lasts: Millis) -> bool;
                release(name: &str, holder: &str) -> ();
                record_assembly(session: &SessionId, key: [u8; 32], lines: Vec<ShownLine>) -> ();
                note_token_counts(counts: &[(ContentHash, u32)]) -> ();
                cache(key: [u8; 32], body: String, now: Millis, ttl_ms: Millis, max_bytes: i64) -> ();
            }
            ReadChanges {
                came_from_peers(keys: Vec<MemoryKey>) -> Vec<MemoryKey>;
                changes(name: Option<&AuthorId>, wanted: &WantedChanges, after: i64, limit: usize) -> Changes;
            }
            MergeChanges {
                merge_changes(name: Option<&AuthorId>, peer: &str, rights: MergeRights, incoming: Vec<Incoming>, now: Millis) -> Vec<MergeOutcome>;
            }
            Restore {
                restore_sessions(sessions: Vec<ForeignSession>) -> ();
                restore(restored: Vec<RestoredMemory>, now: Millis) -> Receipt;
                restore_forgotten(forgotten: ForeignForgotten) -> usize;
            }
        }
    };
}
