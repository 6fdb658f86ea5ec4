//! Any number of documents, and any that take forever, end in an answer in time: in part, with what was not read. A call that
//! is cancelled leaves no process behind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::extracts::{FONT, line, pdf, pdf_of, stream};
use crate::harness::{Home, Repo, Server, eventually};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// How deep the forms of a document are nested that no parser reads to its end.
const FOREVER: usize = 12;

/// Returns a document of a page and `depth` forms, each of which shows the next ten times.
fn nested(number: usize, depth: usize) -> Vec<u8> {
    let resources =
        |next: usize| format!("/Resources << /Font << /F1 3 0 R >> /XObject << /X {next} 0 R >> >>");
    let page =
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R {} >>", resources(6));
    let text = format!("BT /F1 12 Tf 72 700 Td (paper {number}) Tj ET /X Do");
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_vec(),
        FONT.into(),
        page.into_bytes(),
        stream("", text.as_bytes()),
    ];
    for form in 1..=depth {
        let entries = format!("/Type /XObject /Subtype /Form /BBox [0 0 9 9] {}", resources(6 + form));
        let shown = if form < depth { "/X Do ".repeat(10) } else { "q Q".to_owned() };
        objects.push(stream(&entries, shown.as_bytes()));
    }
    pdf_of(&objects)
}

/// A home with a project of documents, and an assistant.
struct Ground {
    home: Home,
    project: Repo,
    mock: Mock,
}

impl Ground {
    fn new() -> Ground {
        let home = Home::new();
        let project = home.repo("project");
        let mock = Mock::start();
        mock.behaves(&Manner::Says("Read.".into()));
        let provider = "service = 'openai-compatible'\nmodel = 'm'\nwindow = 16000\n";
        write(&home, &format!("[providers.mock]\n{provider}endpoint = '{}'\n", mock.endpoint()));
        Ground { home, project, mock }
    }

    fn add(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.project.path.join(name), bytes).unwrap();
    }

    /// Returns a server with a variable set.
    fn serve(&self, variable: &str, value: &str) -> Server {
        let mut command = self.home.tiro(&self.project.path, &["serve"]);
        command.env(variable, value);
        Server::start(command)
    }
}

fn count(server: &mut Server) -> Value {
    server.data("count_tokens", json!({"paths": ["."]}))
}

#[test]
fn documents_that_a_call_does_not_reach_are_named_and_the_next_call_goes_on() {
    let ground = Ground::new();
    for number in 0..40 {
        ground.add(&format!("{number:02}.pdf"), &pdf(&[line(&format!("Paper {number}"))]));
    }
    ground.project.write("notes.md", "# Notes\n");
    let mut server = ground.serve("TIRO_FILES_DOCUMENTS", "15");
    let first = count(&mut server);
    assert_eq!(first["files"], 16, "{first}");
    let [skipped] = &first["skipped"].as_array().unwrap()[..] else { panic!("{first}") };
    let paths = skipped["path"].as_str().unwrap();
    assert!(paths.starts_with("25 documents (`") && paths.ends_with(" and 20 more)"), "{paths}");
    assert_eq!(
        skipped["why"],
        "were not read, because a call extracts the text of 15 documents; repeat the call, which goes on from here, or name fewer documents"
    );
    assert_eq!(count(&mut server)["files"], 31);
    let last = count(&mut server);
    assert_eq!((&last["files"], &last["skipped"]), (&json!(41), &json!([])));

    // The assistant is told what it does not have; the rest comes in the next turn.
    let ask = |server: &mut Server, what: &str| {
        let asked = json!({"session_id": "s", "instructions": what, "context": ["."]});
        server.data("chat_with_mock", asked)["receipt"].clone()
    };
    let said = || {
        let (_, body) = ground.mock.seen.lock().unwrap().last().unwrap().clone();
        body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    let mut server = ground.serve("TIRO_FILES_DOCUMENTS", "30");
    let receipt = ask(&mut server, "Read these");
    assert_eq!(receipt["sent"]["count"], 31, "{receipt}");
    assert!(receipt["skipped"][0]["path"].as_str().unwrap().starts_with("10 documents (`"), "{receipt}");
    let prompt = said();
    assert!(prompt.contains("10 documents (") && prompt.contains("were not read, because"), "{prompt}");
    let receipt = ask(&mut server, "And the others?");
    assert_eq!((&receipt["sent"]["count"], &receipt["skipped"]), (&json!(10), &Value::Null), "{receipt}");
    assert!(!said().contains("were not read"));
}

#[test]
fn documents_that_take_forever_take_no_longer_than_their_time_together() {
    let ground = Ground::new();
    for number in 0..30 {
        ground.add(&format!("{number:02}.pdf"), &nested(number, FOREVER));
    }
    ground.project.write("notes.md", "# Notes\n");
    let mut server = ground.serve("TIRO_FILES_DOCUMENTS_TIME", "1");
    let start = Instant::now();
    let counted = count(&mut server);
    // Each of them alone may take 20 s.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(counted["files"], 1, "{counted}");
    assert!(counted["skipped"][0]["path"].as_str().unwrap().starts_with("30 documents (`"), "{counted}");
    assert!(counted["skipped"][0]["why"].as_str().unwrap().contains("get 1 s; repeat the call"), "{counted}");
    // What does not take forever is read to its end.
    ground.add("other.pdf", &nested(99, 3));
    let named = server.data("count_tokens", json!({"paths": ["other.pdf"]}));
    assert_eq!((&named["files"], &named["skipped"]), (&json!(1), &json!([])));
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_that_is_cancelled_leaves_no_process_behind() {
    let ground = Ground::new();
    for number in 0..30 {
        ground.add(&format!("{number:02}.pdf"), &nested(number, FOREVER));
    }
    let chat = json!({"session_id": "s", "instructions": "Read these", "context": ["."]});
    let attached = json!({"session_id": "t", "instructions": "Read these", "attachments": ["."]});
    let mut server = ground.serve("TIRO_FILES_DOCUMENTS_TIME", "60");
    for (tool, arguments) in [
        ("count_tokens", json!({"paths": ["."]})),
        ("chat_with_mock", chat.clone()),
        ("chat_with_mock", attached),
    ] {
        let id = server.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        eventually(|| !children(server.pid()).is_empty());
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        server.send(&cancelled.to_string());
        let start = Instant::now();
        eventually(|| children(server.pid()).is_empty());
        // It takes 0.1 s; the parser of one document would end after 20 s, and be followed by the next.
        assert!(start.elapsed() < Duration::from_secs(40), "{tool}: {:?}", start.elapsed());
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(children(server.pid()), [0; 0], "{tool}");
    }
    // Nor does a server that ends.
    server.ask("tools/call", json!({"name": "chat_with_mock", "arguments": chat}));
    eventually(|| !children(server.pid()).is_empty());
    let parsers = children(server.pid());
    let start = Instant::now();
    server.end();
    eventually(|| parsers.iter().all(|parser| parent(*parser).is_none()));
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    assert_eq!(ground.mock.requests(), 0, "nothing was sent");
}

/// Returns the processes that `pid` started and that have not ended.
#[cfg(target_os = "linux")]
fn children(pid: i32) -> Vec<i32> {
    let folders = std::fs::read_dir("/proc").unwrap();
    let all = folders.filter_map(|folder| folder.unwrap().file_name().to_str()?.parse().ok());
    all.filter(|process| parent(*process) == Some(pid)).collect()
}

/// Returns the parent of a process; `None` if it has ended.
#[cfg(target_os = "linux")]
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    (fields.next()? != "Z").then(|| fields.next()?.parse().ok())?
}
