//! Backfills: a match that starts by a backfill emits nothing. Matches that start afterwards are emitted.

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::world::sweep::{SweepScene, check_in, daily_log};
use crate::world::{Fact, fact, rendered};

/// A client, the automation `r` that the client does not match, and a fact that makes it match.
struct BackfillCase {
    scene: SweepScene,
    fact: Fact,
    /// Number of events if the fact is no backfill.
    play: usize,
}

impl BackfillCase {
    async fn of(trigger: Value) -> (SweepScene, NaiveDate) {
        let scene = SweepScene::new().await;
        let now = scene.world.now().await;
        scene.client("c1", now - TimeDelta::days(60)).await;
        scene.world.apply([scene.automation("r", trigger)]).await;
        (scene, now.date_naive())
    }

    async fn programme() -> Self {
        let (scene, today) = Self::of(json!({ "event": "phase_eligible" })).await;
        let client = Fact::client("ada", "c1")
            .with("created_at", rendered(scene.world.now().await - TimeDelta::days(60)))
            .with("programme_id", "p")
            .with("current_phase", "Build")
            .with("phase_started_on", (today - TimeDelta::days(20)).to_string());
        scene.world.apply([client]).await;
        let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
            { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
        let fact = fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }));
        Self { scene, fact, play: 1 }
    }

    /// A day after the only log is over fourteen hours ahead, and not in UTC.
    async fn zone() -> Self {
        let (scene, today) = Self::of(json!({ "event": "daily_log_inactivity", "days": 1 })).await;
        scene.world.apply([daily_log("c1", today - TimeDelta::days(1))]).await;
        let fact = scene.world.coach("ada").with("time_zone", "Pacific/Kiritimati").into_fact();
        Self { scene, fact, play: 1 }
    }

    /// A returning client is seeded, backfill or not.
    async fn return_of_a_client() -> Self {
        let (scene, _) = Self::of(json!({ "event": "check_in_inactivity", "days": 2 })).await;
        let world = &scene.world;
        world.apply([check_in("c1", "k", world.now().await)]).await;
        scene.sweep().await;
        let created_at = rendered(world.now().await - TimeDelta::days(60));
        let client = |is_active: bool| {
            Fact::client("ada", "c1").with("created_at", created_at.clone()).with("is_active", is_active)
        };
        world.apply([client(false)]).await;
        world.advance_s(4 * 24 * 3_600).await;
        let fact = client(true);
        Self { scene, fact, play: 0 }
    }
}

#[tokio::test]
async fn backfilled_programmes_zones_and_clients_emit_nothing() {
    for backfill in [true, false] {
        let cases =
            [BackfillCase::programme().await, BackfillCase::zone().await, BackfillCase::return_of_a_client().await];
        for (n, BackfillCase { scene, fact, play }) in cases.into_iter().enumerate() {
            scene.sweep().await;
            assert_eq!(scene.received(), [], "case {n}");
            scene.world.apply([fact.with("backfill", backfill)]).await;
            scene.sweep().await;
            assert_eq!(scene.received().len(), if backfill { 0 } else { play }, "case {n}, backfill {backfill}");
            scene.world.advance_s(3_600).await;
            assert_eq!(scene.received().len(), if backfill { 0 } else { play }, "case {n}, backfill {backfill}, later");
        }
    }
}

#[tokio::test]
async fn a_roster_backfilled_before_its_programme_emits_only_later_eligibility() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let (now, today) = (world.now().await, world.now().await.date_naive());
    world.apply([scene.automation("r", json!({ "event": "phase_eligible" }))]).await;
    scene.sweep().await;
    let client = |id: &str, days: i64| {
        Fact::client("ada", id)
            .with("created_at", rendered(now - TimeDelta::days(60)))
            .with("programme_id", "p")
            .with("current_phase", "Build")
            .with("phase_started_on", (today - TimeDelta::days(days)).to_string())
            .with("backfill", true)
    };
    world.apply([client("may", 20), client("may-in-two-days", 3)]).await;
    scene.sweep().await;
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    let programme = json!({ "programme_id": "p", "coach_id": "ada", "phases": phases, "backfill": true });
    world.apply([fact("programme.saved", programme)]).await;
    scene.until(now + TimeDelta::days(4)).await;
    let received: Vec<String> = scene.received().into_iter().map(|event| event.client).collect();
    assert_eq!(received, ["may-in-two-days"]);
}
