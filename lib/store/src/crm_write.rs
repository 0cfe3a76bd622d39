//! The parts of a CRM write's transaction beside its records: the answer under the request's idempotency key, and the
//! change for the application.

use domain::change::Change;
use domain::id::{CoachId, ContactId};
use domain::idempotency::RETENTION;
use domain::time::Timestamp;

use crate::claim::{Answer, AnswerSubject, Claim, Claims};
use crate::contact_ref::ContactRef;
use crate::db::{Part, StoreError, Transacted, Write};
use crate::outbox::{Content, Outbox};

/// A CRM write without its records.
pub struct CrmWrite<'a> {
    pub claims: &'a Claims,
    pub outbox: &'a Outbox,
    pub claim: &'a Claim,
    pub coach: &'a CoachId,
    /// The subject of the write. Its erasure finds the recorded answer by this contact.
    pub contact: ContactId,
    pub answer: Answer,
    /// `None` if no visible field has changed.
    pub change: Option<Change>,
    pub now: Timestamp,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    Done,
    /// An item that the decision depends on has changed since it was read.
    Changed,
    /// Another request has taken over the claim.
    ClaimLost,
}

impl CrmWrite<'_> {
    /// Commits the records, the answer and the change, or none of them.
    pub(crate) async fn commit(&self, records: impl IntoIterator<Item = Write>) -> Result<Committed, StoreError> {
        let answer = self.claims.answer(self.claim, &self.answer, &self.subject(), RETENTION, self.now);
        let mut writes = vec![answer];
        writes.extend(records);
        writes.extend(
            self.change.iter().map(|change| self.outbox.put(&Content::Change(Box::new(change.clone())), self.now)),
        );
        Ok(match self.outbox.table.db.transact(&writes).await? {
            Transacted::Done => Committed::Done,
            Transacted::Refused(refused) if refused.is(Part::Claim) => Committed::ClaimLost,
            Transacted::Refused(_) => Committed::Changed,
        })
    }

    /// Records the answer of a request that changes no record.
    pub async fn answer_alone(&self) -> Result<Committed, StoreError> {
        let subject = self.subject();
        let finished = self.claims.finish(self.claim, &self.answer, Some(&subject), RETENTION, self.now).await?;
        Ok(if finished { Committed::Done } else { Committed::ClaimLost })
    }

    fn subject(&self) -> AnswerSubject {
        AnswerSubject::Contact(ContactRef::new(self.coach, self.contact))
    }
}
