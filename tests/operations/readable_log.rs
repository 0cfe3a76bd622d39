//! The local stack's log for people, its default. The end of each world checks that the log holds no personal data.

use std::fs::File;
use std::process::Command;

use serde_json::json;

use crate::world::sweep::{automation, daily_log};
use crate::world::{Answer, Fact, Receiver, World, until};

impl World {
    /// Lines of the log that contain each of these texts.
    fn lines_with_all(&self, texts: &[&str]) -> Vec<String> {
        let log = self.log();
        log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).map(str::to_owned).collect()
    }

    /// The one line that contains each of these texts.
    #[track_caller]
    fn the_line(&self, texts: &[&str]) -> String {
        let mut lines = self.lines_with_all(texts);
        assert_eq!(lines.len(), 1, "{texts:?}: {lines:?}\n{}", self.log());
        lines.remove(0)
    }
}

#[tokio::test]
async fn each_request_attempt_fact_and_sweep_has_one_readable_line() {
    let (world, receiver) = (World::start_readable().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    receiver.script([Answer::status(503), Answer::status(200)]);
    let made = key.post("/v1/clients", json!({ "email": "grace@example.com" })).await.expect(201);
    world.advance_s(60).await;
    let trigger = json!({ "event": "daily_log_inactivity", "days": 3 });
    world.apply([automation("ada", "silent", trigger, &[&endpoint]).with("id", "fact-7")]).await;
    // A day that has begun in every time zone.
    let day = world.now().await.date_naive() - chrono::TimeDelta::days(1);
    world.apply([daily_log(made.str("client_id"), day)]).await;
    world.apply([Fact::client("nobody", "c9").with("id", "fact-8")]).await;
    world.anonymous().get("/settings/keys").await.expect(401);
    world.advance_s(4 * 86_400).await;

    let request_id = made.header("x-request-id").unwrap();
    let request = world.the_line(&["clients", "POST /v1/clients 201", " ms ", "coach_id=ada", request_id]);
    assert!(request.contains(" INFO "), "{request}");
    let (endpoint_id, event) =
        (format!("endpoint_id={}", endpoint.id), receiver.hooks()[0].header("webhook-id").to_owned());
    let (event_id, entry_id) = (format!("event_id={event}"), format!("entry_id={event}"));
    let failed = world.the_line(&["deliver", "attempt 1 retrying: 503, next at 20", " ms ", &endpoint_id, &event_id]);
    assert!(failed.contains(" WARN "), "{failed}");
    let repeated = world.the_line(&["deliver", "attempt 2 delivered: 200", " ms ", &endpoint_id, &event_id]);
    let due = failed.split("next at ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(repeated.replacen(' ', "T", 1).as_str() > due, "not before it was due: {failed}\n{repeated}");
    world.the_line(&["relay", "sent an outbox entry", "coach_id=ada", &entry_id]);
    world.the_line(&[
        "ingest",
        "a fact was stored",
        " ms ",
        "coach_id=ada",
        "detail_type=automation.saved",
        "fact_id=fact-7",
    ]);
    let waits = world.lines_with_all(&["ingest", "a fact waits", "detail_type=client.saved", "fact_id=fact-8"]);
    assert!(waits.len() > 1 && waits[0].contains("reason=coach_id nobody has not been seen"), "{waits:?}");
    world.the_line(&["WARN", "a fact was set aside", "fact_id=fact-8", "module=ingest"]);
    world.the_line(&["gateway", "GET /settings/keys 401", "request_id="]);
    world.the_line(&["sweep", "finished", " ms ", "sweep_emitted=1", "sweep_evaluated="]);
    let log = world.log();
    assert!(!log.contains("_aws") && !log.contains('\u{1b}'), "{log}");
}

#[tokio::test]
async fn an_idle_stack_logs_nothing() {
    let world = World::start_readable().await;
    let before = world.log();
    world.advance_s(86_400).await;
    let log = world.log();
    let lines: Vec<&str> = log[before.len()..].lines().filter(|line| !line.contains("the clock is moving")).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test]
async fn the_first_start_shows_addresses_and_keys_before_its_log_which_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let terminal = dir.path().join("terminal");
    let output = File::options().create(true).append(true).open(&terminal).unwrap();
    let mut stack = Command::new(env!("CARGO_BIN_EXE_stack-under-test"))
        .args(["--port", "0", "--aws-port", "0", "--ephemeral"])
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let shown = || std::fs::read_to_string(&terminal).unwrap();
    until("the stack is ready", async || shown().contains("\nready {")).await;
    stack.kill().unwrap();
    stack.wait().unwrap();
    let shown = shown();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text}:\n{shown}"));
    assert!(at("  API  ") < at("  Partner key  ") && at("  CRM key  ") < at("the demo workspace is ready"), "{shown}");
    let log: Vec<&str> =
        shown.lines().filter(|line| ["DEBUG", "INFO"].iter().any(|level| line.contains(level))).collect();
    assert!(log.len() == 1 && shown.trim().starts_with("Partner API, local stack"), "{shown}");
}
