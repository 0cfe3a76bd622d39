//! The table of all writes that take an idempotency key, one row each.

mod scene;

use std::collections::BTreeMap;

use edge::routes::{Access, ROUTES};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::world::{Call, Reply};

pub(super) use scene::{CALENDAR, LEAD, Scene};

/// Path and JSON body of a request. `null` stands for no body.
type Request = (String, Value);
/// Numbers of records, attempts and changes, by name.
pub(super) type Counts = BTreeMap<String, usize>;

/// A write. Rows in the order of `ROUTES`, since the endpoints of the settings also receive what other rows emit.
pub(super) struct Row {
    pub(super) route: &'static str,
    /// Creates what the request needs.
    prepare: for<'s> fn(&'s Scene) -> BoxFuture<'s, Request>,
    status: u16,
    /// The effect of one request.
    effect: &'static [(&'static str, usize)],
    /// The write commits more than once, so a repeat after a crash has to continue it.
    pub(super) has_stages: bool,
}

const fn row(
    route: &'static str,
    prepare: for<'s> fn(&'s Scene) -> BoxFuture<'s, Request>,
    status: u16,
    effect: &'static [(&'static str, usize)],
) -> Row {
    Row { route, prepare, status, effect, has_stages: false }
}

const fn staged(row: Row) -> Row {
    Row { has_stages: true, ..row }
}

const CLIENT: &[(&str, usize)] = &[("client.created", 1), ("clients", 1), ("intakes", 1)];
pub(super) const CREATE: &str = "POST /v1/clients";
const ROTATE_SECRET: &str = "POST /settings/webhooks/{id}/rotate-secret";
pub(super) const TEST: &str = "POST /settings/webhooks/{id}/test";
pub(super) const RECOVER: &str = "POST /settings/webhooks/{id}/recover";
pub(super) const RETRY: &str = "POST /settings/webhooks/{id}/deliveries/{delivery_id}/retry";

pub(super) const ROWS: &[Row] = &[
    row(CREATE, |scene| scene.new_client(false).boxed(), 201, CLIENT),
    staged(row(CREATE, |scene| scene.new_client(true).boxed(), 201, CLIENT)),
    row("POST /v1/crm/contacts", |scene| scene.new_contact().boxed(), 201, &[("contact.created", 1)]),
    row("PATCH /v1/crm/contacts/{id}", |scene| scene.contact().boxed(), 200, &[("contact.updated", 1)]),
    row("POST /v1/crm/opportunities", |scene| scene.new_deal().boxed(), 201, &[("opportunity.created", 1)]),
    row("PATCH /v1/crm/opportunities/{id}", |scene| scene.deal().boxed(), 200, &[("opportunity.updated", 1)]),
    row("POST /v1/crm/bookings", |scene| scene.new_booking().boxed(), 201, &[("booking.created", 1)]),
    row("PATCH /v1/crm/bookings/{id}", |scene| scene.move_of().boxed(), 200, &[("booking.rescheduled", 1)]),
    row("DELETE /v1/crm/bookings/{id}", |scene| scene.cancellation().boxed(), 200, &[("booking.cancelled", 1)]),
    row("POST /settings/keys", |scene| scene.new_key().boxed(), 201, &[("keys", 1)]),
    row("POST /settings/keys/{id}/rotate", |scene| scene.rotation().boxed(), 201, &[("keys", 1)]),
    row("POST /settings/webhooks", |scene| scene.new_endpoint().boxed(), 201, &[("endpoints", 1), ("secrets", 1)]),
    row(ROTATE_SECRET, |scene| scene.of_endpoint("rotate-secret").boxed(), 200, &[("secrets", 1)]),
    row(TEST, |scene| scene.of_endpoint("test").boxed(), 202, &[("attempts", 1), ("deliveries", 1)]),
    row(RECOVER, |scene| scene.recovery().boxed(), 202, &[("attempts", 1)]),
    row(RETRY, |scene| scene.retry().boxed(), 202, &[("attempts", 1)]),
];

impl Row {
    pub(super) fn access(&self) -> Access {
        ROUTES.iter().find(|route| route.to_string() == self.route).expect("a route of the service").access
    }

    pub(super) fn is_crm(&self) -> bool {
        matches!(self.access(), Access::Crm(_))
    }

    pub(super) fn is_partner(&self) -> bool {
        matches!(self.access(), Access::Partner(_))
    }

    pub(super) fn method(&self) -> &'static str {
        self.route.split(' ').next().unwrap()
    }

    /// The function that serves the route.
    pub(super) fn function(&self) -> &'static str {
        match self.route.split('/').skip(1).take(3).collect::<Vec<_>>()[..] {
            ["v1", "clients"] => "clients",
            ["v1", "crm", "contacts"] => "crm-contacts",
            ["v1", "crm", "opportunities"] => "crm-opportunities",
            ["v1", "crm", "bookings"] => "crm-bookings",
            ["settings", ..] => "settings",
            _ => panic!("no function for {}", self.route),
        }
    }

    /// Fewest calls of a request: authentication, claim, reads, transaction.
    pub(super) fn fewest_calls(&self) -> usize {
        match self.access() {
            Access::Partner(_) => 5,
            Access::Session => 4,
            Access::Crm(_) | Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant | Access::Public => {
                3
            }
        }
    }

    /// Asserts the answer to a request whose store does not answer: the write may be done or not.
    #[track_caller]
    pub(super) fn assert_unanswered(&self, reply: &Reply) {
        assert!(!reply.is_replay());
        if self.is_crm() {
            assert_eq!(reply.clone().refused(503, "unconfirmed").header("retry-after"), Some("5"));
        } else {
            reply.clone().refused(500, "internal");
        }
    }

    /// Asserts the answer to another payload under the key of `first`.
    #[track_caller]
    pub(super) fn assert_mismatch(&self, reply: &Reply, first: &Reply) {
        if self.is_partner() {
            assert_replay_of(reply, first);
            assert_eq!(reply.header("idempotency-payload-mismatch"), Some("true"));
        } else {
            let refused = reply.clone().refused(409, "idempotency_payload_mismatch");
            assert_eq!((refused.header("retry-after"), refused.is_replay()), (None, false));
        }
    }
}

/// The row of a route.
pub(super) fn row_of(route: &str) -> &'static Row {
    ROWS.iter().find(|row| row.route == route).unwrap()
}

/// A request whose preconditions hold, with an idempotency key of its own.
pub(super) struct Prepared {
    pub(super) row: &'static Row,
    pub(super) key: String,
    pub(super) call: Call,
    pub(super) body: Value,
    before: Counts,
}

impl Prepared {
    pub(super) async fn send(&self) -> Reply {
        self.call.clone().await
    }

    /// The request with another body, whose type stays JSON.
    pub(super) async fn send_body(&self, body: &str) -> Reply {
        self.call.clone().header("content-type", "application/json").body(body.to_owned()).await
    }

    /// The request under another key.
    pub(super) async fn send_under(&self, key: &str) -> Reply {
        self.call.clone().idempotent(key).await
    }
}

/// Asserts that `replay` repeats the answer `first` and is marked as a replay.
#[track_caller]
pub(super) fn assert_replay_of(replay: &Reply, first: &Reply) {
    assert!(replay.is_replay(), "{}", replay.text);
    assert_eq!((replay.status, &replay.text), (first.status, &first.text));
    assert_eq!(replay.header("retry-after"), None);
}
