//! Operations for partner keys.

use domain::check_in::CheckInList;
use domain::client::{
    ClientDetail, ClientList, ClientProfile, CreateClientResult, MAX_CLIENT_EMAIL_CHARS, MAX_GOALS_CHARS,
};
use domain::client_draft::{ClientDraft, ClientPatch};
use domain::compliance::{Compliance, WINDOW_DAYS};
use domain::daily_log::DailyLogDates;
use domain::external_id::MAX_EXTERNAL_ID_CHARS;
use domain::list::{CHECK_IN_PAGE, CLIENT_PAGE, DAILY_LOG_PAGE};
use domain::login_link::LoginLink;
use domain::name_filter::InvalidNameFilter;
use domain::ping::PingResult;
use domain::time::{DATE_RULE, TIME_RULE};
use edge::Problem;
use serde_json::json;

use crate::document::answer::Answer;
use crate::document::operation::{Operation, invalid, name_filter};

pub(super) fn operations() -> Vec<Operation> {
    let date = || json!({ "type": "string", "format": "date" });
    let email = json!({ "type": "string", "maxLength": MAX_CLIENT_EMAIL_CHARS });
    let long_email = format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters");
    let external_id = json!({ "type": "string", "maxLength": MAX_EXTERNAL_ID_CHARS });
    let long_external_id = format!("must be at most {MAX_EXTERNAL_ID_CHARS} characters");
    vec![
        Operation::new("GET", "/v1/ping", "ping").answers(Answer::of::<PingResult>(200)),
        Operation::new("GET", "/v1/clients", "listClients")
            .size("limit", "Clients in the answer", CLIENT_PAGE)
            .in_query("active", json!({ "type": "string" }))
            .filter("name", name_filter())
            .in_query("email", email)
            .in_query("external_id", external_id)
            .filter("updated_since", json!({ "type": "string", "format": "date-time" }))
            .cursor()
            .answers(Answer::of::<ClientList>(200))
            .refuses([
                invalid("name", InvalidNameFilter::Length),
                invalid("email", long_email),
                invalid("external_id", long_external_id),
                invalid("updated_since", TIME_RULE),
            ]),
        create_client(),
        Operation::new("GET", "/v1/clients/{clientId}", "readClient").answers(Answer::of::<ClientDetail>(200)),
        Operation::new("PATCH", "/v1/clients/{clientId}", "updateClient")
            .body(ClientPatch::schema())
            .example("off", json!({ "is_active": false }))
            .example("on", json!({ "is_active": true }))
            .example("external_id", json!({ "is_active": true, "external_id": "patient-1815" }))
            .answers(Answer::of::<ClientProfile>(200))
            .refuses([invalid("is_active", "is required and must be a boolean"), Problem::ExternalIdTaken]),
        Operation::new("POST", "/v1/clients/{clientId}/login-link", "createLoginLink")
            .answers(Answer::of::<LoginLink>(200))
            .refuses([Problem::NoLoginEmail, Problem::ClientInactive]),
        Operation::new("GET", "/v1/clients/{clientId}/compliance", "readCompliance")
            .size("window_days", "Dates in the window", WINDOW_DAYS)
            .answers(Answer::of::<Compliance>(200)),
        Operation::new("GET", "/v1/clients/{clientId}/check-ins", "listCheckIns")
            .size("limit", "Check-ins in the answer", CHECK_IN_PAGE)
            .answers(Answer::of::<CheckInList>(200)),
        Operation::new("GET", "/v1/clients/{clientId}/daily-logs", "listDailyLogs")
            .size("limit", "Dates in the answer", DAILY_LOG_PAGE)
            .in_query("from", date())
            .in_query("to", date())
            .answers(Answer::of::<DailyLogDates>(200))
            .refuses([invalid("from", DATE_RULE)]),
    ]
}

fn create_client() -> Operation {
    let to_deliver_yourself = json!({
        "welcome_email_sent": false, "temp_password": "mRtd-7yKe-Wq3v-Hn5b",
        "intake_url": "https://coach.example/intake/q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA",
    });
    let answer = Answer::of::<CreateClientResult>(201)
        .example("mailed", json!({ "email": "grace@example.com", "full_name": "Grace Hopper" }))
        .example("to_deliver_yourself", to_deliver_yourself);
    let long_goals = format!("must be at most {MAX_GOALS_CHARS} characters; it has {}", MAX_GOALS_CHARS + 381);
    Operation::new("POST", "/v1/clients", "createClient")
        .body(ClientDraft::schema())
        .example(
            "mailed",
            json!({ "email": "grace@example.com", "full_name": "Grace Hopper", "phone": "+1 415 555 0132" }),
        )
        .example(
            "to_deliver_yourself",
            json!({
                "email": "ada@example.com", "full_name": "Ada Lovelace", "goals": "Sleep through the night.",
                "height_in": 65.5, "weight_lbs": 140, "external_id": "patient-1815", "send_welcome": false,
            }),
        )
        .answers(answer)
        .refuses([
            invalid("goals", long_goals),
            Problem::ExternalIdTaken,
            Problem::EmailTaken,
            Problem::PlanFull,
            Problem::TeamFull,
        ])
}
