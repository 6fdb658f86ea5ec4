//! Decides whether a store answers a call with a scope.

use tiro_base::error::{Error, Result, quoted};
use tiro_base::scope::{ProjectId, Scope};

/// Checks that the store of `project` answers calls with this scope.
///
/// # Errors
///
/// [`NotFound`](tiro_base::error::Kind::NotFound) if the scope is of another project, and
/// [`BadInput`](tiro_base::error::Kind::BadInput) if the name of the tenant or the reader has a control character:
/// engines put such characters between names, so a name with one could stand for the private memories of somebody else.
pub fn admits(project: &ProjectId, scope: &Scope) -> Result<()> {
    if scope.project != *project {
        return Err(Error::not_found("the scope is of a project that the store doesn't hold"));
    }
    match [scope.tenant.as_str(), scope.reader.as_str()].iter().find(|name| name.contains(char::is_control)) {
        None => Ok(()),
        Some(name) => Err(Error::bad_input(format!("`{}` is no name of a user", quoted(name)))
            .hint("use a name without control characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::error::Kind;
    use tiro_base::scope::{AuthorId, TenantId};

    #[test]
    fn a_name_that_could_be_of_what_another_keeps_private_is_refused() {
        let [project, other] = [1, 2].map(|byte| ProjectId::from_random([byte; 8]));
        let own = Scope::own(TenantId::new("team"), project.clone());
        assert!(
            admits(&project, &own).is_ok() && admits(&project, &own.read_by(AuthorId::new("Ana M."))).is_ok()
        );
        assert_eq!(admits(&other, &own).unwrap_err().kind(), Kind::NotFound);
        let tenant = Scope { tenant: TenantId::new("team\u{1f}ana"), ..own.clone() };
        for scope in [tenant, own.read_by(AuthorId::new("\u{1f}ana")), own.read_by(AuthorId::new("\u{0}"))] {
            assert_eq!(admits(&project, &scope).unwrap_err().kind(), Kind::BadInput);
        }
    }
}
