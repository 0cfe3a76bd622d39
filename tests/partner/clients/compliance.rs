//! `GET /v1/clients/{clientId}/compliance`.

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::world::{Caller, Fact, World, fact};

fn schedule(doses: &[(&str, u32, String, Option<String>)]) -> Fact {
    let doses: Vec<Value> = doses
        .iter()
        .map(
            |(dose, per_day, from, until)| json!({ "dose_id": dose, "per_day": per_day, "from": from, "until": until }),
        )
        .collect();
    fact("dose_schedule.saved", json!({ "client_id": "c1", "doses": doses }))
}

fn dose(log: &str, dose: &str, date: &str) -> Fact {
    fact("dose.logged", json!({ "client_id": "c1", "dose_log_id": log, "dose_id": dose, "date": date }))
}

fn dose_deleted(log: &str) -> Fact {
    fact("dose_log.deleted", json!({ "client_id": "c1", "dose_log_id": log }))
}

/// A coach, her key, her client, and the dates around today, in UTC.
struct ComplianceScene {
    world: World,
    key: Caller,
    today: NaiveDate,
}

impl ComplianceScene {
    async fn new() -> Self {
        let world = World::start().await;
        let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
        world.apply([Fact::client("ada", "c1")]).await;
        // Not in the last minutes of a day, so that the test does not cross midnight.
        let left_s = 86_400 - world.now().await.timestamp().rem_euclid(86_400);
        if left_s < 600 {
            world.advance_s(left_s.unsigned_abs() + 60).await;
        }
        let today = world.now().await.date_naive();
        Self { world, key, today }
    }

    /// The date that many days ago.
    fn ago(&self, days: i64) -> String {
        (self.today - TimeDelta::days(days)).to_string()
    }

    async fn compliance(&self, query: &str) -> Value {
        self.key.get(&format!("/v1/clients/c1/compliance{query}")).await.expect(200).body
    }

    async fn counts(&self, query: &str) -> (Value, u64, u64) {
        let body = self.compliance(query).await;
        let number = |name: &str| body[name].as_u64().unwrap();
        (body["compliance_pct"].clone(), number("doses_logged"), number("doses_expected"))
    }
}

#[tokio::test]
async fn without_expected_doses_the_percentage_is_null_and_not_0() {
    let scene = ComplianceScene::new().await;
    scene.world.apply([schedule(&[("d", 2, scene.ago(30), None)])]).await;
    assert_eq!(scene.counts("").await, (Value::Null, 0, 14), "nothing logged");
    scene.world.apply([dose("l1", "other", &scene.ago(1))]).await;
    assert_eq!(scene.counts("").await, (Value::Null, 0, 14), "no scheduled dose is logged");
    assert_eq!(scene.compliance("").await["last_logged_on"], scene.ago(1), "an unscheduled log is still a log");
    scene.world.apply([schedule(&[])]).await;
    assert_eq!(scene.counts("").await, (Value::Null, 0, 0), "nothing expected");
}

#[tokio::test]
async fn a_log_counts_when_its_dose_is_scheduled_on_its_date() {
    let scene = ComplianceScene::new().await;
    let (world, ago) = (&scene.world, |days| scene.ago(days));
    world
        .apply([
            schedule(&[("a", 2, ago(5), Some(ago(3))), ("b", 1, ago(3), None), ("z", 0, ago(90), None)]),
            dose("1", "a", &ago(6)),
            dose("2", "a", &ago(5)),
            dose("3", "a", &ago(3)),
            dose("4", "a", &ago(2)),
            dose("5", "b", &ago(4)),
            dose("6", "b", &ago(0)),
            dose("7", "b", &ago(-1)),
            dose("8", "z", &ago(1)),
        ])
        .await;
    assert_eq!(scene.counts("").await, (json!(30), 3, 10));
    assert_eq!(scene.compliance("").await["last_logged_on"], ago(-1), "the last log, even if it is in the future");
    // An older schedule changes nothing; a newer one counts for the past as well.
    world.apply([schedule(&[]).with("occurred_at", "2026-01-01T00:00:00Z")]).await;
    assert_eq!(scene.counts("").await.2, 10);
    world.apply([schedule(&[("a", 1, ago(6), None)])]).await;
    assert_eq!(scene.counts("").await, (json!(57), 4, 7));
}

#[tokio::test]
async fn a_repeated_dose_log_counts_once_and_is_on_its_latest_date_even_if_the_date_was_used_before() {
    let scene = ComplianceScene::new().await;
    let world = &scene.world;
    world.apply([schedule(&[("d", 1, scene.ago(100), None), ("e", 1, scene.ago(100), None)])]).await;
    world.apply([dose("l", "d", &scene.ago(1)), dose("l", "d", &scene.ago(1))]).await;
    assert_eq!(scene.counts("").await.1, 1);
    // The time of the fact, its dose and date, and the date that counts then.
    for (seconds, of, date, last) in
        [(60, "e", 40, 40), (-86_400, "d", 0, 40), (3_000, "e", 40, 40), (2_000, "d", 5, 40), (4_000, "d", 5, 5)]
    {
        let occurred_at = world.timestamp_in(seconds).await;
        world.apply([dose("l", of, &scene.ago(date)).with("occurred_at", occurred_at)]).await;
        assert_eq!(scene.compliance("").await["last_logged_on"], scene.ago(last), "{seconds}");
        let in_week = u64::from(last < 7);
        assert_eq!((scene.counts("").await.1, scene.counts("?window_days=90").await.1), (in_week, 1), "{seconds}");
    }
    // After more than fifteen days the log's id is still known.
    world.down_for(TimeDelta::days(16)).await;
    let again = dose("l", "d", &scene.ago(5)).with("id", "another-fact");
    world.apply([again]).await;
    assert_eq!(scene.counts("?window_days=90").await.1, 1);
}

#[tokio::test]
async fn a_deleted_dose_log_stays_deleted_in_any_order_of_arrival() {
    let scene = ComplianceScene::new().await;
    let world = &scene.world;
    world.apply([schedule(&[("d", 1, scene.ago(200), None)]), dose_deleted("first")]).await;
    world.apply([dose("first", "d", &scene.ago(0))]).await;
    assert_eq!(scene.compliance("").await["last_logged_on"], Value::Null);
    world.apply([dose("a", "d", &scene.ago(150)), dose("b", "d", &scene.ago(80)), dose("c", "d", &scene.ago(1))]).await;
    for (log, left) in [("c", json!(scene.ago(80))), ("b", json!(scene.ago(150))), ("a", Value::Null)] {
        world.apply([dose_deleted(log), dose_deleted(log)]).await;
        assert_eq!(scene.compliance("?window_days=1").await["last_logged_on"], left, "{log}");
    }
    world.apply([dose("c", "d", &scene.ago(1)).with("occurred_at", world.timestamp_in(60).await)]).await;
    assert_eq!(scene.counts("?window_days=90").await, (Value::Null, 0, 90));
}

#[tokio::test]
async fn logs_of_one_client_that_arrive_at_once_are_all_counted() {
    let scene = ComplianceScene::new().await;
    scene.world.apply([schedule(&[("d", 10, scene.ago(100), None)])]).await;
    scene.world.apply((0..60).map(|n| dose(&format!("l{n}"), "d", &scene.ago(n % 7)))).await;
    assert_eq!(scene.counts("").await, (json!(86), 60, 70));
    scene.world.apply((0..60).step_by(2).map(|n| dose_deleted(&format!("l{n}")))).await;
    assert_eq!(scene.counts("").await.1, 30);
}

#[tokio::test]
async fn the_window_ends_with_the_workspaces_local_date() {
    let scene = ComplianceScene::new().await;
    let world = &scene.world;
    for (zone, hours) in [("Pacific/Kiritimati", 14), ("Etc/GMT+12", -12), ("Asia/Kolkata", 5), ("UTC", 0)] {
        world.coach("ada").with("time_zone", zone).await;
        let minutes = if zone == "Asia/Kolkata" { 30 } else { 0 };
        let local = world.now().await + TimeDelta::hours(hours) + TimeDelta::minutes(minutes);
        let today = local.date_naive();
        world.apply([schedule(&[("d", 1, today.to_string(), Some(today.to_string()))])]).await;
        let body = scene.compliance("?window_days=1").await;
        assert_eq!((&body["since"], &body["doses_expected"]), (&json!(today.to_string()), &json!(1)), "{zone}");
        // 90 days are the most.
        let body = scene.compliance("?window_days=91").await;
        assert_eq!(body["since"], (today - TimeDelta::days(89)).to_string(), "{zone}");
        assert_eq!(body["doses_expected"], 1, "{zone}");
    }
}

#[tokio::test]
async fn a_schedule_holds_2000_doses_besides_those_that_ended_long_ago() {
    let scene = ComplianceScene::new().await;
    let dose = |number: usize, until: Option<String>| (format!("d{number}"), 1, scene.ago(400), until);
    let save = async |past: usize, ended: usize, present: usize| {
        let past = (0..past).map(|number| dose(number, Some(scene.ago(121))));
        let ended = (0..ended).map(|number| dose(10_000 + number, Some(scene.ago(120))));
        let present = (0..present).map(|number| dose(20_000 + number, None));
        let doses: Vec<_> = past.chain(ended).chain(present).collect();
        let doses: Vec<_> =
            doses.iter().map(|(id, day, from, until)| (id.as_str(), *day, from.clone(), until.clone())).collect();
        scene.world.apply([schedule(&doses)]).await;
        scene.counts("?window_days=1").await.2
    };
    assert_eq!(save(501, 0, 2).await, 2, "doses that ended over 120 days ago are not counted");
    let stored = scene.world.items("records", "CLIENT#c1").await;
    let stored = stored.iter().find(|item| item["sk"]["S"] == "DOSES#SCHEDULE").unwrap();
    assert_eq!(stored["doses"]["L"].as_array().unwrap().len(), 2, "nor stored");
    assert_eq!(save(0, 1, 1_999).await, 1_999);
    assert_eq!(save(0, 1, 2_000).await, 1_999, "one too many: set aside");
    let set_aside = scene.world.set_aside().await;
    assert_eq!(set_aside.len(), 1);
    assert!(set_aside[0].to_string().contains("doses must be at most 2000"), "{}", set_aside[0]);
}
