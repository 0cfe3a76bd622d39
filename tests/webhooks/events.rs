//! What happens in a client's life, as receivers are told of it: check-ins, grades, phases, messages.

use serde_json::{Value, json};

use crate::world::{Caller, Endpoint, Fact, Receiver, World, fact};

const ALL_EVENTS: [&str; 6] = [
    "new_client",
    "check_in_submitted",
    "low_check_in_score",
    "system_grade_drop",
    "phase_advanced",
    "message_received",
];

/// A coach whose receiver is told of everything, and her client `c1`, whom it has been told of.
struct Place {
    world: World,
    key: Caller,
    receiver: Receiver,
    endpoint: Endpoint,
}

impl Place {
    async fn new(payload_mode: &str) -> Self {
        let world = World::start().await;
        let receiver = Receiver::start().await;
        let ada = world.coach("ada").await;
        let body = json!({ "url": receiver.url(), "events": ALL_EVENTS, "payload_mode": payload_mode });
        let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        let key = ada.partner_key().await;
        world.facts([Fact::client("ada", "c1").with("backfill", true)]).await;
        assert!(receiver.hooks().is_empty());
        Self { world, key, receiver, endpoint }
    }

    /// The bodies that came for a type of event.
    fn told(&self, event: &str) -> Vec<Value> {
        let hooks = self.receiver.hooks();
        assert!(hooks.iter().all(|hook| hook.verify(&self.endpoint.secret)));
        let of_type = hooks.iter().filter(|hook| hook.header("x-service-event") == event);
        of_type.map(|hook| hook.json()).collect()
    }
}

fn check_in(id: &str, day: u32, grades: Value) -> Fact {
    let submitted_at = format!("2026-05-{day:02}T07:00:00Z");
    let detail = json!({
        "client_id": "c1", "check_in_id": id, "submitted_at": submitted_at, "scores": {"energy": 1}, "grades": grades,
    });
    fact("check_in.submitted", detail)
}

fn advance(to_phase: &str, advanced_at: &str) -> Fact {
    let detail = json!({ "client_id": "c1", "from_phase": null, "to_phase": to_phase, "advanced_at": advanced_at });
    fact("phase.advanced", detail)
}

fn message(id: &str) -> Fact {
    fact("message.received", json!({ "client_id": "c1", "message_id": id, "received_at": "2026-05-01T10:00:00Z" }))
}

#[tokio::test]
async fn a_check_in_is_told_of_once_by_id_and_time_alone() {
    let place = Place::new("identifiers").await;
    let told_of = check_in("k1", 1, json!({"gut": 3}));
    place.world.facts([told_of.clone(), told_of.clone()]).await;
    place.world.facts([told_of.with("occurred_at", place.world.timestamp_in(9).await)]).await;
    let body = json!({
        "type": "check_in_submitted", "timestamp": "2026-05-01T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k1", "submitted_at": "2026-05-01T07:00:00.000Z"} },
    });
    assert_eq!(place.told("check_in_submitted"), [body]);
    assert_eq!(place.receiver.hooks().len(), 1);
}

#[tokio::test]
async fn contact_details_are_added_where_the_endpoint_wants_them() {
    let place = Place::new("contact_details").await;
    place.world.facts([message("m1")]).await;
    let body = json!({
        "type": "message_received", "timestamp": "2026-05-01T10:00:00.000Z",
        "data": {
            "client": {"id": "c1", "name": "Client c1", "email": "c1@clients.example", "phone": null},
            "message": {"id": "m1", "received_at": "2026-05-01T10:00:00.000Z"},
        },
    });
    assert_eq!(place.told("message_received"), [body]);
}

#[tokio::test]
async fn a_grade_that_fell_is_told_of_once_per_check_in_without_saying_which_or_how_far() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    world.facts([check_in("k1", 1, json!({"gut": 3, "sleep": 4}))]).await;
    world.facts([check_in("k2", 2, json!({"gut": 3, "sleep": 5}))]).await;
    assert!(place.told("system_grade_drop").is_empty(), "nothing fell");
    world.facts([check_in("k3", 3, json!({"gut": 2.5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-03T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k3", "submitted_at": "2026-05-03T07:00:00.000Z"} },
    });
    assert_eq!(place.told("system_grade_drop"), std::slice::from_ref(&body));
    world.facts([check_in("late", 1, json!({"gut": 1})), check_in("k3", 3, json!({"gut": 1}))]).await;
    assert_eq!(place.told("system_grade_drop"), [body], "an older check-in, and the same one again, are no drop");
    world.facts([check_in("k4", 4, json!({"gut": 0.5})).with("backfill", true)]).await;
    world.facts([check_in("k5", 5, json!({"gut": 0.4}))]).await;
    let dropped: Vec<Value> =
        place.told("system_grade_drop").iter().map(|body| body["data"]["check_in"]["id"].clone()).collect();
    assert_eq!(dropped, ["k3", "k5"], "a backfill is stored for the next one, and told to nobody");
}

#[tokio::test]
async fn a_grade_that_fell_is_told_of_also_where_the_check_in_before_comes_later() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    world.facts([check_in("k2", 2, json!({"gut": 4, "sleep": 4}))]).await;
    world.facts([check_in("k1", 1, json!({"gut": 5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-02T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k2", "submitted_at": "2026-05-02T07:00:00.000Z"} },
    });
    assert_eq!(place.told("system_grade_drop"), std::slice::from_ref(&body));
    world.facts([check_in("k0", 1, json!({"sleep": 9})).with("submitted_at", "2026-05-01T06:00:00.000Z")]).await;
    assert_eq!(place.told("system_grade_drop"), [body], "another one comes between");
    assert_eq!(place.told("check_in_submitted").len(), 3);
}

#[tokio::test]
async fn a_grade_that_fell_is_told_of_once_though_the_time_of_its_check_in_is_corrected() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    world.facts([check_in("k1", 1, json!({"gut": 5}))]).await;
    world.facts([check_in("k4", 4, json!({"gut": 3}))]).await;
    let id = |body: &Value| body["data"]["check_in"]["id"].clone();
    assert_eq!(place.told("system_grade_drop").iter().map(id).collect::<Vec<_>>(), ["k4"]);
    let corrected = check_in("k4", 4, json!({"gut": 3, "sleep": 3})).with("submitted_at", "2026-05-04T09:00:00.000Z");
    world.facts([corrected]).await;
    // Each comes between the check-in and those that it was compared with.
    world.facts([check_in("k2", 2, json!({"gut": 4}))]).await;
    world.facts([check_in("k3", 3, json!({"sleep": 4}))]).await;
    assert_eq!(place.told("system_grade_drop").iter().map(id).collect::<Vec<_>>(), ["k4"]);
}

#[tokio::test]
async fn grades_of_one_check_in_that_are_of_two_times_are_told_of_as_one() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    world.facts([check_in("k5", 15, json!({"gut": 3, "sleep": 3}))]).await;
    world.facts([check_in("k5", 16, json!({"gut": 3}))]).await;
    world.facts([check_in("k2", 10, json!({"gut": 4, "sleep": 4}))]).await;
    let dropped: Vec<Value> =
        place.told("system_grade_drop").iter().map(|body| body["data"]["check_in"]["id"].clone()).collect();
    assert_eq!(dropped, ["k5"]);
    assert_eq!(place.told("check_in_submitted").len(), 2, "the one that came late is stored and told of");
}

#[tokio::test]
async fn a_check_in_of_a_backfill_is_told_of_neither_when_it_comes_nor_with_one_before_it() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    world.facts([check_in("k2", 2, json!({"gut": 4})).with("backfill", true)]).await;
    world.facts([check_in("k1", 1, json!({"gut": 5}))]).await;
    assert!(place.told("system_grade_drop").is_empty());
    assert_eq!(place.told("check_in_submitted").len(), 1);
    world.facts([check_in("k3", 3, json!({"gut": 3}))]).await;
    assert_eq!(place.told("system_grade_drop")[0]["data"]["check_in"]["id"], "k3");
}

#[tokio::test]
async fn a_deleted_check_in_is_nothing_to_compare_with() {
    let place = Place::new("identifiers").await;
    place.world.facts([check_in("k1", 1, json!({"gut": 5}))]).await;
    place.world.facts([fact("check_in.deleted", json!({ "client_id": "c1", "check_in_id": "k1" }))]).await;
    place.world.facts([check_in("k2", 2, json!({"gut": 1}))]).await;
    assert!(place.told("system_grade_drop").is_empty());
    assert_eq!(place.told("check_in_submitted").len(), 2);
}

#[tokio::test]
async fn a_step_to_a_phase_is_told_and_shown_and_starts_on_its_local_date() {
    let place = Place::new("identifiers").await;
    // One o'clock in the morning, UTC, is still the day before where the coach is.
    let step = advance("Build", "2026-05-02T01:00:00Z");
    place.world.facts([step.clone(), step]).await;
    let body = json!({
        "type": "phase_advanced", "timestamp": "2026-05-02T01:00:00.000Z",
        "data": {
            "client": {"id": "c1"}, "from_phase": null, "to_phase": "Build", "advanced_at": "2026-05-02T01:00:00.000Z",
        },
    });
    assert_eq!(place.told("phase_advanced"), [body]);
    assert_eq!(place.key.get("/v1/clients/c1").await.body["current_phase"], "Build");
    assert_eq!(place.key.get("/v1/clients").await.body["clients"][0]["current_phase"], "Build");
    let stored = &place.world.items("clients", "CLIENT#c1").await[0];
    assert_eq!(stored["phase_started_on"]["S"], "2026-05-01");
}

#[tokio::test]
async fn of_a_phase_what_was_said_last_counts_and_each_step_is_told() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    let phase = async || place.key.get("/v1/clients/c1").await.expect(200).body["current_phase"].clone();
    let at = async |fact: Fact, seconds| fact.with("occurred_at", world.timestamp_in(seconds).await);
    world.facts([at(advance("Peak", "2026-05-03T00:00:00Z"), 30).await]).await;
    world.facts([at(advance("Build", "2026-05-02T00:00:00Z"), 20).await]).await;
    assert_eq!(phase().await, "Peak");
    // The whole record, as it was before the step, keeps all but the phase.
    let renamed = Fact::client("ada", "c1").with("full_name", "Renamed").with("current_phase", "Base");
    world.facts([at(renamed.clone(), 25).await]).await;
    assert_eq!(phase().await, "Peak");
    assert_eq!(place.key.get("/v1/clients/c1").await.body["full_name"], "Renamed");
    world.facts([at(renamed, 40).await]).await;
    assert_eq!(phase().await, "Base", "a changed phase in the record counts");
    world.facts([at(advance("Never", "2026-05-01T00:00:00Z"), 35).await]).await;
    assert_eq!(phase().await, "Base");
    let told: Vec<Value> = place.told("phase_advanced").iter().map(|body| body["data"]["to_phase"].clone()).collect();
    assert_eq!(told, ["Peak", "Build", "Never"], "and fires nothing, while each step does");
}

#[tokio::test]
async fn a_message_is_told_of_once() {
    let place = Place::new("identifiers").await;
    place.world.facts([message("m1"), message("m1"), message("m2")]).await;
    place.world.facts([message("m1"), message("m3").with("backfill", true)]).await;
    let mut told: Vec<Value> =
        place.told("message_received").iter().map(|body| body["data"]["message"]["id"].clone()).collect();
    told.sort_by_key(Value::to_string);
    assert_eq!(told, ["m1", "m2"]);
}

#[tokio::test]
async fn what_happens_after_a_hand_over_is_told_to_the_new_coach() {
    let place = Place::new("identifiers").await;
    place.world.coach("bob").await;
    place.world.facts([message("m1")]).await;
    place.world.facts([Fact::client("bob", "c1")]).await;
    place.world.facts([message("m2"), check_in("k1", 1, json!({})), advance("Build", "2026-05-02T01:00:00Z")]).await;
    assert_eq!(place.receiver.hooks().len(), 1);
}

#[tokio::test]
async fn a_programme_is_stored_as_it_was_said_last() {
    let place = Place::new("identifiers").await;
    let world = &place.world;
    let programme = |name: &str| {
        let phases = json!([{ "name": name, "min_days": 28, "min_compliance_pct": 80, "video": "x" },
                            { "name": "Peak", "min_days": 0, "min_compliance_pct": null }]);
        fact("programme.saved", json!({ "programme_id": "p1", "coach_id": "ada", "phases": phases }))
    };
    world.facts([programme("Base")]).await;
    world.facts([programme("Old").with("occurred_at", "2026-01-01T00:00:00Z")]).await;
    let stored = world.items("workspaces", "COACH#ada").await;
    let stored = stored.iter().find(|item| item["sk"]["S"] == "PROGRAMME#p1").unwrap();
    assert_eq!(stored["phases"]["L"][0]["M"]["name"]["S"], "Base");
    assert!(!stored.to_string().contains("video"));
}
