//! A coach whose automations wait for computed events, and the receiver that their Webhook steps name.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::receiver::Hook;
use super::stack::Stack;
use super::{Endpoint, Fact, Receiver, World, fact, rendered};

const NOON: NaiveTime = NaiveTime::from_hms_opt(12, 0, 0).unwrap();
/// Where a stack keeps how far its clock is ahead.
const CLOCK_FILE: &str = "clock";

/// The coach `ada` and her endpoint, which subscribes to nothing.
pub(crate) struct Watched {
    pub(crate) world: World,
    pub(crate) receiver: Receiver,
    pub(crate) endpoint: Endpoint,
}

/// A computed event that came to the receiver.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) event: String,
    pub(crate) client: String,
    pub(crate) automation: String,
    /// The body's `timestamp`: when the client came to match.
    pub(crate) at: String,
    pub(crate) data: Value,
    pub(crate) webhook_id: String,
    /// When it was sent, by the stack's clock.
    pub(crate) sent_at: DateTime<Utc>,
}

impl Told {
    pub(crate) fn of(hook: &Hook) -> Self {
        let body = hook.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            event: text(&body["type"]),
            client: text(&body["data"]["client"]["id"]),
            automation: text(&body["data"]["automation"]["id"]),
            at: text(&body["timestamp"]),
            webhook_id: hook.header("webhook-id").to_owned(),
            sent_at: DateTime::from_timestamp(hook.unix_s(), 0).unwrap(),
            data: body["data"].clone(),
        }
    }

    /// How long after the client came to match it was sent.
    pub(crate) fn lateness(&self) -> TimeDelta {
        self.sent_at - self.at.parse::<DateTime<Utc>>().unwrap()
    }
}

impl Receiver {
    /// What came of an event.
    pub(crate) fn hooks_of(&self, event: &str) -> Vec<Hook> {
        self.hooks().into_iter().filter(|hook| hook.header("x-service-event") == event).collect()
    }
}

impl World {
    /// Lets time pass, with its sweeps, until an instant or a second after it, never before it.
    pub(crate) async fn travel(&self, at: DateTime<Utc>) {
        let ms = (at - self.now().await).num_milliseconds();
        if let Ok(ms @ 1..) = u64::try_from(ms) {
            self.advance_s(ms.div_ceil(1000)).await;
        }
    }

    /// The stack is down until an instant: nothing is swept and nothing comes in.
    pub(crate) async fn down_until(&self, at: DateTime<Utc>) {
        let by_ms = (at - self.now().await).num_milliseconds();
        let dir = self.stack.lock().unwrap().kill();
        let clock = dir.path().join("data").join(CLOCK_FILE);
        let ahead_ms: i64 = std::fs::read_to_string(&clock).unwrap().trim().parse().unwrap();
        std::fs::write(clock, format!("{:20}\n", ahead_ms + by_ms)).unwrap();
        let stack = Stack::start_in(dir, &self.addresses).await;
        *self.stack.lock().unwrap() = stack;
    }
}

impl Watched {
    /// In UTC, without clients and automations, shortly before noon.
    pub(crate) async fn new() -> Self {
        Self::of("UTC", "identifiers").await
    }

    /// The same in a time zone, with an endpoint of that payload mode.
    pub(crate) async fn of(zone: &str, payload_mode: &str) -> Self {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        let now = world.now().await;
        let noon = now.date_naive().and_time(NOON).and_utc();
        world.down_until(if now < noon { noon } else { noon + TimeDelta::days(1) } - TimeDelta::minutes(1)).await;
        let coach = world.coach("ada").with("time_zone", zone).await;
        let body = json!({ "url": receiver.url(), "events": [], "payload_mode": payload_mode });
        let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        Self { world, receiver, endpoint }
    }

    /// An automation of hers with a Webhook step.
    pub(crate) fn automation(&self, id: &str, trigger: Value) -> Fact {
        automation("ada", id, trigger, &[&self.endpoint])
    }

    /// A client of hers, created at an instant, with one dose `d` a day from the beginning.
    pub(crate) async fn client(&self, id: &str, created_at: DateTime<Utc>) {
        let client = Fact::client("ada", id).with("created_at", rendered(created_at)).with("backfill", true);
        self.world.facts([client]).await;
        self.world.facts([schedule(id, 1)]).await;
    }

    /// Lets time pass, with its sweeps, until an instant.
    pub(crate) async fn until(&self, at: DateTime<Utc>) {
        let seconds = (at - self.world.now().await).num_seconds();
        self.world.advance_s(u64::try_from(seconds).unwrap()).await;
    }

    /// Lets what is due now be swept.
    pub(crate) async fn swept(&self) {
        self.world.advance_s(16 * 60).await;
    }

    /// What was told, in the order in which it came, each signed as it should be.
    pub(crate) fn told(&self) -> Vec<Told> {
        let hooks = self.receiver.hooks();
        assert!(hooks.iter().all(|hook| hook.is_signed_with(&self.endpoint.secret)));
        hooks.iter().map(Told::of).collect()
    }

    /// Of what was told, the automations and the instants.
    pub(crate) fn episodes(&self) -> Vec<(String, String)> {
        self.told().into_iter().map(|told| (told.automation, told.at)).collect()
    }

    /// Of what was told, the automations and the clients, sorted.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<_> = self.told().into_iter().map(|told| (told.automation, told.client)).collect();
        pairs.sort();
        pairs
    }
}

/// An automation of a coach whose steps name these endpoints.
pub(crate) fn automation(coach: &str, id: &str, trigger: Value, endpoints: &[&Endpoint]) -> Fact {
    let steps = endpoints.iter().map(|endpoint| json!({ "kind": "webhook", "endpoint_id": endpoint.id }));
    let detail = json!({
        "automation_id": id, "coach_id": coach, "name": format!("Rule {id}"), "active": true, "trigger": trigger,
        "steps": steps.collect::<Vec<_>>(),
    });
    fact("automation.saved", detail)
}

/// That it was deleted.
pub(crate) fn automation_deleted(coach: &str, id: &str) -> Fact {
    fact("automation.deleted", json!({ "automation_id": id, "coach_id": coach }))
}

/// So many of dose `d` a day.
pub(crate) fn schedule(client: &str, per_day: u32) -> Fact {
    let dose = json!({ "dose_id": "d", "per_day": per_day, "from": "2020-01-01", "until": null });
    fact("dose_schedule.saved", json!({ "client_id": client, "doses": [dose] }))
}

/// A log of dose `d`, whose identity is its date.
pub(crate) fn dose(client: &str, date: NaiveDate) -> Fact {
    let id = format!("{client}-{date}");
    fact("dose.logged", json!({ "client_id": client, "dose_log_id": id, "dose_id": "d", "date": date.to_string() }))
}

/// That it was deleted.
pub(crate) fn dose_deleted(client: &str, date: NaiveDate) -> Fact {
    fact("dose_log.deleted", json!({ "client_id": client, "dose_log_id": format!("{client}-{date}") }))
}

pub(crate) fn daily_log(client: &str, date: NaiveDate) -> Fact {
    fact("daily_log.saved", json!({ "client_id": client, "date": date.to_string() }))
}

/// That it was deleted.
pub(crate) fn daily_log_deleted(client: &str, date: NaiveDate) -> Fact {
    fact("daily_log.deleted", json!({ "client_id": client, "date": date.to_string() }))
}

pub(crate) fn check_in(client: &str, id: &str, submitted_at: DateTime<Utc>) -> Fact {
    let detail = json!({
        "client_id": client, "check_in_id": id, "submitted_at": rendered(submitted_at), "scores": {}, "grades": {},
    });
    fact("check_in.submitted", detail)
}

/// That it was deleted.
pub(crate) fn check_in_deleted(client: &str, id: &str) -> Fact {
    fact("check_in.deleted", json!({ "client_id": client, "check_in_id": id }))
}

/// That a client came to a phase.
pub(crate) fn phase(client: &str, to: &str, advanced_at: DateTime<Utc>) -> Fact {
    let detail = json!({
        "client_id": client, "from_phase": null, "to_phase": to, "advanced_at": rendered(advanced_at),
    });
    fact("phase.advanced", detail)
}
