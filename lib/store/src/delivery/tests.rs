//! Tests of orders against the item of their delivery.

use domain::delivery::AttemptResult;
use domain::id::CoachId;

use aws_sdk_dynamodb::types::AttributeValue;

use super::*;
use crate::db::to_attribute;

fn order() -> DeliveryOrder {
    let coach = CoachId::parse("coach_1").unwrap();
    let endpoint = EndpointId::parse("we_1").unwrap();
    DeliveryOrder::first(&coach, &endpoint, &DeliveryId::parse("dlv_1").unwrap(), Timestamp::from_ms(1_000))
}

pub(super) fn record() -> DeliveryItem {
    DeliveryItem {
        pk: "ENDPOINT#we_1".to_owned(),
        sk: "DELIVERY#dlv_1".to_owned(),
        id: DeliveryId::parse("dlv_1").unwrap(),
        coach_id: CoachId::parse("coach_1").unwrap(),
        event_id: EventId::parse("evt_1").unwrap(),
        event_type: "new_client".to_owned(),
        subject: Subject::client(domain::id::ClientId::parse("c1").unwrap()),
        status: DeliveryStatus::Pending,
        attempts: Vec::new(),
        chain: 1,
        next_attempt: 2,
        failed_at: None,
        recovered_at: None,
        test: false,
        next_attempt_at: Some(Timestamp::from_ms(6_000)),
        hop: None,
        hop_owner: None,
        lease_owner: None,
        lease_until: None,
        recorded_by: None,
        sent_to: None,
        sent_s: None,
        signature: None,
        sealed: vec![1, 2, 3],
        expires_at: 100,
        made_at: Timestamp::from_ms(0),
    }
}

fn spent_at_2_s(order: &DeliveryOrder, record: &DeliveryItem) -> Result<Option<SpentOrder>, StoreError> {
    record.spent(order, Timestamp::from_ms(2_000))
}

#[test]
fn a_record_and_its_attempts_read_back_from_the_item() {
    let answered = AttemptResult::StatusCode(503);
    let attempts = vec![
        StoredAttempt::sealed(Timestamp::from_ms(1), answered, vec![9, 9]),
        StoredAttempt::unsent(Timestamp::from_ms(2), "not sent"),
    ];
    let item = to_item(&DeliveryItem { attempts: attempts.clone(), ..record() });
    assert!(!item.contains_key("lease_until"), "conditions distinguish an absent attribute from a null one");
    let read: DeliveryItem = from_item(ENTITY, item).unwrap();
    assert_eq!((read.attempts, read.sealed), (attempts.clone(), vec![1, 2, 3]));
    let appended: Vec<AttributeValue> = attempts.iter().map(to_attribute).collect();
    assert_eq!(to_item(&DeliveryItem { attempts, ..record() })["attempts"], AttributeValue::L(appended));
}

#[test]
fn a_stale_order_leads_to_the_next_one_unless_that_has_been_seen() {
    let Some(SpentOrder::Next(next)) = spent_at_2_s(&order(), &record()).unwrap() else { panic!("stale") };
    assert_eq!((next.attempt, next.hop, next.due_at), (2, 0, Timestamp::from_ms(6_000)));
    for seen in
        [DeliveryItem { hop: Some(0), ..record() }, DeliveryItem { lease_owner: Some("x".to_owned()), ..record() }]
    {
        assert_eq!(spent_at_2_s(&order(), &seen).unwrap(), Some(SpentOrder::Nothing));
    }
}

#[test]
fn an_attempt_that_is_next_and_was_refused_is_under_way() {
    let held = DeliveryItem { next_attempt: 1, lease_owner: Some("x".to_owned()), ..record() };
    assert_eq!(spent_at_2_s(&order(), &held).unwrap(), None);
}

#[test]
fn an_order_of_a_delivered_event_has_the_time_of_the_receivers_answer() {
    let at = |ms, code| StoredAttempt::sealed(Timestamp::from_ms(ms), AttemptResult::StatusCode(code), vec![9]);
    let delivered =
        DeliveryItem { status: DeliveryStatus::Delivered, attempts: vec![at(1_000, 500), at(6_000, 204)], ..record() };
    let Some(SpentOrder::Delivered(answered_at)) = spent_at_2_s(&order(), &delivered).unwrap() else {
        panic!("delivered")
    };
    assert_eq!(answered_at, Timestamp::from_ms(6_005));
}

#[test]
fn orders_of_ended_deliveries_older_chains_and_expired_items_are_spent() {
    let failed = DeliveryItem { status: DeliveryStatus::Failed, ..record() };
    for ended in [failed, DeliveryItem { chain: 2, ..record() }, DeliveryItem { expires_at: 2, ..record() }] {
        assert_eq!(spent_at_2_s(&order(), &ended).unwrap(), Some(SpentOrder::Nothing));
    }
    assert!(spent_at_2_s(&order().for_attempt(3, Timestamp::from_ms(0)), &record()).is_err());
}
