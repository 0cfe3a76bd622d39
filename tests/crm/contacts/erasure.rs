//! `client.erased` in the CRM: erases the client's contact, the contacts merged into it, their opportunities and the
//! answers that show them. Bookings stay as busy time without a contact.

use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::crm::contacts::erasure_scene::{CALENDAR, ContactErasureScene, contact, email, event, opportunity, text_of};
use crate::crm::contacts::merges::merged;
use crate::crm::contacts::{listed, post, shown, stored};
use crate::feed::erasure::{ENDED_S, MARK};
use crate::world::{Fact, uuid};

/// Longer than the second pass of an erasure or of a late merge takes to come.
const SETTLED_S: u64 = 150;

#[tokio::test]
async fn an_erased_clients_contact_and_all_its_data_are_erased() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    let stays = Fact::contact("ada", &uuid(9)).with("name", "Somebody Else").with("email", "else@example.com");
    world.apply([1, 2, 3].map(contact).into_iter().chain([stays])).await;
    world.apply([1, 2, 3].map(opportunity)).await;
    world
        .apply([opportunity(9).with("name", "Else").with("lost_reason", "Else").with("opportunity_id", uuid(109))])
        .await;
    world.apply([1, 2, 3, 9].map(event)).await;
    for number in 1..=3 {
        scene.call_all_writes(number).await;
    }
    post(world, &scene.key, "Anybody", "else@example.com").await.expect(201);
    // One contact is merged into the lead before the lead becomes a client; afterwards the lead is merged into the
    // other.
    world.apply([merged(2, 1)]).await;
    let client = scene.client_of(1).await;
    world.apply([merged(1, 3)]).await;
    assert_eq!(shown(&scene.key, &uuid(3)).await["clientId"], json!(client));
    let events = scene.keys("EVENT#").await.len();
    assert_eq!((events, scene.keys("OPPORTUNITY#").await.len()), (7, 7));
    assert!(
        scene.answers_about(1).await >= 4 && scene.answers_about(2).await >= 4 && scene.answers_about(3).await >= 4
    );
    world.settle().await;

    scene.erase(&client).await;
    let gone = [1, 2, 3];
    scene.assert_forgotten(&gone).await;
    assert_eq!(scene.keys("OPPORTUNITY#").await, [format!("OPPORTUNITY#{}", uuid(109))]);
    assert_eq!(scene.keys("EVENT#").await.len(), events, "the time stays busy");
    let bookings = scene.key.get("/v1/crm/bookings?limit=200").await.expect(200);
    let leads = bookings.body["data"].as_array().unwrap().iter().map(|booking| &booking["leadId"]);
    assert_eq!(leads.filter(|lead| lead.is_null()).count(), events - 1, "{}", bookings.text);
    assert_eq!(scene.keys("EMAIL#").await, ["EMAIL#else@example.com"]);
    assert_eq!(scene.keys("PHONE#").await, [] as [String; 0]);
    assert_eq!(listed(&scene.key).await, [uuid(9)]);
    let date = world.midnight_in(2).await.date_naive();
    for number in gone {
        assert_eq!(scene.answers_about(number).await, 0);
        let id = uuid(number);
        scene.write("POST", "/v1/crm/opportunities", json!({ "contactId": id })).await.refused(404, "not_found");
        let booking = json!({ "leadId": id, "calendarId": uuid(CALENDAR), "date": date, "time": "12:00" });
        scene.write("POST", "/v1/crm/bookings", booking).await.refused(404, "not_found");
    }
    assert_eq!(scene.answers_about(9).await, 1);

    // Late facts restore nothing, whatever their time. They erase others only by a merge that occurred before the
    // erasure.
    for seconds in [-86_400, 0, 3_600] {
        let at = world.timestamp_in(seconds).await;
        let late = gone.into_iter().flat_map(|number| [contact(number), opportunity(number), event(number)]);
        let merges = gone.into_iter().filter(|number| seconds > 0 || *number != 3).map(|number| merged(number, 9));
        let late = late.chain(merges);
        world.apply(late.map(|fact| fact.with("occurred_at", at.as_str()))).await;
        scene.assert_forgotten(&gone).await;
    }
    world.advance_s(ENDED_S).await;
    scene.assert_forgotten(&gone).await;
    assert_eq!(listed(&scene.key).await, [uuid(9)]);
    assert_eq!(shown(&scene.key, &uuid(9)).await["clientId"], Value::Null);
    assert!(world.set_aside().await.is_empty());
    // The addresses are free: a contact that takes one is a new contact.
    let created = post(world, &scene.key, "Anew", &email(1)).await.expect(201);
    assert!(!gone.map(uuid).contains(&created.body["contact"]["id"].as_str().unwrap().to_owned()));
}

#[tokio::test]
async fn a_contact_merged_into_another_clients_is_erased_alone() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    let other = contact(2).with("name", "Somebody Else").with("phone", Value::Null);
    world.apply([contact(1), other.with("email", "else@example.com"), contact(3)]).await;
    world.apply([1, 3].map(opportunity)).await;
    let client = scene.client_of(1).await;
    let body = json!({ "email": "else@example.com", "full_name": "Somebody", "send_welcome": false });
    let others = scene.partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned();
    world.apply([merged(3, 1), merged(1, 2)]).await;
    scene.erase(&client).await;
    scene.assert_forgotten(&[1, 3]).await;
    assert_eq!(shown(&scene.key, &uuid(2)).await["clientId"], json!(others));
    scene.erase(&others).await;
    world.advance_s(ENDED_S).await;
    scene.assert_forgotten(&[1, 2, 3]).await;
}

#[tokio::test]
async fn a_contact_merged_into_an_erased_one_is_erased_too() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    world.apply([contact(1), contact(2)]).await;
    let client = scene.client_of(1).await;
    scene.erase(&client).await;
    scene.call_all_writes(2).await;
    world.apply([opportunity(2), event(2)]).await;
    world.apply([merged(2, 1)]).await;
    assert!(listed(&scene.key).await.is_empty());
    // The contact's data goes once no other merge has come.
    world.advance_s(SETTLED_S).await;
    scene.assert_forgotten(&[1, 2]).await;
    assert_eq!(scene.answers_about(2).await, 0);
    world.advance_s(ENDED_S).await;
    world.apply([contact(2), opportunity(2), merged(3, 2), contact(3)]).await;
    world.advance_s(SETTLED_S).await;
    scene.assert_forgotten(&[1, 2, 3]).await;
    assert!(listed(&scene.key).await.is_empty() && world.set_aside().await.is_empty());
}

#[tokio::test]
async fn a_contact_that_gets_an_erased_clients_link_by_a_later_merge_is_erased_too() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    world.apply([contact(1), contact(2), contact(3)]).await;
    let client = scene.client_of(1).await;
    let times = [world.timestamp_in(-2).await, world.timestamp_in(-1).await];
    world.apply([merged(1, 2).with("occurred_at", times[0].as_str())]).await;
    world.apply([merged(1, 3).with("occurred_at", times[1].as_str())]).await;
    scene.erase(&client).await;
    world.advance_s(ENDED_S).await;
    assert_eq!(listed(&scene.key).await, [uuid(2)], "a contact that is not the client's stays");
    assert_eq!(shown(&scene.key, &uuid(2)).await["clientId"], Value::Null);
}

#[tokio::test]
async fn waiting_changes_and_events_of_an_erased_contact_are_not_emitted() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    world.faults(json!({ "function": "relay", "crash_before_call": 1_000_000 })).await;
    world.apply([1, 9].map(contact)).await;
    for number in [1, 9] {
        scene.call_all_writes(number).await;
    }
    let client = scene.client_of(1).await;
    scene.erase(&client).await;
    world.advance_s(ENDED_S).await;
    let kinds = [
        ("contact.updated", "/contact/id"),
        ("opportunity.created", "/opportunity/contactId"),
        ("booking.created", "/booking/leadId"),
    ];
    // Changes that the relay has published before it dies do arrive.
    let before = futures::future::join_all(kinds.map(|(name, _)| world.changes(name))).await;
    let sent_before = scene.receiver.hooks().len();
    world.clear_faults().await;
    world.advance_s(ENDED_S).await;
    for ((name, pointer), before) in kinds.into_iter().zip(before) {
        let emitted = world.changes(name).await;
        let since = emitted.iter().filter(|fact| !before.contains(fact));
        let of: Vec<&Value> = since.filter_map(|fact| fact.pointer(pointer)).collect();
        assert!(!of.contains(&&json!(uuid(1))), "{name}: {of:?}");
        assert!(emitted.iter().any(|fact| fact.pointer(pointer) == Some(&json!(uuid(9)))), "{name}: {emitted:?}");
    }
    let sent = scene.receiver.hooks().split_off(sent_before);
    let names = |number| sent.iter().filter(|hook| text_of(hook).contains(&uuid(number))).count();
    assert_eq!(names(1), 0);
    assert!(names(9) > 0);
}

#[tokio::test]
async fn the_unknown_merge_target_of_an_erased_contact_is_not_stored() {
    let scene = ContactErasureScene::new().await;
    let world = &scene.world;
    world.apply([contact(1)]).await;
    let client = scene.client_of(1).await;
    world.apply([merged(1, 2)]).await;
    scene.erase(&client).await;
    world.apply([contact(2), opportunity(2)]).await;
    scene.assert_forgotten(&[1, 2]).await;
    world.advance_s(ENDED_S).await;
    scene.assert_forgotten(&[1, 2]).await;
    assert!(listed(&scene.key).await.is_empty());
}

#[tokio::test]
async fn a_contact_that_no_creation_linked_is_left_alone() {
    let scene = ContactErasureScene::new().await;
    scene.world.apply([contact(1), Fact::client("ada", "c1").with("email", email(1))]).await;
    let before = stored(&scene.world, &uuid(1)).await;
    scene.erase("c1").await;
    assert_eq!(stored(&scene.world, &uuid(1)).await, before);
}

#[tokio::test]
async fn a_write_that_stalls_while_the_contact_is_erased_leaves_nothing() {
    // Each call stalls before each of its calls after authentication.
    for spared_calls in 1..4 {
        for is_match in [true, false] {
            let scene = ContactErasureScene::new().await;
            let world = &scene.world;
            world.apply([contact(1)]).await;
            let client = scene.client_of(1).await;
            world.faults(json!({ "function": "crm-contacts", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
            let call = if is_match {
                scene.key.post("/v1/crm/contacts", json!({ "name": "Anybody", "email": email(1) }))
            } else {
                scene.key.patch(&format!("/v1/crm/contacts/{}", uuid(1)), json!({ "name": MARK }))
            };
            let stalled = tokio::spawn(call.idempotent("once").into_future());
            world.until_stalled().await;
            scene.erase(&client).await;
            world.clear_faults().await;
            let reply = stalled.await.unwrap();
            assert!([200, 201, 404].contains(&reply.status), "{}", reply.text);
            if is_match && reply.body["contact"]["id"] != json!(uuid(1)) {
                // The address was free already, so the caller got a new contact.
                continue;
            }
            if is_match && spared_calls == 3 {
                assert_eq!(scene.answers_about(1).await, 1, "recorded when the first pass was over");
            }
            world.advance_s(ENDED_S).await;
            scene.assert_forgotten(&[1]).await;
            assert_eq!(scene.answers_about(1).await, 0);
        }
    }
}
