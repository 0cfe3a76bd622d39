//! A reader that polls by `updated_since`, while the API and the application write.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{ids, walk};
use crate::delivery::simulation::SimulationRandom;
use crate::feed::erasure::erased;
use crate::partner::clients::create;
use crate::partner::start_with_key;
use crate::world::{Caller, Fact, World, fact, rendered, time};

/// The overlap that the guide names.
const OVERLAP: TimeDelta = TimeDelta::minutes(1);
const STEPS: usize = 120;
const CLIENTS: u64 = 12;

/// A copy of a coach's clients, kept as the guide says.
struct Reader {
    key: Caller,
    copy: BTreeMap<String, Value>,
    greatest: DateTime<Utc>,
}

impl Reader {
    fn new(key: Caller) -> Self {
        Self { key, copy: BTreeMap::new(), greatest: time(&json!("2000-01-01T00:00:00Z")) }
    }

    /// Polls once. Returns the clients with an update that the reader did not have.
    async fn poll(&mut self) -> Vec<String> {
        let since = rendered(self.greatest - OVERLAP);
        let mut news = Vec::new();
        for client in walk(&self.key, &format!("updated_since={since}&limit=3")).await {
            let id = client["client_id"].as_str().unwrap().to_owned();
            self.greatest = self.greatest.max(time(&client["updated_at"]));
            let known = self.copy.insert(id.clone(), client.clone());
            if known.as_ref().map(|known| &known["updated_at"]) != Some(&client["updated_at"]) {
                news.push(id);
            } else {
                assert_eq!(known, Some(client), "a change has another time");
            }
        }
        news
    }

    /// Asserts that the copy is the roster, but for clients that have left it.
    async fn assert_complete(&mut self) {
        let mut roster = BTreeMap::new();
        for client in self.key.get("/v1/clients?limit=200").await.expect(200).body["clients"].as_array().unwrap() {
            roster.insert(client["client_id"].as_str().unwrap().to_owned(), client.clone());
        }
        self.copy.retain(|id, _| roster.contains_key(id));
        assert_eq!(self.copy, roster);
    }
}

#[tokio::test]
async fn a_reader_that_polls_has_every_update_whatever_is_written() {
    let world = World::start().await;
    let mut readers = Vec::new();
    for coach in ["ada", "bob"] {
        readers.push(Reader::new(world.coach(coach).await.partner_key().await));
    }
    let mut random = SimulationRandom(48);
    for step in 0..STEPS {
        let id = format!("c{}", random.below(CLIENTS));
        let coach = usize::try_from(random.below(2)).unwrap();
        let (key, name) = (&readers[coach].key, ["ada", "bob"][coach]);
        let path = format!("/v1/clients/{id}");
        match random.below(12) {
            0 => drop(create(key, &format!("made{step}@example.com")).await),
            1..=2 => drop(key.patch(&path, json!({ "is_active": random.below(2) == 0 })).await),
            3..=4 => {
                let body = json!({ "is_active": true, "external_id": format!("emr-{}", random.below(4)) });
                drop(key.patch(&path, body).await);
            }
            5..=8 => {
                // A late fact, or one that hands the client over.
                let saved = Fact::client(name, &id).with("full_name", format!("Name {}", random.below(3)));
                let occurred_at = world.timestamp_in(-i64::try_from(random.below(3_000)).unwrap()).await;
                world.apply([saved.with("occurred_at", occurred_at)]).await;
            }
            9 => {
                let detail = json!({
                    "client_id": id, "from_phase": null, "to_phase": format!("Phase {}", random.below(2)),
                    "advanced_at": world.timestamp_in(-60).await,
                });
                world.apply([fact("phase.advanced", detail)]).await;
            }
            10 if random.below(4) == 0 => world.apply([erased(&id)]).await,
            _ => world.advance_s(random.below(100)).await,
        }
        if random.below(3) == 0 {
            for reader in &mut readers {
                reader.poll().await;
                reader.assert_complete().await;
            }
        }
    }
}

#[tokio::test]
async fn a_write_that_is_stored_after_later_ones_is_seen_thanks_to_the_overlap() {
    let (world, key) = start_with_key().await;
    let (slow, quick) = (create(&key, "slow@example.com").await, create(&key, "quick@example.com").await);
    let mut reader = Reader::new(key.clone());
    reader.poll().await;
    let off = |client: &str| key.patch(&format!("/v1/clients/{client}"), json!({ "is_active": false })).into_future();
    // The key's count and the read come before the transaction.
    world.faults(json!({ "function": "clients", "spared_calls": 2, "stalled_calls": 1 })).await;
    let stalled = tokio::spawn(off(&slow));
    world.until_stalled().await;
    off(&quick).await.expect(200);
    assert_eq!(reader.poll().await, [quick.as_str()]);
    world.clear_faults().await;
    let late = stalled.await.unwrap().expect(200);
    assert!(time(&late.body["updated_at"]) < reader.greatest, "its time is that of its arrival");
    let without_overlap = walk(&key, &format!("updated_since={}", rendered(reader.greatest))).await;
    assert_eq!(ids(&without_overlap), [quick.as_str()]);
    assert_eq!(reader.poll().await, [slow.as_str()]);
    reader.assert_complete().await;
}
