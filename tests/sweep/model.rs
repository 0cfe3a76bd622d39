//! A slow model of the computed events, as the rules are worded: it knows all facts and evaluates every client at every
//! sweep. It shares no code with the service, not even the time zones.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc, Weekday};
use serde_json::Value;

use crate::world::{Fact, time};

const WEEK: TimeDelta = TimeDelta::days(7);

/// The sweep that finds a client's new match of an automation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Match {
    pub(crate) swept_at: DateTime<Utc>,
    pub(crate) client: String,
    pub(crate) automation: String,
}

/// The applied facts and the emitted matches.
#[derive(Default)]
pub(crate) struct Model {
    coaches: BTreeMap<String, ModelCoach>,
    clients: BTreeMap<String, Client>,
    memories: BTreeMap<(String, String), Memory>,
    /// Number of automation revisions so far.
    revisions: u64,
    pub(crate) emitted: Vec<Match>,
}

#[derive(Default)]
struct ModelCoach {
    zone: String,
    automations: BTreeMap<String, Automation>,
    /// Phases of the only programme: name, days, compliance.
    phases: Vec<(String, i64, Option<i64>)>,
}

#[derive(Clone)]
struct Automation {
    revision: u64,
    active: bool,
    trigger: Value,
    /// The parts whose change makes a new revision.
    content: [Value; 3],
}

#[derive(Clone, Default)]
struct Client {
    coach: String,
    created_at: DateTime<Utc>,
    is_active: bool,
    phase: Option<(String, NaiveDate)>,
    check_ins: BTreeMap<String, DateTime<Utc>>,
    daily_logs: BTreeSet<NaiveDate>,
    doses: BTreeMap<String, NaiveDate>,
    doses_a_day: i64,
    /// The next sweep seeds the client without emitting.
    is_silent: bool,
}

/// State of an automation for a client.
#[derive(Clone, Default)]
struct Memory {
    revision: u64,
    is_below: bool,
    dropped_at: Option<DateTime<Utc>>,
    is_reached: bool,
    phase: Option<(String, NaiveDate)>,
    inactive_since: Option<DateTime<Utc>>,
    unlogged_since: Option<NaiveDate>,
}

impl Memory {
    fn kept_by_revisions(&self) -> Self {
        let (dropped_at, is_reached, phase) = (self.dropped_at, self.is_reached, self.phase.clone());
        Self { dropped_at, is_reached, phase, ..Self::default() }
    }
}

impl Model {
    /// Applies a fact.
    pub(crate) fn apply(&mut self, fact: &Fact) {
        let detail = &fact.detail;
        let text = |name: &str| detail[name].as_str().unwrap_or_default().to_owned();
        let date = |name: &str| text(name).parse::<NaiveDate>().unwrap();
        let (coach, client) = (text("coach_id"), text("client_id"));
        let known = self.clients.entry(client.clone()).or_default();
        match fact.detail_type.as_str() {
            "workspace.saved" => self.coaches.entry(coach).or_default().zone = text("time_zone"),
            "programme.saved" => {
                let phases = detail["phases"].as_array().unwrap().iter();
                let phases = phases.map(|phase| {
                    let name = phase["name"].as_str().unwrap().to_owned();
                    (name, phase["min_days"].as_i64().unwrap(), phase["min_compliance_pct"].as_i64())
                });
                self.coaches.get_mut(&coach).unwrap().phases = phases.collect();
            }
            "automation.saved" | "automation.deleted" => self.save(&coach, &text("automation_id"), detail),
            "client.saved" => {
                let is_active = detail["is_active"].as_bool().unwrap();
                known.is_silent |= is_active && (known.coach != coach || !known.is_active);
                known.coach = coach;
                known.created_at = time(&detail["created_at"]);
                known.is_active = is_active;
                let phase = detail["current_phase"].as_str().map(|name| (name.to_owned(), date("phase_started_on")));
                known.phase = phase;
            }
            "phase.advanced" => {
                let started_on = local_date(&self.coaches[&known.coach].zone, time(&detail["advanced_at"]));
                known.phase = Some((text("to_phase"), started_on));
            }
            "dose_schedule.saved" => known.doses_a_day = detail["doses"][0]["per_day"].as_i64().unwrap(),
            "dose.logged" => drop(known.doses.insert(text("dose_log_id"), date("date"))),
            "dose_log.deleted" => drop(known.doses.remove(&text("dose_log_id"))),
            "daily_log.saved" => drop(known.daily_logs.insert(date("date"))),
            "daily_log.deleted" => drop(known.daily_logs.remove(&date("date"))),
            "check_in.submitted" => drop(known.check_ins.insert(text("check_in_id"), time(&detail["submitted_at"]))),
            "check_in.deleted" => drop(known.check_ins.remove(&text("check_in_id"))),
            other => panic!("the model does not know {other}"),
        }
        if let Some(known) = self.clients.get_mut(&client) {
            known.is_silent |= detail["backfill"] == true;
        }
    }

    fn save(&mut self, coach: &str, id: &str, detail: &Value) {
        let automations = &mut self.coaches.get_mut(coach).unwrap().automations;
        if detail["trigger"].is_null() {
            automations.remove(id);
            return;
        }
        let content = ["active", "trigger", "steps"].map(|field| detail[field].clone());
        if automations.get(id).is_some_and(|automation| automation.content == content) {
            return;
        }
        self.revisions += 1;
        let revision = self.revisions;
        let active = detail["active"].as_bool().unwrap();
        automations.insert(id.to_owned(), Automation { revision, active, trigger: detail["trigger"].clone(), content });
    }

    /// Evaluates every client. The seven days between drops run from the events' timestamps, which `dated` gives.
    pub(crate) fn sweep(&mut self, now: DateTime<Utc>, dated: impl Fn(&Match) -> Option<DateTime<Utc>>) {
        for (id, client) in self.clients.iter_mut().filter(|(_, client)| client.is_active) {
            let coach = &self.coaches[&client.coach];
            let is_silent = std::mem::take(&mut client.is_silent);
            let active: BTreeMap<_, _> = coach.automations.iter().filter(|(_, automation)| automation.active).collect();
            for ((automation, of), memory) in &mut self.memories {
                if of == id && !active.contains_key(automation) {
                    *memory = memory.kept_by_revisions();
                }
            }
            for (automation_id, automation) in active {
                let memory = self.memories.entry((automation_id.clone(), id.clone())).or_default();
                let is_seed = memory.revision != automation.revision;
                if is_seed {
                    *memory = Memory { revision: automation.revision, ..memory.kept_by_revisions() };
                }
                let is_quiet = is_silent || is_seed;
                if client.starts_match(coach, &automation.trigger, memory, now, is_quiet) && !is_quiet {
                    let found = Match { swept_at: now, client: id.clone(), automation: automation_id.clone() };
                    if automation.trigger["event"] == "compliance_drop" {
                        memory.dropped_at = Some(dated(&found).unwrap_or(now));
                    }
                    self.emitted.push(found);
                }
            }
        }
    }
}

impl Client {
    fn starts_match(
        &self,
        coach: &ModelCoach,
        trigger: &Value,
        memory: &mut Memory,
        now: DateTime<Utc>,
        is_silent: bool,
    ) -> bool {
        let today = local_date(&coach.zone, now);
        let created_on = local_date(&coach.zone, self.created_at);
        let threshold = trigger["threshold"].as_f64().unwrap_or_default();
        let window_days = trigger["window_days"].as_i64().unwrap_or(7);
        let days = trigger["days"].as_i64().unwrap_or_default();
        match trigger["event"].as_str().unwrap() {
            "compliance_drop" => {
                let Some(pct) = self.pct(today, window_days) else { return false };
                if pct as f64 >= threshold {
                    memory.is_below = false;
                    return false;
                }
                let is_older = created_on < today - TimeDelta::days(window_days - 1);
                let is_spaced = memory.dropped_at.is_none_or(|at| now - at >= WEEK);
                if memory.is_below || !is_older || !(is_spaced || is_silent) {
                    return false;
                }
                memory.is_below = true;
                true
            }
            "compliance_milestone" => {
                let comes =
                    !memory.is_reached && self.pct(today, window_days).is_some_and(|pct| pct as f64 >= threshold);
                memory.is_reached |= comes;
                comes
            }
            "phase_eligible" => {
                let Some((phase, started_on)) = &self.phase else { return false };
                let Some(position) = coach.phases.iter().position(|(name, ..)| name == phase) else { return false };
                let (_, min_days, least) = &coach.phases[position];
                let is_last = position + 1 == coach.phases.len();
                let has_passed = (today - *started_on).num_days() >= *min_days;
                let complies = least.is_none_or(|least| self.pct(today, 7).is_some_and(|pct| pct >= least));
                if is_last || !has_passed || !complies || memory.phase == self.phase {
                    return false;
                }
                memory.phase = self.phase.clone();
                true
            }
            "check_in_inactivity" => {
                let last = self.check_ins.values().max().copied();
                let since = last.unwrap_or(self.created_at);
                let is_new = memory.inactive_since.is_none_or(|emitted| last.is_some_and(|last| last > emitted));
                if !is_new || now - since < TimeDelta::hours(24 * days) {
                    return false;
                }
                memory.inactive_since = Some(since);
                true
            }
            "daily_log_inactivity" => {
                let last = self.daily_logs.last().copied();
                let since = last.unwrap_or(created_on);
                let is_new = memory.unlogged_since.is_none_or(|emitted| last.is_some_and(|last| last > emitted));
                let whole_days = (today - since).num_days() - 1;
                if !is_new || whole_days < days {
                    return false;
                }
                memory.unlogged_since = Some(since);
                true
            }
            other => panic!("the model does not know {other}"),
        }
    }

    /// Logged doses of those expected over the window, in percent, rounded half up.
    fn pct(&self, today: NaiveDate, window_days: i64) -> Option<i64> {
        let since = today - TimeDelta::days(window_days - 1);
        let logged = self.doses.values().filter(|date| since <= **date && **date <= today).count();
        let (logged, expected) = (i64::try_from(logged).unwrap(), self.doses_a_day * window_days);
        if logged == 0 || expected == 0 {
            return None;
        }
        Some(((200 * logged + expected) / (2 * expected)).min(100))
    }
}

/// The local date in the zone.
pub(crate) fn local_date(zone: &str, at: DateTime<Utc>) -> NaiveDate {
    let sunday = |month, nth, hour| {
        let date = NaiveDate::from_weekday_of_month_opt(at.year(), month, Weekday::Sun, nth).unwrap();
        date.and_hms_opt(hour, 0, 0).unwrap().and_utc()
    };
    let offset_minutes = match zone {
        "UTC" => 0,
        "Asia/Kathmandu" => 345,
        "America/New_York" if sunday(3, 2, 7) <= at && at < sunday(11, 1, 6) => -240,
        "America/New_York" => -300,
        other => panic!("the model does not know {other}"),
    };
    (at + TimeDelta::minutes(offset_minutes)).date_naive()
}
