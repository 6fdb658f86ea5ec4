//! Texts that PostgreSQL can't hold as they are.

use super::engine::Postgres;
use tiro_conformance::fixture::{Fixture, message, name, outcomes};
use tiro_store::{Origin, Outcome};

/// PostgreSQL refuses U+0000, which the output of a tool may have.
#[tokio::test]
async fn a_text_with_a_nul_is_stored_and_found() {
    let Some(engine) = Postgres::new() else { return };
    let fixture = Fixture::new(Box::new(engine));
    let title = Some("a\0title".to_owned());
    fixture
        .store
        .describe_session(&fixture.scope, &name("s"), Origin { title, ..Origin::default() })
        .await
        .unwrap();
    let mut said = message("s", "maple\0willow");
    said.draft.speaker = Some("Ana\0M".into());
    let first = fixture.save(vec![said.clone()]).await;
    assert_eq!(outcomes(&first), [Outcome::Stored]);
    assert_eq!(outcomes(&fixture.save(vec![said]).await), [Outcome::AlreadyStored]);
    let stored = fixture.living(&first.outcomes[0].0).await.unwrap();
    assert_eq!((stored.text.as_str(), stored.is_damaged), ("maple\u{1a}willow", false));
    assert_eq!(fixture.found("willow").await, 1);
}
