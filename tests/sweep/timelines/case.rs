//! A table of timelines: each case is a coach with one client, what happens to the client, and what is to be told of it. All cases of a
//! table share one world, since time is what costs.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{Told, automation, dose, schedule};
use crate::world::{Fact, Receiver, World, fact, rendered};

/// A sweep's period, and what a busy machine takes of the stack's time, which runs on.
const LATEST: TimeDelta = TimeDelta::minutes(15 + 2);
/// Facts of an instant have to be stored before the next sweep, which is minutes after the instant.
const AT_ONCE: TimeDelta = TimeDelta::seconds(55);

/// The days of a table.
#[derive(Clone, Copy)]
pub(super) struct Days(pub(super) NaiveDate);

impl Days {
    /// So many days after the first.
    pub(super) fn day(self, n: i64) -> NaiveDate {
        self.0 + TimeDelta::days(n)
    }

    pub(super) fn days(self, n: std::ops::RangeInclusive<i64>) -> Vec<NaiveDate> {
        n.map(|n| self.day(n)).collect()
    }

    /// `HH:MM` of such a day, in UTC.
    pub(super) fn at(self, n: i64, time: &str) -> DateTime<Utc> {
        self.day(n).and_time(NaiveTime::parse_from_str(time, "%H:%M").unwrap()).and_utc()
    }
}

/// What a moment of a case brings.
#[derive(Clone)]
enum Happening {
    Facts(Vec<Fact>),
    /// An automation of the coach of that name is saved: its id and trigger, and what else is said of it.
    Saves(&'static str, &'static str, Value, Value),
    /// No sweep gets anywhere, until `SweepsAgain`.
    NoSweeps,
    SweepsAgain,
    /// The stack is down until then.
    DownUntil(DateTime<Utc>),
}

/// A coach of that name with a client of that name.
pub(super) struct Case {
    name: &'static str,
    zone: &'static str,
    created_at: Option<DateTime<Utc>>,
    per_day: u32,
    known: Vec<Fact>,
    automations: Vec<(&'static str, Value)>,
    then: Vec<(DateTime<Utc>, Happening)>,
    told: Vec<(&'static str, DateTime<Utc>)>,
    /// Events that are dated by their sweep, and when they could be found first.
    found: Vec<(&'static str, DateTime<Utc>)>,
    /// A fact that comes late makes its client match since an instant that sweeps have passed.
    is_dated_back: bool,
}

impl Case {
    /// In UTC; the client is old, takes one dose a day and never did anything.
    pub(super) fn of(name: &'static str) -> Self {
        let (known, automations, then) = (Vec::new(), Vec::new(), Vec::new());
        let (told, found) = (Vec::new(), Vec::new());
        let is_dated_back = false;
        Self { name, zone: "UTC", created_at: None, per_day: 1, known, automations, then, told, found, is_dated_back }
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

    /// Doses that were logged before.
    pub(super) fn took(mut self, days: Vec<NaiveDate>) -> Self {
        self.known.extend(days.into_iter().map(|day| dose(self.name, day)));
        self
    }

    /// Something that is known before.
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

    /// A dose of each of these days at noon.
    pub(super) fn takes_at_noon(self, days: Vec<NaiveDate>) -> Self {
        let client = self.name;
        let noon = |day: NaiveDate| Days(day).at(0, "12:00");
        days.into_iter().fold(self, |case, day| case.then(noon(day), dose(client, day)))
    }

    /// The coach saves an automation.
    pub(super) fn saves(self, at: DateTime<Utc>, id: &'static str, trigger: Value) -> Self {
        self.saves_with(at, id, trigger, json!({}))
    }

    /// The same with other values of these fields.
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

    /// By the automation it is told that the client came to match then.
    pub(super) fn told(mut self, automation: &'static str, at: DateTime<Utc>) -> Self {
        self.told.push((automation, at));
        self
    }

    /// By the automation it is told that the client matches, by the sweep that follows on that.
    pub(super) fn told_by_the_next_sweep(mut self, automation: &'static str, after: DateTime<Utc>) -> Self {
        self.found.push((automation, after));
        self
    }

    /// An event that a sweep sends may be dated long before.
    pub(super) fn dated_back(mut self) -> Self {
        self.is_dated_back = true;
        self
    }

    /// The workspace of its coach.
    pub(super) fn workspace(name: &str, zone: &str) -> Fact {
        let detail = json!({
            "coach_id": name, "email": format!("{name}@coaches.example"), "name": name, "team_id": null,
            "canonical_host": "https://coach.example", "time_zone": zone, "country": "US", "plan": { "client_cap": null },
            "entitlements": { "partner_api": true, "pro_crm": true, "gym": true }, "crm": null,
        });
        fact("workspace.saved", detail)
    }

    /// All that is known before the automations are.
    fn known(&self, before: DateTime<Utc>) -> Vec<Fact> {
        let created_at = rendered(self.created_at.unwrap_or(before - TimeDelta::days(90)));
        let client = Fact::client(self.name, self.name).with("created_at", created_at);
        let mut known = vec![client, schedule(self.name, self.per_day)];
        known.extend(self.known.clone());
        known.into_iter().map(|fact| fact.with("backfill", true)).collect()
    }
}

/// Lives through all cases of a table from the first day's noon to an instant, and compares what is told. All differences are shown.
pub(super) async fn run(world: &World, days: Days, cases: Vec<Case>, end: DateTime<Utc>) {
    let receiver = Receiver::start().await;
    world.down_until(days.at(0, "11:50")).await;
    world.facts(cases.iter().map(|case| Case::workspace(case.name, case.zone))).await;
    // What a client's other facts refer to comes first.
    let mut known: Vec<_> = cases.iter().map(|case| case.known(days.at(0, "12:00"))).collect();
    world.facts(known.iter_mut().map(|known| known.remove(0))).await;
    world.facts(known.into_iter().flatten()).await;
    let mut endpoints = BTreeMap::new();
    for case in &cases {
        let path = format!("/hook/{}", case.name);
        let settings = world.settings_of(case.name).await;
        let body = json!({ "url": receiver.url().replace("/hook", &path), "events": ["message_received"], "payload_mode": "identifiers" });
        let made = settings.post("/settings/webhooks", body).await.expect(201);
        let endpoint = crate::world::Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        let ids = case.automations.iter();
        world.put(ids.map(|(id, trigger)| automation(case.name, id, trigger.clone(), &[&endpoint]))).await;
        endpoints.insert(case.name, endpoint);
    }
    world.settle().await;
    world.travel(days.at(0, "12:20")).await;
    assert_eq!(receiver.hooks().len(), 0, "who matches already is not told of");

    let mut moments: BTreeMap<DateTime<Utc>, Vec<Happening>> = BTreeMap::new();
    for (at, happening) in cases.iter().flat_map(|case| case.then.clone()) {
        moments.entry(at).or_default().push(happening);
    }
    for (at, happenings) in moments {
        world.travel(at).await;
        let mut facts = Vec::new();
        for happening in happenings {
            match happening {
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
            world.facts(facts).await;
            let now = world.now().await;
            assert!(now < at + AT_ONCE, "the machine is too slow for this table: what is of {at} is stored at {now}");
        }
    }
    world.travel(end).await;

    let told: Vec<(Told, bool)> = receiver
        .hooks()
        .iter()
        .map(|hook| (Told::of(hook), hook.is_signed_with(&endpoints[hook.path.trim_start_matches("/hook/")].secret)))
        .collect();
    let is_known = |told: &Told| cases.iter().any(|case| case.name == told.client);
    assert!(told.iter().all(|(told, is_signed)| *is_signed && is_known(told)), "{told:#?}");
    let is_timely = |told: &Told| told.lateness() >= TimeDelta::seconds(-1) && told.lateness() <= LATEST;
    let is_swept = |told: &Told| !cases.iter().any(|case| case.name == told.client && case.may_be_late());
    let late: Vec<_> = told.iter().map(|(told, _)| told).filter(|told| is_swept(told) && !is_timely(told)).collect();
    let differences: Vec<String> = cases.iter().filter_map(|case| case.difference(&told)).collect();
    assert!(differences.is_empty() && late.is_empty(), "{}\nlate: {late:?}", differences.join("\n"));
}

impl Case {
    fn may_be_late(&self) -> bool {
        self.is_dated_back
            || self.then.iter().any(|(_, happening)| !matches!(happening, Happening::Facts(_) | Happening::Saves(..)))
    }

    fn difference(&self, told: &[(Told, bool)]) -> Option<String> {
        let own = told.iter().map(|(told, _)| told).filter(|told| told.client == self.name);
        let mut own: Vec<_> = own.map(|told| (told.automation.as_str(), told.at.clone())).collect();
        for (id, after) in &self.found {
            let by = rendered(*after + LATEST);
            let found = own.iter().position(|(own, at)| own == id && *at >= rendered(*after) && *at <= by);
            match found {
                Some(found) => drop(own.remove(found)),
                None => own.push((id, format!("not found by {by}"))),
            }
        }
        let mut expected: Vec<_> = self.told.iter().map(|(id, at)| (*id, rendered(*at))).collect();
        own.sort();
        expected.sort();
        (own != expected).then(|| format!("{}: told {own:?}, expected {expected:?}", self.name))
    }
}
