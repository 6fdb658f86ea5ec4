//! Tests against a server. `TIRO_TEST_VALKEY` has its address; `.ci/run` starts one. Without it, the tests of a running
//! server say that they were skipped.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::{Rate, Valkey};
use tiro_base::error::Kind;

/// Returns a connection to the server, which is ready, and a group of its own.
async fn connected(name: &str) -> Option<(Valkey, String)> {
    #[expect(clippy::disallowed_methods, reason = "it is set for tests alone")]
    let Ok(url) = std::env::var("TIRO_TEST_VALKEY") else {
        eprintln!("skipped: TIRO_TEST_VALKEY names no server of Valkey");
        return None;
    };
    let valkey = Valkey::at(&url).unwrap();
    let group = format!("test {name} {}", std::process::id());
    let began = Instant::now();
    while !valkey.drop_group(&group).await {
        assert!(began.elapsed() < Duration::from_secs(10), "there is no server at {url}");
    }
    // What failed before the connection was there is forgotten.
    tokio::time::sleep(crate::QUIET + Duration::from_millis(50)).await;
    Some((valkey, group))
}

#[test]
fn an_address_must_be_understood() {
    for wrong in ["", "valkey", "postgres://localhost/tiro", "redis://:port"] {
        assert_eq!(Valkey::at(wrong).err().map(|error| error.kind()), Some(Kind::BadInput), "{wrong}");
    }
}

#[tokio::test]
async fn an_answer_is_kept_until_it_expires_or_its_group_is_dropped() {
    let Some((valkey, group)) = connected("answers").await else { return };
    let other = format!("{group} of another");
    assert_eq!(valkey.cached(&group, [1; 32], 0).await, None);
    valkey.cache(&group, [1; 32], "an änswer", 100, 1000).await;
    valkey.cache(&other, [1; 32], "of another", 100, 1000).await;
    assert_eq!(valkey.cached(&group, [1; 32], 1099).await.as_deref(), Some("an änswer"));
    assert_eq!(valkey.cached(&group, [1; 32], 1100).await, None, "it is too old");
    assert_eq!(valkey.cached(&group, [2; 32], 100).await, None);
    assert!(valkey.drop_group(&group).await);
    assert_eq!(valkey.cached(&group, [1; 32], 100).await, None);
    assert_eq!(valkey.cached(&other, [1; 32], 100).await.as_deref(), Some("of another"));
    assert!(valkey.drop_group(&other).await);
}

#[tokio::test]
async fn a_group_does_not_fill_the_memory() {
    let Some((valkey, group)) = connected("many").await else { return };
    for number in 0..=u32::try_from(crate::MOST).unwrap() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        valkey.cache(&group, key, "an answer", 0, 60_000).await;
    }
    assert_eq!(valkey.cached(&group, [0; 32], 1).await, None, "the first ones are gone");
    valkey.cache(&group, [9; 32], &"x".repeat(crate::LARGEST + 1), 0, 60_000).await;
    assert_eq!(valkey.cached(&group, [9; 32], 1).await, None, "it is too large");
    assert!(valkey.drop_group(&group).await);
}

#[tokio::test]
async fn two_servers_count_the_calls_of_a_caller_together() {
    let Some((one, group)) = connected("rates").await else { return };
    let Some((other, _)) = connected("rates").await else { return };
    let rate = Rate { rate: 0.001, burst: 3.0 };
    for server in [&one, &other, &one] {
        assert_eq!(server.take(&group, "ana", rate).await, None);
    }
    let wait = other.take(&group, "ana", rate).await.unwrap();
    assert!(wait > Duration::from_secs(900) && wait <= Duration::from_secs(1000), "{wait:?}");
    assert_eq!(other.take(&group, "ben", rate).await, None);
}

#[tokio::test]
async fn a_server_that_is_gone_or_silent_costs_little() {
    // Nobody answers here, although the system accepts connections.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [silent.local_addr().unwrap().port(), gone.local_addr().unwrap().port()];
    drop(gone);
    for port in ports {
        let valkey = Valkey::at(&format!("redis://127.0.0.1:{port}")).unwrap();
        let began = Instant::now();
        for _ in 0..100 {
            assert_eq!(valkey.cached("group", [1; 32], 0).await, None);
            valkey.cache("group", [1; 32], "an answer", 0, 1000).await;
            assert_eq!(valkey.take("group", "ana", Rate { rate: 1.0, burst: 1.0 }).await, None);
        }
        // Each pause of a second costs one wait of 50 ms; without pauses there would be 300.
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(!valkey.drop_group("group").await);
    }
}
