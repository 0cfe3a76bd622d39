//! A late repeat of a request whose person was erased meanwhile: it brings nobody back while its key is remembered.

use serde_json::{Value, json};

use crate::crm::bookings::slot;
use crate::feed::erasure::{ENDED_S, ErasureScene, MARK, erased};
use crate::world::{Call, Fact, Reply, World, uuid};

const HOUR_S: u64 = 3_600;

impl ErasureScene {
    fn create(&self, number: usize, send_welcome: bool, key: Option<&str>) -> Call {
        let email = format!("a{number}.{MARK}@example.com");
        let body = json!({ "email": email, "full_name": MARK, "send_welcome": send_welcome });
        let call = self.key.post("/v1/clients", body);
        key.into_iter().fold(call, |call, key| call.idempotent(&format!("{key}-{number}")))
    }
}

/// The number of clients that are stored, without those that are erased.
async fn clients(world: &World) -> usize {
    world.items("clients", "CLIENT#").await.iter().filter(|item| item["owner"].is_object()).count()
}

fn assert_erased(reply: Reply, when: &str) {
    assert_eq!((reply.status, &reply.body["code"]), (409, &json!("person_erased")), "{when}: {}", reply.text);
    let refused = reply.refused(409, "person_erased");
    assert!(!refused.is_replay() && !refused.text.contains(MARK), "{}", refused.text);
}

#[tokio::test]
async fn a_late_repeat_of_a_creation_makes_no_erased_client_again_for_24_hours() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    for (number, (send_welcome, key, hours)) in [
        (false, Some("k"), 0),
        (true, Some("k"), 0),
        (true, None, 0),
        (false, None, 0),
        // The answer with the password is gone after an hour, and the creation is remembered nevertheless.
        (false, None, 2),
        (false, Some("k"), 23),
    ]
    .into_iter()
    .enumerate()
    {
        let when = format!("welcome {send_welcome}, key {key:?}, {hours} hours");
        let create = || scene.create(number, send_welcome, key);
        let made = create().await.expect(201);
        world.advance_s(hours * HOUR_S).await;
        world.apply([erased(made.str("client_id"))]).await;
        for _ in 0..2 {
            assert_erased(create().await, &when);
        }
        assert_erased(scene.create(number, !send_welcome, key).await, &when);
        world.advance_s(ENDED_S).await;
        if hours < 23 {
            assert_erased(create().await, &when);
        }
        assert_eq!(clients(world).await, 0, "{when}");
        let anew = create().idempotent(&format!("anew-{number}")).await.expect(201);
        world.apply([erased(anew.str("client_id"))]).await;
        scene.assert_forgotten(&[made.str("client_id"), anew.str("client_id")]).await;
        world.advance_s(24 * HOUR_S).await;
        let later = create().await.expect(201);
        world.apply([erased(later.str("client_id"))]).await;
    }
}

#[tokio::test]
async fn whatever_call_of_an_erasure_dies_a_repeat_makes_no_second_client() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    for spared_calls in 0..12 {
        let number = spared_calls;
        let create = || scene.create(number, false, Some("k"));
        let made = create().await.expect(201);
        world.settle().await;
        world.faults(json!({ "function": "ingest", "spared_calls": spared_calls, "crash_before_call": 1 })).await;
        world.publish([erased(made.str("client_id"))]).await;
        for _ in 0..2 {
            let repeat = create().await;
            let is_replay = repeat.status == 201 && repeat.is_replay() && repeat.text == made.text;
            assert!(is_replay || repeat.body["code"] == "person_erased", "{spared_calls}: {}", repeat.text);
        }
        world.settle().await;
        world.clear_faults().await;
        world.advance_s(ENDED_S).await;
        assert_erased(create().await, &format!("died after {spared_calls} calls"));
        assert_eq!(clients(world).await, 0, "{spared_calls}");
    }
}

#[tokio::test]
async fn a_creation_that_died_before_its_mail_is_not_continued_after_the_erasure() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    world.faults(json!({ "function": "clients", "crash_after_commit": 1 })).await;
    let create = || scene.create(0, true, Some("k"));
    create().await.expect(500);
    world.settle().await;
    let client = world.items("clients", "INTAKE#").await[0]["pk"]["S"].as_str().unwrap().replace("INTAKE#", "");
    world.apply([erased(&client)]).await;
    for wait_s in [0, 61, ENDED_S] {
        world.advance_s(wait_s).await;
        scene.assert_forgotten(&[&client]).await;
        assert_erased(create().await, &format!("{wait_s} s later"));
    }
    assert!(world.changes("client.created").await.is_empty() && world.mail().await.is_empty());
    assert_eq!(clients(world).await, 0);
}

#[tokio::test]
async fn late_repeats_of_crm_writes_about_an_erased_contact_do_nothing_again() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    let ada = world.coach("ada").await;
    let crm = ada.crm_key().await;
    let calendar = uuid(7);
    world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &calendar)]).await;
    let email = format!("lead.{MARK}@example.com");
    let post = |path: &str, body: Value| crm.post(path, body).idempotent(path);
    let contact = || post("/v1/crm/contacts", json!({ "name": MARK, "email": email }));
    let made = contact().await.expect(201);
    let lead = made.body["contact"]["id"].as_str().unwrap().to_owned();
    let tomorrow = (world.now().await + chrono::TimeDelta::days(1)).date_naive();
    let mut booking = slot(tomorrow, "10:00");
    booking["leadId"] = json!(lead);
    booking["calendarId"] = json!(calendar);
    let deal = || post("/v1/crm/opportunities", json!({ "contactId": lead }));
    let rename = || {
        let body = json!({ "name": format!("{MARK} two") });
        crm.patch(&format!("/v1/crm/contacts/{lead}"), body).idempotent("rename")
    };
    let book = || post("/v1/crm/bookings", booking.clone());
    deal().await.expect(201);
    book().await.expect(201);
    rename().await.expect(200);
    let client = scene.key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).await.expect(201);
    world.apply([erased(client.str("client_id"))]).await;
    world.advance_s(ENDED_S).await;
    for (name, repeat) in [("contact", contact()), ("deal", deal()), ("booking", book()), ("rename", rename())] {
        assert_erased(repeat.await, name);
    }
    for list in ["contacts", "opportunities"] {
        assert_eq!(crm.get(&format!("/v1/crm/{list}")).await.expect(200).body["data"], json!([]), "{list}");
    }
    scene.assert_forgotten(&[client.str("client_id")]).await;
    let anew = contact().idempotent("anew").await.expect(201);
    assert_ne!(anew.body["contact"]["id"], json!(lead));
}
