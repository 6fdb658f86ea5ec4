//! What asking models has cost and may still cost. Lives in `owner.db`, since one limit holds for all projects.
//!
//! Money is reserved before a call, the most that it may cost, in the transaction that looks at the limits; afterwards
//! the call is settled by what it did cost. So processes that ask at once can't overspend together. Nothing that may
//! have been spent is ever given back: a reservation whose process died counts in full, and the day of the ledger never
//! goes back, whatever the clock does.
//!
//! It is not: prices, and who may be asked. Whoever reserves knows them.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Kind, Result};
use crate::memory::Millis;
use crate::money::Money;
use crate::store::{Planned, Registry, Reservation, SpendLimits, SpendingRow, Spent};

/// How long after its deadline a call counts as under way. Arbitrary: what a stopped process may sleep.
const GRACE_MS: Millis = 60_000;

const DAY_MS: Millis = 86_400_000;

impl ToSql for Money {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::try_from(self.0).unwrap_or(i64::MAX).into())
    }
}

impl FromSql for Money {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Money> {
        Ok(Money(value.as_i64()?.try_into().unwrap_or_default()))
    }
}

impl Registry {
    /// Puts aside what `planned` may cost; durable when it returns.
    ///
    /// Errors with [`Kind::Limit`] where a limit leaves no room, and puts nothing aside then.
    pub async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation> {
        self.memories()
            .write(self.scope(), move |connection, _| {
                count_expired(connection, now)?;
                let today = now.div_euclid(DAY_MS);
                let day = latest_day(connection, today)?;
                check(connection, &planned, Money(0), day, today)?;
                let id = connection
                    .prepare_cached(
                        "INSERT INTO reservations (day, project, provider, model, reserved, expires)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
                    )?
                    .query_row(
                        (
                            day,
                            &planned.project,
                            &planned.provider,
                            &planned.model,
                            planned.most,
                            planned.until.saturating_add(GRACE_MS),
                        ),
                        |row| row.get(0),
                    )?;
                let held = planned.most;
                Ok(Reservation { id, day, planned, held })
            })
            .await
    }

    /// Puts aside as much once more, for a request that is repeated while the one before may have to be paid too.
    ///
    /// Errors as [`Registry::reserve`] does, and puts nothing more aside then.
    pub async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        let (id, day, held) = (reservation.id, reservation.day, reservation.held);
        let planned = reservation.planned.clone();
        let most = planned.most;
        self.memories()
            .write(self.scope(), move |connection, _| {
                check(connection, &planned, held, day, now.div_euclid(DAY_MS))?;
                let more = "UPDATE reservations SET reserved = reserved + ?2 WHERE id = ?1";
                if connection.execute(more, (id, planned.most))? == 0 {
                    return Err(Error::new(Kind::Limit, "the call took so long that it counts as given up"));
                }
                Ok(())
            })
            .await?;
        reservation.held = Money(held.0.saturating_add(most.0));
        Ok(())
    }

    /// Counts what a call came to in the place of what was put aside for it.
    pub async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        self.memories()
            .write(self.scope(), move |connection, _| {
                let Reservation { id, day, planned, held } = reservation;
                let was_open = connection.execute("DELETE FROM reservations WHERE id = ?1", [id])? > 0;
                // It took so long that it was counted in full already: only what it cost beyond that is new.
                let counted = if was_open { Money(0) } else { held };
                let row = SpendingRow {
                    day,
                    project: planned.project,
                    provider: planned.provider,
                    model: planned.model,
                    calls: was_open.into(),
                    failed: (was_open && outcome.has_failed).into(),
                    spent: Money(outcome.cost.0.saturating_sub(counted.0)),
                    input: outcome.input,
                    output: outcome.output,
                };
                if !was_open && !outcome.has_failed {
                    // It was taken for one that died.
                    connection.execute(
                        "UPDATE spending SET failed = max(failed - 1, 0)
                         WHERE day = ?1 AND project = ?2 AND provider = ?3 AND model = ?4",
                        (row.day, &row.project, &row.provider, &row.model),
                    )?;
                }
                add(connection, &row)
            })
            .await
    }

    /// Returns what was spent, the latest day first; calls under way count with what was put aside for them.
    pub async fn spending(&self) -> Result<Vec<SpendingRow>> {
        self.memories()
            .read(self.scope(), |_, connection, _| {
                let mut statement = connection.prepare_cached(
                    "SELECT day, project, provider, model, sum(calls), sum(failed), sum(spent), sum(input), sum(output)
                     FROM (SELECT * FROM spending UNION ALL
                           SELECT day, project, provider, model, 1, 0, reserved, 0, 0 FROM reservations)
                     GROUP BY day, project, provider, model
                     ORDER BY day DESC, provider, model, project",
                )?;
                let rows = statement.query_map([], |row| {
                    Ok(SpendingRow {
                        day: row.get(0)?,
                        project: row.get(1)?,
                        provider: row.get(2)?,
                        model: row.get(3)?,
                        calls: row.get(4)?,
                        failed: row.get(5)?,
                        spent: row.get(6)?,
                        input: row.get(7)?,
                        output: row.get(8)?,
                    })
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}

/// Counts as spent in full what was put aside for calls of which nobody will say what they cost.
fn count_expired(connection: &Connection, now: Millis) -> Result<()> {
    let expired = "FROM reservations WHERE expires < ?1";
    connection.execute(
        &format!(
            "INSERT INTO spending SELECT day, project, provider, model, count(*), count(*), sum(reserved), 0, 0 {expired}
             GROUP BY day, project, provider, model
             ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed,
                                       spent = spent + excluded.spent"
        ),
        [now],
    )?;
    connection.execute(&format!("DELETE {expired}"), [now])?;
    Ok(())
}

/// Returns the day to count on: the latest that any call was counted on, if the clock went back since.
fn latest_day(connection: &Connection, today: i64) -> Result<i64> {
    let known: Option<i64> = connection
        .query_row("SELECT value FROM meta WHERE key = 'ledger_day'", [], |row| row.get(0))
        .optional()?;
    let day = known.map_or(today, |known| known.max(today));
    if known != Some(day) {
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('ledger_day', ?1)", [day])?;
    }
    Ok(day)
}

/// Checks that the limits leave room for one request, where `held` is put aside for the call already.
fn check(connection: &Connection, planned: &Planned, held: Money, day: i64, today: i64) -> Result<()> {
    let SpendLimits { call, provider_day, day: of_day, project, total } = planned.limits;
    let most = planned.most;
    if most == Money(0) {
        return Ok(());
    }
    let spent = |condition: &str, word: &str| -> Result<Money> {
        let sum = |amount: &str, table: &str| -> Result<Money> {
            let sql = format!("SELECT coalesce(sum({amount}), 0) FROM {table} WHERE {condition}");
            // The conditions that name one parameter only are given both.
            let sql = format!("{sql} AND ?1 IS NOT NULL AND ?2 IS NOT NULL");
            Ok(connection.prepare_cached(&sql)?.query_row((day, word), |row| row.get(0))?)
        };
        Ok(Money(sum("spent", "spending")?.0 + sum("reserved", "reservations")?.0))
    };
    let provider = &planned.provider;
    let limits = [
        (call, "one call", None),
        (provider_day, "the provider on a day", Some(("day = ?1 AND provider = ?2", provider.as_str()))),
        (of_day, "a day", Some(("day = ?1", ""))),
        (project, "a project", Some(("project = ?2", planned.project.as_str()))),
        (total, "everything", Some(("1", ""))),
    ];
    for (limit, what, condition) in limits {
        let Some(limit) = limit else { continue };
        let before = match condition {
            Some((condition, word)) => spent(condition, word)?,
            None => held,
        };
        if before.0.saturating_add(most.0) > limit.0 {
            let message = format!(
                "asking `{provider}` may cost {most}, and the limit of {what} is {limit}, of which {before} is spent"
            );
            let ahead = match (what, day - today) {
                ("a day" | "the provider on a day", 1..) => {
                    format!("; the clock was {} ahead before, and that day still counts", days(day - today))
                }
                _ => String::new(),
            };
            let hint =
                format!("`tiro provider show` says what was spent; limits stand in the configuration{ahead}");
            return Err(Error::new(Kind::Limit, message).hint(hint));
        }
    }
    Ok(())
}

fn days(count: i64) -> String {
    if count == 1 { "a day".into() } else { format!("{count} days") }
}

fn add(connection: &Connection, row: &SpendingRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO spending VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed,
                 spent = spent + excluded.spent, input = input + excluded.input, output = output + excluded.output",
        )?
        .execute((
            row.day,
            &row.project,
            &row.provider,
            &row.model,
            row.calls,
            row.failed,
            row.spent,
            row.input,
            row.output,
        ))?;
    Ok(())
}

#[cfg(test)]
mod tests;
