//! `/v1/clients/{clientId}/compliance`, `check-ins` and `daily-logs`.

use domain::compliance::WINDOW_DAYS;
use domain::list::{CHECK_IN_PAGE, DAILY_LOG_PAGE};
use domain::time::DATE_RULE;
use serde_json::{Value, json};

use super::{Operation, Schemas, invalid, with_client_id};
use crate::document::examples::{check_ins, compliance, daily_logs};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![read_compliance(schemas), list_check_ins(schemas), list_daily_logs(schemas)]
}

fn read_compliance(schemas: &mut Schemas) -> Operation {
    let path = "/v1/clients/{clientId}/compliance";
    with_client_id(Operation::new("GET", path, "readCompliance", "Read a client's compliance"))
        .about(
            "The share of expected doses that the client logged, over a window of dates that ends today in the coach's \
             time zone. `compliance_pct` is null, not 0, if nothing was logged or nothing was expected.",
        )
        .size("window_days", "Dates in the window", WINDOW_DAYS)
        .answers(Answer::of(schemas, 200, "Compliance.", "compliance", &compliance()))
}

fn list_check_ins(schemas: &mut Schemas) -> Operation {
    with_client_id(Operation::new(
        "GET",
        "/v1/clients/{clientId}/check-ins",
        "listCheckIns",
        "List a client's check-ins",
    ))
    .about("When each check-in was submitted and reviewed. Answers and scores are not part of the API.")
    .size("limit", "Check-ins in the answer", CHECK_IN_PAGE)
    .answers(Answer::of(schemas, 200, "Check-ins, newest first.", "check_ins", &check_ins()))
}

fn list_daily_logs(schemas: &mut Schemas) -> Operation {
    let path = "/v1/clients/{clientId}/daily-logs";
    with_client_id(Operation::new("GET", path, "listDailyLogs", "List the dates of a client's daily logs"))
        .about("Only dates. If `from` is after `to`, the list is empty.")
        .size("limit", "Dates in the answer", DAILY_LOG_PAGE)
        .in_query("from", date(), "Earliest date.")
        .in_query("to", date(), "Latest date.")
        .answers(Answer::of(schemas, 200, "Dates, newest first.", "dates", &daily_logs()))
        .refuses([invalid("from", DATE_RULE)])
}

fn date() -> Value {
    json!({ "type": "string", "format": "date" })
}
