//! The promises of every engine of a store, one function for each.
//!
//! A promise is a function whose name states what is promised. It takes a [`Fixture`](fixture::Fixture), which is a
//! handle on an engine without data, and panics if the engine breaks the promise. [`promises!`] lists all promises,
//! each with the [`Fault`](broken::Fault) that breaks it. An engine's crate has this one as a dependency of its tests: it
//! implements [`Engine`](subject::Engine) and calls [`holds!`], which makes a test of each promise, and one engine also calls
//! [`breaks!`], which tests that each promise is broken by a store with its fault.
//!
//! The tests of an engine's own features, such as migrations, the write-ahead log and a replaced file of SQLite, are in
//! the engine's crate. This crate is never part of the program.

#![allow(
    missing_docs,
    clippy::missing_docs_in_private_items,
    reason = "the name of a promise says what is promised"
)]

pub mod broken;
pub mod cache;
mod each;
pub mod exchange;
pub mod fixture;
pub mod forgetting;
pub mod linking;
pub mod privacy;
pub mod queue;
pub mod reading;
pub mod records;
pub mod registry;
pub mod restoring;
pub mod run;
pub mod searching;
pub mod stash;
pub mod subject;
pub mod summaries;
pub mod threads;
pub mod writing;

/// Passes the table of promises to the macro `then` of this crate, after what else is given. The table lists the
/// promises by file, each with the fault that breaks it.
#[macro_export]
macro_rules! promises {
    ($then:ident $($with:tt)*) => {
        $crate::$then! {
            ($($with)*)
            writing {
                a_write_is_read_by_its_writer: LosesWrites,
                another_handle_sees_an_acknowledged_write: SeesOwnWritesOnly,
                a_write_is_there_after_reopening: SeesOwnWritesOnly,
                a_write_that_fails_stores_nothing: ShowsUnacknowledged,
                a_batch_is_seen_whole_or_not_at_all: SplitsBatches,
                a_receipt_names_each_memory_in_order: ReordersResults,
                a_memory_is_stored_once: StoresTwice,
                another_text_under_an_id_conflicts_and_the_first_stays: HidesConflicts,
                of_writers_of_one_memory_one_stores_it: StoresTwice,
                messages_are_numbered_in_the_order_given: ReversesBatches,
                concurrent_writers_share_a_session_without_gaps: LosesWrites,
                each_concurrent_writer_keeps_its_order: ReversesBatches,
                the_last_stored_is_listed_first: ReordersResults,
                an_occurrence_is_counted_and_not_stored: CountsNoRepeats,
                a_derived_memory_needs_its_sources: IgnoresSources,
                the_fields_of_a_memory_are_kept: DropsFields,
                a_store_admits_its_own_project_only: IgnoresProject,
                the_number_of_a_purged_message_is_not_given_again: RenumbersMessages,
                a_superseded_memory_names_the_one_that_holds: SupersedesNothing,
                a_memory_holds_again_once_its_successor_is_forgotten: ForgetsNothing,
                a_chain_of_successors_leads_to_the_last_living_one: SupersedesNothing,
                a_memory_supersedes_neither_itself_nor_its_successors: SupersedesAnything,
                the_latest_living_statement_of_a_subject_holds: SupersedesNothing,
                a_fact_is_superseded_with_the_statement_that_it_repeats: SupersedesNothing,
                statements_in_memories_come_in_order_of_their_keys: ReordersResults,
                a_statement_is_stored_once: LosesStatements,
                an_owner_sees_no_statement_of_another: IgnoresOwner,
            }
            forgetting {
                a_forgotten_memory_leaves_every_answer: ForgetsNothing,
                undoing_brings_back_every_answer: UndoesNothing,
                the_last_operation_is_undone_first: UndoesTheFirst,
                an_operation_is_undone_once: UndoesAgain,
                a_preview_of_undoing_changes_nothing: UndoesNothing,
                a_session_is_forgotten_whole: ForgetsNothing,
                a_filter_selects_what_is_forgotten: IgnoresFilter,
                a_scope_of_sessions_bounds_forgetting: IgnoresSession,
                a_forgotten_memory_counts_in_no_word: MiscountsWords,
                a_new_message_is_a_neighbour_past_forgotten_ones: ForgetsNothing,
                nearer_ones_that_are_not_admitted_take_no_place: FiltersAfterSearch,
                a_memory_is_forgotten_once: ForgetsNothing,
                a_derived_memory_leaves_and_returns_with_its_source: IgnoresSources,
                several_transactions_are_one_operation: UndoesNothing,
                a_selection_is_shown_without_a_change: ForgetsWhenAsked,
                forgotten_memories_are_found_by_their_words: ForgetsNothing,
                a_forgotten_message_is_found_by_its_place: ForgetsNothing,
                operations_are_listed_newest_first: ReordersResults,
                a_purged_memory_is_in_no_file: PurgesNothing,
                a_purged_memory_does_not_come_back: PurgesNothing,
                forgotten_memories_are_purged_too: PurgesNothing,
                a_purge_takes_derived_memories_too: IgnoresSources,
                a_purge_takes_summaries_answers_and_requests: PurgesNothing,
                a_purged_session_loses_its_name: PurgesNothing,
                another_owner_undoes_and_purges_nothing: IgnoresOwner,
                a_summary_of_a_quarter_outlives_retired_sessions: RetiresAsForgotten,
                extracted_facts_are_removed_unless_they_are_marked: KeepsExtracts,
            }
            searching {
                a_word_finds_the_memories_that_hold_it: IndexesNothing,
                the_best_are_found_first: ReordersResults,
                the_nearest_are_found_first: ReordersResults,
                each_group_has_its_own_limit: IgnoresLimit,
                only_named_groups_are_searched: IgnoresGroups,
                a_filter_of_kinds_narrows_every_search: IgnoresFilter,
                a_filter_of_branches_narrows_every_search: DropsFields,
                a_filter_of_paths_admits_a_file_or_a_directory: IgnoresFilter,
                a_filter_of_topics_narrows_every_search: IgnoresFilter,
                a_filter_of_client_ids_narrows_every_search: DropsFields,
                a_filter_of_times_admits_from_the_first_until_the_last: IgnoresFilter,
                all_conditions_of_a_filter_hold: IgnoresFilter,
                a_filter_holds_before_the_best_are_chosen: FiltersAfterSearch,
                a_filter_holds_before_the_nearest_are_chosen: FiltersAfterSearch,
                a_scope_of_sessions_holds_before_the_best_are_chosen: IgnoresSession,
                a_scope_of_sessions_holds_before_the_nearest_are_chosen: IgnoresSession,
                a_search_finds_nothing_of_another_owner: IgnoresOwner,
                vectors_of_another_space_are_not_found: IgnoresSpace,
                cosines_are_exact: RoundsCosines,
                each_candidate_has_its_cosine_and_its_place: LosesPlaces,
                what_replaced_a_memory_comes_with_its_place: LosesPlaces,
                a_search_follows_what_other_handles_write: ServesStaleCache,
                words_are_counted_by_the_documents_that_hold_them: MiscountsWords,
                a_text_has_a_share_of_the_words: MiscountsWords,
                chunks_without_an_embedding_wait_for_one: ForgetsPending,
                a_chunk_is_found_once_it_is_embedded: LosesEmbeddings,
                chunks_wait_in_the_order_of_storing: ReordersResults,
                an_embedding_of_a_purged_chunk_is_passed_over: LosesEmbeddings,
                embeddings_of_other_spaces_are_made_again: KeepsOtherSpaces,
                code_and_prose_have_spaces_of_their_own: MixesContents,
                embeddings_of_providers_are_kept_by_their_keys_until_a_purge: LosesPaidEmbeddings,
                derived_memories_without_chunks_get_theirs_later: LosesChunks,
            }
            reading {
                memories_come_in_the_order_of_their_keys: ReordersResults,
                memories_out_of_scope_are_left_out: IgnoresSession,
                a_search_result_is_shown_at_its_place: IgnoresSession,
                messages_are_shown_with_those_around_them: IgnoresLimit,
                neighbours_come_once_in_the_order_of_keys: ReordersResults,
                marks_are_kept_until_they_are_taken_away: MarksNothing,
                important_messages_are_marked_or_valued: MarksNothing,
                facts_of_a_session_come_latest_first: ReordersResults,
                pages_of_a_list_hold_each_memory_once: IgnoresPage,
                ids_are_found_by_their_beginning: IgnoresLimit,
                words_are_completed_by_the_most_frequent: MiscountsWords,
                the_latest_memories_come_first: ReordersResults,
                activity_is_counted_by_session_and_quarter_hour: IgnoresFilter,
                references_are_known_from_both_ends: IgnoresSources,
                keys_are_found_by_id: IgnoresSession,
                messages_are_read_from_a_place_on: IgnoresPage,
                sessions_come_latest_first_with_their_counts: ReordersResults,
                pages_of_sessions_follow_one_another: IgnoresPage,
                a_session_is_called_by_name_alias_beginning_or_title: LosesAliases,
                a_session_is_reached_by_its_alias: LosesAliases,
                a_session_is_described_by_title_and_client: LosesOrigins,
                a_description_keeps_what_it_does_not_name: OverwritesOrigins,
                a_session_stands_where_it_was_last_seen: LosesStands,
                ids_of_clients_are_known_in_other_sessions: DropsFields,
                tokens_of_a_session_are_those_of_its_living_messages: ForgetsNothing,
                the_parts_of_a_context_begin_where_it_needs_them: IgnoresLimit,
                an_owner_sees_nothing_of_another: IgnoresOwner,
                a_scope_of_sessions_sees_nothing_of_others: IgnoresSession,
                a_memory_of_no_session_is_outside_a_scope_of_sessions: IgnoresSession,
            }
            summaries {
                a_summary_of_a_quarter_leaves_with_its_sources: IgnoresSources,
                a_quarter_leaves_other_notes_alone: IgnoresSources,
                a_summary_leaves_with_the_first_of_its_messages_and_the_others_stay: ServesStaleSummaries,
                a_summary_of_messages_that_changed_is_not_stored: TakesLateSummaries,
                of_two_that_make_one_summary_one_stores_it: TakesLateSummaries,
                the_newest_version_of_a_summary_is_served: ServesStaleSummaries,
                a_summary_ends_with_its_session: WidensRanges,
                a_summary_is_stored_with_its_fields: LosesSummaries,
                summaries_are_served_by_level: IgnoresLevel,
                summaries_are_counted_with_their_sources: LosesSummaries,
                segments_follow_one_another_and_count_living_messages: WidensRanges,
                of_two_that_close_a_segment_one_does: WidensRanges,
                a_session_has_one_summary: TakesLateSummaries,
                the_summary_of_a_session_leaves_with_its_messages: ServesStaleSummaries,
                a_summary_of_a_session_is_due_at_its_date: LosesDues,
                sessions_grow_until_they_are_worked_off: WorksOffNothing,
                a_session_that_grew_meanwhile_is_not_worked_off: WorksOffAlways,
                sessions_that_grew_first_come_first: ReordersResults,
                a_version_changes_with_everything_in_its_scope: ServesStaleCache,
                a_version_stays_while_other_sessions_change: IgnoresSession,
            }
            queue {
                requests_of_the_user_come_first_then_the_oldest: AsksForAll,
                an_entry_waits_for_its_date: IgnoresDue,
                several_holders_take_several_entries: TakesTwice,
                a_dead_holder_loses_its_entry: LeaseNeverExpires,
                a_holder_that_lost_its_entry_ends_nothing: IgnoresHolder,
                a_failed_entry_waits_until_its_date: RetriesAtOnce,
                an_entry_is_given_up_after_five_tries: TriesForever,
                an_entry_that_was_left_five_times_is_given_up: LeaseNeverExpires,
                a_second_request_revives_an_entry_that_was_given_up: QueuesOnce,
                a_longer_range_takes_the_place_of_a_shorter: AsksForAll,
                finished_and_dropped_entries_are_over: FinishesNothing,
                a_request_names_a_session_of_the_scope: QueuesAnything,
                a_scope_of_sessions_takes_its_own_entries: IgnoresSession,
                an_owner_takes_no_entry_of_another: IgnoresOwner,
                a_clock_that_is_set_back_holds_up_no_entry: IgnoresHolder,
                a_lease_has_one_holder: LeaseIsShared,
                of_several_that_ask_at_once_one_gets_the_lease: LeaseIsShared,
                a_lease_ends_by_the_clock_of_the_store: LeaseNeverExpires,
                a_renewal_lasts_from_its_own_time: RenewsNothing,
                a_released_lease_is_free: ReleasesNothing,
                a_lease_is_released_by_its_holder_only: AnyoneReleases,
                leases_of_two_names_are_two: OneLeaseForAll,
                leases_of_two_owners_are_two: IgnoresOwner,
                a_clock_that_is_set_back_holds_up_no_lease: LeaseIsShared,
                a_cursor_stands_where_it_was_set_last: LosesCursors,
                each_source_has_its_own_cursor: OneCursorForAll,
                each_owner_has_its_own_cursor: IgnoresOwner,
            }
            cache {
                an_answer_is_served_under_its_key: LosesAnswers,
                a_newer_answer_takes_the_place_of_the_older: ServesStaleCache,
                an_answer_is_served_for_its_time: ServesStaleCache,
                answers_used_longest_ago_make_room: IgnoresRoom,
                a_clock_that_is_set_back_keeps_no_answer_alive: ServesStaleCache,
                a_clock_that_was_ahead_keeps_no_answer_alive: ServesStaleCache,
                uses_of_the_cache_are_counted: CountsNoUse,
                an_owner_gets_no_answer_of_another: IgnoresOwner,
                expired_answers_are_counted_and_removed: ExpiresNothing,
                superseded_summaries_and_old_entries_are_removed: ExpiresNothing,
                sessions_without_recent_messages_are_left: IgnoresRange,
            }
            linking {
                links_keep_their_order_and_confidence: LosesLinks,
                new_links_replace_the_old: AddsLinks,
                a_link_leaves_with_its_session: PurgesNothing,
                commits_of_a_session_come_latest_first: ReordersResults,
                linked_commits_are_listed_nearest_first: IgnoresLimit,
                a_session_behind_a_commit_is_shown_as_of_its_time: ReordersResults,
                changes_of_files_come_in_order_of_time: IgnoresRange,
                changes_of_one_file_come_the_latest_first: IgnoresRange,
                evidence_leaves_with_its_message: ForgetsNothing,
                calls_that_commit_are_known_by_their_time: IgnoresRange,
                the_first_evidence_is_known: LosesEvidence,
                parts_of_the_graph_follow_one_another: LosesGraph,
                of_two_that_add_a_part_one_does: TakesEveryPart,
                a_commit_stands_for_those_it_replaces: LosesReplacements,
                a_commit_that_is_back_is_not_replaced: ReplacesForever,
                a_prefix_names_one_commit_or_none: TakesFirstMatch,
                forgotten_commits_stay_known: LosesWrites,
                commits_are_paged_in_order_of_time: IgnoresPage,
                the_last_commit_before_a_time_is_of_its_branch: DropsFields,
                a_summary_of_a_commit_is_known_by_it: IgnoresSources,
                an_owner_has_no_commit_of_another: IgnoresOwner,
            }
            records {
                a_write_reports_how_many_memories_are_durable: ReportsNothing,
                a_sound_text_is_read_as_sound_and_in_order: ReordersResults,
                a_small_store_is_searched_with_the_weights_of_another: IndexesNothing,
                an_author_gets_another_name_and_is_found_by_it: RenamesNothing,
                what_is_only_forgotten_is_left_when_purges_are_finished: PurgesForgotten,
                a_version_is_foreseen_and_not_stored: StoresWhatItForesees,
                attempts_of_a_model_are_listed_newest_first: ReordersResults,
                a_lease_is_seen_as_long_as_it_is_held: HidesLeases,
                the_newest_time_is_that_of_what_was_stored_last: LosesWrites,
                a_cursor_is_found_by_the_end_of_its_source: LosesCursors,
                growth_is_counted_by_day_and_kind: ForgetsNothing,
                a_store_is_found_by_its_project: LosesStores,
                a_project_that_left_the_registry_is_a_stray: LosesStores,
            }
            registry {
                a_request_that_is_sent_again_is_counted: RepeatsForNothing,
                the_names_of_what_was_sent_leave_with_their_session: KeepsPlaces,
                a_reservation_counts_until_it_is_settled: SettlesNothing,
                a_limit_of_a_call_holds: ReservesWithoutLimit,
                a_limit_of_a_provider_holds_for_its_day: ReservesWithoutLimit,
                a_limit_of_a_day_holds_for_all_providers: ReservesWithoutLimit,
                a_limit_of_a_project_holds_for_all_days: ReservesWithoutLimit,
                a_limit_of_everything_holds_for_ever: ReservesWithoutLimit,
                a_free_call_is_counted_and_never_refused: ReservesWithoutLimit,
                a_reservation_of_a_dead_process_is_spent: WaitsForTheDead,
                a_clock_that_is_set_back_opens_no_spent_day: ReservesWithoutLimit,
                a_clock_that_was_ahead_ends_no_days: ReservesWithoutLimit,
                a_repeated_request_is_reserved_again_within_the_limits: RepeatsForNothing,
                a_repeated_request_of_a_dead_process_is_spent: WaitsForTheDead,
                spending_is_listed_latest_day_first: ReordersResults,
                what_is_sent_is_listed_before_and_after_it_is_settled: SettlesNothing,
                eight_that_race_for_a_dollar_overspend_nothing: ReservesWithoutLimit,
                a_recorded_project_is_found_by_id_and_place: LosesProjects,
                projects_are_listed_by_name: ReordersResults,
                a_place_is_of_the_project_recorded_last: KeepsFirstPlaces,
                of_two_that_claim_a_place_one_registers_it: ClaimsAlways,
                places_and_projects_leave_the_list: KeepsPlaces,
                an_absorbed_project_gives_its_places: KeepsPlaces,
                a_copy_knows_its_original: LosesProjects,
                the_secret_of_an_installation_never_changes: MakesSecretsAnew,
                a_provider_is_not_asked_before_its_date: LosesProjects,
                a_key_is_found_by_its_hash_until_it_is_revoked: RevokesNothing,
                a_user_has_one_valid_key: AddsSecondKeys,
                a_replaced_key_lasts_as_long_as_the_one_before: RevokesNothing,
                the_last_day_of_a_key_is_kept: ForgetsUses,
                a_team_has_its_members_until_they_leave: KeepsMembers,
                only_members_of_a_team_have_its_rights: IgnoresTeams,
                what_any_team_of_a_user_may_the_user_may: AllowsEverything,
                the_kinds_of_a_project_count_for_all_its_teams: KeepsKinds,
                a_share_ends_with_its_team_or_its_project: KeepsShares,
                a_project_without_a_place_is_registered_once: ClaimsAlways,
                calls_are_listed_newest_first: ReordersResults,
                a_filter_admits_calls_by_time_user_and_project: IgnoresFilter,
            }
            exchange {
                a_change_has_all_of_a_living_memory: DropsContents,
                a_replacement_is_given_past_a_forgotten_one: DropsContents,
                a_forgotten_memory_is_given_without_its_text: HidesForgotten,
                changes_come_in_the_order_in_which_they_happened: ReordersResults,
                a_page_of_changes_goes_on_where_the_last_one_ended: IgnoresPage,
                a_page_of_changes_has_no_more_than_the_limit: IgnoresLimit,
                kinds_that_a_peer_does_not_want_stay: IgnoresFilter,
                each_store_makes_summaries_of_its_own: DropsContents,
                a_private_memory_is_given_to_its_author_alone: IgnoresReader,
                what_came_from_a_peer_is_not_given_back: GivesBack,
                a_change_of_what_came_is_given_back: KeepsBack,
                what_was_given_out_under_another_id_is_recognised: IgnoresNames,
                what_was_extracted_from_what_came_is_not_sent: LosesMerges,
                a_merged_memory_is_stored_with_all_of_it: LosesMerges,
                a_message_that_comes_late_has_its_place: LosesMerges,
                what_came_is_told_from_what_was_stored_here: LosesMerges,
                the_later_of_two_marks_holds: TakesWhatComes,
                a_character_that_a_store_cannot_store_makes_no_other_text: DropsStates,
                a_merged_forgetting_forgets_what_is_derived_too: DropsStates,
                a_merged_purge_removes_the_text_and_nothing_brings_it_back: DropsStates,
                a_state_that_comes_first_waits_for_its_memory: ForgetsStates,
                nobody_else_removes_what_is_ones_own: TakesAnyName,
                what_is_here_counts_before_what_is_remembered: ForgetsStates,
                what_others_say_of_a_memory_changes_nothing_of_it: LosesMerges,
                a_purge_counts_for_its_author: LosesMerges,
                a_commit_comes_after_the_purge_of_anothers: LosesMerges,
                another_text_under_an_id_is_reported_and_not_stored: HidesConflicts,
                others_memories_are_changed_only_with_a_right: IgnoresRights,
                what_a_peer_keeps_private_stays_with_its_author: SharesWhatIsPrivate,
                what_the_first_private_memories_replaced_is_kept: LosesMerges,
                an_id_of_somebody_else_is_not_mistaken_for_ones_own: IgnoresNames,
            }
            restoring {
                a_backup_is_a_store_of_that_moment: BacksUpNothing,
                a_backup_holds_nothing_of_another_owner: IgnoresOwner,
                a_backup_replaces_no_file: OverwritesBackups,
                a_message_is_restored_at_its_place: RestoresAsNew,
                marks_and_links_are_restored: RestoresAsNew,
                superseded_memories_are_restored_as_superseded: SupersedesNothing,
                forgotten_memories_are_restored_as_forgotten: RestoresAsNew,
                purged_memories_are_not_restored: PurgesNothing,
                sessions_are_restored_where_nothing_is_known: RestoresNoSessions,
                counts_are_of_living_memories: ForgetsNothing,
                a_store_is_empty_without_living_memories: ForgetsNothing,
                measurements_and_savings_add_up: LosesMeasurements,
            }
            stash {
                a_stashed_memory_is_in_the_stash: StashesNothing,
                a_memory_is_stashed_once: StashesNothing,
                a_stash_is_whole_or_not_at_all: StashesHalf,
                a_stashed_message_is_held_out_until_it_is_brought_back: HoldsOutNothing,
                a_memory_brought_back_leaves_the_stash_unless_it_is_kept: BringsBackNothing,
                stashing_frees_what_the_last_context_showed: FreesNothing,
                an_expired_text_is_removed_and_a_message_stays: ExpiresNothing,
                a_protected_segment_does_not_expire: DropsProtection,
                a_clock_that_jumped_removes_nothing_for_good: ExpiresNothing,
                an_undo_brings_back_what_expired: ExpiresNothing,
                an_owner_sees_no_stash_of_another: IgnoresOwner,
                the_stash_is_listed_by_topic_and_session: ReordersResults,
                a_search_of_the_stash_finds_nothing_else: IgnoresFilter,
                a_version_changes_with_what_is_held_out: ServesStaleCache,
            }
            privacy {
                what_is_private_is_read_by_its_author_only: IgnoresReader,
                what_is_private_is_changed_by_its_author_only: IgnoresReader,
                what_comes_from_something_private_is_private: IgnoresReader,
                a_shared_decision_keeps_its_private_source_unknown: IgnoresReader,
                each_author_forgets_what_is_derived_from_their_own: IgnoresReader,
                authors_have_sessions_of_one_name: IgnoresReader,
                what_is_made_of_a_shared_memory_goes_with_it: IgnoresReader,
                a_shared_memory_is_forgotten_by_its_author_or_the_tenant: IgnoresReader,
                a_backup_leaves_out_what_others_keep_private: IgnoresReader,
                what_is_shared_is_hidden_from_those_who_do_not_see_it: ShowsHidden,
                who_does_not_see_what_is_shared_changes_nothing_of_it: ShowsHidden,
                what_is_saved_by_those_who_do_not_see_what_is_shared_is_private: ShowsHidden,
                some_may_forget_what_others_share: ForgetsOwnOnly,
            }
            threads {
                a_turn_is_read_as_it_was_recorded: LosesBlocks,
                the_ledger_comes_in_order_of_paths: ReordersResults,
                the_ledger_changes_with_its_turn: ServesStaleCache,
                the_ledger_is_never_ahead_of_the_blocks: AcceptsAnyTurn,
                a_turn_that_fails_stores_nothing: ShowsUnacknowledged,
                a_turn_continues_the_thread_of_its_prompt: AcceptsAnyTurn,
                of_two_that_record_a_turn_one_does: AcceptsAnyTurn,
                a_new_epoch_replaces_the_blocks_of_the_last: ServesStaleCache,
                a_repeated_call_finds_its_turn: LosesTurns,
                turns_come_latest_first: ReordersResults,
                turns_are_as_many_as_asked_for: IgnoresLimit,
                threads_come_latest_first_with_their_counts: ReordersResults,
                exchanges_with_others_come_earliest_first: ReordersResults,
                the_exchanges_since_the_last_turn_are_shown: IgnoresRange,
                files_are_reset_without_the_exchanges: ResetsNothing,
                messages_outlive_their_thread: ResetsNothing,
                a_forgotten_message_has_no_text_in_its_thread: ForgetsNothing,
                a_purged_message_leaves_its_thread: PurgesNothing,
                a_purged_session_takes_its_threads: PurgesNothing,
                texts_of_threads_used_longest_ago_make_room: IgnoresRoom,
                a_copy_stays_as_long_as_a_thread_needs_it: LosesCopies,
                a_noted_count_of_tokens_is_known: LosesAnswers,
                new_counts_of_tokens_replace_the_oldest: IgnoresRoom,
                an_owner_has_no_thread_of_another: IgnoresOwner,
                a_thread_is_reached_by_an_alias_of_its_session: LosesAliases,
                a_thread_is_in_the_scope_of_its_session: IgnoresSession,
            }
        }
    };
}

/// Expands to every promise, with the fault that breaks it.
#[macro_export]
macro_rules! table {
    (() $($subject:ident { $($promise:ident: $fault:ident,)+ })+) => {
        /// Every promise, with the fault that breaks it.
        pub const PROMISES: &[(&str, $crate::broken::Fault)] =
            &[$($((stringify!($promise), $crate::broken::Fault::$fault),)+)+];
    };
}
promises!(table);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_a_hundred_promises_and_no_idle_fault() {
        let names: HashSet<&str> = PROMISES.iter().map(|(name, _)| *name).collect();
        let faults: HashSet<broken::Fault> = PROMISES.iter().map(|(_, fault)| *fault).collect();
        eprintln!("{} promises, each broken by one of {} faults", names.len(), faults.len());
        assert_eq!(names.len(), PROMISES.len(), "two promises have one name");
        assert!(names.len() >= 100, "{}", names.len());
        let idle: Vec<_> = broken::Fault::ALL.iter().filter(|fault| !faults.contains(fault)).collect();
        assert!(idle.is_empty(), "{idle:?}");
    }
}
