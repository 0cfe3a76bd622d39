//! The protocol of the buckets, tried in every order of steps: a store of versioned buckets, and a few requests and
//! facts that each advance one step at a time. A step is one atomic operation of the store: the read of one item, or
//! one conditional transaction. Items are read in any order, and a refused task reads again.
//!
//! At every commit of a booking, no stored event conflicts with it. After every step, each entry is where its record
//! says.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use self::scenarios::{Scenario, scenarios};
use super::tests::at;
use super::*;

mod scenarios;

/// The function that plans a booking's writes. The real one is [`booking_writes`]; the others show that the exploration
/// detects wrong ones.
type Writes = fn(Option<Span>, &Busy, &BTreeMap<Bucket, u64>) -> Vec<BucketWrite>;

type Event = u8;

/// A task. A task that books or stores a new event uses an unused number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Task {
    Book(Event, Busy),
    Reschedule(Event, Busy),
    Cancel(Event),
    /// The application saves an event, or its cancellation.
    Save(Event, Option<Busy>),
}

impl Task {
    fn event(self) -> Event {
        match self {
            Self::Book(event, _) | Self::Reschedule(event, _) | Self::Cancel(event) | Self::Save(event, _) => event,
        }
    }

    /// Returns the buckets that the task reads: more than it guards, like a request that does not know the zone yet.
    fn reads(self) -> BTreeSet<Bucket> {
        match self {
            Self::Book(_, new) | Self::Reschedule(_, new) => guarded_buckets(new.span).into_iter().collect(),
            Self::Cancel(_) | Self::Save(..) => BTreeSet::new(),
        }
    }
}

/// An event's record: the number of its writes, and its time. Empty: never stored; without a time: cancelled.
type EventRecord = (u32, Option<Busy>);

/// A bucket: its version and its entries. 0 and empty: the bucket does not exist.
type Entries = (u64, BTreeMap<Event, Busy>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Outcome {
    Done,
    /// The time is taken, or nothing changes.
    Refused,
}

/// A task under way, and what it has read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Actor {
    task: Task,
    record: Option<EventRecord>,
    unread: BTreeSet<Bucket>,
    read: BTreeMap<Bucket, Entries>,
    outcome: Option<Outcome>,
}

impl Actor {
    fn new(task: Task) -> Self {
        Self { task, record: None, unread: task.reads(), read: BTreeMap::new(), outcome: None }
    }

    fn end(&mut self, outcome: Outcome) {
        *self = Self { outcome: Some(outcome), unread: BTreeSet::new(), ..Self::new(self.task) };
    }

    /// Returns the task's writes, once everything is read.
    fn plan(&self, writes: Writes) -> Option<(Option<Busy>, Vec<BucketWrite>)> {
        let (_, old) = self.record.unwrap_or_default();
        let span = old.map(|old| old.span);
        match self.task {
            Task::Book(event, new) | Task::Reschedule(event, new) => {
                let gone = matches!(self.task, Task::Reschedule(..)) && old.is_none();
                let others = self.read.values().flat_map(|(_, entries)| entries).filter(|(other, _)| **other != event);
                let taken = others.into_iter().any(|(_, other)| other.conflicts_with(&new));
                let versions = self.read.iter().map(|(bucket, (version, _))| (*bucket, *version)).collect();
                (!gone && !taken).then(|| (Some(new), writes(span, &new, &versions)))
            }
            Task::Cancel(_) => span.map(|span| (None, feed_writes(Some(span), None))),
            Task::Save(_, new) => Some((new, feed_writes(span, new.as_ref()))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    records: BTreeMap<Event, EventRecord>,
    buckets: BTreeMap<Bucket, Entries>,
    actors: Vec<Actor>,
}

/// The next step of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    ReadRecord,
    Read(Bucket),
    Commit,
}

impl World {
    fn new(stored: &[Busy], tasks: &[Task]) -> Self {
        let mut world = Self { records: BTreeMap::new(), buckets: BTreeMap::new(), actors: Vec::new() };
        for (event, busy) in (0..).zip(stored) {
            world.write(event, Some(*busy), &feed_writes(None, Some(busy)));
        }
        world.actors = tasks.iter().map(|task| Actor::new(*task)).collect();
        world
    }

    fn steps(&self, actor: usize) -> Vec<Step> {
        let actor = &self.actors[actor];
        if actor.outcome.is_some() {
            return Vec::new();
        }
        let record = actor.record.is_none().then_some(Step::ReadRecord);
        let steps: Vec<Step> = record.into_iter().chain(actor.unread.iter().copied().map(Step::Read)).collect();
        if steps.is_empty() { vec![Step::Commit] } else { steps }
    }

    /// Returns the world after a step of an actor, or the violation that the step caused.
    fn after(&self, actor: usize, step: Step, writes: Writes) -> Result<Self, String> {
        let mut world = self.clone();
        let event = self.actors[actor].task.event();
        let own = &mut world.actors[actor];
        match step {
            Step::ReadRecord => own.record = Some(self.records.get(&event).copied().unwrap_or_default()),
            Step::Read(bucket) => {
                own.unread.remove(&bucket);
                own.read.insert(bucket, self.buckets.get(&bucket).cloned().unwrap_or_default());
            }
            Step::Commit => world.commit(actor, writes)?,
        }
        world.entries_stand_right().map(|()| world)
    }

    fn commit(&mut self, number: usize, writes: Writes) -> Result<(), String> {
        let actor = &self.actors[number];
        let (task, event) = (actor.task, actor.task.event());
        let Some((new, writes)) = actor.plan(writes) else {
            self.actors[number].end(Outcome::Refused);
            return Ok(());
        };
        let named: BTreeSet<Bucket> = writes.iter().map(|write| write.bucket).collect();
        if named.len() != writes.len() {
            return Err(format!("{task:?} names a bucket twice"));
        }
        let version = |bucket: &Bucket| self.buckets.get(bucket).map_or(0, |(version, _)| *version);
        let stands = actor.record == Some(self.records.get(&event).copied().unwrap_or_default())
            && writes.iter().all(|write| write.only_if.is_none_or(|only_if| only_if == version(&write.bucket)));
        if !stands {
            self.actors[number] = Actor::new(task);
            return Ok(());
        }
        if let (Task::Book(..) | Task::Reschedule(..), Some(new)) = (task, new) {
            let others = self.records.iter().filter(|(other, _)| **other != event);
            if let Some((other, _)) = others
                .filter_map(|(other, (_, busy))| busy.map(|busy| (other, busy)))
                .find(|(_, busy)| busy.conflicts_with(&new))
            {
                return Err(format!("{task:?} is confirmed over {other}"));
            }
        }
        self.write(event, new, &writes);
        self.actors[number].end(Outcome::Done);
        Ok(())
    }

    fn write(&mut self, event: Event, new: Option<Busy>, writes: &[BucketWrite]) {
        let (count, busy) = self.records.entry(event).or_default();
        (*count, *busy) = (*count + 1, new);
        for write in writes {
            if write.change == EntryChange::Keep {
                continue;
            }
            let (version, entries) = self.buckets.entry(write.bucket).or_default();
            *version += 1;
            match write.change {
                EntryChange::Put(busy) => entries.insert(event, busy),
                EntryChange::Remove | EntryChange::Keep => entries.remove(&event),
            };
        }
    }

    fn entries_stand_right(&self) -> Result<(), String> {
        let stored = self.records.iter().filter_map(|(event, (_, busy))| busy.map(|busy| (*event, busy)));
        let expected: BTreeSet<(Bucket, Event, Busy)> = stored
            .flat_map(|(event, busy)| entry_buckets(busy.span).into_iter().map(move |bucket| (bucket, event, busy)))
            .collect();
        let standing = self
            .buckets
            .iter()
            .flat_map(|(bucket, (_, entries))| entries.iter().map(move |(event, busy)| (*bucket, *event, *busy)));
        if standing.collect::<BTreeSet<_>>() == expected { Ok(()) } else { Err("an entry stands astray".to_owned()) }
    }
}

/// The result of an exploration: the number of worlds, and the combinations of outcomes.
#[derive(Debug)]
struct Explored {
    worlds: usize,
    endings: BTreeSet<Vec<bool>>,
}

/// Takes every possible step in every reachable world. Two orders of steps that reach the same world continue alike, so
/// each world is explored once.
fn explore(stored: &[Busy], tasks: &[Task], writes: Writes) -> Result<Explored, String> {
    let start = World::new(stored, tasks);
    let (mut seen, mut ahead) = (HashSet::from([start.clone()]), vec![start]);
    let mut endings = BTreeSet::new();
    while let Some(world) = ahead.pop() {
        for actor in 0..world.actors.len() {
            for step in world.steps(actor) {
                let next = world.after(actor, step, writes)?;
                if seen.insert(next.clone()) {
                    ahead.push(next);
                }
            }
        }
        if world.actors.iter().all(|actor| actor.outcome.is_some()) {
            endings.insert(world.actors.iter().map(|actor| actor.outcome == Some(Outcome::Done)).collect());
        }
    }
    Ok(Explored { worlds: seen.len(), endings })
}

/// Guards the booked days alone.
fn booked_days_alone(old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    writes_under(&entry_buckets(new.span), old, new, versions)
}

/// Guards all days, but not the long events.
fn long_ones_forgotten(old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    let mut guard = guarded_buckets(new.span);
    guard.retain(|bucket| *bucket != Bucket::Long);
    writes_under(&guard, old, new, versions)
}

/// Guards half the longest buffer.
fn half_the_buffer(old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    let half = MAX_BUFFER_MINUTES / 2;
    let guard: Vec<Bucket> = days_of(new.span.widened(half, half)).chain([Bucket::Long]).collect();
    writes_under(&guard, old, new, versions)
}

/// Guards nothing.
fn no_condition(old: Option<Span>, new: &Busy, _: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    feed_writes(old, Some(new))
}

#[test]
fn no_order_of_steps_books_a_time_twice() {
    let mut worlds = 0;
    for Scenario { name, stored, tasks, endings } in scenarios() {
        let explored = explore(&stored, &tasks, booking_writes).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let expected = endings.iter().map(|ending| ending.to_vec()).collect::<BTreeSet<_>>();
        assert_eq!(explored.endings, expected, "{name}");
        println!("{:6} worlds: {name}", explored.worlds);
        worlds += explored.worlds;
    }
    assert!(worlds > 10_000, "{worlds}");
}

#[rstest::rstest]
#[case::guarding_the_booked_days_alone(booked_days_alone as Writes, &[
    "two bookings either side of midnight",
    "a booking and a private entry either side of midnight",
    "a booking and an event of weeks",
    "a reschedule between two sets of days, and bookings of the old and the new time",
])]
#[case::forgetting_long_events(long_ones_forgotten as Writes, &[
    "a booking and an event of weeks",
    "a short event that becomes one of weeks, and a booking",
])]
#[case::guarding_half_the_buffer(half_the_buffer as Writes, &["the longest buffer over midnight"])]
#[case::guarding_nothing(no_condition as Writes, &["two bookings either side of midnight"])]
fn a_narrower_guard_is_found_out(#[case] writes: Writes, #[case] among: &[&str]) {
    let found: Vec<&str> = scenarios()
        .into_iter()
        .filter(|scenario| explore(&scenario.stored, &scenario.tasks, writes).is_err())
        .map(|scenario| scenario.name)
        .collect();
    for name in among {
        assert!(found.contains(name), "{name} is not among {found:?}");
    }
}

/// Generates events of up to three hours, and sometimes of weeks, within a few hours of a midnight.
fn near_midnight() -> impl Strategy<Value = Busy> {
    let length = prop_oneof![12 => (1..=12_i64).prop_map(|quarter| quarter * 15), 1 => Just(40 * 1_440)];
    let buffer = || prop::sample::select(vec![0, 0, 15, 60, 240]);
    (-32..32_i64, length, buffer(), buffer()).prop_map(|(quarter, length, before_min, after_min)| {
        let starts_at = at("2026-07-02T00:00Z") + TimeDelta::minutes(quarter * 15);
        let span = Span { starts_at, ends_at: starts_at + TimeDelta::minutes(length) };
        Busy { span, buffers: Buffers { before_min, after_min } }
    })
}

fn slots_near_midnight() -> impl Strategy<Value = Busy> {
    near_midnight().prop_filter("a slot lasts a day at most", |busy| entry_buckets(busy.span) != [Bucket::Long])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_any_order_of_steps_around_any_times(
        stored in near_midnight(),
        first in slots_near_midnight(),
        second in slots_near_midnight(),
        moved in slots_near_midnight(),
        saved in prop::option::of(near_midnight()),
    ) {
        let bookings = [Task::Book(10, first), Task::Book(11, second), Task::Save(12, saved)];
        prop_assert!(explore(&[stored], &bookings, booking_writes).is_ok());
        let changes = [Task::Reschedule(0, moved), Task::Book(10, first), Task::Save(0, saved)];
        prop_assert!(explore(&[stored], &changes, booking_writes).is_ok());
        let changes = [Task::Reschedule(0, moved), Task::Book(10, first), Task::Cancel(0)];
        prop_assert!(explore(&[stored], &changes, booking_writes).is_ok());
    }
}
