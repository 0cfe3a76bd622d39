//! What receivers' answers make of an endpoint and of what waits for it: asking for patience, gone for good, failing for days.

use std::future::IntoFuture;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Answer, Caller, Coach, Endpoint, Fact, Receiver, World, list, time};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// A coach's receiver, which is told of new clients with their contact details.
pub(crate) struct Place {
    pub(crate) world: World,
    pub(crate) receiver: Receiver,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self { world: World::start().await, receiver: Receiver::start().await }
    }

    pub(crate) async fn coach(&self) -> (Coach<'_>, Endpoint, Caller) {
        let ada = self.world.coach("ada").await;
        let endpoint = ada.endpoint(&self.receiver.url(), "contact_details").await;
        let settings = ada.settings().await;
        (ada, endpoint, settings)
    }

    /// An event: a new client.
    pub(crate) async fn event(&self, client: &str) {
        self.world.facts([Fact::client("ada", client)]).await;
    }

    /// An event that its receiver takes when it is tried again.
    async fn event_taken_late(&self, client: &str) {
        self.receiver.script([Answer::status(500)]);
        self.event(client).await;
        self.world.advance_s(10).await;
    }

    /// Such an event whose deliverer dies when it has recorded that, and is about to note that the endpoint works. Another one before it tells
    /// how many calls that takes.
    async fn event_taken_and_not_noted(&self) {
        self.event_taken_late("noted").await;
        let calls = self.world.calls("deliver").await[0]["calls"].as_array().unwrap().len();
        self.receiver.script([Answer::status(500)]);
        self.event("not-noted").await;
        let crash = json!({ "function": "deliver", "spared_calls": calls - 1, "crash_before_call": 1 });
        self.world.faults(crash).await;
        self.world.advance_s(10).await;
        assert_eq!(self.world.local_faults().await["crash_before_call"], 0);
        self.world.faults(json!({ "function": "", "spared_calls": 0 })).await;
        assert_eq!(self.receiver.hooks().len(), 2 * 2);
    }

    /// Since when the one endpoint has failed, as it is stored.
    pub(crate) async fn failing_since(&self) -> Value {
        let mut items = self.world.items("workspaces", "COACH#ada").await;
        items.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("ENDPOINT#"));
        items[0]["health"]["M"]["failing_since"]["S"].clone()
    }
}

async fn state(settings: &Caller, endpoint: &Endpoint) -> Value {
    settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200).body
}

/// Whole seconds from the first attempt to when the next is due.
fn gap_s(delivery: &Value) -> i64 {
    (time(&delivery["next_attempt_at"]) - time(&delivery["attempts"][0]["at"])).num_seconds()
}

#[tokio::test]
async fn a_busy_receiver_is_left_alone_for_as_long_as_it_asks_up_to_an_hour() {
    let place = Place::new().await;
    let (ada, endpoint, _) = place.coach().await;
    let in_ten_minutes = (place.world.now().await + chrono::TimeDelta::minutes(10)).format("%a, %d %b %Y %H:%M:%S GMT");
    for (n, (status, retry_after, gap)) in [
        (429, "600".to_owned(), 600..602),
        (503, "600".to_owned(), 600..602),
        (429, in_ten_minutes.to_string(), 590..602),
        (429, "99999999999".to_owned(), 3_600..3_602),
        (503, "-600".to_owned(), 5..7),
        (503, "soon".to_owned(), 5..7),
        (429, "1".to_owned(), 5..7),
        (500, "600".to_owned(), 5..7),
    ]
    .into_iter()
    .enumerate()
    {
        place.receiver.script([Answer::status(status).header("retry-after", &retry_after)]);
        place.event(&format!("c{n}")).await;
        let delivery = &ada.deliveries(&endpoint).await[0];
        assert!(gap.contains(&gap_s(delivery)), "{status} {retry_after}: {delivery}");
    }
}

#[tokio::test]
async fn a_receiver_that_answers_410_gets_nothing_more_for_good() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    place.receiver.script([Answer::status(500), Answer::status(410)]);
    place.event("waits").await;
    place.event("gone").await;
    let seen = place.receiver.hooks().len();
    let gone = state(&settings, &endpoint).await;
    assert_eq!((gone["status"].as_str(), gone["disabled_at"].is_string()), (Some("gone"), true));
    assert!(gone["disabled_reason"].as_str().unwrap().contains("410"));
    for delivery in ada.deliveries(&endpoint).await {
        assert_eq!(delivery["status"], "failed", "what waits ends at once");
        assert!(delivery["next_attempt_at"].is_null());
    }
    place.event("later").await;
    place.world.advance_s(2 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), seen);
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": true })).await.refused(409, "endpoint_gone");
    for what in ["test", "recover"] {
        let call = settings.post(&format!("{path}/{what}"), json!({ "since": "2026-01-01T00:00:00Z" }));
        let call = if what == "test" { settings.post(&format!("{path}/{what}"), json!({})) } else { call };
        call.await.refused(409, "endpoint_gone");
    }
    let told = place.world.outgoing("endpoint.disabled").await;
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["coach_id"], &told[0]["endpoint"]["status"]), (&json!("ada"), &json!("gone")));
    assert!(!told[0].to_string().contains("/hook"), "of the address the host alone");
    assert_eq!(told[0]["endpoint"]["host"], "127.0.0.1");
}

#[tokio::test]
async fn a_410_from_an_address_that_is_not_the_endpoint_s_any_more_ends_nothing() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    place.receiver.script([Answer::status(410).after(Duration::from_secs(1))]);
    place.world.put([Fact::client("ada", "c1")]).await;
    while place.receiver.hooks().is_empty() {
        place.world.now().await;
    }
    let moved = json!({ "url": format!("{}/moved", place.receiver.url()) });
    settings.patch(&format!("/settings/webhooks/{}", endpoint.id), moved).await.expect(200);
    place.world.settle().await;
    assert_eq!(state(&settings, &endpoint).await["status"], "enabled");
    assert_eq!(ada.deliveries(&endpoint).await[0]["attempts"][0]["status_code"], 410);
    place.world.advance_s(60).await;
    let delivered = &ada.deliveries(&endpoint).await[0];
    assert_eq!((&delivered["status"], delivered["attempts"].as_array().unwrap().len()), (&json!("delivered"), 2));
    let paths: Vec<String> = place.receiver.hooks().into_iter().map(|hook| hook.path).collect();
    assert_eq!(paths, ["/hook", "/hook/moved"]);
    assert!(place.world.outgoing("endpoint.disabled").await.is_empty() && place.world.mail().await.is_empty());
}

#[tokio::test]
async fn an_endpoint_is_switched_off_or_deleted_though_what_waits_cannot_be_ended_now() {
    let place = Place::new().await;
    let (_, endpoint, settings) = place.coach().await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    let fail = async |spared: usize, failures: u32| {
        place.world.faults(json!({ "function": "settings", "spared_calls": spared, "store_failures": failures })).await;
    };
    // The change itself takes as many as this, and so does the deletion.
    settings.patch(&path, json!({ "description": "Calls are counted" })).await.expect(200);
    let change = place.world.calls("settings").await[0]["calls"].as_array().unwrap().len();
    fail(change, 20).await;
    let off = settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    assert_eq!(off.body["status"], "disabled");
    fail(0, 0).await;
    assert_eq!(state(&settings, &endpoint).await["status"], "disabled");
    fail(change, 20).await;
    settings.delete(&path).await.expect(200);
    fail(0, 0).await;
    settings.get(&path).await.refused(404, "not_found");
    // What was left waiting ends when it is due.
    let seen = place.receiver.hooks().len();
    place.world.advance_s(2 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), seen);
}

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_over_three_events_is_switched_off_and_can_be_switched_on_again() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    let status = async || state(&settings, &endpoint).await["status"].clone();
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    place.world.advance_s(2 * DAY_S).await;
    place.event("c2").await;
    place.world.advance_s(3 * DAY_S - 2 * HOUR_S).await;
    place.event("c3").await;
    place.world.advance_s(60).await;
    assert_eq!(status().await, "enabled", "two hours too early");
    place.world.advance_s(4 * HOUR_S + 600).await;
    let off = state(&settings, &endpoint).await;
    assert_eq!(off["status"], "disabled", "at the first attempt after five days");
    assert!(off["disabled_reason"].as_str().unwrap().contains("failed since"));
    let waiting = ada.deliveries(&endpoint).await.into_iter().filter(|delivery| delivery["status"] == "pending");
    assert_eq!(waiting.count(), 0);
    assert_eq!(place.world.outgoing("endpoint.disabled").await.len(), 1);
    // Why, says the log of the delivery that it was judged by, and of what happens meanwhile.
    let why = format!("not sent: endpoint disabled: {}", off["disabled_reason"].as_str().unwrap());
    let judged = ada.deliveries(&endpoint).await.remove(0);
    let lines = list(judged["attempts"].clone());
    assert_eq!((&judged["status"], &lines[lines.len() - 1]["error"]), (&json!("failed"), &json!(why)));
    assert_eq!(lines[lines.len() - 2]["status_code"], 500);
    place.event("c4").await;
    let missed = &ada.deliveries(&endpoint).await[0];
    assert_eq!((&missed["status"], &missed["attempts"][0]["error"]), (&json!("failed"), &json!(why)));
    // Switched on by hand it has its time anew.
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    place.event("c5").await;
    place.world.advance_s(HOUR_S).await;
    assert_eq!(status().await, "enabled");
}

#[tokio::test]
async fn the_coach_is_mailed_once_after_a_day_of_failing_and_once_when_the_endpoint_is_off() {
    let place = Place::new().await;
    let _ = place.coach().await;
    place.receiver.otherwise(Answer::status(500));
    for (client, days) in [("c1", 2), ("c2", 2), ("c3", 2)] {
        place.event(client).await;
        place.world.advance_s(days * DAY_S).await;
    }
    let mails = place.world.mail().await;
    let subjects: Vec<&str> = mails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["Webhooks to 127.0.0.1 fail", "Webhooks to 127.0.0.1 are switched off"]);
    assert!(mails.iter().all(|mail| mail["to"] == "ada@coaches.example" && !mail.to_string().contains("/hook")));
}

#[tokio::test]
async fn a_success_and_a_lack_of_events_keep_an_endpoint_on() {
    let place = Place::new().await;
    let (_, endpoint, settings) = place.coach().await;
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    place.event("c2").await;
    place.world.advance_s(6 * DAY_S).await;
    assert_eq!(state(&settings, &endpoint).await["status"], "enabled", "two events are not three");
    place.receiver.script([Answer::status(204)]);
    place.event("c3").await;
    place.event("c4").await;
    place.event("c5").await;
    place.world.advance_s(4 * DAY_S).await;
    assert_eq!(state(&settings, &endpoint).await["status"], "enabled", "the time runs from the success");
}

#[tokio::test]
async fn a_success_counts_though_the_deliverer_dies_before_it_is_noted() {
    let place = Place::new().await;
    let (_, endpoint, settings) = place.coach().await;
    place.event_taken_and_not_noted().await;
    place.world.advance_s(6 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), 2 * 2, "nothing is sent again over it");
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    place.event("c2").await;
    assert_eq!(state(&settings, &endpoint).await["status"], "enabled");
}

/// The order that comes again finds all of the endpoint's slots taken, and does not wait for one.
#[tokio::test]
async fn a_success_counts_though_its_order_comes_again_while_the_endpoint_is_busy() {
    let place = Place::new().await;
    let (_, endpoint, _) = place.coach().await;
    place.event_taken_and_not_noted().await;
    assert!(place.failing_since().await.is_string());
    let slots: Vec<Value> = place.world.items("workspaces", "COACH#ada").await;
    let mut slots = slots.into_iter().find(|item| item["sk"]["S"] == format!("SLOTS#{}", endpoint.id)).unwrap();
    for slot in ["s0", "s1", "s2"] {
        slots[slot] = json!({ "S": "999999999999999#another" });
    }
    place.world.put_item("workspaces", &slots).await;
    place.world.advance_s(400).await;
    assert!(place.failing_since().await.is_null());
    assert_eq!(place.receiver.hooks().len(), 2 * 2, "nothing is sent again over it");
}

#[tokio::test]
async fn a_success_that_is_noted_late_does_not_make_up_for_what_failed_since() {
    let place = Place::new().await;
    let _ = place.coach().await;
    place.event_taken_and_not_noted().await;
    place.event("taken").await;
    assert!(place.failing_since().await.is_null());
    place.receiver.otherwise(Answer::status(500));
    place.event("failed").await;
    let since = place.failing_since().await;
    assert!(since.is_string());
    // The order of the first success comes again by now, and the failure is repeated after that.
    place.world.advance_s(400).await;
    assert_eq!(place.failing_since().await, since);
}

/// The call that looks for what waits stalls.
#[tokio::test]
async fn switching_off_ends_nothing_that_was_sent_after_the_endpoint_was_switched_on_again() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    place.receiver.otherwise(Answer::status(500));
    place.event("waits").await;
    place.event("retried").await;
    // Neither is tried again by itself for an hour.
    place.world.advance_s(HOUR_S).await;
    let retried = ada.deliveries(&endpoint).await[0]["id"].as_str().unwrap().to_owned();
    // The change itself takes as many calls as this.
    settings.patch(&path, json!({ "description": "Calls are counted" })).await.expect(200);
    let change = place.world.calls("settings").await[0]["calls"].as_array().unwrap().len();
    place.world.faults(json!({ "function": "settings", "spared_calls": change, "stalled_calls": 1 })).await;
    let off = tokio::spawn(settings.patch(&path, json!({ "enabled": false })).into_future());
    place.world.until_stalled().await;
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    settings.post(&format!("{path}/deliveries/{retried}/retry"), json!({})).await.expect(202);
    place.event("new").await;
    place.world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    off.await.unwrap().expect(200);
    let deliveries = ada.deliveries(&endpoint).await;
    let statuses: Vec<&str> = deliveries.iter().map(|delivery| delivery["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["pending", "pending", "failed"], "newest first: new, retried, waits");
}

#[tokio::test]
async fn switching_off_and_deleting_end_what_waits_with_that_reason() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    let ended = &ada.deliveries(&endpoint).await[0];
    assert_eq!(ended["status"], "failed");
    let lines = list(ended["attempts"].clone());
    assert_eq!(lines.last().unwrap()["error"], "not sent: endpoint disabled");
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    let seen = place.receiver.hooks().len();
    place.world.advance_s(2 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), seen, "ended is ended");
    place.event("c2").await;
    let seen = place.receiver.hooks().len();
    settings.delete(&path).await.expect(200);
    place.world.advance_s(2 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), seen);
    assert!(place.world.take_messages("deliveries-dlq").await.is_empty());
}

#[tokio::test]
async fn an_endpoint_that_is_switched_off_by_a_last_attempt_says_so_in_its_log() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    place.receiver.otherwise(Answer::status(500));
    place.event("c1").await;
    place.event("c2").await;
    // The third event's ninth attempt is the first one after five days, and nothing else waits: it comes after 27 to 28.5 hours.
    place.world.advance_s(4 * DAY_S - 2 * HOUR_S).await;
    place.event("c3").await;
    place.world.advance_s(30 * HOUR_S).await;
    let off = state(&settings, &endpoint).await;
    assert_eq!(off["status"], "disabled");
    let why = format!("not sent: endpoint disabled: {}", off["disabled_reason"].as_str().unwrap());
    let newest = ada.deliveries(&endpoint).await.remove(0);
    let lines = list(newest["attempts"].clone());
    assert_eq!((lines.len(), &lines[9]["error"]), (10, &json!(why)));
}

#[tokio::test]
async fn a_mail_that_is_refused_is_sent_later_and_sends_no_other_twice() {
    let place = Place::new().await;
    let ada = place.world.coach("ada").await;
    for number in 0..3 {
        ada.endpoint(&format!("{}/{number}", place.receiver.url()), "identifiers").await;
    }
    place.receiver.otherwise(Answer::status(410));
    place.world.faults(json!({ "mail_failures": 1 })).await;
    place.event("c1").await;
    place.world.advance_s(HOUR_S).await;
    assert_eq!(place.world.outgoing("endpoint.disabled").await.len(), 3);
    assert_eq!(place.world.mail().await.len(), 3);
}
