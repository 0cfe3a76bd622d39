//! Records attempts, each under its lease.

use domain::delivery::{Attempt, DeliveryOutcome, DeliveryStatus, SentRequest};
use domain::time::Timestamp;

use super::erase::{REASON, erased_owner};
use super::record::{DeliveryItem, ENTITY, StoredAttempt, append};
use super::{ClaimedAttempt, Deliveries};
use crate::db::{Item, ItemWrite, StoreError, Written, from_item, n, s};

/// The result of recording an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptRecording {
    Done,
    /// The client has been erased since the attempt began: the attempt is in the log, and the delivery has ended.
    Erased,
    /// The lease expired and another function took over: nothing was changed.
    Lost,
}

impl Deliveries {
    /// Adds an attempt that ended at `now` to its delivery's log, and sets what follows. `sent` is the attempt's
    /// request, unless nothing was sent.
    pub async fn record(
        &self,
        taken: &ClaimedAttempt,
        line: &Attempt,
        sent: Option<&SentRequest>,
        next: &DeliveryOutcome,
        now: Timestamp,
    ) -> Result<AttemptRecording, StoreError> {
        let ClaimedAttempt { order, owner, .. } = taken;
        let mut lines = vec![StoredAttempt::seal(&self.vault, &order.endpoint_id, &order.delivery_id, line)];
        if let DeliveryOutcome::EndpointOff(reason) = next {
            lines.push(StoredAttempt::unsent(now, reason));
        }
        let update = self.attempt_update(taken, owner, &lines, sent);
        let update = match sent.and_then(|sent| sent.signature.as_ref()) {
            Some(signature) => update.set("signature", s(signature)),
            None => update,
        };
        let update = match next {
            DeliveryOutcome::RetryAt(at) => {
                update.set("next_attempt", n(order.attempt + 1)).set("next_attempt_at", s(at.to_string()))
            }
            DeliveryOutcome::Delivered => {
                update.set("status", s(DeliveryStatus::Delivered.as_str())).remove(["next_attempt_at"])
            }
            DeliveryOutcome::Exhausted | DeliveryOutcome::Gone | DeliveryOutcome::EndpointOff(_) => update
                .set("status", s(DeliveryStatus::Failed.as_str()))
                .set("failed_at", n(now.ms()))
                .remove(["next_attempt_at"]),
        };
        match update.update_now().await? {
            Written::Done(_) => Ok(AttemptRecording::Done),
            Written::Refused(item) => match refused(owner, item)? {
                AttemptRecording::Erased => {
                    self.record_erased(taken, &lines, sent, *next == DeliveryOutcome::Delivered, now).await
                }
                recorded => Ok(recorded),
            },
        }
    }

    /// Records an attempt whose client has been erased since it began, without the signature and the receiver's answer.
    /// The attempt is the delivery's last.
    async fn record_erased(
        &self,
        taken: &ClaimedAttempt,
        lines: &[StoredAttempt],
        sent: Option<&SentRequest>,
        is_delivered: bool,
        now: Timestamp,
    ) -> Result<AttemptRecording, StoreError> {
        let mut lines: Vec<StoredAttempt> = lines.iter().map(StoredAttempt::without_excerpt).collect();
        lines.extend((!is_delivered).then(|| StoredAttempt::unsent(now, REASON)));
        let status = if is_delivered { DeliveryStatus::Delivered } else { DeliveryStatus::Failed };
        let update = self.attempt_update(taken, &erased_owner(&taken.owner), &lines, sent);
        match update.set("status", s(status.as_str())).remove(["next_attempt_at"]).update_now().await? {
            Written::Done(_) => Ok(AttemptRecording::Erased),
            Written::Refused(item) => refused(&taken.owner, item),
        }
    }

    /// An update that adds an attempt's lines and ends the lease of `lease_owner`.
    fn attempt_update(
        &self,
        ClaimedAttempt { order, owner, .. }: &ClaimedAttempt,
        lease_owner: &str,
        lines: &[StoredAttempt],
        sent: Option<&SentRequest>,
    ) -> ItemWrite<'_> {
        let update = append(self.update(&order.endpoint_id, &order.delivery_id), lines)
            .set("recorded_by", s(owner))
            .remove(["lease_owner", "lease_until", "hop", "hop_owner"])
            .when("lease_owner = :lease_owner", [(":lease_owner", s(lease_owner))]);
        match sent {
            Some(sent) => update.set("sent_to", s(&sent.host)).set("sent_s", n(sent.unix_s)),
            None => update,
        }
    }
}

/// The reason for a lost lease: an own write whose answer was lost has ended it, the client was erased, or another
/// function took over.
fn refused(owner: &str, item: Option<Item>) -> Result<AttemptRecording, StoreError> {
    let Some(item) = item else { return Ok(AttemptRecording::Lost) };
    let record: DeliveryItem = from_item(ENTITY, item)?;
    Ok(match () {
        () if record.recorded_by.as_deref() == Some(owner) => AttemptRecording::Done,
        () if record.lease_owner == Some(erased_owner(owner)) => AttemptRecording::Erased,
        () => AttemptRecording::Lost,
    })
}
