//! `GET /v1/crm/bookings`: a page of the bookings that are not cancelled, each in the time zone of its calendar.

use axum::extract::State;
use axum::response::Response;
use domain::booking::CalendarEvent;
use edge::{CrmCaller, Inbound, crm};
use futures::future::try_join;
use store::calendar::zone_of;

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let page = app.bookings.page(&caller.coach, crm::page(&inbound)?);
        let (listed, calendars) = try_join(page, app.calendars.all(&caller.coach)).await?;
        let workspace_zone = caller.time_zone.zone()?;
        let view = |event: CalendarEvent| event.view(zone_of(&calendars, event.calendar_id, workspace_zone));
        crm::page_reply(listed, |event| event.id.0, view)
    };
    app.gate.crm(&inbound, work).await
}
