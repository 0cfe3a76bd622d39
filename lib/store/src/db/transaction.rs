//! Transactions. Each write is labelled with the [`Part`] that it writes. A refused transaction names the parts whose
//! conditions failed, so no code compares positions.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::builders::TransactWriteItemBuilder;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};

use super::retry::{WriteFailure, retrying_conflicts};
use super::{Db, Item, MeteredRequest, StoreError};

/// The kind of item that a write of a transaction changes or checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Address,
    Audit,
    Automation,
    Bucket,
    Calendar,
    Claim,
    Client,
    CoachWatch,
    Contact,
    /// A delivery, by its number among the deliveries of the transaction.
    Delivery(usize),
    Endpoint,
    EndpointCount,
    Event,
    /// A position of the event feed.
    FeedPosition,
    /// The lock of the external id that a client gives up.
    FormerExternalId,
    /// The team that a workspace leaves.
    FormerTeam,
    /// The lock of a client's external id.
    ExternalId,
    /// The mark that a fact was applied.
    Fact,
    Intake,
    /// A record that a fact sets, unless a later fact has set it.
    LaterFact,
    Key,
    KeyRing,
    LoginLink,
    /// A mark that something was emitted.
    EmittedMark,
    Opportunity,
    Outbox,
    Pipeline,
    Programme,
    /// A check-in, a client's grades, or doses.
    Record,
    /// The lock of an endpoint's recoveries.
    Recovery,
    /// The API key that another one replaces.
    ReplacedKey,
    Team,
    /// A calendar event that waits for its calendar.
    Waiting,
    Watch,
    Workspace,
}

/// A write of a transaction.
#[derive(Debug, Clone)]
pub struct Write {
    part: Part,
    pub(super) item: TransactWriteItem,
}

impl Write {
    pub(super) fn new(part: Part, item: TransactWriteItemBuilder) -> Self {
        Self { part, item: item.build() }
    }

    /// Relabels the write, for a transaction that has two writes of one kind.
    pub(crate) fn labelled(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// The result of a transaction.
pub(crate) enum Transacted {
    Done,
    Refused(RefusedTransaction),
}

impl Transacted {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

/// A transaction that wrote nothing because a condition failed.
#[derive(Debug)]
pub struct RefusedTransaction(Vec<FailedPart>);

#[derive(Debug)]
struct FailedPart {
    part: Part,
    /// The current item, if it exists and the write asked for it.
    item: Option<Item>,
}

impl RefusedTransaction {
    /// Pairs the parts with their cancellation reasons, which have the same order, and keeps the failed ones.
    fn new(parts: impl Iterator<Item = Part>, reasons: Vec<CancellationReason>) -> Self {
        let failed = parts.zip(reasons).filter(|(_, reason)| is_failed_condition(reason));
        Self(failed.map(|(part, reason)| FailedPart { part, item: reason.item }).collect())
    }

    /// The refusal of one write outside a transaction.
    pub(crate) fn of(part: Part) -> Self {
        Self(vec![FailedPart { part, item: None }])
    }

    /// Returns true if the condition of a write with this label failed.
    pub fn is(&self, part: Part) -> bool {
        self.0.iter().any(|failed| failed.part == part)
    }

    /// The current item of the first failed write with this label, if it asked for it.
    pub(crate) fn item(&self, part: Part) -> Option<&Item> {
        self.0.iter().find(|failed| failed.part == part)?.item.as_ref()
    }
}

impl Db {
    /// Commits all writes or none. If the answer is lost, the SDK repeats the request under the same token, and
    /// DynamoDB answers as it did to the first.
    pub(crate) async fn transact(&self, writes: &[Write]) -> Result<Transacted, StoreError> {
        let written = retrying_conflicts("TransactWriteItems", || {
            let items = writes.iter().map(|write| write.item.clone()).collect();
            self.client.transact_write_items().set_transact_items(Some(items)).send_metered()
        });
        Ok(match written.await? {
            Ok(_) => Transacted::Done,
            Err(reasons) => {
                Transacted::Refused(RefusedTransaction::new(writes.iter().map(|write| write.part), reasons))
            }
        })
    }
}

impl WriteFailure for TransactWriteItemsError {
    type Refusal = Vec<CancellationReason>;

    fn refusal(&self) -> Option<Vec<CancellationReason>> {
        let Self::TransactionCanceledException(cancelled) = self else { return None };
        let reasons = cancelled.cancellation_reasons();
        reasons.iter().any(is_failed_condition).then(|| reasons.to_vec())
    }

    fn is_conflict(&self) -> bool {
        let passing = |reason: &CancellationReason| {
            matches!(reason.code(), Some("TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded"))
        };
        match self {
            Self::TransactionCanceledException(cancelled) => cancelled.cancellation_reasons().iter().any(passing),
            _ => false,
        }
    }
}

fn is_failed_condition(reason: &CancellationReason) -> bool {
    reason.code() == Some("ConditionalCheckFailed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::s;

    const FAILED: &str = "ConditionalCheckFailed";
    const PARTS: [Part; 4] = [Part::Client, Part::Watch, Part::Address, Part::Address];

    fn refused(codes: [&str; 4]) -> RefusedTransaction {
        let reason = |code: &str| CancellationReason::builder().code(code).build();
        RefusedTransaction::new(PARTS.into_iter(), codes.iter().map(|code| reason(code)).collect())
    }

    #[test]
    fn a_refusal_names_the_writes_whose_condition_failed() {
        let cases: [([&str; 4], &[Part]); 5] = [
            ([FAILED, "None", "None", "None"], &[Part::Client]),
            ([FAILED, FAILED, "None", "None"], &[Part::Client, Part::Watch]),
            (["None", "None", FAILED, "None"], &[Part::Address]),
            (["None", "None", "None", FAILED], &[Part::Address]),
            (["TransactionConflict", FAILED, "None", "None"], &[Part::Watch]),
        ];
        for (codes, failed) in cases {
            let refused = refused(codes);
            for part in PARTS {
                assert_eq!(refused.is(part), failed.contains(&part), "{part:?} of {codes:?}");
            }
            assert!(!refused.is(Part::Outbox), "{codes:?}");
        }
    }

    #[test]
    fn a_refusal_has_the_items_that_were_asked_for() {
        let found = Item::from([("pk".to_owned(), s("a"))]);
        let asked = CancellationReason::builder().code(FAILED).set_item(Some(found.clone())).build();
        let reasons = [CancellationReason::builder().code(FAILED).build(), asked];
        let refused = RefusedTransaction::new([Part::Client, Part::Workspace].into_iter(), reasons.to_vec());
        assert_eq!(refused.item(Part::Workspace), Some(&found));
        assert!(refused.item(Part::Client).is_none() && refused.item(Part::Team).is_none());
    }

    #[test]
    fn a_label_takes_the_place_of_the_kind() {
        let write = Write::new(Part::Team, TransactWriteItem::builder());
        assert_eq!(write.labelled(Part::FormerTeam).part, Part::FormerTeam);
    }
}
