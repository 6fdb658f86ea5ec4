//! What every engine of a store promises, one function for each promise.
//!
//! A promise is a function that takes a [`Place`](place::Place), which is a handle on an engine without data, and panics where
//! the engine breaks the promise. [`promises`] lists them, each with the [`Fault`](broken::Fault) that breaks it. `tests` runs
//! each promise against SQLite, where it must hold, and against a store with that fault, where it must not.
//!
//! It is not: what only SQLite has, such as migrations, the log and a file that is replaced. That stands in `sqlite/tests.rs`.

mod broken;
mod forgetting;
mod place;
mod subject;
#[cfg(test)]
mod tests;
mod writing;

/// Hands the table of promises to the macro `then`: by the file they are in, each with the fault that breaks it.
macro_rules! promises {
    ($then:ident) => {
        $then! {
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
            }
        }
    };
}
use promises;
