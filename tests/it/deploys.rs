//! The files in `deploy/` agree with the program: their command lines start it, and they grant no more than it needs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Home, Ran};
use crate::web::Web;

fn deployed(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(deployed(name)).unwrap_or_else(|error| panic!("`{name}`: {error}"))
}

/// Returns the output of a program on `file`; `None` with a notice if the machine lacks it.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no `{program}`");
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned()).filter(|_| output.status.success())
}

/// Returns the content of a YAML file; `None` with a notice if this machine's Python can't read YAML.
fn yaml(name: &str) -> Option<Value> {
    let can_read = "import yaml";
    if output("python3", &["-c", can_read]).is_none() {
        eprintln!("skipped: Python can't read YAML");
        return None;
    }
    let convert = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let text = output("python3", &["-c", convert, deployed(name).to_str().unwrap()]);
    Some(serde_json::from_str(&text.unwrap_or_else(|| panic!("`{name}` is no YAML"))).unwrap())
}

/// Returns the words of a list in one line of the compose file, such as `command: ["a", "b"]`, after the service `name`.
fn command_of(name: &str) -> Vec<String> {
    let compose = read("compose.yaml");
    let service = compose.split_once(&format!("\n  {name}:\n")).expect("the service").1;
    let list = service.split_once("    command: ").expect("a command").1.lines().next().unwrap();
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// Returns the words of the unit's command.
fn command_of_unit() -> Vec<String> {
    let unit = read("systemd/tiro.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/tiro ")).unwrap();
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_command_of_the_containers_serves_users_with_keys() {
    let home = Home::new();
    let repo = home.repo("repo");
    let key = home.json(&repo.path, &["user", "add", "ana"])["key"].as_str().unwrap().to_owned();
    let words = command_of("tiro");
    let ["serve", "--http", "0.0.0.0:8137", rest @ ..] =
        &words.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        panic!("{words:?}")
    };
    let rest: Vec<&str> = rest
        .iter()
        .map(|&word| if word.starts_with("${TIRO_HOST") { "memory.example.org" } else { word })
        .collect();
    let web = Web::start(&home, &repo.path, &rest);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let bearer = format!("Authorization: Bearer {key}");
    let ask = |headers: &[&str]| web.ask("POST", "/mcp", headers, ping.as_bytes()).status;
    assert_eq!(ask(&["Host: memory.example.org", &bearer]), 200);
    assert_eq!(ask(&["Host: memory.example.org"]), 401);
    assert_eq!(ask(&["Host: other.example.org", &bearer]), 403);
    assert_eq!(web.ask("GET", "/readyz", &[], b"").status, 200);
    // The proxy passes requests to the port on which the server answers.
    assert_eq!(command_of("proxy").last().unwrap(), "tiro:8137");
}

#[test]
fn the_command_of_the_unit_is_one_of_the_program() {
    let home = Home::new();
    let repo = home.repo("repo");
    home.json(&repo.path, &["user", "add", "ana"]);
    let credentials = home.dir("credentials");
    let words = command_of_unit();
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("0.0.0.0:8137", "127.0.0.1:0"))
        .map(|word| word.replace("${CREDENTIALS_DIRECTORY}", credentials.to_str().unwrap()))
        .collect();
    // The arguments are understood, so what is missing is the certificate.
    let ran = Ran::of(home.tiro(&repo.path, &[]).args(&words));
    assert!(!ran.is_ok && ran.stderr.contains("chain.pem"), "{ran:?}");
}

#[test]
fn the_containers_are_pinned_and_confined() {
    let dockerfile = read("Dockerfile");
    let user = dockerfile.lines().rfind(|line| line.starts_with("USER ")).unwrap();
    assert_eq!(user, "USER 10001:10001", "the number is the owner of the memory");
    let stages = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM "));
    let mut images: Vec<String> = stages.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let Some(compose) = yaml("compose.yaml") else { return };
    let services = compose["services"].as_object().unwrap();
    images.extend(services.values().map(|service| service["image"].as_str().unwrap().to_owned()));
    assert_eq!(images.len(), 6, "{images:?}");
    for image in &images {
        let (_, tag) = image.split_once(':').unwrap_or_else(|| panic!("`{image}` has no tag"));
        assert!(tag.matches('.').count() >= 2 || tag.contains("-20"), "`{image}` names no version exactly");
    }
    assert_eq!(services["tiro"]["image"], format!("tiro:{}", env!("CARGO_PKG_VERSION")));
    for name in ["database", "cache", "tiro"] {
        assert_eq!(services[name]["networks"], json!(["inside"]), "{name}");
        assert!(services[name]["ports"].is_null(), "{name}");
    }
    assert_eq!(compose["networks"]["inside"]["internal"], true);
    for name in ["tiro", "cache", "proxy"] {
        assert_eq!(services[name]["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(services[name]["read_only"], true, "{name}");
    }
    // Row security doesn't bind superusers, so the servers connect as another user.
    let url = services["tiro"]["environment"]["TIRO_DATABASE"].as_str().unwrap();
    assert!(url.starts_with("postgres://tiro:") && url.ends_with("@database:5432/tiro"), "{url}");
    assert!(services["database"]["environment"]["POSTGRES_USER"].is_null());
    assert!(read("database.sh").contains("CREATE ROLE tiro LOGIN PASSWORD :'password'"));
    // The cache keeps nothing, takes no more memory than it may, and answers nobody without the password. It may be away.
    let words = command_of("cache").join(" ");
    for part in
        ["--save  --appendonly no", "--maxmemory 256mb --maxmemory-policy allkeys-lru", "--requirepass ${"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(services["cache"]["volumes"].is_null() && services["cache"]["healthcheck"]["test"].is_array());
    assert!(services["tiro"]["depends_on"]["cache"].is_null());
    let cache = services["tiro"]["environment"]["TIRO_VALKEY"].as_str().unwrap();
    assert!(cache.starts_with("redis://:${TIRO_PASSWORD") && cache.ends_with("}@cache:6379"), "{cache}");
    let volumes = services["tiro"]["volumes"].as_array().unwrap();
    assert!(
        volumes.contains(&json!("tiro:/var/lib/tiro")) && dockerfile.contains("TIRO_DATA_DIR=/var/lib/tiro")
    );
}

#[test]
fn the_unit_is_valid_and_sandboxed() {
    let home = Home::new();
    let unit = home.path().join("tiro.service");
    let text = read("systemd/tiro.service");
    fs::write(&unit, text.replace("/usr/local/bin/tiro", env!("CARGO_BIN_EXE_tiro"))).unwrap();
    let path = unit.to_str().unwrap();
    let check = |args: &[&str]| output("systemd-analyze", &[args, &[path]].concat());
    if output("systemd-analyze", &["--version"]).is_none() {
        return;
    }
    let verified = check(&["verify", "--man=no"]);
    assert_eq!(verified.as_deref(), Some(""), "systemd finds fault with the unit");
    let security = check(&["security", "--no-pager", "--offline=true", "--threshold=20"]);
    assert!(security.is_some(), "systemd says that the unit is exposed to more than 2.0 of 10");
    // A user of a changing number would be another owner after each restart.
    assert!(!text.contains("DynamicUser"));
    fs::write(&unit, text.replace("ProtectSystem=strict", "ProtectSystem=strictly")).unwrap();
    assert_ne!(check(&["verify", "--man=no"]).as_deref(), Some(""), "a mistake is found");
}
