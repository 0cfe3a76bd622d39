//! `POST /v1/clients/{clientId}/login-link`: bodies, limits and costs. `partner::login_pages` tests the links
//! themselves.

use futures::future::join_all;
use serde_json::json;

use crate::partner::start_with_key;
use crate::world::{Bill, Caller, Reply, World, assert_cost};

/// Largest accepted body.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Mints a link and returns the answer.
pub(crate) async fn mint(key: &Caller, client: &str) -> Reply {
    key.call("POST", &format!("/v1/clients/{client}/login-link")).await
}

/// Creates a client of the key's coach and returns its id.
pub(crate) async fn client(world: &World, key: &Caller) -> String {
    let body = json!({ "email": format!("c{}@example.com", world.number()), "send_welcome": false });
    key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

/// A world with a coach, a caller with a partner key of hers, and the id of a client of hers.
pub(crate) async fn start_with_client() -> (World, Caller, String) {
    let (world, key) = start_with_key().await;
    let client = client(&world, &key).await;
    (world, key, client)
}

/// Remaining requests by `RateLimit`: of all, and of those for a login link.
#[track_caller]
fn left(reply: &Reply) -> (u32, u32) {
    let header = reply.header("ratelimit").unwrap();
    let parts: Vec<&str> = header.split([';', ',', '=']).map(str::trim).collect();
    let ["\"default\"", "r", requests, "t", _, "\"login-link\"", "r", links, "t", _] = parts[..] else {
        panic!("{header}")
    };
    (requests.parse().unwrap(), links.parse().unwrap())
}

#[tokio::test]
async fn any_body_or_none_is_accepted_but_a_huge_one_is_refused() {
    let (_world, key, client) = start_with_client().await;
    let path = format!("/v1/clients/{client}/login-link");
    for body in ["", "{}", "null", "no JSON", "{\"coach_id\": \"bob\"}"] {
        for kind in ["application/json", "text/plain"] {
            key.call("POST", &path).body(body).header("content-type", kind).await.expect(200);
        }
    }
    key.call("POST", &path).body(vec![b' '; MAX_BODY_BYTES]).await.expect(200);
    key.call("POST", &path).body(vec![b' '; MAX_BODY_BYTES + 1]).await.refused(413, "body_too_large");
}

#[tokio::test]
async fn of_40_links_of_one_key_in_one_minute_exactly_20_are_minted() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, other) = (ada.partner_key().await, ada.partner_key().await);
    let client = client(&world, &key).await;
    world.advance_to_next_minute().await;
    let began = world.now().await;
    let replies = join_all((0..40).map(|_| mint(&key, &client))).await;
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "the requests have to fit into one minute");
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 20);
    for denied in replies.into_iter().filter(|reply| reply.status != 200) {
        let denied = denied.refused(429, "rate_limited");
        assert!((1..=60).contains(&denied.header("retry-after").unwrap().parse::<u64>().unwrap()));
        assert_eq!(left(&denied).1, 0);
    }
    // The key's other requests and the coach's other keys are not limited, and refused requests do not count.
    let ping = key.get("/v1/ping").await.expect(200);
    assert!(ping.header("ratelimit").unwrap().starts_with("\"default\";r=279;t="), "20 links and a ping");
    mint(&other, &client).await.expect(200);

    let denied = mint(&key, &client).await.refused(429, "rate_limited");
    assert!(denied.error().contains("20") && denied.error().contains("login link"), "{}", denied.text);
    world.advance_s(denied.header("retry-after").unwrap().parse().unwrap()).await;
    assert_eq!(left(&mint(&key, &client).await.expect(200)), (299, 19), "denied requests do not count");
}

#[tokio::test]
async fn links_count_as_requests_and_both_limits_are_in_the_headers() {
    let (world, key, client) = start_with_client().await;
    world.advance_to_next_minute().await;
    let first = mint(&key, &client).await.expect(200);
    assert_eq!(first.header("ratelimit-policy"), Some("\"default\";q=300;w=60, \"login-link\";q=20;w=60"));
    assert_eq!(left(&first), (299, 19));
    // Requests without success count as well.
    assert_eq!(left(&mint(&key, "client_none").await.expect(404)), (298, 18));
    let ping = key.get("/v1/ping").await.expect(200);
    assert_eq!(ping.header("ratelimit-policy"), Some("\"default\";q=300;w=60"), "the limits of this route");

    let pings = key.pings(290).await;
    assert!(pings.iter().all(|ping| ping.status == 200));
    let replies = join_all((0..17).map(|_| mint(&key, &client))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 7, "300 in all");
    let denied = mint(&key, &client).await.refused(429, "rate_limited");
    assert_eq!(left(&denied), (0, 11), "no link was counted without its request");
    assert!(denied.error().contains("300"), "{}", denied.text);
    key.get("/v1/ping").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn counters_of_past_minutes_do_not_pile_up() {
    /// Counters of the current minute, of the previous one, and those too few to be worth a write.
    const MOST_COUNTERS: usize = 4 + 8;
    let (world, key, client) = start_with_client().await;
    for _ in 0..14 {
        world.advance_s(180).await;
        mint(&key, &client).await.expect(200);
    }
    let items = world.items("keys", "KEY#").await;
    let names = items[0].as_object().unwrap().keys();
    let counters = names.filter(|name| name[1..].parse::<u64>().is_ok()).collect::<Vec<_>>();
    assert!(counters.iter().any(|name| name.starts_with('l')) && counters.len() <= MOST_COUNTERS, "{counters:?}");
}

#[tokio::test]
async fn a_link_takes_five_calls_three_in_sequence() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let keys = [ada.partner_key().await, ada.partner_key().await];
    let client = client(&world, &keys[0]).await;
    // 20 a minute of each key are enough for all repeats.
    let turn = std::cell::Cell::new(0);
    let minting = async || {
        turn.set(turn.get() + 1);
        mint(&keys[turn.get() % keys.len()], &client).await.expect(200);
    };
    let affordable = |bill: &Bill| bill.calls == 5 && bill.write_units == 3.0 && bill.read_units == 2.0;
    assert_cost(&world, "login-links", minting, affordable, 3).await;
}
