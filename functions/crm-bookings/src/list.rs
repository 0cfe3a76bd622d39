//! `GET /v1/crm/bookings`: a page of bookings, each in the time zone of its calendar.
//!
//! The list by id leaves cancelled bookings out, the list by update has them.

use domain::booking::{BookingFilter, CalendarEntry};
use domain::crm_list::{PageRequest, Walk};
use domain::cursor::CursorList;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::calendar::zone_of;

use crate::App;

pub(crate) async fn list(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "bookings", coach: &caller.coach };
    inbound.only_known_parameters()?;
    let query = |name: &str| inbound.query(name);
    let (request, filter) = (PageRequest::<Walk>::parse(&list, query)?, BookingFilter::parse(query)?);
    let page = app.bookings.page(&caller.coach, &request, &filter);
    let (page, calendars) = try_join(page, app.calendars.all(&caller.coach)).await?;
    let workspace_zone = caller.time_zone.zone()?;
    let view = |event: CalendarEntry| event.view(zone_of(&calendars, event.calendar_id, workspace_zone));
    crm::page_reply(&list, page, view)
}
