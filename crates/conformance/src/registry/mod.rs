//! Promises about the registry: the directories of projects, and the limits on the cost of requests to models.
//!
//! Limits apply to all concurrent callers together, and an amount that may have been spent stays counted.

mod members;

use std::sync::atomic::{AtomicU64, Ordering};

pub use self::members::*;
use super::fixture::{Answered, Fixture};
use super::subject::Engine;
use tiro_base::error::Kind;
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_base::scope::ProjectId;
use tiro_store::*;

const DAY: Millis = 86_400_000;

fn planned(project: &str, provider: &str, most: u64, limits: SpendLimits) -> Planned {
    let (project, provider) = (project.into(), provider.into());
    let matter = Matter::of(Purpose::Test, Sources::memories(["m1".to_owned()]));
    let parcel = Parcel { matter, place: "host".into(), is_local: false, tokens: 20, secrets: 1 };
    Planned { project, provider, model: "m".into(), most: Money(most), limits, until: 0, parcel }
}

fn day(limit: u64) -> SpendLimits {
    SpendLimits { day: Some(Money(limit)), ..SpendLimits::default() }
}

fn cost(cost: u64) -> Spent {
    Spent { cost: Money(cost), requests: 1, input: 10, output: 5, has_failed: false }
}

async fn spent(registry: &dyn Registry) -> u64 {
    registry.spending().await.answered().iter().map(|row| row.spent.0).sum()
}

pub async fn a_reservation_counts_until_it_is_settled(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let one = registry.reserve(planned("p", "a", 60, day(100)), 0).await.answered();
    let refused = registry.reserve(planned("q", "b", 60, day(100)), 0).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Limit);
    assert!(refused.to_string().contains("$0.00006"), "{refused}");
    assert_eq!(spent(registry.as_ref()).await, 60);
    registry.settle(one, cost(30)).await.answered();
    assert_eq!(spent(registry.as_ref()).await, 30);
    let two = registry.reserve(planned("q", "b", 60, day(100)), 0).await.answered();
    registry.settle(two, cost(60)).await.answered();
    assert_eq!(spent(registry.as_ref()).await, 90);
    let rows = registry.spending().await.answered();
    assert_eq!((rows.len(), rows[0].calls, rows[0].input, rows[0].output), (2, 1, 10, 5));
}

pub async fn what_is_sent_is_listed_before_and_after_it_is_settled(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let list = async || {
        let filter = SentFilter { limit: 9, ..SentFilter::default() };
        fixture.engine.registry().sent(filter).await.answered().0
    };
    let held = registry.reserve(planned("p", "a", 60, SpendLimits::default()), 7).await.answered();
    let open = list().await;
    assert_eq!((open[0].at, open[0].tokens, open[0].secrets, open[0].answered), (7, 20, 1, None));
    registry.settle(held, cost(30)).await.answered();
    let settled = list().await;
    assert_eq!((settled[0].tokens, settled[0].received, settled[0].answered), (10, 5, Some(true)));
}

/// Plans to spend 50 within `limits` after `days` days. Asserts that the limit `refused_by` refuses this; if
/// `refused_by` is `None`, asserts that it is granted.
async fn second(
    fixture: &Fixture,
    limits: SpendLimits,
    (project, provider): (&str, &str),
    days: Millis,
    refused_by: Option<&str>,
) {
    let registry = fixture.engine.registry();
    let second = registry.reserve(planned(project, provider, 50, limits), days * DAY).await;
    match (refused_by, second) {
        (Some(word), Err(refused)) => assert!(refused.to_string().contains(word), "{limits:?}: {refused}"),
        (None, Ok(free)) => registry.settle(free, cost(0)).await.answered(),
        (_, other) => panic!("{limits:?} {project} {provider} {days}: {other:?}"),
    }
}

async fn first(fixture: &Fixture) {
    let registry = fixture.engine.registry();
    let first = registry.reserve(planned("p", "a", 50, SpendLimits::default()), DAY).await.answered();
    registry.settle(first, cost(50)).await.answered();
}

const NONE: SpendLimits =
    SpendLimits { call: None, provider_day: None, day: None, project: None, total: None };
const NINETY: Option<Money> = Some(Money(90));

pub async fn a_limit_of_a_call_holds(fixture: Fixture) {
    first(&fixture).await;
    let limits = SpendLimits { call: Some(Money(49)), ..NONE };
    second(&fixture, limits, ("p", "a"), 1, Some("one call")).await;
    second(&fixture, SpendLimits { call: Some(Money(50)), ..NONE }, ("p", "a"), 1, None).await;
}

pub async fn a_limit_of_a_provider_holds_for_its_day(fixture: Fixture) {
    first(&fixture).await;
    let limits = SpendLimits { provider_day: NINETY, ..NONE };
    second(&fixture, limits, ("q", "a"), 1, Some("the provider on a day")).await;
    second(&fixture, limits, ("p", "b"), 1, None).await;
    second(&fixture, limits, ("p", "a"), 2, None).await;
}

pub async fn a_limit_of_a_day_holds_for_all_providers(fixture: Fixture) {
    first(&fixture).await;
    let limits = SpendLimits { day: NINETY, ..NONE };
    second(&fixture, limits, ("q", "b"), 1, Some("a day")).await;
    second(&fixture, limits, ("q", "b"), 2, None).await;
}

pub async fn a_limit_of_a_project_holds_for_all_days(fixture: Fixture) {
    first(&fixture).await;
    let limits = SpendLimits { project: NINETY, ..NONE };
    second(&fixture, limits, ("q", "a"), 1, None).await;
    second(&fixture, limits, ("p", "b"), 2, Some("a project")).await;
}

pub async fn a_limit_of_everything_holds_for_ever(fixture: Fixture) {
    first(&fixture).await;
    second(&fixture, SpendLimits { total: NINETY, ..NONE }, ("q", "b"), 9, Some("everything")).await;
    second(&fixture, SpendLimits { total: Some(Money(0)), ..NONE }, ("q", "b"), 9, Some("everything")).await;
    second(&fixture, SpendLimits { total: Some(Money(100)), ..NONE }, ("q", "b"), 9, None).await;
}

pub async fn a_free_call_is_counted_and_never_refused(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let free = registry.reserve(planned("p", "ollama", 0, day(0)), 0).await.answered();
    registry.settle(free, cost(0)).await.answered();
    assert_eq!(registry.spending().await.answered()[0].calls, 1);
    assert!(registry.reserve(planned("p", "a", 1, day(0)), 0).await.is_err());
}

pub async fn a_reservation_of_a_dead_process_is_spent(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let dead = registry.reserve(planned("p", "a", 70, day(100)), 0).await.answered();
    // The reservation expired days ago. The next call, by another process, counts it as spent.
    fixture.engine.registry().reserve(planned("p", "a", 1, day(100)), 5 * DAY).await.answered();
    let rows = registry.spending().await.answered();
    assert_eq!((rows[1].day, rows[1].spent, rows[1].failed), (0, Money(70), 1), "{rows:?}");
    // The process was only suspended. The cost that it now reports is lower than the counted amount, which stays
    // counted.
    registry.settle(dead, cost(20)).await.answered();
    let rows = registry.spending().await.answered();
    assert_eq!((rows[1].spent, rows[1].calls, rows[1].failed), (Money(70), 1, 0), "{rows:?}");
}

pub async fn a_clock_that_is_set_back_opens_no_spent_day(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let first = registry.reserve(planned("p", "a", 80, day(100)), 7 * DAY).await.answered();
    registry.settle(first, cost(80)).await.answered();
    for now in [6 * DAY, 0, -DAY, 7 * DAY] {
        let refused = registry.reserve(planned("p", "a", 80, day(100)), now).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Limit, "{now}");
    }
    let refused = registry.reserve(planned("p", "a", 80, day(100)), 5 * DAY).await.unwrap_err();
    assert!(refused.way_out().unwrap().contains("2 days ahead"), "{refused:?}");
    registry.reserve(planned("p", "a", 80, day(100)), 8 * DAY).await.answered();
}

pub async fn a_clock_that_was_ahead_ends_no_days(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let first = registry.reserve(planned("p", "a", 80, day(100)), 3_650 * DAY).await.answered();
    registry.settle(first, cost(80)).await.answered();
    // With the right clock it counts as spent today, and the next days are new ones.
    registry.reserve(planned("p", "a", 80, day(100)), 7 * DAY).await.unwrap_err();
    registry.reserve(planned("p", "a", 20, day(100)), 7 * DAY).await.answered();
    registry.reserve(planned("p", "a", 80, day(100)), 8 * DAY).await.answered();
    let rows = registry.spending().await.answered();
    assert_eq!(
        rows.iter().map(|row| (row.day, row.spent)).collect::<Vec<_>>(),
        [(8, Money(80)), (7, Money(100))]
    );
}

pub async fn a_repeated_request_is_reserved_again_within_the_limits(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let limits = SpendLimits { call: Some(Money(130)), ..day(100) };
    let mut one = registry.reserve(planned("p", "a", 40, limits), 0).await.answered();
    registry.reserve_again(&mut one, 0).await.answered();
    assert_eq!((one.held, spent(registry.as_ref()).await), (Money(80), 80));
    let refused = registry.reserve_again(&mut one, 0).await.unwrap_err();
    assert!(refused.kind() == Kind::Limit && refused.to_string().contains("a day"), "{refused}");
    assert_eq!((one.held, spent(registry.as_ref()).await), (Money(80), 80));
    registry.settle(one, cost(55)).await.answered();
    assert_eq!(spent(registry.as_ref()).await, 55);
    // The limit for one call applies to all requests of the call together.
    let limits = SpendLimits { call: Some(Money(70)), ..SpendLimits::default() };
    let mut two = registry.reserve(planned("q", "a", 40, limits), 0).await.answered();
    let refused = registry.reserve_again(&mut two, 0).await.unwrap_err();
    assert!(refused.to_string().contains("one call"), "{refused}");
}

pub async fn a_repeated_request_of_a_dead_process_is_spent(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let mut dead = registry.reserve(planned("r", "b", 40, NONE), 0).await.answered();
    registry.reserve_again(&mut dead, 0).await.answered();
    registry.reserve(planned("r", "b", 1, NONE), 5 * DAY).await.answered();
    registry.settle(dead, cost(60)).await.answered();
    let rows = registry.spending().await.answered();
    assert_eq!(rows.iter().find(|row| row.day == 0).map(|row| row.spent), Some(Money(80)));
}

pub async fn spending_is_listed_latest_day_first(fixture: Fixture) {
    let registry = fixture.engine.registry();
    for (provider, days) in [("b", 1), ("b", 3), ("a", 3)] {
        let call = registry.reserve(planned("p", provider, 9, NONE), days * DAY).await.answered();
        registry.settle(call, Spent { has_failed: true, ..cost(5) }).await.answered();
    }
    let rows = registry.spending().await.answered();
    let found = rows.iter().map(|row| (row.day, row.provider.as_str(), row.calls, row.failed));
    assert_eq!(found.collect::<Vec<_>>(), [(3, "a", 1, 1), (3, "b", 1, 1), (1, "b", 1, 1)]);
}

pub async fn eight_that_race_for_a_dollar_overspend_nothing(fixture: Fixture) {
    const LIMIT: u64 = 1_000_000;
    const MOST: u64 = 7_000;
    let (engine, granted) = (fixture.engine.as_ref(), AtomicU64::new(0));
    // Each thread has its own connections, as separate processes would have.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (project, granted) = (format!("p{number}"), &granted);
            scope.spawn(move || race(engine, &project, (LIMIT, MOST), granted));
        }
    });
    let rows = engine.registry().spending().await.answered();
    let spent: u64 = rows.iter().map(|row| row.spent.0).sum();
    assert!(spent <= LIMIT, "{spent}");
    // What is left of the limit doesn't suffice for another call.
    assert!(spent + MOST > LIMIT, "{spent}");
    let granted = granted.into_inner();
    assert_eq!(rows.iter().map(|row| row.calls).sum::<i64>(), granted as i64);
}

/// Reserves and settles calls until the limit refuses one. Adds the granted calls to `granted`, the count of all
/// threads.
fn race(engine: &dyn Engine, project: &str, (limit, most): (u64, u64), granted: &AtomicU64) {
    let registry = engine.registry();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let least = most - 1000;
        // More calls than this would exceed the limit, so granting them is an error.
        while granted.load(Ordering::Relaxed) <= limit / least {
            match registry.reserve(planned(project, "a", most, day(limit)), 0).await {
                Ok(reservation) => {
                    // Some calls cost less than they reserved.
                    let actual = most - granted.fetch_add(1, Ordering::Relaxed) % 3 * 500;
                    registry.settle(reservation, cost(actual)).await.answered();
                }
                Err(refused) if refused.kind() == Kind::Limit => return,
                Err(refused) => panic!("{refused}"),
            }
        }
    });
}

fn id(number: u8) -> ProjectId {
    ProjectId::from_random([number; 8])
}

async fn record(registry: &dyn Registry, number: u8, name: &str, place: &str, now: i64) {
    registry.record(&id(number), name, place, now).await.answered();
}

pub async fn a_recorded_project_is_found_by_id_and_place(fixture: Fixture) {
    let registry = fixture.engine.registry();
    record(registry.as_ref(), 1, "maple", "/a", 1).await;
    record(registry.as_ref(), 1, "maple", "/b", 2).await;
    let found = fixture.engine.registry().by_place("/a").await.answered().expect("it is recorded");
    assert_eq!((found.id.clone(), found.name.as_str()), (id(1), "maple"));
    assert_eq!(found.places, ["/b", "/a"], "the latest first");
    assert_eq!(registry.by_id(&id(1)).await.answered(), Some(found));
    assert_eq!(
        (registry.by_id(&id(2)).await.answered(), registry.by_place("/c").await.answered()),
        (None, None)
    );
}

pub async fn projects_are_listed_by_name(fixture: Fixture) {
    let registry = fixture.engine.registry();
    for (number, name) in [(3, "willow"), (2, "maple"), (1, "maple")] {
        record(registry.as_ref(), number, name, &format!("/{number}"), 1).await;
    }
    let all = registry.all().await.answered();
    let rows: Vec<_> = all.into_iter().map(|row| (row.name, row.id)).collect();
    let row = |name: &str, number| (name.to_owned(), id(number));
    assert_eq!(rows, [row("maple", 1), row("maple", 2), row("willow", 3)]);
}

pub async fn a_place_is_of_the_project_recorded_last(fixture: Fixture) {
    let registry = fixture.engine.registry();
    record(registry.as_ref(), 1, "maple", "/a", 1).await;
    record(registry.as_ref(), 2, "willow", "/a", 2).await;
    assert_eq!(registry.by_place("/a").await.answered().map(|row| row.id), Some(id(2)));
    assert_eq!(registry.by_id(&id(1)).await.answered().map(|row| row.places), Some(vec![]));
}

pub async fn of_two_that_claim_a_place_one_registers_it(fixture: Fixture) {
    let (registry, other) = (fixture.engine.registry(), fixture.engine.registry());
    let (first, second) = (id(1), id(2));
    let (one, two) =
        tokio::join!(registry.claim(&first, "maple", "/a", 1), other.claim(&second, "maple", "/a", 1));
    let (one, two) = (one.answered(), two.answered());
    assert_eq!(one, two, "both get the project that is registered");
    assert_eq!(registry.all().await.answered(), [one]);
}

pub async fn places_and_projects_leave_the_list(fixture: Fixture) {
    let registry = fixture.engine.registry();
    record(registry.as_ref(), 1, "maple", "/a", 1).await;
    record(registry.as_ref(), 1, "maple", "/b", 2).await;
    registry.forget_place("/b").await.answered();
    assert_eq!(registry.by_id(&id(1)).await.answered().map(|row| row.places), Some(vec!["/a".to_owned()]));
    registry.remove(&id(1)).await.answered();
    assert!(registry.all().await.answered().is_empty());
    assert_eq!(registry.by_place("/a").await.answered(), None);
}

pub async fn an_absorbed_project_gives_its_places(fixture: Fixture) {
    let registry = fixture.engine.registry();
    record(registry.as_ref(), 1, "maple", "/a", 1).await;
    record(registry.as_ref(), 2, "willow", "/b", 2).await;
    registry.absorb(&id(1), &id(2)).await.answered();
    let all = registry.all().await.answered();
    assert_eq!(all.iter().map(|row| &row.id).collect::<Vec<_>>(), [&id(2)]);
    assert_eq!(all[0].places, ["/b", "/a"]);
}

pub async fn a_copy_knows_its_original(fixture: Fixture) {
    let registry = fixture.engine.registry();
    record(registry.as_ref(), 1, "maple", "/a", 1).await;
    registry.note_copy(&id(2), &id(1)).await.answered();
    let original = registry.original(&id(2)).await.answered();
    assert_eq!(original.map(|row| row.id), Some(id(1)));
    assert_eq!(registry.original(&id(1)).await.answered(), None);
}

pub async fn the_secret_of_an_installation_never_changes(fixture: Fixture) {
    let (registry, other) = (fixture.engine.registry(), fixture.engine.registry());
    let (one, two) = tokio::join!(registry.secret([1; 32]), other.secret([2; 32]));
    let secret = one.answered();
    assert_eq!(two.answered(), secret);
    assert!(secret == [1; 32] || secret == [2; 32]);
    assert_eq!(fixture.engine.registry().secret([3; 32]).await.answered(), secret);
}

pub async fn a_provider_is_not_asked_before_its_date(fixture: Fixture) {
    let registry = fixture.engine.registry();
    assert_eq!(registry.retry_after("a").await.answered(), None);
    for until in [90, 50] {
        registry.note_retry_after("a", until).await.answered();
    }
    let other = fixture.engine.registry();
    assert_eq!(other.retry_after("a").await.answered(), Some(50), "the last date counts");
    assert_eq!(other.retry_after("b").await.answered(), None);
}

pub async fn a_request_that_is_sent_again_is_counted(place: Fixture) {
    let registry = place.engine.registry();
    let held = registry.reserve(planned("p", "a", 60, SpendLimits::default()), 7).await.answered();
    registry.note_sent_again(&held).await.answered();
    let filter = SentFilter { limit: 9, ..SentFilter::default() };
    let sent = place.engine.registry().sent(filter).await.answered().0;
    assert_eq!((sent[0].requests, spent(registry.as_ref()).await), (2, 60), "nothing more is reserved");
}

pub async fn the_names_of_what_was_sent_leave_with_their_session(place: Fixture) {
    let registry = place.engine.registry();
    let project = id(1);
    let mut planned = planned(project.as_str(), "a", 60, SpendLimits::default());
    planned.parcel.matter.session = Some("s".to_owned());
    let held = registry.reserve(planned, 7).await.answered();
    registry.settle(held, cost(30)).await.answered();
    registry.forget_sent(&project, &["s".to_owned()]).await.answered();
    let filter = SentFilter { limit: 9, ..SentFilter::default() };
    let sent = place.engine.registry().sent(filter).await.answered().0;
    assert_eq!((sent.len(), sent[0].session.clone(), sent[0].sources.clone()), (1, None, None));
}
