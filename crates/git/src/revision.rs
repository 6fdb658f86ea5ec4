//! Finds the commit that a name such as `HEAD~2`, `main` or `v1.0` means.

use gix::bstr::ByteSlice;
use gix::objs::Kind as ObjectKind;

use super::commit;
use super::discover::refs;
use super::objects::{Fault, Handle};
use super::repository::Repository;
use super::sha::Sha;
use tiro_base::error::{Error, Kind, Result};

/// The largest tag that is read, in bytes.
const TAG_LIMIT: u64 = 1 << 20;

/// The maximum number of tags that lead from one to the next, and of steps to first parents in a name.
const STEPS: usize = 100_000;

/// Where git looks for a reference, in order ([gitrevisions](https://git-scm.com/docs/gitrevisions)).
const PLACES: [&str; 5] = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

impl Repository {
    /// Returns the commit that `name` means: `HEAD`, a branch, a tag, or a full id, which `~2`, `~` and `^` may follow
    /// to name ancestors along first parents. Returns `None` if there is no such commit.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if a reference can't be read.
    pub fn commit_called(&self, name: &str) -> Result<Option<Sha>> {
        let (base, mut back) = without_steps(name);
        let base = if base == "@" { "HEAD" } else { base };
        let mut objects = self.objects.handle();
        let mut found = None;
        if let Ok(sha) = base.parse::<Sha>() {
            found = Some(sha).filter(|sha| objects.contains(&sha.object_id()));
        } else {
            for place in PLACES {
                let name = format!("{place}{base}");
                let is_reference = name == "HEAD" || refs::is_name(&name);
                if is_reference && found.is_none() {
                    let named = refs::resolve(&self.location, &self.packed, &name);
                    found = named.map_err(|fault| {
                        Error::new(Kind::Git, format!("cannot read the reference `{name}`: {fault}"))
                    })?;
                }
            }
        }
        let mut at = found.and_then(|sha| peeled(&mut objects, sha));
        let mut buffer = Vec::new();
        while let Some(sha) = at.filter(|_| back > 0) {
            let parents = commit::parents(&mut objects, &sha, &mut buffer).unwrap_or_default();
            at = parents.first().copied();
            back -= 1;
        }
        Ok(at)
    }
}

/// Returns a name without `~2`, `~` and `^` at its end, and the number of steps that they mean.
fn without_steps(name: &str) -> (&str, usize) {
    let (mut name, mut steps) = (name, 0_usize);
    loop {
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let (shorter, count) = match digits.strip_suffix('~') {
            Some(shorter) => {
                (shorter, name[digits.len()..].parse().unwrap_or(if digits == name { 1 } else { STEPS }))
            }
            None => match name.strip_suffix('^') {
                Some(shorter) => (shorter, 1),
                None => return (name, steps.min(STEPS)),
            },
        };
        (name, steps) = (shorter, steps.saturating_add(count));
    }
}

/// Returns the commit to which a tag leads, or the commit itself.
fn peeled(objects: &mut Handle, mut sha: Sha) -> Option<Sha> {
    let mut buffer = Vec::new();
    for _ in 0..8 {
        match objects.read(&sha.object_id(), ObjectKind::Tag, TAG_LIMIT, &mut buffer) {
            Ok(()) => {}
            Err(Fault::Kind(ObjectKind::Commit)) => return Some(sha),
            Err(_) => return None,
        }
        let target = buffer.lines().find_map(|line| line.strip_prefix(b"object "))?;
        sha = target.to_str().ok()?.parse().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    #[test]
    fn a_commit_is_named_by_reference_id_and_steps() {
        let fixture = Fixture::new();
        let first = fixture.commit("a", "1\n", "first");
        let second = fixture.commit("a", "2\n", "second");
        fixture.git(&["tag", "-a", "v1", "-m", "a tag", &first.to_string()]);
        fixture.git(&["tag", "light", &first.to_string()]);
        fixture.git(&["branch", "other/side", &first.to_string()]);
        let repository = fixture.repository();
        let called = |name: &str| repository.commit_called(name).unwrap();
        for name in ["HEAD", "@", "main", "refs/heads/main", &second.to_string(), "heads/main", "HEAD~0"] {
            assert_eq!(called(name), Some(second), "{name}");
        }
        for name in ["HEAD~1", "HEAD~", "HEAD^", "@~", "v1", "light", "other/side", "tags/v1"] {
            assert_eq!(called(name), Some(first), "{name}");
        }
        let absent = "1".repeat(40);
        for name in
            ["HEAD~2", "HEAD~99999999999999999999", "gone", "", "../x", "HEAD^^^", &absent, "~", "v1^"]
        {
            assert_eq!(called(name), None, "{name}");
        }
        fixture.git(&["pack-refs", "--all"]);
        assert_eq!(fixture.repository().commit_called("v1").unwrap(), Some(first));
    }
}
