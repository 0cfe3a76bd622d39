//! `client.erased` in the CRM: the contact that the client was goes, with those that were merged into it, their opportunities and the answers
//! that show them. What they had booked stays, as time that is taken.

use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::crm::contacts::{listed, patch, post, shown, stored};
use crate::feed::erasure::{ENDED_S, MARK, erased};
use crate::world::{Caller, Fact, PIPELINE, Reply, World, fact, members, uuid};

const CALENDAR: u64 = 900;
/// When what an erasure or a late merge found has been gone over once more.
const SETTLED_S: u64 = 150;

pub(crate) struct Place {
    pub(crate) world: World,
    pub(crate) key: Caller,
    partner: Caller,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let (key, partner) = (ada.crm_key().await, ada.partner_key().await);
        world.facts([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR))]).await;
        Self { world, key, partner }
    }

    /// The client that the API makes of the contact with that number.
    pub(crate) async fn client_of(&self, number: u64) -> String {
        let body = json!({ "email": email(number), "full_name": "Somebody", "send_welcome": false });
        self.partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
    }

    async fn write(&self, method: &str, path: &str, body: Value) -> Reply {
        self.key.call(method, path).json(&body).once(&format!("write-{}", self.world.number())).await
    }

    /// What a caller does with a contact, each under a key of its own. The answers are recorded.
    async fn deal_with(&self, number: u64) {
        let id = uuid(number);
        let found = post(&self.world, &self.key, "Anybody", &email(number)).await.expect(201);
        assert_eq!(found.body["contact"]["id"], json!(id));
        patch(&self.world, &self.key, &id, json!({ "name": format!("{MARK} renamed {number}") })).await.expect(200);
        let made = self.write("POST", "/v1/crm/opportunities", json!({ "contactId": id })).await.expect(201);
        assert!(made.body["opportunity"]["name"].as_str().unwrap().contains(MARK), "{}", made.text);
        let date = (self.world.now().await + chrono::TimeDelta::days(2 + number.cast_signed())).date_naive();
        let body = json!({ "leadId": id, "calendarId": uuid(CALENDAR), "date": date.to_string(), "time": "10:00" });
        self.write("POST", "/v1/crm/bookings", body).await.expect(201);
    }

    async fn erase(&self, client: &str) {
        self.world.facts([erased(client)]).await;
    }

    /// Sort keys in the coach's partition that begin so.
    pub(crate) async fn keys(&self, prefix: &str) -> Vec<String> {
        let items = self.world.items("crm", "COACH#ada").await;
        let keys = items.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned());
        keys.filter(|sk| sk.starts_with(prefix)).collect()
    }

    /// Nothing is left of whoever has the mark.
    pub(crate) async fn forgot(&self, numbers: &[u64]) {
        let at_rest = self.world.at_rest().await;
        for text in [MARK, "4155552671", "+1 415 555 2671"] {
            let places = at_rest.places_of(text);
            assert!(places.is_empty(), "{places:#?}");
        }
        let items = self.world.items("crm", "COACH#ada").await;
        for number in numbers {
            let left = stored(&self.world, &uuid(*number)).await;
            let kept = ["client_id", "contact_ref", "erased_at", "merged_at", "merged_into", "pk", "sk"];
            assert!(left["erased_at"].is_object() && members(&left).iter().all(|name| kept.contains(name)), "{left}");
            let about = format!("ada#{}", uuid(*number));
            for item in items.iter().filter(|item| !item["sk"]["S"].as_str().unwrap().starts_with("CONTACT#")) {
                let lead = [&item["lead_id"]["S"], &item["contact_ref"]["S"]];
                assert!(!lead.contains(&&json!(uuid(*number))) && !lead.contains(&&json!(about)), "{item}");
            }
            let changed = patch(&self.world, &self.key, &uuid(*number), json!({ "name": "Back" })).await;
            changed.refused(404, "not_found");
        }
    }

    /// How many recorded answers are found by a contact.
    async fn answers_about(&self, number: u64) -> usize {
        let about = json!(format!("ada#{}", uuid(number)));
        self.world.table("idempotency").await.iter().filter(|item| item["contact_ref"]["S"] == about).count()
    }
}

fn email(number: u64) -> String {
    format!("{MARK}.{number}@example.com")
}

pub(crate) fn contact(number: u64) -> Fact {
    let fact =
        Fact::contact("ada", &uuid(number)).with("name", format!("{MARK} {number}")).with("email", email(number));
    fact.with("phone", "+1 415 555 2671")
}

pub(crate) fn merged(from: u64, into: u64) -> Fact {
    fact("contact.merged", json!({ "coach_id": "ada", "contact_id": uuid(from), "merged_into": uuid(into) }))
}

/// An opportunity of the contact, as the application tells it.
pub(crate) fn opportunity(number: u64) -> Fact {
    let detail = json!({
        "opportunity_id": uuid(100 + number), "coach_id": "ada", "contact_id": uuid(number), "name": format!("for {MARK}"),
        "value_cents": 5, "pipeline_id": PIPELINE, "stage": "lost", "lost_reason": format!("{MARK} moved away"),
    });
    fact("opportunity.saved", detail)
}

/// An event with the contact, as the application tells it.
fn event(number: u64) -> Fact {
    let hour = number % 10;
    let detail = json!({
        "event_id": uuid(200 + number), "coach_id": "ada", "calendar_id": uuid(CALENDAR), "lead_id": uuid(number),
        "starts_at": format!("2027-03-01T0{hour}:00:00Z"), "ends_at": format!("2027-03-01T0{hour}:30:00Z"),
        "status": "confirmed",
    });
    fact("calendar_event.saved", detail)
}

#[tokio::test]
async fn the_contact_of_an_erased_client_goes_with_all_that_is_about_it() {
    let place = Place::new().await;
    let world = &place.world;
    let stays = Fact::contact("ada", &uuid(9)).with("name", "Somebody Else").with("email", "else@example.com");
    world.facts([1, 2, 3].map(contact).into_iter().chain([stays])).await;
    world.facts([1, 2, 3, 9].map(opportunity)).await;
    world
        .facts([opportunity(9).with("name", "Else").with("lost_reason", "Else").with("opportunity_id", uuid(109))])
        .await;
    world.facts([1, 2, 3, 9].map(event)).await;
    for number in 1..=3 {
        place.deal_with(number).await;
    }
    post(world, &place.key, "Anybody", "else@example.com").await.expect(201);
    // The one is merged into the lead before it becomes a client, and the lead into the other afterwards.
    world.facts([merged(2, 1)]).await;
    let client = place.client_of(1).await;
    world.facts([merged(1, 3)]).await;
    assert_eq!(shown(&place.key, &uuid(3)).await["clientId"], json!(client));
    let events = place.keys("EVENT#").await.len();
    assert_eq!((events, place.keys("OPPORTUNITY#").await.len()), (7, 7));
    assert!(
        place.answers_about(1).await >= 4 && place.answers_about(2).await >= 4 && place.answers_about(3).await >= 4
    );
    world.settle().await;

    place.erase(&client).await;
    let gone = [1, 2, 3];
    place.forgot(&gone).await;
    assert_eq!(place.keys("OPPORTUNITY#").await, [format!("OPPORTUNITY#{}", uuid(109))]);
    assert_eq!(place.keys("EVENT#").await.len(), events, "the time stays taken");
    let bookings = place.key.get("/v1/crm/bookings?limit=200").await.expect(200);
    let leads = bookings.body["data"].as_array().unwrap().iter().map(|booking| &booking["leadId"]);
    assert_eq!(leads.filter(|lead| lead.is_null()).count(), events - 1, "{}", bookings.text);
    assert_eq!(place.keys("EMAIL#").await, ["EMAIL#else@example.com"]);
    assert_eq!(place.keys("PHONE#").await, [] as [String; 0]);
    assert_eq!(listed(&place.key).await, [uuid(9)]);
    for number in gone {
        assert_eq!(place.answers_about(number).await, 0);
    }
    assert_eq!(place.answers_about(9).await, 1);

    // What comes late brings nothing back, whatever its time, and takes nobody else with it but by a merge that was said before.
    for seconds in [-86_400, 0, 3_600] {
        let at = world.timestamp_in(seconds).await;
        let late = gone.into_iter().flat_map(|number| [contact(number), opportunity(number), event(number)]);
        let merges = gone.into_iter().filter(|number| seconds > 0 || *number != 3).map(|number| merged(number, 9));
        let late = late.chain(merges);
        world.facts(late.map(|fact| fact.with("occurred_at", at.as_str()))).await;
        place.forgot(&gone).await;
    }
    world.advance_s(ENDED_S).await;
    place.forgot(&gone).await;
    assert_eq!(listed(&place.key).await, [uuid(9)]);
    assert_eq!(shown(&place.key, &uuid(9)).await["clientId"], Value::Null);
    assert!(world.set_aside().await.is_empty());
    // The addresses are free: whoever has them now is somebody new.
    let anew = post(world, &place.key, "Anew", &email(1)).await.expect(201);
    assert!(!gone.map(uuid).contains(&anew.body["contact"]["id"].as_str().unwrap().to_owned()));
}

#[tokio::test]
async fn a_contact_that_lives_on_as_another_client_s_goes_alone() {
    let place = Place::new().await;
    let world = &place.world;
    let other = contact(2).with("name", "Somebody Else").with("phone", Value::Null);
    world.facts([contact(1), other.with("email", "else@example.com"), contact(3)]).await;
    world.facts([1, 3].map(opportunity)).await;
    let client = place.client_of(1).await;
    let body = json!({ "email": "else@example.com", "full_name": "Somebody", "send_welcome": false });
    let others = place.partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned();
    world.facts([merged(3, 1), merged(1, 2)]).await;
    place.erase(&client).await;
    place.forgot(&[1, 3]).await;
    assert_eq!(shown(&place.key, &uuid(2)).await["clientId"], json!(others));
    place.erase(&others).await;
    world.advance_s(ENDED_S).await;
    place.forgot(&[1, 2, 3]).await;
}

#[tokio::test]
async fn a_contact_that_is_merged_into_an_erased_one_goes_too() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([contact(1), contact(2)]).await;
    let client = place.client_of(1).await;
    place.erase(&client).await;
    place.deal_with(2).await;
    world.facts([opportunity(2), event(2)]).await;
    world.facts([merged(2, 1)]).await;
    assert!(listed(&place.key).await.is_empty());
    // What is about it goes when no other merge has come.
    world.advance_s(SETTLED_S).await;
    place.forgot(&[1, 2]).await;
    assert_eq!(place.answers_about(2).await, 0);
    world.advance_s(ENDED_S).await;
    world.facts([contact(2), opportunity(2), merged(3, 2), contact(3)]).await;
    world.advance_s(SETTLED_S).await;
    place.forgot(&[1, 2, 3]).await;
    assert!(listed(&place.key).await.is_empty() && world.set_aside().await.is_empty());
}

#[tokio::test]
async fn whoever_has_an_erased_clients_link_by_a_later_merge_goes_with_it() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([contact(1), contact(2), contact(3)]).await;
    let client = place.client_of(1).await;
    let times = [world.timestamp_in(-2).await, world.timestamp_in(-1).await];
    world.facts([merged(1, 2).with("occurred_at", times[0].as_str())]).await;
    world.facts([merged(1, 3).with("occurred_at", times[1].as_str())]).await;
    place.erase(&client).await;
    world.advance_s(ENDED_S).await;
    assert_eq!(listed(&place.key).await, [uuid(2)], "who was not the client after all stays");
    assert_eq!(shown(&place.key, &uuid(2)).await["clientId"], Value::Null);
}

#[tokio::test]
async fn what_waited_of_an_erased_contact_is_told_to_nobody() {
    let place = Place::new().await;
    let world = &place.world;
    world.faults(json!({ "function": "relay", "crash_before_call": 1_000_000 })).await;
    world.facts([1, 9].map(contact)).await;
    for number in [1, 9] {
        place.deal_with(number).await;
    }
    let client = place.client_of(1).await;
    place.erase(&client).await;
    world.advance_s(ENDED_S).await;
    let kinds = [
        ("contact.updated", "/contact/id"),
        ("opportunity.created", "/opportunity/contactId"),
        ("booking.created", "/booking/leadId"),
    ];
    // What a relay has sent when it dies arrives.
    let before = futures::future::join_all(kinds.map(|(name, _)| world.outgoing(name))).await;
    world.faults(json!({ "function": "", "crash_before_call": 0 })).await;
    world.advance_s(ENDED_S).await;
    for ((name, place), before) in kinds.into_iter().zip(before) {
        let told = world.outgoing(name).await;
        let since = told.iter().filter(|fact| !before.contains(fact));
        let of: Vec<&Value> = since.filter_map(|fact| fact.pointer(place)).collect();
        assert!(!of.contains(&&json!(uuid(1))), "{name}: {of:?}");
        assert!(told.iter().any(|fact| fact.pointer(place) == Some(&json!(uuid(9)))), "{name}: {told:?}");
    }
}

#[tokio::test]
async fn a_contact_that_was_to_be_the_erased_client_does_not_come() {
    let place = Place::new().await;
    let world = &place.world;
    world.facts([contact(1)]).await;
    let client = place.client_of(1).await;
    world.facts([merged(1, 2)]).await;
    place.erase(&client).await;
    world.facts([contact(2), opportunity(2)]).await;
    place.forgot(&[1, 2]).await;
    world.advance_s(ENDED_S).await;
    place.forgot(&[1, 2]).await;
    assert!(listed(&place.key).await.is_empty());
}

#[tokio::test]
async fn a_contact_that_no_creation_linked_is_left_alone() {
    let place = Place::new().await;
    place.world.facts([contact(1), Fact::client("ada", "c1").with("email", email(1))]).await;
    let before = stored(&place.world, &uuid(1)).await;
    place.erase("c1").await;
    assert_eq!(stored(&place.world, &uuid(1)).await, before);
}

#[tokio::test]
async fn a_write_that_stalls_while_the_contact_is_erased_leaves_nothing() {
    // Each stalls before each call after it was let in.
    for spared_calls in 1..4 {
        for is_match in [true, false] {
            let place = Place::new().await;
            let world = &place.world;
            world.facts([contact(1)]).await;
            let client = place.client_of(1).await;
            world.faults(json!({ "function": "crm-contacts", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
            let call = if is_match {
                place.key.post("/v1/crm/contacts", json!({ "name": "Anybody", "email": email(1) }))
            } else {
                place.key.patch(&format!("/v1/crm/contacts/{}", uuid(1)), json!({ "name": MARK }))
            };
            let stalled = tokio::spawn(call.once("once").into_future());
            world.until_stalled().await;
            place.erase(&client).await;
            world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
            let reply = stalled.await.unwrap();
            assert!([200, 201, 404].contains(&reply.status), "{}", reply.text);
            if is_match && reply.body["contact"]["id"] != json!(uuid(1)) {
                // The address was free already: a new contact has it, which the caller asked for.
                continue;
            }
            if is_match && spared_calls == 3 {
                assert_eq!(place.answers_about(1).await, 1, "recorded when the first pass was over");
            }
            world.advance_s(ENDED_S).await;
            place.forgot(&[1]).await;
            assert_eq!(place.answers_about(1).await, 0);
        }
    }
}
