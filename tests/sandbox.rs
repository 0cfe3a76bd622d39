//! A sandbox: the differences between the modes of a deployment, by both modes, and the routes of a sandbox.

mod costs;
mod data;
mod evaluation;
mod events;
mod facts;
mod keys;
mod login_links;
mod mail;
mod portal;
mod quotas;
mod webhooks;
mod workspaces;

use domain::mode::Mode;
use serde_json::{Value, json};

use crate::world::{Caller, Coach, Fact, World, list};

const FACTS: &str = "/v1/test/facts";
const WORKSPACE: &str = "/v1/test/workspace";
const EVALUATE: &str = "/v1/test/evaluate";
const EVENTS: &str = "/v1/test/events";
const MAIL: &str = "/v1/test/mail";
const DATA: &str = "/v1/test/data";

/// An empty world of this mode.
pub(crate) async fn start(mode: Mode) -> World {
    World::start_with_parameters(&[("Mode", mode.as_str())]).await
}

/// A coach whom a sandbox gets to know by the first request to the settings.
fn visitor<'w>(world: &'w World, id: &str) -> Coach<'w> {
    Coach { world, id: id.to_owned() }
}

/// A fact as the route takes it, which fills the coach in.
fn given(fact: Fact) -> Value {
    let Fact { detail_type, detail } = fact.without("coach_id");
    json!({ "type": detail_type, "detail": detail })
}

/// The body of a request with these facts.
fn batch(facts: impl IntoIterator<Item = Fact>) -> Value {
    json!({ "facts": facts.into_iter().map(given).collect::<Vec<_>>() })
}

/// Sends facts by the route. Returns their results.
async fn send(key: &Caller, facts: impl IntoIterator<Item = Fact>) -> Vec<Value> {
    let reply = key.post(FACTS, batch(facts)).await.expect(200);
    list(reply.body["data"].clone())
}

/// Sends facts by the route, all of which are stored.
async fn store(key: &Caller, facts: impl IntoIterator<Item = Fact>) {
    for result in send(key, facts).await {
        assert_eq!(result["result"], "stored", "{result}");
    }
}

/// Changes the workspace by the route.
async fn patch(key: &Caller, body: Value) -> Value {
    key.patch(WORKSPACE, body).await.expect(200).body
}

/// The stored item of a workspace's record.
async fn record(world: &World, coach: &str) -> Value {
    let mut items = world.items("workspaces", &format!("COACH#{coach}")).await;
    items.retain(|item| item["pk"]["S"] == format!("COACH#{coach}") && item["sk"]["S"] == "WORKSPACE");
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}
