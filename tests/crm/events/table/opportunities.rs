//! Changes of opportunities.

use serde_json::{Value, json};

use super::Step::{Echo, Patch, Post};
use super::{AT, EARLY, LATE, NEW, NONE, Row, lee, merged, named, nameless, row, saved, with};
use crate::world::{Fact, PIPELINE, uuid};

pub(super) fn rows() -> Vec<Row> {
    let at = |id: u64| format!("/v1/crm/opportunities/{}", uuid(id));
    let deal = |id: u64, contact: u64| Fact::opportunity("ada", &uuid(id), &uuid(contact));
    let shown = |id: &str, name: &str, value: u64, stage: &str, status: &str| {
        json!({
            "id": id, "name": name, "value_cents": value, "pipeline_id": PIPELINE, "stage": stage, "status": status,
        })
    };
    let package = |id: u64| shown(&uuid(id), "Package", 25_000, "new", "open");
    let created = |contact: Value, opportunity: Value| {
        ("opportunity_created", json!({ "contact": contact, "opportunity": opportunity, "created_at": AT }))
    };
    let updated = |contact: Value, opportunity: Value, changed: Value| {
        let data = json!({ "contact": contact, "opportunity": opportunity, "changed": changed, "updated_at": AT });
        ("opportunity_updated", data)
    };
    let moved = |contact: Value, opportunity: Value, (stage, status): (&str, &str), changed: Value| {
        let data = json!({
            "contact": contact, "opportunity": opportunity, "from_pipeline_id": PIPELINE, "from_stage": stage,
            "from_status": status, "changed": changed, "updated_at": AT,
        });
        ("opportunity_stage_changed", data)
    };
    let from_won = |(of, data): (&'static str, Value)| (of, with(data, json!({ "from_pipeline_id": "pipeline-won" })));
    let won = |id: u64| with(package(id), json!({ "pipeline_id": "pipeline-won", "status": "won" }));
    let pipeline = Fact::pipeline("ada").with("pipeline_id", "pipeline-won");
    let pipeline = pipeline.with("stages", json!([{ "id": "new", "name": "Done", "kind": "won" }]));
    let (one, open) = (named(1), ("new", "open"));
    let lost = |id: u64| deal(id, 1).with("stage", "lost").with("lost_reason", "Price");
    vec![
        row(
            "POST creates, and its echo",
            [],
            [Post("/v1/crm/opportunities", json!({ "contactId": uuid(1) })), Echo],
            [created(one.clone(), shown(NEW, "Lee Lead", 0, "new", "open"))],
        ),
        row(
            "PATCH of name and value, repeated",
            [saved(deal(201, 1))],
            [
                Patch(at(201), json!({ "name": "P", "valueCents": 5 })),
                Patch(at(201), json!({ "name": "P", "valueCents": 5 })),
                Echo,
            ],
            [updated(one.clone(), shown(&uuid(201), "P", 5, "new", "open"), json!(["name", "value_cents"]))],
        ),
        row(
            "PATCH of the stage, and its echo",
            [saved(deal(202, 1))],
            [Patch(at(202), json!({ "stage": "warm" })), Echo],
            [moved(one.clone(), shown(&uuid(202), "Package", 25_000, "warm", "open"), open, json!([]))],
        ),
        row(
            "PATCH of stage, reason and value",
            [saved(deal(203, 1))],
            [Patch(at(203), json!({ "stage": "lost", "lostReason": "Price", "valueCents": 7 }))],
            [moved(one.clone(), shown(&uuid(203), "Package", 7, "lost", "lost"), open, json!(["value_cents"]))],
        ),
        row("PATCH of the reason", [], [Patch(at(203), json!({ "lostReason": "Time" }))], NONE),
        row("PATCH of the same stage", [saved(deal(204, 1))], [Patch(at(204), json!({ "stage": "new" }))], NONE),
        row("a fact creates", [], [saved(deal(205, 1))], [created(one.clone(), package(205))]),
        row("a fact repeats", [], [saved(deal(205, 1))], NONE),
        row(
            "a fact with another pipeline",
            [],
            [saved(deal(205, 1).with("pipeline_id", "pipeline-2"))],
            [moved(one.clone(), with(package(205), json!({ "pipeline_id": "pipeline-2" })), open, json!([]))],
        ),
        row(
            "a fact with another contact",
            [saved(deal(206, 1)), saved(lee(299).with("name", "Bo"))],
            [saved(deal(206, 299))],
            [updated(with(named(299), json!({ "name": "Bo" })), package(206), json!(["contact_id"]))],
        ),
        row(
            "a fact changes everything",
            [saved(deal(207, 299))],
            [saved(deal(207, 1).with("name", "P").with("value_cents", 1).with("stage", "won"))],
            [moved(
                one.clone(),
                shown(&uuid(207), "P", 1, "won", "won"),
                open,
                json!(["name", "value_cents", "contact_id"]),
            )],
        ),
        row("a fact with another reason", [saved(lost(208))], [saved(lost(208).with("lost_reason", "Time"))], NONE),
        row(
            "an older fact",
            [saved(deal(209, 1))],
            [saved(deal(209, 1).with("stage", "won").with("occurred_at", "2026-01-01T00:00:00Z"))],
            NONE,
        ),
        row("a backfill", [], [saved(deal(210, 1).with("backfill", true))], NONE),
        row(
            "a fact about a contact that is not stored",
            [],
            [saved(deal(211, 290))],
            [created(nameless(290), package(211))],
        ),
        row(
            "a fact about a merged contact's opportunity",
            [saved(lee(291)), saved(deal(212, 291)), merged(291, 1)],
            [saved(deal(212, 291).with("value_cents", 3))],
            [updated(one.clone(), with(package(212), json!({ "value_cents": 3 })), json!(["value_cents"]))],
        ),
        row(
            "facts that name the surviving contact, and again the merged one",
            [saved(lee(292)), saved(deal(214, 292)), merged(292, 1)],
            [saved(deal(214, 1)), saved(deal(214, 292))],
            NONE,
        ),
        row(
            "a fact that names the surviving contact, with another value",
            [saved(lee(293)), saved(deal(215, 293)), merged(293, 1)],
            [saved(deal(215, 1).with("value_cents", 3))],
            [updated(one.clone(), with(package(215), json!({ "value_cents": 3 })), json!(["value_cents"]))],
        ),
        row(
            "a fact that names the merged contact again, with another stage",
            [],
            [saved(deal(215, 293).with("value_cents", 3).with("stage", "warm"))],
            [moved(one, with(package(215), json!({ "value_cents": 3, "stage": "warm" })), open, json!([]))],
        ),
        // Changes of which only a part is seen.
        row(
            "a fact of before a PATCH, in another stage",
            [saved(deal(421, 1).with("occurred_at", EARLY)), Patch(at(421), json!({ "valueCents": 5 }))],
            [saved(deal(421, 1).with("occurred_at", LATE).with("value_cents", 9).with("stage", "warm"))],
            [moved(named(1), shown(&uuid(421), "Package", 5, "warm", "open"), open, json!([]))],
        ),
        row(
            "a stage with the same id that has another kind in another pipeline",
            [saved(deal(422, 1)), saved(pipeline)],
            [saved(deal(422, 1).with("pipeline_id", "pipeline-won"))],
            [moved(named(1), won(422), open, json!([]))],
        ),
        row(
            "a change within that pipeline",
            [],
            [saved(deal(422, 1).with("pipeline_id", "pipeline-won").with("name", "P"))],
            [updated(named(1), with(won(422), json!({ "name": "P" })), json!(["name"]))],
        ),
        row(
            "back, with another name",
            [],
            [saved(deal(422, 1))],
            [from_won(moved(named(1), package(422), ("new", "won"), json!(["name"])))],
        ),
        row(
            "PATCH of a merged contact's opportunity",
            [saved(lee(430)), saved(deal(423, 430)), merged(430, 1)],
            [Patch(at(423), json!({ "stage": "warm" }))],
            [moved(named(1), shown(&uuid(423), "Package", 25_000, "warm", "open"), open, json!([]))],
        ),
        row(
            "another reason and another value",
            [saved(deal(424, 1).with("stage", "lost").with("lost_reason", "Price"))],
            [Patch(at(424), json!({ "lostReason": "Time", "valueCents": 1 }))],
            [updated(named(1), shown(&uuid(424), "Package", 1, "lost", "lost"), json!(["value_cents"]))],
        ),
        row(
            "POST with members",
            [],
            [Post("/v1/crm/opportunities", json!({ "contactId": uuid(1), "name": "P", "valueCents": 3 }))],
            [created(named(1), shown(NEW, "P", 3, "new", "open"))],
        ),
        row(
            "a pipeline's new stages",
            [saved(deal(213, 1))],
            [saved(Fact::pipeline("ada").with("stages", json!([])))],
            NONE,
        ),
    ]
}
