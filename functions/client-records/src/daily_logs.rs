//! `GET /v1/clients/{clientId}/daily-logs`: the dates on which a client kept the daily log, newest first.

use axum::extract::State;
use axum::response::Response;
use chrono::NaiveDate;
use domain::daily_log::{DailyLogDates, DateRange};
use domain::list::DAILY_LOG_PAGE;
use edge::{Inbound, Partner, Reply};

use crate::app::{App, ClientRead, owned};

pub(crate) async fn daily_logs(State(app): State<App>, inbound: Inbound) -> Response {
    let limit = DAILY_LOG_PAGE.parse(inbound.query("limit").as_deref());
    let range = DateRange::parse(inbound.query("from").as_deref(), inbound.query("to").as_deref());
    let read = async {
        // An invalid range is not read. The caller gets the refusal after authentication.
        let range = range.as_ref().ok().copied()?;
        app.find(inbound.parameter(0), async |client| app.records.logged_dates(&client, range, limit).await).await
    };
    let work = async |partner: Partner, found: Option<ClientRead<Vec<NaiveDate>>>| {
        range.clone()?;
        let (client, dates) = owned(&partner, found)?;
        Reply::ok(&DailyLogDates::new(client.id, dates))
    };
    app.gate.partner(&inbound, read, work).await
}
