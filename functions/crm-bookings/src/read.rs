//! `GET /v1/crm/bookings/{id}`: one booking, also if it is cancelled or past.

use domain::booking::{BookingRefusal, BookingResult};
use domain::id::CalendarEntryId;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;

use crate::App;
use crate::render::{booking_view, problem_of};

pub(crate) async fn read(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let id = crm::path_id(&inbound, CalendarEntryId::parse)?;
    let (found, calendars) = try_join(app.bookings.get(&caller.coach, id), app.calendars.all(&caller.coach)).await?;
    let event = found.ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
    Reply::ok(&BookingResult { booking: booking_view(&event, &calendars, &caller)? })
}
