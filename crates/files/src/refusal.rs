//! The reasons why a file is not read, each with one sentence.

use std::fmt;
use std::io::{self, ErrorKind};

use super::budget::Exhausted;
use super::documents::{Fault, Kind};
use tiro_base::humanize::bytes;

/// The reason why a file is not read. `Display` completes a sentence that begins with the path: "`a.txt` does not
/// exist". No message quotes the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// Nothing has this path.
    Missing,
    /// The path begins with `~`, which only a shell replaces.
    Tilde,
    /// The name is not valid UTF-8, has control characters, or is empty.
    Name,
    /// The path leads to a place outside of all roots.
    Outside,
    /// The name says that the file holds passwords or keys.
    Secret,
    /// Another name of the same file says that it holds passwords or keys.
    SecretLink,
    /// A part of the file's path is or contains a secret.
    SecretName,
    /// The file is part of git's own data.
    Git,
    /// The file is part of Tiro's own data.
    Own,
    /// The path leads to a pipe, a device or a socket.
    Special,
    /// The path leads to a folder, but a file was expected.
    Folder,
    /// A link leads back to itself.
    Loop,
    /// A link in a folder leads to another folder.
    LinkToFolder,
    /// The entry was a file or a folder when it was found, but a link when it was opened.
    Replaced,
    /// The operating system refuses to read the file.
    Unreadable(ErrorKind),
    /// The file has more than this many bytes.
    TooLarge(u64),
    /// The file is not text.
    Binary,
    /// The file may be text, but its encoding is not clear.
    Encoding,
    /// The file changed each time that it was read.
    Changing,
    /// The file's folder is this many levels below the folder that the call names.
    TooDeep(usize),
    /// A rule in a file with this name ignores the path.
    Ignored(&'static str),
    /// The path is a folder with a name that tools use for installed or built files.
    Built,
    /// The path is a file of rules that can't be read.
    NoRules,
    /// The file is not an image of a kind that models accept.
    NoImage,
    /// The file is a document whose text could not be extracted.
    Document(Kind, Fault),
    /// The file is a document, and the budget of the call is used up.
    Budget(Exhausted),
}

impl Refusal {
    /// Returns what to try next, if there is something.
    pub fn way_out(self) -> Option<&'static str> {
        match self {
            Refusal::Missing => Some("paths are relative to the project's root, or absolute"),
            Refusal::Tilde => Some("write the whole path, or a path relative to the project's root"),
            Refusal::Outside => Some("copy it into the project, or allow its folder with `files.roots`"),
            Refusal::Secret | Refusal::SecretLink => Some(
                "copy what may be shown into a file with another name; the user may allow the file with the option `files.secrets`",
            ),
            Refusal::SecretName => Some("rename it"),
            Refusal::Folder => Some("name a file in it"),
            Refusal::LinkToFolder | Refusal::TooDeep(_) => Some("name the folder itself"),
            Refusal::TooLarge(_) => Some("name a smaller file, or copy the part that matters"),
            Refusal::Encoding => Some("convert it to UTF-8"),
            Refusal::Changing => Some("try again when no program writes to it"),
            Refusal::Built => {
                Some("name the folder itself, or take it back in `.tiroignore`, as in `!dist/`")
            }
            Refusal::Ignored(_) => Some("name the file itself, and it is read"),
            Refusal::Document(..) => Some("convert it to plain text"),
            Refusal::Budget(exhausted) => exhausted.way_out(),
            _ => None,
        }
    }

    /// Returns the refusal for an error of the operating system.
    pub(super) fn of(error: &io::Error) -> Refusal {
        #[cfg(unix)]
        if let Some(code) = error.raw_os_error() {
            use rustix::io::Errno;
            match Errno::from_raw_os_error(code) {
                Errno::LOOP => return Refusal::Loop,
                // This is the error for a socket, or for a device without a driver.
                Errno::NXIO | Errno::NODEV => return Refusal::Special,
                Errno::NAMETOOLONG => return Refusal::Missing,
                _ => {}
            }
        }
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Refusal::Missing,
            ErrorKind::InvalidInput => Refusal::Name,
            kind => Refusal::Unreadable(kind),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Missing => "does not exist",
            Refusal::Tilde => "begins with `~`, which is not replaced by a home directory",
            Refusal::Name => "has a name with control characters, or one that is not valid UTF-8",
            Refusal::Outside => "leads out of the project",
            Refusal::Secret => "is not read, because its name says that it holds secrets",
            Refusal::SecretLink => {
                "is not read, because another name of the same file says that it holds secrets"
            }
            Refusal::SecretName => "has a secret in its name",
            Refusal::Git => "is part of git's own data",
            Refusal::Own => "is part of Tiro's own data",
            Refusal::Special => "is a pipe, a device or a socket",
            Refusal::Folder => "is a folder instead of a file",
            Refusal::Loop => "is a link that leads back to itself",
            Refusal::LinkToFolder => "is a link to a folder, which is not followed within a folder",
            Refusal::Replaced => "was replaced by a link or a folder while it was read",
            Refusal::Unreadable(ErrorKind::PermissionDenied) => "may not be read by this user",
            Refusal::Unreadable(kind) => return write!(f, "cannot be read: {kind}"),
            Refusal::TooLarge(most) => return write!(f, "is larger than {}", bytes(*most)),
            Refusal::Binary => "is not text",
            Refusal::Encoding => "is not in UTF-8, and its encoding could not be recognised",
            Refusal::Changing => "changes while it is read",
            Refusal::TooDeep(most) => {
                return write!(f, "is more than {most} folders beneath the named folder");
            }
            Refusal::Ignored(rules) => return write!(f, "is ignored by {rules}"),
            Refusal::Built => "is left out, because its name says that tools installed or built it",
            Refusal::NoRules => "cannot be read, so its rules do not apply",
            Refusal::NoImage => "is not an image in PNG, JPEG, GIF or WebP format",
            Refusal::Document(kind, fault) => return write!(f, "is {} {fault}", kind.with_article()),
            Refusal::Budget(exhausted) => return write!(f, "was not read, because {exhausted}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_completes_a_sentence() {
        for (refusal, sentence) in [
            (Refusal::Missing, "does not exist"),
            (Refusal::Special, "is a pipe, a device or a socket"),
            (Refusal::TooLarge(1_000_000), "is larger than 1 MB"),
            (Refusal::Unreadable(ErrorKind::PermissionDenied), "may not be read by this user"),
            (Refusal::Ignored(".gitignore"), "is ignored by .gitignore"),
            (
                Refusal::Document(Kind::Pdf, Fault::TimedOut),
                "is a PDF document whose text could not be extracted within 20 s",
            ),
            (Refusal::Document(Kind::Xlsx, Fault::Encrypted), "is an Excel workbook that is encrypted"),
        ] {
            assert_eq!(refusal.to_string(), sentence);
        }
    }
}
