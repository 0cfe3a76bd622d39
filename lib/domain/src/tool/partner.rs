//! Tools for any key, and for partner keys.

use serde_json::json;

use super::definition::{ArgumentPlace, Effect, Repeat, TOOL_DAILY_LOGS, TOOL_PAGE, Tool};
use super::schema::{formed, text, text_of};
use crate::check_in::CheckInList;
use crate::client::{ClientDetail, ClientList, ClientProfile, CreateClientResult, MAX_CLIENT_EMAIL_CHARS};
use crate::client_draft::{ClientDraft, ClientPatch};
use crate::compliance::{Compliance, WINDOW_DAYS};
use crate::daily_log::DailyLogDates;
use crate::external_id::MAX_EXTERNAL_ID_CHARS;
use crate::own_key::OwnKey;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::reads(
            "whoami",
            "This key and its workspace",
            "/v1/key",
            "The workspace, its time zone and today's date there, and what this key may do.",
        )
        .answers::<OwnKey>(),
        Tool::reads(
            "find_clients",
            "Find clients",
            "/v1/clients",
            "Clients, newest first. `name` finds by a part of the name. A page may be short: follow next_cursor.",
        )
        .query("name", text_of(crate::name_filter::MAX_NAME_FILTER_CHARS))
        .query("email", text_of(MAX_CLIENT_EMAIL_CHARS))
        .query("external_id", text_of(MAX_EXTERNAL_ID_CHARS))
        .query("active", json!({ "type": "boolean" }))
        .says("active", "true: active clients only")
        .query("updated_since", formed("date-time"))
        .page()
        .answers::<ClientList>(),
        Tool::reads("get_client", "Read a client", "/v1/clients/{clientId}", "One client.")
            .id("client_id")
            .answers::<ClientDetail>(),
        Tool::new(
            "create_client",
            "Add a client",
            Effect::Creates,
            ("POST", "/v1/clients"),
            "Adds a client, takes a seat of the plan and mails the person a welcome.",
        )
        .body(ClientDraft::schema(), &["email", "full_name", "phone", "goals", "external_id"])
        .constant("send_welcome", ArgumentPlace::Body, true)
        .repeat(Repeat::ArgumentsKey)
        .answers::<CreateClientResult>(),
        Tool::new(
            "update_client",
            "Switch a client on or off",
            Effect::Changes,
            ("PATCH", "/v1/clients/{clientId}"),
            "Puts a client on the active roster or takes the client off it. external_id: null removes it.",
        )
        .id("client_id")
        .body(ClientPatch::schema(), &["is_active", "external_id"])
        .nullable("external_id")
        .answers::<ClientProfile>(),
        Tool::reads(
            "get_client_compliance",
            "Read a client's compliance",
            "/v1/clients/{clientId}/compliance",
            "Logged and expected doses of the last days, as a percentage.",
        )
        .id("client_id")
        .size("window_days", WINDOW_DAYS)
        .answers::<Compliance>(),
        Tool::reads(
            "list_client_check_ins",
            "List a client's check-ins",
            "/v1/clients/{clientId}/check-ins",
            "The latest check-ins with their scores, newest first.",
        )
        .id("client_id")
        .size("limit", TOOL_PAGE)
        .answers::<CheckInList>(),
        Tool::reads(
            "list_client_daily_logs",
            "List the dates of a client's daily log",
            "/v1/clients/{clientId}/daily-logs",
            "The dates on which the client kept the daily log, newest first.",
        )
        .id("client_id")
        .query("from", formed("date"))
        .query("to", formed("date"))
        .size("limit", TOOL_DAILY_LOGS)
        .answers::<DailyLogDates>(),
    ]
}

/// The feed of events, which keys of both scopes may read.
pub(super) fn events() -> Tool {
    Tool::reads(
        "list_events",
        "List events",
        "/v1/events",
        "What happened lately, newest first: check-ins, phases, contacts, bookings. Text is written by other people.",
    )
    .query("types", text())
    .says("types", "Separated by commas, such as check_in_submitted,booking_created")
    .query("since", formed("date-time"))
    .page()
    .constant("order", ArgumentPlace::Query, "desc")
    .answers::<crate::event_feed::EventPage>()
}
