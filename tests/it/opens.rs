//! `tiro open` answers only the browser of the user who started it, shows every view, and changes what it says it
//! changes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Home, Repo};
use crate::talk::Talk;

/// A text that would run a script if it became HTML.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>";

/// `tiro open` as a process.
struct Opened {
    child: Child,
    /// The first address, with the token.
    address: String,
    port: u16,
    /// The cookie, once the first address was opened.
    cookie: String,
    form: String,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Opened {
    /// Starts `tiro open` and opens its first address.
    fn new(home: &Home, directory: &Path, args: &[&str]) -> Opened {
        let mut opened = Opened::start(home, directory, args);
        let first = opened.address.split_once(&format!(":{}", opened.port)).unwrap().1.to_owned();
        let answer = opened.get(&first);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        opened.cookie = cookie.split(';').next().unwrap().to_owned();
        opened
    }

    fn start(home: &Home, directory: &Path, args: &[&str]) -> Opened {
        let mut command = home.tiro(directory, &[&["open", "--no-browser"], args].concat());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let port = address.split([':', '/']).find_map(|part| part.parse().ok()).unwrap();
        Opened { child, address: address.trim().to_owned(), port, cookie: String::new(), form: String::new() }
    }

    /// Sends a request with these header lines, and no others.
    fn ask(&self, method: &str, path: &str, headers: &[String], body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|line| request += &format!("{line}\r\n"));
        if !body.is_empty() {
            request += "Content-Type: application/x-www-form-urlencoded\r\n";
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }

    fn get(&self, path: &str) -> Answer {
        let mut headers = vec![self.host()];
        if !self.cookie.is_empty() {
            headers.push(format!("Cookie: {}", self.cookie));
        }
        self.ask("GET", path, &headers, "")
    }

    /// Sends a form of the page, and returns the address to which the answer leads.
    fn change(&mut self, path: &str, fields: &str) -> String {
        let answer = self.post(path, fields);
        assert_eq!(answer.status, 303, "{path} {fields}: {answer:?}");
        answer.header("location").unwrap().to_owned()
    }

    fn post(&self, path: &str, fields: &str) -> Answer {
        let origin = format!("Origin: http://127.0.0.1:{}", self.port);
        let headers = [self.host(), format!("Cookie: {}", self.cookie), origin];
        self.ask("POST", path, &headers, &format!("form={}&{fields}", self.form))
    }

    /// Reads the token of the forms from the page of a memory.
    fn read_form(&mut self, id: &str) {
        let page = self.get(&format!("/memory?id={id}")).body;
        let token = page.split("name=\"form\" value=\"").nth(1).expect("a form");
        self.form = token.split('"').next().unwrap().to_owned();
    }
}

/// Returns a home with a repository, a session with a commit, notes, and hostile texts everywhere.
fn ground() -> (Home, Repo, String) {
    let home = Home::new();
    let repo = home.repo("repo");
    let talk = Talk::new(&home, "oak", &repo.path, "main");
    talk.says("user", 1, "Why is the capstan of oak?");
    talk.says("assistant", 2, &format!("Because pine rots. {HOSTILE}\n\n[a](javascript:alert(1))"));
    talk.calls(3, "Bash", json!({"command": format!("echo {HOSTILE}")}), HOSTILE);
    repo.write("capstan.rs", &format!("// {HOSTILE}\nfn capstan() {{}}\n"));
    repo.commit("oak.txt", "oak\n", &format!("Choose oak {HOSTILE}"));
    let ran = home.run(&repo.path, &["import", "claude-code"]);
    assert!(ran.is_ok, "{ran:?}");
    let ran = home.run(&repo.path, &["import", "git"]);
    assert!(ran.is_ok, "{ran:?}");
    let note = format!("The capstan is of oak. {HOSTILE}");
    let id = home.json(&repo.path, &["add", "--type", "decision", "--topic", HOSTILE, &note])["id"].clone();
    (home, repo, id.as_str().unwrap().to_owned())
}

#[test]
fn only_the_browser_of_the_user_is_answered() {
    let (home, repo, id) = ground();
    let opened = Opened::start(&home, &repo.path, &[]);
    let host = opened.host();
    // Without the token, from another host, from another page.
    assert_eq!(opened.get("/").status, 403);
    assert_eq!(opened.get("/?token=00000000000000000000000000000000").status, 403);
    drop(opened);

    let mut opened = Opened::new(&home, &repo.path, &[]);
    opened.read_form(&id);
    let cookie = format!("Cookie: {}", opened.cookie);
    assert_ne!(host, opened.host(), "each server has a port of its own");
    for headers in [
        vec!["Host: evil.example".to_owned(), cookie.clone()],
        vec![format!("Host: evil.example:{}", opened.port), cookie.clone()],
        vec![opened.host(), cookie.clone(), "Origin: http://evil.example".to_owned()],
        vec![opened.host(), cookie.clone(), "Sec-Fetch-Site: cross-site".to_owned()],
        vec![opened.host(), "Cookie: tiro=1".to_owned()],
        vec![opened.host()],
    ] {
        for path in ["/", "/search.json?q=oak", "/doctor.json", "/nothing"] {
            let answer = opened.ask("GET", path, &headers, "");
            assert_eq!(answer.status, 403, "{headers:?} {answer:?}");
            assert!(!answer.body.contains("oak") && !answer.body.contains("capstan"), "{answer:?}");
        }
    }
    // The token works once.
    let first = opened.address.split_once(&format!(":{}", opened.port)).unwrap().1.to_owned();
    assert_eq!(opened.ask("GET", &first, &[opened.host()], "").status, 403);
    // A change needs the origin and the token of the form.
    let fields = format!("id={id}");
    let origin = format!("Origin: http://127.0.0.1:{}", opened.port);
    let form = format!("form={}&{fields}", opened.form);
    for (headers, body) in [
        (vec![opened.host(), cookie.clone(), origin.clone()], fields.clone()),
        (vec![opened.host(), cookie.clone(), origin.clone()], format!("form=0&{fields}")),
        (vec![opened.host(), cookie.clone()], form.clone()),
        (vec![opened.host(), cookie, "Origin: null".to_owned()], form.clone()),
        (vec![opened.host(), origin], form),
    ] {
        let answer = opened.ask("POST", "/memory/forget", &headers, &body);
        assert_eq!(answer.status, 403, "{headers:?} {body}: {answer:?}");
    }
    assert_eq!(home.json(&repo.path, &["stats"])["forgotten"], 0);
    // A link can't change anything.
    assert_eq!(opened.get(&format!("/memory/forget?id={id}&form={}", opened.form)).status, 405);
}

#[test]
fn every_view_shows_its_data_and_no_text_becomes_html() {
    let (home, repo, id) = ground();
    let opened = Opened::new(&home, &repo.path, &[]);
    for (path, part) in [
        ("/", "Latest sessions"),
        ("/doctor", "No check"),
        ("/timeline", "Choose oak"),
        ("/timeline?author=nobody", "Nothing happened"),
        ("/session?id=oak", "pine rots"),
        ("/session?id=oak&level=detailed", "pine rots"),
        ("/session?id=oak&from=2", "Bash"),
        ("/search", "What do you want to know?"),
        ("/search?q=capstan+oak", "<mark>oak</mark>"),
        (&format!("/memory?id={id}"), "The capstan is of oak"),
        ("/memory?id=oak%231", "pine rots"),
        (&format!("/memory/purge?id={id}"), "Purge for good"),
        ("/file", "Path in the project"),
        ("/file?path=capstan.rs", "fn capstan()"),
        ("/threads", "No assistant"),
        ("/privacy", "nothing leaves this machine"),
        ("/stash", "Nothing is stashed"),
    ] {
        let answer = opened.get(path);
        let is_fault = path == "/doctor";
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(is_fault || answer.body.contains(part), "{path}: {}", answer.body);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(
            policy.contains("require-trusted-types-for 'script'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        for bad in ["<img", "<script>", "javascript:alert(1)\"", " style=", " onerror=alert(1)>\""] {
            assert!(!answer.body.contains(bad), "{path} contains {bad}: {}", answer.body);
        }
        for outside in ["src=\"http", "href=\"//", "@import", "url(http"] {
            assert!(!answer.body.contains(outside), "{path} contains {outside}");
        }
    }
    let hits = opened.get("/search.json?q=capst");
    assert_eq!((hits.status, hits.header("content-type")), (200, Some("application/json")));
    assert!(serde_json::from_str::<serde_json::Value>(&hits.body).unwrap().is_array(), "{hits:?}");
}

#[test]
fn bad_input_gets_a_page_that_says_what_is_wrong() {
    let (home, repo, _) = ground();
    repo.write("a.bin", "\0\u{1}\0");
    repo.write("long.txt", &"a line\n".repeat(100_000));
    let opened = Opened::new(&home, &repo.path, &[]);
    for (path, status, part) in [
        ("/nothing", 404, "There is no such page"),
        ("/memory?id=zz", 404, "zz"),
        ("/memory", 400, "`id` is empty"),
        ("/session?id=none", 404, "No session is called"),
        ("/search?q=oak&kind=nothing", 400, "kind"),
        ("/search?q=oak&since=never", 400, "since"),
        ("/file?path=gone.rs", 400, "gone.rs"),
        ("/file?path=../../../etc/passwd", 400, "etc/passwd"),
        ("/file?path=a.bin", 400, "is not text"),
        ("/thread?session=oak&assistant=nobody", 404, "oak"),
        ("/stash?cursor=x", 400, "cursor"),
    ] {
        let answer = opened.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.body.contains(part) && answer.body.contains("<main"), "{path}: {}", answer.body);
    }
    let long = opened.get("/file?path=long.txt&from=99901");
    assert!(
        long.status == 200 && long.body.contains("100000 lines") && long.body.len() < 150_000,
        "{}",
        long.body.len()
    );
}

#[test]
fn a_change_is_durable_and_can_be_undone() {
    let (home, repo, id) = ground();
    let mut opened = Opened::new(&home, &repo.path, &[]);
    opened.read_form(&id);
    let forgotten = opened.change("/memory/forget", &format!("id={id}"));
    let operation = forgotten.split("operation=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    assert!(opened.get(&forgotten).body.contains("1 memory is forgotten"));
    assert_eq!(opened.get(&format!("/memory?id={id}")).status, 404);
    assert!(!home.run(&repo.path, &["show", &id]).is_ok, "another process sees it, too");
    assert_eq!(opened.change("/undo", &format!("operation={operation}")), format!("/memory?id={id}"));
    drop(opened);

    // After a restart, everything is as it was left.
    let mut opened = Opened::new(&home, &repo.path, &[]);
    opened.read_form(&id);
    opened.change("/memory/mark", &format!("id={id}&mark=on"));
    assert!(opened.get(&format!("/memory?id={id}")).body.contains("important"));
    let edited = opened.change("/memory/edit", &format!("id={id}&text=The+capstan+is+of+larch."));
    assert_ne!(edited, format!("/memory?id={id}"));
    assert!(opened.get(&edited).body.contains("larch"));
    assert!(opened.get(&format!("/memory?id={id}")).body.contains("Superseded by"));
    let new = edited.split("id=").nth(1).unwrap().to_owned();
    assert!(opened.get(&format!("/memory/purge?id={new}")).body.contains("can't be undone"));
    assert_eq!(opened.change("/memory/purge", &format!("id={new}")), "/forgotten?purged=1");
    assert_eq!(home.files_with("larch"), Vec::<std::path::PathBuf>::new());
    assert_eq!(opened.post("/memory/edit", &format!("id={id}&text=")).status, 400);
}

#[test]
fn an_empty_memory_is_shown_and_nothing_is_created() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let opened = Opened::new(&home, &repo.path, &[]);
    for path in ["/", "/timeline", "/search?q=a", "/file?path=a.txt", "/threads", "/privacy", "/stash"] {
        let answer = opened.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    assert!(opened.get("/").body.contains("Nothing is remembered of this project yet"));
    assert_eq!(std::fs::read_dir(home.data()).unwrap().count(), 0);
}

#[test]
fn it_ends_when_unused_and_names_a_port_that_is_taken() {
    let home = Home::new();
    let repo = home.repo("repo");
    let first = Opened::new(&home, &repo.path, &[]);
    let second = Opened::new(&home, &repo.path, &[]);
    assert_eq!((first.get("/").status, second.get("/").status), (200, 200));
    let taken = home.run(&repo.path, &["open", "--no-browser", "--port", &first.port.to_string()]);
    assert!(!taken.is_ok && taken.stderr.contains("--port"), "{taken:?}");
    drop((first, second));

    let mut unused = Opened::new(&home, &repo.path, &["--idle", "1"]);
    let began = Instant::now();
    while unused.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "it goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(unused.child.wait().unwrap().success());
}

#[test]
fn a_file_opens_its_view() {
    let (home, repo, _) = ground();
    let opened = Opened::start(&home, &repo.path, &["capstan.rs"]);
    assert!(
        opened.address.contains("/file?path=") && opened.address.contains("capstan.rs&token="),
        "{}",
        opened.address
    );
    let elsewhere = home.dir("elsewhere");
    let opened = Opened::new(&home, &elsewhere, &[repo.path.to_str().unwrap()]);
    assert!(
        opened.get("/").body.contains("Choose oak") || opened.get("/timeline").body.contains("Choose oak")
    );
}

/// A page that is open while the store is replaced shows the new store, and says so.
#[test]
fn a_store_that_is_replaced_is_opened_again() {
    let (home, repo, id) = ground();
    let opened = Opened::new(&home, &repo.path, &[]);
    assert_eq!(opened.get(&format!("/memory?id={id}")).status, 200);
    std::fs::rename(home.data(), home.path().join("before")).unwrap();
    home.dir("data");
    let other = home.json(&repo.path, &["add", "--type", "fact", "A store of its own."])["id"].clone();
    assert_eq!(opened.get(&format!("/memory?id={id}")).status, 404);
    let answer = opened.get(&format!("/memory?id={}", other.as_str().unwrap()));
    assert!(answer.status == 200 && answer.body.contains("A store of its own"), "{answer:?}");
}
