//! Random histories through the whole stack: the received events are those of a model that evaluates every client at
//! every sweep.
//!
//! A failure names its seed. `cargo test -p behaviour --features long-simulation histories` runs more of them.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::sweep::model::{Match, Model, local_date};
use crate::world::sweep::{
    ComputedEvent, automation, automation_deleted, check_in, check_in_deleted, daily_log, daily_log_deleted, dose,
    phase, schedule,
};
use crate::world::{Endpoint, Fact, Receiver, World, fact, rendered};

const SEEDS: &[u64] = if cfg!(feature = "long-simulation") { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[3] };
/// Longer than the seven days between drops.
const LENGTH: TimeDelta = TimeDelta::days(9);
const CLIENTS: u64 = 10;
const COACHES: [(&str, &str); 2] = [("ada", "America/New_York"), ("bob", "Asia/Kathmandu")];
const PHASES: [&str; 3] = ["Base", "Build", "Keep"];
const PERIOD_S: i64 = 900;
/// Longest delay from a sweep to its deliveries on a busy machine, whose clock runs on.
const DELIVERED: TimeDelta = TimeDelta::minutes(5);

/// SplitMix64: small and portable.
struct HistoryRandom(u64);

impl HistoryRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }

    fn trigger(&mut self) -> Value {
        let (threshold, window_days) = (self.of(&[33, 43, 50, 57, 71]), self.of(&[1, 3, 7]));
        match self.below(8) {
            0..=2 => json!({ "event": "compliance_drop", "threshold": threshold, "window_days": window_days }),
            3 | 4 => json!({ "event": "compliance_milestone", "threshold": threshold, "window_days": window_days }),
            5 => json!({ "event": "phase_eligible" }),
            6 => json!({ "event": "check_in_inactivity", "days": 1 + self.below(3) }),
            _ => json!({ "event": "daily_log_inactivity", "days": 1 + self.below(3) }),
        }
    }
}

/// The history's own record of a client.
#[derive(Clone)]
struct Person {
    saved: Fact,
    phase_at: DateTime<Utc>,
    doses: Vec<Fact>,
    check_ins: Vec<String>,
}

struct History {
    chance: HistoryRandom,
    endpoints: BTreeMap<&'static str, Endpoint>,
    people: BTreeMap<String, Person>,
    automations: BTreeMap<String, Fact>,
    model: Model,
    receiver: Receiver,
    /// The model has made the sweeps up to this instant.
    seen: DateTime<Utc>,
    number: u64,
}

impl History {
    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Facts about a client who is new, or has been with the coach for up to nine days.
    fn new_client(&mut self, now: DateTime<Utc>) -> Vec<Fact> {
        let id = format!("c{}", self.number());
        let (coach, _) = self.chance.of(&COACHES);
        let created_at = now - TimeDelta::minutes(i64::try_from(self.chance.below(13_000)).unwrap());
        let since = (now - TimeDelta::days(2)).date_naive().to_string();
        let saved = Fact::client(coach, &id).with("created_at", rendered(created_at)).with("programme_id", "p");
        let saved = saved.with("current_phase", "Base").with("phase_started_on", since);
        let person = Person { saved: saved.clone(), phase_at: now, doses: Vec::new(), check_ins: Vec::new() };
        self.people.insert(id.clone(), person);
        vec![saved, schedule(&id, 1)]
    }

    /// A random fact about a client.
    fn random_fact(&mut self, id: &str, now: DateTime<Utc>) -> Fact {
        let (number, chance) = (self.number() + 1, &mut self.chance);
        let person = self.people.get_mut(id).unwrap();
        let zone = COACHES.iter().find(|(coach, _)| person.saved.detail["coach_id"] == *coach).unwrap().1;
        let day = |ago: u64| local_date(zone, now) - TimeDelta::days(i64::try_from(ago).unwrap());
        match chance.below(40) {
            0..=15 => {
                let taken = dose(id, day(chance.below(5))).with("dose_log_id", format!("{id}-{number}"));
                person.doses.push(taken.clone());
                if chance.below(10) == 0 { taken.with("backfill", true) } else { taken }
            }
            16..=18 if !person.doses.is_empty() => {
                let index = usize::try_from(chance.below(person.doses.len() as u64)).unwrap();
                let taken = person.doses.swap_remove(index);
                fact("dose_log.deleted", json!({ "client_id": id, "dose_log_id": taken.detail["dose_log_id"] }))
            }
            19..=23 => {
                let minutes = chance.of(&[0i64, 0, 1, 700, 2_000]);
                let check_in_id = format!("k{number}");
                person.check_ins.push(check_in_id.clone());
                check_in(id, &check_in_id, now - TimeDelta::minutes(minutes))
            }
            24 if !person.check_ins.is_empty() => check_in_deleted(id, &person.check_ins.pop().unwrap()),
            24..=28 => daily_log(id, day(chance.below(3))),
            29 => daily_log_deleted(id, day(chance.below(3))),
            30..=32 if now - person.phase_at > TimeDelta::days(2) => {
                person.phase_at = now;
                let advanced = phase(id, chance.of(&PHASES), now);
                person.saved = person.saved.clone().with("current_phase", advanced.detail["to_phase"].clone());
                person.saved = person.saved.clone().with("phase_started_on", day(0).to_string());
                advanced
            }
            33 => schedule(id, u32::try_from(chance.below(3)).unwrap()),
            34..=36 => {
                let is_active = person.saved.detail["is_active"] == true;
                person.saved = person.saved.clone().with("is_active", !is_active);
                person.saved.clone().with("backfill", chance.below(4) == 0)
            }
            37 => {
                person.saved = person.saved.clone().with("coach_id", chance.of(&COACHES).0);
                person.saved.clone().with("backfill", chance.below(4) == 0)
            }
            _ => dose(id, day(0)).with("dose_log_id", format!("{id}-{number}")),
        }
    }

    /// Creates an automation or changes one.
    fn random_edit(&mut self) -> Fact {
        let ids: Vec<String> = self.automations.keys().cloned().collect();
        let id = self.chance.of(&ids);
        let known = self.automations[&id].clone();
        let edited = match self.chance.below(4) {
            0 => {
                let id = format!("a{}", self.number());
                let (coach, _) = self.chance.of(&COACHES);
                automation(coach, &id, self.chance.trigger(), &[&self.endpoints[coach]])
            }
            1 => known.with("name", format!("Rule {}", self.number())),
            2 => known.with("trigger", self.chance.trigger()),
            _ => known.with("active", true),
        };
        self.automations.insert(edited.detail["automation_id"].as_str().unwrap().to_owned(), edited.clone());
        edited
    }

    /// Deletes or pauses an automation.
    fn random_end(&mut self) -> Fact {
        let ids: Vec<String> = self.automations.keys().cloned().collect();
        let id = self.chance.of(&ids);
        if self.chance.below(2) == 0 && ids.len() > 6 {
            let deleted = self.automations.remove(&id).unwrap();
            return automation_deleted(deleted.detail["coach_id"].as_str().unwrap(), &id);
        }
        let paused = self.automations[&id].clone().with("active", false);
        self.automations.insert(id, paused.clone());
        paused
    }

    /// Runs the model's sweeps up to an instant.
    fn sweep_until(&mut self, at: DateTime<Utc>) {
        let received: Vec<ComputedEvent> = self.receiver.hooks().iter().map(ComputedEvent::of).collect();
        let dated = |found: &Match| {
            let is_it = |event: &&ComputedEvent| match_of(event) == *found;
            received.iter().find(is_it).map(|event| event.at.parse().unwrap())
        };
        while next_sweep(self.seen) <= at {
            self.seen = next_sweep(self.seen);
            self.model.sweep(self.seen, dated);
        }
    }

    async fn apply(&mut self, world: &World, at: DateTime<Utc>, facts: Vec<Fact>) {
        world.advance_to(at).await;
        self.sweep_until(at);
        for fact in &facts {
            self.model.apply(fact);
        }
        let (saved, others): (Vec<_>, Vec<_>) = facts.into_iter().partition(|fact| fact.detail_type == "client.saved");
        world.apply(saved).await;
        world.apply(others).await;
        let now = world.now().await;
        assert!(now < next_sweep(at), "the machine is too slow: what is of {at} is stored at {now}");
    }
}

/// The first sweep after an instant.
fn next_sweep(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp((at.timestamp().div_euclid(PERIOD_S) + 1) * PERIOD_S, 0).unwrap()
}

/// A received event as a match of the sweep before it was sent.
fn match_of(event: &ComputedEvent) -> Match {
    let swept_at = next_sweep(event.sent_at) - TimeDelta::seconds(PERIOD_S);
    Match { swept_at, client: event.client.clone(), automation: event.automation.clone() }
}

async fn play(seed: u64) {
    println!("seed {seed}");
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let change = crate::sweep::timelines::clocks_change_after(world.now().await.date_naive() + TimeDelta::days(10), 3);
    let start = (change - TimeDelta::days(4)).and_hms_opt(15, 2, 0).unwrap().and_utc();
    world.down_until(start).await;
    let mut endpoints = BTreeMap::new();
    let mut rules = Vec::new();
    let phases =
        [1, 2, 0].iter().zip(PHASES).zip([Some(40), None, None]).map(
            |((min_days, name), least)| json!({ "name": name, "min_days": min_days, "min_compliance_pct": least }),
        );
    let phases: Vec<Value> = phases.collect();
    for (coach, zone) in COACHES {
        let built = world.coach(coach).with("time_zone", zone);
        rules.push(built.into_fact());
        let owner = world.coach(coach).with("time_zone", zone).await;
        endpoints.insert(coach, owner.endpoint(&receiver.url(), "identifiers").await);
        let programme = json!({ "programme_id": "p", "coach_id": coach, "phases": phases });
        rules.push(fact("programme.saved", programme));
    }
    let (people, automations, model) = (BTreeMap::new(), BTreeMap::new(), Model::default());
    let chance = HistoryRandom(seed);
    let mut history = History { chance, endpoints, people, automations, model, receiver, seen: start, number: 0 };
    history.apply(&world, start, rules).await;
    for n in 0..12 {
        let (coach, _) = COACHES[n % 2];
        let id = format!("a{}", history.number());
        let trigger = history.chance.trigger();
        let created = automation(coach, &id, trigger, &[&history.endpoints[coach]]);
        history.automations.insert(id, created);
    }
    let created: Vec<Fact> = history.automations.values().cloned().collect();
    let mut at = start + TimeDelta::minutes(1);
    history.apply(&world, at, created).await;
    at += TimeDelta::minutes(1);
    let come: Vec<Fact> = (0..CLIENTS).flat_map(|_| history.new_client(at)).collect();
    history.apply(&world, at, come).await;
    let end = start + LENGTH;
    loop {
        at += TimeDelta::minutes(match history.chance.below(10) {
            0..=3 => 1 + i64::try_from(history.chance.below(14)).unwrap(),
            _ => 15 + i64::try_from(history.chance.below(700)).unwrap(),
        });
        if (next_sweep(at) - at).num_seconds() <= 120 {
            // Facts of an instant have to be applied before the next sweep.
            at += TimeDelta::minutes(3);
        }
        if at >= end {
            break;
        }
        let facts = match history.chance.below(12) {
            0 | 1 => vec![history.random_edit()],
            2 => vec![history.random_end()],
            3 if history.people.len() < 16 => history.new_client(at),
            _ => {
                let mut ids: Vec<String> = history.people.keys().cloned().collect();
                ids.retain(|_| history.chance.below(3) > 0);
                ids.into_iter().map(|id| history.random_fact(&id, at)).collect()
            }
        };
        history.apply(&world, at, facts).await;
    }
    world.advance_to(end).await;
    history.sweep_until(end);
    compare(seed, &history, end);
    assert!(!world.log().contains("panicked"), "seed {seed}");
}

fn compare(seed: u64, history: &History, end: DateTime<Utc>) {
    let mut received = Vec::new();
    let hooks = history.receiver.hooks().into_iter();
    for hook in hooks.filter(|hook| hook.header("x-service-event") != "new_client") {
        let one = ComputedEvent::of(&hook);
        let is_signed = history.endpoints.values().any(|endpoint| hook.is_signed_with(&endpoint.secret));
        let found = match_of(&one);
        let is_timely = one.lateness() >= TimeDelta::seconds(-1) && one.sent_at - found.swept_at <= DELIVERED;
        assert!(is_signed && is_timely, "seed {seed}: {one:?}");
        received.push(found);
    }
    let mut expected = history.model.emitted.clone();
    received.sort();
    expected.sort();
    let last = end - TimeDelta::minutes(1);
    received.retain(|one| one.swept_at < last);
    expected.retain(|one| one.swept_at < last);
    let missing: Vec<_> = expected.iter().filter(|expected| !received.contains(expected)).collect();
    let extra: Vec<_> = received.iter().filter(|event| !expected.contains(event)).collect();
    assert!(received == expected, "seed {seed}: missing {missing:#?}\nextra {extra:#?}\nof {}", expected.len());
    assert!(received.len() >= 30, "seed {seed}: a history in which little happens: {}", received.len());
    println!("seed {seed}: {} events", received.len());
}

#[tokio::test]
async fn sweeps_emit_what_evaluating_every_client_at_every_sweep_would() {
    for seed in SEEDS {
        play(*seed).await;
    }
}
