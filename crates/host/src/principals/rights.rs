//! What a principal sees and may change: the projects that are shared with the principal's teams.

use super::Principal;
use tiro_base::error::Result;
use tiro_base::memory::Kind;
use tiro_base::scope::ProjectId;
use tiro_store::{ProjectRights, Registry, Rights};

/// Returns the projects that are shared with the principal's teams, by name, with the principal's rights there. A
/// principal whose key allows only reading may write to none of them.
pub async fn projects(registry: &dyn Registry, principal: &Principal) -> Result<Vec<ProjectRights>> {
    let mut projects = registry.rights(principal.author.as_str()).await?;
    for project in &mut projects {
        project.rights.may_write &= principal.access >= super::Access::Write;
    }
    Ok(projects)
}

/// Returns the principal's rights in the project; `None` if it is not shared with any of the principal's teams. Then the
/// principal sees only what the principal saved there.
pub async fn rights(
    registry: &dyn Registry,
    principal: &Principal,
    project: &ProjectId,
) -> Result<Option<Rights>> {
    let projects = projects(registry, principal).await?;
    Ok(projects.into_iter().find(|row| row.project == *project).map(|row| row.rights))
}

/// Returns the project called `which`, an id or a name, if it is shared with one of the principal's teams. Projects that
/// are not shared with them are unknown, whatever they are called. Of several with the name, none is meant.
pub async fn project(
    registry: &dyn Registry,
    principal: &Principal,
    which: &str,
) -> Result<Option<ProjectRights>> {
    let mut projects = projects(registry, principal).await?;
    if let Some(place) = projects.iter().position(|row| row.project.as_str() == which) {
        return Ok(Some(projects.swap_remove(place)));
    }
    projects.retain(|row| row.name == which);
    Ok(if projects.len() == 1 { projects.pop() } else { None })
}

/// Returns the kinds that are shared in the project; `None` if the project is not shared with any team.
pub async fn shared_kinds(registry: &dyn Registry, project: &ProjectId) -> Result<Option<Vec<Kind>>> {
    let shares = registry.shares().await?;
    Ok(shares.into_iter().find(|row| row.project == *project).map(|row| row.kinds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principals::Access;
    use tiro_base::scope::{AuthorId, TenantId};
    use tiro_sqlite::SqliteRegistry;
    use tiro_store::{ShareRow, TeamChange};

    fn principal(access: Access) -> Principal {
        Principal { author: AuthorId::new("ana"), access }
    }

    #[tokio::test]
    async fn a_project_is_known_by_its_name_only_to_those_with_whom_it_is_shared() {
        let registry = SqliteRegistry::blank(&TenantId::new("team"), "rights").unwrap();
        let [shared, twin, other] = [1, 2, 3].map(|number| ProjectId::from_random([number; 8]));
        let registry: &dyn Registry = &registry;
        for (id, name) in [(&shared, "maple"), (&twin, "maple"), (&other, "willow")] {
            registry.record(id, name, id.as_str(), 1).await.unwrap();
        }
        for change in [
            TeamChange::Create { team: "core".into(), now: 1 },
            TeamChange::Add { team: "core".into(), user: "ana".into() },
        ] {
            assert!(registry.change_teams(change).await.unwrap());
        }
        let share = |project: &ProjectId| ShareRow {
            project: project.clone(),
            team: "core".into(),
            may_write: true,
            kinds: vec![Kind::Decision],
        };
        assert!(registry.share(share(&shared)).await.unwrap());
        let ana = principal(Access::Write);
        let found = async |which: &str| {
            let found = project(registry, &ana, which).await.unwrap();
            found.map(|row| row.project)
        };
        // Another project of this name is not shared, so there is no doubt which is meant.
        assert_eq!(found("maple").await, Some(shared.clone()));
        assert_eq!(found(shared.as_str()).await, Some(shared.clone()));
        for unknown in ["willow", twin.as_str(), other.as_str(), ""] {
            assert_eq!(found(unknown).await, None, "{unknown}");
        }
        let may_write = async |access| {
            let rights = rights(registry, &principal(access), &shared).await.unwrap();
            rights.map(|rights| rights.may_write)
        };
        assert_eq!(may_write(Access::Write).await, Some(true));
        assert_eq!(may_write(Access::Read).await, Some(false));
        assert_eq!(rights(registry, &ana, &twin).await.unwrap(), None);
        assert_eq!(shared_kinds(registry, &shared).await.unwrap(), Some(vec![Kind::Decision]));
        assert_eq!(shared_kinds(registry, &twin).await.unwrap(), None);
        assert!(registry.share(share(&twin)).await.unwrap());
        assert_eq!(found("maple").await, None, "two have this name");
    }
}
