//! `/v1/clients/{clientId}/compliance`, `check-ins` and `daily-logs`.

use domain::check_in::CheckInList;
use domain::compliance::{Compliance, WINDOW_DAYS};
use domain::daily_log::DailyLogDates;
use domain::fields::Invalid;
use domain::list::{CHECK_IN_PAGE, DAILY_LOG_PAGE};
use domain::time::DATE_RULE;
use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, RECORDS, Schemas, of_client, size, size_rule};
use crate::document::examples::{check_ins, compliance, daily_logs, to_json};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![read_compliance(schemas), list_check_ins(schemas), list_daily_logs(schemas)]
}

fn record(path: &'static str, id: &'static str) -> Operation {
    of_client(Operation::new("GET", path, id)).tag(RECORDS).partner().refuses(Problem::NotFound("client"))
}

fn read_compliance(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "Compliance.", schemas.of::<Compliance>(), &[("compliance", to_json(&compliance()))]);
    record("/v1/clients/{clientId}/compliance", "readCompliance")
        .summary("Read a client's compliance")
        .about(
            "The share of expected doses that were logged, over a window of dates that ends today in the coach's time zone. \
             `compliance_pct` is null, not 0, where there is no signal: nothing was logged, or nothing was to be.",
        )
        .in_query("window_days", size(WINDOW_DAYS), size_rule("Dates in the window", WINDOW_DAYS))
        .answers(answer)
}

fn list_check_ins(schemas: &mut Schemas) -> Operation {
    let answer = Answer::json(
        200,
        "Check-ins, newest first.",
        schemas.of::<CheckInList>(),
        &[("check_ins", to_json(&check_ins()))],
    );
    record("/v1/clients/{clientId}/check-ins", "listCheckIns")
        .summary("List a client's check-ins")
        .about("When they came and whether they were reviewed. Answers and scores are not part of the API.")
        .in_query("limit", size(CHECK_IN_PAGE), size_rule("Check-ins in the answer", CHECK_IN_PAGE))
        .answers(answer)
}

fn list_daily_logs(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "Dates, newest first.", schemas.of::<DailyLogDates>(), &[("dates", to_json(&daily_logs()))]);
    record("/v1/clients/{clientId}/daily-logs", "listDailyLogs")
        .summary("List the dates of a client's daily logs")
        .about("Dates alone. `from` after `to` is an empty list.")
        .in_query("limit", size(DAILY_LOG_PAGE), size_rule("Dates in the answer", DAILY_LOG_PAGE))
        .in_query("from", date(), "Earliest date.")
        .in_query("to", date(), "Latest date.")
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("from", DATE_RULE)))
}

fn date() -> Value {
    json!({ "type": "string", "format": "date" })
}
