//! The property: a programme of facts leaves the same records by the route and by the bus.
//!
//! The raw items of the tables of records are compared, and for some programmes the answers of the API. Names of
//! workspaces are replaced, and times of storing, digests and versions of watches are masked. The comparison leaves out
//! what is sealed with another nonce each time (grades; their answers are compared), and the tables that hold no
//! records: keys, seen facts, and what waits to be sent.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::mode::Mode;
use futures::StreamExt;
use regex_lite::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::generator::{LONGEST, client, programme};
use crate::sandbox::{send, start, visitor};
use crate::world::{CRM_PERMISSIONS, Caller, Fact, World};

const PROGRAMMES: u64 = 200;
/// Every so many programmes are read through the API, too.
const READ_EVERY: usize = 20;
/// Tables of records.
const TABLES: [&str; 4] = ["workspaces", "clients", "records", "crm"];
/// Beginnings of the sort keys of items that the test's own requests write.
const OF_REQUESTS: [&str; 3] = ["SETTINGS", "AUDIT#", "SANDBOX#"];
/// The last pass over an erasure comes by then.
const ENDED_S: u64 = 1_200;
const AT_ONCE: usize = 8;

fn by_route(number: usize) -> String {
    format!("route-{number:03}")
}

fn by_bus(number: usize) -> String {
    format!("queue-{number:03}")
}

/// Replaces and masks what differs between two workspaces with the same records.
struct Mask {
    /// The beginning of the test, and an end that no time of storing reaches.
    window: [DateTime<Utc>; 2],
    time: Regex,
    number: Regex,
    digest: Regex,
}

impl Mask {
    fn new(began: DateTime<Utc>) -> Self {
        Self {
            window: [began, began + TimeDelta::days(400)],
            time: Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap(),
            number: Regex::new(r"\b\d{10,16}\b").unwrap(),
            digest: Regex::new(r"[0-9a-f]{32,}").unwrap(),
        }
    }

    /// Returns true for a number of seconds or milliseconds within the window.
    fn is_time(&self, text: &str) -> bool {
        let [from, to] = &self.window;
        text.trim_start_matches('0').parse().is_ok_and(|number: i64| {
            (from.timestamp()..=to.timestamp()).contains(&number)
                || (from.timestamp_millis()..=to.timestamp_millis()).contains(&number)
        })
    }

    fn text(&self, text: &str) -> String {
        let [from, to] = self.window.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
        let text = text.replace("queue-", "route-");
        let text = self.time.replace_all(&text, |found: &Captures<'_>| {
            let at = &found[0];
            if (from.as_str()..=to.as_str()).contains(&at) { "(now)".to_owned() } else { at.to_owned() }
        });
        let text = self.digest.replace_all(&text, "(digest)");
        let text = self.number.replace_all(&text, |found: &Captures<'_>| {
            if self.is_time(&found[0]) { "(now)".to_owned() } else { found[0].to_owned() }
        });
        text.into_owned()
    }

    /// A value with its members in order.
    fn value(&self, value: &Value) -> String {
        match value {
            Value::Object(members) => self.members(members),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}]", items.join(","))
            }
            Value::String(text) => self.text(text),
            Value::Number(number) => self.text(&number.to_string()),
            other => other.to_string(),
        }
    }

    fn members(&self, members: &Map<String, Value>) -> String {
        let mut shown: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in members {
            let text = match (name.as_str(), value) {
                // Each request has its own.
                ("request_id", _) => continue,
                ("B", _) => "(sealed)".to_owned(),
                ("SS" | "NS", Value::Array(items)) => {
                    let mut items: Vec<String> = items.iter().map(|item| self.value(item)).collect();
                    items.sort();
                    items.join("|")
                }
                (_, value) => self.value(value),
            };
            shown.insert(self.text(name), text);
        }
        let members: Vec<String> = shown.iter().map(|(name, text)| format!("{name}:{text}")).collect();
        format!("{{{}}}", members.join(","))
    }

    /// An item of a table.
    fn item(&self, table: &str, item: &Value) -> String {
        let mut item = item.clone();
        let sk = item["sk"]["S"].as_str().unwrap_or_default().to_owned();
        if sk.ends_with("WATCH") {
            // A hash of the id spreads watches over shards. A sweep may evaluate a watch once more.
            item.as_object_mut().unwrap().retain(|name, _| !["sweep_shard", "version"].contains(&name.as_str()));
        }
        if let Some((kind, _)) = sk.split_once('#').filter(|(kind, _)| *kind == "ERASURE") {
            item["sk"]["S"] = json!(kind);
        }
        format!("{table} {}", self.value(&item))
    }
}

/// The masked items of each workspace, by its name.
async fn items(world: &World, mask: &Mask) -> BTreeMap<String, Vec<String>> {
    let name = Regex::new("(route|queue)-[0-9]{3}").unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in TABLES {
        for item in world.table(table).await {
            let sk = item["sk"]["S"].as_str().unwrap_or_default();
            if OF_REQUESTS.iter().any(|beginning| sk.starts_with(beginning)) {
                continue;
            }
            let text = item.to_string();
            let owner = name.find(&text).unwrap_or_else(|| panic!("an item of nobody: {text}")).as_str().to_owned();
            found.entry(owner).or_default().push(mask.item(table, &item));
        }
    }
    found.values_mut().for_each(|items| items.sort());
    found
}

/// The masked answers of all reads of a workspace's records.
async fn reads(world: &World, coach: &str, mask: &Mask) -> Vec<String> {
    let ada = visitor(world, coach);
    let (partner, crm) = (ada.partner_key().await, ada.crm_key_with(&CRM_PERMISSIONS).await);
    let mut paths: Vec<(&Caller, String)> = vec![(&partner, "/v1/clients?limit=200".to_owned())];
    for number in 0..2 {
        let path = format!("/v1/clients/{}", client(coach, number));
        let below = ["", "/check-ins", "/daily-logs", "/compliance?window_days=90"];
        paths.extend(below.map(|below| (&partner, format!("{path}{below}"))));
    }
    let lists = ["contacts", "opportunities", "calendars", "bookings", "workflows"];
    paths.extend(lists.map(|list| (&crm, format!("/v1/crm/{list}?limit=200"))));
    let mut shown = Vec::new();
    for (caller, path) in paths {
        let reply = caller.get(&path).await;
        shown.push(format!("{} {} {}", mask.text(&path), reply.status, mask.value(&reply.body)));
    }
    shown
}

/// The first lines that differ, with the facts that led there.
#[track_caller]
fn assert_same(of_route: &[String], of_bus: &[String], facts: &[Fact]) {
    if of_route == of_bus {
        return;
    }
    let only = |some: &[String], others: &[String]| {
        let only: Vec<String> = some.iter().filter(|line| !others.contains(line)).cloned().collect();
        only.join("\n  ")
    };
    let facts: Vec<String> = facts.iter().map(|fact| format!("{} {}", fact.detail_type, fact.detail)).collect();
    panic!(
        "by the route:\n  {}\nby the bus:\n  {}\nafter\n  {}",
        only(of_route, of_bus),
        only(of_bus, of_route),
        facts.join("\n  ")
    );
}

#[tokio::test]
async fn two_hundred_random_programmes_leave_the_same_records_by_the_route_and_by_the_bus() {
    let world = start(Mode::Test).await;
    let began = world.now().await;
    let (mask, base) = (Mask::new(began), began - TimeDelta::days(30));
    let programmes: Vec<[Vec<Fact>; 2]> = (0..PROGRAMMES)
        .map(|seed| {
            let number = usize::try_from(seed).unwrap();
            [by_route(number), by_bus(number)].map(|coach| programme(seed, &coach, base))
        })
        .collect();
    let numbers = 0..programmes.len();
    let coaches = numbers.clone().flat_map(|number| [by_route(number), by_bus(number)]);
    world.apply(coaches.map(|coach| world.coach(&coach).into_fact()).collect::<Vec<_>>()).await;
    // On the bus, the facts of a programme come in their order, beside those of the others.
    for step in 0..LONGEST {
        world.apply(programmes.iter().filter_map(|[_, facts]| facts.get(step).cloned()).collect::<Vec<_>>()).await;
    }
    let world = &world;
    let sent = programmes.iter().enumerate().map(|(number, [facts, _])| async move {
        let key = visitor(world, &by_route(number)).partner_key().await;
        for shown in send(&key, facts.clone()).await {
            assert_ne!(shown["result"], "refused", "{shown}");
        }
    });
    futures::stream::iter(sent).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    world.settle().await;
    world.advance_s(ENDED_S).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    let items = items(world, &mask).await;
    assert_eq!(items.len(), 2 * programmes.len());
    let of = |coach: String| &items[&coach];
    for (number, [facts, _]) in programmes.iter().enumerate() {
        assert_same(of(by_route(number)), of(by_bus(number)), facts);
    }
    for number in numbers.step_by(READ_EVERY) {
        let (of_route, of_bus) =
            (reads(world, &by_route(number), &mask).await, reads(world, &by_bus(number), &mask).await);
        assert_same(&of_route, &of_bus, &programmes[number][0]);
    }
    let kinds: BTreeSet<&str> =
        programmes.iter().flat_map(|[facts, _]| facts).map(|fact| fact.detail_type.as_str()).collect();
    assert_eq!(kinds.len(), 22, "{kinds:?}");
}
