//! Bookings that stall between their reads and their write, while what they have read changes.

use std::future::IntoFuture;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::crm::bookings::{CALENDAR, Desk, LEAD, OTHER_LEAD, event, path, slot, to};
use crate::crm::contacts::merges::merged;
use crate::world::{Call, Fact, Reply, World, uuid};

/// Calls of a write before its transaction: the key, the claim, and two reads.
const BEFORE_THE_WRITE: usize = 4;

/// Sends a call that stalls before its transaction.
async fn stalled(world: &World, call: Call) -> JoinHandle<Reply> {
    let stall = json!({ "function": "crm-bookings", "spared_calls": BEFORE_THE_WRITE, "stalled_calls": 1 });
    world.faults(stall).await;
    let call = tokio::spawn(call.into_future());
    world.until_stalled().await;
    call
}

async fn resume(world: &World, call: JoinHandle<Reply>) -> Reply {
    world.clear_faults().await;
    call.await.unwrap()
}

/// A coach whose bookings have buffers of 15 minutes before and 30 minutes after.
async fn desk(world: &World) -> (Desk<'_>, DateTime<Utc>) {
    let desk = Desk { world, key: world.booking_coach("ada").await };
    world.apply([buffered()]).await;
    (desk, world.midnight_in(3).await)
}

fn buffered() -> Fact {
    Fact::calendar("ada", &uuid(CALENDAR))
        .with("slot_interval_minutes", 5)
        .with("buffer_before_minutes", 15)
        .with("buffer_after_minutes", 30)
}

#[tokio::test]
async fn a_stalled_move_outdates_facts_from_before_its_commit() {
    let world = World::start().await;
    let (desk, midnight) = desk(&world).await;
    let date = midnight.date_naive();
    let booking = desk.booked(slot(date, "09:00")).await;
    let call = desk.key.patch(&path(&booking), to(date, "12:00")).idempotent("stalls");
    let slow = stalled(&world, call).await;
    world.advance_s(10).await;
    let between = world.timestamp_in(0).await;
    world.advance_s(10).await;
    desk.reschedule(&booking, to(date, "11:00")).await.expect(200);
    resume(&world, slow).await.expect(200);
    let moved = desk.list().await;
    assert_eq!(moved[0]["time"], "12:00");
    let older = event("ada", &booking, None, midnight + TimeDelta::hours(9), 60)
        .with("calendar_id", uuid(CALENDAR))
        .with("lead_id", uuid(LEAD))
        .with("occurred_at", between);
    world.apply([older]).await;
    assert_eq!(desk.list().await, moved);
}

#[tokio::test]
async fn a_booking_is_decided_again_after_a_change_since_its_reads() {
    let world = World::start().await;
    let (desk, midnight) = desk(&world).await;
    let at = |minutes: i64| midnight + TimeDelta::minutes(minutes);
    let private = |id: u64, starts: i64, minutes: i64| event("ada", &uuid(id), None, at(starts), minutes);
    // One booking at midnight for each case, on days of their own.
    let cases = [
        (buffered().with("active", false), 404, "not_found"),
        (buffered().with("price_cents", 1), 409, "checkout_required"),
        (buffered().with("slot_minutes", 55), 201, ""),
        (private(61, 4 * 1_440 + 30, 5), 409, "slot_unavailable"),
        // The event ends on the day before, within the 15 minutes.
        (private(62, 5 * 1_440 - 60, 46), 409, "slot_unavailable"),
        (private(63, 6 * 1_440 - 60, 45), 201, ""),
        (merged(OTHER_LEAD, LEAD), 409, "contact_merged"),
        (private(64, -40 * 1_440, 60 * 1_440), 409, "slot_unavailable"),
    ];
    for (n, (change, status, code)) in cases.into_iter().enumerate() {
        world.apply([buffered()]).await;
        let mut draft = slot((midnight + TimeDelta::days(n as i64 + 1)).date_naive(), "00:00");
        draft["leadId"] = json!(uuid(if code == "contact_merged" { OTHER_LEAD } else { LEAD }));
        let booking = desk.key.post("/v1/crm/bookings", draft).idempotent(&format!("stalled-{n}"));
        let call = stalled(&world, booking).await;
        world.apply([change.clone()]).await;
        let reply = resume(&world, call).await.expect(status);
        assert_eq!(reply.body["code"].as_str().unwrap_or_default(), code, "{change:?}");
    }
    let listed = desk.list().await;
    let minutes = |booking: &serde_json::Value| booking["endsAt"].as_str().unwrap()[14..16].to_owned();
    assert_eq!(listed.iter().map(minutes).collect::<Vec<_>>(), ["55", "00"], "by the current duration");
}

#[tokio::test]
async fn overlapping_bookings_across_midnight_conflict_even_on_different_days() {
    let world = World::start().await;
    let (desk, midnight) = desk(&world).await;
    let (day, next) = (midnight.date_naive(), (midnight + TimeDelta::days(1)).date_naive());
    let late = desk.key.post("/v1/crm/bookings", slot(day, "22:50")).idempotent("late");
    let call = stalled(&world, late).await;
    desk.booked(slot(next, "00:15")).await;
    resume(&world, call).await.refused(409, "slot_unavailable");
    desk.booked(slot(day, "22:45")).await;
}

#[tokio::test]
async fn a_move_and_a_cancellation_of_one_booking_do_not_both_succeed() {
    let world = World::start().await;
    let (desk, midnight) = desk(&world).await;
    let date = midnight.date_naive();
    let booking = desk.booked(slot(date, "09:00")).await;
    let call = stalled(&world, desk.key.patch(&path(&booking), to(date, "15:00")).idempotent("move")).await;
    let cancelled = desk.cancel(&booking, LEAD).await.expect(200);
    resume(&world, call).await.refused(409, "booking_not_active");
    assert_eq!(desk.cancel(&booking, LEAD).await.body, cancelled.body);

    let booking = desk.booked(slot(date, "09:00")).await;
    let cancel = desk.key.delete(&path(&booking)).json(&json!({ "leadId": uuid(LEAD) })).idempotent("cancel");
    let call = stalled(&world, cancel).await;
    desk.reschedule(&booking, to(date, "15:00")).await.expect(200);
    let cancelled = resume(&world, call).await.expect(200);
    assert_eq!(cancelled.body["booking"]["time"], "15:00");
    assert!(desk.list().await.is_empty());
    let taken = world.buckets("ada").await.into_iter().filter(|(_, entries)| entries != &json!({})).count();
    assert_eq!(taken, 0, "no trace of the booking is left");
}
