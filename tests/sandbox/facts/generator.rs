//! Random programmes of facts about one workspace: of every type, repeated, late, deleted, merged and erased.
//!
//! No fact refers to a client that is not there yet, and no merges close a circle: on the bus such facts wait, and by
//! the route they are refused.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::crm::bookings::event;
use crate::crm::contacts::merges::pseudo_random;
use crate::feed::erasure::erased;
use crate::world::sweep::{
    automation_deleted, check_in, check_in_deleted, daily_log, daily_log_deleted, dose, dose_deleted, phase, schedule,
};
use crate::world::{Fact, fact, rendered, uuid};

/// Most facts of a programme.
pub(super) const LONGEST: usize = 14;
/// Facts of a programme besides those that create its clients, at least.
const FEWEST: usize = 4;
/// Clients of a workspace.
const CLIENTS: usize = 2;
/// Types of facts about a record, and about a client.
const KINDS: usize = 23;
/// Versions of a record that differ.
const VERSIONS: usize = 4;
/// Time over which the facts are spread.
const MINUTES: usize = 7 * 24 * 60;

/// A pseudo-random number below a limit.
type Random<'r> = &'r mut dyn FnMut(usize) -> usize;

/// A client's id.
pub(super) fn client(coach: &str, number: usize) -> String {
    format!("{coach}-c{number}")
}

/// The programme of a seed, about this coach's workspace. Its facts happened in the week after `base`.
pub(super) fn programme(seed: u64, coach: &str, base: DateTime<Utc>) -> Vec<Fact> {
    let mut random = pseudo_random(seed);
    let mut facts: Vec<Fact> = Vec::new();
    let length = CLIENTS + FEWEST + random(LONGEST - CLIENTS - FEWEST + 1);
    while facts.len() < length {
        let number = facts.len();
        let fact = match number {
            0..CLIENTS => Fact::client(coach, &client(coach, number)),
            _ if random(8) == 0 => {
                let repeated = facts[random(number)].clone();
                facts.push(repeated);
                continue;
            }
            _ => any(coach, base, &mut random),
        };
        // The clients come first, also by their times.
        let minutes = if number < CLIENTS { 0 } else { 1 + random(MINUTES) };
        let at = base + TimeDelta::minutes(i64::try_from(minutes).unwrap());
        let fact = fact.with("id", format!("{coach}-f{number}")).with("occurred_at", rendered(at));
        facts.push(if random(6) == 0 { fact.with("backfill", true) } else { fact });
    }
    facts
}

/// A fact of any type.
fn any(coach: &str, base: DateTime<Utc>, random: Random<'_>) -> Fact {
    let version = random(VERSIONS);
    let name = format!("v{version}");
    let client = client(coach, random(CLIENTS));
    let client = client.as_str();
    let at = base + TimeDelta::hours(i64::try_from(random(24 * 7)).unwrap());
    let date = (base + TimeDelta::days(i64::try_from(random(5)).unwrap())).date_naive();
    match random(KINDS) {
        0 => Fact::client(coach, client)
            .with("full_name", name)
            .with("is_active", version != 1)
            .with("programme_id", if version == 2 { json!("p") } else { Value::Null })
            .with("current_phase", if version == 2 { json!("Base") } else { Value::Null })
            .with("phase_started_on", if version == 2 { json!(date.to_string()) } else { Value::Null }),
        1 => Fact::client(coach, client).with("email", format!("{coach}-shared@clients.example")).with("phone", "1"),
        2 => check_in(client, &id(coach, "k", 3, random), at).with("grades", json!({ "sleep": version })),
        3 => {
            let detail =
                json!({ "client_id": client, "check_in_id": id(coach, "k", 3, random), "reviewed_at": rendered(at) });
            fact("check_in.reviewed", detail)
        }
        4 => check_in_deleted(client, &id(coach, "k", 3, random)),
        5 => daily_log(client, date),
        6 => daily_log_deleted(client, date),
        7 => schedule(client, 1 + u32::try_from(version).unwrap()),
        8 => dose(client, date),
        9 => dose_deleted(client, date),
        10 => phase(client, &name, at),
        11 => {
            let message = id(coach, "m", 3, random);
            fact("message.received", json!({ "client_id": client, "message_id": message, "received_at": rendered(at) }))
        }
        12 | 13 => {
            let email =
                if version == 0 { Value::Null } else { json!(format!("{coach}-{}@leads.example", version % 2)) };
            let contact = Fact::contact(coach, &contact(1 + random(4))).with("name", name).with("email", email);
            contact.with("phone", if version == 3 { json!("+1 415 555 2671") } else { Value::Null })
        }
        14 => {
            let from = 2 + random(3);
            let into = 1 + random(from - 1);
            let detail = json!({ "coach_id": coach, "contact_id": contact(from), "merged_into": contact(into) });
            fact("contact.merged", detail)
        }
        15 => {
            let stage = ["new", "warm", "won", "lost"][version];
            let opportunity = uuid(20 + u64::try_from(random(2)).unwrap());
            let saved = Fact::opportunity(coach, &opportunity, &contact(1 + random(4))).with("name", name);
            saved.with("stage", stage).with("lost_reason", if stage == "lost" { json!("price") } else { Value::Null })
        }
        16 => Fact::pipeline(coach).with("name", name),
        17 => Fact::workflow(coach, &uuid(30)).with("name", name),
        18 => Fact::calendar(coach, &uuid(10)).with("name", name),
        19 => {
            // Beyond the window of times that the comparison masks.
            let starts_at = base + TimeDelta::days(800) + TimeDelta::hours(i64::try_from(random(4)).unwrap());
            let calendar = (version != 0).then_some(10);
            let lead = if version == 1 { json!(contact(1 + random(4))) } else { Value::Null };
            let saved = event(coach, &uuid(40 + u64::try_from(random(2)).unwrap()), calendar, starts_at, 60);
            saved.with("lead_id", lead).with("status", if version == 3 { "cancelled" } else { "confirmed" })
        }
        20 => {
            let of = |name: &str| json!({ "name": name, "min_days": 1 + version, "min_compliance_pct": null });
            let detail = json!({ "programme_id": "p", "coach_id": coach, "phases": [of("Base"), of(&name)] });
            fact("programme.saved", detail)
        }
        21 => match version {
            0 => automation_deleted(coach, &id(coach, "a", 2, random)),
            _ => automation(coach, &id(coach, "a", 2, random), &name, version),
        },
        // The first client stays.
        _ => erased(&self::client(coach, CLIENTS - 1)),
    }
}

/// One of a few ids of a kind.
fn id(coach: &str, kind: &str, count: usize, random: Random<'_>) -> String {
    format!("{coach}-{kind}{}", random(count))
}

fn contact(number: usize) -> String {
    uuid(u64::try_from(number).unwrap())
}

/// An automation on an emitted event or on a computed one, whose step the application carries out.
fn automation(coach: &str, id: &str, name: &str, version: usize) -> Fact {
    let trigger = match version {
        1 => json!({ "event": "new_client" }),
        2 => json!({ "event": "daily_log_inactivity", "days": 1 }),
        _ => json!({ "event": "compliance_drop", "threshold": 60 }),
    };
    let detail = json!({
        "automation_id": id, "coach_id": coach, "name": name, "active": version != 2, "trigger": trigger,
        "steps": [{ "kind": "email" }],
    });
    fact("automation.saved", detail)
}
