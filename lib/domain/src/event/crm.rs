//! The events of the CRM: a record before and after a change make the event, whoever made the change. A change that
//! receivers do not see makes none, so neither does a fact that repeats a write of the API.
//!
//! The time of an event is the time at which the service stored the change, as the record shows it. No two changes of
//! a record have the same time.

use super::{
    BookingEvent, BookingRef, BookingRescheduled, ContactCreated, ContactField, ContactMerged, ContactSource,
    ContactUpdated, Event, EventData, EventType, MergedContactRef, OpportunityCreated, OpportunityField,
    OpportunityRef, OpportunityStageChanged, OpportunityUpdated, Person,
};
use crate::booking::{Booking, BookingStatus, CalendarEntry};
use crate::contact::Contact;
use crate::id::{CoachId, ContactId};
use crate::opportunity::OpportunityView;
use crate::time::Timestamp;
use crate::tz::Tz;

impl Event {
    /// Creates `contact_created`.
    pub fn contact_created(coach: &CoachId, contact: &Contact, source: ContactSource) -> Self {
        let at = contact.created_at;
        let data = EventData::ContactCreated(ContactCreated { created_at: at, source });
        Self::of_contact(coach, EventType::ContactCreated, contact, at, data)
    }

    /// Creates `contact_updated`. `None`: no member changed.
    pub fn contact_updated(coach: &CoachId, before: &Contact, contact: &Contact) -> Option<Self> {
        let changed = changed([
            (ContactField::Name, before.name != contact.name),
            (ContactField::Email, before.email != contact.email),
            (ContactField::Phone, before.phone != contact.phone),
            (ContactField::DoNotContact, before.do_not_contact != contact.do_not_contact),
            (ContactField::Marketing, before.marketing != contact.marketing),
            (ContactField::ClientId, before.client_id != contact.client_id),
        ]);
        if changed.is_empty() {
            return None;
        }
        let at = contact.updated_at;
        let data = EventData::ContactUpdated(ContactUpdated { changed, updated_at: at });
        Some(Self::of_contact(coach, EventType::ContactUpdated, contact, at, data))
    }

    /// Creates `contact_merged`: `merged` was merged into the contact that stays.
    pub fn contact_merged(coach: &CoachId, stays: Person, merged: ContactId, at: Timestamp) -> Self {
        let data = EventData::ContactMerged(ContactMerged { merged: MergedContactRef { id: merged } });
        Self::of_record(coach, EventType::ContactMerged, stays, &merged.to_string(), at, data)
    }

    /// Creates `opportunity_created`.
    pub fn opportunity_created(coach: &CoachId, contact: Person, opportunity: &OpportunityView) -> Self {
        let (id, at) = (opportunity.id.to_string(), opportunity.created_at);
        let data = OpportunityCreated { opportunity: OpportunityRef::of(opportunity), created_at: at };
        Self::of_record(coach, EventType::OpportunityCreated, contact, &id, at, EventData::OpportunityCreated(data))
    }

    /// Creates the event of a changed opportunity: `opportunity_stage_changed` if its place changed, otherwise
    /// `opportunity_updated`. `None`: nothing changed but the reason of its loss.
    pub fn opportunity_changed(
        coach: &CoachId,
        contact: Person,
        before: &OpportunityView,
        opportunity: &OpportunityView,
    ) -> Option<Self> {
        let changed = changed([
            (OpportunityField::Name, before.name != opportunity.name),
            (OpportunityField::ValueCents, before.value_cents != opportunity.value_cents),
            (OpportunityField::ContactId, before.contact_id != opportunity.contact_id),
        ]);
        let (id, at) = (opportunity.id.to_string(), opportunity.updated_at);
        let shown = OpportunityRef::of(opportunity);
        let (event_type, data) =
            if (&before.pipeline_id, &before.stage) != (&opportunity.pipeline_id, &opportunity.stage) {
                let data = OpportunityStageChanged {
                    opportunity: shown,
                    from_pipeline_id: before.pipeline_id.clone(),
                    from_stage: before.stage.clone(),
                    from_status: before.status,
                    changed,
                    updated_at: at,
                };
                (EventType::OpportunityStageChanged, EventData::OpportunityStageChanged(data))
            } else if changed.is_empty() {
                return None;
            } else {
                let data = OpportunityUpdated { opportunity: shown, changed, updated_at: at };
                (EventType::OpportunityUpdated, EventData::OpportunityUpdated(data))
            };
        Some(Self::of_record(coach, event_type, contact, &id, at, data))
    }

    /// Creates the event of a calendar event that is new or changed: receivers see it as long as it is confirmed and on
    /// a calendar. `zone` is the zone of the calendar that it is or was on. `None`: receivers see no change, such as
    /// another contact.
    pub fn booking_changed(
        coach: &CoachId,
        contact: Person,
        before: Option<&CalendarEntry>,
        event: &CalendarEntry,
        zone: Tz,
    ) -> Option<Self> {
        let seen = |event: &CalendarEntry| event.view(zone).filter(|_| event.is_confirmed());
        let before = before.and_then(seen);
        let (event_type, data) = match (before, seen(event)) {
            (None, None) => return None,
            (None, Some(booking)) => {
                let data = BookingEvent { booking: BookingRef::of(&booking) };
                (EventType::BookingCreated, EventData::Booking(data))
            }
            (Some(before), Some(booking)) => {
                let place = |booking: &Booking| (booking.calendar_id, booking.starts_at, booking.ends_at);
                if place(&before) == place(&booking) {
                    return None;
                }
                let previous_starts_at = before.starts_at;
                let data = BookingRescheduled { booking: BookingRef::of(&booking), previous_starts_at };
                (EventType::BookingRescheduled, EventData::BookingRescheduled(data))
            }
            (Some(before), None) => {
                // A booking that became a private entry is no longer shown: the event shows it as it was.
                let booking = event.view(zone).unwrap_or(before);
                let booking = BookingRef { status: BookingStatus::Cancelled, ..BookingRef::of(&booking) };
                (EventType::BookingCancelled, EventData::Booking(BookingEvent { booking }))
            }
        };
        Some(Self::of_record(coach, event_type, contact, &event.id.to_string(), event.updated_at, data))
    }

    fn of_contact(coach: &CoachId, event_type: EventType, contact: &Contact, at: Timestamp, data: EventData) -> Self {
        Self::of_record(coach, event_type, Person::contact(contact), &contact.id.to_string(), at, data)
    }

    /// Creates an event of a record. Workspaces may have records of the same id, so the coach is a part of the cause.
    fn of_record(
        coach: &CoachId,
        event_type: EventType,
        contact: Person,
        record: &str,
        at: Timestamp,
        data: EventData,
    ) -> Self {
        Self::about(coach, contact, event_type, &[coach.as_str(), record], at, data)
    }
}

/// The members that changed.
fn changed<F: Copy, const N: usize>(members: [(F, bool); N]) -> Vec<F> {
    members.into_iter().filter(|(_, is_changed)| *is_changed).map(|(member, _)| member).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::PayloadMode;
    use super::*;
    use crate::busy::Span;
    use crate::contact::{ContactDraft, KnownContact};
    use crate::email::Email;
    use crate::id::{CalendarEntryId, CalendarId};

    const ID: &str = "018f0000-0000-7000-8000-000000000001";

    fn coach() -> CoachId {
        CoachId::parse("coach_1").unwrap()
    }

    fn contact() -> Contact {
        let draft = ContactDraft { name: "Ada".to_owned(), email: Email::parse("ada@example.com").unwrap() };
        KnownContact::create(ContactId::parse(ID).unwrap(), &draft, Timestamp::from_ms(1_790_000_000_000)).contact
    }

    /// An event at an hour: on a calendar or private, confirmed or cancelled.
    fn event(on_calendar: bool, confirmed: bool, hour: i64, lead: bool) -> CalendarEntry {
        let starts_at = Timestamp::from_ms(1_790_000_000_000 + hour * 3_600_000);
        serde_json::from_value(json!({
            "id": CalendarEntryId::parse(ID).unwrap(),
            "calendar_id": on_calendar.then(|| CalendarId::parse(ID).unwrap()),
            "lead_id": lead.then(|| ContactId::parse(ID).unwrap()),
            "status": if confirmed { BookingStatus::Confirmed } else { BookingStatus::Cancelled },
            "buffers": null, "created_at": starts_at, "updated_at": starts_at,
            "registers": { "calendar": {}, "lead": {}, "span": {}, "status": {} },
            "starts_at": json!(Span { starts_at, ends_at: starts_at })["starts_at"],
            "ends_at": json!(Span { starts_at, ends_at: starts_at })["ends_at"],
        }))
        .unwrap()
    }

    #[test]
    fn receivers_see_a_calendar_event_while_it_is_confirmed_and_on_a_calendar() {
        let states = [(false, false), (false, true), (true, false), (true, true)];
        for before in states.map(Some).into_iter().chain([None]) {
            for after in states {
                for (hour, lead) in [(0, true), (0, false), (1, true)] {
                    let of = |(on_calendar, confirmed), hour, lead| event(on_calendar, confirmed, hour, lead);
                    let was = before.map(|state| of(state, 0, true));
                    let emitted = Event::booking_changed(
                        &coach(),
                        Person::contact(&contact()),
                        was.as_ref(),
                        &of(after, hour, lead),
                        "UTC".parse().unwrap(),
                    );
                    let expected = match (before == Some((true, true)), after == (true, true)) {
                        (false, false) => None,
                        (false, true) => Some(EventType::BookingCreated),
                        (true, true) => (hour == 1).then_some(EventType::BookingRescheduled),
                        (true, false) => Some(EventType::BookingCancelled),
                    };
                    let emitted_type = emitted.as_ref().map(|event| event.event_type);
                    assert_eq!(emitted_type, expected.map(Into::into), "{before:?} {after:?} {hour}");
                    let status =
                        emitted.map(|event| event.data_for(PayloadMode::Identifiers)["booking"]["status"].take());
                    let is_cancelled = expected == Some(EventType::BookingCancelled);
                    let shown = if is_cancelled { "cancelled" } else { "confirmed" };
                    assert_eq!(status, expected.map(|_| json!(shown)));
                }
            }
        }
    }

    #[test]
    fn a_contact_is_named_by_its_id_and_with_contact_details_by_its_addresses() {
        let ada = contact();
        let renamed =
            Contact { name: "Ada L.".to_owned(), updated_at: ada.created_at.after(ada.created_at), ..ada.clone() };
        assert_eq!(
            Event::contact_updated(&coach(), &ada, &Contact { updated_at: renamed.updated_at, ..ada.clone() }),
            None
        );
        let event = Event::contact_updated(&coach(), &ada, &renamed).unwrap();
        let data = |mode| Value::Object(event.data_for(mode));
        let mut expected = json!({ "contact": { "id": ID }, "changed": ["name"], "updated_at": renamed.updated_at });
        assert_eq!(data(PayloadMode::Identifiers), expected);
        expected["contact"] = json!({ "id": ID, "name": "Ada L.", "email": "ada@example.com", "phone": null });
        assert_eq!(data(PayloadMode::ContactDetails), expected);
        assert_eq!(event.occurred_at, renamed.updated_at);
        let stored: Event = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
        assert_eq!(stored, event);
    }

    #[test]
    fn records_of_two_workspaces_have_events_of_their_own() {
        let ada = contact();
        let id =
            |coach: &str| Event::contact_created(&CoachId::parse(coach).unwrap(), &ada, ContactSource::Application).id;
        assert_ne!(id("coach_1"), id("coach_2"));
        assert_eq!(id("coach_1"), id("coach_1"));
    }
}
