//! First contents: every route has something to answer, and to work with.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::mode::Mode;
use serde_json::{Value, json};

use super::{free_days, is_weekday, items};
use crate::sandbox::{EVALUATE, patch, start, store, visitor};
use crate::world::sweep::{automation, dose, schedule};
use crate::world::{Caller, Fact, Receiver, World, list, rendered, uuid};

const CONTACTS: &str = "/v1/crm/contacts";
const OPPORTUNITIES: &str = "/v1/crm/opportunities";
const BOOKINGS: &str = "/v1/crm/bookings";

/// A new contact of the key's workspace, by its id.
async fn contact(world: &World, crm: &Caller) -> String {
    let number = world.number();
    let body = json!({ "name": "Lee Lead", "email": format!("lee-{number}@leads.example") });
    let made = crm.post(CONTACTS, body).idempotent(&format!("contact-{number}")).await.expect(201);
    made.body["contact"]["id"].as_str().unwrap().to_owned()
}

/// The workspace's calendars: the free one, then the paid one.
async fn calendars(crm: &Caller) -> [Value; 2] {
    list(crm.get("/v1/crm/calendars").await.expect(200).body["data"].clone()).try_into().unwrap()
}

#[tokio::test]
async fn a_new_workspace_has_a_pipeline_for_opportunities_with_every_kind_of_stage() {
    let world = start(Mode::Test).await;
    let crm = visitor(&world, "ada").crm_key().await;
    let contact = contact(&world, &crm).await;
    let made = crm.post(OPPORTUNITIES, json!({ "contactId": contact })).idempotent("one").await.expect(201);
    let opportunity = &made.body["opportunity"];
    for (member, value) in [("pipelineId", "pipeline_test"), ("stage", "new"), ("status", "open")] {
        assert_eq!(opportunity[member], value, "{opportunity}");
    }
    let path = format!("{OPPORTUNITIES}/{}", opportunity["id"].as_str().unwrap());
    let to = async |body: Value| crm.patch(&path, body).idempotent(&format!("to-{}", world.number())).await;
    assert_eq!(to(json!({ "stage": "qualified" })).await.expect(200).body["opportunity"]["status"], "open");
    to(json!({ "stage": "won" })).await.refused(409, "stage_payment_controlled");
    let lost = to(json!({ "stage": "lost", "lostReason": "price" })).await.expect(200);
    assert_eq!(lost.body["opportunity"]["status"], "lost");
}

#[tokio::test]
async fn a_new_workspace_has_a_free_calendar_to_book_and_a_paid_one_to_check_out() {
    let world = start(Mode::Test).await;
    let settings = world.settings_with_claims("ada", json!({ "zoneinfo": "America/New_York" })).await;
    settings.get("/settings/workspace").await.expect(200);
    let crm = visitor(&world, "ada").crm_key().await;
    let lead = contact(&world, &crm).await;
    let [free, paid] = calendars(&crm).await;
    for (calendar, name, price_cents) in [(&free, "Free consultation", 0), (&paid, "Paid session", 9_900)] {
        let id = calendar["id"].as_str().unwrap();
        let expected = json!({
            "id": id, "name": name, "timezone": "America/New_York", "priceCents": price_cents, "currency": "USD",
            "bookingUrl": format!("{}/book/{id}", world.base_url()), "durationMinutes": 30,
        });
        assert_eq!(*calendar, expected);
    }
    let days = free_days(&crm, &lead, &free["id"]).await;
    assert_eq!(days.len(), 30);
    let times: Vec<Value> =
        (18..34).map(|half_hour| json!(format!("{:02}:{:02}", half_hour / 2, half_hour % 2 * 30))).collect();
    // Of today, some times may be over.
    for (date, slots) in &days[1..] {
        let expected: &[Value] = if is_weekday(*date) { &times } else { &[] };
        assert_eq!(slots, expected, "{date}");
    }
    let (date, _) = days[1..].iter().find(|(date, _)| is_weekday(*date)).unwrap();
    let book = async |calendar: &Value| {
        let body = json!({ "leadId": lead, "calendarId": calendar["id"], "date": date, "time": "09:00" });
        crm.post(BOOKINGS, body).idempotent(&format!("book-{}", world.number())).await
    };
    let refused = book(&paid).await.refused(409, "checkout_required");
    assert_eq!(refused.body["bookingUrl"], paid["bookingUrl"]);
    let booked = book(&free).await.expect(201).body["booking"].clone();
    assert_eq!((&booked["status"], &booked["timezone"]), (&json!("confirmed"), &json!("America/New_York")));
    book(&free).await.refused(409, "slot_unavailable");
    let left = free_days(&crm, &lead, &free["id"]).await;
    assert_eq!(left.iter().find(|(other, _)| other == date).unwrap().1, times[1..]);
}

#[tokio::test]
async fn the_ids_of_the_contents_are_those_of_the_coach_in_every_sandbox() {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let world = start(Mode::Test).await;
        let mut of_world = Vec::new();
        for coach in ["ada", "bob"] {
            let crm = visitor(&world, coach).crm_key().await;
            of_world.push(calendars(&crm).await.map(|calendar| calendar["id"].clone()));
        }
        ids.push(of_world);
    }
    assert_eq!(ids[0], ids[1]);
    let distinct: BTreeSet<String> = ids[0].concat().iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), 4);
}

#[tokio::test]
async fn a_client_of_the_first_programme_becomes_eligible_for_its_next_phase() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let today = world.now().await.date_naive();
    let client = |id: &str, days: i64| {
        Fact::client("ada", id)
            .with("created_at", rendered((today - TimeDelta::days(60)).and_hms_opt(9, 0, 0).unwrap().and_utc()))
            .with("programme_id", "programme_test")
            .with("current_phase", "Foundation")
            .with("phase_started_on", (today - TimeDelta::days(days)).to_string())
    };
    let trigger = json!({ "event": "phase_eligible" });
    store(&key, [client("long", 20), client("short", 5), schedule("long", 1), schedule("short", 1)]).await;
    store(&key, [automation("ada", "next-phase", trigger, &[&endpoint])]).await;
    let silent = key.post(EVALUATE, json!({})).await.expect(200).body;
    assert_eq!(silent, json!({ "evaluated": 2, "events": 0, "more": false }));
    let logs = |id: &'static str| (0..7).map(move |days| dose(id, today - TimeDelta::days(days)));
    store(&key, logs("long").chain(logs("short"))).await;
    let evaluated = key.post(EVALUATE, json!({})).await.expect(200).body;
    assert_eq!(evaluated, json!({ "evaluated": 2, "events": 1, "more": false }));
    world.settle().await;
    let hooks = receiver.hooks_of("phase_eligible");
    assert_eq!(hooks.len(), 1, "fourteen days have to pass");
    let body = hooks[0].json();
    assert_eq!((&body["data"]["client"]["id"], &body["data"]["current_phase"]), (&json!("long"), &json!("Foundation")));
}

#[tokio::test]
async fn a_workspace_of_the_bus_gets_the_contents_on_demand_and_keeps_what_it_has() {
    let world = start(Mode::Test).await;
    let ada = world.coach("ada").with("crm", Value::Null).with("time_zone", "Europe/Berlin").await;
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    let contents = ["CALENDAR#", "PIPELINE#", "PROGRAMME#"];
    crm.get(CONTACTS).await.refused(403, "owner_configuration_missing");
    assert_eq!(items(&world, "ada", &contents).await, [] as [Value; 0]);
    // A record of the application with an id of the contents.
    let own = Fact::pipeline("ada").with("pipeline_id", "pipeline_test").with("name", "Own");
    world.apply([own, Fact::calendar("ada", &uuid(1)), Fact::pipeline("ada")]).await;
    let shown = patch(&key, json!({ "crm_configured": true })).await;
    assert_eq!(shown["crm_configured"], true);
    let laid = items(&world, "ada", &contents).await;
    assert_eq!(laid.len(), 6, "{laid:?}");
    let pipeline = laid.iter().find(|item| item["sk"]["S"] == "PIPELINE#pipeline_test").unwrap();
    assert_eq!(pipeline["pipeline"]["M"]["name"]["S"], "Own");
    let listed = list(crm.get("/v1/crm/calendars").await.expect(200).body["data"].clone());
    let zones: Vec<&Value> = listed.iter().filter(|it| it["durationMinutes"] == 30).map(|it| &it["timezone"]).collect();
    assert_eq!(zones, ["Europe/Berlin", "Europe/Berlin"]);
    let contact = contact(&world, &crm).await;
    let made = crm.post(OPPORTUNITIES, json!({ "contactId": contact })).idempotent("one").await.expect(201);
    assert_eq!(made.body["opportunity"]["pipelineId"], "pipeline_test");
    // Again, it changes nothing.
    patch(&key, json!({ "crm_configured": true })).await;
    assert_eq!(items(&world, "ada", &contents).await, laid);
}
