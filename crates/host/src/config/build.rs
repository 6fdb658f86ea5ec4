//! Which build of the program this is.

use std::sync::LazyLock;

/// Before the version in a program's file, without its first byte. The text as a whole stands in a program only once, so it
/// isn't found in the code that looks for it.
const MARK: &str = "iro program, version ";

/// The version as it stands in the file of this program.
#[used]
static STAMP: &str = concat!("Tiro program, version ", env!("CARGO_PKG_VERSION"), ";");

/// Returns the version, such as `0.1.0`.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the version, the commit and the builder, such as `0.1.0 (1a2b3c4d5e, release)`. The commit and the builder come
/// from the variables `TIRO_COMMIT` and `TIRO_BUILDER` of the build.
pub fn description() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let known = [option_env!("TIRO_COMMIT"), option_env!("TIRO_BUILDER")];
        let known: Vec<&str> = known.into_iter().flatten().collect();
        let how = if known.is_empty() { "built from source".to_owned() } else { known.join(", ") };
        format!("{} ({how})", version())
    });
    &TEXT
}

/// Returns the version of the program of Tiro whose file has the bytes `program`. Returns `None` if it isn't one, or if it is
/// older than 0.1.0.
pub fn version_of(program: &[u8]) -> Option<&str> {
    let stamps = program.windows(MARK.len() + 1).enumerate();
    let mut ends = stamps.filter(|(_, text)| text[0] == b'T' && text[1..] == *MARK.as_bytes());
    ends.find_map(|(start, _)| {
        let rest = &program[start + 1 + MARK.len()..];
        let version = &rest[..rest.iter().take(64).position(|byte| *byte == b';')?];
        let version = std::str::from_utf8(version).ok()?;
        version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
    })
}

/// Returns the numbers of a version in the order of releases.
pub fn ordered(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_programs_file() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(version_of(&program), Some(version()));
        assert_eq!(STAMP, format!("T{MARK}{};", version()));
        // Made when the test runs, so that its own file has no other versions.
        let stamped = |rest: &str| format!("\0T{MARK}{rest}").into_bytes();
        assert_eq!(version_of(&stamped("10.2.33;")), Some("10.2.33"));
        assert_eq!(version_of(&stamped(";")), None);
        assert_eq!(version_of(b"#!/bin/sh\nexec tiro"), None);
        assert!(ordered("0.10.0") > ordered("0.9.12"));
    }
}
