//! Creation through the API. One transaction stores the client with its seat, address, intake, events and claim, or
//! nothing.

use chrono::TimeDelta;
use domain::change::Change;
use domain::client::Client;
use domain::contact::Contact;
use domain::email::Email;
use domain::event::Event;
use domain::id::{ClientId, IntakeId, TeamId};
use domain::intake::IntakeState;
use domain::time::Timestamp;
use serde::Serialize;

use crate::claim::{Answer, AnswerSubject, Claim, Claims};
use crate::client::Clients;
use crate::client::item::{ClientItem, CreationRefs, intake_pk};
use crate::contact::StoredContact;
use crate::contact_ref::ContactRef;
use crate::db::{self, Part, RefusedTransaction, StoreError, Transacted, Write, to_attribute, to_item};
use crate::outbox::Content;
use crate::welcome_mail::WelcomeMail;
use crate::workspace::{SeatRefusal, seat_refusal};

/// The parts of a creation.
pub struct NewClientWrite<'a, S> {
    pub client: &'a Client,
    pub email: &'a Email,
    /// The team of the workspace when it was read.
    pub team: Option<&'a TeamId>,
    /// The welcome mail, if one is to be sent.
    pub mail: Option<WelcomeMail>,
    pub intake: IntakeWrite<'a>,
    /// The event `new_client`, for subscribed endpoints and for automations.
    pub events: Vec<Event>,
    /// The change that the application learns of.
    pub change: Change,
    /// The relay publishes the change no earlier: until then the welcome mail may change its content.
    pub change_after: Timestamp,
    /// The contact that becomes this client.
    pub lead: Option<&'a StoredContact>,
    pub claims: &'a Claims,
    pub claim: &'a Claim,
    pub step: ClaimStep<'a, S>,
}

/// The new client's intake.
pub struct IntakeWrite<'a> {
    pub id: &'a IntakeId,
    pub token_sha256: &'a str,
    pub state: IntakeState,
}

/// The parts of the transaction that ends a welcome.
pub struct WelcomeWrite<'a> {
    pub client: &'a ClientId,
    pub state: IntakeState,
    /// The change that the application learns of.
    pub change: &'a Change,
    pub claims: &'a Claims,
    pub claim: &'a Claim,
    pub answer: &'a Answer,
    /// The time for which the answer is replayed.
    pub keep: TimeDelta,
}

/// The state of the claim after the transaction.
pub enum ClaimStep<'a, S> {
    /// A stage before the end. A takeover continues from it.
    Stage(&'a S),
    /// The answer, and the time for which it is replayed.
    Answer(&'a Answer, TimeDelta),
}

/// The result of a creation.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientCreation {
    Done,
    EmailTaken,
    PlanFull,
    TeamFull,
    /// Another request has taken over the claim.
    ClaimLost,
    /// The workspace or the lead has changed since it was read.
    Changed,
}

#[derive(Serialize)]
struct IntakeItem<'a> {
    pk: String,
    intake_id: &'a IntakeId,
    token_sha256: &'a str,
    state: IntakeState,
    created_at: Timestamp,
}

impl Clients {
    /// Creates a client.
    pub async fn create<S: Serialize>(
        &self,
        new: &NewClientWrite<'_, S>,
        now: Timestamp,
    ) -> Result<ClientCreation, StoreError> {
        match self.table.db.transact(&self.writes(new, now)).await? {
            Transacted::Done => Ok(ClientCreation::Done),
            Transacted::Refused(refused) => refusal(&refused, new.team),
        }
    }

    fn writes<S: Serialize>(&self, new: &NewClientWrite<'_, S>, now: Timestamp) -> Vec<Write> {
        let id = new.client.id.as_str();
        let coach = &new.client.coach_id;
        let change = Content::Change(Box::new(new.change.clone()));
        let lead = new.lead.map(|lead| ContactRef::new(coach, lead.contact().id));
        let refs = CreationRefs { lead, claim: Some(new.claim.key()) };
        let record = ClientItem::first(new.client.clone(), now.into(), Some(refs));
        let intake = IntakeItem {
            pk: intake_pk(&new.client.id),
            intake_id: new.intake.id,
            token_sha256: new.intake.token_sha256,
            state: new.intake.state,
            created_at: now,
        };
        let mut writes = vec![
            self.address(&new.email.key()).take(id),
            self.workspaces.take_seat(coach, new.team, new.mail),
            self.table.write(to_item(&record)).when_absent().put(Part::Client),
            self.watches.create(new.client, now),
            self.table.write(to_item(&intake)).when_absent().put(Part::Intake),
            self.outbox.put(&change, new.change_after),
        ];
        writes.extend(self.outbox.put_events(new.events.clone(), now));
        writes.extend(new.team.map(|team| self.workspaces.take_team_seat(team)));
        if let Some(lead) = new.lead {
            let linked = Contact {
                client_id: Some(new.client.id.clone()),
                updated_at: lead.known.later(now),
                ..lead.contact().clone()
            };
            let updated = Content::Change(Box::new(Change::contact_updated(coach, &linked)));
            writes.push(self.contacts.link(coach, lead, &new.client.id, now));
            writes.push(self.outbox.put(&updated, now));
        }
        let subject = AnswerSubject::Client(new.client.id.clone());
        writes.push(match &new.step {
            ClaimStep::Stage(stage) => new.claims.stage(new.claim, stage, &subject),
            ClaimStep::Answer(answer, keep) => new.claims.answer(new.claim, answer, &subject, *keep, now),
        });
        writes
    }

    /// Ends a welcome in one transaction: the intake's state, the change with it, and the claim's answer.
    ///
    /// If the relay may have published the change already, and the change is no longer true, it is emitted again.
    /// Returns false if the claim was taken over.
    pub async fn finish_welcome(&self, end: &WelcomeWrite<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let WelcomeWrite { client, state, change, claims, claim, answer, keep } = *end;
        let intake = self.table.write(db::pk(intake_pk(client))).set("state", to_attribute(&state)).when_present();
        let subject = AnswerSubject::Client(client.clone());
        let own = [intake.update(Part::Intake), claims.answer(claim, answer, &subject, keep, now)];
        let mut writes = own.to_vec();
        writes.push(self.outbox.release(&Content::Change(Box::new(change.clone())), now));
        let mut transacted = self.table.db.transact(&writes).await?;
        if matches!(&transacted, Transacted::Refused(refused) if refused.is(Part::Outbox)) {
            writes = own.to_vec();
            if state == IntakeState::Sent {
                writes.push(self.outbox.put(&Content::Change(Box::new(change.intake_sent(now))), now));
            }
            transacted = self.table.db.transact(&writes).await?;
        }
        Ok(match transacted {
            Transacted::Done => true,
            // A missing intake shows that the client was erased, and its claim with it: no other request answers.
            Transacted::Refused(refused) => refused.is(Part::Intake),
        })
    }
}

/// The first cause of a refusal, in the order in which causes are reported to callers.
fn refusal(refused: &RefusedTransaction, team: Option<&TeamId>) -> Result<ClientCreation, StoreError> {
    if refused.is(Part::Claim) {
        return Ok(ClientCreation::ClaimLost);
    }
    if refused.is(Part::Address) {
        return Ok(ClientCreation::EmailTaken);
    }
    if refused.is(Part::Workspace) {
        return Ok(match seat_refusal(refused.item(Part::Workspace), team)? {
            SeatRefusal::PlanFull => ClientCreation::PlanFull,
            SeatRefusal::Changed => ClientCreation::Changed,
        });
    }
    Ok(if refused.is(Part::Team) { ClientCreation::TeamFull } else { ClientCreation::Changed })
}
