//! `/v1/crm/bookings`: bookings are created, moved and cancelled once, by the calendar's rules, for a contact of the
//! workspace.

mod availability;
mod changes;
mod costs;
mod facts;
mod filters;
mod ledger;
pub(crate) mod races;
mod stalls;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::contacts::merges::merged;
use crate::world::{Caller, Fact, Reply, World, fact, ids, rendered, uuid};

/// The tests' contact and calendar, and a second one of each.
pub(crate) const LEAD: u64 = 1;
pub(crate) const OTHER_LEAD: u64 = 2;
pub(crate) const CALENDAR: u64 = 10;
pub(crate) const OTHER_CALENDAR: u64 = 11;

impl World {
    /// A coach with two contacts and a calendar that is open around the clock in UTC. Returns a caller with a CRM key.
    pub(crate) async fn booking_coach(&self, id: &str) -> Caller {
        let coach = self.coach(id).await;
        let contacts = [LEAD, OTHER_LEAD].map(|lead| Fact::contact(id, &uuid(lead)));
        self.apply(contacts.into_iter().chain([Fact::calendar(id, &uuid(CALENDAR))])).await;
        coach.crm_key().await
    }

    /// Midnight in UTC, `days` days from now.
    pub(crate) async fn midnight_in(&self, days: i64) -> DateTime<Utc> {
        let today = self.now().await.date_naive();
        (today + TimeDelta::days(days)).and_hms_opt(0, 0, 0).unwrap().and_utc()
    }
}

/// A confirmed event on a coach's calendar, without a contact.
pub(crate) fn event(coach: &str, id: &str, calendar: Option<u64>, starts: DateTime<Utc>, minutes: i64) -> Fact {
    let detail = json!({
        "event_id": id, "coach_id": coach, "calendar_id": calendar.map(uuid), "lead_id": null, "starts_at": rendered(starts),
        "ends_at": rendered(starts + TimeDelta::minutes(minutes)), "status": "confirmed",
    });
    fact("calendar_event.saved", detail)
}

/// Body of a request that books `LEAD` on `CALENDAR`.
pub(crate) fn slot(date: NaiveDate, time: &str) -> Value {
    json!({ "leadId": uuid(LEAD), "calendarId": uuid(CALENDAR), "date": date, "time": time })
}

/// Body of a request that moves a booking of `LEAD`.
pub(crate) fn to(date: NaiveDate, time: &str) -> Value {
    json!({ "leadId": uuid(LEAD), "date": date, "time": time })
}

pub(crate) fn path(booking: &str) -> String {
    format!("/v1/crm/bookings/{booking}")
}

/// A caller who sends each request under an idempotency key of its own.
pub(crate) struct Desk<'w> {
    pub(crate) world: &'w World,
    pub(crate) key: Caller,
}

impl Desk<'_> {
    fn new_key(&self) -> String {
        format!("desk-{}", self.world.number())
    }

    pub(crate) async fn book(&self, draft: Value) -> Reply {
        self.key.post("/v1/crm/bookings", draft).idempotent(&self.new_key()).await
    }

    /// Books, expects success and returns the booking's id.
    pub(crate) async fn booked(&self, draft: Value) -> String {
        let made = self.book(draft).await.expect(201);
        made.body["booking"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn reschedule(&self, booking: &str, to: Value) -> Reply {
        self.key.patch(&path(booking), to).idempotent(&self.new_key()).await
    }

    pub(crate) async fn cancel(&self, booking: &str, lead: u64) -> Reply {
        self.key.delete(&path(booking)).json(&json!({ "leadId": uuid(lead) })).idempotent(&self.new_key()).await
    }

    pub(crate) async fn list(&self) -> Vec<Value> {
        let page = self.key.get("/v1/crm/bookings?limit=200").await.expect(200);
        assert_eq!(page.body["next_cursor"], Value::Null);
        page.body["data"].as_array().unwrap().clone()
    }

    /// Changes of that type on the bus.
    pub(crate) async fn emitted(&self, detail_type: &str) -> Vec<Value> {
        self.world.settle().await;
        self.world.changes(detail_type).await
    }
}

async fn desk(world: &World) -> Desk<'_> {
    Desk { world, key: world.booking_coach("ada").await }
}

#[tokio::test]
async fn a_booking_is_created_listed_and_emitted() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let midnight = world.midnight_in(2).await;
    let made = desk.book(slot(midnight.date_naive(), "09:00")).await.expect(201);
    let booking = &made.body["booking"];
    let starts_at = midnight + TimeDelta::hours(9);
    let expected = json!({
        "id": booking["id"], "calendarId": uuid(CALENDAR), "leadId": uuid(LEAD), "startsAt": rendered(starts_at),
        "endsAt": rendered(starts_at + TimeDelta::hours(1)), "timezone": "UTC", "date": midnight.date_naive(), "time": "09:00",
        "status": "confirmed", "createdAt": booking["createdAt"], "updatedAt": booking["createdAt"],
    });
    assert_eq!(made.body, json!({ "ok": true, "booking": expected }));
    assert_eq!(desk.list().await, std::slice::from_ref(booking));
    let emitted = desk.emitted("booking.created").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!((&emitted[0]["booking"], &emitted[0]["coach_id"]), (booking, &json!("ada")));
}

#[tokio::test]
async fn refusals_of_a_booking_come_in_a_fixed_order() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let paid = Fact::calendar("ada", &uuid(OTHER_CALENDAR)).with("price_cents", 5_000);
    let off = Fact::calendar("ada", &uuid(12)).with("active", false).with("price_cents", 1);
    world.apply([paid, off, merged(OTHER_LEAD, LEAD)]).await;
    let date = world.midnight_in(2).await.date_naive();
    let with = |lead: u64, calendar: u64, time: &str| json!({ "leadId": uuid(lead), "calendarId": uuid(calendar), "date": date, "time": time });
    desk.book(with(99, 99, "09:01")).await.refused(404, "not_found");
    let gone = desk.book(with(OTHER_LEAD, 99, "09:01")).await.refused(409, "contact_merged");
    assert_eq!(gone.body["mergedIntoId"], uuid(LEAD));
    for missing in [99, 12] {
        desk.book(with(LEAD, missing, "09:01")).await.refused(404, "not_found");
    }
    let paid = desk.book(with(LEAD, OTHER_CALENDAR, "09:01")).await.refused(409, "checkout_required");
    assert_eq!(paid.body["bookingUrl"], "https://ada.example/book");
    desk.book(with(LEAD, CALENDAR, "09:01")).await.refused(409, "slot_unavailable");
    desk.book(slot(date + TimeDelta::days(100_000), "23:00")).await.refused(409, "slot_unavailable");
    assert!(desk.emitted("booking.created").await.is_empty());
    // The bookings of a calendar that is switched off stay, and do not move.
    let booking = desk.booked(slot(date, "09:00")).await;
    world.apply([Fact::calendar("ada", &uuid(CALENDAR)).with("active", false)]).await;
    assert_eq!(desk.list().await.len(), 1);
    desk.book(slot(date, "12:00")).await.refused(404, "not_found");
    let refused = desk.reschedule(&booking, to(date, "12:00")).await.refused(409, "slot_unavailable");
    assert!(refused.error().contains("takes no bookings"), "{}", refused.text);
    desk.reschedule(&booking, to(date, "09:00")).await.expect(200);
    desk.cancel(&booking, LEAD).await.expect(200);
}

#[tokio::test]
async fn ids_come_in_any_case() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let lead = "00000000-0000-7000-8000-00000000000A";
    let mut draft = slot(world.midnight_in(2).await.date_naive(), "09:00");
    draft["leadId"] = json!(lead);
    world.apply([Fact::contact("ada", &lead.to_lowercase())]).await;
    let made = desk.book(draft).await.expect(201);
    assert_eq!(made.body["booking"]["leadId"], lead.to_lowercase());
    let id = made.body["booking"]["id"].as_str().unwrap().to_uppercase();
    desk.cancel(&id, LEAD).await.refused(404, "not_found");
    let cancelled = desk.key.delete(&path(&id)).json(&json!({ "leadId": lead })).idempotent("upper").await.expect(200);
    assert_eq!(cancelled.body["booking"]["id"], id.to_lowercase());
}

#[tokio::test]
async fn active_calendars_are_listed() {
    let world = World::start().await;
    let desk = desk(&world).await;
    world.apply([21, 20].map(|id| Fact::calendar("ada", &uuid(id)).with("active", id != 21))).await;
    let page = desk.key.get("/v1/crm/calendars").await.expect(200).body;
    assert_eq!(ids(&page), [CALENDAR, 20].map(uuid));
    let expected = json!({
        "id": uuid(CALENDAR), "name": "Calls", "timezone": "UTC", "priceCents": 0, "currency": "USD",
        "bookingUrl": "https://ada.example/book", "durationMinutes": 60,
    });
    assert_eq!(page["data"][0], expected);
}

#[tokio::test]
async fn a_booking_may_overlap_its_old_time_keeps_its_length_and_emits_its_move() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let date = world.midnight_in(2).await.date_naive();
    let booking = desk.booked(slot(date, "09:00")).await;
    let made = desk.list().await.remove(0);
    let halves = Fact::calendar("ada", &uuid(CALENDAR)).with("slot_interval_minutes", 30).with("slot_minutes", 90);
    world.apply([halves.with("price_cents", 9)]).await;
    let moved = desk.reschedule(&booking, to(date, "09:30")).await.expect(200);
    assert_eq!((&moved.body["ok"], &moved.body["previousStartsAt"]), (&json!(true), &made["startsAt"]));
    let mut expected = made.clone();
    expected["startsAt"] = json!(format!("{date}T09:30:00.000Z"));
    expected["endsAt"] = json!(format!("{date}T10:30:00.000Z"));
    expected["time"] = json!("09:30");
    expected["updatedAt"] = moved.body["booking"]["updatedAt"].clone();
    assert_eq!(moved.body["booking"], expected);
    assert_eq!(desk.list().await, [expected.clone()]);

    let same = desk.reschedule(&booking, to(date, "09:30")).await.expect(200);
    assert_eq!((&same.body["booking"], &same.body["previousStartsAt"]), (&expected, &expected["startsAt"]));
    desk.reschedule(&booking, to(date, "09:31")).await.refused(409, "slot_unavailable");
    let emitted = desk.emitted("booking.rescheduled").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!((&emitted[0]["booking"], &emitted[0]["previousStartsAt"]), (&expected, &made["startsAt"]));
}

#[tokio::test]
async fn a_booking_changes_only_for_its_contact_by_each_id_that_merges_have_left() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let date = world.midnight_in(2).await.date_naive();
    let booking = desk.booked(slot(date, "09:00")).await;
    let mut other = to(date, "10:00");
    other["leadId"] = json!(uuid(OTHER_LEAD));
    desk.reschedule(&booking, other.clone()).await.refused(404, "not_found");
    desk.cancel(&booking, OTHER_LEAD).await.refused(404, "not_found");
    desk.cancel(&booking, 99).await.refused(404, "not_found");
    desk.cancel(&uuid(77), LEAD).await.refused(404, "not_found");
    world.apply([Fact::contact("ada", &uuid(3)), merged(LEAD, 3)]).await;
    world.apply([merged(3, OTHER_LEAD)]).await;
    for (lead, time) in [(LEAD, "11:00"), (3, "12:00"), (OTHER_LEAD, "10:00")] {
        let mut by = to(date, time);
        by["leadId"] = json!(uuid(lead));
        let moved = desk.reschedule(&booking, by).await.expect(200);
        assert_eq!(moved.body["booking"]["leadId"], uuid(LEAD), "{lead}");
    }
    // The contact of another booking is named as merged.
    world.apply([Fact::contact("ada", &uuid(4))]).await;
    let mut of_other = slot(date, "14:00");
    of_other["leadId"] = json!(uuid(4));
    let of_other = desk.booked(of_other).await;
    let gone = desk.cancel(&of_other, LEAD).await.refused(409, "contact_merged");
    assert_eq!(gone.body["mergedIntoId"], uuid(OTHER_LEAD));
    desk.cancel(&of_other, OTHER_LEAD).await.refused(404, "not_found");
    for (lead, time) in [(LEAD, "15:00"), (OTHER_LEAD, "16:00")] {
        let booking = {
            let mut draft = slot(date, time);
            draft["leadId"] = json!(uuid(OTHER_LEAD));
            desk.booked(draft).await
        };
        desk.cancel(&booking, lead).await.expect(200);
    }
    desk.cancel(&booking, LEAD).await.expect(200);
    desk.cancel(&booking, OTHER_LEAD).await.expect(200);
}

#[tokio::test]
async fn a_cancelled_booking_frees_its_time_and_is_cancelled_once() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let date = world.midnight_in(1).await.date_naive();
    let booking = desk.booked(slot(date, "09:00")).await;
    let cancelled = desk.cancel(&booking, LEAD).await.expect(200);
    assert_eq!(cancelled.members(), ["booking", "ok"]);
    assert_eq!(cancelled.body["booking"]["status"], "cancelled");
    assert!(desk.list().await.is_empty());
    let next = desk.booked(slot(date, "09:00")).await;
    world.advance_s(60 * 60 * 48).await;
    assert_eq!(desk.cancel(&booking, LEAD).await.expect(200).body, cancelled.body);
    desk.reschedule(&booking, to(date, "10:00")).await.refused(409, "booking_not_active");
    // The second booking is over.
    desk.cancel(&next, LEAD).await.refused(409, "booking_not_active");
    desk.reschedule(&next, to(date, "09:00")).await.refused(409, "booking_not_active");
    assert_eq!(ids(&desk.key.get("/v1/crm/bookings").await.body), [next]);
    assert_eq!(desk.emitted("booking.cancelled").await.len(), 1);
}
