//! A coach with automations on computed events, and the receiver of their Webhook steps.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::receiver::Hook;
use super::{Endpoint, Fact, Receiver, World, fact, rendered};

const NOON: NaiveTime = NaiveTime::from_hms_opt(12, 0, 0).unwrap();

/// The coach `ada` and her endpoint, which subscribes to no event.
pub(crate) struct SweepScene {
    pub(crate) world: World,
    pub(crate) receiver: Receiver,
    pub(crate) endpoint: Endpoint,
}

/// A computed event that the receiver got.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ComputedEvent {
    pub(crate) event: String,
    pub(crate) client: String,
    pub(crate) automation: String,
    /// The body's `timestamp`: when the client started to match.
    pub(crate) at: String,
    pub(crate) data: Value,
    pub(crate) webhook_id: String,
    /// Time of sending by the stack's clock.
    pub(crate) sent_at: DateTime<Utc>,
}

impl ComputedEvent {
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

    /// Time from the start of the match to the sending.
    pub(crate) fn lateness(&self) -> TimeDelta {
        self.sent_at - self.at.parse::<DateTime<Utc>>().unwrap()
    }
}

impl Receiver {
    /// Requests for an event.
    pub(crate) fn hooks_of(&self, event: &str) -> Vec<Hook> {
        self.hooks().into_iter().filter(|hook| hook.header("x-service-event") == event).collect()
    }
}

impl World {
    /// Advances, with sweeps, to an instant, or up to a second past it. Does nothing if it has passed.
    pub(crate) async fn advance_to(&self, at: DateTime<Utc>) {
        let ms = (at - self.now().await).num_milliseconds();
        if let Ok(ms @ 1..) = u64::try_from(ms) {
            self.advance_s(ms.div_ceil(1000)).await;
        }
    }
}

impl SweepScene {
    /// A world in UTC without clients and automations, shortly before noon.
    pub(crate) async fn new() -> Self {
        Self::of("UTC", "identifiers").await
    }

    /// A world in a time zone, with an endpoint of that payload mode.
    pub(crate) async fn of(zone: &str, payload_mode: &str) -> Self {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        let now = world.now().await;
        let before_noon = now.date_naive().and_time(NOON).and_utc() - TimeDelta::minutes(1);
        world.down_until(if now < before_noon { before_noon } else { before_noon + TimeDelta::days(1) }).await;
        let coach = world.coach("ada").with("time_zone", zone).await;
        let body = json!({ "url": receiver.url(), "events": [], "payload_mode": payload_mode });
        let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        Self { world, receiver, endpoint }
    }

    /// An automation of `ada` with a Webhook step.
    pub(crate) fn automation(&self, id: &str, trigger: Value) -> Fact {
        automation("ada", id, trigger, &[&self.endpoint])
    }

    /// Creates a client of `ada` at an instant, with one dose `d` a day from the beginning.
    pub(crate) async fn client(&self, id: &str, created_at: DateTime<Utc>) {
        let client = Fact::client("ada", id).with("created_at", rendered(created_at)).with("backfill", true);
        self.world.apply([client]).await;
        self.world.apply([schedule(id, 1)]).await;
    }

    /// Advances, with sweeps, to an instant.
    pub(crate) async fn until(&self, at: DateTime<Utc>) {
        let seconds = (at - self.world.now().await).num_seconds();
        self.world.advance_s(u64::try_from(seconds).unwrap()).await;
    }

    /// Advances past the next sweep.
    pub(crate) async fn sweep(&self) {
        self.world.advance_s(16 * 60).await;
    }

    /// All received events in order of receipt. Asserts their signatures.
    pub(crate) fn received(&self) -> Vec<ComputedEvent> {
        let hooks = self.receiver.hooks();
        assert!(hooks.iter().all(|hook| hook.is_signed_with(&self.endpoint.secret)));
        hooks.iter().map(ComputedEvent::of).collect()
    }

    /// Automation and timestamp of each received event.
    pub(crate) fn episodes(&self) -> Vec<(String, String)> {
        self.received().into_iter().map(|event| (event.automation, event.at)).collect()
    }

    /// Automation and client of each received event, sorted.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<_> = self.received().into_iter().map(|event| (event.automation, event.client)).collect();
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

/// The automation is deleted.
pub(crate) fn automation_deleted(coach: &str, id: &str) -> Fact {
    fact("automation.deleted", json!({ "automation_id": id, "coach_id": coach }))
}

/// A schedule of dose `d` with `per_day` doses.
pub(crate) fn schedule(client: &str, per_day: u32) -> Fact {
    let dose = json!({ "dose_id": "d", "per_day": per_day, "from": "2020-01-01", "until": null });
    fact("dose_schedule.saved", json!({ "client_id": client, "doses": [dose] }))
}

/// A log of dose `d` with an id derived from client and date.
pub(crate) fn dose(client: &str, date: NaiveDate) -> Fact {
    let id = format!("{client}-{date}");
    fact("dose.logged", json!({ "client_id": client, "dose_log_id": id, "dose_id": "d", "date": date.to_string() }))
}

/// The log of dose `d` on that date is deleted.
pub(crate) fn dose_deleted(client: &str, date: NaiveDate) -> Fact {
    fact("dose_log.deleted", json!({ "client_id": client, "dose_log_id": format!("{client}-{date}") }))
}

pub(crate) fn daily_log(client: &str, date: NaiveDate) -> Fact {
    fact("daily_log.saved", json!({ "client_id": client, "date": date.to_string() }))
}

/// The daily log of that date is deleted.
pub(crate) fn daily_log_deleted(client: &str, date: NaiveDate) -> Fact {
    fact("daily_log.deleted", json!({ "client_id": client, "date": date.to_string() }))
}

pub(crate) fn check_in(client: &str, id: &str, submitted_at: DateTime<Utc>) -> Fact {
    let detail = json!({
        "client_id": client, "check_in_id": id, "submitted_at": rendered(submitted_at), "scores": {}, "grades": {},
    });
    fact("check_in.submitted", detail)
}

/// The check-in is deleted.
pub(crate) fn check_in_deleted(client: &str, id: &str) -> Fact {
    fact("check_in.deleted", json!({ "client_id": client, "check_in_id": id }))
}

/// A client enters a phase.
pub(crate) fn phase(client: &str, to: &str, advanced_at: DateTime<Utc>) -> Fact {
    let detail = json!({
        "client_id": client, "from_phase": null, "to_phase": to, "advanced_at": rendered(advanced_at),
    });
    fact("phase.advanced", detail)
}
