//! Access to the settings API: sessions, limits and allowed origins.

use std::future::IntoFuture;

use edge::routes::{Access, ROUTES, Route};
use futures::StreamExt;
use serde_json::json;

use crate::settings::start_with_session;
use crate::world::{Bill, Call, Caller, Reply, World, assert_cost, members};

/// Subjects of tokens, and whether they are coaches. The gateway passes a list of one as text in brackets.
const SUBJECTS: &[(&str, Option<&str>)] = &[
    ("auth0|5f7c8ec7c33c6c004bbafe82", Some("auth0|5f7c8ec7c33c6c004bbafe82")),
    ("[list-of-one]", Some("list-of-one")),
    ("[a b]", None),
    ("Ada Lovelace", None),
    ("service", None),
    ("operator:oncall", None),
    ("[service]", None),
];

#[tokio::test]
async fn a_session_acts_for_the_coach_that_it_names_and_never_as_the_service() {
    let world = World::start().await;
    let too_long = "a".repeat(129);
    for (subject, coach) in SUBJECTS.iter().copied().chain([(too_long.as_str(), None)]) {
        let settings = world.settings_of(subject).await;
        let Some(coach) = coach else {
            let refused = settings.get("/settings/workspace").await.refused(403, "session_without_coach");
            assert_eq!(refused.header("www-authenticate"), None, "{subject}");
            settings.post("/settings/keys", json!({})).await.refused(403, "session_without_coach");
            continue;
        };
        let workspace = world.coach(coach).with("canonical_host", "https://coach.example");
        workspace.with("email", "coach@coaches.example").await;
        assert_eq!(settings.get("/settings/workspace").await.expect(200).str("coach_id"), coach);
        settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).await.expect(201);
        let trail = settings.get("/settings/audit").await.expect(200).body;
        assert_eq!(trail["data"][0]["actor"], coach);
    }
}

fn session_routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| route.access == Access::Session)
}

/// A request to the route, about records that do not exist.
fn call_of(settings: &Caller, route: &Route) -> Call {
    let call = settings.call(route.method, &route.path.replace(['{', '}'], ""));
    if route.method == "GET" { call } else { call.json(&json!({})) }
}

#[tokio::test]
async fn there_are_no_settings_before_the_workspace() {
    let world = World::start().await;
    let settings = world.settings_of("ada").await;
    for route in session_routes() {
        let reply = call_of(&settings, route).await;
        assert_eq!((reply.status, &reply.body["code"]), (409, &json!("workspace_unknown")), "{route}: {}", reply.text);
    }
    world.coach("ada").await;
    settings.get("/settings/keys").await.expect(200);
}

#[tokio::test]
async fn only_the_settings_page_may_call_from_a_browser() {
    let (world, settings) = start_with_session().await;
    let page = world.base_url();
    let preflight = |origin: &str, path: &str| {
        let call = world.anonymous().call("OPTIONS", path).header("origin", origin);
        call.header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type,idempotency-key")
    };
    let allowed = preflight(&page, "/settings/keys").await.expect(204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(page.as_str()));
    let listed = |name: &str| allowed.header(name).unwrap().to_ascii_lowercase();
    for method in ["get", "post", "patch", "delete"] {
        assert!(listed("access-control-allow-methods").contains(method));
    }
    for header in ["authorization", "content-type", "idempotency-key"] {
        assert!(listed("access-control-allow-headers").contains(header));
    }
    let other = preflight("https://elsewhere.example", "/settings/keys").await;
    assert_eq!(other.header("access-control-allow-origin"), None);
    let answer = settings.get("/settings/keys").header("origin", &page).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(page.as_str()));
    let exposed = answer.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    let exposed: Vec<&str> = exposed.split(',').map(str::trim).collect();
    assert_eq!(exposed, ["idempotent-replay", "ratelimit", "ratelimit-policy", "retry-after"]);
    let answer = settings.get("/settings/keys").header("origin", "https://elsewhere.example").await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

async fn lists(settings: &Caller, count: usize) -> Vec<Reply> {
    let path = |number: usize| if number.is_multiple_of(2) { "/settings/keys" } else { "/settings/webhooks" };
    let calls = (0..count).map(|number| settings.get(path(number)).into_future());
    futures::stream::iter(calls).buffer_unordered(40).collect().await
}

#[tokio::test]
async fn of_400_requests_of_a_coach_in_one_minute_exactly_300_pass() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await.settings().await, world.coach("bob").await.settings().await);
    world.advance_to_next_minute().await;
    let began = world.now().await;
    let left_s = 60 - began.timestamp().rem_euclid(60).unsigned_abs();
    let replies = lists(&ada, 400).await;
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "the requests have to fit into one minute");
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 300);
    for denied in replies.into_iter().filter(|reply| reply.status != 200) {
        let denied = denied.refused(429, "rate_limited");
        let retry_after: u64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=left_s).contains(&retry_after), "{retry_after} s, and the minute had {left_s} left");
        assert_eq!(denied.header("ratelimit"), Some(format!("\"settings\";r=0;t={retry_after}").as_str()));
    }
    bob.get("/settings/keys").await.expect(200);
    let denied = ada.post("/settings/keys", json!({})).await.refused(429, "rate_limited");
    world.advance_s(denied.header("retry-after").unwrap().parse().unwrap()).await;
    let next = ada.get("/settings/keys").await.expect(200);
    assert!(next.header("ratelimit").unwrap().starts_with("\"settings\";r=299;t="), "denied requests do not count");
}

#[tokio::test]
async fn every_settings_route_counts_and_states_the_rest_of_the_limit() {
    let (world, settings) = start_with_session().await;
    let nobody = world.settings_of("nobody").await;
    world.advance_to_next_minute().await;
    let began = world.now().await;
    for (used, route) in session_routes().enumerate() {
        let reply = call_of(&settings, route).await;
        assert_eq!(reply.header("ratelimit-policy"), Some("\"settings\";q=300;w=60"), "{route}");
        let header = reply.header("ratelimit").unwrap();
        assert!(header.starts_with(&format!("\"settings\";r={};t=", 299 - used)), "{route}: {header} after {used}");
    }
    // The limit is checked before the workspace.
    let unknown = lists(&nobody, 301).await;
    assert_eq!(unknown.iter().filter(|reply| reply.status == 429).count(), 1);
    unknown
        .into_iter()
        .filter(|reply| reply.status != 429)
        .for_each(|reply| drop(reply.refused(409, "workspace_unknown")));
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "the requests have to fit into one minute");
}

#[tokio::test]
async fn a_settings_request_counts_once_although_the_stores_answer_is_lost() {
    let (world, settings) = start_with_session().await;
    world.advance_to_next_minute().await;
    for left in [299, 298] {
        world.faults(json!({ "function": "settings", "store_lost_answers": 3 })).await;
        let reply = settings.get("/settings/webhooks").await.expect(200);
        assert_eq!(world.remaining_faults().await["store_lost_answers"], 0);
        let header = reply.header("ratelimit").unwrap();
        assert!(header.starts_with(&format!("\"settings\";r={left};t=")), "{header}");
    }
}

#[tokio::test]
async fn the_limit_costs_a_settings_request_one_write_unit_and_no_latency() {
    let (world, settings) = start_with_session().await;
    let list = async || drop(settings.get("/settings/webhooks").await.expect(200));
    let affordable = |bill: &Bill| bill.calls == 3 && bill.write_units == 1.0;
    assert_cost(&world, "settings", list, affordable, 2).await;
}

#[tokio::test]
async fn counters_of_a_coachs_past_minutes_are_removed() {
    let (world, settings) = start_with_session().await;
    for _ in 0..25 {
        settings.get("/settings/webhooks").await.expect(200);
        world.advance_s(180).await;
    }
    let items = world.items("workspaces", "COACH#ada").await;
    let counters = items.iter().find(|item| item["sk"]["S"] == "SETTINGS").unwrap();
    assert!(members(counters).len() < 15, "{counters}");
}
