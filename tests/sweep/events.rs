//! Computed events as they are delivered: their bodies in both payload modes, and the endpoints that get them.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{Watched, automation, check_in, daily_log, dose};
use crate::world::{Coach, Endpoint, Fact, Receiver, fact, rendered, time};

const TYPES: [&str; 5] =
    ["compliance_drop", "compliance_milestone", "phase_eligible", "check_in_inactivity", "daily_log_inactivity"];

/// A client of five years, who took a dose on each of the last six days, came to a phase two days ago and kept log and check-in today.
async fn known_client(place: &Watched, now: DateTime<Utc>) {
    let (world, today) = (&place.world, now.date_naive());
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    world.facts([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    place.client("c1", now - TimeDelta::days(60)).await;
    let client = Fact::client("ada", "c1")
        .with("created_at", rendered(now - TimeDelta::days(60)))
        .with("programme_id", "p")
        .with("current_phase", "Build")
        .with("phase_started_on", days_from(today, -2).to_string());
    world.facts([client]).await;
    world.facts((-5..=0).map(|n| dose("c1", days_from(today, n)))).await;
    world.facts([daily_log("c1", today), check_in("c1", "k1", now)]).await;
}

fn days_from(date: NaiveDate, n: i64) -> NaiveDate {
    date + TimeDelta::days(n)
}

#[tokio::test]
async fn each_computed_event_is_told_once_with_the_context_of_its_automation() {
    let place = Watched::new().await;
    let (world, full) = (&place.world, Receiver::start().await);
    let detailed = world.coach("ada").with("time_zone", "UTC").await.endpoint(&full.url(), "contact_details").await;
    let start = world.now().await;
    let today = start.date_naive();
    known_client(&place, start).await;
    let triggers = [
        json!({ "event": "compliance_drop", "threshold": 60, "window_days": 7 }),
        json!({ "event": "compliance_milestone", "threshold": 90.5 }),
        json!({ "event": "phase_eligible" }),
        json!({ "event": "check_in_inactivity", "days": 2 }),
        json!({ "event": "daily_log_inactivity", "days": 1 }),
    ];
    for (event, trigger) in TYPES.iter().zip(triggers) {
        world.facts([automation("ada", event, trigger, &[&place.endpoint, &detailed, &detailed])]).await;
    }
    place.swept().await;
    assert_eq!(place.told(), []);
    let logged_from = world.now().await;
    world.facts([dose("c1", days_from(today, -6))]).await;
    // The next sweep, and what a busy machine takes.
    let swept_by = logged_from + TimeDelta::minutes(17);
    world.advance_s(84 * 3600).await;

    let midnight = |days| format!("{}T00:00:00.000Z", today.checked_add_days(Days::new(days)).unwrap());
    let context =
        |event: &str, threshold: Value| json!({ "id": event, "name": format!("Rule {event}"), "threshold": threshold });
    let bodies = [
        (midnight(3), json!({ "compliance_pct": 57, "automation": context(TYPES[0], json!(60)) })),
        (String::new(), json!({ "compliance_pct": 100, "automation": context(TYPES[1], json!(90.5)) })),
        (
            midnight(3),
            json!({
                "current_phase": "Build", "eligible_since": days_from(today, 3).to_string(),
                "automation": { "id": TYPES[2], "name": format!("Rule {}", TYPES[2]) },
            }),
        ),
        (
            rendered(start + TimeDelta::days(2)),
            json!({ "last_check_in_at": rendered(start), "days_inactive": 2, "automation": context(TYPES[3], json!(2)) }),
        ),
        (
            midnight(2),
            json!({ "last_logged_on": today.to_string(), "days_inactive": 1, "automation": context(TYPES[4], json!(1)) }),
        ),
    ];
    let person = json!({ "id": "c1", "name": "Client c1", "email": "c1@clients.example", "phone": null });
    assert_eq!((place.receiver.hooks().len(), full.hooks().len()), (5, 5), "{:?}", place.told());
    for (event, (at, data)) in TYPES.iter().zip(bodies) {
        let (named, client) = (place.receiver.hooks_of(event), full.hooks_of(event));
        assert_eq!((named.len(), client.len()), (1, 1), "{event}");
        for (hook, endpoint, client) in
            [(&named[0], &place.endpoint, json!({ "id": "c1" })), (&client[0], &detailed, person.clone())]
        {
            assert!(hook.is_signed_with(&endpoint.secret));
            assert_eq!(hook.header("content-type"), "application/json");
            let body = hook.json();
            let mut expected = json!({ "type": event, "timestamp": at, "data": data });
            expected["data"]["client"] = client;
            if at.is_empty() {
                // A fact made the difference: the sweep's time.
                let at = time(&body["timestamp"]);
                assert!(logged_from < at && at <= swept_by, "{body}");
                expected["timestamp"] = body["timestamp"].clone();
            }
            assert_eq!(body, expected);
        }
        assert_eq!(named[0].header("webhook-id"), client[0].header("webhook-id"), "one event for all that are named");
        let text = String::from_utf8(named[0].body.clone()).unwrap();
        assert!(!text.contains("Client c1") && !text.contains('@'), "{text}");
    }
}

/// Clients whose last check-in was a day before ten minutes past noon, and a minute or hours later each.
async fn inactive(place: &Watched, clients: &[(&str, i64)]) {
    let noon = noon_of(place.world.now().await);
    for (client, minutes) in clients {
        place.client(client, noon - TimeDelta::days(60)).await;
        let submitted_at = noon + TimeDelta::minutes(10 + minutes) - TimeDelta::days(1);
        place.world.facts([check_in(client, &format!("k-{client}"), submitted_at)]).await;
    }
}

/// The noon that a world is shortly before, or after.
fn noon_of(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_hms_opt(12, 0, 0).unwrap().and_utc()
}

fn no_check_in() -> Value {
    json!({ "event": "check_in_inactivity", "days": 1 })
}

async fn delivered(coach: &Coach<'_>, endpoint: &Endpoint) -> Vec<(String, String)> {
    let deliveries = coach.deliveries(endpoint).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    deliveries.iter().map(|delivery| (text(&delivery["type"]), text(&delivery["status"]))).collect()
}

#[tokio::test]
async fn a_step_reaches_the_endpoints_that_its_coach_has_when_the_event_goes_out() {
    let place = Watched::new().await;
    let world = &place.world;
    let (theirs, off, gone) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    let bob = world.coach("bob").with("time_zone", "UTC").await;
    let ada = world.coach("ada").with("time_zone", "UTC").await;
    let bobs = bob.endpoint(&theirs.url(), "contact_details").await;
    let switched_off = ada.endpoint(&off.url(), "identifiers").await;
    let deleted = ada.endpoint(&gone.url(), "identifiers").await;
    inactive(&place, &[("c1", 0), ("c2", 60)]).await;
    world
        .facts([
            automation("ada", "theirs", no_check_in(), &[&bobs]),
            automation("ada", "both", no_check_in(), &[&bobs, &place.endpoint]),
            automation("ada", "off", no_check_in(), &[&switched_off]),
            automation("ada", "gone", no_check_in(), &[&deleted, &place.endpoint]),
        ])
        .await;
    let noon = noon_of(world.now().await);
    let settings = ada.settings().await;
    let path = |endpoint: &Endpoint| format!("/settings/webhooks/{}", endpoint.id);

    // c1 has come to match, and no sweep has come since.
    world.travel(noon + TimeDelta::minutes(12)).await;
    settings.patch(&path(&switched_off), json!({ "enabled": false })).await.expect(200);
    world.travel(noon + TimeDelta::minutes(20)).await;
    let told = |automation: &str, client: &str| (automation.to_owned(), client.to_owned());
    assert_eq!(place.pairs(), [told("both", "c1"), told("gone", "c1")]);
    assert_eq!((theirs.hooks().len(), off.hooks().len(), gone.hooks().len()), (0, 0, 1));
    let missed = ("check_in_inactivity".to_owned(), "failed".to_owned());
    assert_eq!(delivered(&ada, &switched_off).await, [missed], "it is recorded as not sent");

    // c2 has been swept, and what is told of it is on its way.
    world.faults(json!({ "crash_before_call": 1_000_000, "function": "relay" })).await;
    world.advance_s(65 * 60).await;
    settings.delete(&path(&deleted)).await.expect(200);
    world.faults(json!({ "crash_before_call": 0, "function": "" })).await;
    world.advance_s(20 * 60).await;
    assert_eq!(place.pairs(), [told("both", "c1"), told("both", "c2"), told("gone", "c1"), told("gone", "c2")]);
    assert_eq!((theirs.hooks().len(), off.hooks().len(), gone.hooks().len()), (0, 0, 1));

    // What was missed can be recovered, once.
    settings.patch(&path(&switched_off), json!({ "enabled": true })).await.expect(200);
    let since = json!({ "since": rendered(noon - TimeDelta::hours(1)) });
    let recovered = settings.post(&format!("{}/recover", path(&switched_off)), since).await.expect(202);
    assert_eq!(recovered.body["deliveries"], 2);
    world.settle().await;
    let clients: Vec<Value> = off.hooks().iter().map(|hook| hook.json()["data"]["client"]["id"].clone()).collect();
    assert_eq!(clients.len(), 2, "{clients:?}");
}

#[tokio::test]
async fn clients_that_the_api_takes_off_the_roster_are_skipped() {
    let place = Watched::new().await;
    let world = &place.world;
    let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
    inactive(&place, &[("stays", 0), ("goes", 0), ("returns", 30), ("was", -30)]).await;
    world.facts([place.automation("r", no_check_in())]).await;
    let set = async |client: &str, is_active: bool| {
        let path = format!("/v1/clients/{client}");
        key.patch(&path, json!({ "is_active": is_active })).await.expect(200);
    };
    for client in ["goes", "returns"] {
        set(client, false).await;
    }
    let noon = noon_of(world.now().await);
    world.travel(noon + TimeDelta::minutes(8)).await;
    set("returns", true).await;
    world.travel(noon + TimeDelta::hours(2)).await;
    set("was", false).await;
    set("was", true).await;
    set("stays", false).await;
    set("stays", true).await;
    world.travel(noon + TimeDelta::hours(3)).await;
    let told: Vec<_> = place.pairs().into_iter().map(|(_, client)| client).collect();
    assert_eq!(
        told,
        ["returns", "stays"],
        "who is off is not told of, and who was told of before is not told of again"
    );
    let at = [10, 40].map(|minutes| ("r".to_owned(), rendered(noon + TimeDelta::minutes(minutes))));
    assert_eq!(place.episodes(), at);
    let created = key.post("/v1/clients", json!({ "email": "new@example.com", "send_welcome": false })).await;
    let client = created.expect(201).str("client_id").to_owned();
    let created_at = key.get(&format!("/v1/clients/{client}")).await.expect(200).body["created_at"].clone();
    world.advance_s(25 * 3600).await;
    let of_new = place.told().into_iter().filter(|told| told.client == client && told.event != "new_client");
    let at: Vec<String> = of_new.map(|told| told.at).collect();
    assert_eq!(
        at,
        [rendered(time(&created_at) + TimeDelta::days(1))],
        "who never checked in is inactive since the creation"
    );
}

#[tokio::test]
async fn a_client_that_the_api_takes_off_the_roster_before_the_sweep_is_not_told_of_then_or_when_it_returns() {
    let place = Watched::new().await;
    let world = &place.world;
    let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
    inactive(&place, &[("goes", 0)]).await;
    world.facts([place.automation("r", no_check_in())]).await;
    // Due at ten past, by a schedule that comes each quarter of an hour.
    let noon = noon_of(world.now().await);
    world.travel(noon + TimeDelta::minutes(12)).await;
    assert_eq!(place.told(), []);
    for is_active in [false, true] {
        key.patch("/v1/clients/goes", json!({ "is_active": is_active })).await.expect(200);
        world.advance_s(3600).await;
    }
    assert_eq!(place.pairs(), []);
}

#[tokio::test]
async fn what_a_client_matches_before_its_first_sweep_is_seeded_and_what_it_comes_to_match_then_is_told() {
    let place = Watched::new().await;
    let world = &place.world;
    let today = world.now().await.date_naive();
    let trigger = json!({ "event": "compliance_milestone", "threshold": 100 });
    world.facts([place.automation("full", trigger)]).await;
    world.advance_s(20 * 60).await;
    let fields = json!({ "email": "new@example.com", "send_welcome": false });
    let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
    let created = key.post("/v1/clients", fields).await.expect(201).str("client_id").to_owned();
    for id in [created.as_str(), "imported"] {
        if id == "imported" {
            world.facts([Fact::client("ada", id)]).await;
        }
        let since = json!([{ "dose_id": "d", "per_day": 1, "from": today.to_string(), "until": null }]);
        world.facts([fact("dose_schedule.saved", json!({ "client_id": id, "doses": since }))]).await;
    }
    world.facts([Fact::client("ada", "matches")]).await;
    let since = json!([{ "dose_id": "d", "per_day": 1, "from": today.to_string(), "until": null }]);
    world.facts([fact("dose_schedule.saved", json!({ "client_id": "matches", "doses": since }))]).await;
    world.facts([dose("matches", today)]).await;
    world.advance_s(16 * 60).await;
    assert_eq!(place.pairs(), []);
    world.facts([created.as_str(), "imported"].map(|id| dose(id, today))).await;
    world.advance_s(16 * 60).await;
    let mut told: Vec<_> = place.told().into_iter().map(|told| told.client).collect();
    told.sort();
    let mut expected = vec![created, "imported".to_owned()];
    expected.sort();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_phase_that_is_entered_again_on_the_same_date_is_another_entry() {
    let place = Watched::new().await;
    let world = &place.world;
    let start = world.now().await;
    let today = start.date_naive().to_string();
    let phase = |name: &str, min_days: u32| json!({ "name": name, "min_days": min_days, "min_compliance_pct": null });
    let phases = [phase("A", 1), phase("B", 0), phase("C", 0)];
    world.facts([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    let client = Fact::client("ada", "c1").with("programme_id", "p").with("current_phase", "A");
    world.facts([client.with("phase_started_on", today).with("backfill", true)]).await;
    world.facts([place.automation("phase", json!({ "event": "phase_eligible" }))]).await;
    for to in ["B", "A"] {
        world.advance_s(20 * 60).await;
        let at = rendered(world.now().await);
        let advance = json!({ "client_id": "c1", "from_phase": null, "to_phase": to, "advanced_at": at });
        world.facts([fact("phase.advanced", advance)]).await;
    }
    world.advance_s(24 * 3600).await;
    let told: Vec<_> = place.told().into_iter().map(|told| told.data["current_phase"].clone()).collect();
    assert_eq!(told, ["B", "A"]);
}

#[tokio::test]
async fn seven_days_are_between_drops_though_the_automation_waited_for_an_emitted_event_since() {
    let place = Watched::new().await;
    let world = &place.world;
    let now = world.now().await;
    let day = |n: i64| (now + TimeDelta::days(n)).date_naive();
    let at = |n: i64, hour: u32| day(n).and_hms_opt(hour, 0, 0).unwrap().and_utc();
    place.client("c", now - TimeDelta::days(60)).await;
    // Four of seven days, three from the 2nd on.
    world.facts((-5..=-2).map(|n| dose("c", day(n)))).await;
    let drop = json!({ "event": "compliance_drop", "threshold": 50, "window_days": 7 });
    world.facts([place.automation("a", drop.clone())]).await;
    place.until(at(2, 1)).await;
    assert_eq!(place.told().len(), 1);
    world.facts([place.automation("a", json!({ "event": "new_client" }))]).await;
    place.until(at(2, 12)).await;
    // Back at five, and at three on the 4th.
    world.facts([dose("c", day(1)), dose("c", day(2))]).await;
    place.until(at(3, 1)).await;
    world.facts([place.automation("a", drop)]).await;
    place.until(at(6, 0)).await;
    assert_eq!(place.told().len(), 1);
}
