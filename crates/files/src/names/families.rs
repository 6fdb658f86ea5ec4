//! The words and names by which [`secret`](super::secret) recognises families of files that contain secrets. All are in
//! lower case. The tables are long, so they have several entries in a line.

/// Names of files that are refused, with or without a dot in front. Most of them are files in which a program stores
/// its credentials.
#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "accesskeys.csv", "admin.conf", "azureprofile.json", "boto", "consolehost_history.txt", "cookies.txt",
    "databrickscfg", "dev.vars", "docker-config.json", "dockercfg", "dockerconfigjson", "esmtprc",
    "fetchmailrc", "fish_history", "flaskenv", "ftpconfig", "git-credentials", "histfile", "kaggle.json",
    "key4.db", "lesshst", "local.settings.json", "logins.json", "msal_token_cache.json", "msmtprc", "my.cnf",
    "mylogin.cnf", "netrc", "ngrok.yml", "npmrc", "oauth_creds.json", "pgpass", "pgpass.conf", "pip.conf",
    "prod.vars", "pubring.gpg", "pypirc", "rclone.conf", "rootkey.csv", "s3cfg", "seed.txt",
    "settings-security.xml", "sftp-config.json", "sitemanager.xml", "terraform.rc", "terraformrc",
    "trustdb.gpg", "unattend.xml", "viminfo", "wallet.dat", "winscp.ini", "wp-config.php", "zhistory",
];

/// Pairs of a folder's name and the name of a file that is refused in such a folder. If the folder's name is empty, the
/// file is refused only at the root.
#[rustfmt::skip]
pub(super) const IN_FOLDERS: &[(&str, &str)] = &[
    (".claude", ".credentials.json"), (".codex", "auth.json"), (".composer", "auth.json"), (".config", "hub"),
    (".docker", "config.json"), (".gradle", "gradle.properties"), (".m2", "settings.xml"), (".oci", "config"),
    ("", "auth.json"), ("composer", "auth.json"), ("containers", "auth.json"), ("gh", "hosts.yml"),
    ("glab-cli", "config.yml"), ("opencode", "auth.json"),
];

/// Extensions of files with keys or passwords. Anything may follow the extension.
#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "1pif", "1pux", "agilekeychain", "bks", "htpasswd", "jks", "kbx", "kdb", "kdbx", "key", "keychain",
    "keychain-db", "keystore", "keytab", "opvault", "ovpn", "p12", "p8", "pem", "pfx", "pk8", "pkcs12", "pkcs8",
    "ppk", "psafe3", "publishsettings", "secret", "snk", "tfstate", "tfvars", "truststore",
];

/// The algorithms after which programs name private keys.
#[rustfmt::skip]
pub(super) const ALGORITHMS: &[&str] = &[
    "dsa", "ecdsa", "ed25519", "rsa",
];

/// Words that may follow `id_` in names of lists and programs, which are not keys.
#[rustfmt::skip]
pub(super) const NO_KEYS: &[&str] = &[
    "generator", "index", "list", "map", "mapping", "mappings", "table", "test", "tests", "utils",
];

/// Endings that backups add to a name.
#[rustfmt::skip]
pub(super) const BACKUPS: &[&str] = &[
    "~", " copy", ".backup", ".bak", ".copy", ".old", ".orig", ".save", ".swo", ".swp",
];

/// Words in the names of samples, which contain no secrets.
#[rustfmt::skip]
pub(super) const SAMPLES: &[&str] = &[
    "dist", "example", "examples", "sample", "samples", "template", "tmpl", "tpl",
];

/// Extensions of files that are not data: sources, documents, and packed files.
#[rustfmt::skip]
pub(super) const SOURCES: &[&str] = &[
    "adoc", "astro", "c", "cc", "cjs", "clj", "cpp", "cs", "css", "cts", "cxx", "dart", "elm", "erl", "ex",
    "exs", "fs", "go", "gz", "h", "hpp", "hrl", "hs", "html", "java", "jl", "js", "jsx", "kt", "kts", "less",
    "lua", "m", "md", "mdx", "mjs", "mk", "ml", "mli", "mm", "mts", "nim", "php", "pl", "pm", "po", "proto",
    "pub", "py", "pyi", "r", "rb", "rs", "rst", "sass", "scala", "scss", "snap", "sol", "svelte", "svg",
    "swift", "tex", "ts", "tsx", "v", "vb", "vue", "zig",
];

/// Extensions of data files. In the name of a data file, a word such as `passwords` says what the file contains.
#[rustfmt::skip]
pub(super) const DATA: &[&str] = &[
    "asc", "cfg", "cnf", "conf", "config", "csv", "der", "enc", "env", "gpg", "ini", "json", "plist",
    "properties", "psv", "toml", "tsv", "txt", "xlsx", "xml", "yaml", "yml",
];

/// Extensions of lists of environment variables besides `.env`.
#[rustfmt::skip]
pub(super) const VARIABLES: &[&str] = &[
    "conf", "json", "properties", "txt",
];

/// Words that say that a data file contains secrets.
#[rustfmt::skip]
pub(super) const WORDS: &[&str] = &[
    "1password", "accesskey", "accesstoken", "adminsdk", "apikey", "apikeys", "authtoken", "bitwarden",
    "credential", "credentials", "creds", "dashlane", "keepass", "kubeconfig", "lastpass", "mnemonic",
    "nordpass", "passphrase", "passphrases", "passwd", "password", "passwords", "privatekey", "secret",
    "secretkey", "secrets", "serviceaccount",
];

/// Pairs of successive words that say that a data file contains secrets.
#[rustfmt::skip]
pub(super) const PAIRS: &[(&str, &str)] = &[
    ("access", "key"), ("access", "token"), ("age", "key"), ("api", "key"), ("api", "token"), ("auth", "token"),
    ("backup", "codes"), ("deploy", "key"), ("gcp", "key"), ("host", "key"), ("kube", "config"),
    ("private", "asc"), ("private", "key"), ("proton", "pass"), ("recovery", "codes"), ("refresh", "token"),
    ("secret", "key"), ("seed", "phrase"), ("service", "account"), ("ssh", "key"), ("vault", "pass"),
];

/// Words of descriptions and rules for secrets.
#[rustfmt::skip]
pub(super) const ABOUT: &[&str] = &[
    "external", "form", "openapi", "policy", "reset", "rotation", "rules", "scanning", "schema", "strength",
    "validation",
];

/// Folders of translations and of templates.
#[rustfmt::skip]
pub(super) const TEXTS: &[&str] = &[
    "i18n", "l10n", "lang", "langs", "locale", "locales", "messages", "schemas", "templates", "translations",
];

/// If one of these is the whole name of a file, the file contains secrets. The names have no extension and no leading
/// dot.
#[rustfmt::skip]
pub(super) const BARE: &[&str] = &[
    "apikey", "credentials", "creds", "htpasswd", "passphrase", "password", "passwords", "secret", "secrets",
    "token",
];
