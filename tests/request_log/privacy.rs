//! Privacy: no value of a body, a query or a header is kept.

use serde_json::json;

use super::{key, requests};
use crate::world::{Fact, World, encoded, uuid};

#[tokio::test]
async fn no_value_of_a_request_is_kept_but_the_programs_name() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let ((partner, _), (crm, _)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(1)), Fact::calendar("ada", &uuid(2))]).await;
    let body = json!({ "email": "mark-email@example.com", "full_name": "mark-name", "goals": "mark-goals" });
    let query = "?name=mark-query&email=mark-email@example.com&mark-parameter=1&external_id=mark-query";
    for (caller, method, path) in [
        (&partner, "POST", "/v1/clients".to_owned()),
        (&partner, "PATCH", format!("/v1/clients/{}", encoded("mark-path@example.com"))),
        (&partner, "GET", format!("/v1/clients/{}/check-ins", encoded("mark path"))),
        (&partner, "POST", "/v1/clients/mark%2Fpath/login-link".to_owned()),
        (&crm, "POST", "/v1/crm/contacts".to_owned()),
        (&crm, "GET", "/v1/crm/contacts".to_owned()),
        (&crm, "PATCH", "/v1/crm/contacts/mark-path".to_owned()),
        (&crm, "POST", "/v1/crm/bookings".to_owned()),
        (&crm, "DELETE", "/v1/crm/bookings/mark-path".to_owned()),
        (&crm, "GET", "/v1/events".to_owned()),
    ] {
        for body in [body.to_string(), "{\"mark-broken\": mark-broken".to_owned()] {
            let call = caller.call(method, &format!("{path}{query}")).body(body);
            let call = call.header("content-type", "application/json").idempotent("mark-idempotency");
            call.header("x-custom", "mark-header")
                .header("cookie", "a=mark-cookie")
                .header("referer", "https://mark-referer.example/")
                .header("x-forwarded-for", "mark-address")
                .header("x-mcp-tool", "mark-header")
                .header("x-mcp-client", "mark-header")
                .header("user-agent", "Acme/1.0")
                .await;
        }
    }
    let found = requests(&ada.settings().await, "").await;
    assert!(found.len() >= 15, "{}", found.len());
    let stored = serde_json::to_string(&world.table("requests").await).unwrap();
    let shown = serde_json::to_string(&found).unwrap();
    for text in [&stored, &shown] {
        assert!(text.contains("Acme/1.0"));
        assert!(!text.contains("mark"), "{text}");
    }
}
