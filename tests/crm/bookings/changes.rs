//! `DELETE /v1/crm/bookings/{id}`: the place where a cancellation names its contact.

use serde_json::json;

use crate::crm::bookings::{LEAD, OTHER_LEAD, desk, path, slot};
use crate::world::{Fact, World, uuid};

#[tokio::test]
async fn a_contact_may_be_named_in_the_query_of_a_cancellation() {
    let world = World::start().await;
    let desk = desk(&world).await;
    let date = world.midnight_in(2).await.date_naive();
    let (lead, other) = (uuid(LEAD), uuid(OTHER_LEAD));
    let upper = "00000000-0000-7000-8000-00000000000A";
    world.apply([Fact::contact("ada", &upper.to_lowercase())]).await;
    let once = || format!("once-{}", world.number());
    let cancel = |booking: &str, query: &str, body: Option<&str>| {
        let call = desk.key.delete(&format!("{}{query}", path(booking)));
        // A request without a body needs no media type, whatever a client adds by itself.
        let call = match body {
            Some(body) if !body.is_empty() => call.header("content-type", "application/json").body(body.to_owned()),
            Some(_) => call.header("content-type", "text/plain;charset=UTF-8"),
            None => call,
        };
        call.idempotent(&once())
    };
    let named = |id: &str| json!({ "leadId": id }).to_string();
    for (number, (query, body)) in [
        (format!("?leadId={lead}"), None),
        (format!("?leadId={lead}"), Some(String::new())),
        (format!("?leadId={lead}"), Some("{}".to_owned())),
        (format!("?leadId={lead}"), Some(named(&lead))),
        (format!("?x=1&leadId={lead}&leadId={other}"), None),
        ("?leadId=".to_owned(), Some(named(&lead))),
        (String::new(), Some(named(&lead))),
    ]
    .into_iter()
    .enumerate()
    {
        let booking = desk.booked(slot(date, &format!("{number:02}:00"))).await;
        let cancelled = cancel(&booking, &query, body.as_deref()).await.expect(200);
        assert_eq!(cancelled.body["booking"]["status"], "cancelled", "{query} {body:?}");
    }
    let mut draft = slot(date, "10:00");
    draft["leadId"] = json!(upper);
    let booking = desk.booked(draft).await;
    for (query, body) in [
        (String::new(), None),
        ("?leadId=".to_owned(), None),
        ("?leadId=".to_owned(), Some("{}".to_owned())),
        ("?leadId=x".to_owned(), None),
        (format!("?leadId={other}"), Some(named(&lead))),
        (format!("?leadId={lead}"), Some(named("x"))),
        (format!("?leadId={lead}"), Some(json!({ "leadId": null }).to_string())),
        ("?leadId=x".to_owned(), Some(named(&lead))),
        (format!("?leadid={lead}"), None),
    ] {
        let refused = cancel(&booking, &query, body.as_deref()).await.refused_for("leadId");
        assert_eq!(refused.body["field"], "leadId", "{query} {body:?}");
    }
    cancel(&booking, &format!("?leadId={lead}"), Some(r#"{"note":"x"}"#)).await.refused_for("note");
    cancel(&booking, &format!("?leadId={lead}"), Some("{")).await.refused(400, "invalid_request");
    cancel(&booking, &format!("?leadId={other}"), None).await.refused(404, "not_found");
    assert_eq!(desk.list().await.len(), 1);

    // Both forms are the same request for a key, in any case of the id. A contradiction is a different request.
    let send = |query: &str, body: Option<String>| {
        let call = desk.key.delete(&format!("{}{query}", path(&booking))).idempotent("one");
        body.map_or(call.clone(), |body| call.header("content-type", "application/json").body(body))
    };
    let first = send(&format!("?leadId={upper}"), None).await.expect(200);
    for (query, body) in [
        (format!("?leadId={}", upper.to_lowercase()), None),
        (String::new(), Some(named(upper))),
        (format!("?leadId={upper}"), Some(named(&upper.to_lowercase()))),
    ] {
        let again = send(&query, body).await.expect(200);
        assert!(again.is_replay() && again.text == first.text, "{}", again.text);
    }
    for (query, body) in [(format!("?leadId={lead}"), None), (format!("?leadId={lead}"), Some(named(upper)))] {
        send(&query, body).await.refused(409, "idempotency_payload_mismatch");
    }
}
