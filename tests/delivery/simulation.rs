//! Days of stack time with receivers that behave at random, while messages are duplicated, functions die and the store
//! errs, and while the coach retries, recovers, pauses, deletes and rotates, and clients are erased. Every event ends
//! delivered or failed at every endpoint, with a complete log, scheduled gaps and one id. Nothing is lost or crossed,
//! and only a death or a failed message costs a second request. Half of the receivers add odd headers.
//!
//! A failure names its seed. `cargo test -p behaviour --features long-simulation simulation` runs longer ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::breaker::LONGEST_OPENING;
use domain::retry::{GAPS_S, MAX_JITTER_PERCENT};
use serde_json::{Value, json};

use crate::feed::erasure::erased;
use crate::world::{ATTEMPTS, Answer, Caller, Coach, Endpoint, Fact, Receiver, World, list, time};

const SEEDS: &[u64] = if cfg!(feature = "long-simulation") { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[2, 11] };
const ROUNDS: u64 = if cfg!(feature = "long-simulation") { 60 } else { 10 };
const ENDPOINTS: usize = 4;
/// Orders that a function carries out at once.
const BATCH: usize = 10;
const RETRY_AFTER_S: i64 = 900;
/// Longest time from the end of an attempt to its record. Until then a function that has a copy of the order makes the
/// attempt, too: a function died between sending the order to wait in another lane and deleting it.
const RECORDED_WITHIN: TimeDelta = TimeDelta::seconds(2);
/// Longest delay of a gap beside the breaker: the return of a message whose function died, some times in a row.
const LATE_S: i64 = 800;

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

    fn choose<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }

    fn answer(&mut self) -> Answer {
        match self.below(14) {
            0..=5 => Answer::status(200),
            6 => Answer::status(500),
            7 => Answer::status(404).body("no"),
            8 => Answer::status(429).header("retry-after", &RETRY_AFTER_S.to_string()),
            9 => Answer::status(503).header("retry-after", "nonsense"),
            10 => Answer::status(302).header("location", "http://127.0.0.1:1/"),
            11 => Answer::status(204).after(Duration::from_millis(self.below(1_200))),
            _ => Answer::silence(),
        }
    }

    fn faults(&mut self) -> Value {
        let function = *self.choose(&["relay", "deliver", "deliver", "ingest", ""]);
        json!({
            "duplicate_messages": self.below(2) == 0, "crash_after_commit": self.below(3), "store_failures": self.below(4),
            "store_conflicts": self.below(4), "store_lost_answers": self.below(3),
            "crash_before_call": self.below(3), "spared_calls": self.below(12), "function": function,
        })
    }
}

/// An endpoint with its receiver.
struct Target {
    receiver: Receiver,
    endpoint: Endpoint,
    /// All that ever signed.
    secrets: Vec<String>,
    has_lost_secret: bool,
    /// The first client whose event the endpoint has.
    first_client: u64,
}

struct Run<'w> {
    world: &'w World,
    coach: Coach<'w>,
    settings: Caller,
    targets: Vec<Target>,
    /// The receivers of deleted endpoints, and the requests that each had got until then.
    deleted: Vec<(Receiver, usize)>,
    /// Deliveries that the coach sent again.
    touched: BTreeSet<String>,
    chance: SimulationRandom,
    clients: u64,
}

impl<'w> Run<'w> {
    async fn new(world: &'w World, seed: u64) -> Self {
        let coach = world.coach("ada").await;
        let settings = coach.settings().await;
        let mut run = Self {
            world,
            coach,
            settings,
            targets: Vec::new(),
            deleted: Vec::new(),
            touched: BTreeSet::new(),
            chance: SimulationRandom(seed),
            clients: 0,
        };
        for number in 0..ENDPOINTS {
            run.add_target(number % 2 == 0).await;
        }
        run
    }

    async fn add_target(&mut self, is_odd: bool) {
        let receiver = if is_odd { Receiver::start_odd().await } else { Receiver::start().await };
        let endpoint = self.coach.endpoint(&receiver.url(), "identifiers").await;
        let secrets = vec![endpoint.secret.clone()];
        self.targets.push(Target { receiver, endpoint, secrets, has_lost_secret: false, first_client: self.clients });
    }

    async fn round(&mut self) {
        for Target { receiver, .. } in &self.targets {
            let answers: Vec<Answer> = (0..self.chance.below(20)).map(|_| self.chance.answer()).collect();
            receiver.script(answers);
            receiver.otherwise(self.chance.answer());
        }
        let number = usize::try_from(self.chance.below(self.targets.len() as u64)).unwrap();
        let known = log_of(&self.coach, &self.targets[number].endpoint).await;
        let known: Vec<String> = known.iter().map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect();
        self.world.faults(self.chance.faults()).await;
        let events = 1 + self.chance.below(8);
        let first = self.clients;
        self.clients += events;
        self.world.publish((first..self.clients).map(|n| Fact::client("ada", &format!("c{n:05}")))).await;
        self.meddle(number, known, first).await;
        self.world.advance_s(30 + self.chance.below(5 * 3_600)).await;
    }

    /// Does what a coach might do at any time with an endpoint and its known deliveries. Faults may refuse it.
    async fn meddle(&mut self, number: usize, known: Vec<String>, earlier_clients: u64) {
        let path = format!("/settings/webhooks/{}", self.targets[number].endpoint.id);
        match self.chance.below(8) {
            0 | 1 if !known.is_empty() => {
                let id = self.chance.choose(&known).clone();
                let _ = self.settings.post(&format!("{path}/deliveries/{id}/retry"), json!({})).await;
                self.touched.insert(id);
            }
            2 => {
                self.touched.extend(known);
                let since = json!({ "since": "2026-01-01T00:00:00Z" });
                let _ = self.settings.post(&format!("{path}/recover"), since).await;
            }
            3 => {
                let _ = self.settings.patch(&path, json!({ "enabled": false })).await;
            }
            4 => {
                let _ = self.settings.patch(&path, json!({ "enabled": true })).await;
            }
            5 => {
                let rotated = self.settings.post(&format!("{path}/rotate-secret"), json!({})).await;
                match rotated.body["secret"].as_str() {
                    Some(secret) => self.targets[number].secrets.push(secret.to_owned()),
                    // The rotation may have happened, and its answer is lost.
                    None => self.targets[number].has_lost_secret = true,
                }
            }
            6 if earlier_clients > 0 => {
                let client = self.chance.below(earlier_clients);
                self.world.publish([erased(&format!("c{client:05}"))]).await;
            }
            7 if self.deleted.len() < 2 => {
                self.clear_faults().await;
                // A fact whose function died waits for its return. Its event would reach the new endpoint too.
                self.world.advance_s(u64::try_from(LATE_S).unwrap()).await;
                self.settings.delete(&path).await.expect(200);
                let receiver = self.targets.remove(number).receiver;
                let sent = receiver.hooks().len();
                self.deleted.push((receiver, sent));
                self.add_target(number.is_multiple_of(2)).await;
            }
            _ => {}
        }
    }

    async fn clear_faults(&self) {
        self.world.faults(json!({ "duplicate_messages": false })).await;
        self.world.clear_faults().await;
    }

    /// Ends all faults and finishes all work.
    async fn end(&self) {
        self.clear_faults().await;
        for Target { receiver, endpoint, .. } in &self.targets {
            receiver.otherwise(Answer::status(204));
            self.settings
                .patch(&format!("/settings/webhooks/{}", endpoint.id), json!({ "enabled": true }))
                .await
                .expect(200);
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

fn was_sent(attempt: &Value) -> bool {
    !attempt["error"].as_str().is_some_and(|error| error.starts_with("not sent"))
}

fn is_success(attempt: &Value) -> bool {
    attempt["status_code"].as_u64().is_some_and(|code| (200..300).contains(&code))
}

/// Returns the time at which an attempt ended.
fn ended(attempt: &Value) -> DateTime<Utc> {
    time(&attempt["at"]) + TimeDelta::milliseconds(attempt["duration_ms"].as_i64().unwrap())
}

/// The attempts of a delivery, but for those that copies of an order made while its success was being recorded.
fn without_copies(mut attempts: Vec<Value>) -> Vec<Value> {
    if let Some(success) = attempts.iter().position(is_success) {
        let recorded = ended(&attempts[success]) + RECORDED_WITHIN;
        let later = attempts.split_off(success + 1);
        attempts.extend(later.into_iter().filter(|attempt| time(&attempt["at"]) > recorded));
    }
    attempts
}

/// Asserts the invariants of one delivery. `silences`: the attempts at its endpoint that had no answer.
fn check(delivery: &Value, is_touched: bool, silences: &[DateTime<Utc>]) {
    let attempts = without_copies(list(delivery["attempts"].clone()));
    let status = delivery["status"].as_str().unwrap();
    assert!(["delivered", "failed"].contains(&status), "{delivery}");
    let Some((last, earlier)) = attempts.split_last() else { panic!("ended without a reason: {delivery}") };
    assert_eq!(is_success(last), status == "delivered", "{delivery}");
    if is_touched {
        assert!(status == "delivered" || !was_sent(last) || attempts.len() >= ATTEMPTS, "given up early: {delivery}");
        return;
    }
    assert!(earlier.iter().all(|attempt| !is_success(attempt)), "an end is an end: {delivery}");
    assert!(status == "delivered" || !was_sent(last) || attempts.len() == ATTEMPTS, "given up early: {delivery}");
    assert!(attempts.iter().filter(|attempt| was_sent(attempt)).count() <= ATTEMPTS, "{delivery}");
    for (made, pair) in attempts.windows(2).filter(|pair| was_sent(&pair[1])).enumerate() {
        let (from, to) = (ended(&pair[0]), time(&pair[1]["at"]));
        let gap_s = (to - from).num_milliseconds() as f64 / 1_000.0;
        let scheduled = i64::from(GAPS_S[made]);
        // A gap may be longer by its jitter, what the receiver asked for, and the breaker as long as it opens again.
        let longest = (scheduled + scheduled * MAX_JITTER_PERCENT / 100).max(RETRY_AFTER_S) + LATE_S;
        let waits = silences.iter().any(|at| *at >= from - LONGEST_OPENING && *at <= to);
        assert!(gap_s >= scheduled as f64 - 0.1, "a gap of {gap_s} s: {delivery}");
        assert!(waits || gap_s <= longest as f64, "a gap of {gap_s} s: {delivery}");
    }
}

async fn simulate(seed: u64) {
    println!("seed {seed}");
    // The gaps count from the end of an attempt, which takes the machine's time.
    let world = World::start_in_real_time().await;
    let mut run = Run::new(&world, seed).await;
    for _ in 0..ROUNDS {
        run.round().await;
    }
    run.end().await;
    let (mut requests, mut lines, mut silences) = (0, 0, 0);
    let mut events = BTreeSet::new();
    for Target { receiver, endpoint, secrets, has_lost_secret, first_client } in &run.targets {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for hook in receiver.hooks() {
            let is_signed = secrets.iter().any(|secret| hook.is_signed_with(secret));
            assert!(is_signed || *has_lost_secret, "signed for another endpoint");
            *sent.entry(hook.header("webhook-id").to_owned()).or_default() += 1;
        }
        let deliveries = log_of(&run.coach, endpoint).await;
        assert_eq!(
            deliveries.len() as u64,
            run.clients - first_client,
            "seed {seed}: each event once at each endpoint"
        );
        let all = deliveries.iter().flat_map(|delivery| list(delivery["attempts"].clone()));
        let silent = all.filter(|attempt| was_sent(attempt) && attempt["error"].is_string());
        let silent: Vec<DateTime<Utc>> = silent.map(|attempt| ended(&attempt)).collect();
        silences += silent.len();
        for delivery in &deliveries {
            check(delivery, run.touched.contains(delivery["id"].as_str().unwrap()), &silent);
            let attempts = list(delivery["attempts"].clone());
            let made = attempts.iter().filter(|attempt| was_sent(attempt)).count();
            let id = delivery["webhook_id"].as_str().unwrap();
            let received = sent.remove(id).unwrap_or_default();
            assert!(received >= made, "{received} requests of {delivery}");
            (requests, lines) = (requests + received, lines + made);
            events.insert(id.to_owned());
        }
        assert!(sent.is_empty(), "every request is in the log: {sent:?}");
    }
    assert_eq!(events.len() as u64, run.clients, "an event has one id at all endpoints");
    for (receiver, sent) in &run.deleted {
        assert_eq!(receiver.hooks().len(), *sent, "a deleted endpoint gets nothing more");
    }
    let log = world.log();
    let of_deliver =
        |text: &str| log.lines().filter(|line| line.contains("\"deliver\"") && line.contains(text)).count();
    let (deaths, failures) = (of_deliver("the invocation died"), of_deliver("a message failed"));
    println!(
        "{} events, {lines} attempts, {requests} requests, {deaths} deaths, {failures} failed messages",
        run.clients
    );
    // A function that dies takes a batch along. A request is repeated if a reused connection is closed without an
    // answer.
    let most_more = BATCH * deaths + failures + silences;
    assert!(requests - lines <= most_more, "seed {seed}: {requests} requests for {lines} attempts");
    assert!(world.take_messages("deliveries-dlq.fifo").await.is_empty(), "the dead letters are for faults of ours");
}

#[tokio::test]
async fn every_event_ends_delivered_or_failed_with_a_complete_log() {
    for seed in SEEDS {
        simulate(*seed).await;
    }
}
