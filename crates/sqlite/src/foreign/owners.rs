//! Decides whose memories are read from a backup.

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::file::damage;
use crate::read::parts;
use tiro_base::memory::Memory;
use tiro_base::scope::{AuthorId, Scope, TenantId, Visibility};

/// The owner and the author whose memories are read.
pub(super) struct Owners {
    /// The tenant, as named in the file.
    pub owner: String,
    /// The name of the private part of the author whose private memories are read.
    pub private: String,
    /// Whether memories have authors. In files of older versions, all memories are of the tenant.
    pub has_authors: bool,
    /// The tenant and the reader of this store. Memories of the backup's tenant become memories of this tenant. Private
    /// memories become private to the reader, who restores them.
    here: [AuthorId; 2],
}

impl Owners {
    /// Sets the author that a memory gets in this store.
    pub fn settle(&self, memory: &mut Memory) {
        let [tenant, reader] = &self.here;
        if memory.visibility == Visibility::Private {
            memory.author = reader.clone();
        } else if memory.author.as_str() == self.owner {
            memory.author = tenant.clone();
        }
    }
}

/// Returns the owners whose memories are read. The tenant is the only tenant of the backup, or the tenant of the scope
/// if the backup has several. The author is the only author with private memories, or the reader of the scope.
/// Afterwards, the connection shows only memories of the chosen owners, and nothing private of others.
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
    // Without private parts there is nothing to hide, so the mark of private parts is not read. If it is damaged, the
    // backup can still be read.
    if has_authors && !authors.is_empty() {
        parts::show(connection, &there)?;
    }
    let here = [AuthorId::new(scope.tenant.as_str()), scope.reader.clone()];
    Ok(Owners { private: parts::private(&there), owner, has_authors, here })
}
