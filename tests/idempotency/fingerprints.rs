//! Fingerprints of CRM requests: requests that differ only in the spelling of an id are repeats of each other.

use serde_json::json;

use crate::idempotency::rows::assert_replay_of;
use crate::world::{Fact, World};

#[tokio::test]
async fn an_id_is_the_same_in_either_case_and_however_its_path_is_encoded() {
    const LETTERED: &str = "abcdefab-0000-7000-8000-00000000000c";
    const OTHER: &str = "abcdefab-0000-7000-8000-00000000000d";
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    world.apply([Fact::pipeline("ada")]).await;
    let calendar = Fact::calendar("ada", LETTERED).with("slot_minutes", 60);
    world.apply([Fact::contact("ada", LETTERED), Fact::contact("ada", OTHER), calendar]).await;
    let date = world.midnight_in(2).await.date_naive();
    let booking = json!({ "leadId": LETTERED, "calendarId": LETTERED, "date": date, "time": "09:00" });
    let booked = key.post("/v1/crm/bookings", booking.clone()).idempotent("first").await.expect(201);
    let booked = booked.body["booking"]["id"].as_str().unwrap().to_owned();
    let deal = key.post("/v1/crm/opportunities", json!({ "contactId": LETTERED })).idempotent("deal").await.expect(201);
    let deal = deal.body["opportunity"]["id"].as_str().unwrap().to_owned();
    let again = json!({ "leadId": LETTERED, "calendarId": LETTERED, "date": date, "time": "11:00" });
    for (number, (method, path, body)) in [
        ("PATCH", format!("/v1/crm/contacts/{LETTERED}"), json!({ "name": "Lee" })),
        ("PATCH", format!("/v1/crm/opportunities/{deal}"), json!({ "valueCents": 7 })),
        ("POST", "/v1/crm/opportunities".to_owned(), json!({ "contactId": LETTERED })),
        ("POST", "/v1/crm/bookings".to_owned(), again),
        ("PATCH", format!("/v1/crm/bookings/{booked}"), json!({ "leadId": LETTERED, "date": date, "time": "13:00" })),
        ("DELETE", format!("/v1/crm/bookings/{booked}"), json!({ "leadId": LETTERED })),
    ]
    .into_iter()
    .enumerate()
    {
        let once = format!("either-{number}");
        let send = |path: &str, body: &str| {
            key.call(method, path).header("content-type", "application/json").body(body.to_owned()).idempotent(&once)
        };
        let (begin, id) = path.rsplit_once('/').unwrap();
        let named = id.len() == 36;
        let upper = if named { format!("{begin}/{}", id.to_uppercase()) } else { path.clone() };
        let upper_body = body.to_string().replace(LETTERED, &LETTERED.to_uppercase());
        let first = send(&upper, &upper_body).await;
        assert!(first.status < 300, "{method} {path}: {}", first.text);
        assert_replay_of(&send(&path, &body.to_string()).await, &first);
        assert_replay_of(&send(&upper, &body.to_string()).await, &first);
        if named {
            let encoded = format!("{begin}/%{:02X}{}", id.as_bytes()[0], &id[1..]);
            assert_replay_of(&send(&encoded, &upper_body).await, &first);
            let other = format!("{begin}/{OTHER}");
            send(&other, &body.to_string()).await.refused(409, "idempotency_payload_mismatch");
        }
        if body.to_string().contains(LETTERED) {
            let other = body.to_string().replace(LETTERED, OTHER);
            send(&path, &other).await.refused(409, "idempotency_payload_mismatch");
        }
    }
    // A text that is no id is compared as written.
    let named = |name: &str| json!({ "name": name, "email": "case@example.com" });
    key.post("/v1/crm/contacts", named(LETTERED)).idempotent("name").await.expect(201);
    let shouted = key.post("/v1/crm/contacts", named(&LETTERED.to_uppercase())).idempotent("name");
    shouted.await.refused(409, "idempotency_payload_mismatch");
}
