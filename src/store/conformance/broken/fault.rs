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
    /// Shows other handles nothing of what a handle wrote.
    SeesOwnWritesOnly,
    /// Keeps those memories of a failed write that could be stored.
    ShowsUnacknowledged,
    /// Stores the memories of a batch one after another.
    SplitsBatches,
    /// Stores a memory again that is there, under another id.
    StoresTwice,
    /// Reports another text under a known id as already stored.
    HidesConflicts,
    /// Stores a batch from its end.
    ReversesBatches,
    /// Counts no occurrence of a memory beside the first.
    CountsNoRepeats,
    /// Keeps nothing of what a memory refers to.
    IgnoresSources,
    /// Keeps neither title, topic, path, branch, speaker nor the client's id.
    DropsFields,
    /// Reports no chunk that waits for an embedding.
    ForgetsPending,
    /// Stores everything under one owner.
    IgnoresOwner,
    /// Takes every scope for that of all sessions.
    IgnoresSession,
    /// Takes every scope for one of its project.
    IgnoresProject,
    /// Answers in the reverse order.
    ReordersResults,
    /// Answers with more than the limit.
    IgnoresLimit,
    /// Begins every page at the first.
    IgnoresPage,
    /// Admits what the filter excludes.
    IgnoresFilter,
    /// Applies the filter to the best of all, instead of finding the best of the admitted.
    FiltersAfterSearch,
    /// Finds no word.
    IndexesNothing,
    /// Searches all groups of kinds.
    IgnoresGroups,
    /// Takes every vector for one of the same space.
    IgnoresSpace,
    /// Rounds cosines to whole numbers.
    RoundsCosines,
    /// Counts no document for any word.
    MiscountsWords,
    /// Stores no embedding of what waits.
    LosesEmbeddings,
    /// Keeps embeddings of other vector spaces.
    KeepsOtherSpaces,
    /// Adds no chunk.
    LosesChunks,
    /// Numbers messages by their place among the living.
    RenumbersMessages,
    /// Reports marks that it did not make.
    MarksNothing,
    /// Records nothing of where a session comes from.
    LosesOrigins,
    /// Replaces what is known of a session by nothing.
    OverwritesOrigins,
    /// Records no alias.
    LosesAliases,
    /// Knows no branch and no commit of a session.
    LosesStands,
    /// Takes every version of a session for the newest.
    WorksOffAlways,
    /// Records of no session that it was worked off.
    WorksOffNothing,
    /// Reports as forgotten what it keeps.
    ForgetsNothing,
    /// Reports as brought back what stays forgotten.
    UndoesNothing,
    /// Undoes the first operation instead of the last.
    UndoesTheFirst,
    /// Reports success where there is nothing to undo.
    UndoesAgain,
    /// Reports as removed what it keeps.
    PurgesNothing,
    /// Forgets what it is asked to show only.
    ForgetsWhenAsked,
    /// Treats a session that is forgotten by its age as one that the user forgets.
    RetiresAsForgotten,
    /// Serves answers, versions and searches that were right once.
    ServesStaleCache,
    /// Serves summaries that were right once.
    ServesStaleSummaries,
    /// Reports late and repeated summaries as made.
    TakesLateSummaries,
    /// Reports summaries as made that it drops.
    LosesSummaries,
    /// Reports ranges that end one message later.
    WidensRanges,
    /// Shows the summaries of all levels.
    IgnoresLevel,
    /// Records no date for a summary of a session.
    LosesDues,
    /// Takes every request for one of the user's.
    AsksForAll,
    /// Hands out entries before they are due.
    IgnoresDue,
    /// Hands out one entry to several holders.
    TakesTwice,
    /// Lets a holder end what another has taken over.
    IgnoresHolder,
    /// Lets a failed entry be tried at once.
    RetriesAtOnce,
    /// Never gives an entry up.
    TriesForever,
    /// Ignores a second request for an entry.
    QueuesOnce,
    /// Accepts requests for sessions that are not there.
    QueuesAnything,
    /// Neither finishes nor drops entries.
    FinishesNothing,
    /// Grants a lease to several holders.
    LeaseIsShared,
    /// Holds every lease for an hour.
    LeaseNeverExpires,
    /// Reports a renewal that it did not make.
    RenewsNothing,
    /// Lets anybody release a lease.
    AnyoneReleases,
    /// Keeps leases that are released.
    ReleasesNothing,
    /// Takes all names of leases for one.
    OneLeaseForAll,
    /// Keeps no answer.
    LosesAnswers,
    /// Keeps more answers than there is room for.
    IgnoresRoom,
    /// Counts no use of the cache.
    CountsNoUse,
    /// Finds nothing expired.
    ExpiresNothing,
    /// Records no cursor.
    LosesCursors,
    /// Keeps one cursor for all sources.
    OneCursorForAll,
    /// Records no evidence of commits.
    LosesEvidence,
    /// Records no link of a commit.
    LosesLinks,
    /// Adds new links of a commit to the old.
    AddsLinks,
    /// Records no commit in the place of another.
    LosesReplacements,
    /// Keeps commits replaced that came back.
    ReplacesForever,
    /// Takes the first of several commits that a prefix names.
    TakesFirstMatch,
    /// Reports parts of the graph as added that it refused.
    TakesEveryPart,
    /// Reports parts of the graph as added that it drops.
    LosesGraph,
    /// Ignores the range of times.
    IgnoresRange,
    /// Adds nothing to the measurements.
    LosesMeasurements,
    /// Writes backups without memories.
    BacksUpNothing,
    /// Replaces files by backups.
    OverwritesBackups,
    /// Restores memories as if they were new.
    RestoresAsNew,
    /// Restores nothing of sessions.
    RestoresNoSessions,
    /// Counts nothing for a call that is over.
    SettlesNothing,
    /// Checks no limit.
    ReservesWithoutLimit,
    /// Reserves nothing more for a repeated request.
    RepeatsForNothing,
    /// Never counts the reservation of a dead process as spent.
    WaitsForTheDead,
    /// Returns another secret each time.
    MakesSecretsAnew,
    /// Records neither projects nor what is noted of them.
    LosesProjects,
    /// Registers a project where another is already.
    ClaimsAlways,
    /// Keeps projects and places on the list.
    KeepsPlaces,
    /// Keeps the first project of a place.
    KeepsFirstPlaces,
}
