//! Of two facts about one record the later one counts, to the nanosecond, in any order of arrival.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::contacts::merges::pseudo_random;
use crate::world::{Caller, Fact, PIPELINE, Receiver, World, fact, uuid};

const CONTACT: u64 = 1;
const MERGED: u64 = 2;
const CALENDAR: u64 = 3;
const EVENT: u64 = 4;
const OPPORTUNITY: u64 = 5;
const WORKFLOW: u64 = 6;
/// First id of the contacts that the merged contact may be merged into.
const TARGETS: u64 = 100;

/// Versions of a record that differ in what the API shows.
const VERSIONS: u64 = 8;

/// Time after which the queue delivers again what a function that died had received.
const REDELIVERED_S: u64 = 200;
/// Calls of a batch with a fact of each kind, at least.
const CALLS_OF_A_BATCH: u64 = 60;

fn instant(base: DateTime<Utc>, nanos: i64) -> String {
    (base + TimeDelta::nanoseconds(nanos)).to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// A record of every kind, and how it looks from outside.
struct Records {
    world: World,
    partner: Caller,
    crm: Caller,
    wide: Caller,
}

impl Records {
    async fn start() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let (partner, crm) = (ada.partner_key().await, ada.crm_key().await);
        let wide = world.coach("wide").await.partner_key().await;
        let targets = (0..VERSIONS).map(|version| Fact::contact("ada", &uuid(TARGETS + version)));
        world.apply(targets.chain([Fact::client("ada", "steps"), Fact::client("ada", "logs")])).await;
        Self { world, partner, crm, wide }
    }

    /// A version of each record, by its name in [`Records::shown`].
    fn version(&self, version: u64) -> Vec<(&'static str, Fact)> {
        let name = format!("v{version}");
        let date = format!("2026-03-{:02}", 10 + version);
        let moment = format!("2026-03-{:02}T10:00:00.000Z", 10 + version);
        let of = |client: &str, fields: Value| {
            let mut detail = fields;
            detail["client_id"] = client.into();
            detail
        };
        let schedule = json!([{ "dose_id": "d", "per_day": version + 1, "from": "2020-01-01", "until": null }]);
        let phases = json!([{ "name": name, "min_days": 1, "min_compliance_pct": null }]);
        let event = json!({
            "event_id": uuid(EVENT), "coach_id": "ada", "calendar_id": uuid(CALENDAR), "lead_id": null, "starts_at": moment,
            "ends_at": format!("2026-03-{:02}T11:00:00Z", 10 + version), "status": "confirmed",
        });
        let automation = json!({
            "automation_id": "a", "coach_id": "ada", "name": name, "active": true, "trigger": { "event": "new_client" }, "steps": [],
        });
        let log = if version.is_multiple_of(2) { "daily_log.saved" } else { "daily_log.deleted" };
        // A step is emitted once, so each version is another step.
        let advanced_at = instant(DateTime::UNIX_EPOCH, 1_000_000_000 * i64::try_from(self.world.number()).unwrap());
        let step = json!({ "from_phase": null, "to_phase": name, "advanced_at": advanced_at });
        vec![
            ("workspace", self.world.coach("wide").with("name", name.as_str()).into_fact()),
            ("team", fact("team.saved", json!({ "team_id": "t", "client_cap": version }))),
            ("client", Fact::client("ada", "c").with("full_name", name.as_str())),
            ("programme", fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))),
            ("phase", fact("phase.advanced", of("steps", step))),
            ("schedule", fact("dose_schedule.saved", of("logs", json!({ "doses": schedule })))),
            ("dose", fact("dose.logged", of("logs", json!({ "dose_log_id": "l", "dose_id": "d", "date": date })))),
            ("daily log", fact(log, of("logs", json!({ "date": "2026-03-01" })))),
            (
                "check-in",
                fact(
                    "check_in.submitted",
                    of("logs", json!({ "check_in_id": "k", "submitted_at": moment, "scores": {}, "grades": {} })),
                ),
            ),
            ("review", fact("check_in.reviewed", of("logs", json!({ "check_in_id": "k", "reviewed_at": moment })))),
            ("automation", fact("automation.saved", automation)),
            ("workflow", Fact::workflow("ada", &uuid(WORKFLOW)).with("name", name.as_str())),
            ("pipeline", Fact::pipeline("ada").with("name", name.as_str())),
            ("contact", Fact::contact("ada", &uuid(CONTACT)).with("name", name.as_str())),
            (
                "merge",
                fact(
                    "contact.merged",
                    json!({ "coach_id": "ada", "contact_id": uuid(MERGED), "merged_into": uuid(TARGETS + version) }),
                ),
            ),
            ("opportunity", Fact::opportunity("ada", &uuid(OPPORTUNITY), &uuid(CONTACT)).with("name", name.as_str())),
            ("calendar", Fact::calendar("ada", &uuid(CALENDAR)).with("name", name.as_str())),
            ("event", fact("calendar_event.saved", event)),
        ]
    }

    async fn publish(&self, version: u64, occurred_at: &str) {
        self.world
            .apply(self.version(version).into_iter().map(|(_, fact)| fact.with("occurred_at", occurred_at)))
            .await;
    }

    /// The item of a record that no route shows.
    async fn item(&self, pk: &str, sk: &str) -> Value {
        let items = self.world.items("workspaces", pk).await;
        items.into_iter().find(|item| item["sk"]["S"] == sk).unwrap_or_default()
    }

    async fn listed(&self, path: &str, id: u64, field: &str) -> Value {
        let page = self.crm.get(&format!("/v1/crm/{path}?limit=200")).await.expect(200).body;
        let found = page["data"].as_array().unwrap().iter().find(|record| record["id"] == uuid(id));
        found.map(|record| record[field].clone()).unwrap_or_default()
    }

    async fn shown(&self) -> Vec<(&'static str, Value)> {
        let get = async |path: &str| self.partner.get(path).await.expect(200).body;
        let compliance = get("/v1/clients/logs/compliance?window_days=1").await;
        let check_in = get("/v1/clients/logs/check-ins").await["check_ins"][0].clone();
        let patch = self.crm.patch(&format!("/v1/crm/contacts/{}", uuid(MERGED)), json!({ "name": "x" }));
        let merged = patch.idempotent(&format!("merged-{}", self.world.number())).await.refused(409, "contact_merged");
        vec![
            ("workspace", self.wide.get("/v1/ping").await.expect(200).body["coach"]["name"].clone()),
            ("team", self.item("TEAM#t", "TEAM").await["client_cap"]["N"].clone()),
            ("client", get("/v1/clients/c").await["full_name"].clone()),
            ("programme", self.item("COACH#ada", "PROGRAMME#p").await["phases"]["L"][0]["M"]["name"]["S"].clone()),
            ("phase", get("/v1/clients/steps").await["current_phase"].clone()),
            ("schedule", compliance["doses_expected"].clone()),
            ("dose", compliance["last_logged_on"].clone()),
            ("daily log", get("/v1/clients/logs/daily-logs").await["count"].clone()),
            ("check-in", check_in["submitted_at"].clone()),
            ("review", check_in["reviewed_at"].clone()),
            ("automation", self.item("COACH#ada", "AUTOMATION#a").await["name"]["S"].clone()),
            ("workflow", self.listed("workflows", WORKFLOW, "name").await),
            (
                "pipeline",
                self.item("COACH#ada", &format!("PIPELINE#{PIPELINE}")).await["pipeline"]["M"]["name"]["S"].clone(),
            ),
            ("contact", self.listed("contacts", CONTACT, "name").await),
            ("merge", merged.body["mergedIntoId"].clone()),
            ("opportunity", self.listed("opportunities", OPPORTUNITY, "name").await),
            ("calendar", self.listed("calendars", CALENDAR, "name").await),
            ("event", self.listed("bookings", EVENT, "startsAt").await),
        ]
    }
}

/// Sends versions of every record in this order, each at its own nanosecond, and checks that the latest is shown. Of
/// versions of the same instant the last one to arrive counts.
async fn assert_latest_fact_counts(records: &Records, base: DateTime<Utc>, order: &[(u64, i64)]) {
    let mut last: Option<(u64, i64)> = None;
    let mut expected = Vec::new();
    for (version, nanos) in order {
        records.publish(*version, &instant(base, *nanos)).await;
        let shown = records.shown().await;
        if last.is_none_or(|(_, latest)| *nanos >= latest) {
            last = Some((*version, *nanos));
            let unchanged: Vec<_> = shown.iter().zip(&expected).filter(|(now, before)| now == before).collect();
            assert!(unchanged.is_empty(), "a later version changes nothing: {unchanged:?} in {order:?}");
            expected = shown;
        } else {
            assert_eq!(shown, expected, "{order:?}");
        }
    }
}

#[tokio::test]
async fn every_kind_of_record_keeps_the_later_fact_to_the_nanosecond() {
    let records = Records::start().await;
    let base = records.world.now().await;
    // Within a microsecond, within a millisecond, one nanosecond apart, and at one instant.
    let order = [(0, 100_900), (1, 100_100), (3, 100_900), (4, 100_901), (5, 100_900), (7, 999_999)];
    assert_latest_fact_counts(&records, base, &order).await;
}

#[tokio::test]
async fn every_kind_of_record_is_stored_and_emitted_once_whatever_call_of_the_function_dies() {
    let receiver = Receiver::start().await;
    let records = Records::start().await;
    let world = &records.world;
    let endpoint = json!({ "url": receiver.url(), "events": ["phase_advanced"], "payload_mode": "identifiers" });
    world.coach("ada").await.settings().await.post("/settings/webhooks", endpoint).await.expect(201);
    let base = world.now().await;
    records.publish(0, &instant(base, 0)).await;
    let mut before = records.shown().await;
    for round in 1..=CALLS_OF_A_BATCH / 2 {
        let (version, at) = (round % VERSIONS, instant(base, i64::try_from(round).unwrap()));
        let fault = if round % 2 == 0 { "crash_before_call" } else { "crash_after_commit" };
        world.faults(json!({ "function": "ingest", "spared_calls": 2 * round, fault: 1 })).await;
        records.publish(version, &at).await;
        world.clear_faults().await;
        world.advance_s(REDELIVERED_S).await;
        let shown = records.shown().await;
        let unchanged: Vec<_> = shown.iter().zip(&before).filter(|(now, before)| now == before).collect();
        assert!(unchanged.is_empty(), "{fault} after {} calls: {unchanged:?}", 2 * round);
        before = shown;
        let phases = receiver.hooks_of("phase_advanced").len() as u64;
        assert_eq!(phases, 1 + round, "{fault} after {} calls", 2 * round);
    }
}

#[tokio::test]
async fn facts_at_random_nanoseconds_give_the_same_result_in_any_order() {
    let records = Records::start().await;
    // Each round begins later than all facts of the earlier ones.
    for round in 1..4_u64 {
        let base = records.world.now().await + TimeDelta::seconds(10 * i64::try_from(round).unwrap());
        let mut random = pseudo_random(round);
        let mut times: Vec<i64> = Vec::new();
        while times.len() < usize::try_from(VERSIONS).unwrap() {
            let nanos = i64::try_from(random(3_000_000)).unwrap();
            if !times.contains(&nanos) {
                times.push(nanos);
            }
        }
        let order: Vec<(u64, i64)> = (0..VERSIONS).zip(times).collect();
        for (version, nanos) in &order {
            records.publish(*version, &instant(base, *nanos)).await;
        }
        let shown = records.shown().await;
        let (last, _) = order.iter().max_by_key(|(_, at)| *at).unwrap();
        records.publish(*last, &instant(base, 3_000_001)).await;
        assert_eq!(records.shown().await, shown, "{order:?}");
    }
}

#[tokio::test]
async fn hand_overs_cancellations_suppressions_and_lost_entitlements_survive_older_facts() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await, world.coach("bob").await);
    let (of_ada, of_bob, crm) = (ada.partner_key().await, bob.partner_key().await, ada.crm_key().await);
    let base = world.now().await;
    let (older, later) = (instant(base, 100_100), instant(base, 100_900));
    let event = |status: &str| {
        fact(
            "calendar_event.saved",
            json!({
                "event_id": uuid(EVENT), "coach_id": "ada", "calendar_id": uuid(CALENDAR), "lead_id": null,
                "starts_at": "2031-03-01T10:00:00Z", "ends_at": "2031-03-01T11:00:00Z", "status": status,
            }),
        )
    };
    let contact = |suppressed: bool| Fact::contact("ada", &uuid(CONTACT)).with("do_not_contact", suppressed);
    let at = |fact: Fact, occurred_at: &str| fact.with("occurred_at", occurred_at);
    world.apply([at(Fact::calendar("ada", &uuid(CALENDAR)), &older)]).await;
    world
        .apply([
            at(Fact::client("bob", "c1"), &later),
            at(event("cancelled"), &later),
            at(contact(true), &later),
            at(world.coach("bob").not_entitled().into_fact(), &later),
        ])
        .await;
    world
        .apply([
            at(Fact::client("ada", "c1"), &older),
            at(event("confirmed"), &older),
            at(contact(false), &older),
            at(world.coach("bob").into_fact(), &older),
        ])
        .await;
    of_ada.get("/v1/clients/c1").await.expect(404);
    of_bob.get("/v1/ping").await.expect(402);
    assert_eq!(crm.get("/v1/crm/bookings").await.expect(200).body["data"], json!([]));
    assert_eq!(crm.get("/v1/crm/contacts").await.expect(200).body["data"][0]["doNotContact"], true);
}

#[tokio::test]
async fn a_deleted_automation_returns_only_by_a_later_fact() {
    let records = Records::start().await;
    let base = records.world.now().await;
    let saved = |nanos: i64| {
        let (_, fact) = records.version(0).into_iter().find(|(name, _)| *name == "automation").unwrap();
        fact.with("occurred_at", instant(base, nanos))
    };
    let deleted = |nanos: i64| {
        fact(
            "automation.deleted",
            json!({ "automation_id": "a", "coach_id": "ada", "occurred_at": instant(base, nanos) }),
        )
    };
    let is_there = async || records.item("COACH#ada", "AUTOMATION#a").await["name"].is_object();
    for (fact, there) in [
        (saved(100_100), true),
        (deleted(100_900), false),
        (saved(100_899), false),
        (saved(100_901), true),
        (deleted(100_900), true),
    ] {
        let shown = format!("{fact:?}");
        records.world.apply([fact]).await;
        assert_eq!(is_there().await, there, "{shown}");
    }
}
