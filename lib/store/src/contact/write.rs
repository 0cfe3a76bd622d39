//! What the API writes: a contact is made or changed together with the fact that tells of it and the answer under the request's key.

use domain::contact::KnownContact;
use domain::id::CoachId;
use domain::outgoing::OutgoingFact;
use domain::time::Timestamp;

use super::Contacts;
use super::record::StoredContact;
use crate::claim::{Answer, Claim, Claims};
use crate::contact_ref::ContactRef;
use crate::db::{StoreError, Transacted, refused_at, stand_back};
use crate::outbox::{Content, Outbox};

/// What goes with a write: the tables that tell of it, and the answer to the request.
pub struct Telling<'a> {
    pub outbox: &'a Outbox,
    pub claims: &'a Claims,
    pub claim: &'a Claim,
    pub answer: &'a Answer,
}

/// What came of a creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Done,
    /// Another contact has taken the address in the meantime.
    EmailTaken,
    /// Somebody else has taken over the claim.
    ClaimLost,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// The contact is no longer as it was read.
    Moved,
    /// Somebody else has taken over the claim.
    ClaimLost,
}

impl Contacts {
    /// Stores a contact that the API makes. Its address is the lock: of all who take it at once one is done.
    pub async fn create(
        &self,
        coach: &CoachId,
        known: &KnownContact,
        telling: &Telling<'_>,
        now: Timestamp,
    ) -> Result<Created, StoreError> {
        const CLAIM: usize = 0;
        let record = StoredContact::first(coach, known.clone(), None);
        let id = known.contact.id;
        let about = ContactRef::new(coach, id);
        let fact = OutgoingFact::contact_created(coach, &known.contact);
        let [email, _] = record.addresses();
        let mut writes = vec![
            telling.claims.answer_about(telling.claim, telling.answer, &about, now),
            telling.outbox.put(&Content::Fact(Box::new(fact)), now),
            self.put(&record, None),
        ];
        writes.extend(email.map(|email| self.address(coach, &email).take(&id.to_string())));
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Created::Done,
            Transacted::Refused(reasons) if refused_at(&reasons, CLAIM) => Created::ClaimLost,
            Transacted::Refused(_) => Created::EmailTaken,
        })
    }

    /// Stores what the API makes of a contact that was read. A change that shows is told; one that only says anew what holds is not.
    pub async fn change(
        &self,
        coach: &CoachId,
        found: &StoredContact,
        changed: &KnownContact,
        telling: &Telling<'_>,
        now: Timestamp,
    ) -> Result<Changed, StoreError> {
        const CLAIM: usize = 0;
        let about = ContactRef::new(coach, changed.contact.id);
        let mut writes = vec![
            telling.claims.answer_about(telling.claim, telling.answer, &about, now),
            self.put(&found.changed(changed.clone()), Some(found.version)),
        ];
        if changed.contact != *found.contact() {
            let fact = OutgoingFact::contact_updated(coach, &changed.contact);
            writes.push(telling.outbox.put(&Content::Fact(Box::new(fact)), now));
        }
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Changed::Done,
            Transacted::Refused(reasons) if refused_at(&reasons, CLAIM) => Changed::ClaimLost,
            Transacted::Refused(_) => {
                // Those who met do not meet again at once.
                stand_back(1).await;
                Changed::Moved
            }
        })
    }
}
