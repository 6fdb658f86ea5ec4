//! Makes the notes in a prompt. They list the files that can be searched, and the attachments of a call.

use std::collections::BTreeMap;

use tiro_base::envelope::one_line;
use tiro_base::humanize::thousands;
use tiro_base::thread::{Block, BlockText, ContentHash, Part};
use tiro_text::tokens;

/// The note for an assistant that has no file of the project.
pub const NO_FILES: &str = "[no files of the project were given to you so far; say which you need]\n";

/// The maximum number of files that a note names. The other files are counted by folder. Arbitrary.
const NAMED: usize = 60;

/// The maximum number of folders that a note names.
const FOLDERS: usize = 20;

/// Returns the block of a text that is not about a single file, with its tokens.
pub fn block(turn: u32, part: Part, text: String) -> Block {
    let tokens = u32::try_from(tokens::count(&text) + 2).unwrap_or(u32::MAX);
    let hash = ContentHash::of(text.as_bytes());
    Block { turn, part, path: None, tokens, text: BlockText::Blob(hash, Some(text)) }
}

/// Returns the note about the files that don't fit into the prompt. `files` are their paths with their tokens, in
/// order.
pub fn overflow(files: &[(&str, u32)]) -> String {
    if files.is_empty() {
        return "[no files have to be searched any more]\n".to_owned();
    }
    let named: Vec<(&str, String)> = files
        .iter()
        .map(|(path, tokens)| (*path, format!("{} tokens", thousands(u64::from(*tokens)))))
        .collect();
    listed("not shown because they don't fit; search them with search_session_attachments", &named)
}

/// Returns a note about files. It names the first files, each with a description, and counts the others by folder.
fn listed(about: &str, files: &[(&str, String)]) -> String {
    let mut note = format!("[{about}:");
    for (path, described) in files.iter().take(NAMED) {
        note += &format!("\n {} ({described})", one_line(path));
    }
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in files.iter().skip(NAMED) {
        *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    for (folder, count) in folders.iter().take(FOLDERS) {
        note += &format!("\n {count} more in {}/", one_line(folder));
    }
    let rest: usize = folders.values().skip(FOLDERS).sum();
    if rest > 0 {
        note += &format!("\n {rest} more in other folders");
    }
    note + "]\n"
}

/// Returns the note that some of the searched files have changed.
pub fn changed(paths: &[&str]) -> Option<String> {
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| one_line(path)).collect();
    let more = if paths.len() > NAMED { format!(" and {} more", paths.len() - NAMED) } else { String::new() };
    (!paths.is_empty())
        .then(|| format!("[changed since the last message, to be searched: {}{more}]\n", named.join(", ")))
}

/// Returns the note about attachments. Each has a description, such as "12 pages, 3,100 tokens".
pub fn attached(attachments: &[(String, String)]) -> Option<String> {
    let files: Vec<(&str, String)> =
        attachments.iter().map(|(name, about)| (name.as_str(), about.clone())).collect();
    let about = "attached to this message only; search them with search_session_attachments";
    (!files.is_empty()).then(|| listed(about, &files))
}

/// Returns the note about paths that the agent named but that can't be read, each with the reason.
pub fn missing(paths: &[(&str, String)]) -> Option<String> {
    (!paths.is_empty()).then(|| listed("named by the agent, but not available to you", paths))
}

/// Returns the note about images that are shown together with the message.
pub fn images(names: &[String]) -> Option<String> {
    let names: Vec<_> = names.iter().map(|name| one_line(name)).collect();
    (!names.is_empty()).then(|| format!("[images shown with this message only: {}]\n", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_about_a_large_folder_stays_short() {
        let files: Vec<(String, String)> =
            (0..20_000).map(|n| (format!("d{}/{n}.md", n % 30), "1 token".to_owned())).collect();
        let note = attached(&files).unwrap();
        assert_eq!(note.lines().count(), 1 + NAMED + FOLDERS + 1);
        assert!(note.ends_with("\n 6647 more in other folders]\n"), "{note}");
        assert_eq!(attached(&[]), None);
        let one = attached(&files[..1]).unwrap();
        assert_eq!(
            one,
            "[attached to this message only; search them with search_session_attachments:\n d0/0.md (1 token)]\n"
        );
    }
}
