//! Days of stack time with receivers that behave at random, while messages are duplicated, functions die and the store
//! errs. Every event ends delivered or failed at every endpoint, with a complete log, no attempt too many, scheduled
//! gaps and one id. Half of the receivers add odd headers, which must not matter.
//!
//! A failure names its seed. `cargo test -p behaviour --features long-simulation simulation` runs longer ones.

use std::collections::BTreeMap;

use domain::retry::{GAPS_S, MAX_JITTER_PERCENT};
use serde_json::{Value, json};

use crate::world::{ATTEMPTS, Answer, Coach, Endpoint, Fact, Receiver, World, list, time};

const SEEDS: &[u64] = if cfg!(feature = "long-simulation") { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[2] };
const ROUNDS: u64 = if cfg!(feature = "long-simulation") { 60 } else { 8 };
const ENDPOINTS: usize = 4;
const RETRY_AFTER_S: i64 = 900;
/// Longest delay of a gap: the return of a message whose function died, an attempt's lease, and waits for a permit.
const LATE_S: i64 = 400;

/// SplitMix64: small and portable.
pub(crate) struct SimulationRandom(pub(crate) u64);

impl SimulationRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn answer(&mut self) -> Answer {
        match self.below(10) {
            0..=4 => Answer::status(200),
            5 => Answer::status(500),
            6 => Answer::status(404).body("no"),
            7 => Answer::status(429).header("retry-after", &RETRY_AFTER_S.to_string()),
            8 => Answer::status(503).header("retry-after", "nonsense"),
            _ => Answer::status(302).header("location", "http://127.0.0.1:1/"),
        }
    }

    fn faults(&mut self) -> Value {
        let function = ["relay", "deliver", "ingest", ""][usize::try_from(self.below(4)).unwrap()];
        json!({
            "duplicate_messages": self.below(2) == 0, "crash_after_commit": self.below(3), "store_failures": self.below(4),
            "store_conflicts": self.below(4), "store_lost_answers": self.below(3),
            "function": function,
        })
    }
}

struct Run<'w> {
    world: &'w World,
    coach: Coach<'w>,
    receivers: Vec<(Receiver, Endpoint)>,
    chance: SimulationRandom,
    clients: u64,
}

impl<'w> Run<'w> {
    async fn new(world: &'w World, seed: u64) -> Self {
        let coach = world.coach("ada").await;
        let mut receivers = Vec::new();
        for number in 0..ENDPOINTS {
            let receiver = if number % 2 == 0 { Receiver::start().await } else { Receiver::start_odd().await };
            let endpoint = coach.endpoint(&receiver.url(), "identifiers").await;
            receivers.push((receiver, endpoint));
        }
        Self { world, coach, receivers, chance: SimulationRandom(seed), clients: 0 }
    }

    async fn round(&mut self) {
        for (receiver, _) in &self.receivers {
            let answers: Vec<Answer> = (0..self.chance.below(20)).map(|_| self.chance.answer()).collect();
            receiver.script(answers);
            receiver.otherwise(self.chance.answer());
        }
        self.world.faults(self.chance.faults()).await;
        let events = 1 + self.chance.below(8);
        let first = self.clients;
        self.clients += events;
        self.world.publish((first..self.clients).map(|n| Fact::client("ada", &format!("c{n:05}")))).await;
        self.world.advance_s(30 + self.chance.below(5 * 3_600)).await;
    }

    /// Ends all faults and finishes all work.
    async fn end(&self) {
        self.world
            .faults(json!({
                "duplicate_messages": false, "crash_after_commit": 0, "store_failures": 0, "store_conflicts": 0,
                "store_lost_answers": 0, "function": "",
            }))
            .await;
        for (receiver, _) in &self.receivers {
            receiver.otherwise(Answer::status(204));
        }
        self.world.advance_s(3 * 86_400).await;
    }
}

/// The complete delivery log of an endpoint.
pub(crate) async fn log_of(coach: &Coach<'_>, endpoint: &Endpoint) -> Vec<Value> {
    let settings = coach.settings().await;
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/settings/webhooks/{}/deliveries?limit=200{cursor}", endpoint.id);
        let page = settings.get(&path).await.expect(200).body;
        all.extend(list(page["data"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Asserts the invariants of one delivery.
fn check(delivery: &Value, sent: usize) {
    let attempts = list(delivery["attempts"].clone());
    let status = delivery["status"].as_str().unwrap();
    assert!(["delivered", "failed"].contains(&status), "{delivery}");
    assert!((1..=ATTEMPTS).contains(&attempts.len()), "{delivery}");
    assert!(attempts.iter().all(|attempt| attempt["status_code"].is_u64()), "receivers always answer: {delivery}");
    let succeeded: Vec<bool> =
        attempts.iter().map(|attempt| (200..300).contains(&attempt["status_code"].as_u64().unwrap_or(0))).collect();
    assert_eq!(succeeded.last().copied(), Some(status == "delivered"), "{delivery}");
    assert!(succeeded.iter().rev().skip(1).all(|succeeded| !succeeded), "an end is an end: {delivery}");
    assert!(status == "delivered" || attempts.len() == ATTEMPTS, "given up too early: {delivery}");
    assert!(sent >= attempts.len(), "{sent} sent of {delivery}");
    for (made, pair) in attempts.windows(2).enumerate() {
        let ended = |attempt: &Value| {
            time(&attempt["at"]) + chrono::TimeDelta::milliseconds(attempt["duration_ms"].as_i64().unwrap())
        };
        let gap_s = (time(&pair[1]["at"]) - ended(&pair[0])).num_milliseconds() as f64 / 1_000.0;
        let scheduled = i64::from(GAPS_S[made]);
        // A gap may be longer by its jitter, or what the receiver asked for.
        let longest = (scheduled + scheduled * MAX_JITTER_PERCENT / 100).max(RETRY_AFTER_S) + LATE_S;
        assert!(gap_s >= scheduled as f64 - 0.1 && gap_s <= longest as f64, "a gap of {gap_s} s: {delivery}");
    }
}

async fn simulate(seed: u64) {
    println!("seed {seed}");
    let world = World::start().await;
    let mut run = Run::new(&world, seed).await;
    for _ in 0..ROUNDS {
        run.round().await;
    }
    run.end().await;
    let mut ids: Vec<Vec<String>> = Vec::new();
    for (receiver, endpoint) in &run.receivers {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for hook in receiver.hooks() {
            assert!(hook.is_signed_with(&endpoint.secret));
            *sent.entry(hook.header("webhook-id").to_owned()).or_default() += 1;
        }
        let deliveries = log_of(&run.coach, endpoint).await;
        assert_eq!(deliveries.len() as u64, run.clients, "seed {seed}: each event once at each endpoint");
        for delivery in &deliveries {
            check(delivery, sent.get(delivery["webhook_id"].as_str().unwrap()).copied().unwrap_or(0));
        }
        let mut own: Vec<String> =
            deliveries.iter().map(|delivery| delivery["webhook_id"].as_str().unwrap().to_owned()).collect();
        own.sort_unstable();
        assert!(sent.keys().all(|id| own.binary_search(id).is_ok()), "every request is in the log");
        ids.push(own);
    }
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "an event has one id at all endpoints");
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty(), "the dead letters are for faults of ours");
}

#[tokio::test]
async fn every_event_ends_delivered_or_failed_with_a_complete_log() {
    for seed in SEEDS {
        simulate(*seed).await;
    }
}
