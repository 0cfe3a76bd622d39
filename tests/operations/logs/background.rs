//! Log lines of the functions that no caller waits for.

use serde_json::{Value, json};

use crate::crm::bookings::{Desk, event, slot};
use crate::operations::logs::{Line, SCHEDULED_S};
use crate::world::sweep::{SweepScene, daily_log};
use crate::world::{Answer, Bill, Fact, Receiver, World, uuid};

#[tokio::test]
async fn the_feeds_lines_have_the_facts_their_waits_and_their_outcomes() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let midnight = world.midnight_in(2).await;
    desk.booked(slot(midnight.date_naive(), "00:00")).await;
    world.apply([event("ada", &uuid(60), None, midnight, 60).with("id", "overlap")]).await;
    let lines_with = world.lines_with("ingest", "booking_conflicts");
    assert_eq!(lines_with.len(), 1);
    let line = &lines_with[0];
    assert_eq!(line.metric("booking_conflicts", "Count"), 1.0);
    assert_eq!((&line.0["event_ids"], &line.0["coach_ids"]), (&json!(["overlap"]), &json!(["ada"])));
    assert_eq!(line.figure("invocations"), 1.0);
    assert!(line.figure("duration_ms") > 0.0);
    let bill = Bill::of(&world.calls("ingest").await[0]);
    assert_eq!(line.figure("calls"), bill.calls as f64);
    assert_eq!(line.figure("write_units"), bill.write_units);
    let waited_ms = line.figure("queue_wait_ms");
    assert!(waited_ms < 60_000.0, "{waited_ms}");

    // A retried fact is delayed on purpose.
    let waits = world.lines_with("ingest", "queue_wait_ms").len();
    world.apply([Fact::client("nobody", "c1").with("id", "early")]).await;
    world.advance_s(SCHEDULED_S).await;
    assert_eq!(world.set_aside().await.len(), 1);
    let rounds = world.lines().iter().filter(|line| line.0["event_ids"] == json!(["early"])).count();
    assert!(rounds > 5, "{rounds}");
    assert_eq!(world.lines_with("ingest", "queue_wait_ms").len(), waits + 1);
    let lines_with = world.lines_with("ingest", "facts_set_aside");
    assert_eq!(lines_with.len(), 1);
    assert_eq!(lines_with[0].metric("facts_set_aside", "Count"), 1.0);
    world.lines().iter().filter(|line| line.is_of_figures()).for_each(Line::is_valid);
}

#[tokio::test]
async fn the_relays_lines_have_the_published_entries_their_delays_and_the_lag() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let event = receiver.hooks()[0].header("webhook-id").to_owned();
    let carried = world.lines_with("relay", "outbox_latency_ms");
    let mut of_event = carried.iter().filter(|line| line.0["event_ids"].as_array().unwrap().contains(&json!(event)));
    let line = of_event.next().unwrap();
    assert_eq!(line.0["coach_ids"], json!(["ada"]));
    let latency_ms = line.figure("outbox_latency_ms");
    assert!(latency_ms < 60_000.0, "{latency_ms}");

    world.advance_s(SCHEDULED_S).await;
    let lag_s = |line: &Line| line.metric("outbox_lag_s", "Seconds");
    assert!(world.lines_with("relay", "outbox_lag_s").iter().all(|line| lag_s(line) == 0.0));
    // The entry is unreadable and waits for an operator.
    let since = world.now().await.timestamp_millis();
    let stuck = json!({
        "pk": { "S": "evt_stuck" }, "unsent_shard": { "S": "0" }, "send_after": { "N": since.to_string() }, "sealed": { "B": "AAAA" },
    });
    world.put_item("outbox", &stuck).await;
    world.advance_s(SCHEDULED_S).await;
    let line = world.lines_with("relay", "outbox_lag_s").pop().unwrap();
    let (at_ms, lag_s) = (line.0["_aws"]["Timestamp"].as_i64().unwrap(), lag_s(&line));
    assert!(lag_s > 0.0 && (lag_s - ((at_ms - since) / 1000) as f64).abs() <= 2.0, "{lag_s} {at_ms} {since}");
    // A relay that cannot read all entries reports no lag: a partial value would keep the alarm quiet.
    let reports = world.lines_with("relay", "outbox_lag_s").len();
    world.faults(json!({ "function": "relay", "spared_calls": 1, "store_failures": 1_000 })).await;
    world.advance_s(SCHEDULED_S).await;
    assert!(world.remaining_faults().await["store_failures"].as_u64().unwrap() < 1_000);
    world.faults(json!({ "function": "", "spared_calls": 0, "store_failures": 0 })).await;
    assert_eq!(world.lines_with("relay", "outbox_lag_s").len(), reports);
    world.lines().iter().filter(|line| line.is_of_figures()).for_each(Line::is_valid);
}

#[tokio::test]
async fn each_attempt_has_a_line_with_its_outcome_and_durations() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    receiver.script([Answer::status(503), Answer::status(200)]);
    world.apply([Fact::client("ada", "c1")]).await;
    world.advance_s(60).await;
    receiver.otherwise(Answer::status(500));
    world.apply([Fact::client("ada", "c2")]).await;
    world.advance_s(2 * 86_400).await;
    receiver.otherwise(Answer::status(410));
    world.apply([Fact::client("ada", "c3")]).await;

    let lines = world.lines_with("deliver", "deliveries");
    let outcomes: Vec<&str> = lines.iter().map(|line| line.0["outcome"].as_str().unwrap()).collect();
    let expected = [["retrying", "delivered"].as_slice(), &["retrying"; 8], &["failed", "gone"]].concat();
    assert_eq!(outcomes, expected);
    let (hooks, log) = (receiver.hooks(), ada.deliveries(&endpoint).await);
    for (line, hook) in lines.iter().zip(&hooks) {
        assert_eq!(line.figure("deliveries"), 1.0);
        assert!(line.figure("attempt_ms") < 60_000.0);
        assert_eq!(line.0["event_id"], hook.header("webhook-id"));
        assert_eq!((&line.0["coach_id"], &line.0["endpoint_id"]), (&json!("ada"), &json!(endpoint.id)));
        assert!(log.iter().any(|delivery| delivery["id"] == line.0["delivery_id"]));
    }
    let results: Vec<&Value> = lines[..2].iter().chain(lines.last()).map(|line| &line.0["result"]).collect();
    assert_eq!(results, ["503", "200", "410"]);
    assert!(lines.iter().all(|line| line.0.get("next_attempt_at").is_some() == (line.0["outcome"] == "retrying")));
    let late: Vec<bool> = lines.iter().map(|line| line.0.get("delivery_latency_ms").is_some()).collect();
    assert_eq!(late.iter().filter(|is_late| **is_late).count(), 1, "only the delivered one");
    let latency_ms = lines[1].metric("delivery_latency_ms", "Milliseconds");
    assert!((5_000.0..61_000.0).contains(&latency_ms), "the second attempt is made after 5 s: {latency_ms}");

    let waits = world.lines_with("deliver", "queue_wait_ms").len();
    assert_eq!(waits, 3, "one for each delivery: later attempts are delayed on purpose");
    assert!(!world.log().contains("/hook"), "no receiver's address");
    world.lines().iter().filter(|line| line.is_of_figures()).for_each(Line::is_valid);
}

#[tokio::test]
async fn the_sweeps_lines_have_its_lag_and_its_matches() {
    let scene = SweepScene::new().await;
    let now = scene.world.now().await;
    let trigger = json!({ "event": "daily_log_inactivity", "days": 3 });
    scene.world.apply([scene.automation("silent", trigger)]).await;
    for id in ["c1", "c2"] {
        scene.client(id, now).await;
        scene.world.apply([daily_log(id, now.date_naive())]).await;
    }
    // One of the clients cannot be evaluated.
    let mut watches = scene.world.items("records", "CLIENT#c2").await;
    watches.retain(|item| item["sk"]["S"] == "DOSES_WATCH");
    watches[0]["states"] = json!({ "S": "unreadable" });
    scene.world.put_item("records", &watches[0]).await;
    scene.world.advance_s(4 * 86_400).await;

    assert_eq!(scene.received().len(), 1);
    let sum = |metric: &str| -> f64 {
        let lines = scene.world.lines_with("sweep", metric);
        lines.iter().map(|line| line.figure(metric)).sum()
    };
    assert!(sum("sweep_evaluated") >= 1.0 && sum("sweep_emitted") == 1.0 && sum("sweep_failed") >= 1.0);
    let lags = scene.world.lines_with("sweep", "sweep_lag_s");
    let lags: Vec<f64> = lags.iter().map(|line| line.metric("sweep_lag_s", "Seconds")).collect();
    assert!(lags[0] < 900.0 && lags.last().is_some_and(|lag| *lag > 900.0), "failed clients stay due: {lags:?}");
    scene.world.lines().iter().filter(|line| line.is_of_figures()).for_each(Line::is_valid);
}
