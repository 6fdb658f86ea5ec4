//! The ways in which a store can break its promises.

macro_rules! faults {
    ($($(#[$doc:meta])+ $fault:ident,)+) => {
        /// A way in which a store breaks a promise without an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $($(#[$doc])+ $fault,)+ }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$fault,)+];
        }
    };
}

faults! {
    /// Drops the last memory of a write, and reports it as stored.
    LosesWrites,
    /// Hides the writes of a handle from other handles.
    SeesOwnWritesOnly,
    /// Keeps a part of a failed write.
    ShowsUnacknowledged,
    /// Stores the memories of a batch in separate transactions.
    SplitsBatches,
    /// Stores a memory that exists once more, under another id.
    StoresTwice,
    /// Reports a memory as already stored if its id is stored with another text.
    HidesConflicts,
    /// Stores a batch in reverse order.
    ReversesBatches,
    /// Counts only the first occurrence of a memory.
    CountsNoRepeats,
    /// Drops the references of a memory.
    IgnoresSources,
    /// Drops title, topic, path, branch, speaker and the client's id.
    DropsFields,
    /// Reports no pending chunks.
    ForgetsPending,
    /// Stores everything under one owner.
    IgnoresOwner,
    /// Treats every scope as a scope of all sessions.
    IgnoresSession,
    /// Accepts scopes of other projects.
    IgnoresProject,
    /// Returns results in reverse order.
    ReordersResults,
    /// Returns more results than the limit.
    IgnoresLimit,
    /// Returns the first page for every cursor.
    IgnoresPage,
    /// Returns memories that the filter excludes.
    IgnoresFilter,
    /// Applies the filter after choosing the best instead of before.
    FiltersAfterSearch,
    /// Finds nothing by words.
    IndexesNothing,
    /// Searches all groups of kinds.
    IgnoresGroups,
    /// Compares vectors of different spaces.
    IgnoresSpace,
    /// Rounds cosines to whole numbers.
    RoundsCosines,
    /// Reports that no document contains a word.
    MiscountsWords,
    /// Drops embeddings of pending chunks.
    LosesEmbeddings,
    /// Keeps embeddings of other vector spaces.
    KeepsOtherSpaces,
    /// Drops chunks that are added to a memory.
    LosesChunks,
    /// Numbers messages by their place among the living messages.
    RenumbersMessages,
    /// Reports memories as marked that it did not mark.
    MarksNothing,
    /// Drops the origin of a session.
    LosesOrigins,
    /// Overwrites stored fields of a session's origin with `None`.
    OverwritesOrigins,
    /// Drops aliases.
    LosesAliases,
    /// Returns no branch and no commit of a session.
    LosesStands,
    /// Treats every version of a session as the newest.
    WorksOffAlways,
    /// Ignores that a session was worked off.
    WorksOffNothing,
    /// Reports memories as forgotten that it keeps.
    ForgetsNothing,
    /// Reports memories as restored that stay forgotten.
    UndoesNothing,
    /// Undoes the first operation instead of the last one.
    UndoesTheFirst,
    /// Reports success where there is nothing to undo.
    UndoesAgain,
    /// Reports memories as purged that it keeps.
    PurgesNothing,
    /// Forgets memories in a call that only selects them.
    ForgetsWhenAsked,
    /// Treats a session that is forgotten because of its age as if the user forgot it.
    RetiresAsForgotten,
    /// Returns outdated answers, versions and search results.
    ServesStaleCache,
    /// Returns outdated summaries.
    ServesStaleSummaries,
    /// Reports outdated and repeated summaries as made.
    TakesLateSummaries,
    /// Reports summaries as made and drops them.
    LosesSummaries,
    /// Reports ranges that end one message later.
    WidensRanges,
    /// Returns summaries of all levels.
    IgnoresLevel,
    /// Drops the date at which a session's summary is due.
    LosesDues,
    /// Treats every request as made by the user.
    AsksForAll,
    /// Returns entries before they are due.
    IgnoresDue,
    /// Gives one entry to several holders.
    TakesTwice,
    /// Lets a holder end an entry that another holder has taken since.
    IgnoresHolder,
    /// Returns a failed entry again at once.
    RetriesAtOnce,
    /// Never gives an entry up.
    TriesForever,
    /// Ignores a second request for an entry.
    QueuesOnce,
    /// Accepts requests for sessions that don't exist.
    QueuesAnything,
    /// Ignores that entries are finished or dropped.
    FinishesNothing,
    /// Grants a lease to several holders.
    LeaseIsShared,
    /// Grants every lease for an hour.
    LeaseNeverExpires,
    /// Reports a lease as renewed without renewing it.
    RenewsNothing,
    /// Lets a process release another's lease.
    AnyoneReleases,
    /// Ignores that leases are released.
    ReleasesNothing,
    /// Treats all leases as one.
    OneLeaseForAll,
    /// Caches no answer.
    LosesAnswers,
    /// Caches more answers than the limit.
    IgnoresRoom,
    /// Counts no hits and misses of the cache.
    CountsNoUse,
    /// Reports nothing as expired.
    ExpiresNothing,
    /// Drops cursors.
    LosesCursors,
    /// Keeps one cursor for all sources.
    OneCursorForAll,
    /// Drops the evidence of commits.
    LosesEvidence,
    /// Drops the links of a commit.
    LosesLinks,
    /// Adds new links of a commit to the old ones instead of replacing them.
    AddsLinks,
    /// Drops replacements of commits.
    LosesReplacements,
    /// Keeps the replacement of a commit that is checked out again.
    ReplacesForever,
    /// Returns one of several commits that have the prefix.
    TakesFirstMatch,
    /// Reports parts of the graph as added that it refuses.
    TakesEveryPart,
    /// Reports parts of the graph as added and drops them.
    LosesGraph,
    /// Ignores the range of times.
    IgnoresRange,
    /// Drops measurements.
    LosesMeasurements,
    /// Writes backups without memories.
    BacksUpNothing,
    /// Overwrites existing files with backups.
    OverwritesBackups,
    /// Restores memories as if they were new.
    RestoresAsNew,
    /// Restores no sessions.
    RestoresNoSessions,
    /// Counts nothing for a call that ended.
    SettlesNothing,
    /// Checks no limit.
    ReservesWithoutLimit,
    /// Reserves nothing for a repeated request.
    RepeatsForNothing,
    /// Never counts an expired reservation as spent.
    WaitsForTheDead,
    /// Returns another secret each time.
    MakesSecretsAnew,
    /// Drops projects and their records.
    LosesProjects,
    /// Registers a second project at a place.
    ClaimsAlways,
    /// Keeps projects and places that are removed.
    KeepsPlaces,
    /// Returns the first project of a place instead of the last one.
    KeepsFirstPlaces,
}
