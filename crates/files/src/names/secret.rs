//! Recognises file names that say that a file contains secrets, by families of such names.
//!
//! A name is compared in lower case and without the endings of backups. The name is divided into words at `.`, `-`, `_`
//! and spaces, and before capital letters. Source files, such as `src/env.rs` or `passwords.py`, and samples, such as
//! `.env.example`, are in no family.

use std::path::Path;

use super::families::{
    ABOUT, ALGORITHMS, BACKUPS, BARE, DATA, IN_FOLDERS, KEYS, NAMES, NO_KEYS, PAIRS, SAMPLES, SOURCES, TEXTS,
    VARIABLES, WORDS,
};

/// Returns whether the file at `path`, which is relative to a root, contains secrets according to its name.
pub(super) fn is_secret(path: &Path) -> bool {
    let written =
        |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let (name, folder) = (written(path), path.parent().map(written).unwrap_or_default().to_lowercase());
    let lower = name.to_lowercase();
    let file = without_backup(&lower);
    if NAMES.contains(&file.trim_start_matches('.')) || IN_FOLDERS.contains(&(folder.as_str(), file)) {
        return true;
    }
    let extension =
        file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    if extension.is_some_and(|extension| SOURCES.contains(&extension) || SAMPLES.contains(&extension)) {
        return false;
    }
    let words = words(without_backup(&name));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if is_key(file, extension, &words) {
        return true;
    }
    if has(SAMPLES) {
        return false;
    }
    let is_text =
        has(ABOUT) || path.iter().any(|part| part.to_str().is_some_and(|part| TEXTS.contains(&part)));
    is_environment(file, extension) || is_history(file) || (!is_text && says_secret(file, extension, &words))
}

/// Removes the additions of programs and people to the name of a backup.
fn without_backup(name: &str) -> &str {
    let mut name = name.trim_matches('#').trim_start_matches(".#");
    loop {
        let shorter = BACKUPS.iter().fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
        let shorter = match shorter.rsplit_once([' ', '.']) {
            Some((stem, end))
                if end.bytes().any(|b| b.is_ascii_digit())
                    && end.bytes().all(|b| b"0123456789()".contains(&b)) =>
            {
                stem
            }
            _ => shorter,
        };
        if shorter == name || shorter.is_empty() {
            return name;
        }
        name = shorter;
    }
}

/// Divides a name into its words, in lower case. A capital letter after a lower-case letter begins a word too.
fn words(name: &str) -> Vec<String> {
    let mut divided = String::new();
    let mut is_after_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && is_after_small {
            divided.push(' ');
        }
        is_after_small = letter.is_lowercase();
        divided.extend(letter.to_lowercase());
    }
    divided.split(['.', '-', '_', ' ', '(', ')']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns whether the name belongs to a key or a store of keys. Further words may be before or after the name of the
/// key. `cacert.pem` is no key: it has certificates of authorities, which everyone may read.
fn is_key(file: &str, extension: Option<&str>, words: &[&str]) -> bool {
    let is_named = |word: &&str| ALGORITHMS.contains(word);
    let mut parts = file.split('.');
    let stem = parts.next().unwrap_or_default();
    let ends_in_algorithm = stem.rsplit_once(['_', '-']).is_some_and(|(_, end)| is_named(&end));
    let is_bare_key = || match words.get(1) {
        Some(word) => is_named(word) || (extension.is_none() && word.len() > 2 && !NO_KEYS.contains(word)),
        None => false,
    };
    (parts.any(|part| KEYS.contains(&part)) && file != "cacert.pem")
        || (ends_in_algorithm && is_data(extension))
        || file.starts_with("secring")
        || file.starts_with("ssh_host_")
        || file.starts_with("krb5cc_")
        || file.starts_with("utc--")
        || (file.starts_with("id_") && is_bare_key())
}

/// Returns whether the name belongs to a file of environment variables.
fn is_environment(file: &str, extension: Option<&str>) -> bool {
    let may_end = extension.is_some_and(|extension| VARIABLES.contains(&extension));
    let ends_in_env = |part: &str| may_end && (part.ends_with("-env") || part.ends_with("_env"));
    let is_last = |part: &str| part == "env" || part == "envrc" || ends_in_env(part);
    let begins = [".env_", ".env-", ".env "].iter().any(|begin| file.starts_with(begin));
    let mut parts: Vec<&str> = file.split('.').collect();
    // `env` without a dot, or a word that ends in `env`, is the name of a program or a folder.
    let is_bare = parts.len() == 1;
    parts.retain(|part| !part.is_empty());
    begins || (!is_bare && parts.into_iter().any(is_last))
}

/// Returns whether the name belongs to a file in which a shell or another program records commands.
fn is_history(file: &str) -> bool {
    let program = file.strip_suffix("_history").or_else(|| file.strip_suffix("-history"));
    program.is_some_and(|program| {
        program.starts_with('.')
            || ["bash", "mysql", "psql", "python", "sh", "sqlite", "zsh"].contains(&program)
    })
}

/// Returns whether the name of a data file, or of a file without an extension, says that it contains secrets.
fn says_secret(file: &str, extension: Option<&str>, words: &[&str]) -> bool {
    let bare = file.trim_start_matches('.');
    let singular = |word: &'_ str| {
        word.strip_suffix('s').filter(|_| word != "codes" && word != "pass").unwrap_or(word).to_owned()
    };
    let is_pair =
        |pair: &[&str]| PAIRS.iter().any(|named| named.0 == pair[0] && named.1 == singular(pair[1]));
    let has_pair = words.windows(2).any(is_pair);
    if ["kubeconfig", "vault_pass", "vault-pass"].iter().any(|begin| bare.starts_with(begin))
        || words.contains(&"kubeconfig")
    {
        return true;
    }
    if extension.is_none() {
        let is_last = words.len() <= 3
            && words.last().is_some_and(|word| ["credentials", "creds", "token"].contains(word));
        return is_last || (has_pair && words.len() <= 4) || BARE.contains(&bare);
    }
    if !is_data(extension) {
        return false;
    }
    let is_token = words.len() > 1 && words[words.len() - 2] == "token";
    is_token || has_pair || words.iter().any(|word| WORDS.contains(word))
}

/// Returns whether a file with this extension is a data file. A file without an extension counts as a data file.
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
            "dev-env.json",
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
    fn lists_are_lower_case() {
        for list in [NAMES, KEYS, ALGORITHMS, SAMPLES, SOURCES, DATA, BARE] {
            assert!(list.iter().all(|name| **name == name.to_lowercase()));
        }
    }
}
