//! Changes of contacts.

use serde_json::{Value, json};

use super::Step::{Client, Echo, Patch, Post};
use super::{AT, EARLY, LATE, NEW, NONE, Row, lee, merged, named, nameless, row, saved, with};
use crate::crm::contacts::merges::merged as merge;
use crate::world::uuid;

pub(super) fn rows() -> Vec<Row> {
    let lead = |id: u64| format!("/v1/crm/contacts/{}", uuid(id));
    let created = |contact: Value, source: &str| {
        ("contact_created", json!({ "contact": contact, "created_at": AT, "source": source }))
    };
    let updated = |contact: Value, changed: Value| {
        ("contact_updated", json!({ "contact": contact, "changed": changed, "updated_at": AT }))
    };
    let merges =
        |into: Value, from: u64| ("contact_merged", json!({ "contact": into, "merged": { "id": uuid(from) } }));
    let early = |id: u64| lee(id).with("occurred_at", EARLY);
    let late = |id: u64| lee(id).with("occurred_at", LATE);
    let renamed = |id: u64| with(named(id), json!({ "name": "L" }));
    let emailed = |id: u64| with(renamed(id), json!({ "email": "l@example.com" }));
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
            [updated(renamed(101), json!(["name", "do_not_contact"]))],
        ),
        row("PATCH of the same name", [saved(lee(102))], [Patch(lead(102), json!({ "name": "Lee Lead" }))], NONE),
        row(
            "PATCH, its repetition and its echo",
            [saved(lee(103))],
            [Patch(lead(103), json!({ "name": "L" })), Patch(lead(103), json!({ "name": "L" })), Echo],
            [updated(renamed(103), json!(["name"]))],
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
        row("a merge", [saved(lee(110)), saved(lee(111))], [merged(110, 111)], [merges(named(111), 110)]),
        row("the same merge", [], [merged(110, 111)], NONE),
        row("a merge into another contact", [saved(lee(112))], [merged(110, 112)], [merges(named(112), 110)]),
        row("a fact about a merged contact", [], [saved(lee(110).with("name", "Late"))], NONE),
        row("a merge into a merged contact", [saved(lee(113))], [merged(113, 110)], [merges(named(112), 113)]),
        row(
            "a merge into a contact that is not stored",
            [saved(lee(114))],
            [merged(114, 115)],
            [merges(nameless(115), 114)],
        ),
        row(
            "POST of a client with a lead",
            [saved(addressed(116))],
            [client(116)],
            [updated(address(116), json!(["client_id"]))],
        ),
        row("a merge that brings a client", [saved(lee(117))], [merged(116, 117)], [merges(named(117), 116)]),
        row(
            "PATCH of a client's lead",
            [],
            [Patch(lead(117), json!({ "name": "L" }))],
            [updated(renamed(117), json!(["name"]))],
        ),
        // Changes of which only a part is seen.
        row(
            "a fact of before a PATCH, with another name and address",
            [saved(early(401)), Patch(lead(401), json!({ "name": "L" }))],
            [saved(late(401).with("name", "Late").with("email", "l@example.com"))],
            [updated(emailed(401), json!(["email"]))],
        ),
        row(
            "a fact of before a PATCH, with another name",
            [saved(early(402)), Patch(lead(402), json!({ "name": "L" }))],
            [saved(late(402).with("name", "Late"))],
            NONE,
        ),
        row("a merge of a contact that is not stored", [], [merged(403, 1)], [merges(named(1), 403)]),
        row("a backfilled merge", [saved(lee(404))], [saved(merge(404, 1).with("backfill", true))], NONE),
        row("the same merge after the backfill", [], [merged(404, 1)], NONE),
        row(
            "a merge that is older",
            [saved(lee(406)), merged(406, 1)],
            [saved(merge(406, 407).with("occurred_at", EARLY))],
            NONE,
        ),
        row("a fact after its backfill", [saved(lee(408).with("backfill", true))], [saved(lee(408))], NONE),
        row(
            "a phone is taken away, and two flags set",
            [saved(lee(409).with("phone", "+1 415 555 0100").with("do_not_contact", false))],
            [saved(lee(409).with("do_not_contact", true).with("marketing", json!({ "email": true, "sms": true })))],
            [updated(named(409), json!(["phone", "do_not_contact", "marketing"]))],
        ),
    ]
}
