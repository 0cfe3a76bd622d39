//! The order of the feed under a scheduler that the test drives by hand: relays and readers of one feed make their
//! requests one at a time, in any order. A relay dies before or after a request takes effect, and another does its work
//! again. Clocks differ, and old items expire.
//!
//! Whatever the interleaving, each reader gets each event once, and all readers get the same order.

mod proxy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::event::{Event, EventType, example};
use domain::event_feed::{FeedChoice, FeedCursor, FeedReader};
use domain::id::{CoachId, EventId};
use domain::list::Order;
use domain::time::Timestamp;
use runtime::{Environment, SystemClock};
use serde_json::json;
use store::Db;
use store::event_feed::EventFeed;
use store::vault::Vault;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::proxy::{Fate, Waiting};
use crate::crm::contacts::merges::pseudo_random;
use crate::world::World;

const SEEDS: std::ops::Range<u64> = if cfg!(feature = "long-simulation") { 0..60 } else { 0..6 };
const STEPS: usize = 160;
const READERS: usize = 3;
/// The reader of a rare type alone.
const OF_DROPS: usize = 2;
/// Longest wait for a task.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time after which a request is served next: the SDK repeats a request without an answer after 4 s, and gives up
/// after 10 s.
const HELD_AT_MOST: Duration = Duration::from_secs(2);
/// The life of an item.
const LIFE: TimeDelta = TimeDelta::days(60);
/// Readers poll within the time for which events are kept.
const POLL_EVERY: TimeDelta = TimeDelta::days(20);

fn environment(endpoint: String) -> Environment {
    let variables = [
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_ENDPOINT_URL", endpoint),
        ("EVENTS_TABLE", "partner-api-events".to_owned()),
        ("ENCRYPTION_SECRET_ARN", "EncryptionSecret".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Environment::new(runtime::Config::from_vars(variables), Arc::new(SystemClock)).unwrap()
}

fn types_of(reader: usize) -> Vec<EventType> {
    if reader == OF_DROPS { vec![EventType::SystemGradeDrop] } else { EventType::ALL.to_vec() }
}

/// The work of a task, which is done again if the task dies.
#[derive(Debug, Clone)]
enum Work {
    /// Stores events that were written at this time.
    Append { events: Vec<Event>, written_at: Timestamp },
    /// Reads a page for a reader.
    Read { reader: usize, cursor: FeedCursor },
}

/// The result of a task.
enum Outcome {
    Appended,
    Read { reader: usize, ids: Vec<String>, next: FeedCursor },
}

/// A task that has ended, and its result.
type Ended = (usize, Outcome);

/// The next thing that a task does.
enum Happening {
    Waits(Waiting),
    Ends(usize, Outcome),
}

struct Task {
    work: Work,
    handle: JoinHandle<()>,
    request: Option<Waiting>,
}

struct Scheduler<'w, R> {
    world: &'w World,
    random: R,
    coach: CoachId,
    vault: Vault,
    port: u16,
    waiting: mpsc::UnboundedReceiver<Waiting>,
    ended: (mpsc::UnboundedSender<Ended>, mpsc::UnboundedReceiver<Ended>),
    tasks: BTreeMap<usize, Task>,
    /// The number of tasks that were started.
    started: usize,
    now: Timestamp,
    last_append: Timestamp,
    cursors: [FeedCursor; READERS],
    got: [Vec<String>; READERS],
    committed: Vec<Event>,
    /// The number of events that were committed before the last quiet time: their marks may have expired.
    quiet_until: usize,
}

impl<'w, R: FnMut(usize) -> usize> Scheduler<'w, R> {
    async fn new(world: &'w World, seed: u64, random: R) -> Self {
        let (port, waiting) = proxy::start(world.aws_url()).await;
        let vault = Vault::open(&environment(world.aws_url())).await.unwrap();
        // The stack deletes what has expired by its own clock, so the items live in its future.
        let now = Timestamp::parse("2100-01-01T00:00:00Z").unwrap();
        let cursor = FeedCursor { position: domain::event_feed::FeedPosition::origin(), as_of: now };
        Self {
            world,
            random,
            coach: CoachId::parse(&format!("coach-{seed}")).unwrap(),
            vault,
            port,
            waiting,
            ended: mpsc::unbounded_channel(),
            tasks: BTreeMap::new(),
            started: 0,
            now,
            last_append: now,
            cursors: [cursor; READERS],
            got: Default::default(),
            committed: Vec::new(),
            quiet_until: 0,
        }
    }

    /// A time near the present one: clocks differ by up to a second.
    fn skewed(&mut self) -> Timestamp {
        self.now + TimeDelta::milliseconds(i64::try_from((self.random)(2000)).unwrap() - 1000)
    }

    /// Starts a task, and runs it until its first request.
    async fn start(&mut self, work: Work) {
        let task = self.started;
        self.started += 1;
        let env = environment(format!("http://127.0.0.1:{}/{task}", self.port));
        let feed = EventFeed::new(&env, &Db::new(&env), &self.vault).unwrap();
        let (coach, ended, now, limit) =
            (self.coach.clone(), self.ended.0.clone(), self.skewed(), 1 + (self.random)(4));
        let doing = work.clone();
        let handle = tokio::spawn(async move {
            let outcome = match doing {
                Work::Append { events, written_at } => {
                    let events: Vec<&Event> = events.iter().collect();
                    feed.append(&coach, &events, written_at, now).await.unwrap();
                    Outcome::Appended
                }
                Work::Read { reader, cursor } => {
                    let (order, types) = (Order::Asc, types_of(reader));
                    let reading = FeedReader { types, since: None, order, cursor: Some(cursor), limit, now };
                    let scan = feed.scan(&coach, &reading).await.unwrap();
                    match reading.choose(&scan) {
                        FeedChoice::Page { events, next, .. } => {
                            let ids = events.into_iter().map(|event| event.id.to_string()).collect();
                            Outcome::Read { reader, ids, next: next.unwrap() }
                        }
                        FeedChoice::ReadOn | FeedChoice::Gap => panic!("one query at a time has no gap"),
                    }
                }
            };
            ended.send((task, outcome)).unwrap();
        });
        self.tasks.insert(task, Task { work, handle, request: None });
        self.until_next_request(task).await;
    }

    /// The next thing that a task does. The SDK of another one, whose request is held, may repeat it meanwhile.
    async fn next_of(&mut self, task: usize) -> Happening {
        loop {
            let next = async {
                tokio::select! {
                    Some(waiting) = self.waiting.recv() => Happening::Waits(waiting),
                    Some((ended, outcome)) = self.ended.1.recv() => Happening::Ends(ended, outcome),
                }
            };
            match timeout(DEADLINE, next).await.expect("the task makes a request or ends") {
                Happening::Waits(repeat) if repeat.task != task => {
                    // A task that has died leaves the requests that its SDK had on the way.
                    let Some(other) = self.tasks.get_mut(&repeat.task) else { continue };
                    assert!(repeat.is_repeat && other.request.is_some(), "task {} runs beside {task}", repeat.task);
                    other.request = Some(repeat);
                }
                happening => return happening,
            }
        }
    }

    /// Lets a task run until it makes a request or ends. No other task runs.
    async fn until_next_request(&mut self, task: usize) {
        match self.next_of(task).await {
            Happening::Waits(waiting) => self.tasks.get_mut(&task).unwrap().request = Some(waiting),
            Happening::Ends(ended, outcome) => {
                assert_eq!(ended, task);
                self.tasks.remove(&task);
                match outcome {
                    Outcome::Appended => self.last_append = self.now,
                    Outcome::Read { reader, ids, next } => {
                        self.got[reader].extend(ids);
                        self.cursors[reader] = next;
                    }
                }
            }
        }
    }

    /// Decides on a task's request. The work of a task that dies is started again later, by the caller.
    async fn decide(&mut self, task: usize, fate: Fate) -> Option<Work> {
        let Waiting { fate: decision, has_effect, .. } = self.tasks.get_mut(&task).unwrap().request.take().unwrap();
        decision.send(fate).unwrap();
        if fate == Fate::Served {
            self.until_next_request(task).await;
            return None;
        }
        if fate == Fate::LosesAnswer {
            has_effect.await.unwrap();
        }
        let dead = self.tasks.remove(&task).unwrap();
        dead.handle.abort();
        Some(dead.work)
    }

    /// A task whose request has to be served next.
    fn held_too_long(&self) -> Option<usize> {
        let is_late = |task: &Task| task.request.as_ref().is_some_and(|held| held.since.elapsed() > HELD_AT_MOST);
        self.tasks.iter().find(|(_, task)| is_late(task)).map(|(id, _)| *id)
    }

    /// Commits one to three events, sometimes with one that was committed before.
    fn commit(&mut self) -> Work {
        let mut events = Vec::new();
        for _ in 0..=(self.random)(3) {
            let number = self.committed.len().to_string();
            // A grade drop is the kind that may be emitted twice.
            let kind = if (self.random)(4) == 0 { EventType::SystemGradeDrop } else { EventType::NewClient };
            let event = Event { id: EventId::derive(self.now.ms(), &[&number]), ..example(kind.into(), self.now) };
            let event = Event { coach_id: self.coach.clone(), ..event };
            self.committed.push(event.clone());
            events.push(event);
        }
        let recent = &self.committed[self.quiet_until..];
        events.extend(recent.get((self.random)(recent.len())).filter(|event| event.may_repeat()).cloned());
        Work::Append { events, written_at: self.now }
    }

    /// Deletes some of the items that have expired, as DynamoDB does: at any time, in any order.
    async fn expire(&mut self) {
        for item in self.world.items("events", &format!("COACH#{}", self.coach)).await {
            let expires_at = item["expires_at"]["N"].as_str().map(|text| text.parse::<i64>().unwrap());
            if expires_at.is_some_and(|at| at <= self.now.unix_s()) && (self.random)(2) == 0 {
                self.world.delete_item("events", &json!({ "pk": item["pk"], "sk": item["sk"] })).await;
            }
        }
    }

    /// Runs all tasks to their end, and lets the readers read to the end of the feed.
    async fn drain(&mut self, mut undone: Vec<Work>) {
        loop {
            while let Some(task) = self.tasks.keys().next().copied() {
                self.decide(task, Fate::Served).await;
            }
            let Some(work) = undone.pop() else { break };
            self.start(work).await;
        }
        for reader in 0..READERS {
            loop {
                let before = self.cursors[reader].position;
                self.start(Work::Read { reader, cursor: self.cursors[reader] }).await;
                while let Some(task) = self.tasks.keys().next().copied() {
                    self.decide(task, Fate::Served).await;
                }
                if self.cursors[reader].position == before {
                    break;
                }
            }
        }
    }

    /// Runs relays and readers in any order, with deaths.
    async fn run(&mut self) {
        let mut undone: Vec<Work> = Vec::new();
        for _ in 0..STEPS {
            self.now = self.now + TimeDelta::milliseconds(i64::try_from((self.random)(1500)).unwrap());
            while let Some(task) = self.held_too_long() {
                self.decide(task, Fate::Served).await;
            }
            match (self.random)(10) {
                0 if self.tasks.len() < 6 => {
                    let work = self.commit();
                    // Stream and schedule may both bring an entry.
                    undone.extend(Some(work.clone()).filter(|_| (self.random)(4) == 0));
                    self.start(work).await;
                }
                1 if !undone.is_empty() => {
                    let at = (self.random)(undone.len());
                    let work = undone.swap_remove(at);
                    self.start(work).await;
                }
                2 => {
                    let reader = (self.random)(READERS);
                    let reads = |task: &Task| matches!(task.work, Work::Read { reader: own, .. } if own == reader);
                    if !self.tasks.values().any(reads) {
                        self.start(Work::Read { reader, cursor: self.cursors[reader] }).await;
                    }
                }
                3 if (self.random)(6) == 0 => self.expire().await,
                _ => {
                    let Some(at) = self.tasks.len().checked_sub(1).map(|last| (self.random)(last + 1)) else {
                        continue;
                    };
                    let task = *self.tasks.keys().nth(at).unwrap();
                    let fate = match (self.random)(12) {
                        0 => Fate::IsLost,
                        1 => Fate::LosesAnswer,
                        _ => Fate::Served,
                    };
                    let lost = self.decide(task, fate).await;
                    undone.extend(lost.filter(|work| matches!(work, Work::Append { .. })));
                }
            }
        }
        self.drain(undone).await;
    }

    /// Lets time pass in which nothing happens but polls, until about the time at which the last item expires.
    async fn be_quiet(&mut self) {
        let until =
            self.last_append + LIFE + TimeDelta::milliseconds(i64::try_from((self.random)(4000)).unwrap() - 2000);
        while self.now < until {
            self.now = (self.now + POLL_EVERY).min(until);
            self.drain(Vec::new()).await;
        }
        self.quiet_until = self.committed.len();
    }
}

#[tokio::test]
async fn every_reader_gets_every_event_once_in_one_order_under_any_interleaving() {
    let world = World::start().await;
    for seed in SEEDS {
        let mut scheduler = Scheduler::new(&world, seed, pseudo_random(seed)).await;
        for quiet_times in 0..3 {
            scheduler.run().await;
            let mut expected: Vec<String> = scheduler.committed.iter().map(|event| event.id.to_string()).collect();
            let [first, second, of_drops] = &scheduler.got;
            assert_eq!(first, second, "seed {seed}, after {quiet_times} quiet times");
            let drops = scheduler.committed.iter().filter(|event| event.may_repeat()).map(|event| event.id.to_string());
            let drops: BTreeSet<String> = drops.collect();
            let expected_drops: Vec<&String> = first.iter().filter(|id| drops.contains(*id)).collect();
            assert_eq!(of_drops.iter().collect::<Vec<_>>(), expected_drops, "seed {seed}, {quiet_times} quiet times");
            let mut got = first.clone();
            got.sort_unstable();
            expected.sort_unstable();
            assert_eq!(got, expected, "seed {seed}, after {quiet_times} quiet times");
            scheduler.be_quiet().await;
        }
    }
}
