//! Draws conclusions from names: whether a file contains secrets, whether it is not text, and whether tools built the
//! content of a folder.
//!
//! A name is no proof, but it is known before a file is opened. In case of doubt, a file counts as secret, because a
//! text that was sent to another model can't be taken back. Names are compared in lower case, because some file systems
//! don't distinguish cases. If a file has several names (hard links), `linked.rs` looks for the other ones.

mod families;
mod secret;

use std::ffi::OsStr;
use std::path::{Component, Path};
use std::sync::LazyLock;

use super::refusal::Refusal;
use tiro_redact::Redactor;

/// Shorter names are not searched for secrets. Arbitrary: tokens are longer, and most names in a large folder are
/// shorter.
const SHORTEST_SECRET: usize = 12;

/// Folders whose content is refused.
const SECRET_FOLDERS: &[&str] = &[".aws", ".azure", ".gcloud", ".gnupg", ".kube", ".password-store", ".ssh"];

/// Folders with files that tools install, build or keep for themselves.
const BUILT_FOLDERS: &[&str] = &[
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".venv",
    "__pycache__",
    "bower_components",
    "node_modules",
];

/// Further names of such folders. Other projects give these names to folders with sources.
const MAYBE_BUILT_FOLDERS: &[&str] = &["build", "dist", "target", "venv"];

/// Extensions of files that are not text.
const BINARY_EXTENSIONS: &[&str] = &[
    "7z",
    "a",
    "avi",
    "avif",
    "bin",
    "bmp",
    "bz2",
    "class",
    "db",
    "dll",
    "doc",
    "dylib",
    "eot",
    "exe",
    "flac",
    "gif",
    "gz",
    "heic",
    "ico",
    "jar",
    "jpeg",
    "jpg",
    "lz4",
    "mkv",
    "mov",
    "mp3",
    "mp4",
    "npy",
    "npz",
    "o",
    "ogg",
    "onnx",
    "otf",
    "parquet",
    "pkl",
    "png",
    "ppt",
    "psd",
    "pyc",
    "rar",
    "rlib",
    "safetensors",
    "so",
    "sqlite",
    "sqlite3",
    "tar",
    "tgz",
    "tif",
    "tiff",
    "ttf",
    "wasm",
    "wav",
    "webm",
    "webp",
    "woff",
    "woff2",
    "xls",
    "xz",
    "zip",
    "zst",
];

/// Returns whether the name of a folder says that its content is secret.
pub(super) fn is_secret_folder(name: &OsStr) -> bool {
    check_folder_name(name) == Err(Refusal::Secret)
}

/// Returns whether the name of the folder `path` says that tools installed or built its content. If the project has
/// lists of ignored files, an ambiguous name is not enough.
pub(super) fn is_built(path: &Path, is_listed: bool) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    BUILT_FOLDERS.contains(&name) || (!is_listed && MAYBE_BUILT_FOLDERS.contains(&name))
}

/// Checks the path of a file, relative to a root.
///
/// # Errors
///
/// [`Refusal::Name`], [`Refusal::Git`], [`Refusal::Secret`] or [`Refusal::SecretName`], for the first component that is
/// refused.
pub(super) fn check_file(path: &Path) -> Result<(), Refusal> {
    check_folder(path)?;
    match secret::is_secret(path) {
        true => Err(Refusal::Secret),
        false => Ok(()),
    }
}

/// Checks the path of a folder, relative to a root; see [`check_file`].
pub(super) fn check_folder(path: &Path) -> Result<(), Refusal> {
    path.components().try_for_each(|component| match component {
        Component::Normal(name) => check_folder_name(name),
        _ => Ok(()),
    })
}

/// Checks the name of a folder; see [`check_file`].
pub(super) fn check_folder_name(name: &OsStr) -> Result<(), Refusal> {
    let lower = lower(name)?;
    match lower.as_str() {
        ".git" => Err(Refusal::Git),
        lower if SECRET_FOLDERS.contains(&lower) => Err(Refusal::Secret),
        _ if has_secret(&name.to_string_lossy()) => Err(Refusal::SecretName),
        _ => Ok(()),
    }
}

/// Checks that no name in `path` is or contains a secret.
pub(super) fn check_no_secret(path: &Path) -> Result<(), Refusal> {
    match path.components().any(|component| has_secret(&component.as_os_str().to_string_lossy())) {
        true => Err(Refusal::SecretName),
        false => Ok(()),
    }
}

/// Returns whether a name is or contains a secret, such as a token. Names can't be redacted like texts: they are shown,
/// sent and stored unchanged, because files are found again by their names.
fn has_secret(name: &str) -> bool {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::blank);
    name.len() >= SHORTEST_SECRET && !REDACTOR.redact(name).found.is_empty()
}

fn lower(name: &OsStr) -> Result<String, Refusal> {
    let name = name.to_str().filter(|name| !name.chars().any(char::is_control));
    name.map(str::to_lowercase).ok_or(Refusal::Name)
}

/// Returns whether the extension says that the file is not text.
pub(super) fn is_binary(name: &str) -> bool {
    has_extension(&name.to_lowercase(), BINARY_EXTENSIONS)
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in [
            ".env",
            ".ENV",
            "a/.env.local",
            ".env.production",
            ".env.resample",
            ".envrc",
            "id_rsa",
            "keys/id_ed25519",
            "server.pem",
            "Server.KEY",
            "a.p12",
            "a.pfx",
            ".netrc",
            ".npmrc",
            ".pypirc",
            "credentials",
            ".aws/config",
            ".ssh/known_hosts",
            ".ssh",
            "x/.gnupg/pubring.kbx",
        ] {
            assert_eq!(check_file(Path::new(secret)), Err(Refusal::Secret), "{secret}");
        }
        for git in [".git", ".git/config", "sub/.git/HEAD"] {
            assert_eq!(check_file(Path::new(git)), Err(Refusal::Git), "{git}");
        }
        for plain in [
            ".env.example",
            ".env.local.sample",
            ".env.template",
            "id_rsa.pub",
            ".gitignore",
            ".github/workflows/ci.yml",
            "credentials/mod.rs",
            "keys.rs",
            "key",
            "src/pem.rs",
        ] {
            assert_eq!(check_file(Path::new(plain)), Ok(()), "{plain}");
        }
        for odd in ["a\nb", "a/\u{1b}[2J/b"] {
            assert_eq!(check_file(Path::new(odd)), Err(Refusal::Name), "{odd:?}");
        }
    }

    #[test]
    fn a_folder_may_be_called_like_a_file_of_secrets() {
        assert_eq!(check_folder(Path::new("src/credentials")), Ok(()));
        for name in [
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.bin",
            "chunk-4f3aB9cD.js",
            "41799f8d-5af3-46fb-8473-94dff3a77ff6.jsonl",
            "password_reset_token_test.rs",
            "[id].tsx",
        ] {
            assert_eq!(
                check_folder(Path::new(name)),
                Ok(()),
                "a hash, an id and words are no secret: {name}"
            );
        }
        assert_eq!(check_file(Path::new("src/credentials")), Err(Refusal::Secret));
    }

    #[test]
    fn lists_are_lower_case() {
        let lists = [SECRET_FOLDERS, BINARY_EXTENSIONS];
        assert!(lists.concat().iter().all(|name| **name == name.to_lowercase()));
    }
}
