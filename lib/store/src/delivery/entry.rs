//! Entering attempts in the log: those that end at about the same time by one request, each on its own lease.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::delivery::{Attempt, DeliveryOrder, DeliveryStatus, Next};
use domain::time::Timestamp;

use super::attempt::StoredAttempt;
use super::erase::{REASON, erased_owner};
use super::{Deliveries, ENTITY, Record, Taken, partition, sort_key};
use crate::db::{Ask, Item, StoreError, Written, from_item, n, s, to_attribute, write};
use crate::statement::{Statement, Tried};

/// What came of recording an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Done,
    /// The client has been erased since the attempt began: it is in the log, and the delivery has ended.
    Erased,
    /// The lease ran out and somebody else took over: nothing was changed.
    Lost,
}

/// An attempt's lines in the log, and what follows it.
#[derive(Debug)]
pub struct Entry {
    order: DeliveryOrder,
    owner: String,
    lines: Vec<StoredAttempt>,
    next: Next,
    made_at: Timestamp,
}

impl Deliveries {
    /// What is to be recorded of an attempt that ended `now`: its line, and perhaps one that says more.
    pub fn entry(&self, taken: &Taken, lines: &[Attempt], next: Next, now: Timestamp) -> Entry {
        let (order, owner) = (taken.order.clone(), taken.owner.clone());
        let sealed = lines.iter().map(|line| self.seal_attempt(&order.endpoint_id, &order.delivery_id, line));
        Entry { lines: sealed.collect(), order, owner, next, made_at: now }
    }

    /// The statement that adds an attempt's lines to its log and sets what follows. What came of it is for [`Self::recorded`] to read.
    pub fn recording(&self, entry: &Entry) -> Statement {
        const LINE: &str = "SET attempts = list_append(attempts, ?) SET recorded_by = ?";
        const LEASE: &str = "REMOVE lease_owner REMOVE lease_until REMOVE hop REMOVE hop_owner";
        let mut set = vec![entry.lines(), s(&entry.owner)];
        let changes = match entry.next {
            Next::RetryAt(at) => {
                set.extend([n(entry.order.attempt + 1), s(at.to_string())]);
                format!("{LINE} SET next_attempt = ? SET next_attempt_at = ? {LEASE}")
            }
            ended @ (Next::Delivered | Next::Exhausted | Next::Gone) => {
                set.push(s(status_after(ended).as_str()));
                let failed = if ended == Next::Delivered { "" } else { "SET failed_at = ?" };
                set.extend((ended != Next::Delivered).then(|| n(entry.made_at.ms())));
                format!(r#"{LINE} SET "status" = ? {failed} {LEASE} REMOVE next_attempt_at"#)
            }
        };
        Statement::update(
            (&self.table, partition(&entry.order.endpoint_id), sort_key(&entry.order.delivery_id)),
            (&changes, set),
            ("lease_owner = ?", vec![s(&entry.owner)]),
        )
    }

    /// What came of the statement. Where that is not known, the update is made alone.
    pub async fn recorded(&self, entry: &Entry, Tried(tried): Tried) -> Result<Recorded, StoreError> {
        let written = match tried {
            Some(written) => written,
            None => self.record(entry).await?,
        };
        match written {
            Written::Done(_) => Ok(Recorded::Done),
            Written::Refused(item) => match refused(entry, item)? {
                Recorded::Erased => self.record_silently(entry).await,
                recorded => Ok(recorded),
            },
        }
    }

    /// Enters an attempt whose client has been erased since it began, without what the receiver answered. It is the delivery's last.
    async fn record_silently(&self, entry: &Entry) -> Result<Recorded, StoreError> {
        let order = &entry.order;
        let is_delivered = entry.next == Next::Delivered;
        let mut lines: Vec<StoredAttempt> = entry.lines.iter().map(StoredAttempt::silenced).collect();
        lines.extend((!is_delivered).then(|| StoredAttempt::unsent(entry.made_at, REASON)));
        let status = if is_delivered { DeliveryStatus::Delivered } else { DeliveryStatus::Failed };
        let written = write("UpdateItem", || {
            self.update(&order.endpoint_id, &order.delivery_id)
                .update_expression(
                    "SET attempts = list_append(attempts, :lines), recorded_by = :owner, #status = :status \
                     REMOVE lease_owner, lease_until, hop, hop_owner, next_attempt_at",
                )
                .condition_expression("lease_owner = :erased")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":lines", AttributeValue::L(lines.iter().map(to_attribute).collect()))
                .expression_attribute_values(":owner", s(&entry.owner))
                .expression_attribute_values(":erased", s(erased_owner(&entry.owner)))
                .expression_attribute_values(":status", s(status.as_str()))
                .ask()
        });
        match written.await? {
            Written::Done(_) => Ok(Recorded::Erased),
            Written::Refused(item) => refused(entry, item),
        }
    }

    async fn record(&self, entry: &Entry) -> Result<Written<Option<Item>>, StoreError> {
        const LINE: &str = "attempts = list_append(attempts, :line), recorded_by = :owner";
        const LEASE: &str = "lease_owner, lease_until, hop, hop_owner";
        let order = &entry.order;
        let written = write("UpdateItem", || {
            let update = self
                .update(&order.endpoint_id, &order.delivery_id)
                .condition_expression("lease_owner = :owner")
                .expression_attribute_values(":owner", s(&entry.owner))
                .expression_attribute_values(":line", entry.lines());
            let ended = |update: UpdateItemFluentBuilder, more: &str, status: DeliveryStatus| {
                update
                    .update_expression(format!("SET {LINE}, #status = :status{more} REMOVE {LEASE}, next_attempt_at"))
                    .expression_attribute_names("#status", "status")
                    .expression_attribute_values(":status", s(status.as_str()))
            };
            match entry.next {
                Next::RetryAt(at) => update
                    .update_expression(format!(
                        "SET {LINE}, next_attempt = :next, next_attempt_at = :at REMOVE {LEASE}"
                    ))
                    .expression_attribute_values(":next", n(order.attempt + 1))
                    .expression_attribute_values(":at", s(at.to_string())),
                Next::Delivered => ended(update, "", DeliveryStatus::Delivered),
                failed @ (Next::Exhausted | Next::Gone) => ended(update, ", failed_at = :at", status_after(failed))
                    .expression_attribute_values(":at", n(entry.made_at.ms())),
            }
            .ask()
        });
        Ok(match written.await? {
            Written::Done(_) => Written::Done(None),
            Written::Refused(item) => Written::Refused(item),
        })
    }
}

impl Entry {
    fn lines(&self) -> AttributeValue {
        AttributeValue::L(self.lines.iter().map(to_attribute).collect())
    }
}

/// The status of a delivery after its last attempt, or while it goes on.
fn status_after(next: Next) -> DeliveryStatus {
    match next {
        Next::Delivered => DeliveryStatus::Delivered,
        Next::Exhausted | Next::Gone => DeliveryStatus::Failed,
        Next::RetryAt(_) => DeliveryStatus::Pending,
    }
}

/// What it means that the lease was not ours any more: an own write whose answer was lost has given it back, or the client was erased.
fn refused(entry: &Entry, item: Option<Item>) -> Result<Recorded, StoreError> {
    let Some(item) = item else { return Ok(Recorded::Lost) };
    let record: Record = from_item(ENTITY, item)?;
    Ok(match () {
        () if record.recorded_by.as_ref() == Some(&entry.owner) => Recorded::Done,
        () if record.lease_owner == Some(erased_owner(&entry.owner)) => Recorded::Erased,
        () => Recorded::Lost,
    })
}
