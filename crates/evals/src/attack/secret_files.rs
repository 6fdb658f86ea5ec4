//! Ordinary files with secrets in the folder that a consult names: files whose name says that they hold secrets, which are
//! not sent at all, and others, in which the secrets are replaced.
//!
//! What the assistant was sent decides. The values are random and have no form of their own.

use anyhow::{Result, ensure};
use serde_json::json;

use super::keys;
use super::scene::{Scene, count};
use crate::client::{Tiro, last_chars};
use crate::random::Random;
use crate::stats::Report;

/// Families of files whose name says that they hold secrets.
const NAMED: [(&str, [&str; 10]); 8] = [
    (
        "environments",
        [
            ".env",
            ".env.local",
            "prod.env",
            "env.production",
            ".env.bak",
            "staging.env.old",
            ".envrc",
            "app.env~",
            "docker/.env.ci",
            "config/.env.test.local",
        ],
    ),
    (
        "keys",
        [
            "id_rsa",
            "id_ed25519.bak",
            "deploy_rsa",
            "server.key",
            "tls.key.old",
            "bundle.pem",
            "cert.p12",
            "store.jks",
            "secring.gpg",
            "release.keystore",
        ],
    ),
    (
        "Terraform",
        [
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "prod.tfvars",
            "secrets.auto.tfvars",
            "dev.tfvars.json",
            "old.tfstate",
            ".terraformrc",
            "credentials.tfrc.json",
            "main.tfstate.bak",
            "x.tfvars.old",
        ],
    ),
    (
        "clusters and containers",
        [
            "kubeconfig",
            ".kube/config",
            ".docker/config.json",
            ".dockercfg",
            "prod.kubeconfig",
            "kubeconfig.yaml",
            "vault_pass.txt",
            ".vault_pass",
            "vault-password-file",
            ".vault-token",
        ],
    ),
    (
        "clouds and packages",
        [
            ".aws/credentials",
            "credentials.json",
            "service-account.json",
            ".npmrc",
            ".pypirc",
            ".netrc",
            ".git-credentials",
            ".gem/credentials",
            ".cargo/credentials.toml",
            "application_default_credentials.json",
        ],
    ),
    (
        "shells and databases",
        [
            ".bash_history",
            ".zsh_history",
            ".psql_history",
            ".mysql_history",
            ".pgpass",
            ".my.cnf",
            ".python_history",
            ".node_repl_history",
            ".rediscli_history",
            ".sqlite_history",
        ],
    ),
    (
        "password managers",
        [
            "passwords.txt",
            "passwords.csv",
            "bitwarden_export.json",
            "lastpass_export.csv",
            "1password-export.1pux",
            "vault.kdbx",
            "keepass.kdb",
            "Passwords.xlsx",
            "my-passwords.txt",
            "chrome-passwords.csv",
        ],
    ),
    (
        "clients",
        [
            ".codex/auth.json",
            ".claude/.credentials.json",
            ".gemini/oauth_creds.json",
            ".config/gh/hosts.yml",
            ".config/gcloud/access_tokens.db",
            ".htpasswd",
            "secrets.yaml",
            "secrets.json",
            "secrets.toml",
            "client_secret.json",
        ],
    ),
];

/// Ordinary files in which a secret stands; `{}` is its place.
const ORDINARY: [(&str, &str); 20] = [
    (
        "docker-compose.yml",
        "services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_PASSWORD: {}\n",
    ),
    ("config/settings.toml", "[database]\nuser = \"app\"\npassword = \"{}\"\nport = 5432\n"),
    ("application.properties", "spring.datasource.username=app\nspring.datasource.password={}\n"),
    ("config.json", "{\n  \"smtp\": {\"host\": \"mail.local\", \"password\": \"{}\"}\n}\n"),
    ("README.md", "# Set-up\n\nLog in with user `ada` and password `{}`, then run `make`.\n"),
    ("deploy.sh", "#!/bin/sh\nexport DB_PASSWORD='{}'\n./run\n"),
    ("src/settings.py", "SECRET_KEY = \"{}\"\nDEBUG = False\n"),
    ("src/db.ts", "export const pool = new Pool({ user: 'app', password: '{}', port: 5432 });\n"),
    ("main.tf", "resource \"aws_db_instance\" \"db\" {\n  username = \"app\"\n  password = \"{}\"\n}\n"),
    ("k8s.yaml", "apiVersion: v1\nkind: Secret\nstringData:\n  api-token: {}\n"),
    ("ansible/hosts.ini", "[web]\nweb1 ansible_user=root ansible_password={}\n"),
    ("Dockerfile", "FROM alpine\nENV API_TOKEN={}\nRUN make\n"),
    (
        "web.xml",
        "<context-param>\n  <param-name>db.password</param-name>\n  <param-value>{}</param-value>\n</context-param>\n",
    ),
    ("ci.yml", "jobs:\n  test:\n    env:\n      DEPLOY_TOKEN: \"{}\"\n"),
    ("nginx.conf", "location / {\n  proxy_set_header Authorization \"Bearer {}\";\n}\n"),
    ("notes.txt", "Meeting at nine.\npassword: {}\nBring the plans.\n"),
    ("users.sql", "CREATE USER app IDENTIFIED BY '{}';\nGRANT ALL ON shop.* TO app;\n"),
    ("Makefile", "push:\n\tcurl -u ada:{} https://repo.local/upload\n"),
    ("src/client.go", "client := New(\"https://api.local\")\nclient.SetPassword(\"{}\")\n"),
    ("log.txt", "12:00:01 INFO connecting to postgres://app:{}@db.local:5432/shop\n12:00:02 INFO ready\n"),
];

/// Consults with a folder of such files, and counts the secrets that arrive.
pub fn attack(seed: u64, tiro: &Tiro, report: &mut Report) -> Result<()> {
    let mut random = Random::new(seed);
    let (mut arrived, mut asked_for) = (Vec::new(), 0);
    for (family, names) in NAMED {
        let files = names.map(|name| (name.to_owned(), "DB_HOST=db.local\nPASSWORD={}\n{}\n".to_owned()));
        asked_for += files.len();
        arrived.extend(consult(family, &files, &mut random, tiro)?);
    }
    for part in ORDINARY.chunks(10) {
        let files: Vec<(String, String)> =
            part.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        asked_for += files.len();
        arrived.extend(consult("ordinary files", &files, &mut random, tiro)?);
    }
    report.add("consults: ordinary files with secrets", asked_for as f64, "");
    count(report, "  secrets of them that arrive", arrived);
    Ok(())
}

/// Returns the files whose secret arrives, if they are in a folder that is given to the assistant.
fn consult(what: &str, files: &[(String, String)], random: &mut Random, tiro: &Tiro) -> Result<Vec<String>> {
    let scene = Scene::create(tiro)?;
    let mut values = Vec::new();
    for (name, text) in files {
        let value = keys::password(random);
        scene.write(name, text.replace("{}", &value))?;
        values.push(value);
    }
    scene.write("src/main.rs", "fn main() { println!(\"lighthouse\") }\n")?;
    let mut server = scene.serve(100_000, 0)?;
    scene.searches(&[], |_| "I have looked at it.".to_owned());
    let told = scene.ask(&mut server, what, json!({"context": ["."]}))?;
    ensure!(told.is_answered(), "no answer: {}", last_chars(&told.answer.text(), 500));
    let sent = told.everything();
    ensure!(sent.contains("lighthouse"), "the file without secrets was not sent");
    let arrives = |((name, _), value): (&(String, String), &String)| {
        sent.contains(value.as_str()).then(|| format!("{what}: {name} with {value}"))
    };
    Ok(files.iter().zip(&values).filter_map(arrives).collect())
}
