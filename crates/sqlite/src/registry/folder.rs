//! The names of the folders that contain the stores of projects.

use std::fs::DirEntry;
use std::path::Path;

use tiro_base::scope::ProjectId;

/// Returns the name of the folder of a project that is called `name`.
pub(crate) fn name(name: &str, id: &ProjectId) -> String {
    format!("{}-{}", slug(name), id.as_str())
}

/// Returns the ids of the projects that have a folder in `projects`, each with the name of its folder.
pub(crate) fn all(projects: &Path) -> Vec<(ProjectId, String)> {
    let entries = std::fs::read_dir(projects).into_iter().flatten().flatten();
    let named = |entry: DirEntry| {
        let folder = entry.file_name().into_string().ok()?;
        Some((ProjectId::parse(folder.rsplit_once('-')?.1)?, folder))
    };
    entries.filter_map(named).filter(|(_, folder)| projects.join(folder).join("tiro.db").is_file()).collect()
}

/// Returns `name` as part of a folder's name: at most 40 lower-case letters, digits and dashes.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "project".into() } else { slug.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_name_in_plain_letters() {
        assert_eq!(slug("My Project!"), "my-project");
        assert_eq!(slug("../..//etc"), "etc");
        assert_eq!(slug("日本語"), "project");
    }
}
