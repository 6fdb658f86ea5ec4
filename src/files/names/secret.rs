//! Families of file names that say that a file holds secrets.
//!
//! A name is compared in lower case and without the endings of backups. It is divided into words at `.`, `-`, `_` and
//! spaces. A file of sources, such as `src/env.rs` or `passwords.py`, is in no family, except for keys; nor is a sample,
//! such as `.env.example`.

use std::path::Path;

/// Names that are refused as they are. Most are of files in which a program keeps what it signs in with.
const NAMES: &[&str] = &[
    ".boto",
    ".dockercfg",
    ".fetchmailrc",
    ".git-credentials",
    ".histfile",
    ".lesshst",
    ".msmtprc",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".rclone.conf",
    ".s3cfg",
    ".terraformrc",
    ".viminfo",
    ".zhistory",
    "_netrc",
    "accesskeys.csv",
    "consolehost_history.txt",
    "cookies.txt",
    "fish_history",
    "kubeconfig",
    "key4.db",
    "logins.json",
    "oauth_creds.json",
    "pgpass.conf",
    "pubring.gpg",
    "rclone.conf",
    "rootkey.csv",
    "settings-security.xml",
    "terraform.rc",
    "trustdb.gpg",
    "wallet.dat",
    "wp-config.php",
];

/// Names that are refused in a folder of this name; with an empty one, in no folder.
const IN_FOLDERS: &[(&str, &str)] = &[
    (".claude", ".credentials.json"),
    (".codex", "auth.json"),
    (".composer", "auth.json"),
    (".docker", "config.json"),
    (".gradle", "gradle.properties"),
    (".m2", "settings.xml"),
    (".oci", "config"),
    ("", "auth.json"),
    ("containers", "auth.json"),
    ("gh", "hosts.yml"),
    ("glab-cli", "config.yml"),
    ("opencode", "auth.json"),
];

/// Extensions of keys and of stores of keys and passwords, with anything after them.
const KEYS: &[&str] = &[
    "1pif",
    "1pux",
    "agilekeychain",
    "asc-key",
    "bks",
    "jks",
    "kbx",
    "kdb",
    "kdbx",
    "key",
    "keychain",
    "keychain-db",
    "keystore",
    "keytab",
    "opvault",
    "ovpn",
    "p12",
    "p8",
    "pem",
    "pfx",
    "pk8",
    "pkcs12",
    "pkcs8",
    "ppk",
    "psafe3",
    "publishsettings",
    "snk",
    "tfstate",
    "tfvars",
    "truststore",
];

/// The algorithms after which programs name private keys.
const ALGORITHMS: &[&str] = &["dsa", "ecdsa", "ed25519", "rsa"];

/// Endings that backups add to a name.
const BACKUPS: &[&str] = &["~", ".backup", ".bak", ".copy", ".old", ".orig", ".save", ".swo", ".swp"];

/// Words of a sample, which has no secrets.
const SAMPLES: &[&str] = &["dist", "example", "examples", "sample", "template", "tmpl", "tpl"];

/// Extensions of texts that are not data: sources and documents.
const SOURCES: &[&str] = &[
    "adoc", "astro", "c", "cc", "clj", "cpp", "cs", "css", "cts", "cxx", "dart", "elm", "erl", "ex", "exs",
    "fs", "go", "h", "hpp", "hrl", "hs", "html", "java", "jl", "js", "jsx", "kt", "kts", "less", "lua", "m",
    "md", "mdx", "ml", "mli", "mm", "mts", "nim", "php", "pl", "pm", "po", "proto", "pub", "py", "pyi", "r",
    "rb", "rs", "rst", "sass", "scala", "scss", "snap", "sol", "svelte", "svg", "swift", "tex", "ts", "tsx",
    "v", "vb", "vue", "zig",
];

/// Extensions of data, in which a word such as `passwords` says what it holds.
const DATA: &[&str] = &[
    "cfg",
    "cnf",
    "conf",
    "config",
    "csv",
    "enc",
    "env",
    "ini",
    "json",
    "plist",
    "properties",
    "psv",
    "toml",
    "tsv",
    "txt",
    "xlsx",
    "xml",
    "yaml",
    "yml",
];

/// Extensions of scripts of shells.
const SHELLS: &[&str] = &["bash", "bat", "cmd", "fish", "ps1", "sh", "zsh"];

/// Words that say that a file of data holds secrets.
const WORDS: &[&str] = &[
    "apikey",
    "apikeys",
    "bitwarden",
    "credential",
    "credentials",
    "creds",
    "keepass",
    "lastpass",
    "mnemonic",
    "passphrase",
    "passphrases",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "1password",
];

/// Two words in a row that say the same.
const PAIRS: &[(&str, &str)] = &[
    ("access", "key"),
    ("access", "keys"),
    ("access", "token"),
    ("api", "key"),
    ("api", "keys"),
    ("api", "token"),
    ("auth", "token"),
    ("backup", "codes"),
    ("private", "key"),
    ("recovery", "codes"),
    ("refresh", "token"),
    ("seed", "phrase"),
    ("service", "account"),
    ("vault", "pass"),
];

/// Whole names, without a dot in front, that say the same without an extension.
const BARE: &[&str] = &[
    "access_token",
    "api_key",
    "apikey",
    "auth_token",
    "credentials",
    "creds",
    "htpasswd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "secring",
    "token",
    "vault-token",
    "vault_pass",
];

/// Returns whether the file at `path`, relative to a root, holds secrets by its name.
pub(super) fn is_secret(path: &Path) -> bool {
    let name =
        |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
    let (file, folder) = (name(path), path.parent().map(name).unwrap_or_default());
    let file = without_backup(&file);
    let words: Vec<&str> = file.split(['.', '-', '_', ' ']).filter(|word| !word.is_empty()).collect();
    let extension =
        file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    if words.iter().any(|word| SAMPLES.contains(word)) {
        return false;
    }
    let is_source = extension.is_some_and(|extension| SOURCES.contains(&extension));
    if NAMES.contains(&file) || IN_FOLDERS.contains(&(folder.as_str(), file)) {
        return true;
    }
    if is_source {
        return false;
    }
    is_key(file, extension, &words)
        || is_environment(file, extension)
        || is_history(file)
        || says_secret(file, extension, &words)
}

/// Removes what programs and people add to the name of a backup.
fn without_backup(name: &str) -> &str {
    let mut name = name.trim_matches('#').trim_start_matches(".#");
    loop {
        let shorter = BACKUPS.iter().fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
        let stem = shorter
            .rsplit_once('.')
            .filter(|(_, end)| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit()));
        let shorter = stem.map_or(shorter, |(stem, _)| stem);
        if shorter == name || shorter.is_empty() {
            return name;
        }
        name = shorter;
    }
}

/// Returns whether the name is that of a key, or of a store of keys, also with something before or after it.
fn is_key(file: &str, extension: Option<&str>, words: &[&str]) -> bool {
    let is_named = |word: &&str| ALGORITHMS.contains(word);
    let mut parts = file.split('.');
    let stem = parts.next().unwrap_or_default();
    let ends_in_algorithm = stem.rsplit_once(['_', '-']).is_some_and(|(_, end)| is_named(&end));
    parts.any(|part| KEYS.contains(&part))
        || (ends_in_algorithm && is_data(extension))
        || file.starts_with("secring")
        || (file.starts_with("id_") && (words.get(1).is_some_and(is_named) || !file.contains('.')))
}

/// Returns whether the name is that of a file of environment variables.
fn is_environment(file: &str, extension: Option<&str>) -> bool {
    let is_data = is_data(extension) || extension.is_some_and(|extension| SHELLS.contains(&extension));
    let ends_in_env = |part: &str| is_data && (part.ends_with("-env") || part.ends_with("_env"));
    let is_last = |part: &str| part == "env" || part == "envrc" || ends_in_env(part);
    let mut parts: Vec<&str> = file.split('.').collect();
    // `env` alone, and a word that ends in it, is the name of a program or a folder.
    let is_bare = parts.len() == 1;
    parts.retain(|part| !part.is_empty());
    !is_bare && parts.into_iter().any(is_last)
}

/// Returns whether the name is that of what a shell or another program keeps of its commands.
fn is_history(file: &str) -> bool {
    file.starts_with('.') && (file.ends_with("_history") || file.ends_with("-history"))
}

/// Returns whether a file of data, or one without an extension, says that it holds secrets.
fn says_secret(file: &str, extension: Option<&str>, words: &[&str]) -> bool {
    let bare = file.trim_start_matches('.');
    if extension.is_none() {
        let starts = ["htpasswd", "kubeconfig", "vault_pass", "vault-pass"]
            .iter()
            .any(|start| bare.starts_with(start));
        return starts || BARE.contains(&bare) || file.ends_with("kubeconfig");
    }
    if file.split('.').any(|part| part == "kubeconfig" || part.ends_with("-kubeconfig")) {
        return true;
    }
    if !is_data(extension) {
        return false;
    }
    let is_pair = |pair: &[&str]| PAIRS.contains(&(pair[0], pair[1]));
    let is_token = matches!(words, ["token" | "tokens", "txt" | "json"]) && bare != "tokens.json";
    is_token || words.iter().any(|word| WORDS.contains(word)) || words.windows(2).any(is_pair)
}

/// Returns whether a file with this extension holds data; also if it has none.
fn is_data(extension: Option<&str>) -> bool {
    extension.is_none_or(|extension| DATA.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_secrets_are_known_and_sources_and_samples_are_none() {
        for secret in [
            ".env",
            ".env.local",
            ".env.bak",
            ".env.production~",
            "prod.env",
            "config/app.env.json",
            "env.sh",
            "dev-env.yaml",
            "my_env.properties",
            ".envrc",
            "work.envrc",
            "#.env#",
            ".env.2",
            "id_rsa",
            "id_rsa.old",
            "id_work",
            "id_ed25519_sk",
            "deploy_rsa",
            "backup-ed25519",
            "server.pem",
            "tls.key.2024",
            "a.pem.txt",
            "b.key.bak",
            "secring.gpg",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "prod.tfvars",
            "prod.auto.tfvars.json",
            "kubeconfig",
            "kubeconfig.yaml",
            "prod-kubeconfig",
            "prod-kubeconfig.yml",
            ".docker/config.json",
            ".codex/auth.json",
            ".claude/.credentials.json",
            ".gh/../gh/hosts.yml",
            "auth.json",
            "service-account.json",
            "my_service_account_key.json",
            "client_secret_12.apps.json",
            "aws-credentials.csv",
            "credentials.toml",
            "application_default_credentials.json",
            "credentials.tfrc.json",
            ".m2/settings.xml",
            ".vault_pass",
            "vault_pass.txt",
            "vault-password",
            "ansible-vault-pass.txt",
            ".bash_history",
            ".zsh_history",
            ".python_history",
            ".psql_history",
            "fish_history",
            "bitwarden_export_2024.json",
            "export.1pux",
            "lastpass-export.csv",
            "passwords.csv",
            "my passwords.txt",
            "chrome passwords.csv",
            "password",
            "secrets.yaml",
            "prod-secrets.json",
            ".secrets",
            "app.secrets.toml",
            "token.json",
            "token.txt",
            ".token",
            "auth_token.txt",
            "api_key.txt",
            "api-keys.json",
            "recovery-codes.txt",
            "seed_phrase.txt",
            "wallet.dat",
            "vault.kdbx",
            "login.keychain-db",
            "logins.json",
            "cookies.txt",
            ".my.cnf",
            "wp-config.php",
            "wp-config.php.bak",
            "krb5.keytab",
            "client.ovpn",
        ] {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for plain in [
            "src/env.rs",
            "env.d.ts",
            "vite-env.d.ts",
            "pam_env.so",
            "build_env.cpython-311.pyc",
            "crypto_rsa.pyc",
            "on-env.stderr",
            "test_env.py",
            "environment.yml",
            "env",
            "bin/test-env",
            "passwords.py",
            "secrets_test.go",
            "token.ts",
            "tokens.json",
            "design-tokens.json",
            "Secret.java",
            "secret.md",
            "docs/api-key.md",
            ".env.example",
            ".env.local.sample",
            "env.template",
            "terraform.tfvars.example",
            ".env.dist",
            "id_rsa.pub",
            "id_map.json",
            "key",
            "keys.rs",
            "keyboard.json",
            "monkey.txt",
            "locales/en/auth.json",
            "src/auth.json5",
            "config.json",
            "settings.xml",
            "hosts.yml",
            "history.md",
            "change-password",
            "tokenizer.json",
            "token.rs",
            "token_count.txt",
            "password_reset.html",
            "secretary.json",
            "Cargo.lock",
            "Makefile",
            "access.log",
            "private.txt",
            "service.yaml",
            "account.json",
            "api.json",
            "recovery.md",
            "crates/secrets/Cargo.toml",
            "compass.json",
        ] {
            assert!(!is_secret(Path::new(plain)), "{plain}");
        }
    }

    #[test]
    fn lists_are_lower_case_and_sorted() {
        for list in [NAMES, KEYS, ALGORITHMS, SAMPLES, SOURCES, DATA, BARE] {
            assert!(list.iter().all(|name| **name == name.to_lowercase()));
        }
    }
}
