//! `PATCH /v1/test/workspace`: an integrator meets the refusals that a plan and its settings decide elsewhere.

use std::future::IntoFuture;

use chrono::NaiveDate;
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};

use super::items;
use crate::sandbox::{WORKSPACE, patch, record, start, visitor};
use crate::world::{Caller, Reply, World};

const CONTACTS: &str = "/v1/crm/contacts";

/// Creates a client without a mail, under an idempotency key of its own.
async fn create(world: &World, key: &Caller) -> Reply {
    let number = world.number();
    let body = json!({ "email": format!("client-{number}@clients.example"), "send_welcome": false });
    key.post("/v1/clients", body).idempotent(&format!("client-{number}")).await
}

#[tokio::test]
async fn each_switch_gives_a_refusal_and_takes_it_away() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (partner, crm) = (ada.partner_key().await, ada.crm_key().await);
    for (off, on, caller, path, status, code) in [
        (
            json!({ "entitlements": { "partner_api": false } }),
            json!({ "entitlements": { "partner_api": true } }),
            &partner,
            "/v1/ping",
            402,
            "partner_api_not_entitled",
        ),
        (
            json!({ "entitlements": { "pro_crm": false } }),
            json!({ "entitlements": { "pro_crm": true } }),
            &crm,
            CONTACTS,
            403,
            "crm_not_entitled",
        ),
        (
            json!({ "entitlements": { "gym": false } }),
            json!({ "entitlements": { "gym": true } }),
            &crm,
            CONTACTS,
            403,
            "gym_not_enabled",
        ),
        (
            json!({ "crm_configured": false }),
            json!({ "crm_configured": true }),
            &crm,
            CONTACTS,
            403,
            "owner_configuration_missing",
        ),
    ] {
        // A key of either scope changes the workspace, whatever the entitlements are.
        for changer in [&partner, &crm] {
            caller.get(path).await.expect(200);
            patch(changer, off.clone()).await;
            caller.get(path).await.refused(status, code);
            patch(changer, on.clone()).await;
            caller.get(path).await.expect(200);
        }
    }
}

#[tokio::test]
async fn the_client_cap_is_the_plans_limit_until_it_is_lifted() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    create(&world, &key).await.expect(201);
    for (cap, more) in [(0, 0), (1, 0), (3, 2), (100, 1)] {
        patch(&key, json!({ "client_cap": cap })).await;
        for _ in 0..more {
            create(&world, &key).await.expect(201);
        }
        if cap < 100 {
            create(&world, &key).await.refused(409, "plan_limit_reached");
        }
    }
    patch(&key, json!({ "client_cap": null })).await;
    assert!(record(&world, "ada").await.get("client_cap").is_none());
    create(&world, &key).await.expect(201);
    assert_eq!(record(&world, "ada").await["client_count"]["N"], "5");
}

#[tokio::test]
async fn another_time_zone_moves_the_days() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let mut today: Vec<NaiveDate> = Vec::new();
    // 25 hours apart: never the same date.
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
        patch(&key, json!({ "time_zone": zone })).await;
        let shown = key.get("/v1/key").await.expect(200);
        assert_eq!(shown.body["workspace"]["time_zone"], zone);
        today.push(shown.str("today").parse().unwrap());
    }
    assert!(today[0] > today[1], "{today:?}");
}

#[tokio::test]
async fn what_is_not_named_stays_and_the_answer_is_the_workspace_as_its_settings_show_it() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    let settings = ada.settings().await;
    let mut expected = settings.get("/settings/workspace").await.expect(200).body;
    let stored = async || {
        let mut stored = record(&world, "ada").await;
        for own in ["version", "saved_at"] {
            stored.as_object_mut().unwrap().remove(own).unwrap();
        }
        stored
    };
    for (body, member, value) in [
        (json!({ "entitlements": { "gym": false } }), "/entitlements/gym", json!(false)),
        (json!({ "entitlements": { "pro_crm": false } }), "/entitlements/pro_crm", json!(false)),
        (json!({ "entitlements": {} }), "/entitlements/gym", json!(false)),
        (json!({ "client_cap": 5 }), "/entitlements/gym", json!(false)),
        (json!({ "crm_configured": false }), "/crm_configured", json!(false)),
        (json!({ "time_zone": "Asia/Tokyo" }), "/crm_configured", json!(false)),
        (json!({ "entitlements": { "gym": true }, "crm_configured": true }), "/crm_configured", json!(true)),
    ] {
        *expected.pointer_mut(member).unwrap() = value;
        if body["crm_configured"] == true {
            expected["entitlements"]["gym"] = json!(true);
        }
        assert_eq!(patch(&key, body.clone()).await, expected, "{body}");
        assert_eq!(settings.get("/settings/workspace").await.expect(200).body, expected, "{body}");
    }
    let after = stored().await;
    let kept =
        [("client_cap", "N", "5"), ("time_zone", "S", "Asia/Tokyo"), ("name", "S", "Sandbox"), ("email", "S", "")];
    for (member, kind, value) in kept {
        assert_eq!(after[member][kind], value, "{member}");
    }
    // The same again changes nothing.
    patch(&key, json!({ "client_cap": 5, "crm_configured": true })).await;
    assert_eq!(stored().await, after);
}

#[tokio::test]
async fn a_bad_body_names_its_field_and_changes_nothing() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let before = items(&world, "ada", &["WORKSPACE", "CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await;
    for (body, field) in [
        (json!({ "entitlements": true }), "entitlements"),
        (json!({ "entitlements": null }), "entitlements"),
        (json!({ "entitlements": { "gym": "no" } }), "gym"),
        (json!({ "entitlements": { "team": true } }), "team"),
        (json!({ "client_cap": 101 }), "client_cap"),
        (json!({ "client_cap": -1 }), "client_cap"),
        (json!({ "client_cap": 1.5 }), "client_cap"),
        (json!({ "client_cap": "5" }), "client_cap"),
        (json!({ "crm_configured": null }), "crm_configured"),
        (json!({ "crm_configured": 1 }), "crm_configured"),
        (json!({ "time_zone": null }), "time_zone"),
        (json!({ "time_zone": "Mars/Olympus" }), "time_zone"),
        (json!({ "time_zone": "" }), "time_zone"),
        (json!({ "time_zone": 5 }), "time_zone"),
        (json!({ "name": "Ada" }), "name"),
        (json!({ "client_cap": 5, "team_id": null }), "team_id"),
    ] {
        let refused = key.patch(WORKSPACE, body.clone()).await.refused_for(field);
        assert!(refused.str("field").ends_with(field), "{body}: {}", refused.text);
    }
    key.patch(WORKSPACE, json!({})).await.refused(400, "invalid_request");
    for body in [json!([]), json!("gym"), Value::Null] {
        key.patch(WORKSPACE, body).await.refused(400, "invalid_json");
    }
    key.call("PATCH", WORKSPACE).body("{").header("content-type", "application/json").await.expect(400);
    assert_eq!(items(&world, "ada", &["WORKSPACE", "CALENDAR#", "PIPELINE#", "PROGRAMME#"]).await, before);
}

#[tokio::test]
async fn changes_of_different_members_at_once_all_count() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    for round in 0..5 {
        let is_on = round % 2 == 1;
        let changes = [
            json!({ "entitlements": { "pro_crm": is_on } }),
            json!({ "entitlements": { "gym": is_on } }),
            json!({ "crm_configured": is_on }),
            json!({ "client_cap": 10 + round }),
        ];
        let replies = join_all(changes.map(|body| key.patch(WORKSPACE, body).into_future())).await;
        replies.into_iter().for_each(|reply| drop(reply.expect(200)));
        let after = record(&world, "ada").await;
        let entitlements = &after["entitlements"]["M"];
        let switches = [&entitlements["pro_crm"]["BOOL"], &entitlements["gym"]["BOOL"]];
        assert_eq!(switches, [&json!(is_on); 2], "round {round}: {after}");
        assert_eq!(after["crm"].is_object(), is_on, "round {round}: {after}");
        assert_eq!(after["client_cap"]["N"], (10 + round).to_string(), "round {round}");
    }
}

#[tokio::test]
async fn a_change_reaches_every_key_of_the_workspace_and_no_other_workspace() {
    let world = start(Mode::Test).await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (one, two, other) = (ada.partner_key().await, ada.partner_key().await, bob.partner_key().await);
    let before = record(&world, "bob").await;
    patch(&one, json!({ "entitlements": { "partner_api": false }, "time_zone": "Asia/Tokyo" })).await;
    for key in [&one, &two] {
        key.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
    }
    ada.partner_key().await.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
    other.get("/v1/ping").await.expect(200);
    assert_eq!(record(&world, "bob").await, before);
}
