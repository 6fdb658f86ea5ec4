//! Damage inside what is stored, which SQLite doesn't notice.

use rusqlite::Connection;

use crate::filter::Filter;
use crate::store::conformance::place::{Place, name, note};
use crate::store::conformance::subject::{Engine, Sqlite};
use crate::store::{Foreign, ForeignPart, Outcome};

const RIGHT: &str = "the valve opens at 473 kPa";

/// Changes the file behind the back of the store.
fn change(place: &Place<Sqlite>, sql: &str) {
    let connection = Connection::open(place.store.path()).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

#[tokio::test]
async fn a_damaged_text_is_noticed_and_repaired_by_the_right_one() {
    let place = Place::new(Sqlite::new());
    place.say("s", &["oak"]).await;
    let id = place.put(note(RIGHT)).await;
    let damages = [
        "UPDATE memories SET text = replace(text, '473', '673') WHERE text LIKE '%473%'",
        // A byte that can't be in a text, and a text of another type.
        "UPDATE memories SET text = CAST(x'74686520ff' || substr(text, 6) AS TEXT) WHERE text LIKE '%473%'",
        "UPDATE memories SET text_hash = zeroblob(32) WHERE text LIKE '%473%'",
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        change(&place, damage);
        let check = place.store.check(&place.scope).await.unwrap();
        assert_eq!(check.damaged, [id.to_string()], "{damage}");
        let opened = place.store.memory(&place.scope, &id).await.unwrap().unwrap();
        assert!(opened.is_damaged && opened.text.len() == RIGHT.len(), "{damage}");
        let target = place.engine.folder().join(format!("{number}.db"));
        assert_eq!(place.store.back_up(&place.scope, &target).await.unwrap(), [id.to_string()]);
        let mut foreign = Foreign::open(&place.scope, &target).await.unwrap();
        let page = foreign.next(ForeignPart::Original).await.unwrap().unwrap();
        assert_eq!((page.damaged, page.memories.len()), (1, 1));
        let receipt = place.store.save(&place.scope, vec![note(RIGHT)], 9, |_| {}).await.unwrap();
        assert_eq!(receipt.outcomes[0].1, Outcome::AlreadyStored);
        let opened = place.store.memory(&place.scope, &id).await.unwrap().unwrap();
        assert!(!opened.is_damaged && opened.text == RIGHT);
        assert!(place.store.check(&place.scope).await.unwrap().is_sound());
    }
    assert_eq!(place.listed(&Filter::default()).await, [RIGHT, "oak"]);
    assert_eq!(place.rows("s").await.len(), 1, "{:?}", name("s"));
}

#[tokio::test]
async fn another_text_under_the_id_repairs_nothing() {
    let place = Place::new(Sqlite::new());
    let right = note(RIGHT);
    place.put(note(RIGHT)).await;
    change(&place, "UPDATE memories SET text = 'the valve opens at 673 kPa'");
    let mut other = note("something else");
    other.id = right.id.clone();
    let receipt = place.store.save(&place.scope, vec![other], 9, |_| {}).await.unwrap();
    assert_eq!(receipt.outcomes[0].1, Outcome::Conflict);
    assert!(!place.store.check(&place.scope).await.unwrap().is_sound());
}
