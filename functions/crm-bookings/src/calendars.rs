//! `GET /v1/crm/calendars`: a page of the calendars that can be booked.

use axum::extract::State;
use axum::response::Response;
use edge::{CrmCaller, Inbound, crm};

use crate::App;

pub(crate) async fn calendars(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let listed = app.calendars.page(&caller.coach, crm::page(&inbound)?).await?;
        crm::page_reply(listed, |found| found.calendar.id.0, |found| found.calendar.view())
    };
    app.gate.crm(&inbound, work).await
}
