//! Tables of timelines. A case is a coach with one client, facts over time, and the expected events. All cases of a
//! table share one world, because elapsing time is what costs.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{ComputedEvent, automation, dose, schedule};
use crate::world::{Fact, Receiver, World, fact, rendered};

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

/// An action of a case at an instant.
#[derive(Clone)]
enum Happening {
    Facts(Vec<Fact>),
    /// Saves an automation of the named coach: id, trigger, and further fields.
    Saves(&'static str, &'static str, Value, Value),
    /// Keeps sweeps from working, until `SweepsAgain`.
    NoSweeps,
    SweepsAgain,
    /// Stops the stack until an instant.
    DownUntil(DateTime<Utc>),
}

/// A coach and a client, both with the case's name.
pub(super) struct Case {
    name: &'static str,
    zone: &'static str,
    created_at: Option<DateTime<Utc>>,
    per_day: u32,
    known: Vec<Fact>,
    automations: Vec<(&'static str, Value)>,
    then: Vec<(DateTime<Utc>, Happening)>,
    emits: Vec<(&'static str, DateTime<Utc>)>,
    /// Events that are dated by their sweep, with the earliest instant of that sweep.
    found: Vec<(&'static str, DateTime<Utc>)>,
    /// A late fact starts a match at an instant before past sweeps.
    is_dated_back: bool,
}

impl Case {
    /// A case in UTC with an old client who takes one dose a day and has no other record.
    pub(super) fn of(name: &'static str) -> Self {
        let (known, automations, then) = (Vec::new(), Vec::new(), Vec::new());
        let (emits, found) = (Vec::new(), Vec::new());
        let is_dated_back = false;
        Self { name, zone: "UTC", created_at: None, per_day: 1, known, automations, then, emits, found, is_dated_back }
    }

    pub(super) fn zone(mut self, zone: &'static str) -> Self {
        self.zone = zone;
        self
    }

    pub(super) fn created_at(mut self, at: DateTime<Utc>) -> Self {
        self.created_at = Some(at);
        self
    }

    pub(super) fn doses_a_day(mut self, doses: u32) -> Self {
        self.per_day = doses;
        self
    }

    /// Doses that were logged before the start.
    pub(super) fn took(mut self, days: Vec<NaiveDate>) -> Self {
        self.known.extend(days.into_iter().map(|day| dose(self.name, day)));
        self
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

    pub(super) fn then(self, at: DateTime<Utc>, fact: Fact) -> Self {
        self.then_all(at, [fact])
    }

    pub(super) fn then_all(mut self, at: DateTime<Utc>, facts: impl IntoIterator<Item = Fact>) -> Self {
        self.then.push((at, Happening::Facts(facts.into_iter().collect())));
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
        self.then.push((at, Happening::Saves(self.name, id, trigger, fields)));
        self
    }

    pub(super) fn no_sweeps(mut self, from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        self.then.extend([(from, Happening::NoSweeps), (until, Happening::SweepsAgain)]);
        self
    }

    pub(super) fn down(mut self, from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        self.then.push((from, Happening::DownUntil(until)));
        self
    }

    /// Expects an event of the automation, dated at the given instant.
    pub(super) fn emits(mut self, automation: &'static str, at: DateTime<Utc>) -> Self {
        self.emits.push((automation, at));
        self
    }

    /// Expects an event of the automation, found and dated by the next sweep.
    pub(super) fn emits_at_next_sweep(mut self, automation: &'static str, after: DateTime<Utc>) -> Self {
        self.found.push((automation, after));
        self
    }

    /// Allows an event that is dated long before its sweep.
    pub(super) fn dated_back(mut self) -> Self {
        self.is_dated_back = true;
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
        let mut known = vec![client, schedule(self.name, self.per_day)];
        known.extend(self.known.clone());
        known.into_iter().map(|fact| fact.with("backfill", true)).collect()
    }
}

/// Plays all cases of a table from the first day's noon to an instant and compares the events. Reports all differences.
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

    let mut moments: BTreeMap<DateTime<Utc>, Vec<Happening>> = BTreeMap::new();
    for (at, random_fact) in cases.iter().flat_map(|case| case.then.clone()) {
        moments.entry(at).or_default().push(random_fact);
    }
    for (at, happenings) in moments {
        world.advance_to(at).await;
        let mut facts = Vec::new();
        for random_fact in happenings {
            match random_fact {
                Happening::Facts(of_case) => facts.extend(of_case),
                Happening::Saves(coach, id, trigger, fields) => {
                    let mut saved = automation(coach, id, trigger, &[&endpoints[coach]]);
                    for (field, value) in fields.as_object().unwrap() {
                        saved = saved.with(field, value.clone());
                    }
                    facts.push(saved);
                }
                Happening::NoSweeps => {
                    world.faults(json!({ "crash_before_call": 1_000_000, "function": "sweep" })).await
                }
                Happening::SweepsAgain => world.faults(json!({ "crash_before_call": 0, "function": "" })).await,
                Happening::DownUntil(until) => world.down_until(until).await,
            }
        }
        if !facts.is_empty() {
            world.apply(facts).await;
            let now = world.now().await;
            assert!(now < at + AT_ONCE, "the machine is too slow for this table: what is of {at} is stored at {now}");
        }
    }
    world.advance_to(end).await;

    let received: Vec<(ComputedEvent, bool)> = receiver
        .hooks()
        .iter()
        .map(|hook| {
            (ComputedEvent::of(hook), hook.is_signed_with(&endpoints[hook.path.trim_start_matches("/hook/")].secret))
        })
        .collect();
    let is_known = |event: &ComputedEvent| cases.iter().any(|case| case.name == event.client);
    assert!(received.iter().all(|(event, is_signed)| *is_signed && is_known(event)), "{received:#?}");
    let is_timely = |event: &ComputedEvent| event.lateness() >= TimeDelta::seconds(-1) && event.lateness() <= LATEST;
    let is_swept = |event: &ComputedEvent| !cases.iter().any(|case| case.name == event.client && case.may_be_late());
    let late: Vec<_> =
        received.iter().map(|(event, _)| event).filter(|event| is_swept(event) && !is_timely(event)).collect();
    let differences: Vec<String> = cases.iter().filter_map(|case| case.difference(&received)).collect();
    assert!(differences.is_empty() && late.is_empty(), "{}\nlate: {late:?}", differences.join("\n"));
}

impl Case {
    fn may_be_late(&self) -> bool {
        self.is_dated_back
            || self
                .then
                .iter()
                .any(|(_, random_fact)| !matches!(random_fact, Happening::Facts(_) | Happening::Saves(..)))
    }

    fn difference(&self, received: &[(ComputedEvent, bool)]) -> Option<String> {
        let own = received.iter().map(|(event, _)| event).filter(|event| event.client == self.name);
        let mut own: Vec<_> = own.map(|event| (event.automation.as_str(), event.at.clone())).collect();
        for (id, after) in &self.found {
            let by = rendered(*after + LATEST);
            let found = own.iter().position(|(own, at)| own == id && *at >= rendered(*after) && *at <= by);
            match found {
                Some(found) => drop(own.remove(found)),
                None => own.push((id, format!("not found by {by}"))),
            }
        }
        let mut expected: Vec<_> = self.emits.iter().map(|(id, at)| (*id, rendered(*at))).collect();
        own.sort();
        expected.sort();
        (own != expected).then(|| format!("{}: got {own:?}, expected {expected:?}", self.name))
    }
}
