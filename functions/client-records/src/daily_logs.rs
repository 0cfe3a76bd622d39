//! `GET /v1/clients/{clientId}/daily-logs`: the dates on which a client kept the daily log, newest first.

use chrono::NaiveDate;
use domain::daily_log::{DailyLogDates, DateRange};
use domain::fields::Invalid;
use domain::list::DAILY_LOG_PAGE;
use edge::{Inbound, Partner, Problem, Reply};

use crate::app::{App, ClientRead, owned};

/// The dates, or the refusal of an invalid range, which is not read.
type Found = Result<Option<ClientRead<Vec<NaiveDate>>>, Invalid>;

pub(crate) async fn find(app: App, inbound: Inbound) -> Found {
    let limit = DAILY_LOG_PAGE.parse(inbound.query("limit").as_deref());
    let range = DateRange::parse(inbound.query("from").as_deref(), inbound.query("to").as_deref())?;
    let read = async |client| app.records.logged_dates(&client, range, limit).await;
    Ok(app.find(inbound.parameter(0), read).await)
}

pub(crate) async fn daily_logs(_: App, partner: Partner, _: Inbound, found: Found) -> Result<Reply, Problem> {
    let (client, dates) = owned(&partner, found?)?;
    Reply::ok(&DailyLogDates::new(client.id, dates))
}
