//! Recording attempts, each under its lease.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::delivery::{Attempt, DeliveryStatus, Next};
use domain::time::Timestamp;

use super::attempt::StoredAttempt;
use super::erase::{REASON, erased_owner};
use super::{Deliveries, ENTITY, Record, Taken};
use crate::db::{Ask, Item, StoreError, Written, from_item, n, s, to_attribute, write};

/// The result of recording an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Done,
    /// The client has been erased since the attempt began: the attempt is in the log, and the delivery has ended.
    Erased,
    /// The lease ran out and another function took over: nothing was changed.
    Lost,
}

impl Deliveries {
    /// Adds an attempt that ended `now` to its delivery's log, and sets what follows.
    pub async fn record(
        &self,
        taken: &Taken,
        line: &Attempt,
        next: &Next,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        const LINES: &str = "attempts = list_append(attempts, :lines), recorded_by = :owner";
        const LEASE: &str = "lease_owner, lease_until, hop, hop_owner";
        let Taken { order, owner, .. } = taken;
        let mut lines = vec![self.seal_attempt(&order.endpoint_id, &order.delivery_id, line)];
        if let Next::EndpointOff(reason) = next {
            lines.push(StoredAttempt::unsent(now, reason));
        }
        let stored = AttributeValue::L(lines.iter().map(to_attribute).collect());
        let ended = |more: &str| format!("SET {LINES}, #status = :status{more} REMOVE {LEASE}, next_attempt_at");
        let written = write("UpdateItem", || {
            let update = self
                .update(&order.endpoint_id, &order.delivery_id)
                .condition_expression("lease_owner = :owner")
                .expression_attribute_values(":owner", s(owner))
                .expression_attribute_values(":lines", stored.clone());
            match next {
                Next::RetryAt(at) => update
                    .update_expression(format!(
                        "SET {LINES}, next_attempt = :next, next_attempt_at = :at REMOVE {LEASE}"
                    ))
                    .expression_attribute_values(":next", n(order.attempt + 1))
                    .expression_attribute_values(":at", s(at.to_string())),
                Next::Delivered => update
                    .update_expression(ended(""))
                    .expression_attribute_names("#status", "status")
                    .expression_attribute_values(":status", s(DeliveryStatus::Delivered.as_str())),
                Next::Exhausted | Next::Gone | Next::EndpointOff(_) => update
                    .update_expression(ended(", failed_at = :at"))
                    .expression_attribute_names("#status", "status")
                    .expression_attribute_values(":status", s(DeliveryStatus::Failed.as_str()))
                    .expression_attribute_values(":at", n(now.ms())),
            }
            .ask()
        });
        match written.await? {
            Written::Done(_) => Ok(Recorded::Done),
            Written::Refused(item) => match refused(owner, item)? {
                Recorded::Erased => self.record_silently(taken, &lines, *next == Next::Delivered, now).await,
                recorded => Ok(recorded),
            },
        }
    }

    /// Records an attempt whose client has been erased since it began, without what the receiver answered. It is the
    /// delivery's last.
    async fn record_silently(
        &self,
        taken: &Taken,
        lines: &[StoredAttempt],
        is_delivered: bool,
        now: Timestamp,
    ) -> Result<Recorded, StoreError> {
        let Taken { order, owner, .. } = taken;
        let mut lines: Vec<StoredAttempt> = lines.iter().map(StoredAttempt::silenced).collect();
        lines.extend((!is_delivered).then(|| StoredAttempt::unsent(now, REASON)));
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
                .expression_attribute_values(":owner", s(owner))
                .expression_attribute_values(":erased", s(erased_owner(owner)))
                .expression_attribute_values(":status", s(status.as_str()))
                .ask()
        });
        match written.await? {
            Written::Done(_) => Ok(Recorded::Erased),
            Written::Refused(item) => refused(owner, item),
        }
    }
}

/// The reason why the lease is not ours any more: an own write whose answer was lost has ended it, or the client was
/// erased.
fn refused(owner: &str, item: Option<Item>) -> Result<Recorded, StoreError> {
    let Some(item) = item else { return Ok(Recorded::Lost) };
    let record: Record = from_item(ENTITY, item)?;
    Ok(match () {
        () if record.recorded_by.as_deref() == Some(owner) => Recorded::Done,
        () if record.lease_owner == Some(erased_owner(owner)) => Recorded::Erased,
        () => Recorded::Lost,
    })
}
