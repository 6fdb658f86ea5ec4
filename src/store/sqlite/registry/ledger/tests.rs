use super::*;
use crate::scope::OwnerId;
use crate::store::SpendLimits;

const DAY: Millis = DAY_MS;

fn registry() -> (tempfile::TempDir, Registry) {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path(), &OwnerId::new("me")).unwrap();
    (folder, registry)
}

fn planned(project: &str, provider: &str, most: u64, limits: SpendLimits) -> Planned {
    let (project, provider) = (project.into(), provider.into());
    Planned { project, provider, model: "m".into(), most: Money(most), limits, until: 0 }
}

fn day(limit: u64) -> SpendLimits {
    SpendLimits { day: Some(Money(limit)), ..SpendLimits::default() }
}

fn cost(cost: u64) -> Spent {
    Spent { cost: Money(cost), input: 10, output: 5, has_failed: false }
}

async fn spent(registry: &Registry) -> u64 {
    registry.spending().await.unwrap().iter().map(|row| row.spent.0).sum()
}

#[tokio::test]
async fn what_is_put_aside_counts_until_it_is_settled_by_what_it_cost() {
    let (_folder, registry) = registry();
    let one = registry.reserve(planned("p", "a", 60, day(100)), 0).await.unwrap();
    let error = registry.reserve(planned("q", "b", 60, day(100)), 0).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Limit);
    assert!(error.to_string().contains("$0.00006"), "{error}");
    registry.settle(one, cost(30)).await.unwrap();
    let two = registry.reserve(planned("q", "b", 60, day(100)), 0).await.unwrap();
    registry.settle(two, cost(60)).await.unwrap();
    assert_eq!(spent(&registry).await, 90);
    let rows = registry.spending().await.unwrap();
    assert_eq!((rows.len(), rows[0].calls, rows[0].input, rows[0].output), (2, 1, 10, 5));
}

#[tokio::test]
async fn every_limit_holds_for_what_it_names() {
    let some = |amount| Some(Money(amount));
    let none = SpendLimits::default();
    let cases = [
        (SpendLimits { call: some(49), ..none }, "p", "a", DAY, "one call", true),
        (SpendLimits { provider_day: some(90), ..none }, "q", "a", DAY, "the provider on a day", true),
        (SpendLimits { provider_day: some(90), ..none }, "p", "b", DAY, "", false),
        (SpendLimits { provider_day: some(90), ..none }, "p", "a", 2 * DAY, "", false),
        (SpendLimits { day: some(90), ..none }, "q", "b", DAY, "a day", true),
        (SpendLimits { day: some(90), ..none }, "q", "b", 2 * DAY, "", false),
        (SpendLimits { project: some(90), ..none }, "p", "b", 2 * DAY, "a project", true),
        (SpendLimits { project: some(90), ..none }, "q", "a", DAY, "", false),
        (SpendLimits { total: some(90), ..none }, "q", "b", 9 * DAY, "everything", true),
        (SpendLimits { total: some(0), ..none }, "q", "b", 9 * DAY, "everything", true),
    ];
    for (limits, project, provider, now, word, is_refused) in cases {
        let (_folder, registry) = registry();
        let first = registry.reserve(planned("p", "a", 50, none), DAY).await.unwrap();
        registry.settle(first, cost(50)).await.unwrap();
        let second = registry.reserve(planned(project, provider, 50, limits), now).await;
        match (is_refused, second) {
            (true, Err(error)) => assert!(error.to_string().contains(word), "{limits:?}: {error}"),
            (false, Ok(_)) => {}
            (_, other) => panic!("{limits:?} {project} {provider} {now}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_costs_nothing_is_counted_and_never_refused() {
    let (_folder, registry) = registry();
    let free = registry.reserve(planned("p", "ollama", 0, day(0)), 0).await.unwrap();
    registry.settle(free, cost(0)).await.unwrap();
    assert_eq!(registry.spending().await.unwrap()[0].calls, 1);
    assert!(registry.reserve(planned("p", "a", 1, day(0)), 0).await.is_err());
}

#[tokio::test]
async fn what_a_dead_process_put_aside_is_spent_in_full() {
    let (_folder, registry) = registry();
    let dead = registry.reserve(planned("p", "a", 70, day(100)), 0).await.unwrap();
    // Long after it expired, on another day, and counted by somebody else's call.
    registry.reserve(planned("p", "a", 1, day(100)), 5 * DAY).await.unwrap();
    let rows = registry.spending().await.unwrap();
    assert_eq!((rows[1].day, rows[1].spent, rows[1].failed), (0, Money(70), 1), "{rows:?}");
    // It was only asleep: what it did cost is less than what is counted, and nothing is given back.
    registry.settle(dead, cost(20)).await.unwrap();
    let rows = registry.spending().await.unwrap();
    assert_eq!((rows[1].spent, rows[1].calls, rows[1].failed), (Money(70), 1, 0), "{rows:?}");
}

#[tokio::test]
async fn a_clock_set_back_opens_no_spent_day() {
    let (_folder, registry) = registry();
    let first = registry.reserve(planned("p", "a", 80, day(100)), 7 * DAY).await.unwrap();
    registry.settle(first, cost(80)).await.unwrap();
    for now in [6 * DAY, 0, -DAY, 7 * DAY] {
        let error = registry.reserve(planned("p", "a", 80, day(100)), now).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Limit, "{now}");
    }
    let error = registry.reserve(planned("p", "a", 80, day(100)), 5 * DAY).await.unwrap_err();
    assert!(error.way_out().unwrap().contains("2 days ahead"), "{error:?}");
    registry.reserve(planned("p", "a", 80, day(100)), 8 * DAY).await.unwrap();
}

#[tokio::test]
async fn a_request_that_is_repeated_is_put_aside_again_until_a_limit() {
    let (_folder, registry) = registry();
    let limits = SpendLimits { call: Some(Money(130)), ..day(100) };
    let mut one = registry.reserve(planned("p", "a", 40, limits), 0).await.unwrap();
    registry.reserve_again(&mut one, 0).await.unwrap();
    assert_eq!(one.held(), Money(80));
    let error = registry.reserve_again(&mut one, 0).await.unwrap_err();
    assert!(error.kind() == Kind::Limit && error.to_string().contains("a day"), "{error}");
    assert_eq!((one.held(), spent(&registry).await), (Money(80), 80));
    registry.settle(one, cost(55)).await.unwrap();
    assert_eq!(spent(&registry).await, 55);
    // The limit of a call holds for all its requests together.
    let limits = SpendLimits { call: Some(Money(70)), ..SpendLimits::default() };
    let mut two = registry.reserve(planned("q", "a", 40, limits), 0).await.unwrap();
    let error = registry.reserve_again(&mut two, 0).await.unwrap_err();
    assert!(error.to_string().contains("one call"), "{error}");
    // Whoever counted it as dead counted all that was put aside.
    let limits = SpendLimits::default();
    let mut three = registry.reserve(planned("r", "b", 40, limits), 0).await.unwrap();
    registry.reserve_again(&mut three, 0).await.unwrap();
    registry.reserve(planned("r", "b", 1, limits), 5 * DAY).await.unwrap();
    registry.settle(three, cost(60)).await.unwrap();
    let rows = registry.spending().await.unwrap();
    assert_eq!(rows.iter().find(|row| row.project == "r" && row.day == 0).unwrap().spent, Money(80));
}

#[test]
fn eight_that_race_for_a_dollar_overspend_nothing() {
    const LIMIT: u64 = 1_000_000;
    const MOST: u64 = 7_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Connections of their own, as processes have.
    let granted: u64 = std::thread::scope(|scope| {
        let racers = (0..8).map(|number| {
            scope.spawn(move || {
                let registry = Registry::open(path, &OwnerId::new("me")).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    let mut granted = 0;
                    let project = format!("p{number}");
                    loop {
                        match registry.reserve(planned(&project, "a", MOST, day(LIMIT)), 0).await {
                            Ok(reservation) => {
                                // Some cost less than they might.
                                let actual = MOST - granted % 3 * 500;
                                registry.settle(reservation, cost(actual)).await.unwrap();
                                granted += 1;
                            }
                            Err(error) if error.kind() == Kind::Limit => return granted,
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
        });
        let racers: Vec<_> = racers.collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    let registry = Registry::open(path, &OwnerId::new("me")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let rows = runtime.block_on(registry.spending()).unwrap();
    let spent: u64 = rows.iter().map(|row| row.spent.0).sum();
    assert!(spent <= LIMIT, "{spent}");
    // And all was spent that could be.
    assert!(spent + MOST > LIMIT, "{spent}");
    assert_eq!(rows.iter().map(|row| row.calls).sum::<i64>(), granted as i64);
}
