//! Random writes to a few clients of two coaches, compared with a model of their external ids.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use futures::future::join_all;
use serde_json::json;

use super::{assert_locked, find};
use crate::delivery::simulation::SimulationRandom;
use crate::feed::erasure::erased;
use crate::world::{Caller, Fact, World};

const COACHES: [&str; 2] = ["ada", "bob"];
const CLIENTS: usize = 5;
const IDS: usize = 3;
const SEEDS: [u64; 3] = [1, 2, 3];
const STEPS: usize = 50;
/// Below the limit of a key's requests.
const STEPS_A_MINUTE: usize = 20;

#[derive(Debug)]
enum Step {
    /// The coach sets, or with `None` removes, the id of a client, which may be another coach's or erased.
    Patch {
        coach: usize,
        client: usize,
        id: Option<usize>,
    },
    /// The coach sets one id for all clients at once.
    Rush {
        coach: usize,
        id: usize,
    },
    /// The application hands the client to the coach, or saves it unchanged.
    Save {
        coach: usize,
        client: usize,
    },
    Erase {
        client: usize,
    },
}

impl Step {
    fn random(random: &mut SimulationRandom) -> Self {
        let mut below = |end: usize| usize::try_from(random.below(end as u64)).unwrap();
        let (coach, client, id) = (below(COACHES.len()), below(CLIENTS), below(IDS));
        match below(21) {
            0..=9 => Self::Patch { coach, client, id: Some(id) },
            10..=12 => Self::Patch { coach, client, id: None },
            13..=14 => Self::Rush { coach, id },
            15..=19 => Self::Save { coach, client },
            _ => Self::Erase { client },
        }
    }
}

/// Coach and external id of each client that exists.
type Model = BTreeMap<usize, (usize, Option<usize>)>;

fn name(client: usize) -> String {
    format!("c{client}")
}

fn holder(model: &Model, coach: usize, id: usize) -> Option<usize> {
    model.iter().find(|(_, state)| **state == (coach, Some(id))).map(|(client, _)| *client)
}

/// The status of a PATCH in the model, which the PATCH changes.
fn patch(model: &mut Model, coach: usize, client: usize, id: Option<usize>) -> u16 {
    let is_taken = id.and_then(|id| holder(model, coach, id)).is_some_and(|holder| holder != client);
    match model.get_mut(&client).filter(|state| state.0 == coach) {
        None => 404,
        Some(_) if is_taken => 400,
        Some(state) => {
            state.1 = id;
            200
        }
    }
}

async fn assert_equal(world: &World, keys: &[Caller], model: &Model) {
    let locked = assert_locked(world).await;
    assert_eq!(locked.len(), model.values().filter(|(_, id)| id.is_some()).count());
    for (coach, key) in keys.iter().enumerate() {
        for id in 0..IDS {
            let found = find(key, &format!("emr-{id}")).await;
            let expected: Vec<String> = holder(model, coach, id).map(name).into_iter().collect();
            assert_eq!(found, expected, "emr-{id} of {}", COACHES[coach]);
        }
    }
}

#[tokio::test]
async fn any_sequence_of_writes_leaves_each_id_with_at_most_one_client_of_a_coach() {
    join_all(SEEDS.iter().map(|seed| walk(*seed))).await;
}

async fn walk(seed: u64) {
    let world = World::start().await;
    let mut keys = Vec::new();
    for coach in COACHES {
        keys.push(world.coach(coach).await.partner_key().await);
    }
    world.apply((0..CLIENTS).map(|client| Fact::client(COACHES[0], &name(client)))).await;
    let mut model: Model = (0..CLIENTS).map(|client| (client, (0, None))).collect();
    let mut random = SimulationRandom(seed);
    for number in 0..STEPS {
        let step = Step::random(&mut random);
        println!("seed {seed}: {step:?}");
        if number % STEPS_A_MINUTE == 0 {
            world.advance_s(60).await;
        }
        let send = |coach: usize, client: usize, id: Option<usize>| {
            let body = json!({ "is_active": true, "external_id": id.map(|id| format!("emr-{id}")) });
            keys[coach].patch(&format!("/v1/clients/{}", name(client)), body).into_future()
        };
        match step {
            Step::Patch { coach, client, id } => {
                let status = patch(&mut model, coach, client, id);
                assert_eq!(send(coach, client, id).await.status, status);
            }
            Step::Rush { coach, id } => {
                let replies = join_all((0..CLIENTS).map(|client| send(coach, client, Some(id)))).await;
                let done: Vec<usize> = (0..CLIENTS).filter(|client| replies[*client].status == 200).collect();
                let own = model.iter().filter(|(_, state)| state.0 == coach).count();
                assert_eq!(done.len(), usize::from(own > 0), "{replies:?}");
                for client in done {
                    assert_eq!(patch(&mut model, coach, client, Some(id)), 200);
                }
            }
            Step::Save { coach, client } => {
                world.apply([Fact::client(COACHES[coach], &name(client))]).await;
                if let Some(state) = model.get_mut(&client).filter(|state| state.0 != coach) {
                    *state = (coach, None);
                }
            }
            Step::Erase { client } => {
                world.apply([erased(&name(client))]).await;
                model.remove(&client);
            }
        }
        assert_equal(&world, &keys, &model).await;
    }
}
