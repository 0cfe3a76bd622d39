//! Delivered computed events: their bodies in both payload modes, and the endpoints that get them.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{SweepScene, automation, check_in, daily_log, dose};
use crate::world::{Endpoint, Fact, Receiver, fact, rendered, time};

const TYPES: [&str; 5] =
    ["compliance_drop", "compliance_milestone", "phase_eligible", "check_in_inactivity", "daily_log_inactivity"];

/// A client of five years with doses on the last six days, a phase since two days ago, and a log and check-in today.
async fn known_client(scene: &SweepScene, now: DateTime<Utc>) {
    let (world, today) = (&scene.world, now.date_naive());
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    world.apply([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    scene.client("c1", now - TimeDelta::days(60)).await;
    let client = Fact::client("ada", "c1")
        .with("created_at", rendered(now - TimeDelta::days(60)))
        .with("programme_id", "p")
        .with("current_phase", "Build")
        .with("phase_started_on", days_from(today, -2).to_string());
    world.apply([client]).await;
    world.apply((-5..=0).map(|n| dose("c1", days_from(today, n)))).await;
    world.apply([daily_log("c1", today), check_in("c1", "k1", now)]).await;
}

fn days_from(date: NaiveDate, n: i64) -> NaiveDate {
    date + TimeDelta::days(n)
}

#[tokio::test]
async fn each_computed_event_is_emitted_once_with_its_automations_context() {
    let scene = SweepScene::new().await;
    let (world, full) = (&scene.world, Receiver::start().await);
    let detailed = world.coach("ada").with("time_zone", "UTC").await.endpoint(&full.url(), "contact_details").await;
    let start = world.now().await;
    let today = start.date_naive();
    known_client(&scene, start).await;
    let triggers = [
        json!({ "event": "compliance_drop", "threshold": 60, "window_days": 7 }),
        json!({ "event": "compliance_milestone", "threshold": 90.5 }),
        json!({ "event": "phase_eligible" }),
        json!({ "event": "check_in_inactivity", "days": 2 }),
        json!({ "event": "daily_log_inactivity", "days": 1 }),
    ];
    for (event, trigger) in TYPES.iter().zip(triggers) {
        world.apply([automation("ada", event, trigger, &[&scene.endpoint, &detailed, &detailed])]).await;
    }
    scene.sweep().await;
    assert_eq!(scene.received(), []);
    let logged_from = world.now().await;
    world.apply([dose("c1", days_from(today, -6))]).await;
    // The next sweep plus the slack of a busy machine.
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
    let person =
        json!({ "id": "c1", "name": "Client c1", "email": "c1@clients.example", "phone": null, "external_id": null });
    assert_eq!((scene.receiver.hooks().len(), full.hooks().len()), (5, 5), "{:?}", scene.received());
    for (event, (at, data)) in TYPES.iter().zip(bodies) {
        let (named, client) = (scene.receiver.hooks_of(event), full.hooks_of(event));
        assert_eq!((named.len(), client.len()), (1, 1), "{event}");
        for (hook, endpoint, client) in
            [(&named[0], &scene.endpoint, json!({ "id": "c1" })), (&client[0], &detailed, person.clone())]
        {
            assert!(hook.is_signed_with(&endpoint.secret));
            assert_eq!(hook.header("content-type"), "application/json");
            let body = hook.json();
            let mut expected = json!({ "type": event, "timestamp": at, "data": data });
            expected["data"]["client"] = client;
            if at.is_empty() {
                // A fact started the match, so the event is dated by the sweep.
                let at = time(&body["timestamp"]);
                assert!(logged_from < at && at <= swept_by, "{body}");
                expected["timestamp"] = body["timestamp"].clone();
            }
            assert_eq!(body, expected);
        }
        assert_eq!(named[0].header("webhook-id"), client[0].header("webhook-id"), "one event for all named endpoints");
        let text = String::from_utf8(named[0].body.clone()).unwrap();
        assert!(!text.contains("Client c1") && !text.contains('@'), "{text}");
    }
}

/// Clients whose last check-in was ten minutes past noon on the day before, plus `minutes` each.
async fn inactive(scene: &SweepScene, clients: &[(&str, i64)]) {
    let noon = noon_of(scene.world.now().await);
    for (client, minutes) in clients {
        scene.client(client, noon - TimeDelta::days(60)).await;
        let submitted_at = noon + TimeDelta::minutes(10 + minutes) - TimeDelta::days(1);
        scene.world.apply([check_in(client, &format!("k-{client}"), submitted_at)]).await;
    }
}

/// The noon that a world is shortly before, or after.
fn noon_of(now: DateTime<Utc>) -> DateTime<Utc> {
    now.date_naive().and_hms_opt(12, 0, 0).unwrap().and_utc()
}

fn no_check_in() -> Value {
    json!({ "event": "check_in_inactivity", "days": 1 })
}

#[tokio::test]
async fn a_step_reaches_the_endpoints_that_exist_at_publishing() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let (off, gone) = (Receiver::start().await, Receiver::start().await);
    let ada = world.coach("ada").with("time_zone", "UTC").await;
    let switched_off = ada.endpoint(&off.url(), "identifiers").await;
    let deleted = ada.endpoint(&gone.url(), "identifiers").await;
    inactive(&scene, &[("c1", 0), ("c2", 60)]).await;
    let rule = |id: &str, endpoints: &[&Endpoint]| automation("ada", id, no_check_in(), endpoints);
    world.apply([rule("off", &[&switched_off]), rule("gone", &[&deleted, &scene.endpoint])]).await;
    let noon = noon_of(world.now().await);
    let settings = ada.settings().await;
    let path = |endpoint: &Endpoint| format!("/settings/webhooks/{}", endpoint.id);

    // c1 matches, and no sweep has run since.
    world.advance_to(noon + TimeDelta::minutes(12)).await;
    settings.patch(&path(&switched_off), json!({ "enabled": false })).await.expect(200);
    world.advance_to(noon + TimeDelta::minutes(20)).await;
    let pair = |client: &str| ("gone".to_owned(), client.to_owned());
    assert_eq!((scene.pairs(), off.hooks().len(), gone.hooks().len()), (vec![pair("c1")], 0, 1));
    let missed = ada.deliveries(&switched_off).await;
    let missed: Vec<_> = missed.iter().map(|delivery| (&delivery["type"], &delivery["status"])).collect();
    assert_eq!(missed, [(&json!("check_in_inactivity"), &json!("failed"))], "the delivery is recorded as not sent");

    // c2 has been evaluated, and its event is in flight.
    world.faults(json!({ "crash_before_call": 1_000_000, "function": "relay" })).await;
    world.advance_s(65 * 60).await;
    settings.delete(&path(&deleted)).await.expect(200);
    world.clear_faults().await;
    world.advance_s(20 * 60).await;
    assert_eq!((scene.pairs(), off.hooks().len(), gone.hooks().len()), (vec![pair("c1"), pair("c2")], 0, 1));
}

#[tokio::test]
async fn deactivated_clients_are_skipped() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
    inactive(&scene, &[("stays", 0), ("goes", 0), ("returns", 30), ("was", -30)]).await;
    world.apply([scene.automation("r", no_check_in())]).await;
    let set = async |client: &str, is_active: bool| {
        let path = format!("/v1/clients/{client}");
        key.patch(&path, json!({ "is_active": is_active })).await.expect(200);
    };
    for client in ["goes", "returns"] {
        set(client, false).await;
    }
    let noon = noon_of(world.now().await);
    world.advance_to(noon + TimeDelta::minutes(8)).await;
    set("returns", true).await;
    world.advance_to(noon + TimeDelta::hours(2)).await;
    set("was", false).await;
    set("was", true).await;
    set("stays", false).await;
    set("stays", true).await;
    // Its match began while it was away.
    set("goes", true).await;
    world.advance_to(noon + TimeDelta::hours(3)).await;
    let received: Vec<_> = scene.pairs().into_iter().map(|(_, client)| client).collect();
    assert_eq!(received, ["returns", "stays"], "inactive clients emit nothing, and no event is emitted twice");
    let at = [10, 40].map(|minutes| ("r".to_owned(), rendered(noon + TimeDelta::minutes(minutes))));
    assert_eq!(scene.episodes(), at);
    let created = key.post("/v1/clients", json!({ "email": "new@example.com", "send_welcome": false })).await;
    let client = created.expect(201).str("client_id").to_owned();
    let created_at = key.get(&format!("/v1/clients/{client}")).await.expect(200).body["created_at"].clone();
    world.advance_s(25 * 3600).await;
    let of_new = scene.received().into_iter().filter(|event| event.client == client && event.event != "new_client");
    let at: Vec<String> = of_new.map(|event| event.at).collect();
    assert_eq!(
        at,
        [rendered(time(&created_at) + TimeDelta::days(1))],
        "who never checked in is inactive since the creation"
    );
}

#[tokio::test]
async fn entering_a_phase_again_on_the_same_date_is_another_entry() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let start = world.now().await;
    let today = start.date_naive().to_string();
    let phase = |name: &str, min_days: u32| json!({ "name": name, "min_days": min_days, "min_compliance_pct": null });
    let phases = [phase("A", 1), phase("B", 0), phase("C", 0)];
    world.apply([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    let client = Fact::client("ada", "c1").with("programme_id", "p").with("current_phase", "A");
    world.apply([client.with("phase_started_on", today).with("backfill", true)]).await;
    world.apply([scene.automation("phase", json!({ "event": "phase_eligible" }))]).await;
    for to in ["B", "A"] {
        world.advance_s(20 * 60).await;
        let at = rendered(world.now().await);
        let advance = json!({ "client_id": "c1", "from_phase": null, "to_phase": to, "advanced_at": at });
        world.apply([fact("phase.advanced", advance)]).await;
    }
    world.advance_s(24 * 3600).await;
    let received: Vec<_> = scene.received().into_iter().map(|event| event.data["current_phase"].clone()).collect();
    assert_eq!(received, ["B", "A"]);
}
