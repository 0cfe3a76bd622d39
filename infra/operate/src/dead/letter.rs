//! The form of a dead letter, and the part of it that is shown: ids, times and names of members, and no value of a
//! fact.
//!
//! A fact comes from `ingest`, with the reason and with known fields only, or whole from EventBridge, whose attribute
//! says why. An order comes as it was sent. Any other text can be a dead letter, too: text that is no valid id and no
//! known name may hold anything, and is not shown.

use domain::fact::{is_known, lenient};
use domain::id::{ClientId, CoachId, DeliveryId, FactId, InvalidId};
use domain::time::Timestamp;
use outbound::delivery::read_order;
use serde::Serialize;
use serde_json::Value;

use crate::options::DeadQueue;

/// The `type` of an order.
const ORDER: &str = "order";
/// Longest name of a member that is shown.
const MAX_NAME_CHARS: usize = 64;

/// A message of a dead-letter queue, as SQS gives it.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) body: &'a str,
    pub(super) sent_at: Option<Timestamp>,
    pub(super) receives: u32,
    /// The reason of EventBridge.
    pub(super) error_message: Option<&'a str>,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DeadLetter {
    /// The id of the message.
    pub(crate) id: String,
    pub(crate) queue: DeadQueue,
    /// The name of the fact, if there is a fact of this name, or `order`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) fact_id: Option<FactId>,
    pub(crate) delivery_id: Option<DeliveryId>,
    pub(crate) coach_id: Option<CoachId>,
    pub(crate) client_id: Option<ClientId>,
    /// The reason of `ingest` or of EventBridge. An order has none.
    pub(crate) reason: Option<String>,
    /// The time at which a fact was set aside, otherwise the time at which the queue took the message.
    pub(crate) at: Option<Timestamp>,
    /// The number of times that the message was received, this reading included.
    pub(crate) receives: u32,
}

/// A dead letter, with the names of its members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) letter: DeadLetter,
    /// The names of the members of a fact's `detail`, or of an order's message.
    pub(crate) members: Vec<String>,
}

impl Shown {
    /// Reads a message.
    pub(super) fn read(queue: DeadQueue, message: &Message<'_>) -> Self {
        let unread = DeadLetter {
            id: message.id.to_owned(),
            queue,
            kind: None,
            fact_id: None,
            delivery_id: None,
            coach_id: None,
            client_id: None,
            reason: message.error_message.map(str::to_owned),
            at: message.sent_at,
            receives: message.receives,
        };
        let body = lenient(message.body);
        match queue {
            DeadQueue::Facts => Self { letter: fact(unread, &body), members: names_of(&body["detail"]) },
            DeadQueue::Orders => Self { letter: order(unread, message.body), members: names_of(&body) },
        }
    }
}

fn fact(unread: DeadLetter, body: &Value) -> DeadLetter {
    let set_aside_at = body["set_aside_at"].as_str().and_then(Timestamp::parse);
    // Of a message that `ingest` did not set aside, a member of this name may hold anything.
    let reason = body["reason"].as_str().filter(|_| set_aside_at.is_some());
    let detail = &body["detail"];
    DeadLetter {
        kind: body["detail-type"].as_str().filter(|name| is_known(name)).map(str::to_owned),
        fact_id: id(&detail["id"], FactId::parse),
        coach_id: id(&detail["coach_id"], CoachId::parse),
        client_id: id(&detail["client_id"], ClientId::parse),
        reason: reason.map(str::to_owned).or(unread.reason),
        at: set_aside_at.or(unread.at),
        ..unread
    }
}

fn order(unread: DeadLetter, body: &str) -> DeadLetter {
    let Ok(order) = read_order(body) else { return unread };
    DeadLetter {
        kind: Some(ORDER.to_owned()),
        delivery_id: Some(order.delivery_id),
        coach_id: Some(order.coach_id),
        ..unread
    }
}

fn id<T>(value: &Value, parse: impl Fn(&str) -> Result<T, InvalidId>) -> Option<T> {
    parse(value.as_str()?).ok()
}

/// The names of an object's members. Those that are no plain identifiers may hold anything, and are counted.
fn names_of(object: &Value) -> Vec<String> {
    let is_plain = |name: &str| {
        (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let names = object.as_object().into_iter().flat_map(|members| members.keys());
    let (mut plain, others): (Vec<String>, Vec<String>) = names.cloned().partition(|name| is_plain(name));
    plain.extend((!others.is_empty()).then(|| format!("({} more)", others.len())));
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SET_ASIDE_AT: &str = "2026-11-20T09:30:00.000Z";

    fn read(queue: DeadQueue, body: &str) -> Shown {
        let sent_at = Some(Timestamp::from_ms(5));
        let shown = Shown::read(queue, &Message { id: "m1", body, sent_at, receives: 3, ..Message::default() });
        assert_eq!((shown.letter.id.as_str(), shown.letter.queue, shown.letter.receives), ("m1", queue, 3));
        shown
    }

    fn read_fact(body: &Value) -> Shown {
        read(DeadQueue::Facts, &body.to_string())
    }

    fn nothing_read(queue: DeadQueue) -> DeadLetter {
        DeadLetter {
            id: "m1".to_owned(),
            queue,
            kind: None,
            fact_id: None,
            delivery_id: None,
            coach_id: None,
            client_id: None,
            reason: None,
            at: Some(Timestamp::from_ms(5)),
            receives: 3,
        }
    }

    fn client() -> Value {
        json!({ "id": "f1", "coach_id": "ada", "client_id": "c1", "full_name": "Marguerite", "email": "m@x.example" })
    }

    #[test]
    fn a_fact_that_was_set_aside_shows_its_ids_its_reason_and_the_names_of_its_members() {
        let body = json!({
            "detail-type": "client.saved", "detail": client(), "reason": "email must be set",
            "set_aside_at": SET_ASIDE_AT,
        });
        let Shown { letter, members } = read_fact(&body);
        let shown = serde_json::to_value(&letter).unwrap();
        let expected = json!({
            "id": "m1", "queue": "facts", "type": "client.saved", "fact_id": "f1", "delivery_id": null,
            "coach_id": "ada", "client_id": "c1", "reason": "email must be set", "at": SET_ASIDE_AT, "receives": 3,
        });
        assert_eq!(shown, expected);
        assert_eq!(members.join(" "), "client_id coach_id email full_name id");
    }

    #[test]
    fn an_event_of_eventbridge_shows_the_reason_of_its_attribute() {
        let body = json!({
            "version": "0", "detail-type": "client.saved", "source": "coaching.application", "detail": client(),
            "reason": "Marguerite asked",
        });
        let message = Message { body: &body.to_string(), error_message: Some("no permission"), ..Message::default() };
        let Shown { letter, .. } = Shown::read(DeadQueue::Facts, &message);
        assert_eq!((letter.reason.as_deref(), letter.at), (Some("no permission"), None));
        assert_eq!(letter.fact_id, FactId::parse("f1").ok());
        assert_eq!(read_fact(&body).letter.reason, None);
    }

    #[test]
    fn an_order_shows_its_delivery_and_its_coach() {
        let order = json!({
            "coach_id": "ada", "endpoint_id": "we_1", "delivery_id": "dlv_1", "chain": 1, "attempt": 2, "hop": 0,
            "due_at": SET_ASIDE_AT,
        });
        let Shown { letter, members } = read(DeadQueue::Orders, &order.to_string());
        let expected = DeadLetter {
            kind: Some("order".to_owned()),
            delivery_id: DeliveryId::parse("dlv_1").ok(),
            coach_id: CoachId::parse("ada").ok(),
            ..nothing_read(DeadQueue::Orders)
        };
        assert_eq!(letter, expected);
        assert_eq!(members.join(" "), "attempt chain coach_id delivery_id due_at endpoint_id hop");
    }

    #[rstest::rstest]
    #[case("")]
    #[case("Marguerite")]
    #[case("null")]
    #[case("[{\"id\":\"f1\"}]")]
    #[case("{\"detail\":\"Marguerite\"}")]
    #[case("{\"coach_id\":\"Marguerite Duras\",\"detail\":{\"id\":\"Marguerite Duras\",\"coach_id\":7}}")]
    #[case(&"[".repeat(100_000))]
    #[case("{\"detail\":{\"id\":\"f\\ud83d\"}}")]
    fn a_text_of_any_other_form_shows_nothing(#[case] body: &str) {
        for queue in [DeadQueue::Facts, DeadQueue::Orders] {
            let Shown { letter, members } = read(queue, body);
            assert_eq!(letter, nothing_read(queue));
            assert!(!members.concat().contains("Marguerite"), "{members:?}");
        }
    }

    #[test]
    fn a_name_that_may_hold_anything_is_counted() {
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        let detail = json!({ "id": "f1", "Marguerite Duras": 1, "m@x.example": 2, "": 3, "\u{1b}[2J": 4, long: 5 });
        let shown = read_fact(&json!({ "detail-type": "Marguerite.saved", "detail": detail }));
        assert_eq!(shown.members, ["id", "(5 more)"]);
        assert_eq!(shown.letter.kind, None);
        assert!(!serde_json::to_string(&shown).unwrap().contains("Marguerite"));
    }
}
