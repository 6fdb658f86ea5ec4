//! Tells whether a text names a file.

/// A name of a file of fewer bytes than this is known only with its folder, if many files have it or its stem is short.
/// Arbitrary.
pub const SHORT_NAME: usize = 14;

/// A stem of fewer bytes than this is short. Arbitrary.
const SHORT_STEM: usize = 6;

/// Stems that files of many folders have.
const COMMON: [&str; 25] = [
    "__init__",
    "actions",
    "client",
    "common",
    "config",
    "constants",
    "context",
    "global",
    "globals",
    "handler",
    "handlers",
    "helper",
    "helpers",
    "layout",
    "loading",
    "models",
    "package",
    "readme",
    "routes",
    "schema",
    "server",
    "service",
    "styles",
    "utils",
    "index",
];

/// Returns the end of a path by which a text names the file: its name, or for a short name also that of the folder. Returns
/// `None` for a short name without a folder.
pub fn name(path: &str) -> Option<&str> {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at + 1);
    let file = slashes.next();
    let own = &path[file.unwrap_or(0)..];
    let stem = own.split('.').next().unwrap_or(own).to_lowercase();
    if own.len() >= SHORT_NAME || stem.len() >= SHORT_STEM && !COMMON.contains(&stem.as_str()) {
        return Some(own);
    }
    file.map(|_| &path[slashes.next().unwrap_or(0)..])
}

/// Returns whether a text has such a [`name`], but not as a part of a longer one.
pub fn names_it(text: &str, name: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "_-".contains(c);
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(goes_on) && !before.ends_with('.') && !after.starts_with(goes_on)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_name_or_with_its_folder() {
        let path = "src/api/chat/route.ts";
        assert_eq!((name(path), name("a.rs")), (Some("chat/route.ts"), None));
        assert_eq!(
            (name("docs/swagger.yaml"), name("src/server.js")),
            (Some("swagger.yaml"), Some("src/server.js"))
        );
        assert_eq!(name("src/pump_controller.rs"), Some("pump_controller.rs"));
        let text = "I write `src/pump_controller.rs`, not my_pump_controller.rs";
        assert!(names_it(text, "pump_controller.rs") && !names_it(&text[32..], "pump_controller.rs"));
    }
}
