//! Log lines: one with metrics for each request and each event, and lines for errors. The end of each world checks that
//! they hold no personal data.

mod background;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::partner::clients::create::crashes::{CreationScene, FEWEST_CALLS, HANDED, MAILED};
use crate::partner::clients::login_link::{client, mint};
use crate::world::{Bill, LAPSED_S, Reply, SDK_ATTEMPTS, World, members};

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
    /// The value of a figure that only the log has.
    #[track_caller]
    fn figure(&self, name: &str) -> f64 {
        assert_eq!(self.unit(name), None, "CloudWatch keeps {name} as a metric");
        self.0[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", self.0))
    }

    /// The value of a metric that CloudWatch keeps.
    #[track_caller]
    fn metric(&self, name: &str, unit: &str) -> f64 {
        assert_eq!(self.unit(name).as_deref(), Some(unit), "{name}: {}", self.0);
        self.0[name].as_f64().unwrap()
    }

    /// The unit of a metric that the line declares.
    fn unit(&self, name: &str) -> Option<String> {
        let declared = self.0["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array()?;
        let own = declared.iter().find(|metric| metric["Name"] == name)?;
        Some(own["Unit"].as_str().unwrap().to_owned())
    }

    /// Returns true for a line of figures, and false for one of words.
    fn is_of_figures(&self) -> bool {
        self.0.get("level").is_none()
    }

    /// Asserts the rules of CloudWatch's embedded metric format, where the line declares metrics.
    #[track_caller]
    fn is_valid(&self) {
        let Some(declared) = self.0.get("_aws") else { return };
        let at_ms = declared["Timestamp"].as_i64().unwrap();
        assert!(at_ms > 1_700_000_000_000, "{at_ms}");
        let [directive] = declared["CloudWatchMetrics"].as_array().unwrap().as_slice() else { panic!("{declared}") };
        assert_eq!(members(directive), ["Dimensions", "Metrics", "Namespace"]);
        assert_eq!((&directive["Namespace"], &directive["Dimensions"]), (&json!("PartnerApi"), &json!([["function"]])));
        assert!(self.0["function"].as_str().is_some_and(|function| !function.is_empty()));
        let metrics = directive["Metrics"].as_array().unwrap();
        assert!(!metrics.is_empty());
        for metric in metrics {
            assert!(["Count", "Milliseconds", "Seconds"].contains(&metric["Unit"].as_str().unwrap()));
            assert!(self.0[metric["Name"].as_str().unwrap()].as_f64().is_some_and(|value| value >= 0.0));
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
            members(&line.0).join(" "),
            "calls coach_id duration_ms function key_id read_units request_id requests route status write_units"
        );
        assert_eq!((&line.0["route"], &line.0["status"]), (&json!(route), &json!(reply.status.to_string())));
        assert_eq!((&line.0["function"], &line.0["coach_id"]), (&json!("clients"), &json!("ada")));
        assert_eq!(line.figure("requests"), 1.0);
        assert!(line.figure("duration_ms") > 0.0);
        assert_eq!(line.figure("calls"), bill.calls as f64, "{route}");
        assert_eq!(line.figure("read_units"), bill.read_units, "{route}");
        assert_eq!(line.figure("write_units"), bill.write_units, "{route}");
        assert!(bill.write_units > 0.0);
    }
    world.lines().iter().filter(|line| line.is_of_figures()).for_each(Line::is_valid);
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
    assert_eq!((&line.0["fault_id"], &line.0["status"]), (&failed.body["event_id"], &json!("500")));
    assert!(line.figure("calls") > 2.0, "repeats are calls");
    let mut errors = world.lines();
    errors.retain(|line| line.0["fault_id"] == failed.body["event_id"] && !line.is_of_figures());
    assert_eq!(errors.len(), 1);
    assert_eq!(
        members(&errors[0].0),
        ["coach_id", "doing", "error", "fault_id", "function", "level", "message", "request_id", "timestamp"]
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
    assert_eq!(line.figure("claim_takeovers"), 1.0);
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
    assert_eq!(scene.world.line_of(&reply).metric("welcome_mails_refused", "Count"), 1.0);
    assert_eq!(scene.world.lines_with("clients", "welcome_mails_refused").len(), 1);
}

#[test]
fn the_log_knows_which_crates_are_ours() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let crates = ["functions", "lib"].into_iter().flat_map(|kind| std::fs::read_dir(format!("{root}/{kind}")).unwrap());
    let names: BTreeSet<String> =
        crates.map(|entry| entry.unwrap().file_name().into_string().unwrap().replace('-', "_")).collect();
    assert_eq!(names, BTreeSet::from(runtime::OUR_CRATES.map(str::to_owned)));
}
