//! `POST /v1/crm/bookings/availability`: the slots that can be booked, or to which a booking can be moved. Nothing is
//! reserved or written, so the operation takes no idempotency key.
//!
//! The work for an answer is bounded. A request for all calendars is refused before anything is computed if they have
//! too many slot starts together. A single calendar never has too many.

use chrono::NaiveDate;
use domain::availability::{
    Availability, CalendarAvailability, DaySlots, MAX_CANDIDATES, MAX_SLOTS, Offer, candidates, window,
};
use domain::booking::{self, AvailabilityRequest, BookingRefusal};
use domain::calendar::Calendar;
use domain::fields::Invalid;
use domain::id::CalendarEntryId;
use domain::time::Timestamp;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::StoreError;
use store::calendar::{StoredCalendar, find};

use crate::App;
use crate::render::problem_of;

/// Days that are computed before the task yields: some 5,000 slot starts at most.
const DAYS_AT_ONCE: usize = 16;

const MOVES_ON_ITS_CALENDAR: &str = "must be the calendar of the booking, or absent: a booking moves on its calendar";

pub(crate) async fn availability(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let request = AvailabilityRequest::parse(crm::body(&inbound)?)?;
    Reply::ok(&match request.booking_id {
        None => for_new_booking(&app, &caller, &request).await?,
        Some(booking) => for_move(&app, &caller, &request, booking).await?,
    })
}

/// The free times of the calendar that the request names, or of all calendars.
async fn for_new_booking(
    app: &App,
    caller: &CrmCaller,
    request: &AvailabilityRequest,
) -> Result<Availability, Problem> {
    let read = try_join(app.bookings.lead(&caller.coach, request.lead_id), requested_calendars(app, caller, request));
    let (lead, found) = read.await?;
    lead.check().map_err(problem_of)?;
    let calendars: Vec<&Calendar> =
        found.iter().map(|found| &found.calendar).filter(|calendar| calendar.active).collect();
    if request.calendar_id.is_some() && calendars.is_empty() {
        return Err(problem_of(BookingRefusal::UnknownCalendar));
    }
    let computed: usize = calendars.iter().map(|calendar| candidates(calendar, caller.now)).sum();
    if request.calendar_id.is_none() && computed > MAX_CANDIDATES {
        return Err(one_at_a_time(format!("over {MAX_CANDIDATES} times to look at")));
    }
    let busy = match window_of(&calendars, caller.now) {
        Some((first, last)) => app.bookings.busy_between(&caller.coach, first, last).await?.all(),
        None => Vec::new(),
    };
    let mut available = Availability::new(Vec::new());
    for calendar in calendars {
        let days = days(&Offer::new(calendar, &busy, caller.now)).await;
        available.calendars.push(CalendarAvailability::new(calendar, days));
        if request.calendar_id.is_none() && available.is_too_long() {
            return Err(one_at_a_time(format!("over {MAX_SLOTS} slots")));
        }
    }
    Ok(available)
}

/// The times of its calendar to which a booking can be moved. A calendar that takes no bookings has none.
async fn for_move(
    app: &App,
    caller: &CrmCaller,
    request: &AvailabilityRequest,
    booking: CalendarEntryId,
) -> Result<Availability, Problem> {
    let read = app.bookings.read_change(&caller.coach, booking, request.lead_id, None).await?;
    let found = read.event.as_ref().map(|found| &found.event);
    let event = booking::movable(read.lead.lead(), found, caller.now).map_err(problem_of)?;
    if request.calendar_id.is_some_and(|calendar| event.calendar_id != Some(calendar)) {
        return Err(Invalid::field("calendarId", MOVES_ON_ITS_CALENDAR).into());
    }
    let calendar = find(&read.calendars, event.calendar_id).filter(|found| found.calendar.active);
    let Some(StoredCalendar { calendar, .. }) = calendar else { return Ok(Availability::new(Vec::new())) };
    let (first, last) = window(calendar, caller.now);
    let others = app.bookings.busy_between(&caller.coach, first, last).await?.without(event.id);
    let days = days(&booking::move_offer(event, calendar, &others, caller.now)).await;
    Ok(Availability::new(vec![CalendarAvailability::new(calendar, days)]))
}

/// The slots of every day of the horizon. The task yields regularly, so that the deadline of the request is kept.
async fn days(offer: &Offer<'_>) -> Vec<DaySlots> {
    let mut days = Vec::new();
    for (number, date) in offer.dates().enumerate() {
        if number % DAYS_AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        days.push(offer.day(date));
    }
    days
}

/// The calendar that the request names, or all calendars.
async fn requested_calendars(
    app: &App,
    caller: &CrmCaller,
    request: &AvailabilityRequest,
) -> Result<Vec<StoredCalendar>, StoreError> {
    match request.calendar_id {
        Some(id) => Ok(app.calendars.get(&caller.coach, id).await?.into_iter().collect()),
        None => app.calendars.all(&caller.coach).await,
    }
}

/// The UTC days whose events may overlap a slot of these calendars.
fn window_of(calendars: &[&Calendar], now: Timestamp) -> Option<(NaiveDate, NaiveDate)> {
    let windows = calendars.iter().map(|calendar| window(calendar, now));
    windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn one_at_a_time(have: String) -> Problem {
    let rule = format!("is required here: all calendars together have {have}; ask for one at a time");
    Invalid::field("calendarId", rule).into()
}
