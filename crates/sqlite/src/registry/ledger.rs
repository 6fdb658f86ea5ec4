//! The ledger of spending on models. The ledger is in `owner.db`, because its limits apply to all projects together.
//!
//! The transaction that checks the limits also reserves the highest possible cost of a call. After the call, its real
//! cost replaces the reservation. So concurrent processes can't exceed a limit together. An amount that may have been
//! spent stays counted: if a process died, its whole reservation counts as spent. If the clock goes back, the day of
//! the ledger stays, unless it was more than a week ahead.
//!
//! Callers decide about prices, and about the providers that may be used.

use rusqlite::{Connection, OptionalExtension};

use crate::SqliteRegistry;
use crate::error::{Error, Result};
use crate::registry::sent;
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_store::decide::spending::{self, Limit, Settled};
use tiro_store::{Planned, Reservation, SpendingRow, Spent};

/// How long a reservation still counts as open after its deadline, in milliseconds. Arbitrary: a process may be
/// suspended for this time.
const GRACE_MS: Millis = 60_000;

const DAY_MS: Millis = 86_400_000;

/// Returns the number by which an amount is stored.
fn column(money: Money) -> i64 {
    i64::try_from(money.0).unwrap_or(i64::MAX)
}

/// Returns the amount in a column. A negative number counts as 0.
fn money(column: i64) -> Money {
    Money(column.try_into().unwrap_or_default())
}

impl SqliteRegistry {
    pub(crate) async fn reserve(&self, planned: Planned, now: Millis) -> error::Result<Reservation> {
        self.store
            .write(self.scope(), move |connection, _| {
                count_expired(connection, now)?;
                let today = now.div_euclid(DAY_MS);
                let day = counted_day(connection, today)?;
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
                            column(planned.most),
                            planned.until.saturating_add(GRACE_MS),
                        ),
                        |row| row.get(0),
                    )?;
                sent::record(connection, id, &planned, now)?;
                let held = planned.most;
                Ok(Reservation { id, day, planned, held })
            })
            .await
    }

    pub(crate) async fn reserve_again(
        &self,
        reservation: &mut Reservation,
        now: Millis,
    ) -> error::Result<()> {
        let (id, day, held) = (reservation.id, reservation.day, reservation.held);
        let planned = reservation.planned.clone();
        let most = planned.most;
        self.store
            .write(self.scope(), move |connection, _| {
                check(connection, &planned, held, day, now.div_euclid(DAY_MS))?;
                let more = "UPDATE reservations SET reserved = reserved + ?2 WHERE id = ?1";
                if connection.execute(more, (id, column(planned.most)))? == 0 {
                    return Err(Error::new(Kind::Limit, "the call took longer than its reservation lasts"));
                }
                sent::repeat(connection, id, &planned)
            })
            .await?;
        reservation.held = Money(held.0.saturating_add(most.0));
        Ok(())
    }

    pub(crate) async fn settle(&self, reservation: Reservation, outcome: Spent) -> error::Result<()> {
        self.store
            .write(self.scope(), move |connection, _| {
                let Reservation { id, day, planned, held } = reservation;
                sent::settle(connection, id, &outcome)?;
                let was_open = connection.execute("DELETE FROM reservations WHERE id = ?1", [id])? > 0;
                let Settled { calls, failed, spent } = spending::settled(was_open, held, &outcome);
                let row = SpendingRow {
                    day,
                    project: planned.project,
                    provider: planned.provider,
                    model: planned.model,
                    calls,
                    failed,
                    spent,
                    input: outcome.input,
                    output: outcome.output,
                };
                add(connection, &row)
            })
            .await
    }

    pub(crate) async fn spending(&self) -> error::Result<Vec<SpendingRow>> {
        self.store
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
                        spent: money(row.get(6)?),
                        input: row.get(7)?,
                        output: row.get(8)?,
                    })
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }
}

/// Counts expired reservations as fully spent, because their processes died.
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

/// Returns the day of the ledger, and stores it if it is new.
fn counted_day(connection: &Connection, today: i64) -> Result<i64> {
    let known: Option<i64> = connection
        .query_row("SELECT value FROM meta WHERE key = 'ledger_day'", [], |row| row.get(0))
        .optional()?;
    let day = spending::day(known, today);
    if known.is_some_and(|known| known > day) {
        count_today(connection, day)?;
    }
    if known != Some(day) {
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('ledger_day', ?1)", [day])?;
    }
    Ok(day)
}

/// Moves to `day` the spending of later days, which was recorded by a clock that was ahead.
fn count_today(connection: &Connection, day: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO spending
         SELECT ?1, project, provider, model, sum(calls), sum(failed), sum(spent), sum(input), sum(output)
         FROM spending WHERE day > ?1 GROUP BY project, provider, model
         ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed,
             spent = spent + excluded.spent, input = input + excluded.input, output = output + excluded.output",
        [day],
    )?;
    connection.execute("DELETE FROM spending WHERE day > ?1", [day])?;
    connection.execute("UPDATE reservations SET day = ?1 WHERE day > ?1", [day])?;
    Ok(())
}

/// Errors with [`Kind::Limit`] if one more request would exceed a limit. `held` is the amount that is already
/// reserved for the call.
fn check(connection: &Connection, planned: &Planned, held: Money, day: i64, today: i64) -> Result<()> {
    let mut before = [Money(0); Limit::ALL.len()];
    for (limit, before) in Limit::ALL.into_iter().zip(&mut before) {
        if limit.of(&planned.limits).is_some() {
            *before = spent(connection, limit, planned, held, day)?;
        }
    }
    match spending::refusal(&planned.limits, planned.most, before) {
        None => Ok(()),
        Some(refusal) => Err(refusal.error(planned, day - today).into()),
    }
}

/// Returns the amount that counts against a limit: the spent amount plus the reserved amount.
fn spent(connection: &Connection, limit: Limit, planned: &Planned, held: Money, day: i64) -> Result<Money> {
    let (condition, word) = match limit {
        Limit::Call => return Ok(held),
        Limit::ProviderDay => ("day = ?1 AND provider = ?2", planned.provider.as_str()),
        Limit::Day => ("day = ?1", ""),
        Limit::Project => ("project = ?2", planned.project.as_str()),
        Limit::Total => ("1", ""),
    };
    let sum = |amount: &str, table: &str| -> Result<Money> {
        let sql = format!("SELECT coalesce(sum({amount}), 0) FROM {table} WHERE {condition}");
        // This addition makes sure that the statement has both parameters, even if `condition` uses only one of them.
        let sql = format!("{sql} AND ?1 IS NOT NULL AND ?2 IS NOT NULL");
        Ok(connection.prepare_cached(&sql)?.query_row((day, word), |row| row.get(0).map(money))?)
    };
    Ok(Money(sum("spent", "spending")?.0 + sum("reserved", "reservations")?.0))
}

fn add(connection: &Connection, row: &SpendingRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO spending VALUES (?1, ?2, ?3, ?4, ?5, max(?6, 0), ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = max(failed + ?6, 0),
                 spent = spent + excluded.spent, input = input + excluded.input, output = output + excluded.output",
        )?
        .execute((
            row.day,
            &row.project,
            &row.provider,
            &row.model,
            row.calls,
            row.failed,
            column(row.spent),
            row.input,
            row.output,
        ))?;
    Ok(())
}
