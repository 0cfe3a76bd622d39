//! Keys: each mode has keys of its own, which open deployments of that mode alone. Every answer of a sandbox names the
//! mode.

use std::collections::BTreeSet;

use domain::mode::Mode;
use edge::routes::{Access, ROUTES, served};
use serde_json::{Value, json};

use crate::assistants::{Assistant, LEGACY, MODERN};
use crate::event_feed::reader;
use crate::sandbox::{DATA, FACTS, MAIL, start};
use crate::world::{Call, Caller, Coach, World, emitted_events};

const ELSEWHERE: &str = "https://elsewhere.example.com";

/// Bodies that create a key of each scope, the second one with events.
fn drafts() -> [Value; 2] {
    let events = json!({ "types": emitted_events(), "payload_mode": "identifiers" });
    [
        json!({ "name": "Key of clients", "scope": "partner" }),
        json!({ "name": "CRM", "scope": "crm", "permissions": ["contacts.read", "contacts.write"], "events": events }),
    ]
}

/// New keys of a coach, as they are shown once.
async fn keys(coach: &Coach<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    for draft in drafts() {
        keys.push(coach.new_key(draft).await.str("key").to_owned());
    }
    keys
}

/// The words in which a deployment of this mode refuses a key of the other mode.
fn refusal(mode: Mode, address: Option<&str>) -> String {
    let (what, keys) = match mode {
        Mode::Live => ("This is a test key, and this is the live service.", "Test keys"),
        Mode::Test => ("This is a live key, and this is a sandbox.", "Live keys"),
    };
    address.map_or_else(|| what.to_owned(), |address| format!("{what} {keys} work at {address}."))
}

/// A request of each kind that a key may make of a deployment of this mode.
fn requests(key: &Caller, mode: Mode) -> Vec<Call> {
    let write = |path: &str| {
        let body = json!({ "email": "grace@example.com", "name": "Grace", "facts": [] });
        key.post(path, body).idempotent("other-mode")
    };
    let reads = ["/v1/ping", "/v1/key", "/v1/requests", "/v1/clients", "/v1/crm/contacts", "/v1/events"];
    let mut requests: Vec<Call> = reads.iter().map(|path| key.get(path)).collect();
    requests.extend(["/v1/clients", "/v1/crm/contacts"].map(write));
    for version in [MODERN, LEGACY] {
        let assistant = Assistant::new(key, version);
        requests.push(assistant.call("whoami", json!({})));
        requests.push(assistant.request("tools/list", json!({})));
    }
    if mode == Mode::Test {
        requests.extend([key.get(MAIL), write(FACTS), key.delete(DATA)]);
    }
    requests
}

/// All that is stored, one text for each item.
async fn stored(world: &World) -> BTreeSet<String> {
    world.tables().await.into_iter().map(|(table, item)| format!("{table} {item}")).collect()
}

#[tokio::test]
async fn a_key_has_the_prefix_of_its_mode_and_opens_its_deployment() {
    for mode in Mode::ALL {
        let world = start(mode).await;
        let ada = world.coach("ada").await;
        for (draft, (prefix, path)) in drafts().into_iter().zip([("svc", "/v1/ping"), ("crm", "/v1/crm/contacts")]) {
            let made = ada.new_key(draft).await;
            let prefix = format!("{prefix}_{}_", mode.as_str());
            assert!(made.str("key").starts_with(&prefix), "{prefix}");
            assert!(made.str("display").starts_with(&prefix), "{}", made.str("display"));
            let key = world.anonymous().with_bearer(made.str("key"));
            key.get(path).await.expect(200);
            assert_eq!(key.get("/v1/key").await.expect(200).body["mode"], mode.as_str());
        }
        // The key that replaces one is of the mode, too.
        let made = ada.new_key(drafts()[0].clone()).await;
        let path = format!("/settings/keys/{}/rotate", made.str("id"));
        let rotated = ada.settings().await.post(&path, json!({})).await.expect(201);
        assert!(rotated.str("key").starts_with(&format!("svc_{}_", mode.as_str())));
    }
}

#[tokio::test]
async fn a_key_of_the_other_mode_is_refused_with_the_address_where_it_works_and_nothing_is_written() {
    for address in [None, Some(ELSEWHERE)] {
        let (live, test) = match address {
            None => (start(Mode::Live).await, start(Mode::Test).await),
            Some(address) => {
                let world = async |mode: Mode| {
                    World::start_with_parameters(&[("Mode", mode.as_str()), ("OtherModeAddress", address)]).await
                };
                (world(Mode::Live).await, world(Mode::Test).await)
            }
        };
        let of_live = keys(&live.coach("ada").await).await;
        let of_test = keys(&test.coach("ada").await).await;
        for (world, mode, strangers) in [(&live, Mode::Live, of_test), (&test, Mode::Test, of_live)] {
            let before = stored(world).await;
            for stranger in strangers {
                for caller in [world.anonymous().with_bearer(&stranger), world.anonymous().with("x-api-key", &stranger)]
                {
                    for request in requests(&caller, mode) {
                        let refused = request.await.refused(401, "unauthorized");
                        assert_eq!(refused.error(), refusal(mode, address));
                        assert_eq!(refused.header("ratelimit"), None, "nobody knows whose limit it is");
                    }
                }
            }
            assert_eq!(stored(world).await, before, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn a_mistyped_key_of_the_other_mode_is_refused_as_no_key() {
    let (live, test) = (start(Mode::Live).await, start(Mode::Test).await);
    let key = keys(&test.coach("ada").await).await.remove(0);
    for mistyped in [&key[..key.len() - 1], &key.replace("_test_", "_live_"), &key.to_uppercase()] {
        let refused = live.anonymous().with_bearer(mistyped).get("/v1/ping").await.refused(401, "unauthorized");
        assert!(refused.error().contains("not an API key"), "{}", refused.text);
    }
}

#[tokio::test]
async fn ping_answers_the_same_in_both_modes() {
    let mut pings = Vec::new();
    for mode in Mode::ALL {
        let world = start(mode).await;
        let key = world.coach("ada").await.partner_key().await;
        pings.push(key.get("/v1/ping").await.expect(200).body);
    }
    assert_eq!(pings[0], pings[1]);
    assert!(!pings[0].to_string().contains("mode"), "{}", pings[0]);
}

#[tokio::test]
async fn each_answer_of_a_function_names_the_mode_in_a_sandbox_and_none_does_in_a_live_stack() {
    for mode in Mode::ALL {
        let world = start(mode).await;
        let ada = world.coach("ada").await;
        let (partner, crm, settings) = (ada.partner_key().await, ada.crm_key().await, ada.settings().await);
        let (reader, nobody) = (reader(&ada, "identifiers").await, world.anonymous());
        let expected = (mode == Mode::Test).then_some("test");
        for route in served(mode) {
            let caller = match route.access {
                Access::Partner(_) | Access::AnyKey | Access::Sandbox | Access::Assistant => &partner,
                Access::Crm(_) => &crm,
                Access::Events => &reader,
                Access::Session => &settings,
                Access::Public => &nobody,
            };
            let path = route.path.replace(['{', '}'], "");
            // The gateway refuses a request without a session before it reaches a function.
            let callers = if route.access == Access::Session { vec![caller] } else { vec![caller, &nobody] };
            for caller in callers {
                let reply = caller.call(route.method, &path).await;
                assert_eq!(reply.header("x-mode"), expected, "{route}: {}", reply.status);
            }
        }
        for (method, path, status) in [
            ("GET", "/v1/nothing", 404),
            ("GET", "/docs/guides/nothing", 404),
            ("PUT", "/v1/clients", 405),
            ("POST", "/portal", 405),
            ("HEAD", "/openapi.json", 200),
        ] {
            let reply = nobody.call(method, path).await.expect(status);
            assert_eq!(reply.header("x-mode"), expected, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_paths_of_a_sandbox_are_unknown_to_a_live_stack_and_no_function_of_it_is_there() {
    let world = start(Mode::Live).await;
    let key = world.coach("ada").await.partner_key().await;
    let paths: BTreeSet<&str> =
        ROUTES.iter().filter(|route| !route.is_served(Mode::Live)).map(|route| route.path).collect();
    assert_eq!(paths.len(), 6, "{paths:?}");
    for path in paths {
        assert!(path.starts_with("/v1/test/"), "{path}");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            for caller in [&key, &world.anonymous()] {
                let reply = caller.call(method, path).await.refused(404, "unknown_path");
                assert_eq!(reply.header("allow"), None, "{method} {path}");
            }
        }
    }
    for function in ["sandbox", "wipe"] {
        world.anonymous().get(&format!("/_local/calls?function={function}")).await.expect(400);
    }
    let sandbox = start(Mode::Test).await;
    let refused = sandbox.anonymous().call("PUT", FACTS).await.refused(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("POST"));
}
