//! Whose memories of a backup are read.

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::file::damage;
use crate::read::parts;
use tiro_base::memory::Memory;
use tiro_base::scope::{AuthorId, Scope, TenantId, Visibility};

/// Whose memories are read.
pub(super) struct Owners {
    /// The tenant, as named in the file.
    pub owner: String,
    /// The part that its author kept private.
    pub private: String,
    /// Whether memories have authors; those of older versions are all the tenant's.
    pub has_authors: bool,
    /// The tenant and the reader here. What the tenant of the backup said is the tenant's here too, and what is private
    /// in it is private to who restores it.
    here: [AuthorId; 2],
}

impl Owners {
    /// Gives a memory the author that it has here.
    pub fn settle(&self, memory: &mut Memory) {
        let [tenant, reader] = &self.here;
        if memory.visibility == Visibility::Private {
            memory.author = reader.clone();
        } else if memory.author.as_str() == self.owner {
            memory.author = tenant.clone();
        }
    }
}

/// Returns whose memories are read: those of the only tenant and of the only author who kept something private, or of
/// those whom the scope names. Then makes the connection show these, and nothing private of others.
pub(super) fn owners(connection: &Connection, scope: &Scope) -> Result<Owners> {
    read_owners(connection, scope).map_err(|error| match damage::is_reported(&error) {
        true => Error::bad_input("the backup is damaged: it doesn't say whose memories it has")
            .source(error)
            .hint("give another backup"),
        false => error,
    })
}

fn read_owners(connection: &Connection, scope: &Scope) -> Result<Owners> {
    let tenants =
        "SELECT DISTINCT substr(owner, 1, instr(owner || char(31), char(31)) - 1) FROM memories LIMIT 2";
    let tenants: Vec<String> =
        connection.prepare(tenants)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let owner = match &tenants[..] {
        [only] => only.clone(),
        _ => scope.tenant.as_str().to_owned(),
    };
    let authors = format!(
        "SELECT DISTINCT substr(owner, length(?1) + 2) FROM memories WHERE owner <> ?1 AND {} LIMIT 2",
        parts::of_tenant("owner", 1)
    );
    let authors: Vec<String> =
        connection.prepare(&authors)?.query_map([&owner], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let author = match &authors[..] {
        [only] => AuthorId::new(only),
        _ => scope.reader.clone(),
    };
    let has_authors = connection
        .prepare("SELECT 1 FROM pragma_table_info('memories') WHERE name = 'visibility'")?
        .exists([])?;
    let there = Scope { tenant: TenantId::new(&owner), ..scope.read_by(author) };
    // Without private parts there is nothing to hide, and a damaged mark of them keeps nobody from the backup.
    if has_authors && !authors.is_empty() {
        parts::show(connection, &there)?;
    }
    let here = [AuthorId::new(scope.tenant.as_str()), scope.reader.clone()];
    Ok(Owners { private: parts::private(&there), owner, has_authors, here })
}
