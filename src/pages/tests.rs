//! No text of a memory becomes HTML, in any view.

use std::path::Path;
use std::sync::Arc;

use axum::response::IntoResponse;
use proptest::prelude::*;

use super::layout::{self, View};
use super::request::Request;
use super::views::{file, memory, privacy, project, search, session, stash, threads, timeline};
use tiro_base::error::Result;
use tiro_base::memory::Provenance;
use tiro_host::caller::WritingCaller;
use tiro_host::config::Config;
use tiro_host::engine::Engine;
use tiro_sqlite::SqliteFiles;
use tiro_tools::memory::{forget_context, save_messages, store_memory};
use tiro_tools::stash::stash_context;

/// The elements of the pages.
const ELEMENTS: &str = "a article blockquote body br button caption circle code dd del details div dl dt em figcaption \
    figure form h1 h2 h3 head header hr html input label li link main mark meta meter nav ol option p polyline pre \
    rect script section select span strong summary svg table tbody td text textarea th thead time title tr ul line";

/// The elements that have no end.
const VOID: &str = "br hr input link meta";

/// The attributes of the pages. None of them runs a script.
const ATTRIBUTES: &str = "action aria-current aria-label aria-labelledby autocomplete charset class content cx cy \
    data-caption data-later datetime defer dy fill fill-opacity font-family font-size for height hidden href id lang \
    max method min name opacity open placeholder points r rel required role rows scope selected spellcheck src start \
    stroke stroke-width tabindex text-anchor transform type value viewbox viewBox width x x1 x2 y y1 y2";

/// Checks that `html` consists of the elements and attributes of the pages, each element closed where it belongs, and
/// that every address leads into the pages or to the web.
fn check(html: &str) -> std::result::Result<(), String> {
    let has = |list: &str, word: &str| list.split_whitespace().any(|each| each == word);
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').ok_or("a tag without an end")?;
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(last) if last == name => continue,
                last => return Err(format!("</{name}> closes {last:?}")),
            }
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_end_matches('/');
        if !has(ELEMENTS, name) {
            return Err(format!("<{tag}>"));
        }
        let is_closed = tag.ends_with('/');
        if !has(VOID, name) && !is_closed {
            open.push(name);
        }
        attributes = attributes.trim_end_matches('/').trim();
        while !attributes.is_empty() {
            let stop = attributes.find([' ', '=']).unwrap_or(attributes.len());
            let key = &attributes[..stop];
            if !has(ATTRIBUTES, key) {
                return Err(format!("the attribute {key:?} in <{tag}>"));
            }
            attributes = &attributes[stop..];
            if let Some(value) = attributes.strip_prefix("=\"") {
                let end = value.find('"').ok_or(format!("<{tag}>"))?;
                let is_own = |value: &str| value.starts_with(['/', '#']) || value.starts_with("http");
                if matches!(key, "href" | "src" | "action") && !is_own(&value[..end].to_ascii_lowercase()) {
                    return Err(format!("leads to {:?}", &value[..end]));
                }
                attributes = &value[end + 1..];
            }
            attributes = attributes.trim_start();
        }
    }
    let hides =
        html.contains(|c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c));
    if hides {
        return Err("a control character".to_owned());
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} stay open")) }
}

/// Returns texts that would break pages which don't escape them.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("<script>alert(1)</script>".to_owned()),
        Just("\"><img src=x onerror=alert(1)>".to_owned()),
        Just("' onmouseover='alert(1)".to_owned()),
        Just("</textarea></title></pre></code></details></main>".to_owned()),
        Just("[a](javascript:alert(1)) ![b](http://e.example/x)".to_owned()),
        Just("[a](https://e.example/\"onclick=\"x) <https://e.example/'\">".to_owned()),
        Just("\n```diff\n-</pre>\n+<b onclick=x>\n```\n".to_owned()),
        Just("\n| a | <i> |\n|---|---|\n| `<u>` | &lt; &amp;quot; |\n".to_owned()),
        Just("\u{202e}\u{2066}\u{1b}[31m\u{7}\u{0}".to_owned()),
        Just("<!-- --> <![CDATA[ ]]> <?x?> &#60;script&#62;".to_owned()),
        "[ -~\n]{0,40}",
        any::<String>(),
        "[<>\"'&/=` \n#*_\\[\\]()!-]{0,30}",
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| format!("capstan {}", parts.concat()))
}

/// A memory with the text in every place.
struct Ground {
    engine: Engine,
    caller: WritingCaller,
    note: String,
    forgotten: String,
}

async fn ground(folder: &Path, text: &str) -> Result<Ground> {
    tiro_base::error::redact_by(tiro_redact::without_secrets);
    let config = Config::of_test(folder);
    let stores = Arc::new(SqliteFiles::new(config.data_dir.clone()));
    let engine = Engine::new(config, stores);
    let project = folder.join("project");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("a.txt"), text).unwrap();
    let caller = WritingCaller::of_process(engine.config()).in_directory(&project, true);
    let message = |role: &str, place: usize| {
        serde_json::json!({"role": role, "text": text, "speaker": text.chars().take(60).collect::<String>(),
            "id": format!("{place}"), "time": format!("2026-03-01T09:0{place}:00Z")})
    };
    let roles = ["user", "assistant", "tool"];
    let messages: Vec<_> = roles.iter().enumerate().map(|(place, role)| message(role, place)).collect();
    let args = serde_json::json!({"session_id": "talk", "messages": messages});
    save_messages::run(&engine, &caller, serde_json::from_value(args).unwrap()).await?;
    let note = |kind: &str, text: String| store_memory::Args {
        text,
        kind: Some(kind.to_owned()),
        topic: Some(text_of_topic()),
        ..store_memory::Args::default()
    };
    let first =
        store_memory::store(&engine, &caller, note("decision", text.to_owned()), Provenance::UserSaid)
            .await?;
    let second = note("fact", format!("forgotten {text}"));
    let second = store_memory::store(&engine, &caller, second, Provenance::UserSaid).await?;
    let args = stash_context::Args { segment_ids: Some(vec!["talk#0".to_owned()]), ..Default::default() };
    stash_context::run(&engine, &caller, args).await?;
    let args = forget_context::Args { ids: Some(vec![second.id.clone()]), ..Default::default() };
    forget_context::run(&engine, &caller, args).await?;
    Ok(Ground { engine, caller, note: first.id, forgotten: second.id })
}

/// A topic that would break a page.
fn text_of_topic() -> String {
    "\"><i>topic</i>".to_owned()
}

/// Checks the page of a view, or of its error.
fn check_page(name: &str, view: Result<View>) -> std::result::Result<(), TestCaseError> {
    let view = view.unwrap_or_else(|error| super::error::page(&error).1);
    let page = layout::page(&view, "\"><script>a project</script>").into_string();
    check(&page).map_err(|why| TestCaseError::fail(format!("{name}: {why}\n{page}")))
}

async fn check_views(ground: &Ground, text: &str) -> std::result::Result<(), TestCaseError> {
    let Ground { engine, caller, note, forgotten } = ground;
    let ask = |fields: &[(&str, &str)]| {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Request::new(fields.collect(), "token")
    };
    macro_rules! checked {
        ($view:path, $fields:expr) => {
            check_page(stringify!($view), $view(engine, caller, &ask(&$fields)).await)?
        };
    }
    checked!(project::show, []);
    checked!(project::check, []);
    checked!(timeline::show, []);
    checked!(timeline::show, [("author", text), ("branch", text), ("path", text)]);
    checked!(session::show, [("id", "talk")]);
    checked!(session::show, [("id", "talk"), ("level", "detailed"), ("from", "1")]);
    checked!(session::show, [("id", text)]);
    checked!(search::show, [("q", text)]);
    checked!(search::show, [("q", "capstan"), ("topic", text)]);
    checked!(memory::show, [("id", note.as_str())]);
    checked!(memory::show, [("id", "talk#2")]);
    checked!(memory::show, [("id", text)]);
    checked!(memory::ask_to_purge, [("id", note.as_str())]);
    checked!(memory::ask_to_purge, [("id", forgotten.as_str())]);
    checked!(memory::forgotten, [("operation", text), ("id", text), ("count", "2")]);
    checked!(file::show, [("path", "a.txt")]);
    checked!(file::show, [("path", text)]);
    checked!(threads::show, []);
    checked!(threads::one, [("session", text), ("assistant", text)]);
    checked!(privacy::show, [("provider", text), ("since", text)]);
    checked!(stash::show, []);
    checked!(stash::show, [("words", text), ("session", "talk")]);
    let typed = search::typed(engine, caller, &ask(&[("q", "capstan")])).await;
    let typed = typed.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(serde_json::from_str::<serde_json::Value>(&typed).is_ok_and(|typed| typed.is_array()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_text_becomes_html_in_any_view(text in hostile()) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let ground = ground(folder.path(), &text).await;
            let ground = ground.map_err(|error| TestCaseError::fail(error.with_hint()))?;
            let checked = check_views(&ground, &text).await;
            ground.caller.close();
            ground.engine.close();
            checked
        })?;
    }
}

#[test]
fn a_page_that_is_broken_is_found() {
    let page = |body: &str| format!("<!DOCTYPE html><html><body>{body}</body></html>");
    assert_eq!(check(&page("<p class=\"a\">b</p>")), Ok(()));
    for body in [
        "<b>a</b>",
        "<p>a",
        "a</p>",
        "<p onclick=\"a\">b</p>",
        "<a href=\"javascript:a\">b</a>",
        "<img>",
        "\u{7}",
    ] {
        assert!(check(&page(body)).is_err(), "{body}");
    }
}

/// A view that panicked used to end the connection, and the browser said that the site is down.
#[tokio::test]
async fn a_panic_of_a_view_is_a_page() {
    let answer = super::answer(async { panic!("a bug") }).await;
    assert_eq!(answer.status(), 500);
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains("This view panicked"), "{text}");
    check(&text).unwrap();
    assert_eq!(
        super::answer(async { axum::http::StatusCode::NO_CONTENT.into_response() }).await.status(),
        204
    );
}
