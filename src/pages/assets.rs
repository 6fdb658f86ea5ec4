//! The style, the script and the icon of the pages. They are part of the program, and their addresses contain a hash of
//! their content, so that a browser keeps them until another version of the program has others.

use std::sync::LazyLock;

/// A file of the pages.
pub struct Asset {
    /// Its address.
    pub path: String,
    /// The name of its version.
    pub tag: String,
    /// Its type.
    pub kind: &'static str,
    /// Its content.
    pub content: &'static str,
}

/// The style.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| asset("style", "css", "text/css; charset=utf-8", include_str!("assets/style.css")));

/// The script. It only searches as one types, and fetches parts of a page that take long; the pages work without it.
pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| asset("page", "js", "text/javascript; charset=utf-8", include_str!("assets/page.js")));

/// The icon.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| asset("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")));

fn asset(name: &str, ending: &str, kind: &'static str, content: &'static str) -> Asset {
    let hash = blake3::hash(content.as_bytes()).to_hex();
    let tag = format!("\"{}\"", &hash[..12]);
    Asset { path: format!("/{name}-{}.{ending}", &hash[..12]), tag, kind, content }
}

/// Returns the file at `path`.
pub fn at(path: &str) -> Option<&'static Asset> {
    [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_hash_alone() {
        assert_eq!(at(&SCRIPT.path).unwrap().content, SCRIPT.content);
        assert!(at("/page.js").is_none() && at("").is_none());
    }

    #[test]
    fn the_script_is_short_and_makes_no_html() {
        let script = SCRIPT.content;
        assert!(script.lines().count() <= 200);
        for forbidden in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
        {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
    }
}
