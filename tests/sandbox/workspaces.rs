//! Workspaces: a sandbox makes that of a coach whom it has not seen. `contents` has what it begins with, `changes` what
//! its integrator changes.

mod changes;
mod contents;

use std::collections::BTreeSet;
use std::future::IntoFuture;

use chrono::{Datelike, NaiveDate};
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::sandbox::{patch, record, start, visitor};
use crate::world::{Caller, World, fact};

/// The items of a workspace whose sort keys begin with one of these.
async fn items(world: &World, coach: &str, beginnings: &[&str]) -> Vec<Value> {
    let mut items = world.items("workspaces", &format!("COACH#{coach}")).await;
    items.retain(|item| {
        let sk = item["sk"]["S"].as_str().unwrap();
        item["pk"]["S"] == format!("COACH#{coach}") && beginnings.iter().any(|beginning| sk.starts_with(beginning))
    });
    items
}

/// The days of a calendar's free times, each with its times.
async fn free_days(crm: &Caller, lead: &str, calendar: &Value) -> Vec<(NaiveDate, Vec<Value>)> {
    let body = json!({ "leadId": lead, "calendarId": calendar });
    let answer = crm.post("/v1/crm/bookings/availability", body).await.expect(200).body;
    let days = answer["calendars"][0]["days"].as_array().unwrap();
    let day = |day: &Value| (day["date"].as_str().unwrap().parse().unwrap(), day["slots"].as_array().unwrap().clone());
    days.iter().map(day).collect()
}

/// Returns true for Monday to Friday.
fn is_weekday(date: NaiveDate) -> bool {
    date.weekday().number_from_monday() <= 5
}

#[tokio::test]
async fn the_first_request_to_the_settings_makes_the_workspace_that_the_token_describes() {
    let world = start(Mode::Test).await;
    let long = "x".repeat(300);
    for (coach, claims, name, email, zone) in [
        (
            "named",
            json!({ "name": "Ada Lovelace", "email": "ada@coaches.example", "zoneinfo": "Europe/Berlin" }),
            "Ada Lovelace",
            "ada@coaches.example",
            "Europe/Berlin",
        ),
        ("nameless", json!({}), "Sandbox", "", "UTC"),
        ("odd", json!({ "name": "  ", "zoneinfo": "Mars/Olympus" }), "Sandbox", "", "UTC"),
        ("long", json!({ "name": long.as_str() }), &long[..200], "", "UTC"),
        ("auth0|5f7c", json!({ "name": "Grace" }), "Grace", "", "UTC"),
    ] {
        let settings = world.settings_with_claims(coach, claims).await;
        let expected = json!({
            "coach_id": coach, "name": name, "crm_configured": true,
            "entitlements": { "partner_api": true, "pro_crm": true, "gym": true },
            "keys": { "live": 0, "max": 50 }, "endpoints": { "count": 0, "max": 20 },
        });
        assert_eq!(settings.get("/settings/workspace").await.expect(200).body, expected);
        let stored = record(&world, coach).await;
        for (member, value) in
            [("email", email), ("time_zone", zone), ("country", "US"), ("canonical_host", world.base_url().as_str())]
        {
            assert_eq!(stored[member]["S"], value, "{coach}: {member}");
        }
        for (member, value) in [("client_cap", "100"), ("client_count", "0"), ("active_count", "0"), ("version", "1")] {
            assert_eq!(stored[member]["N"], value, "{coach}: {member}");
        }
        assert!(stored.get("team_id").is_none(), "{stored}");
    }
}

#[tokio::test]
async fn any_request_to_the_settings_is_a_first_one_and_a_later_token_changes_nothing() {
    let world = start(Mode::Test).await;
    let settings = world.settings_with_claims("ada", json!({ "name": "Ada" })).await;
    settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).await.expect(201);
    let renamed = world.settings_with_claims("ada", json!({ "name": "Eve", "zoneinfo": "Asia/Tokyo" })).await;
    assert_eq!(renamed.get("/settings/workspace").await.expect(200).body["name"], "Ada");
    assert_eq!(record(&world, "ada").await["time_zone"]["S"], "UTC");
    // A refused request makes one, too, and no request of another credential does.
    world.settings_of("bob").await.post("/settings/keys", json!({})).await.refused(400, "invalid_request");
    assert_eq!(record(&world, "bob").await["version"]["N"], "1");
    world.anonymous().get("/settings/workspace").await.expect(401);
    let mut records = world.items("workspaces", "COACH#").await;
    records.retain(|item| item["sk"]["S"] == "WORKSPACE");
    assert_eq!(records.len(), 2, "{records:?}");
}

#[tokio::test]
async fn first_requests_at_once_make_one_workspace() {
    let world = start(Mode::Test).await;
    let mut sessions = Vec::new();
    for number in 0..12 {
        sessions.push(world.settings_with_claims("ada", json!({ "name": format!("Name {number}") })).await);
    }
    let requests = sessions.iter().enumerate().map(|(number, settings)| match number % 3 {
        0 => settings.get("/settings/workspace"),
        1 => settings.get("/settings/keys"),
        _ => settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })),
    });
    for (number, reply) in join_all(requests.map(|call| call.into_future())).await.into_iter().enumerate() {
        reply.expect(if number % 3 == 2 { 201 } else { 200 });
    }
    assert_eq!(record(&world, "ada").await["version"]["N"], "1");
    for (beginning, count) in [("CALENDAR#", 2), ("PIPELINE#", 1), ("PROGRAMME#", 1), ("AUTOMATION", 0)] {
        let found = items(&world, "ada", &[beginning]).await;
        assert_eq!(found.len(), count, "{beginning}");
        for item in found.iter().filter(|item| item["version"].is_object()) {
            assert_eq!(item["version"]["N"], "1", "{item}");
        }
    }
    let mut names = BTreeSet::new();
    for settings in &sessions {
        names.insert(settings.get("/settings/workspace").await.expect(200).str("name").to_owned());
    }
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn a_fault_in_a_first_request_leaves_the_whole_workspace_or_none() {
    /// More than the calls of a first request.
    const CALLS: usize = 6;
    let world = start(Mode::Test).await;
    for fault in ["crash_before_call", "crash_after_commit"] {
        for spared in 0..CALLS {
            let coach = format!("{fault}-{spared}");
            let settings = world.settings_of(&coach).await;
            world.faults(json!({ "function": "settings", "spared_calls": spared, fault: 1 })).await;
            let _ = settings.get("/settings/workspace").await;
            world.clear_faults().await;
            let found = items(&world, &coach, &["WORKSPACE", "CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await.len();
            assert!([0, 5].contains(&found), "{coach}: {found}");
            settings.get("/settings/workspace").await.expect(200);
            assert_eq!(items(&world, &coach, &["WORKSPACE", "CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await.len(), 5);
        }
    }
}

#[tokio::test]
async fn a_live_stack_makes_no_workspace() {
    let world = start(Mode::Live).await;
    let settings = world.settings_with_claims("ada", json!({ "name": "Ada", "email": "ada@coaches.example" })).await;
    for call in [
        settings.get("/settings/workspace"),
        settings.get("/settings/keys"),
        settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })),
    ] {
        call.await.refused(409, "workspace_unknown");
    }
    let items = world.items("workspaces", "COACH#ada").await;
    assert!(items.iter().all(|item| item["sk"]["S"] == "SETTINGS"), "{items:?}");
}

#[tokio::test]
async fn a_workspace_of_the_bus_wins_even_with_an_old_date_and_keeps_the_contents() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    let before = items(&world, "ada", &["CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await;
    assert_eq!(before.len(), 4);
    let fed = world.coach("ada").with("occurred_at", "2020-01-02T03:04:05Z").with("name", "Fed");
    fed.with("time_zone", "Asia/Tokyo").client_cap(7).not_entitled().with("crm", Value::Null).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    key.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
    crm.get("/v1/crm/contacts").await.refused(403, "owner_configuration_missing");
    let shown = ada.settings().await.get("/settings/workspace").await.expect(200).body;
    assert_eq!((&shown["name"], &shown["crm_configured"]), (&json!("Fed"), &json!(false)));
    assert_eq!(key.get("/v1/key").await.expect(200).body["workspace"]["time_zone"], "Asia/Tokyo");
    assert_eq!(record(&world, "ada").await["client_cap"]["N"], "7");
    assert_eq!(items(&world, "ada", &["CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await, before);
    // Facts about the contents win, too, whatever their date.
    let pipeline = json!({
        "pipeline_id": "pipeline_test", "coach_id": "ada", "name": "Fed", "occurred_at": "2020-01-02T03:04:05Z",
        "stages": [{ "id": "new", "name": "New", "kind": "open" }],
    });
    world.apply([fact("pipeline.saved", pipeline)]).await;
    let stored = items(&world, "ada", &["PIPELINE#"]).await;
    assert_eq!(stored[0]["pipeline"]["M"]["name"]["S"], "Fed");
    // A later change by the integrator is newer than such a fact.
    patch(&key, json!({ "entitlements": { "partner_api": true } })).await;
    world.coach("ada").with("occurred_at", "2020-01-02T03:04:06Z").not_entitled().await;
    key.get("/v1/ping").await.expect(200);
    world.coach("ada").not_entitled().with("occurred_at", world.timestamp_in(60).await).await;
    key.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
}
