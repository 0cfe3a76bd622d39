//! Changes of contacts.

use serde_json::{Value, json};

use super::Step::{Client, Echo, Patch, Post};
use super::{AT, NEW, NONE, Row, lee, merged, named, nameless, row, saved, with};
use crate::world::uuid;

pub(super) fn rows() -> Vec<Row> {
    let lead = |id: u64| format!("/v1/crm/contacts/{}", uuid(id));
    let created = |contact: Value, source: &str| {
        ("contact_created", json!({ "contact": contact, "created_at": AT, "source": source }))
    };
    let updated = |contact: Value, changed: Value| {
        ("contact_updated", json!({ "contact": contact, "changed": changed, "updated_at": AT }))
    };
    let ann = json!({ "name": "Ann", "email": "ann@example.com" });
    let new_ann = json!({ "id": NEW, "name": "Ann", "email": "ann@example.com", "phone": null });
    let free = |id| lee(id).with("do_not_contact", false);
    let addressed = |id: u64| lee(id).with("email", format!("lead{id}@example.com"));
    let client = |id: u64| Client(json!({ "email": format!("lead{id}@example.com"), "send_welcome": false }));
    let address = |id: u64| with(named(id), json!({ "email": format!("lead{id}@example.com") }));
    vec![
        row("POST creates", [], [Post("/v1/crm/contacts", ann.clone())], [created(new_ann, "crm_api")]),
        row("POST matches", [], [Post("/v1/crm/contacts", json!({ "name": "A", "email": "ANN@example.com" }))], NONE),
        row(
            "POST and its echo",
            [],
            [Post("/v1/crm/contacts", json!({ "name": "Bo", "email": "bo@example.com" })), Echo],
            [created(json!({ "id": NEW, "name": "Bo", "email": "bo@example.com", "phone": null }), "crm_api")],
        ),
        row(
            "PATCH of both members",
            [saved(free(101))],
            [Patch(lead(101), json!({ "name": "L", "doNotContact": true }))],
            [updated(with(named(101), json!({ "name": "L" })), json!(["name", "do_not_contact"]))],
        ),
        row("PATCH of the same name", [saved(lee(102))], [Patch(lead(102), json!({ "name": "Lee Lead" }))], NONE),
        row(
            "PATCH, its repetition and its echo",
            [saved(lee(103))],
            [Patch(lead(103), json!({ "name": "L" })), Patch(lead(103), json!({ "name": "L" })), Echo],
            [updated(with(named(103), json!({ "name": "L" })), json!(["name"]))],
        ),
        row("a fact creates", [], [saved(lee(104))], [created(named(104), "application")]),
        row(
            "a fact changes",
            [saved(lee(105))],
            [saved(
                lee(105)
                    .with("email", "e@example.com")
                    .with("phone", "+1 415 555 0100")
                    .with("marketing", json!({ "email": false, "sms": false })),
            )],
            [updated(
                with(named(105), json!({ "email": "e@example.com", "phone": "+1 415 555 0100" })),
                json!(["email", "phone", "marketing"]),
            )],
        ),
        row("a fact repeats", [saved(lee(106))], [saved(lee(106))], NONE),
        row(
            "an older fact",
            [saved(lee(107))],
            [saved(lee(107).with("name", "Old").with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill creates", [], [saved(lee(108).with("backfill", true))], NONE),
        row("a backfill changes", [saved(lee(109))], [saved(lee(109).with("name", "L").with("backfill", true))], NONE),
        row(
            "a merge",
            [saved(lee(110)), saved(lee(111))],
            [merged(110, 111)],
            [("contact_merged", json!({ "contact": named(111), "merged": { "id": uuid(110) } }))],
        ),
        row("the same merge", [], [merged(110, 111)], NONE),
        row(
            "a merge into another contact",
            [saved(lee(112))],
            [merged(110, 112)],
            [("contact_merged", json!({ "contact": named(112), "merged": { "id": uuid(110) } }))],
        ),
        row("a fact about a merged contact", [], [saved(lee(110).with("name", "Late"))], NONE),
        row(
            "a merge into a merged contact",
            [saved(lee(113))],
            [merged(113, 110)],
            [("contact_merged", json!({ "contact": named(112), "merged": { "id": uuid(113) } }))],
        ),
        row(
            "a merge into a contact that is not stored",
            [saved(lee(114))],
            [merged(114, 115)],
            [("contact_merged", json!({ "contact": nameless(115), "merged": { "id": uuid(114) } }))],
        ),
        row(
            "POST of a client with a lead",
            [saved(addressed(116))],
            [client(116)],
            [updated(address(116), json!(["client_id"]))],
        ),
        row(
            "a merge that brings a client",
            [saved(lee(117))],
            [merged(116, 117)],
            [("contact_merged", json!({ "contact": named(117), "merged": { "id": uuid(116) } }))],
        ),
    ]
}
