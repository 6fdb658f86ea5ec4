//! Promises about the users of a server: their keys and teams, what is shared with the teams, and the record of calls.

use crate::fixture::{Answered, Fixture};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::memory::{Kind, Millis};
use tiro_base::scope::ProjectId;
use tiro_store::*;

fn key(id: &str, name: &str, made: Millis) -> KeyRow {
    KeyRow {
        id: id.into(),
        name: name.into(),
        access: Access::Write,
        hash: format!("hash of {id}"),
        made,
        expires: None,
        revoked: None,
        used: None,
    }
}

async fn add(registry: &dyn Registry, key: KeyRow) {
    registry.change_keys(KeyChange::Add(key)).await.answered();
}

pub async fn a_key_is_found_by_its_hash_until_it_is_revoked(place: Fixture) {
    let registry = place.engine.registry();
    let ana = KeyRow { expires: Some(90), access: Access::Admin, ..key("a1", "ana", 5) };
    add(registry.as_ref(), ana.clone()).await;
    add(registry.as_ref(), key("b1", "ben", 6)).await;
    let other = place.engine.registry();
    assert_eq!(other.key_with_hash("hash of a1").await.answered(), Some(ana.clone()));
    assert_eq!(other.key_with_hash("hash of c1").await.answered(), None);
    let revoke = |which: &str| KeyChange::Revoke { which: which.into(), now: 7 };
    let revoked = other.change_keys(revoke("ana")).await.answered();
    let ana = KeyRow { revoked: Some(7), ..ana };
    assert_eq!(revoked, std::slice::from_ref(&ana));
    assert_eq!(registry.key_with_hash("hash of a1").await.answered(), Some(ana.clone()));
    assert_eq!(registry.change_keys(revoke("ana")).await.unwrap_err().kind(), ErrorKind::NotFound);
    let ben = registry.change_keys(revoke("b1")).await.answered();
    assert_eq!(registry.keys().await.answered(), [vec![ana], ben].concat());
}

pub async fn a_user_has_one_valid_key(place: Fixture) {
    let registry = place.engine.registry();
    add(registry.as_ref(), KeyRow { expires: Some(90), ..key("a1", "ana", 5) }).await;
    for second in [key("a2", "ana", 80), key("a1", "ben", 80)] {
        let refused = registry.change_keys(KeyChange::Add(second)).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::BadInput);
    }
    add(registry.as_ref(), key("a2", "ana", 90)).await;
    let ids: Vec<String> = registry.keys().await.answered().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["a1", "a2"]);
}

pub async fn a_replaced_key_lasts_as_long_as_the_one_before(place: Fixture) {
    let registry = place.engine.registry();
    add(registry.as_ref(), KeyRow { access: Access::Read, expires: Some(105), ..key("a1", "ana", 5) }).await;
    let replace = |which: &str| KeyChange::Replace {
        which: which.into(),
        id: "a2".into(),
        hash: "hash of a2".into(),
        now: 50,
    };
    registry.change_keys(replace("ana")).await.answered();
    let rows = place.engine.registry().keys().await.answered();
    assert_eq!(rows.iter().map(|row| row.state(60)).collect::<Vec<_>>(), ["revoked", "valid"]);
    assert_eq!(rows[1], KeyRow { access: Access::Read, expires: Some(150), ..key("a2", "ana", 50) });
    assert_eq!(registry.change_keys(replace("ben")).await.unwrap_err().kind(), ErrorKind::NotFound);
}

pub async fn the_last_day_of_a_key_is_kept(place: Fixture) {
    let registry = place.engine.registry();
    add(registry.as_ref(), key("a1", "ana", 5)).await;
    for day in [100, 200] {
        registry.change_keys(KeyChange::Use { id: "a1".into(), day }).await.answered();
    }
    assert_eq!(place.engine.registry().keys().await.answered()[0].used, Some(200));
}

fn id(number: u8) -> ProjectId {
    ProjectId::from_random([number; 8])
}

fn create(team: &str) -> TeamChange {
    TeamChange::Create { team: team.into(), now: 3 }
}

fn joins(team: &str, user: &str) -> TeamChange {
    TeamChange::Add { team: team.into(), user: user.into() }
}

fn leaves(team: &str, user: &str) -> TeamChange {
    TeamChange::Leave { team: team.into(), user: user.into() }
}

fn share(project: u8, team: &str, may_write: bool) -> ShareRow {
    let kinds = vec![Kind::Decision, Kind::Commit];
    ShareRow { project: id(project), team: team.into(), may_write, kinds }
}

/// Registers two projects and two teams: `ana` is in both, `ben` in the first.
async fn team(registry: &dyn Registry) {
    for (number, name) in [(1, "willow"), (2, "maple")] {
        registry.record(&id(number), name, &format!("/{number}"), 1).await.answered();
    }
    for change in
        [create("core"), create("docs"), joins("core", "ben"), joins("core", "ana"), joins("docs", "ana")]
    {
        assert!(registry.change_teams(change.clone()).await.answered(), "{change:?}");
    }
}

async fn rights(registry: &dyn Registry, user: &str) -> Vec<(String, bool, Vec<Kind>)> {
    let rights = registry.rights(user).await.answered();
    rights.into_iter().map(|row| (row.name, row.rights.may_write, row.rights.kinds)).collect()
}

pub async fn a_team_has_its_members_until_they_leave(place: Fixture) {
    let registry = place.engine.registry();
    team(registry.as_ref()).await;
    for nothing in [create("core"), joins("core", "ana"), joins("none", "ana"), leaves("docs", "ben")] {
        assert!(!registry.change_teams(nothing.clone()).await.answered(), "{nothing:?}");
    }
    let row = |name: &str, members: &[&str]| TeamRow {
        name: name.into(),
        made: 3,
        members: members.iter().map(|name| (*name).to_owned()).collect(),
    };
    let other = place.engine.registry();
    assert_eq!(other.teams().await.answered(), [row("core", &["ana", "ben"]), row("docs", &["ana"])]);
    assert!(other.change_teams(leaves("core", "ana")).await.answered());
    assert!(other.change_teams(TeamChange::Remove { team: "docs".into() }).await.answered());
    assert_eq!(registry.teams().await.answered(), [row("core", &["ben"])]);
}

pub async fn only_members_of_a_team_have_its_rights(place: Fixture) {
    let registry = place.engine.registry();
    team(registry.as_ref()).await;
    assert!(registry.share(share(1, "docs", false)).await.answered());
    let other = place.engine.registry();
    assert_eq!(rights(other.as_ref(), "ben").await, []);
    let kinds = vec![Kind::Decision, Kind::Commit];
    assert_eq!(rights(other.as_ref(), "ana").await, [("willow".to_owned(), false, kinds)]);
    assert!(other.change_teams(leaves("docs", "ana")).await.answered());
    assert_eq!(rights(registry.as_ref(), "ana").await, []);
}

pub async fn what_any_team_of_a_user_may_the_user_may(place: Fixture) {
    let registry = place.engine.registry();
    team(registry.as_ref()).await;
    for row in [share(1, "core", false), share(1, "docs", true), share(2, "core", false)] {
        assert!(registry.share(row).await.answered());
    }
    assert_eq!(registry.shares().await.answered().len(), 3);
    let names = async |user| {
        let rights = rights(registry.as_ref(), user).await;
        rights.into_iter().map(|(name, may_write, _)| (name, may_write)).collect::<Vec<_>>()
    };
    let row = |name: &str, may_write| (name.to_owned(), may_write);
    assert_eq!(names("ana").await, [row("maple", false), row("willow", true)]);
    assert_eq!(names("ben").await, [row("maple", false), row("willow", false)]);
    assert!(registry.share(share(1, "docs", false)).await.answered());
    assert_eq!(names("ana").await, [row("maple", false), row("willow", false)]);
}

pub async fn the_kinds_of_a_project_count_for_all_its_teams(place: Fixture) {
    let registry = place.engine.registry();
    team(registry.as_ref()).await;
    for row in [share(1, "core", false), share(2, "core", false)] {
        assert!(registry.share(row).await.answered());
    }
    let kinds = vec![Kind::Message];
    assert!(registry.share(ShareRow { kinds: kinds.clone(), ..share(1, "docs", false) }).await.answered());
    let shares = place.engine.registry().shares().await.answered();
    let found: Vec<_> = shares.into_iter().map(|row| (row.project, row.team, row.kinds)).collect();
    let row = |number, team: &str, kinds: &Vec<Kind>| (id(number), team.to_owned(), kinds.clone());
    let others = vec![Kind::Decision, Kind::Commit];
    assert_eq!(found, [row(1, "core", &kinds), row(1, "docs", &kinds), row(2, "core", &others)]);
    assert_eq!(rights(registry.as_ref(), "ben").await[1].2, kinds);
}

pub async fn a_share_ends_with_its_team_or_its_project(place: Fixture) {
    let registry = place.engine.registry();
    team(registry.as_ref()).await;
    for nothing in [share(3, "core", true), share(1, "none", true)] {
        assert!(!registry.share(nothing).await.answered());
    }
    let share_all = async || {
        for row in [share(1, "core", true), share(1, "docs", true), share(2, "docs", true)] {
            assert!(registry.share(row).await.answered());
        }
    };
    share_all().await;
    assert!(registry.unshare(&id(1), Some("core")).await.answered());
    assert!(!registry.unshare(&id(1), Some("core")).await.answered());
    assert_eq!(registry.shares().await.answered(), [share(1, "docs", true), share(2, "docs", true)]);
    assert!(registry.unshare(&id(1), None).await.answered());
    assert_eq!(registry.shares().await.answered(), [share(2, "docs", true)]);
    share_all().await;
    assert!(registry.change_teams(TeamChange::Remove { team: "docs".into() }).await.answered());
    assert!(registry.change_teams(create("docs")).await.answered());
    assert_eq!(registry.shares().await.answered(), [share(1, "core", true)]);
    registry.remove(&id(1)).await.answered();
    registry.record(&id(1), "willow", "/1", 1).await.answered();
    assert_eq!(registry.shares().await.answered(), []);
    assert!(registry.share(share(1, "core", true)).await.answered());
    registry.absorb(&id(1), &id(2)).await.answered();
    assert_eq!(registry.shares().await.answered(), []);
}

pub async fn a_project_without_a_place_is_registered_once(place: Fixture) {
    let registry = place.engine.registry();
    let made = registry.register(&id(1), "maple", 1).await.answered();
    assert_eq!((made.id.clone(), made.name.as_str(), made.places.len()), (id(1), "maple", 0));
    let other = place.engine.registry();
    assert_eq!(other.register(&id(2), "maple", 2).await.answered(), made);
    assert_eq!(other.all().await.answered(), [made]);
    registry.store(&id(1)).await.answered();
    assert!(other.existing_store(&id(1)).await.answered().is_some());
}

fn call(at: Millis, user: &str, project: Option<&str>) -> AuditRow {
    AuditRow {
        at,
        user: user.into(),
        verb: "search".into(),
        project: project.map(str::to_owned),
        memories: vec!["m1".into(), "m2".into()],
        count: 7,
        authors: vec!["ana".into(), "ben".into()],
        outcome: "ok".into(),
    }
}

/// Records three calls.
async fn note(registry: &dyn Registry) -> [AuditRow; 3] {
    let calls = [call(5, "ana", Some("p")), call(9, "ben", None), call(9, "ana", Some("q"))];
    for call in &calls {
        registry.note_call(call.clone()).await.answered();
    }
    calls
}

pub async fn calls_are_listed_newest_first(place: Fixture) {
    let [first, second, third] = note(place.engine.registry().as_ref()).await;
    let filter = AuditFilter { limit: 9, ..AuditFilter::default() };
    let listed = place.engine.registry().calls(filter).await.answered();
    assert_eq!(listed, [third, second, first]);
}

pub async fn a_filter_admits_calls_by_time_user_and_project(place: Fixture) {
    let registry = place.engine.registry();
    let [first, second, third] = note(registry.as_ref()).await;
    let filter = AuditFilter { limit: 9, ..AuditFilter::default() };
    for (filter, expected) in [
        (AuditFilter { since: Some(6), ..filter.clone() }, vec![third.clone(), second.clone()]),
        (AuditFilter { user: Some("ana".into()), ..filter.clone() }, vec![third.clone(), first.clone()]),
        (AuditFilter { project: Some("p".into()), ..filter.clone() }, vec![first]),
        (AuditFilter { limit: 1, ..filter }, vec![third]),
    ] {
        assert_eq!(registry.calls(filter.clone()).await.answered(), expected, "{filter:?}");
    }
}
