//! Operations of a sandbox, for keys of either scope.

use domain::id_kind::IdKind;
use domain::list::MAIL_PAGE;
use domain::sandbox::{
    EVENTS_PER_DAY, EvaluationResult, FACTS_PER_DAY, FactBatch, FactResults, MAX_CLIENT_CAP, MAX_FACTS, SandboxEvent,
    SentEvent, StoredMailList, WipeJob, WipeStarted, WorkspacePatch,
};
use domain::workspace::WorkspaceView;
use edge::Problem;
use serde_json::{Value, json};

use crate::document::answer::Answer;
use crate::document::examples::{CLIENT_ID, CONTACT_ID};
use crate::document::operation::{Operation, WIPE, invalid};

/// The rest of a day in UTC, in seconds.
const REST_OF_DAY_S: u32 = 43_200;

pub(super) fn operations() -> Vec<Operation> {
    let quota = |things, limit| Problem::TestQuota { things, limit, retry_after_s: REST_OF_DAY_S };
    let stored = json!({ "data": [{}] });
    let refused = json!({
        "data": [{}, {
            "id": "fact-2", "result": "refused",
            "reason": "client_id client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f7f has not been seen",
        }],
    });
    let number = format!("must be an array of 1 to {MAX_FACTS} facts");
    let cap = format!("must be an integer from 0 to {MAX_CLIENT_CAP}, or null for no limit");
    vec![
        Operation::new("POST", "/v1/test/facts", "sendFacts")
            .body(FactBatch::schema())
            .example("client", json!({ "facts": [client()] }))
            .example("check_in", json!({ "facts": [check_in()] }))
            .answers(Answer::of::<FactResults>(200).example("stored", stored).example("refused", refused))
            .refuses([invalid("facts", number), quota("facts", FACTS_PER_DAY)]),
        Operation::new("PATCH", "/v1/test/workspace", "updateTestWorkspace")
            .body(WorkspacePatch::schema())
            .example("cap", json!({ "client_cap": MAX_CLIENT_CAP }))
            .example("not_entitled", json!({ "entitlements": { "partner_api": false } }))
            .example("crm", json!({ "crm_configured": true, "time_zone": "America/New_York" }))
            .answers(Answer::of::<WorkspaceView>(200))
            .refuses([invalid("client_cap", cap)]),
        Operation::new("POST", "/v1/test/evaluate", "evaluateClients").answers(Answer::of::<EvaluationResult>(200)),
        Operation::new("POST", "/v1/test/events", "sendTestEvent")
            .body(SandboxEvent::schema())
            .example("nobody", json!({ "type": "compliance_drop" }))
            .example("client", json!({ "type": "new_client", "client_id": CLIENT_ID }))
            .example("contact", json!({ "type": "booking_created", "contact_id": CONTACT_ID }))
            .answers(Answer::of::<SentEvent>(202))
            .refuses([
                invalid("contact_id", "cannot be given together with client_id"),
                Problem::not_found(IdKind::Client),
                Problem::not_found(IdKind::Contact),
                quota("events", EVENTS_PER_DAY),
            ]),
        Operation::new("GET", "/v1/test/mail", "listMails")
            .size("limit", "Mails in the answer", MAIL_PAGE)
            .cursor()
            .answers(Answer::of::<StoredMailList>(200)),
        Operation::new("DELETE", "/v1/test/data", WIPE).answers(Answer::of::<WipeStarted>(202)),
        Operation::new("GET", "/v1/test/data", "readWipe")
            .answers(Answer::of::<WipeJob>(200))
            .refuses([Problem::NotFound("job")]),
    ]
}

/// The fact of a client of long ago.
fn client() -> Value {
    json!({
        "type": "client.saved",
        "detail": {
            "client_id": "client-ada", "email": "ada@example.com", "full_name": "Ada Lovelace", "phone": null,
            "goals": null, "health_notes": null, "height_in": null, "weight_lbs": null, "is_active": true,
            "current_phase": "Foundation", "phase_started_on": "2026-01-05", "programme_id": "programme_test",
            "created_at": "2026-01-05T08:00:00Z", "origin": "import", "occurred_at": "2026-01-05T08:00:00Z",
        },
    })
}

/// The fact of a check-in of long ago.
fn check_in() -> Value {
    json!({
        "type": "check_in.submitted",
        "detail": {
            "client_id": "client-ada", "check_in_id": "check-in-1", "submitted_at": "2026-01-12T07:30:00Z",
            "scores": { "sleep": 3 }, "grades": {}, "occurred_at": "2026-01-12T07:30:00Z",
        },
    })
}
