//! `GET /v1/crm/bookings/{id}`: one booking, also if it is cancelled or past.

use axum::extract::State;
use axum::response::Response;
use domain::booking::{BookingRefusal, BookingResult};
use domain::id::CalendarEventId;
use edge::{CrmCaller, Inbound, Reply, crm};
use futures::future::try_join;

use crate::App;
use crate::render::{booking_view, problem_of};

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let id = crm::path_id(&inbound, CalendarEventId::parse)?;
        let (found, calendars) =
            try_join(app.bookings.get(&caller.coach, id), app.calendars.all(&caller.coach)).await?;
        let event = found.ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
        Reply::ok(&BookingResult { booking: booking_view(&event, &calendars, &caller)? })
    };
    app.gate.crm(&inbound, work).await
}
