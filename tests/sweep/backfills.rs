//! What a backfill brings: clients who come to match by it are not told of, whatever it changes, and are told of what they come to match
//! afterwards.

use chrono::{NaiveDate, TimeDelta};
use serde_json::{Value, json};

use crate::world::sweep::{Watched, check_in, daily_log};
use crate::world::{Fact, fact, rendered};

/// A client and the automation `r`, which the client does not match, and a fact by which it comes to.
struct Case {
    place: Watched,
    fact: Fact,
    /// The number of events where the fact is no backfill.
    live: usize,
}

impl Case {
    async fn of(trigger: Value) -> (Watched, NaiveDate) {
        let place = Watched::new().await;
        let now = place.world.now().await;
        place.client("c1", now - TimeDelta::days(60)).await;
        place.world.facts([place.automation("r", trigger)]).await;
        (place, now.date_naive())
    }

    async fn programme() -> Self {
        let (place, today) = Self::of(json!({ "event": "phase_eligible" })).await;
        let client = Fact::client("ada", "c1")
            .with("created_at", rendered(place.world.now().await - TimeDelta::days(60)))
            .with("programme_id", "p")
            .with("current_phase", "Build")
            .with("phase_started_on", (today - TimeDelta::days(20)).to_string());
        place.world.facts([client]).await;
        let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
            { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
        let fact = fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }));
        Self { place, fact, live: 1 }
    }

    /// A day after the one of the only log is over fourteen hours ahead, and not in UTC.
    async fn zone() -> Self {
        let (place, today) = Self::of(json!({ "event": "daily_log_inactivity", "days": 1 })).await;
        place.world.facts([daily_log("c1", today - TimeDelta::days(1))]).await;
        let fact = place.world.coach("ada").with("time_zone", "Pacific/Kiritimati").into_fact();
        Self { place, fact, live: 1 }
    }

    /// Who returns is seeded, backfill or not.
    async fn return_of_a_client() -> Self {
        let (place, _) = Self::of(json!({ "event": "check_in_inactivity", "days": 2 })).await;
        let world = &place.world;
        world.facts([check_in("c1", "k", world.now().await)]).await;
        place.swept().await;
        let created_at = rendered(world.now().await - TimeDelta::days(60));
        let client = |is_active: bool| {
            Fact::client("ada", "c1").with("created_at", created_at.clone()).with("is_active", is_active)
        };
        world.facts([client(false)]).await;
        world.advance_s(4 * 24 * 3_600).await;
        let fact = client(true);
        Self { place, fact, live: 0 }
    }
}

#[tokio::test]
async fn nobody_is_told_of_by_what_a_backfill_brings_of_programmes_zones_and_clients() {
    for backfill in [true, false] {
        let cases = [Case::programme().await, Case::zone().await, Case::return_of_a_client().await];
        for (n, Case { place, fact, live }) in cases.into_iter().enumerate() {
            place.swept().await;
            assert_eq!(place.told(), [], "case {n}");
            place.world.facts([fact.with("backfill", backfill)]).await;
            place.swept().await;
            assert_eq!(place.told().len(), if backfill { 0 } else { live }, "case {n}, backfill {backfill}");
            place.world.advance_s(3_600).await;
            assert_eq!(place.told().len(), if backfill { 0 } else { live }, "case {n}, backfill {backfill}, later");
        }
    }
}

#[tokio::test]
async fn a_roster_that_is_brought_before_its_programme_tells_of_who_may_move_on_from_then_on_alone() {
    let place = Watched::new().await;
    let world = &place.world;
    let (now, today) = (world.now().await, world.now().await.date_naive());
    world.facts([place.automation("r", json!({ "event": "phase_eligible" }))]).await;
    place.swept().await;
    let client = |id: &str, days: i64| {
        Fact::client("ada", id)
            .with("created_at", rendered(now - TimeDelta::days(60)))
            .with("programme_id", "p")
            .with("current_phase", "Build")
            .with("phase_started_on", (today - TimeDelta::days(days)).to_string())
            .with("backfill", true)
    };
    world.facts([client("may", 20), client("may-in-two-days", 3)]).await;
    place.swept().await;
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    let programme = json!({ "programme_id": "p", "coach_id": "ada", "phases": phases, "backfill": true });
    world.facts([fact("programme.saved", programme)]).await;
    place.until(now + TimeDelta::days(4)).await;
    let told: Vec<String> = place.told().into_iter().map(|told| told.client).collect();
    assert_eq!(told, ["may-in-two-days"]);
}
