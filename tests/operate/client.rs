//! `client ID`: whose client it is, and the timeline of what is stored.

use serde_json::{Value, json};

use crate::crm::contacts::erasure_scene::{contact, event, opportunity};
use crate::crm::contacts::merges::merged;
use crate::crm::contacts::patch;
use crate::crm::events::endpoint;
use crate::event_feed::reader_of;
use crate::feed::erasure::{MARK, erased, life};
use crate::operate::{operate, operate_as};
use crate::world::{
    Answer, Endpoint, Fact, Invitation, Receiver, World, emitted_events, fact, list, members, time, uuid,
};

/// The contact that becomes the client, and a contact that was merged into it.
pub(super) const CONTACTS: [u64; 2] = [1, 2];
const STRANGER: u64 = 999;
/// The calendar of the scene's events.
const CALENDAR: u64 = 900;
pub(super) const GOAL: &str = "goal of gwendolyn";
pub(super) const NOTES: &str = "notes of gwendolyn";
pub(super) const EXTERNAL_ID: &str = "file of gwendolyn";
const PHONE: &str = "+1 415 555 2671";
/// The end of the phone number, in any notation.
pub(super) const PHONE_END: &str = "2671";

/// A client of the API who was a contact, with something in every place that keeps data about a person. The receiver
/// fails every request and echoes its body, so deliveries wait. The relay is down at the end, so a change waits.
pub(super) struct ClientScene {
    pub(super) world: World,
    pub(super) endpoint: Endpoint,
    pub(super) client: String,
    pub(super) invitation: Invitation,
    _receiver: Receiver,
}

impl ClientScene {
    pub(super) async fn new() -> Self {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        receiver.otherwise(Answer::echo(500));
        let ada = world.coach("ada").await;
        let endpoint = endpoint(&ada, &receiver, &emitted_events(), "contact_details").await;
        reader_of(&ada, &emitted_events(), "contact_details").await;
        let (partner, crm) = (ada.partner_key().await, ada.crm_key().await);
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR))]).await;
        let [lead, other] = CONTACTS;
        world.apply([lead, other, STRANGER].map(contact)).await;
        world.apply([lead, other, STRANGER].map(opportunity)).await;
        world.apply([event(lead)]).await;
        let body = json!({
            "email": format!("{MARK}.{lead}@example.com"), "full_name": format!("{MARK} of the API"), "phone": PHONE,
            "goals": GOAL, "health_notes": NOTES, "external_id": EXTERNAL_ID, "send_welcome": false,
        });
        let created = partner.post("/v1/clients", body).idempotent("create").await.expect(201);
        let client = created.str("client_id").to_owned();
        world.settle().await;
        world.apply([merged(other, lead)]).await;
        patch(&world, &crm, &uuid(lead), json!({ "name": format!("{MARK} renamed") })).await.expect(200);
        world.apply(life(&client, MARK)).await;
        world.faults(json!({ "function": "relay", "crash_before_call": 1_000_000 })).await;
        partner.patch(&format!("/v1/clients/{client}"), json!({ "is_active": false })).await.expect(200);
        let invitation = Invitation::from_reply(&created);
        Self { world, endpoint, client, invitation, _receiver: receiver }
    }
}

#[tokio::test]
async fn a_client_is_shown_by_its_ids_and_dates() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply([Fact::client("ada", "c1").with("full_name", MARK)]).await;
    let shown = operate(&world, &["client", "c1"]).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(members(&shown.json), ["client_id", "coach_id", "created_at", "is_active"]);
    assert_eq!([&shown.json["client_id"], &shown.json["coach_id"]], [&json!("c1"), &json!("ada")]);
    assert_eq!(shown.json["is_active"], true);
    time(&shown.json["created_at"]);
    let with_timeline = operate(&world, &["client", "c1", "--timeline"]).await;
    assert_eq!(with_timeline.json["timeline"], json!([]));
}

#[tokio::test]
async fn an_unknown_client_and_an_erased_one_are_not_found() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    world.apply([erased("c1")]).await;
    for (id, error) in [("nobody", "no client nobody"), ("c1", "client c1 is erased")] {
        for arguments in [&["client", id][..], &["client", id, "--timeline"]] {
            let refused = operate(&world, arguments).await;
            assert_eq!((refused.code, &refused.json), (1, &json!({ "code": "not_found", "error": error })));
        }
    }
}

/// The lines of a kind.
fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// The names of the members that are not null, besides those that every line has.
fn given(line: &Value) -> Vec<&str> {
    let common = ["at", "kind", "type"];
    members(line).into_iter().filter(|name| !common.contains(name) && !line[*name].is_null()).collect()
}

#[tokio::test]
async fn a_timeline_tells_what_happened_in_order_and_nothing_personal() {
    let ClientScene { world, endpoint, client, .. } = &ClientScene::new().await;
    let shown = operate_as(world, "OperatorReadPolicy", &["client", client, "--timeline"]).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let lines = list(shown.json["timeline"].clone());
    for line in &lines {
        assert_eq!(members(line), ["at", "date", "endpoint_id", "id", "kind", "status", "type"]);
    }
    assert!(lines.is_sorted_by_key(|line| time(&line["at"])), "{lines:#?}");
    for text in [MARK, "example.com", PHONE_END, GOAL] {
        assert!(!shown.stdout.contains(text), "{text}");
    }

    let records = of_kind(&lines, "record");
    let mut told: Vec<(&str, Value, Value)> =
        records.iter().map(|line| (line["type"].as_str().unwrap(), line["id"].clone(), line["date"].clone())).collect();
    told.sort_by_key(|(name, ..)| *name);
    let check_in = json!(format!("check-in-{client}"));
    let expected = [
        ("check_in.reviewed", check_in.clone(), Value::Null),
        ("check_in.submitted", check_in, Value::Null),
        ("daily_log.saved", Value::Null, json!("2026-05-01")),
        ("dose.logged", json!(format!("log-{client}")), json!("2026-05-01")),
        ("phase.advanced", Value::Null, json!("2026-05-01")),
    ];
    assert_eq!(told, expected);
    assert!(records.iter().all(|line| line["endpoint_id"].is_null() && line["status"].is_null()));

    let (events, deliveries) = (of_kind(&lines, "event"), of_kind(&lines, "delivery"));
    let types = |lines: &[&Value]| -> Vec<String> {
        let mut types: Vec<String> = lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
        types.sort_unstable();
        types
    };
    assert_eq!(types(&events), types(&deliveries), "each event has its delivery");
    for name in ["new_client", "check_in_submitted", "phase_advanced", "message_received", "contact_created"] {
        assert!(types(&events).iter().any(|other| other == name), "{name}");
    }
    assert!(events.iter().all(|line| given(line) == ["id"]));
    for line in deliveries {
        assert_eq!(given(line), ["endpoint_id", "id", "status"]);
        assert_eq!((&line["endpoint_id"], &line["status"]), (&json!(endpoint.id), &json!("pending")));
    }

    let changes = of_kind(&lines, "change");
    assert_eq!(types(&changes), ["client.activation_changed"]);
    assert_eq!(given(changes[0]), ["id"]);
}

#[tokio::test]
async fn a_timeline_goes_on_after_a_hand_over() {
    let world = World::start().await;
    for coach in ["ada", "eve"] {
        let coach = world.coach(coach).await;
        reader_of(&coach, &["phase_advanced"], "identifiers").await;
    }
    let advanced = |phase: &str, at: &str| {
        let detail = json!({ "client_id": "c1", "from_phase": null, "to_phase": phase, "advanced_at": at });
        fact("phase.advanced", detail)
    };
    world.apply([Fact::client("ada", "c1")]).await;
    world.apply([advanced("Base", "2026-05-01T07:00:00Z")]).await;
    world.advance_s(1).await;
    world.apply([Fact::client("eve", "c1")]).await;
    world.apply([advanced("Build", "2026-06-01T07:00:00Z")]).await;
    let shown = operate(&world, &["client", "c1", "--timeline"]).await;
    assert_eq!(shown.json["coach_id"], "eve");
    let lines = list(shown.json["timeline"].clone());
    let advances = of_kind(&lines, "event").into_iter().filter(|line| line["type"] == "phase_advanced");
    assert_eq!(advances.count(), 2, "{}", shown.stdout);
}
