//! `GET /v1/clients/{clientId}/compliance`.

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::world::{Caller, Fact, World, fact, members};

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

/// A coach, her key, her client, and the dates around today where she is, which is UTC.
struct Place {
    world: World,
    key: Caller,
    today: NaiveDate,
}

impl Place {
    async fn new() -> Self {
        let world = World::start().await;
        let key = world.coach("ada").with("time_zone", "UTC").await.partner_key().await;
        world.facts([Fact::client("ada", "c1")]).await;
        // Not within the last minutes of a day: a test does not run over midnight.
        let left_s = 86_400 - world.now().await.timestamp().rem_euclid(86_400);
        if left_s < 600 {
            world.advance_s(left_s.unsigned_abs() + 60).await;
        }
        let today = world.now().await.date_naive();
        Self { world, key, today }
    }

    /// So many days ago.
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
async fn without_a_signal_the_percentage_is_null_and_not_0() {
    let place = Place::new().await;
    let body = place.compliance("").await;
    let expected = json!({
        "client_id": "c1", "window_days": 7, "since": place.ago(6), "compliance_pct": null, "doses_logged": 0,
        "doses_expected": 0, "last_logged_on": null,
    });
    assert_eq!(body, expected);
    place.world.facts([schedule(&[("d", 2, place.ago(30), None)])]).await;
    assert_eq!(place.counts("").await, (Value::Null, 0, 14), "nothing logged");
    place.world.facts([dose("l1", "other", &place.ago(1))]).await;
    assert_eq!(place.counts("").await, (Value::Null, 0, 14), "nothing logged that is scheduled");
    assert_eq!(place.compliance("").await["last_logged_on"], place.ago(1), "a log it is all the same");
    place.world.facts([schedule(&[])]).await;
    assert_eq!(place.counts("").await, (Value::Null, 0, 0), "nothing expected");
}

#[tokio::test]
async fn compliance_is_logged_over_expected_half_up_and_at_most_100() {
    let place = Place::new().await;
    place.world.facts([schedule(&[("d", 1, place.ago(7), None)])]).await;
    for (n, pct) in [(0, 14), (1, 29), (2, 43), (3, 57), (4, 71), (5, 86), (6, 100)] {
        place.world.facts([dose(&format!("l{n}"), "d", &place.ago(n))]).await;
        let logged = u64::try_from(n).unwrap() + 1;
        assert_eq!(place.counts("").await, (json!(pct), logged, 7));
    }
    place.world.facts([dose("more", "d", &place.ago(0)), dose("out", "d", &place.ago(7))]).await;
    assert_eq!(place.counts("").await, (json!(100), 8, 7));
    assert_eq!(place.counts("?window_days=8").await, (json!(100), 9, 8));
    assert_eq!(place.counts("?window_days=1").await, (json!(100), 2, 1));
}

#[tokio::test]
async fn a_window_is_1_to_90_days_7_by_default_clamped_and_never_refused() {
    let place = Place::new().await;
    let window = async |query: &str| {
        let body = place.compliance(query).await;
        let days = body["window_days"].as_i64().unwrap();
        assert_eq!(body["since"], place.ago(days - 1), "{query}");
        days
    };
    assert_eq!(window("").await, 7);
    for (text, days) in [("1", 1), ("7", 7), ("090", 90), ("91", 90), ("18446744073709551616", 90)] {
        assert_eq!(window(&format!("?window_days={text}")).await, days, "{text}");
    }
    for text in ["0", "-3", "%2B9", "9.0", "1e1", "week", "", "%209"] {
        assert_eq!(window(&format!("?window_days={text}")).await, 7, "{text}");
    }
    assert_eq!(window("?window_days=3&window_days=9").await, 3);
    let members_of = members(&place.compliance("").await).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let all =
        ["client_id", "compliance_pct", "doses_expected", "doses_logged", "last_logged_on", "since", "window_days"];
    assert_eq!(members_of, all);
}

#[tokio::test]
async fn a_log_counts_when_its_dose_is_scheduled_on_its_date() {
    let place = Place::new().await;
    let (world, ago) = (&place.world, |days| place.ago(days));
    world
        .facts([
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
    assert_eq!(place.counts("").await, (json!(30), 3, 10));
    assert_eq!(place.compliance("").await["last_logged_on"], ago(-1), "the last log ever, ahead of today as it is");
    // An older schedule changes nothing, a newer one counts for the past as well.
    world.facts([schedule(&[]).with("occurred_at", "2026-01-01T00:00:00Z")]).await;
    assert_eq!(place.counts("").await.2, 10);
    world.facts([schedule(&[("a", 1, ago(6), None)])]).await;
    assert_eq!(place.counts("").await, (json!(57), 4, 7));
}

#[tokio::test]
async fn a_dose_log_is_one_log_however_often_it_is_told_and_moves_when_it_is_told_otherwise() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([schedule(&[("d", 1, place.ago(100), None), ("e", 1, place.ago(100), None)])]).await;
    world.facts([dose("l", "d", &place.ago(1)), dose("l", "d", &place.ago(1))]).await;
    assert_eq!(place.counts("").await.1, 1);
    let later = dose("l", "e", &place.ago(40)).with("occurred_at", world.timestamp_in(60).await);
    world.facts([later]).await;
    assert_eq!((place.counts("").await.1, place.counts("?window_days=90").await.1), (0, 1));
    assert_eq!(place.compliance("").await["last_logged_on"], place.ago(40));
    let older = dose("l", "d", &place.ago(0)).with("occurred_at", "2026-01-01T00:00:00Z");
    world.facts([older]).await;
    assert_eq!(place.compliance("").await["last_logged_on"], place.ago(40));
    // Fifteen days and more later the same log is still known.
    world.advance_s(16 * 86_400).await;
    let again = dose("l", "e", &place.ago(40)).with("id", "another-fact");
    world.facts([again]).await;
    assert_eq!(place.counts("?window_days=90").await.1, 1);
}

#[tokio::test]
async fn a_dose_log_is_where_it_was_said_to_be_last_though_that_was_said_before() {
    let place = Place::new().await;
    let told = async |seconds: i64, date: &str| {
        let said_at = place.world.timestamp_in(seconds).await;
        place.world.facts([dose("l", "d", date).with("occurred_at", said_at)]).await;
    };
    let (last, between) = (place.ago(0), place.ago(5));
    told(100, &last).await;
    told(3_000, &last).await;
    told(2_000, &between).await;
    assert_eq!(place.compliance("").await["last_logged_on"], last);
    told(4_000, &between).await;
    assert_eq!(place.compliance("").await["last_logged_on"], between);
}

#[tokio::test]
async fn a_deleted_dose_log_stays_deleted_in_whatever_order_it_is_told() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([schedule(&[("d", 1, place.ago(200), None)]), dose_deleted("first")]).await;
    world.facts([dose("first", "d", &place.ago(0))]).await;
    assert_eq!(place.compliance("").await["last_logged_on"], Value::Null);
    world.facts([dose("a", "d", &place.ago(150)), dose("b", "d", &place.ago(80)), dose("c", "d", &place.ago(1))]).await;
    for (log, left) in [("c", json!(place.ago(80))), ("b", json!(place.ago(150))), ("a", Value::Null)] {
        world.facts([dose_deleted(log), dose_deleted(log)]).await;
        assert_eq!(place.compliance("?window_days=1").await["last_logged_on"], left, "{log}");
    }
    world.facts([dose("c", "d", &place.ago(1)).with("occurred_at", world.timestamp_in(60).await)]).await;
    assert_eq!(place.counts("?window_days=90").await, (Value::Null, 0, 90));
}

#[tokio::test]
async fn logs_of_one_client_that_arrive_at_once_are_all_counted() {
    let place = Place::new().await;
    place.world.facts([schedule(&[("d", 10, place.ago(100), None)])]).await;
    place.world.facts((0..60).map(|n| dose(&format!("l{n}"), "d", &place.ago(n % 7)))).await;
    assert_eq!(place.counts("").await, (json!(86), 60, 70));
    place.world.facts((0..60).step_by(2).map(|n| dose_deleted(&format!("l{n}")))).await;
    assert_eq!(place.counts("").await.1, 30);
}

#[tokio::test]
async fn the_window_ends_with_the_date_that_it_is_where_the_workspace_is() {
    let place = Place::new().await;
    let world = &place.world;
    for (zone, hours) in [("Pacific/Kiritimati", 14), ("Etc/GMT+12", -12), ("Asia/Kolkata", 5), ("UTC", 0)] {
        world.coach("ada").with("time_zone", zone).await;
        let minutes = if zone == "Asia/Kolkata" { 30 } else { 0 };
        let local = world.now().await + TimeDelta::hours(hours) + TimeDelta::minutes(minutes);
        let today = local.date_naive();
        world.facts([schedule(&[("d", 1, today.to_string(), Some(today.to_string()))])]).await;
        let body = place.compliance("?window_days=1").await;
        assert_eq!((&body["since"], &body["doses_expected"]), (&json!(today.to_string()), &json!(1)), "{zone}");
        let body = place.compliance("?window_days=90").await;
        assert_eq!(body["since"], (today - TimeDelta::days(89)).to_string(), "{zone}");
        assert_eq!(body["doses_expected"], 1, "{zone}");
    }
}
