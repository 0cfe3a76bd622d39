//! `PATCH /v1/crm/bookings/{id}`: moves a booking to another slot of its calendar.

use domain::booking::{self, BookingOutcome, BookingRefusal, Move, RescheduleDraft};
use domain::change::Change;
use domain::id::CalendarEntryId;
use domain::time::Timestamp;
use domain::tz::Tz;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use store::booking::ChangeRead;
use store::calendar::{find, zone_of};

use crate::App;
use crate::render::{booking_event, booking_view, problem_of};

pub(crate) struct Reschedule;

impl Command for Reschedule {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = (RescheduleDraft, ChangeRead);

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<Self::Snapshot, Problem> {
        let booking = crm::path_id(inbound, CalendarEntryId::parse)?;
        let draft = RescheduleDraft::parse(crm::body(inbound)?)?;
        let read = app.bookings.read_change(&caller.coach, booking, draft.lead_id, Some(draft.date)).await?;
        Ok((draft, read))
    }

    fn decide(app: &App, caller: &CrmCaller, (draft, read): &Self::Snapshot) -> Result<Decision, Problem> {
        let to = move_of(draft, read, caller.time_zone.zone()?, caller.now).map_err(problem_of)?;
        let found = read.event.as_ref().ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
        let lead = crm::live(&read.lead)?.contact().id;
        let previous = found.event.span.starts_at;
        // Repeating the API's own move emits no change.
        let is_change = to != Move::Unchanged || !found.event.is_time_set_by_api();
        let event = match to {
            Move::Unchanged => found.event.reconfirmed(caller.now),
            Move::To(busy) => found.event.moved(&busy, caller.now),
        };
        let view = booking_view(&event, &read.calendars, caller)?;
        let to_change = || Change::booking_rescheduled(&caller.coach, &view, previous, event.last_written_at());
        let change = is_change.then(to_change);
        let emitted = booking_event(caller, (lead, &read.lead), Some(&found.event), &event, &read.calendars)?;
        let reply = Reply::ok(&BookingOutcome::moved_from(view, previous))?;
        Ok(Decision::reply(About::Contact(&caller.coach, lead), reply)
            .write(app.bookings.change(&caller.coach, lead, found, read, &event))
            .change(change)
            .events(emitted))
    }
}

fn move_of(
    draft: &RescheduleDraft,
    read: &ChangeRead,
    workspace_zone: Tz,
    now: Timestamp,
) -> Result<Move, BookingRefusal> {
    let event = read.event.as_ref().map(|found| &found.event);
    let on = event.and_then(|event| event.calendar_id);
    let calendar = find(&read.calendars, on).map(|found| &found.calendar);
    let zone = zone_of(&read.calendars, on, workspace_zone);
    let others = event.map(|event| read.busy.without(event.id)).unwrap_or_default();
    booking::reschedule(draft, read.lead.lead(), event, calendar, zone, &others, now)
}
