//! Requests that are kept, by the setting of the deployment.

use serde_json::json;

use super::{key, requests, shown};
use crate::world::{CRM_PERMISSIONS, Fact, World, uuid};

#[tokio::test]
async fn reads_that_succeed_and_requests_of_nobody_are_not_kept() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let ((partner, _), (crm, _)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(1)), Fact::calendar("ada", &uuid(2))]).await;
    for path in ["/v1/ping", "/v1/key", "/v1/requests", "/v1/clients?limit=3"] {
        partner.get(path).await.expect(200);
    }
    crm.get("/v1/crm/contacts").await.expect(200);
    // Its question is a body, and it changes nothing.
    crm.post("/v1/crm/bookings/availability", json!({ "leadId": uuid(1) })).await.expect(200);
    // A log does not show the reads of itself, refused ones either.
    partner.get("/v1/requests?status=600").await.refused_for("status");
    for (method, path) in [("PUT", "/v1/clients"), ("GET", "/v1/nothing"), ("POST", "/v1/requests")] {
        assert!([404, 405].contains(&partner.call(method, path).await.status));
    }
    let unknown =
        domain::api_key::ApiKey::generate(domain::api_key::Scope::Partner, domain::mode::Mode::Live, &[7; 128]);
    world.anonymous().with_bearer(unknown.expose()).get("/v1/ping").await.refused(401, "unauthorized");
    world.anonymous().with_bearer("svc_live_nonsense").get("/v1/ping").await.refused(401, "unauthorized");
    world.anonymous().get("/v1/ping").await.refused(401, "unauthorized");
    settings.get("/settings/keys/nothing").await.refused(405, "method_not_allowed");
    settings.post("/settings/keys", json!({})).await.refused_for("name");
    assert_eq!(requests(&settings, "").await, Vec::<serde_json::Value>::new());
    assert_eq!(world.table("requests").await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn the_deployment_sets_what_is_kept() {
    for (setting, kept) in
        [("off", &[][..]), ("refused", &["404"]), ("writes", &["404", "200"]), ("all", &["404", "200", "200"])]
    {
        let world = World::start_with_parameters(&[("RequestLog", setting)]).await;
        let ada = world.coach("ada").await;
        let (partner, _) = key(&ada, "partner").await;
        world.apply([Fact::client("ada", "client_1")]).await;
        partner.get("/v1/ping").await.expect(200);
        partner.patch("/v1/clients/client_1", json!({ "is_active": false })).await.expect(200);
        partner.get("/v1/clients/nobody").await.refused(404, "not_found");
        let found = shown(&partner, "/v1/requests").await;
        let statuses: Vec<String> = found.iter().map(|record| record["status"].to_string()).collect();
        assert_eq!(statuses, kept, "{setting}");
    }
}

/// Every route behind a key keeps its refusals: a new function that forgets the table or the setting fails here.
#[tokio::test]
async fn each_route_behind_a_key_keeps_a_refusal() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let ((partner, _), (crm, _)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    let mut seen = 0;
    for route in edge::routes::ROUTES.iter().filter(|route| route.permission().is_some()) {
        let is_crm = route.permission().is_some_and(|permission| CRM_PERMISSIONS.contains(&permission.as_str()));
        let stranger = if is_crm { &partner } else { &crm };
        let refused =
            stranger.call(route.method, &route.path.replace(['{', '}'], "")).await.refused(403, "wrong_scope");
        let record = &requests(&settings, "").await[0];
        assert_eq!((&record["id"], &record["route"]), (&json!(refused.header("x-request-id")), &json!(route.path)));
        seen += 1;
    }
    assert!(seen > 20);
    for path in ["/v1/events", "/v1/events/samples"] {
        partner.get(path).await.refused(403, "permission_missing");
        assert_eq!(requests(&settings, "").await[0]["route"], path);
    }
}
