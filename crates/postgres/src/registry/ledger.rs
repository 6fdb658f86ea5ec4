//! The ledger of spending on models. Its limits apply to all projects of the tenant together.
//!
//! The transaction that checks the limits also reserves the highest possible cost of a call. After the call, its real
//! cost replaces the reservation. So concurrent processes can't exceed a limit together. An amount that may have been
//! spent stays counted: if a process died, its whole reservation counts as spent. If the clock goes back, the day of
//! the ledger stays, unless it was more than a week ahead.
//!
//! Callers decide about prices, and about the providers that may be used.

use tokio_postgres::Row;

use super::PostgresRegistry;
use crate::error::{Error, Result};
use crate::registry::sent;
use crate::transactions::{Transaction, read, write};
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_store::decide::spending::{self, Limit, Settled};
use tiro_store::{Planned, Reservation, SpendingRow, Spent};

/// How long a reservation still counts as open after its deadline, in milliseconds. Arbitrary: a process may be
/// suspended for this time.
const GRACE_MS: Millis = 60_000;

const DAY_MS: Millis = 86_400_000;

/// The key of the day of the ledger among the notes.
const DAY: &str = "ledger_day";

/// Returns the number by which an amount is stored.
fn column(money: Money) -> i64 {
    i64::try_from(money.0).unwrap_or(i64::MAX)
}

/// Returns the amount in a column. A negative number counts as 0.
fn money(column: i64) -> Money {
    Money(column.try_into().unwrap_or_default())
}

/// Returns the SQL expression of an amount that is at most the greatest number of a column.
fn capped(sum: &str) -> String {
    format!("least({sum}, {})::bigint", i64::MAX)
}

impl PostgresRegistry {
    pub(crate) async fn reserve(&self, planned: Planned, now: Millis) -> error::Result<Reservation> {
        let reserved: error::Result<(i64, i64)> = write!(self, &self.scope, tx => {
            self.count_expired(&tx, now).await?;
            let today = now.div_euclid(DAY_MS);
            let day = self.counted_day(&tx, today).await?;
            self.check(&tx, &planned, Money(0), day, today).await?;
            let row = tx
                .only(
                    "INSERT INTO reservations (tenant, day, project, provider, model, reserved, expires)
                     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
                    &[
                        &self.tenant(),
                        &day,
                        &planned.project,
                        &planned.provider,
                        &planned.model,
                        &column(planned.most),
                        &planned.until.saturating_add(GRACE_MS),
                    ],
                )
                .await?;
            let id = row.try_get(0)?;
            sent::record(&tx, self.tenant(), id, &planned, now).await?;
            Ok((id, day))
        });
        let (id, day) = reserved?;
        let held = planned.most;
        Ok(Reservation { id, day, planned, held })
    }

    pub(crate) async fn reserve_again(
        &self,
        reservation: &mut Reservation,
        now: Millis,
    ) -> error::Result<()> {
        let Reservation { id, day, ref planned, held } = *reservation;
        let reserved: error::Result<()> = write!(self, &self.scope, tx => {
            self.check(&tx, planned, held, day, now.div_euclid(DAY_MS)).await?;
            let more = format!(
                "UPDATE reservations SET reserved = {} WHERE tenant = $1 AND id = $2",
                capped("reserved::numeric + $3::bigint")
            );
            if tx.execute(&more, &[&self.tenant(), &id, &column(planned.most)]).await? == 0 {
                return Err(Error::new(Kind::Limit, "the call took longer than its reservation lasts"));
            }
            sent::repeat(&tx, self.tenant(), id, planned).await
        });
        reserved?;
        reservation.held = Money(held.0.saturating_add(reservation.planned.most.0));
        Ok(())
    }

    pub(crate) async fn settle(&self, reservation: Reservation, outcome: Spent) -> error::Result<()> {
        let Reservation { id, day, planned, held } = reservation;
        write!(self, &self.scope, tx => {
            sent::settle(&tx, self.tenant(), id, &outcome).await?;
            let sql = "DELETE FROM reservations WHERE tenant = $1 AND id = $2";
            let was_open = tx.execute(sql, &[&self.tenant(), &id]).await? > 0;
            let Settled { calls, failed, spent } = spending::settled(was_open, held, &outcome);
            let row = SpendingRow {
                day,
                project: planned.project.clone(),
                provider: planned.provider.clone(),
                model: planned.model.clone(),
                calls,
                failed,
                spent,
                input: outcome.input,
                output: outcome.output,
            };
            self.add(&tx, &row).await
        })
    }

    pub(crate) async fn spending(&self) -> error::Result<Vec<SpendingRow>> {
        let sql = format!(
            "SELECT day, project, provider, model, sum(calls)::bigint, sum(failed)::bigint, {}, sum(input)::bigint,
                 sum(output)::bigint
             FROM (SELECT day, project, provider, model, calls, failed, spent, input, output
                       FROM spending WHERE tenant = $1
                   UNION ALL SELECT day, project, provider, model, 1, 0, reserved, 0, 0
                       FROM reservations WHERE tenant = $1) s
             GROUP BY day, project, provider, model
             ORDER BY day DESC, provider COLLATE \"C\", model COLLATE \"C\", project COLLATE \"C\"",
            capped("sum(spent)")
        );
        read!(self, &self.scope, tx => {
            tx.rows(&sql, &[&self.tenant()]).await?.iter().map(spending_row).collect()
        })
    }

    /// Counts expired reservations as fully spent, because their processes died.
    async fn count_expired(&self, tx: &Transaction, now: Millis) -> Result<()> {
        let add = format!(
            "INSERT INTO spending AS s (tenant, day, project, provider, model, calls, failed, spent, input, output)
             SELECT tenant, day, project, provider, model, count(*), count(*), {}, 0, 0 FROM reservations
             WHERE tenant = $1 AND expires < $2 GROUP BY tenant, day, project, provider, model
             ON CONFLICT (tenant, day, project, provider, model) DO UPDATE SET calls = s.calls + excluded.calls,
                 failed = s.failed + excluded.failed, spent = {}",
            capped("sum(reserved)"),
            capped("s.spent::numeric + excluded.spent")
        );
        tx.execute(&add, &[&self.tenant(), &now]).await?;
        tx.execute("DELETE FROM reservations WHERE tenant = $1 AND expires < $2", &[&self.tenant(), &now])
            .await?;
        Ok(())
    }

    /// Returns the day of the ledger, and stores it if it is new.
    async fn counted_day(&self, tx: &Transaction, today: i64) -> Result<i64> {
        let known = self.noted_number(tx, DAY).await?;
        let day = spending::day(known, today);
        if known.is_some_and(|known| known > day) {
            self.count_today(tx, day).await?;
        }
        if known != Some(day) {
            self.put_note(tx, DAY, &day.to_be_bytes()).await?;
        }
        Ok(day)
    }

    /// Moves to `day` the spending of later days, which was recorded by a clock that was ahead.
    async fn count_today(&self, tx: &Transaction, day: i64) -> Result<()> {
        let add = format!(
            "INSERT INTO spending AS s (tenant, day, project, provider, model, calls, failed, spent, input, output)
             SELECT tenant, $2::bigint, project, provider, model, sum(calls)::bigint, sum(failed)::bigint, {},
                 sum(input)::bigint, sum(output)::bigint
             FROM spending WHERE tenant = $1 AND day > $2 GROUP BY tenant, project, provider, model
             ON CONFLICT (tenant, day, project, provider, model) DO UPDATE SET calls = s.calls + excluded.calls,
                 failed = s.failed + excluded.failed, spent = {}, input = s.input + excluded.input,
                 output = s.output + excluded.output",
            capped("sum(spent)"),
            capped("s.spent::numeric + excluded.spent")
        );
        tx.execute(&add, &[&self.tenant(), &day]).await?;
        for sql in [
            "DELETE FROM spending WHERE tenant = $1 AND day > $2",
            "UPDATE reservations SET day = $2 WHERE tenant = $1 AND day > $2",
        ] {
            tx.execute(sql, &[&self.tenant(), &day]).await?;
        }
        Ok(())
    }

    /// Errors with [`Kind::Limit`] if one more request would exceed a limit. `held` is the amount that is already
    /// reserved for the call.
    async fn check(
        &self,
        tx: &Transaction,
        planned: &Planned,
        held: Money,
        day: i64,
        today: i64,
    ) -> Result<()> {
        let mut before = [Money(0); Limit::ALL.len()];
        for (limit, before) in Limit::ALL.into_iter().zip(&mut before) {
            if limit.of(&planned.limits).is_some() {
                *before = match self.counted(tx, limit, planned, day).await? {
                    Some(spent) => spent,
                    None => held,
                };
            }
        }
        match spending::refusal(&planned.limits, planned.most, before) {
            None => Ok(()),
            Some(refusal) => Err(refusal.error(planned, day - today).into()),
        }
    }

    /// Returns the amount that counts against a limit: the spent amount plus the reserved amount. `None` if only the
    /// call itself counts.
    async fn counted(
        &self,
        tx: &Transaction,
        limit: Limit,
        planned: &Planned,
        day: i64,
    ) -> Result<Option<Money>> {
        let (day, provider, project) = match limit {
            Limit::Call => return Ok(None),
            Limit::ProviderDay => (Some(day), Some(&planned.provider), None),
            Limit::Day => (Some(day), None, None),
            Limit::Project => (None, None, Some(&planned.project)),
            Limit::Total => (None, None, None),
        };
        let condition =
            "tenant = $1 AND ($2::bigint IS NULL OR day = $2) AND ($3::text IS NULL OR provider = $3)
            AND ($4::text IS NULL OR project = $4)";
        let sql = format!(
            "SELECT {} FROM (SELECT spent FROM spending WHERE {condition}
                 UNION ALL SELECT reserved FROM reservations WHERE {condition}) s",
            capped("coalesce(sum(spent), 0)")
        );
        let row = tx.only(&sql, &[&self.tenant(), &day, &provider, &project]).await?;
        Ok(Some(money(row.try_get(0)?)))
    }

    async fn add(&self, tx: &Transaction, row: &SpendingRow) -> Result<()> {
        let sql = format!(
            "INSERT INTO spending AS s (tenant, day, project, provider, model, calls, failed, spent, input, output)
             VALUES ($1, $2, $3, $4, $5, $6, greatest($7::bigint, 0), $8, $9, $10)
             ON CONFLICT (tenant, day, project, provider, model) DO UPDATE SET calls = s.calls + excluded.calls,
                 failed = greatest(s.failed + $7::bigint, 0), spent = {}, input = s.input + excluded.input,
                 output = s.output + excluded.output",
            capped("s.spent::numeric + excluded.spent")
        );
        tx.execute(
            &sql,
            &[
                &self.tenant(),
                &row.day,
                &row.project,
                &row.provider,
                &row.model,
                &row.calls,
                &row.failed,
                &column(row.spent),
                &row.input,
                &row.output,
            ],
        )
        .await?;
        Ok(())
    }
}

fn spending_row(row: &Row) -> Result<SpendingRow> {
    Ok(SpendingRow {
        day: row.try_get(0)?,
        project: row.try_get(1)?,
        provider: row.try_get(2)?,
        model: row.try_get(3)?,
        calls: row.try_get(4)?,
        failed: row.try_get(5)?,
        spent: money(row.try_get(6)?),
        input: row.try_get(7)?,
        output: row.try_get(8)?,
    })
}
