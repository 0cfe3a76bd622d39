//! Filters and pages of the log, compared with a model over records that are put into the table.

use domain::request_log::{MAX_READ_RECORDS, REQUEST_RETENTION};
use serde_json::{Value, json};

use super::{key, requests, shown};
use crate::crm::contacts::merges::pseudo_random;
use crate::world::{Bill, Caller, World, encoded, list, made_up_cursor, rendered, time};

const STATUSES: [(u64, Option<&str>); 5] =
    [(200, None), (201, None), (400, Some("invalid_request")), (409, Some("email_taken")), (500, Some("internal"))];
const ROUTES: [(&str, &str); 3] =
    [("POST", "/v1/clients"), ("PATCH", "/v1/clients/{clientId}"), ("GET", "/v1/clients")];

/// An item of the table, made like a real one: `template` is an item that the service wrote.
fn item(template: &Value, at_ms: i64, id: &str, key: &str, kind: usize) -> Value {
    let ((status, code), (method, route)) = (STATUSES[kind % STATUSES.len()], ROUTES[kind % ROUTES.len()]);
    let at = chrono::DateTime::from_timestamp_millis(at_ms).unwrap();
    let mut item = template.clone();
    for (name, value) in [
        ("sk", json!({ "S": format!("{at_ms:013}#{id}") })),
        ("id", json!({ "S": id })),
        ("at", json!({ "S": rendered(at) })),
        ("key_id", json!({ "S": key })),
        ("status", json!({ "N": status.to_string() })),
        ("method", json!({ "S": method })),
        ("route", json!({ "S": route })),
    ] {
        item[name] = value;
    }
    match code {
        Some(code) => item["code"] = json!({ "S": code }),
        None => drop(item.as_object_mut().unwrap().remove("code")),
    }
    item
}

/// A world with a coach, a key, and an item that the service wrote, which is deleted.
async fn template(world: &World) -> (Caller, String, Value) {
    let ada = world.coach("ada").await;
    let (partner, id) = key(&ada, "partner").await;
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    let item = world.table("requests").await.remove(0);
    world.delete_item("requests", &json!({ "pk": item["pk"], "sk": item["sk"] })).await;
    (partner, id, item)
}

/// All pages of a list.
async fn pages(caller: &Caller, path: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("{path}&cursor={cursor}")).await.expect(200).body;
        pages.push(list(page["data"].clone()));
        assert!(pages.len() < 500, "{path}");
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn every_filter_shows_what_a_model_shows_page_by_page() {
    let world = World::start().await;
    let (partner, id, template) = template(&world).await;
    let settings = world.settings_of("ada").await;
    let mut random = pseudo_random(64);
    let other = format!("key_{}", "1".repeat(32));
    let begin = world.now().await.timestamp_millis() - 3_600_000;
    let items: Vec<Value> = (0..300)
        .map(|number| {
            // Several in one millisecond.
            let at = begin + random(100) as i64;
            let key = if random(2) == 0 { &id } else { &other };
            item(&template, at, &format!("r{number:03}"), key, random(15))
        })
        .collect();
    world.put_items("requests", &items).await;
    let all = requests_of(&settings).await;
    assert_eq!(all.len(), 300);
    let order: Vec<_> = all.iter().map(|record| (time(&record["at"]), record["id"].to_string())).collect();
    assert!(order.is_sorted_by(|one, next| one > next), "newest first; ids order those of one millisecond");
    for round in 0..120 {
        if round % 4 == 0 {
            // The limits of the key and of the settings are for a minute.
            world.advance_to_next_minute().await;
        }
        let mut filters = Vec::new();
        let mut wanted = all.clone();
        let time_at = |ms: i64| rendered(chrono::DateTime::from_timestamp_millis(begin + ms).unwrap());
        let (status, code) = STATUSES[random(STATUSES.len())];
        let (method, route) = ROUTES[random(ROUTES.len())];
        let class = status / 100;
        let (since, until) = (random(110) as i64 - 5, random(110) as i64 - 5);
        let mut narrow = |used: bool, name: &str, value: String, fits: &dyn Fn(&Value) -> bool| {
            if used {
                filters.push(format!("{name}={}", encoded(&value)));
                wanted.retain(|record| fits(record));
            }
        };
        let mut used = || random(3) == 0;
        narrow(used(), "status", status.to_string(), &|record| record["status"] == status);
        narrow(used(), "status", format!("{class}xx"), &|record| record["status"].as_u64().unwrap() / 100 == class);
        narrow(used(), "method", method.to_owned(), &|record| record["method"] == method);
        narrow(used(), "route", route.to_owned(), &|record| record["route"] == route);
        narrow(used() && code.is_some(), "code", code.unwrap_or_default().to_owned(), &|record| {
            record["code"] == json!(code)
        });
        narrow(used(), "since", time_at(since), &|record| time(&record["at"]) >= time(&json!(time_at(since))));
        narrow(used(), "until", time_at(until), &|record| time(&record["at"]) < time(&json!(time_at(until))));
        let is_own = round % 2 == 0;
        if is_own {
            wanted.retain(|record| record["key_id"] == *id);
        }
        if filters.iter().filter(|filter| filter.starts_with("status")).count() == 2 {
            // The first value of a parameter counts, which the model would have to know.
            continue;
        }
        let (caller, path) = if is_own { (&partner, "/v1/requests") } else { (&settings, "/settings/requests") };
        let limit = [3, 7, 50, 200][round / 2 % 4];
        let pages = pages(caller, &format!("{path}?limit={limit}&{}", filters.join("&"))).await;
        assert!(pages.iter().all(|page| page.len() <= limit));
        let read: Vec<Value> = pages.into_iter().flatten().collect();
        assert_eq!(read, wanted, "{filters:?}");
    }
}

async fn requests_of(settings: &Caller) -> Vec<Value> {
    pages(settings, "/settings/requests?limit=200").await.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_page_reads_a_limited_number_of_records_and_the_next_goes_on() {
    let world = World::start().await;
    let (partner, id, template) = template(&world).await;
    let settings = world.settings_of("ada").await;
    let begin = world.now().await.timestamp_millis() - 3_600_000;
    let many = 2 * MAX_READ_RECORDS + 500;
    let items: Vec<Value> =
        (0..many).map(|number| item(&template, begin + number as i64, &format!("r{number:05}"), &id, 0)).collect();
    world.put_items("requests", &items).await;
    for (caller, path) in [(&settings, "/settings/requests"), (&partner, "/v1/requests")] {
        let read = pages(caller, &format!("{path}?request_id=r00007")).await;
        assert_eq!(read.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1], "{path}");
        let bill = Bill::of(&world.calls(if path.starts_with("/v1") { "ping" } else { "settings" }).await[1]);
        // 2,000 records of a third of a kilobyte, read consistently, in four steps.
        assert!(bill.calls <= 7 && bill.read_units <= 400.0, "{bill:?}");
    }
    // A page without a filter reads what it shows.
    settings.get("/settings/requests?limit=50").await.expect(200);
    let bill = Bill::of(&world.calls("settings").await[0]);
    assert!(bill.calls == 3 && bill.read_units <= 10.0, "{bill:?}");
}

#[tokio::test]
async fn records_end_after_two_weeks_before_the_store_deletes_them() {
    let world = World::start().await;
    let (partner, id, template) = template(&world).await;
    let now = world.now().await;
    let ends = now - REQUEST_RETENTION;
    let items = [("gone", ends.timestamp_millis() - 60_000), ("kept", ends.timestamp_millis() + 600_000)];
    let items = items.map(|(name, at)| item(&template, at, name, &id, 0));
    world.put_items("requests", &items).await;
    let [record] = &shown(&partner, "/v1/requests").await[..] else { panic!("one is kept") };
    assert_eq!(record["id"], "kept");
    assert_eq!(shown(&partner, &format!("/v1/requests?since={}", rendered(ends - REQUEST_RETENTION))).await.len(), 1);
    // The store deletes them by an attribute.
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    let stored = world.table("requests").await.into_iter().find(|item| item["status"]["N"] == "404").unwrap();
    let expires_at: i64 = stored["expires_at"]["N"].as_str().unwrap().parse().unwrap();
    let kept_s = expires_at - time(&stored["at"]["S"]).timestamp();
    assert_eq!(kept_s, REQUEST_RETENTION.num_seconds());
}

#[tokio::test]
async fn a_malformed_filter_is_named_and_an_empty_one_is_none() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let (partner, id) = key(&ada, "partner").await;
    let (crm, _) = key(&ada, "crm").await;
    let refused = partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    for (caller, path) in [(&partner, "/v1/requests"), (&settings, "/settings/requests")] {
        for (name, bad) in [
            ("status", "600"),
            ("status", "2x"),
            ("code", "no_such_code"),
            ("method", "PUT"),
            ("route", "/v1/clients/c1"),
            ("request_id", "a b"),
            ("since", "yesterday"),
            ("until", "2026-11-20"),
            ("cursor", "x"),
            ("state", "409"),
        ] {
            caller.get(&format!("{path}?{name}={}", encoded(bad))).await.refused_for(name);
            if name != "state" {
                assert_eq!(shown(caller, &format!("{path}?{name}=")).await.len(), 1, "{name}");
            }
        }
        let [later, sooner] = [600, -600].map(|s| world.timestamp_in(s));
        let (later, sooner) = (later.await, sooner.await);
        assert!(shown(caller, &format!("{path}?since={later}&until={sooner}")).await.is_empty());
        assert!(shown(caller, &format!("{path}?since={sooner}&until={later}")).await.len() == 1);
        for limit in ["0", "-1", "ten"] {
            assert_eq!(shown(caller, &format!("{path}?limit={limit}")).await.len(), 1);
        }
    }
    settings.get("/settings/requests?key_id=key_1").await.refused_for("key_id");
    partner.get(&format!("/v1/requests?key_id={id}")).await.refused_for("key_id");
    settings.get("/settings/requests/summary?days=3").await.refused_for("days");
    for hours in ["23", "337", "x"] {
        settings.get(&format!("/settings/requests/summary?hours={hours}")).await.refused_for("hours");
    }
    // A cursor belongs to its list: to a coach, and to a key.
    partner.get("/v1/clients/nobody").await.refused(404, "not_found");
    let cursor = |page: &Value| page["next_cursor"].as_str().unwrap().to_owned();
    let own = cursor(&partner.get("/v1/requests?limit=1").await.expect(200).body);
    let coachs = cursor(&settings.get("/settings/requests?limit=1").await.expect(200).body);
    partner.get(&format!("/v1/requests?cursor={coachs}")).await.refused_for("cursor");
    crm.get(&format!("/v1/requests?cursor={own}")).await.refused_for("cursor");
    settings.get(&format!("/settings/requests?cursor={own}")).await.refused_for("cursor");
    settings.get(&format!("/settings/audit?cursor={coachs}")).await.refused_for("cursor");
    // A cursor goes with any filter, also with one that ends before it.
    let until = &requests(&settings, "").await[1]["at"];
    let filtered = format!("/v1/requests?cursor={own}&until={}", until.as_str().unwrap());
    assert!(shown(&partner, &filtered).await.is_empty());
    for position in ["", "1", "1790000000000#", "179000000000x#a"] {
        let made_up = made_up_cursor("ada", "requests", position);
        settings.get(&format!("/settings/requests?cursor={made_up}")).await.refused_for("cursor");
    }
    assert_eq!(requests(&settings, "").await.last().unwrap()["id"], json!(refused.header("x-request-id")));
}

#[tokio::test]
async fn the_log_needs_the_plan_and_counts_as_a_request() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let ((partner, _), (crm, _)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    assert!(partner.get("/v1/requests").await.expect(200).header("ratelimit").is_some());
    world.coach("ada").not_entitled().await;
    partner.get("/v1/requests").await.refused(402, "partner_api_not_entitled");
    crm.get("/v1/requests").await.expect(200);
    world.anonymous().get("/settings/requests").await.expect(401);
}
