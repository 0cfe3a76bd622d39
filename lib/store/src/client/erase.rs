//! Erasure: the record, the address, the intake, the seat, the contact that the client was, and what was still to be told go at once. A
//! tombstone stays, with ids and dates alone, so that no fact that comes late brings anything back.

use aws_sdk_dynamodb::types::Delete;
use domain::change::Change;
use domain::client::{Client, Origin};
use domain::event::Event;
use domain::fact_time::FactTime;
use domain::id::ClientId;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::feed::Seats;
use super::record::{Record, Traces};
use super::standing::{client_pk, intake_pk};
use super::{Clients, Standing, key};
use crate::audit;
use crate::claim::ClaimKey;
use crate::contact_ref::ContactRef;
use crate::db::{Ask, Part, StoreError, Write, from_item, retry, to_item, write};

/// What is left to erase elsewhere.
#[derive(Debug, Clone)]
pub struct Erased {
    /// The claim that holds the creation's answer.
    pub claim: Option<ClaimKey>,
    /// The contact that the client was when it was made.
    pub lead: Option<ContactRef>,
}

impl Erased {
    const NOTHING: Self = Self { claim: None, lead: None };

    fn of(traces: Option<&Traces>) -> Self {
        let Some(traces) = traces else { return Self::NOTHING };
        Self { claim: Some(traces.claim.clone()), lead: traces.lead.clone() }
    }
}

#[derive(Serialize, Deserialize)]
struct Tombstone {
    pk: String,
    erased_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<ClaimKey>,
    /// Ids alone. Each pass of the erasure goes over what there is about the contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lead: Option<ContactRef>,
}

impl Clients {
    /// Erases a client, whether or not it has been seen. To do it again finds it done.
    pub async fn erase(&self, id: &ClientId, said_at: FactTime, now: Timestamp) -> Result<Erased, StoreError> {
        retry("the client", || async {
            let (writes, left) = match self.lookup.find(id).await? {
                Standing::Erased => return self.erased(id).await.map(Some),
                Standing::Unknown => (vec![self.put_tombstone(id, &Erased::NOTHING, None, now)], Erased::NOTHING),
                Standing::Known(record) => {
                    let left = Erased::of(record.traces.as_ref());
                    (self.erasure(*record, &left, said_at, now).await?, left)
                }
            };
            Ok(self.db.transact(&writes).await?.is_done().then_some(left))
        })
        .await
    }

    async fn erased(&self, id: &ClientId) -> Result<Erased, StoreError> {
        let Some(item) = self.lookup.item(&client_pk(id)).await? else { return Ok(Erased::NOTHING) };
        let Tombstone { claim, lead, .. } = from_item("tombstone", item)?;
        Ok(Erased { claim, lead })
    }

    /// The claim is gone as well: its key, which was made of an address, goes from the tombstone.
    pub async fn forget_claim(&self, id: &ClientId) -> Result<(), StoreError> {
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key(&client_pk(id))));
            update.update_expression("REMOVE claim").condition_expression("attribute_exists(erased_at)").ask()
        });
        written.await?;
        Ok(())
    }

    async fn erasure(
        &self,
        record: Record,
        left: &Erased,
        said_at: FactTime,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let version = record.version;
        let client = record.into_client();
        let mut writes = vec![self.put_tombstone(&client.id, left, Some(version), now)];
        let workspace = self.workspaces.get(&client.coach_id).await?;
        if let Some(workspace) = &workspace {
            let mut seats = Seats::default();
            seats.add(workspace, -1, -i64::from(client.is_active));
            writes.extend(self.seat_writes(&seats));
        }
        if let Some(email) = &client.profile.email {
            writes.extend(self.leave_address(email, &client.id).await?);
        }
        writes.push(self.watches.delete(&client.id));
        writes.extend(self.untold(&client));
        let intake = Delete::builder().table_name(&self.table).set_key(Some(key(&intake_pk(&client.id))));
        writes.push(Part::Intake.delete(intake));
        if let Some(lead) = &left.lead {
            writes.extend(self.contacts.erasure(lead, &client.id, &self.outbox, said_at).await?);
        }
        let trail = audit::record(self.workspaces.table(), &client.coach_id, "client.erased", client.id.as_str(), now);
        writes.push(trail);
        Ok(writes)
    }

    /// What a creation through the API may not have told yet.
    fn untold(&self, client: &Client) -> Vec<Write> {
        if client.origin != Origin::PartnerApi {
            return Vec::new();
        }
        let event = Event::new_client(client, client.created_at).id;
        let fact = Change::client_created_id(client);
        let again = Change::intake_sent_id(&fact);
        [event.as_str(), fact.as_str(), again.as_str()].map(|id| self.outbox.remove(id)).into()
    }

    fn put_tombstone(&self, id: &ClientId, left: &Erased, version: Option<u64>, now: Timestamp) -> Write {
        let Erased { claim, lead } = left.clone();
        let tombstone = Tombstone { pk: client_pk(id), erased_at: now, claim, lead };
        Part::Client.put_over(&self.table, to_item(&tombstone), version)
    }
}
