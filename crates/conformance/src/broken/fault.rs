//! The ways in which a store can break its promises.

macro_rules! faults {
    ($($(#[$doc:meta])+ $fault:ident,)+) => {
        /// A way in which a store breaks a promise without returning an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $($(#[$doc])+ $fault,)+ }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[$(Fault::$fault,)+];
        }
    };
}

faults! {
    /// Drops the last memory of a write but reports it as stored.
    LosesWrites,
    /// Hides what one handle writes from the other handles.
    SeesOwnWritesOnly,
    /// Keeps a part of a write that failed.
    ShowsUnacknowledged,
    /// Stores the memories of a batch in separate transactions.
    SplitsBatches,
    /// Stores a memory again, under another id, if it is stored already.
    StoresTwice,
    /// Reports a memory as already stored even if the stored memory of this id has another text.
    HidesConflicts,
    /// Stores a batch in reverse order.
    ReversesBatches,
    /// Does not count further occurrences of a memory.
    CountsNoRepeats,
    /// Drops the references of a memory.
    IgnoresSources,
    /// Drops a memory's title, topic, path, branch, speaker and client id.
    DropsFields,
    /// Reports that no chunk waits for its embedding.
    ForgetsPending,
    /// Stores everything under one owner.
    IgnoresOwner,
    /// Reads and writes as if there were one reader.
    IgnoresReader,
    /// Shows what is shared to readers from whom it is hidden.
    ShowsHidden,
    /// Lets nobody but its author forget a shared memory.
    ForgetsOwnOnly,
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
    /// Chooses the best matches before it applies the filter, instead of after.
    FiltersAfterSearch,
    /// Finds nothing when searching by words.
    IndexesNothing,
    /// Searches all groups of kinds instead of the given ones.
    IgnoresGroups,
    /// Finds candidates, and what replaced memories, without what ranking needs of them.
    LosesPlaces,
    /// Compares vectors of different spaces.
    IgnoresSpace,
    /// Rounds cosines to whole numbers.
    RoundsCosines,
    /// Reports for each word that no document contains it.
    MiscountsWords,
    /// Drops the embeddings that are made for waiting chunks.
    LosesEmbeddings,
    /// Keeps embeddings of other vector spaces when it should drop them.
    KeepsOtherSpaces,
    /// Returns pending chunks of any content.
    MixesContents,
    /// Doesn't keep the last of the embeddings that a provider made.
    LosesPaidEmbeddings,
    /// Drops the chunks that are added to a stored memory.
    LosesChunks,
    /// Numbers messages by their places among the living messages instead of keeping their ordinals.
    RenumbersMessages,
    /// Reports no memory as superseded.
    SupersedesNothing,
    /// Stores a memory that can't supersede what it names, without superseding it.
    SupersedesAnything,
    /// Drops statements, and the record of how far facts are extracted.
    LosesStatements,
    /// Reports extracted facts as removed but keeps them.
    KeepsExtracts,
    /// Reports memories as marked but does not mark them.
    MarksNothing,
    /// Drops the origin of a session: its title, client and the like.
    LosesOrigins,
    /// Overwrites stored fields of a session's origin with `None` if the new origin lacks them.
    OverwritesOrigins,
    /// Drops the aliases of sessions.
    LosesAliases,
    /// Returns no branch and no commit for a session.
    LosesStands,
    /// Records that a session needs no more work even if the session has grown since it was read.
    WorksOffAlways,
    /// Drops the record that a session needs no more work, so the session still counts as grown.
    WorksOffNothing,
    /// Reports memories as forgotten but keeps them.
    ForgetsNothing,
    /// Reports memories as restored but leaves them forgotten.
    UndoesNothing,
    /// Undoes the first operation instead of the last one.
    UndoesTheFirst,
    /// Reports success even if there is nothing to undo.
    UndoesAgain,
    /// Reports memories as purged but keeps them.
    PurgesNothing,
    /// Forgets memories in a call that should only list them.
    ForgetsWhenAsked,
    /// Treats a session that is forgotten because of its age as if the user had forgotten it.
    RetiresAsForgotten,
    /// Returns outdated answers, versions and search results.
    ServesStaleCache,
    /// Returns outdated summaries.
    ServesStaleSummaries,
    /// Reports summaries as made even if they are outdated or repeat a stored one.
    TakesLateSummaries,
    /// Reports summaries as made but drops them.
    LosesSummaries,
    /// Reports ranges of messages as ending one message later than they do.
    WidensRanges,
    /// Returns summaries of all levels when asked for one level.
    IgnoresLevel,
    /// Drops the date at which a session's summary is due.
    LosesDues,
    /// Treats every request as made by the user.
    AsksForAll,
    /// Hands out entries of the queue before they are due.
    IgnoresDue,
    /// Gives the same entry to several holders.
    TakesTwice,
    /// Lets a holder finish an entry that another holder has taken in the meantime.
    IgnoresHolder,
    /// Hands out a failed entry again at once, not only when it is due.
    RetriesAtOnce,
    /// Never counts an entry as failed.
    TriesForever,
    /// Ignores a second request for an entry.
    QueuesOnce,
    /// Accepts requests for sessions that don't exist.
    QueuesAnything,
    /// Ignores calls that finish or drop entries.
    FinishesNothing,
    /// Grants a lease to several holders.
    LeaseIsShared,
    /// Grants every lease for an hour, however long was asked for.
    LeaseNeverExpires,
    /// Reports a lease as renewed without renewing it.
    RenewsNothing,
    /// Lets a process release the lease of another process.
    AnyoneReleases,
    /// Ignores calls that release leases.
    ReleasesNothing,
    /// Treats all leases as one.
    OneLeaseForAll,
    /// Drops answers instead of caching them.
    LosesAnswers,
    /// Caches more answers than its limit allows.
    IgnoresRoom,
    /// Doesn't count the hits and misses of the cache.
    CountsNoUse,
    /// Reports nothing as expired.
    ExpiresNothing,
    /// Drops the cursors of imports.
    LosesCursors,
    /// Keeps a single cursor for all sources.
    OneCursorForAll,
    /// Drops the evidence of which session led to a commit.
    LosesEvidence,
    /// Drops the links of a commit.
    LosesLinks,
    /// Adds new links of a commit to the old ones instead of replacing them.
    AddsLinks,
    /// Drops the record that one commit replaced another.
    LosesReplacements,
    /// Keeps the record that a commit was replaced even if the commit is back.
    ReplacesForever,
    /// Returns a commit even if several commits have the given prefix.
    TakesFirstMatch,
    /// Reports parts of the graph as added although it refuses them.
    TakesEveryPart,
    /// Reports parts of the graph as added but drops them.
    LosesGraph,
    /// Ignores the range of times that a call asks for.
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
    /// Gives peers no contents of memories.
    DropsContents,
    /// Doesn't tell peers what is forgotten.
    HidesForgotten,
    /// Gives a peer back what came from it.
    GivesBack,
    /// Never gives changes of memories that came from a peer.
    KeepsBack,
    /// Merges changes as if the peer knew the reader by no other name.
    IgnoresNames,
    /// Reports changes of peers as merged but drops them.
    LosesMerges,
    /// Merges what comes as if it were the latest.
    TakesWhatComes,
    /// Merges memories without their states.
    DropsStates,
    /// Drops the states of memories that aren't here.
    ForgetsStates,
    /// Merges every change in the name of the reader.
    TakesAnyName,
    /// Merges changes that the peer may not make.
    IgnoresRights,
    /// Shares the memories that a peer sends as private.
    SharesWhatIsPrivate,
    /// Drops the last block of a turn.
    LosesBlocks,
    /// Drops the copies of files that an assistant has.
    LosesCopies,
    /// Reports turns as recorded although it refuses them.
    AcceptsAnyTurn,
    /// Drops the records of turns.
    LosesTurns,
    /// Reports threads as reset but keeps them.
    ResetsNothing,
    /// Reports memories as stashed but stashes none.
    StashesNothing,
    /// Stashes the memories that it knows although it refuses the call.
    StashesHalf,
    /// Stashes protected memories without protection.
    DropsProtection,
    /// Reports no freed tokens.
    FreesNothing,
    /// Reports memories as brought back but changes nothing.
    BringsBackNothing,
    /// Says that nothing is held out of contexts.
    HoldsOutNothing,
    /// Says nothing of the memories that a write has made durable.
    ReportsNothing,
    /// Reports authors as renamed but keeps their names.
    RenamesNothing,
    /// Purges what is only forgotten when it finishes interrupted purges.
    PurgesForgotten,
    /// Stores a summary that it should only foresee.
    StoresWhatItForesees,
    /// Says that nobody holds a lease.
    HidesLeases,
    /// Finds no store of a project, although there is one.
    LosesStores,
    /// Counts nothing for a call that has ended.
    SettlesNothing,
    /// Reserves amounts without checking any limit.
    ReservesWithoutLimit,
    /// Reserves nothing more when a request is repeated.
    RepeatsForNothing,
    /// Never counts an expired reservation as spent.
    WaitsForTheDead,
    /// Returns a new secret each time.
    MakesSecretsAnew,
    /// Drops projects and their records.
    LosesProjects,
    /// Registers a second project at a place that already has a project.
    ClaimsAlways,
    /// Keeps projects and places that were to be removed.
    KeepsPlaces,
    /// Returns the project that was first recorded for a place instead of the last one.
    KeepsFirstPlaces,
    /// Reports keys as revoked, but leaves them valid.
    RevokesNothing,
    /// Adds a key for a user who has a valid one.
    AddsSecondKeys,
    /// Does not record that a key was used.
    ForgetsUses,
    /// Keeps users in teams that they left.
    KeepsMembers,
    /// Keeps what is shared with a team that was removed.
    KeepsShares,
    /// Keeps the kinds with which a project was first shared.
    KeepsKinds,
    /// Lets everybody who sees a project write to it.
    AllowsEverything,
    /// Shows shared projects to users of all teams.
    IgnoresTeams,
}
