//! Whether row security alone hides what isn't for a reader: statements without any condition, as the role of the
//! program, with the owners of one reader.
//!
//! Every table is read, changed and emptied in this way, also by tables that future versions add, because the tables are
//! asked of the database. Nothing stays changed.

use anyhow::{Result, bail};

use super::database::Database;
use super::fill::tables;
use crate::arguments::Scope;
use crate::stats::Report;

/// The role as whom the program works if the user of the database is a superuser.
const ROLE: &str = "tiro";

/// Measures, and adds the figures. All texts of `scopes` are private.
pub fn measure(database: &Database, scopes: &[Scope], report: &mut Report) -> Result<()> {
    database.run("SET search_path = tiro, public")?;
    let readers = database.rows(
        "SELECT o.seq, o.author, o.project FROM owners o
         WHERE author <> '' AND EXISTS (SELECT FROM memories m WHERE m.owner = o.seq) ORDER BY seq",
    )?;
    if readers.len() < 2 {
        bail!("{} users keep something private: nothing can be seen of others", readers.len());
    }
    let tables = tables(database)?;
    let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    let mut counts = Counts::default();
    for reader in &readers {
        let (owner, author) = (reader.get(0).unwrap_or("0"), reader.get(1).unwrap_or_default());
        counts.look(database, owner, author, &names, scopes)?;
    }
    report.must_be_zero("rows of others read past the row security", counts.read);
    report.must_be_zero("rows of others changed past the row security", counts.changed);
    report.must_be_zero("rows of another tenant read past the row security", other_tenant(database)?);
    report.must_be_zero("tables of owners without row security", unprotected(database)?.len());
    report.add("  tables", names.len() as f64, "");
    report.add("  of which some row was hidden", counts.hidden as f64, "");
    report.add("  rows that the readers saw of their own", counts.own as f64, "");
    if counts.hidden == 0 || counts.own == 0 {
        bail!("no row was hidden, or none was seen: nothing was tested");
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    read: usize,
    changed: usize,
    hidden: usize,
    own: usize,
}

impl Counts {
    /// Looks at all tables as the reader whose rows have `owner`.
    fn look(
        &mut self,
        database: &Database,
        owner: &str,
        author: &str,
        tables: &[&str],
        scopes: &[Scope],
    ) -> Result<()> {
        let own: Vec<String> = tables
            .iter()
            .map(|table| format!("SELECT count(*) FROM \"{table}\" WHERE owner = {owner}"))
            .collect();
        for (table, own) in tables.iter().zip(own) {
            let count = |sql: &str| database.number(sql).map(|count| count as usize);
            let (all, own) = (count(&format!("SELECT count(*) FROM \"{table}\""))?, count(&own)?);
            database.run(&format!("BEGIN; SET LOCAL ROLE {ROLE}; SET LOCAL tiro.owners = '{owner}'"))?;
            let seen = count(&format!("SELECT count(*) FROM \"{table}\""))?;
            self.read += seen.saturating_sub(own);
            self.own += seen;
            self.hidden += usize::from(all > own && seen == own);
            for scope in scopes.iter().filter(|scope| scope.owner.name != author) {
                for secret in [scope.secret, scope.owner.secret] {
                    let text = format!("SELECT count(*) FROM \"{table}\" t WHERE t::text LIKE '%{secret}%'");
                    self.read += count(&text)?;
                }
            }
            let changes =
                [format!("UPDATE \"{table}\" SET owner = owner"), format!("DELETE FROM \"{table}\"")];
            for sql in changes {
                self.changed += (database.would_change(&sql)? as usize).saturating_sub(own);
            }
            database.run("ROLLBACK")?;
        }
        Ok(())
    }
}

/// Returns how many rows of the tables by tenant another tenant sees.
fn other_tenant(database: &Database) -> Result<usize> {
    let tables = database.texts(
        "SELECT table_name FROM information_schema.columns c JOIN pg_class t ON t.relname = c.table_name
         WHERE c.table_schema = 'tiro' AND t.relnamespace = 'tiro'::regnamespace AND t.relkind = 'r'
             AND c.column_name = 'tenant' AND c.table_name <> 'owners'",
    )?;
    let mut seen = 0;
    for table in tables {
        database.run(&format!("BEGIN; SET LOCAL ROLE {ROLE}; SET LOCAL tiro.tenant = 'nobody'"))?;
        seen += database.number(&format!("SELECT count(*) FROM \"{table}\""))? as usize;
        database.run("ROLLBACK")?;
    }
    Ok(seen)
}

/// Returns the tables whose rows have an owner or a tenant, but no row security that also binds the tables' owner. The
/// list of owners itself has only names and numbers.
fn unprotected(database: &Database) -> Result<Vec<String>> {
    database.texts(
        "SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace = 'tiro'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'owners'
             AND a.attname IN ('owner', 'tenant') AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    )
}
