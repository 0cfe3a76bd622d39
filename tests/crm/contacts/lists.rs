//! `GET /v1/crm/contacts`: pages in the order of UUIDs.

use serde_json::json;

use crate::crm::contacts::{CONTACTS, crm, listed};
use crate::world::{Fact, ids, uuid};

#[tokio::test]
async fn pages_are_ordered_by_uuid() {
    let (world, key) = crm().await;
    world.coach("bob").await;
    let contact = |number: u64| Fact::contact("ada", &format!("abcdefab-0000-7000-8000-{:012}", number));
    world.apply((0..7).rev().map(contact).chain((0..3).map(|number| Fact::contact("bob", &uuid(number))))).await;
    let all: Vec<String> = (0..7).map(|number| format!("abcdefab-0000-7000-8000-{number:012}")).collect();
    assert_eq!(listed(&key).await, all);
    for limit in 1..=8 {
        let (mut walked, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let page = key.get(&format!("{CONTACTS}?limit={limit}{cursor}")).await.expect(200);
            assert_eq!(page.members(), ["data", "next_cursor"]);
            walked.extend(ids(&page.body));
            pages += 1;
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            assert_eq!(Some(next), walked.last().map(String::as_str));
            // The cursor is a UUID in any case.
            cursor = format!("&cursor={}", if pages % 2 == 0 { next.to_owned() } else { next.to_uppercase() });
        }
        // A full last page is known to be the last.
        assert_eq!((&walked, pages), (&all, 7_usize.div_ceil(limit)), "limit {limit}");
    }
    assert_eq!(ids(&key.get(&format!("{CONTACTS}?limit=ten")).await.expect(200).body), all);
    let second_first = key.get(&format!("{CONTACTS}?limit=2&limit=5")).await.expect(200);
    assert_eq!(ids(&second_first.body), all[..2]);
    // A cursor need not name an existing contact of this coach.
    for (cursor, rest) in [
        (uuid(1), &all[..]),
        ("abcdefab-0000-7000-8000-000000000002".to_owned(), &all[3..]),
        ("abcdefab-0000-7000-8000-00000000000a".to_owned(), &all[7..]),
        ("abcdefaa-ffff-7000-8000-000000000000".to_owned(), &all[..]),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff".to_owned(), &all[7..]),
    ] {
        assert_eq!(ids(&key.get(&format!("{CONTACTS}?cursor={cursor}")).await.expect(200).body), rest, "{cursor}");
    }
    for first in ["?cursor=", "?limit=&cursor=", "?cursor=&cursor=x"] {
        assert_eq!(ids(&key.get(&format!("{CONTACTS}{first}")).await.expect(200).body), all, "{first}");
    }
    for bad in ["%20", "1", "abcdefab000070008000000000000001", "next"] {
        let reply = key.get(&format!("{CONTACTS}?cursor={bad}")).await.refused_for("cursor");
        assert_eq!(reply.body["field"], "cursor");
    }
}

#[tokio::test]
async fn a_page_holds_50_contacts_by_default_and_200_at_most() {
    let (world, key) = crm().await;
    world.apply((0..201).map(|number| Fact::contact("ada", &uuid(number)))).await;
    for (query, size) in [("", 50), ("?limit=201", 200)] {
        let page = key.get(&format!("{CONTACTS}{query}")).await.expect(200);
        assert_eq!((ids(&page.body).len(), &page.body["next_cursor"]), (size, &json!(uuid(size as u64 - 1))));
    }
}

#[tokio::test]
async fn pages_are_live() {
    let (world, key) = crm().await;
    world.apply([1, 3, 5].map(|number| Fact::contact("ada", &uuid(number)))).await;
    let first = key.get(&format!("{CONTACTS}?limit=1")).await.expect(200);
    world.apply([0, 2].map(|number| Fact::contact("ada", &uuid(number)))).await;
    let rest = key.get(&format!("{CONTACTS}?cursor={}", first.str("next_cursor"))).await.expect(200);
    assert_eq!(ids(&rest.body), [2, 3, 5].map(uuid));
}
