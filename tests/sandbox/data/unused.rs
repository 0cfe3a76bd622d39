//! The schedule: a workspace whose keys are not used is emptied after 90 days, once.

use chrono::TimeDelta;
use domain::mode::Mode;
use serde_json::{Value, json};

use crate::sandbox::{record, start, store, visitor};
use crate::world::{Fact, World};

const DAY_S: u64 = 86_400;

/// The clients of a workspace, and the job of its latest removal. No key is used for it.
async fn state(world: &World, coach: &str) -> (Value, Value) {
    let stored = record(world, coach).await;
    (stored["client_count"]["N"].clone(), stored["wipe"]["M"]["job"]["S"].clone())
}

/// Lets the schedule run, and what it starts end.
async fn a_day(world: &World) {
    world.advance_s(DAY_S).await;
    world.advance_s(120).await;
}

#[tokio::test]
async fn a_workspace_is_emptied_once_its_keys_were_not_used_for_90_days_and_no_other_is() {
    let world = start(Mode::Test).await;
    let (idle, used, keyless) = (visitor(&world, "idle"), visitor(&world, "used"), world.coach("keyless").await);
    // One of two keys is enough.
    let (idle_key, _) = (idle.partner_key().await, idle.crm_key().await);
    let (used_key, other) = (used.partner_key().await, used.crm_key().await);
    for key in [&idle_key, &used_key] {
        store(key, [Fact::client("", &format!("client-{}", world.number()))]).await;
    }
    world.apply([Fact::client(&keyless.id, "client-of-bus")]).await;
    let (one, none) = (json!("1"), Value::Null);
    world.down_for(TimeDelta::days(88)).await;
    other.get("/v1/key").await.expect(200);
    a_day(&world).await;
    for coach in ["idle", "used", "keyless"] {
        assert_eq!(state(&world, coach).await, (one.clone(), none.clone()), "{coach}: the time is not over");
    }
    world.down_for(TimeDelta::days(2)).await;
    a_day(&world).await;
    let (clients, job) = state(&world, "idle").await;
    assert_eq!((&clients, job.is_string()), (&json!("0"), true));
    for coach in ["used", "keyless"] {
        assert_eq!(state(&world, coach).await, (one.clone(), none.clone()), "{coach}");
    }
    // Once: nothing has been written since, and no key was used.
    for _ in 0..2 {
        a_day(&world).await;
        assert_eq!(state(&world, "idle").await, (json!("0"), job.clone()));
    }
    // The keys work, and with their next use the time begins anew.
    store(&idle_key, [Fact::client("", "after")]).await;
    a_day(&world).await;
    assert_eq!(state(&world, "idle").await, (one.clone(), job.clone()));
    world.down_for(TimeDelta::days(90)).await;
    a_day(&world).await;
    let (clients, again) = state(&world, "idle").await;
    assert_eq!(clients, "0");
    assert!(again.is_string() && again != job, "{again}");
    // By then the other one was not used either.
    assert_eq!(state(&world, "used").await.0, "0");
}

#[tokio::test]
async fn a_new_key_counts_as_a_use() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    store(&key, [Fact::client("", "c1")]).await;
    world.down_for(TimeDelta::days(85)).await;
    ada.partner_key().await;
    world.down_for(TimeDelta::days(10)).await;
    a_day(&world).await;
    assert_eq!(state(&world, "ada").await, (json!("1"), Value::Null));
}
