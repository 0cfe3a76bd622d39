//! Costs of requests about contacts. A page costs the same in a workspace of any size.

use serde_json::{Value, json};

use crate::crm::contacts::{crm, listed, patch, post};
use crate::world::{Bill, Fact, World, assert_cost, uuid};

const FUNCTION: &str = "crm-contacts";

#[tokio::test]
async fn writes_take_four_calls_in_sequence_and_a_page_two() {
    let (world, key) = crm().await;
    let create =
        async || drop(post(&world, &key, "Lee", &format!("c{}@example.com", world.number())).await.expect(201));
    assert_cost(&world, FUNCTION, create, |bill: &Bill| bill.calls == 5 && bill.write_units <= 19.0, 4).await;
    world.apply([Fact::contact("ada", &uuid(1)).with("email", "lee@example.com")]).await;
    let find = async || drop(post(&world, &key, "Lee", "LEE@example.com").await.expect(201));
    assert_cost(&world, FUNCTION, find, |bill: &Bill| bill.calls == 5, 4).await;
    let rename = async || {
        let name = format!("Lee {}", world.number());
        drop(patch(&world, &key, &uuid(1), json!({ "name": name })).await.expect(200));
    };
    assert_cost(&world, FUNCTION, rename, |bill: &Bill| bill.calls == 5 && bill.write_units <= 18.0, 4).await;
    let list = async || drop(listed(&key).await);
    assert_cost(&world, FUNCTION, list, |bill: &Bill| bill.calls == 2, 2).await;
    // In a small roster a name costs what the list costs.
    key.get("/v1/crm/contacts").await.expect(200);
    let plain = page_bill(&world).await;
    let find = async || drop(key.get("/v1/crm/contacts?name=lee").await.expect(200));
    let affordable = |bill: &Bill| (bill.calls, bill.read_units, bill.write_units) == plain;
    assert_cost(&world, FUNCTION, find, affordable, 2).await;
}

/// A page is one range of one partition of an index, so other items of the partition are not read. 3,000 contacts
/// therefore show the same costs as 100,000.
const MANY: u64 = 3_000;

async fn page_bill(world: &World) -> (usize, f64, f64) {
    let bill = Bill::of(&world.calls(FUNCTION).await[0]);
    (bill.calls, bill.read_units, bill.write_units)
}

#[tokio::test]
async fn a_page_costs_the_same_at_any_position_and_roster_size() {
    let (world, key) = crm().await;
    world.apply([Fact::contact("ada", &uuid(0)).with("email", "c0000@example.com")]).await;
    let items = world.items("crm", "COACH#ada").await;
    let contact = items.iter().find(|item| item["sk"]["S"] == format!("CONTACT#{}", uuid(0))).unwrap();
    let another = |number: u64| -> Value {
        let text = contact.to_string().replace(&uuid(0), &uuid(number)).replace("c0000", &format!("c{number:04}"));
        serde_json::from_str(&text).unwrap()
    };
    let mut bills = Vec::new();
    let mut filled = 0;
    for size in [51, MANY] {
        world.put_items("crm", &(filled..size).map(another).collect::<Vec<_>>()).await;
        filled = size;
        let mut after: Vec<Option<u64>> = vec![None];
        if size == MANY {
            after.extend([Some(MANY / 2), Some(MANY - 52)]);
        }
        for after in after {
            let cursor = after.map_or_else(String::new, |after| format!("?cursor={}", uuid(after)));
            let page = key.get(&format!("/v1/crm/contacts{cursor}")).await.expect(200);
            let first = after.map_or(0, |after| after + 1);
            assert_eq!(page.body["data"][0]["id"], json!(uuid(first)));
            assert_eq!(page.body["next_cursor"], json!(uuid(first + 49)));
            bills.push(page_bill(&world).await);
        }
    }
    assert_eq!(bills.len(), 4);
    assert!(bills.iter().all(|bill| *bill == bills[0]), "{bills:?}");
    // 51 contacts of half a kilobyte, read consistently, and the key's own item.
    assert!(bills[0].0 == 2 && bills[0].1 <= 10.0 && bills[0].2 == 1.0, "{bills:?}");
}
