//! A case of the table: a coach with one client, facts over time, and the expected events. All cases share one world,
//! because elapsing time is what costs.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{ComputedEvent, automation, dose, schedule};
use crate::world::{Fact, Hook, Receiver, World, fact, rendered};

/// A sweep's period, plus the slack of a busy machine whose clock runs on.
const LATEST: TimeDelta = TimeDelta::minutes(15 + 2);
/// Facts of an instant have to be applied before the next sweep, minutes later.
const AT_ONCE: TimeDelta = TimeDelta::seconds(55);

/// The days of a table.
#[derive(Clone, Copy)]
pub(super) struct Days(pub(super) NaiveDate);

impl Days {
    /// The date `n` days after the first.
    pub(super) fn day(self, n: i64) -> NaiveDate {
        self.0 + TimeDelta::days(n)
    }

    pub(super) fn days(self, n: std::ops::RangeInclusive<i64>) -> Vec<NaiveDate> {
        n.map(|n| self.day(n)).collect()
    }

    /// `HH:MM` in UTC on the date `n` days after the first.
    pub(super) fn at(self, n: i64, time: &str) -> DateTime<Utc> {
        self.day(n).and_time(NaiveTime::parse_from_str(time, "%H:%M").unwrap()).and_utc()
    }
}

/// An expected event of an automation.
#[derive(Clone, Copy)]
enum Expected {
    DatedAt(DateTime<Utc>),
    /// Dated by the next sweep.
    SweptAfter(DateTime<Utc>),
}

/// A fact of a case: a ready one, or an automation with a step for the case's endpoint, and further fields.
#[derive(Clone)]
enum CaseFact {
    Ready(Fact),
    Automation(&'static str, Value, Value),
}

/// A coach and a client, both with the case's name.
pub(super) struct Case {
    name: &'static str,
    zone: &'static str,
    created_at: Option<DateTime<Utc>>,
    known: Vec<Fact>,
    automations: Vec<(&'static str, Value)>,
    then: Vec<(DateTime<Utc>, CaseFact)>,
    emits: Vec<(&'static str, Expected)>,
}

impl Case {
    /// A case in UTC with an old client who takes one dose a day and has no other record.
    pub(super) fn of(name: &'static str) -> Self {
        let (known, automations, then, emits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, zone: "UTC", created_at: None, known, automations, then, emits }
    }

    pub(super) fn zone(mut self, zone: &'static str) -> Self {
        self.zone = zone;
        self
    }

    pub(super) fn created_at(mut self, at: DateTime<Utc>) -> Self {
        self.created_at = Some(at);
        self
    }

    /// Doses that were logged before the start.
    pub(super) fn took(self, days: Vec<NaiveDate>) -> Self {
        let name = self.name;
        days.into_iter().fold(self, |case, day| case.knows(dose(name, day)))
    }

    /// A fact from before the start.
    pub(super) fn knows(mut self, known: Fact) -> Self {
        self.known.push(known);
        self
    }

    pub(super) fn automation(mut self, id: &'static str, trigger: Value) -> Self {
        self.automations.push((id, trigger));
        self
    }

    pub(super) fn then(mut self, at: DateTime<Utc>, fact: Fact) -> Self {
        self.then.push((at, CaseFact::Ready(fact)));
        self
    }

    /// A dose at noon of each of these days.
    pub(super) fn takes_at_noon(self, days: Vec<NaiveDate>) -> Self {
        let client = self.name;
        let noon = |day: NaiveDate| Days(day).at(0, "12:00");
        days.into_iter().fold(self, |case, day| case.then(noon(day), dose(client, day)))
    }

    /// Saves an automation.
    pub(super) fn saves(self, at: DateTime<Utc>, id: &'static str, trigger: Value) -> Self {
        self.saves_with(at, id, trigger, json!({}))
    }

    /// Saves an automation with other values of these fields.
    pub(super) fn saves_with(mut self, at: DateTime<Utc>, id: &'static str, trigger: Value, fields: Value) -> Self {
        self.then.push((at, CaseFact::Automation(id, trigger, fields)));
        self
    }

    /// Expects an event of the automation, dated at the given instant.
    pub(super) fn emits(mut self, automation: &'static str, at: DateTime<Utc>) -> Self {
        self.emits.push((automation, Expected::DatedAt(at)));
        self
    }

    /// Expects an event of the automation, found and dated by the next sweep.
    pub(super) fn emits_at_next_sweep(mut self, automation: &'static str, after: DateTime<Utc>) -> Self {
        self.emits.push((automation, Expected::SweptAfter(after)));
        self
    }

    /// The workspace of the case's coach.
    pub(super) fn workspace(name: &str, zone: &str) -> Fact {
        let detail = json!({
            "coach_id": name, "email": format!("{name}@coaches.example"), "name": name, "team_id": null,
            "canonical_host": "https://coach.example", "time_zone": zone, "country": "US", "plan": { "client_cap": null },
            "entitlements": { "partner_api": true, "pro_crm": true, "gym": true }, "crm": null,
        });
        fact("workspace.saved", detail)
    }

    /// All facts from before the automations.
    fn known(&self, before: DateTime<Utc>) -> Vec<Fact> {
        let created_at = rendered(self.created_at.unwrap_or(before - TimeDelta::days(90)));
        let client = Fact::client(self.name, self.name).with("created_at", created_at);
        let mut known = vec![client, schedule(self.name, 1)];
        known.extend(self.known.clone());
        known.into_iter().map(|fact| fact.with("backfill", true)).collect()
    }
}

/// Plays all cases from the first day's noon to an instant and compares the events. Reports all differences.
pub(super) async fn run(world: &World, days: Days, cases: Vec<Case>, end: DateTime<Utc>) {
    let receiver = Receiver::start().await;
    world.down_until(days.at(0, "11:50")).await;
    world.apply(cases.iter().map(|case| Case::workspace(case.name, case.zone))).await;
    // Facts that the client's other facts refer to come first.
    let mut known: Vec<_> = cases.iter().map(|case| case.known(days.at(0, "12:00"))).collect();
    world.apply(known.iter_mut().map(|known| known.remove(0))).await;
    world.apply(known.into_iter().flatten()).await;
    let mut endpoints = BTreeMap::new();
    for case in &cases {
        let path = format!("/hook/{}", case.name);
        let settings = world.settings_of(case.name).await;
        let body = json!({ "url": receiver.url().replace("/hook", &path), "events": ["message_received"], "payload_mode": "identifiers" });
        let made = settings.post("/settings/webhooks", body).await.expect(201);
        let endpoint = crate::world::Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        let ids = case.automations.iter();
        world.publish(ids.map(|(id, trigger)| automation(case.name, id, trigger.clone(), &[&endpoint]))).await;
        endpoints.insert(case.name, endpoint);
    }
    world.settle().await;
    world.advance_to(days.at(0, "12:20")).await;
    assert_eq!(receiver.hooks().len(), 0, "existing matches are not emitted");

    let mut moments: BTreeMap<DateTime<Utc>, Vec<Fact>> = BTreeMap::new();
    for (case, (at, fact)) in cases.iter().flat_map(|case| case.then.iter().cloned().map(move |then| (case, then))) {
        let fact = match fact {
            CaseFact::Ready(fact) => fact,
            CaseFact::Automation(id, trigger, fields) => {
                let saved = automation(case.name, id, trigger, &[&endpoints[case.name]]);
                fields.as_object().unwrap().iter().fold(saved, |saved, (name, value)| saved.with(name, value.clone()))
            }
        };
        moments.entry(at).or_default().push(fact);
    }
    for (at, facts) in moments {
        world.advance_to(at).await;
        world.apply(facts).await;
        let now = world.now().await;
        assert!(now < at + AT_ONCE, "the machine is too slow for this table: what is of {at} is stored at {now}");
    }
    world.advance_to(end).await;

    let hooks = receiver.hooks();
    let is_signed = |hook: &Hook| hook.is_signed_with(&endpoints[hook.path.trim_start_matches("/hook/")].secret);
    assert!(hooks.iter().all(is_signed));
    let received: Vec<_> = hooks.iter().map(ComputedEvent::of).collect();
    let is_timely = |event: &&ComputedEvent| (TimeDelta::seconds(-1)..=LATEST).contains(&event.lateness());
    let late: Vec<_> = received.iter().filter(|event| !is_timely(event)).collect();
    let mut left: BTreeMap<&str, Vec<&ComputedEvent>> = BTreeMap::new();
    received.iter().for_each(|event| left.entry(&event.client).or_default().push(event));
    let differences: Vec<String> =
        cases.iter().filter_map(|case| case.difference(left.remove(case.name).unwrap_or_default())).collect();
    assert!(
        differences.is_empty() && late.is_empty() && left.is_empty(),
        "{}\nlate: {late:?}\nof others: {left:?}",
        differences.join("\n")
    );
}

impl Case {
    /// Compares the events about the case's client with the expected ones.
    fn difference(&self, received: Vec<&ComputedEvent>) -> Option<String> {
        let mut left: Vec<_> = received.iter().map(|event| (event.automation.as_str(), event.at.clone())).collect();
        let mut missing = Vec::new();
        for (id, expected) in &self.emits {
            let (from, by) = match *expected {
                Expected::DatedAt(at) => (at, at),
                Expected::SweptAfter(at) => (at, at + LATEST),
            };
            let (from, by) = (rendered(from), rendered(by));
            match left.iter().position(|(found, at)| found == id && (&from..=&by).contains(&at)) {
                Some(found) => drop(left.remove(found)),
                None => missing.push((id, from)),
            }
        }
        (!left.is_empty() || !missing.is_empty())
            .then(|| format!("{}: {left:?} too many, without {missing:?}", self.name))
    }
}
