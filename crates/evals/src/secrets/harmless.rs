//! Harmless text: what stands around a secret, what stands in its place, and names.

use anyhow::{Result, bail};

use super::values::{self, Vendor};
use crate::random::Random;

/// Blocks of harmless text of each kind. A kind starts with `== name`; empty lines part its blocks.
const GROUNDS: &str = include_str!("templates/grounds.txt");

/// Names of passwords, in several languages.
const PASSWORD_NAMES: &[&str] = &[
    "DB_PASSWORD",
    "DATABASE_PASSWORD",
    "POSTGRES_PASSWORD",
    "MYSQL_ROOT_PASSWORD",
    "SMTP_PASS",
    "MAIL_PASSWORD",
    "ADMIN_PASSWORD",
    "ADMIN_PWD",
    "ROOT_PW",
    "REDIS_PASSWORD",
    "LDAP_BIND_PASSWORD",
    "KEYSTORE_PASSWORD",
    "TRUSTSTORE_PASSWORD",
    "SSH_PASSPHRASE",
    "FTP_PASSWD",
    "RABBITMQ_DEFAULT_PASS",
    "USER_PASSWORD",
    "PASSWORD",
    "MQTT_PASSWORD",
    "WIFI_PASSWORD",
    "DB_PASSWORT",
    "ADMIN_KENNWORT",
    "DB_CONTRASENA",
    "MOT_DE_PASSE",
    "DB_SENHA",
    "GRAFANA_ADMIN_PASSWORD",
    "ELASTIC_PASSWORD",
    "VAULT_PASSPHRASE",
    "PROXY_PASSWORD",
    "BACKUP_ENCRYPTION_PASSWORD",
];

/// Names of tokens and keys.
const TOKEN_NAMES: &[&str] = &[
    "API_KEY",
    "API_TOKEN",
    "ACCESS_TOKEN",
    "AUTH_TOKEN",
    "CLIENT_SECRET",
    "APP_SECRET",
    "JWT_SECRET",
    "SESSION_SECRET",
    "WEBHOOK_SECRET",
    "SIGNING_KEY",
    "ENCRYPTION_KEY",
    "SECRET_KEY",
    "SECRET_KEY_BASE",
    "REFRESH_TOKEN",
    "DEPLOY_TOKEN",
    "BEARER_TOKEN",
    "COOKIE_SECRET",
    "HMAC_SECRET",
    "MASTER_KEY",
    "PAYMENT_API_KEY",
    "WEATHER_API_KEY",
    "CI_JOB_TOKEN",
    "OAUTH_CLIENT_SECRET",
    "CSRF_SECRET",
    "LICENSE_SERVER_TOKEN",
    "APIKEY",
];

/// Names of keys in several lines.
const KEY_NAMES: &[&str] =
    &["PRIVATE_KEY", "TLS_KEY", "SSH_PRIVATE_KEY", "DEPLOY_KEY", "SIGNING_PRIVATE_KEY"];

/// Names of wallet phrases.
const PHRASE_NAMES: &[&str] =
    &["MNEMONIC", "SEED_PHRASE", "WALLET_MNEMONIC", "RECOVERY_PHRASE", "DEPLOYER_MNEMONIC", "SEED_WORDS"];

const USERS: &[&str] =
    &["ada", "deploy", "jonas", "svc_report", "maria", "root", "backup", "kenji", "app", "olga"];
const HOSTS: &[&str] = &[
    "db1.internal",
    "10.2.7.14",
    "build-03",
    "mail.example.org",
    "api.acme.io",
    "srv2.lan",
    "nas.home.arpa",
];
const NOUNS: &[&str] =
    &["billing", "reports", "catalog", "shop", "ledger", "search", "intranet", "warehouse"];

/// Returns harmless text of the kind `ground` before and after something: 5 to 30 lines, none for `none`.
pub fn around(ground: &str, random: &mut Random) -> Result<(String, String)> {
    if ground == "none" {
        return Ok((String::new(), String::new()));
    }
    if let Some(language) = ground.strip_prefix("fence ") {
        let (before, after) = around("English", random)?;
        return Ok((format!("{before}```{language}\n"), format!("```\n{after}")));
    }
    let mut sections = GROUNDS.split("\n== ");
    let Some(section) = sections.find_map(|section| {
        let (name, blocks) = section.trim_start_matches("== ").split_once('\n')?;
        (name == ground).then_some(blocks)
    }) else {
        bail!("no ground `{ground}`");
    };
    let mut blocks: Vec<&str> =
        section.split("\n\n").map(str::trim_end).filter(|block| !block.is_empty()).collect();
    let mut draw = |count: usize| {
        let count = count.min(blocks.len());
        let drawn: Vec<String> =
            (0..count).map(|_| format!("{}\n", blocks.swap_remove(random.below(blocks.len())))).collect();
        drawn.concat()
    };
    Ok((draw(3), draw(3)))
}

/// Returns a usual name, in upper case with underscores, of secrets of the kind `kind`.
pub fn variable(kind: &str, random: &mut Random) -> &'static str {
    let names: &[&'static str] = match kind {
        "password" | "plain" | "human" | "phrasepass" => PASSWORD_NAMES,
        "phrase" => PHRASE_NAMES,
        "pem" | "ssh" | "pgp" | "age" => KEY_NAMES,
        _ => TOKEN_NAMES,
    };
    random.pick::<&'static str>(names)
}

/// Returns the harmless word that `code` stands for in a template, or the code if it stands for nothing.
pub fn word(code: &str, random: &mut Random) -> String {
    match code {
        "user" => (*random.pick(USERS)).to_owned(),
        "host" => (*random.pick(HOSTS)).to_owned(),
        "noun" => (*random.pick(NOUNS)).to_owned(),
        "email" => format!("{}@example.org", random.pick(USERS)),
        "uuid" => values::uuid(random),
        "sha" => values::hash(40, random),
        "sha256" => values::hash(64, random),
        "short" => values::hash(7, random),
        "n" => (random.below(90) + 2).to_string(),
        "big" => (random.below(900_000) + 1000).to_string(),
        "port" => (random.below(60_000) + 1024).to_string(),
        "ip" => format!("10.{}.{}.{}", random.below(255), random.below(255), random.below(254) + 1),
        "ver" => format!("{}.{}.{}", random.below(9), random.below(30), random.below(20)),
        "date" => format!("2026-{:02}-{:02}", random.below(12) + 1, random.below(28) + 1),
        "time" => format!("{:02}:{:02}:{:02}", random.below(24), random.below(60), random.below(60)),
        _ => code.to_owned(),
    }
}

/// Returns what people write in the place of a secret of the kind `kind`.
pub fn placeholder(kind: &str, random: &mut Random) -> String {
    let passwords =
        ["<password>", "********", "${DB_PASSWORD}", "your-password-here", "xxxxxxxxxxxx", "<your_password>"];
    let tokens = [
        "<token>",
        "YOUR_API_KEY",
        "${API_TOKEN}",
        "xxxxxxxxxxxxxxxxxxxxxxxx",
        "****************",
        "<your-key>",
    ];
    let keys =
        ["<private key>", "${PRIVATE_KEY}", "/etc/ssl/private/server.key", "-----BEGIN PRIVATE KEY-----..."];
    let phrases = ["<12 words>", "word1 word2 word3 word4", "${MNEMONIC}", "your twelve words go here"];
    match kind {
        "password" | "plain" | "human" | "phrasepass" => (*random.pick(&passwords)).to_owned(),
        "pem" | "ssh" | "pgp" | "age" => (*random.pick(&keys)).to_owned(),
        "phrase" => (*random.pick(&phrases)).to_owned(),
        _ => (*random.pick(&tokens)).to_owned(),
    }
}

/// Returns what people write in the place of a token of `vendor`.
pub fn vendor_placeholder(vendor: &Vendor, random: &mut Random) -> String {
    let (prefix, variable) = (vendor.prefix(), vendor.variable);
    match random.below(6) {
        0 => format!("{prefix}xxxxxxxxxxxxxxxxxxxx"),
        1 => format!("{prefix}..."),
        2 => format!("<{variable}>"),
        3 => format!("${{{variable}}}"),
        4 => format!("{prefix}YOUR_TOKEN_HERE"),
        _ => format!("{prefix}****************"),
    }
}
