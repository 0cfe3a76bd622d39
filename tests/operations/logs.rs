//! Log lines: one with metrics for each request and each event, and lines for errors. The end of each world checks that
//! they hold no personal data.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::crm::bookings::{Desk, event, slot};
use crate::partner::clients::create::crashes::{CreationScene, FEWEST_CALLS, HANDED, MAILED};
use crate::partner::clients::login_link::{client, mint};
use crate::world::sweep::{SweepScene, daily_log};
use crate::world::{Answer, Bill, Fact, LAPSED_S, Receiver, Reply, SDK_ATTEMPTS, World, members, uuid};

const BY_FUNCTION: &[&[&str]] = &[&["function"]];
const BY_ROUTE: &[&[&str]] = &[&["route", "status"], &["function"]];
const BY_OUTCOME: &[&[&str]] = &[&["outcome"]];
/// Most values of a metric that CloudWatch takes from one line.
const MAX_VALUES: usize = 100;
const MAX_DIMENSIONS: usize = 30;
/// Longer than the schedules' period of sweep and relay.
const SCHEDULED_S: u64 = 16 * 60;

/// A line of a function.
#[derive(Debug, Clone)]
struct Line(Value);

impl World {
    /// All lines of all functions so far.
    fn lines(&self) -> Vec<Line> {
        let log = self.log();
        let lines = log.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| Line(serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))).collect()
    }

    /// Lines of a function that hold this metric.
    fn lines_with(&self, function: &str, metric: &str) -> Vec<Line> {
        let mut lines = self.lines();
        lines.retain(|line| line.0["function"] == function && line.0.get(metric).is_some());
        lines
    }

    /// The line of the request with this answer.
    fn line_of(&self, reply: &Reply) -> Line {
        let id = reply.header("x-request-id").unwrap();
        let mut lines = self.lines();
        lines.retain(|line| line.0["request_id"] == id && line.0.get("requests").is_some());
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }
}

impl Line {
    /// The metric's values. Asserts its sets of dimensions and its unit.
    #[track_caller]
    fn values(&self, metric: &str, unit: &str, by: &[&[&str]]) -> Vec<f64> {
        let directives = self.0["_aws"]["CloudWatchMetrics"].as_array().unwrap();
        let definition = json!({ "Name": metric, "Unit": unit });
        let directive = directives.iter().find(|one| one["Metrics"].as_array().unwrap().contains(&definition));
        let directive = directive.unwrap_or_else(|| panic!("{metric} in {unit} is not defined: {}", self.0));
        assert_eq!(directive["Dimensions"], json!(by), "{metric}");
        match &self.0[metric] {
            Value::Array(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
            value => vec![value.as_f64().unwrap()],
        }
    }

    /// The value of a metric with one value.
    #[track_caller]
    fn value(&self, metric: &str, unit: &str, by: &[&[&str]]) -> f64 {
        let values = self.values(metric, unit, by);
        assert_eq!(values.len(), 1, "{metric}: {values:?}");
        values[0]
    }

    fn is_metrics(&self) -> bool {
        self.0.get("_aws").is_some()
    }

    /// Asserts the rules of CloudWatch's embedded metric format.
    #[track_caller]
    fn is_valid(&self) {
        let at_ms = self.0["_aws"]["Timestamp"].as_i64().unwrap();
        assert!(at_ms > 1_700_000_000_000, "{at_ms}");
        for directive in self.0["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            assert_eq!(members(directive), ["Dimensions", "Metrics", "Namespace"]);
            assert_eq!(directive["Namespace"], "PartnerApi");
            let sets = directive["Dimensions"].as_array().unwrap();
            assert!(!sets.is_empty());
            for set in sets {
                let names = set.as_array().unwrap();
                assert!(!names.is_empty() && names.len() <= MAX_DIMENSIONS, "{set}");
                for name in names {
                    let value = self.0[name.as_str().unwrap()].as_str();
                    assert!(value.is_some_and(|value| !value.is_empty()), "{name} of {}", self.0);
                }
            }
            let metrics = directive["Metrics"].as_array().unwrap();
            assert!(!metrics.is_empty() && metrics.len() <= MAX_VALUES);
            for metric in metrics {
                assert!(["Count", "Milliseconds", "Seconds", "None"].contains(&metric["Unit"].as_str().unwrap()));
                let values = self.values_of(metric["Name"].as_str().unwrap());
                assert!(!values.is_empty() && values.len() <= MAX_VALUES && values.iter().all(|value| *value >= 0.0));
            }
        }
    }

    fn values_of(&self, metric: &str) -> Vec<f64> {
        match &self.0[metric] {
            Value::Array(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
            value => value.as_f64().into_iter().collect(),
        }
    }
}

#[tokio::test]
async fn a_requests_line_has_its_coach_status_and_cost() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let body = json!({
        "email": "grace@example.com", "full_name": "Grace Hopper", "phone": "+1 415 555 2671", "send_welcome": false,
    });
    let made = key.post("/v1/clients", body).await.expect(201);
    let path = format!("/v1/clients/{}", made.str("client_id"));
    for (reply, route) in [
        (key.get("/v1/clients?email=grace@example.com").await, "GET /v1/clients"),
        (key.get(&path).await, "GET /v1/clients/{clientId}"),
        (key.patch(&path, json!({ "is_active": false })).await, "PATCH /v1/clients/{clientId}"),
    ] {
        let (invocations, line) = (world.calls("clients").await, world.line_of(&reply));
        let invocation = invocations.iter().find(|invocation| invocation["request_id"] == line.0["request_id"]);
        let bill = Bill::of(invocation.unwrap());
        assert_eq!(
            members(&line.0),
            [
                "_aws",
                "calls",
                "coach_id",
                "duration_ms",
                "function",
                "read_units",
                "request_id",
                "requests",
                "route",
                "status",
                "write_units"
            ]
        );
        assert_eq!((&line.0["route"], &line.0["status"]), (&json!(route), &json!(reply.status.to_string())));
        assert_eq!((&line.0["function"], &line.0["coach_id"]), (&json!("clients"), &json!("ada")));
        assert_eq!(line.value("requests", "Count", BY_ROUTE), 1.0);
        assert!(line.value("duration_ms", "Milliseconds", BY_ROUTE) > 0.0);
        assert_eq!(line.value("calls", "Count", BY_FUNCTION), bill.calls as f64, "{route}");
        assert_eq!(line.value("read_units", "None", BY_FUNCTION), bill.read_units, "{route}");
        assert_eq!(line.value("write_units", "None", BY_FUNCTION), bill.write_units, "{route}");
        assert!(bill.write_units > 0.0);
    }
    world.lines().iter().filter(|line| line.is_metrics()).for_each(Line::is_valid);
}

#[tokio::test]
async fn refused_callers_and_unknown_routes_are_counted_without_request_content() {
    let world = World::start().await;
    let anonymous = world.anonymous();
    for (reply, route, status) in [
        (anonymous.get("/v1/ping").await, "GET /v1/ping", "401"),
        (anonymous.get("/v1/ping/unheard-of").await, "unrouted", "404"),
        (anonymous.delete("/v1/ping").await, "unrouted", "405"),
        (world.settings_of("nobody").await.get("/settings/keys").await, "GET /settings/keys", "409"),
    ] {
        let line = world.line_of(&reply);
        assert_eq!((&line.0["route"], &line.0["status"]), (&json!(route), &json!(status)));
        let coach = if status == "409" { json!("nobody") } else { Value::Null };
        assert_eq!(line.0["coach_id"], coach, "{route}");
    }
    assert!(!world.log().contains("unheard-of"));
}

#[tokio::test]
async fn a_login_links_line_has_its_route_and_coach_but_no_token() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let minted = mint(&key, &client(&world, &key).await).await.expect(200);
    let token = minted.str("login_url").rsplit_once('/').unwrap().1;
    let shown = world.anonymous().get(&format!("/login/{token}")).await.expect(200);
    let used = world.anonymous().call("POST", &format!("/login/{token}")).await.expect(303);
    for (reply, route) in [(shown, "GET /login/{token}"), (used, "POST /login/{token}")] {
        let line = world.line_of(&reply);
        assert_eq!((&line.0["route"], &line.0["coach_id"]), (&json!(route), &json!("ada")));
    }
    assert!(!world.log().contains(token));
}

#[tokio::test]
async fn a_fault_is_logged_under_the_event_id_in_its_answer() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    // The key is read; the next call fails.
    world.faults(json!({ "function": "ping", "spared_calls": 1, "store_failures": 20 })).await;
    let failed = key.get("/v1/ping").await.expect(500);
    let line = world.line_of(&failed);
    assert_eq!((&line.0["event_id"], &line.0["status"]), (&failed.body["event_id"], &json!("500")));
    assert!(line.value("calls", "Count", BY_FUNCTION) > 2.0, "repeats are calls");
    let mut errors = world.lines();
    errors.retain(|line| line.0["event_id"] == failed.body["event_id"] && !line.is_metrics());
    assert_eq!(errors.len(), 1);
    assert_eq!(
        members(&errors[0].0),
        ["coach_id", "doing", "error", "event_id", "function", "level", "message", "request_id", "timestamp"]
    );
    assert_eq!((&errors[0].0["level"], &errors[0].0["coach_id"]), (&json!("ERROR"), &json!("ada")));
    assert_eq!(errors[0].0["request_id"], line.0["request_id"]);
}

#[tokio::test]
async fn a_takeover_of_an_abandoned_claim_is_counted() {
    let scene = CreationScene::of(HANDED).await;
    scene.post("first@example.com").await.expect(201);
    // The environment is warm: after the key, the claim and three reads its next call is the transaction.
    scene.faults(5, "crash_before_call", 1).await;
    scene.post("grace@example.com").await.expect(500);
    scene.no_faults().await;
    assert!(scene.world.lines_with("clients", "claim_takeovers").is_empty());
    scene.world.advance_s(LAPSED_S).await;
    let reply = scene.post("grace@example.com").await.expect(201);
    let line = scene.world.line_of(&reply);
    assert_eq!(line.value("claim_takeovers", "Count", BY_FUNCTION), 1.0);
    // A claim that is released after a fault does not count as abandoned.
    scene.faults(FEWEST_CALLS - 1, "store_failures", SDK_ATTEMPTS).await;
    scene.post("ada@example.com").await.expect(500);
    scene.no_faults().await;
    scene.post("ada@example.com").await.expect(201);
    assert_eq!(scene.world.lines_with("clients", "claim_takeovers").len(), 1);
}

#[tokio::test]
async fn a_rejected_welcome_mail_is_counted() {
    let scene = CreationScene::of(MAILED).await;
    scene.post("first@example.com").await.expect(201);
    scene.world.faults(json!({ "mail_failures": 100 })).await;
    let reply = scene.post("grace@example.com").await.expect(201);
    assert_eq!(scene.world.line_of(&reply).value("welcome_mails_refused", "Count", BY_FUNCTION), 1.0);
    assert_eq!(scene.world.lines_with("clients", "welcome_mails_refused").len(), 1);
}

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
    assert_eq!(line.value("booking_conflicts", "Count", BY_FUNCTION), 1.0);
    assert_eq!((&line.0["event_ids"], &line.0["coach_ids"]), (&json!(["overlap"]), &json!(["ada"])));
    assert_eq!(line.value("invocations", "Count", BY_FUNCTION), 1.0);
    assert!(line.value("duration_ms", "Milliseconds", BY_FUNCTION) > 0.0);
    let bill = Bill::of(&world.calls("ingest").await[0]);
    assert_eq!(line.value("calls", "Count", BY_FUNCTION), bill.calls as f64);
    assert_eq!(line.value("write_units", "None", BY_FUNCTION), bill.write_units);
    let waited_ms = line.value("queue_wait_ms", "Milliseconds", BY_FUNCTION);
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
    assert_eq!(lines_with[0].value("facts_set_aside", "Count", BY_FUNCTION), 1.0);
    world.lines().iter().filter(|line| line.is_metrics()).for_each(Line::is_valid);
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
    let latencies = line.values("outbox_latency_ms", "Milliseconds", BY_FUNCTION);
    assert!(
        latencies.len() == line.0["event_ids"].as_array().unwrap().len() && latencies[0] < 60_000.0,
        "{latencies:?}"
    );

    world.advance_s(SCHEDULED_S).await;
    let lag_s = |line: &Line| line.value("outbox_lag_s", "Seconds", BY_FUNCTION);
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
    world.lines().iter().filter(|line| line.is_metrics()).for_each(Line::is_valid);
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
        assert_eq!(line.value("deliveries", "Count", BY_OUTCOME), 1.0);
        assert!(line.value("attempt_ms", "Milliseconds", BY_FUNCTION) < 60_000.0);
        assert_eq!(line.0["event_id"], hook.header("webhook-id"));
        assert_eq!((&line.0["coach_id"], &line.0["endpoint_id"]), (&json!("ada"), &json!(endpoint.id)));
        assert!(log.iter().any(|delivery| delivery["id"] == line.0["delivery_id"]));
    }
    let results: Vec<&Value> = lines[..2].iter().chain(lines.last()).map(|line| &line.0["result"]).collect();
    assert_eq!(results, ["503", "200", "410"]);
    assert!(lines.iter().all(|line| line.0.get("next_attempt_at").is_some() == (line.0["outcome"] == "retrying")));
    let late: Vec<bool> = lines.iter().map(|line| line.0.get("delivery_latency_ms").is_some()).collect();
    assert_eq!(late.iter().filter(|is_late| **is_late).count(), 1, "only the delivered one");
    let latency_ms = lines[1].value("delivery_latency_ms", "Milliseconds", BY_FUNCTION);
    assert!((5_000.0..61_000.0).contains(&latency_ms), "the second attempt is made after 5 s: {latency_ms}");

    let waits: usize =
        world.lines_with("deliver", "queue_wait_ms").iter().map(|line| line.values_of("queue_wait_ms").len()).sum();
    assert_eq!(waits, 3, "one for each delivery: later attempts are delayed on purpose");
    assert!(!world.log().contains("/hook"), "no receiver's address");
    world.lines().iter().filter(|line| line.is_metrics()).for_each(Line::is_valid);
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
        lines.iter().map(|line| line.value(metric, "Count", BY_FUNCTION)).sum()
    };
    assert!(sum("sweep_evaluated") >= 1.0 && sum("sweep_emitted") == 1.0 && sum("sweep_failed") >= 1.0);
    let lags = scene.world.lines_with("sweep", "sweep_lag_s");
    let lags: Vec<f64> = lags.iter().map(|line| line.value("sweep_lag_s", "Seconds", BY_FUNCTION)).collect();
    assert!(lags[0] < 900.0 && lags.last().is_some_and(|lag| *lag > 900.0), "failed clients stay due: {lags:?}");
    scene.world.lines().iter().filter(|line| line.is_metrics()).for_each(Line::is_valid);
}

#[test]
fn the_log_knows_which_crates_are_ours() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let crates = ["functions", "lib"].into_iter().flat_map(|kind| std::fs::read_dir(format!("{root}/{kind}")).unwrap());
    let names: BTreeSet<String> =
        crates.map(|entry| entry.unwrap().file_name().into_string().unwrap().replace('-', "_")).collect();
    assert_eq!(names, BTreeSet::from(runtime::OUR_CRATES.map(str::to_owned)));
}
