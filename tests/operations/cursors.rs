//! A cursor counts for its own list and its own coach. The cursors of CRM lists by id are UUIDs of records, which need
//! not exist: they fit everywhere.

use serde_json::json;

use crate::crm::bookings::event;
use crate::world::{Caller, Coach, Fact, Receiver, World, uuid};

const SINCE: &str = "updated_since=2000-01-01T00:00:00Z";

/// A coach with two records in each list, and the lists with the callers that read them.
struct Lists {
    lists: Vec<(String, Caller)>,
}

impl Lists {
    async fn new(world: &World, receiver: &Receiver, coach: &Coach<'_>, number: u64) -> Self {
        let name = coach.id.as_str();
        let reader = crate::event_feed::reader(coach, "identifiers").await;
        let (partner, crm, settings) = (coach.partner_key().await, coach.crm_key().await, coach.settings().await);
        let endpoint = coach.endpoint(&receiver.url(), "identifiers").await;
        let at = world.midnight_in(2).await;
        let mut facts = vec![Fact::pipeline(name)];
        for number in [10 * number, 10 * number + 1] {
            let id = uuid(number);
            facts.extend([Fact::contact(name, &id), Fact::calendar(name, &id), Fact::opportunity(name, &id, &id)]);
            facts.extend([event(name, &id, Some(number), at, 60), Fact::client(name, &format!("c{number}"))]);
        }
        world.apply(facts).await;
        let lists = [
            ("/v1/clients?".to_owned(), &partner),
            (format!("/v1/clients?{SINCE}"), &partner),
            (format!("/v1/crm/contacts?{SINCE}"), &crm),
            (format!("/v1/crm/opportunities?{SINCE}"), &crm),
            (format!("/v1/crm/bookings?{SINCE}"), &crm),
            ("/v1/events?order=asc".to_owned(), &reader),
            ("/v1/events?order=desc".to_owned(), &reader),
            ("/settings/keys?".to_owned(), &settings),
            ("/settings/audit?".to_owned(), &settings),
            ("/settings/deliveries?".to_owned(), &settings),
            (format!("/settings/webhooks/{}/deliveries?", endpoint.id), &settings),
        ];
        Self { lists: lists.map(|(list, caller)| (list, caller.clone())).into() }
    }

    /// The cursor behind the first record of each list.
    async fn cursors(&self) -> Vec<String> {
        let mut cursors = Vec::new();
        for (list, caller) in &self.lists {
            let page = caller.get(&format!("{list}&limit=1")).await.expect(200);
            cursors.push(page.str("next_cursor").to_owned());
        }
        cursors
    }
}

#[tokio::test]
async fn a_cursor_counts_for_its_own_list_and_coach_alone() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let (ada, eve) = (world.coach("ada").await, world.coach("eve").await);
    let of_ada = Lists::new(&world, &receiver, &ada, 1).await;
    let of_eve = Lists::new(&world, &receiver, &eve, 2).await;
    let (cursors, of_eves_lists) = (of_ada.cursors().await, of_eve.cursors().await);
    for (own, (list, caller)) in of_ada.lists.iter().enumerate() {
        let page = caller.get(&format!("{list}&limit=1&cursor={}", cursors[own])).await.expect(200);
        assert_ne!(page.body["data"], json!([]), "{list}");
        let others = cursors.iter().enumerate().filter(|(index, _)| *index != own).map(|(_, cursor)| cursor);
        for foreign in others.chain([&of_eves_lists[own]]) {
            let refused = caller.get(&format!("{list}&cursor={foreign}")).await.refused_for("cursor");
            assert_eq!(refused.body["field"], "cursor", "{list}");
        }
    }
}
