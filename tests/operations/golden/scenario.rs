//! The scenario behind the golden file: coaches with records and callers, and the walk of `requests.txt` over them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::crm::bookings::event;
use crate::operations::golden::normal::{Normaliser, is_compared};
use crate::world::sweep::{check_in, daily_log, dose, schedule};
use crate::world::{Call, Caller, Fact, Receiver, Reply, World, fact, uuid};

/// Begins the line of a request, above its answer.
pub(super) const MARK: &str = "=== ";

const REQUESTS: &str = include_str!("requests.txt");
/// A Monday at noon, after every date on which the tests run, so that all dates are the same in each run.
const NOON: &str = "2040-01-02T12:00:00Z";

/// A line of the walk.
pub(super) enum Line {
    Settle,
    Advance(u64),
    Request(Request),
}

/// A request, with variables in its path and body.
pub(super) struct Request {
    /// The line without the variables that it sets.
    pub(super) text: &'static str,
    caller: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Option<&'static str>,
    /// Variables, each with the pointer to its value in the answer.
    sets: Vec<(&'static str, &'static str)>,
}

/// The walk's lines with their numbers, comments and blank lines left out.
pub(super) fn lines() -> impl Iterator<Item = (usize, Line)> {
    let lines = REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.enumerate().map(|(i, line)| {
        let parsed = match line.strip_prefix('@') {
            Some("settle") => Line::Settle,
            Some(action) => Line::Advance(action.strip_prefix("advance ").unwrap().parse().unwrap()),
            None => Line::Request(Request::parse(line)),
        };
        (i + 1, parsed)
    })
}

impl Request {
    fn parse(line: &'static str) -> Self {
        let (text, sets) = line.split_once(" -> ").unwrap_or((line, ""));
        let sets = sets.split_whitespace().map(|set| set.split_once('=').unwrap()).collect();
        let mut parts = text.splitn(4, ' ');
        let [caller, method, path] = [(); 3].map(|()| parts.next().unwrap());
        let mut rest = parts.next().unwrap_or_default();
        let mut headers = Vec::new();
        while let Some(header) = rest.strip_prefix('[') {
            let (header, after) = header.split_once(']').unwrap();
            headers.push(header.split_once(": ").unwrap());
            rest = after.trim_start();
        }
        let raw = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let body = Some(raw.unwrap_or(rest)).filter(|body| !body.is_empty());
        Self { text, caller, method, path, headers, body, sets }
    }
}

/// A stack with everything that the walk needs.
pub(super) struct Scenario {
    world: World,
    receiver: Receiver,
    callers: BTreeMap<&'static str, Caller>,
}

impl Scenario {
    pub(super) async fn new() -> Self {
        let world = World::start().await;
        let noon: DateTime<Utc> = NOON.parse().unwrap();
        world.down_until(noon).await;
        let ada = world.coach("ada").await;
        world.coach("bob").await;
        let unentitled = world.coach("cyd").await;
        let full = world.coach("dan").client_cap(0).await;
        let gymless = world.coach("eve").await;
        for records in [people(), records(noon)] {
            world.apply(records).await;
        }
        let (nobody, all) = (world.anonymous(), ada.crm_key().await);
        let callers = [
            ("partner", ada.partner_key().await),
            ("settings", ada.settings().await),
            ("deals", ada.crm_key_with(&["opportunities.read"]).await),
            ("reader", ada.crm_key_with(&["contacts.read", "opportunities.read"]).await),
            ("full", full.partner_key().await),
            ("gymless", gymless.partner_key().await),
            ("gymless-crm", gymless.crm_key().await),
            ("crmless", unentitled.crm_key().await),
            ("unentitled", unentitled.partner_key().await),
            ("unknown-coach", world.settings_of("fay").await),
            ("stranger", nobody.with_bearer("svc_live_nonsense")),
            ("crm", all),
            ("nobody", nobody),
        ];
        // Entitlements end after the keys were made.
        let nothing = json!({ "partner_api": false, "pro_crm": false, "gym": false });
        let no_gym = json!({ "partner_api": true, "pro_crm": true, "gym": false });
        let ended = world.coach("cyd").with("entitlements", nothing).into_fact();
        let gymless = world.coach("eve").with("entitlements", no_gym).with("crm", Value::Null).into_fact();
        world.apply([ended, gymless]).await;
        let receiver = Receiver::start().await;
        Self { world, receiver, callers: callers.into() }
    }

    /// Sends all requests. Returns the normalised answers.
    pub(super) async fn walk(&self) -> String {
        let mut normaliser = Normaliser::new();
        let mut variables = BTreeMap::from([("receiver".to_owned(), self.receiver.url())]);
        let mut text = String::from("Answers to golden/requests.txt. See the header of golden.rs.\n");
        for (number, line) in lines() {
            match line {
                Line::Settle => self.world.settle().await,
                Line::Advance(seconds) => self.world.advance_s(seconds).await,
                Line::Request(request) => {
                    let path = filled(request.path, &variables);
                    let reply = self.call(&request, &path, &variables).await;
                    for (name, pointer) in &request.sets {
                        let value = reply.body.pointer(pointer).and_then(Value::as_str);
                        let value = value.unwrap_or_else(|| panic!("{}: no {pointer} in {}", request.text, reply.text));
                        // A URL of the service is called by its path.
                        let path = value.split_once("/login/").map(|(_, token)| format!("/login/{token}"));
                        variables.insert((*name).to_owned(), path.unwrap_or(value.to_owned()));
                    }
                    text += &format!("\n{MARK}{number} {}\n{}\n", request.text, reply.status);
                    text += &normaliser.normalise(&path, &shown(&path, &reply));
                }
            }
        }
        text
    }

    async fn call(&self, request: &Request, path: &str, variables: &BTreeMap<String, String>) -> Reply {
        let mut call: Call = self.callers[request.caller].call(request.method, path);
        if let Some(body) = request.body {
            call = call.body(filled(body, variables)).header("content-type", "application/json");
        }
        for (name, value) in &request.headers {
            call = call.header(if *name == "key" { "idempotency-key" } else { name }, value);
        }
        call.await
    }
}

/// The headers and body of an answer. Documents, which change with every edit, are left out.
fn shown(path: &str, reply: &Reply) -> String {
    let is_document = ["/openapi.json", "/docs", "/portal"].iter().any(|start| path.starts_with(start));
    let mut headers: Vec<String> = reply
        .headers
        .iter()
        .filter(|(name, _)| is_compared(name.as_str()))
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
        .collect();
    headers.sort();
    let body = if is_document && reply.status == 200 { "(a document)" } else { &reply.text };
    format!("{}\n{body}\n", headers.concat())
}

/// A text with the values of its variables.
fn filled(text: &str, variables: &BTreeMap<String, String>) -> String {
    // Longer names first, so that no name is the beginning of another.
    variables.iter().rev().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
}

/// The records of all coaches that other records name.
fn people() -> Vec<Fact> {
    vec![
        Fact::client("ada", "nia").with("phone", "+14155550100").with("goals", "Sleep").with("height_in", 64),
        Fact::client("ada", "noel").with("email", Value::Null).with("created_at", "2026-02-03T04:05:06.789Z"),
        Fact::client("bob", "bobs"),
        Fact::client("eve", "cleo"),
        Fact::pipeline("ada"),
        Fact::pipeline("bob"),
        Fact::contact("ada", &uuid(1)).with("phone", "+14155550101"),
        Fact::contact("ada", &uuid(2)).with("name", "Lee Lead").with("email", "lee@example.com"),
        Fact::contact("ada", &uuid(3)).with("name", "Double"),
        Fact::contact("bob", &uuid(201)),
        Fact::calendar("ada", &uuid(10)).with("horizon_days", 10),
        Fact::calendar("bob", &uuid(210)),
    ]
}

/// The application's other records of all coaches.
fn records(noon: DateTime<Utc>) -> Vec<Fact> {
    let date = |day: u32| noon.date_naive() - chrono::Days::new(day.into());
    let at = |hour: u32| noon.date_naive().and_hms_opt(hour, 0, 0).unwrap().and_utc();
    let merged = json!({ "coach_id": "ada", "contact_id": uuid(3), "merged_into": uuid(1) });
    // Open on two mornings only, so that its answer is short.
    let paid = Fact::calendar("ada", &uuid(11))
        .with("name", "Paid calls")
        .with("price_cents", 5_000)
        .with(
            "weekly",
            json!({ "mon": [], "tue": [["09:00", "12:00"]], "wed": [], "thu": [], "fri": [], "sat": [], "sun": [] }),
        )
        .with("horizon_days", 10);
    let reviewed = json!({ "client_id": "nia", "check_in_id": "check-1", "reviewed_at": "2040-01-02T10:30:00.000Z" });
    vec![
        schedule("nia", 2),
        dose("nia", date(0)),
        dose("nia", date(1)),
        daily_log("nia", date(0)),
        daily_log("nia", date(1)),
        check_in("nia", "check-2", at(9)),
        check_in("nia", "check-1", at(8)),
        fact("check_in.reviewed", reviewed),
        fact("contact.merged", merged),
        Fact::opportunity("ada", &uuid(4), &uuid(1)),
        Fact::opportunity("ada", &uuid(5), &uuid(2)).with("stage", "lost").with("lost_reason", "Too far away"),
        paid,
        Fact::workflow("ada", &uuid(6)),
        event("ada", &uuid(7), Some(10), at(15), 60).with("lead_id", uuid(1)),
        event("ada", &uuid(8), None, at(17), 60),
        Fact::opportunity("bob", &uuid(202), &uuid(201)),
        event("bob", &uuid(203), Some(210), at(15), 60).with("lead_id", uuid(201)),
    ]
}
