//! Creation through the API: everything in one transaction, so that there is a client with its seat, address, intake, events and
//! claim, or there is nothing.

use aws_sdk_dynamodb::types::{CancellationReason, Put, TransactWriteItem, Update};
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

use crate::claim::{About, Answer, Claim, Claims};
use crate::client::record::{Kept, Record, Traces, Versions};
use crate::client::standing::intake_pk;
use crate::client::{Clients, key};
use crate::contact::StoredContact;
use crate::contact_ref::ContactRef;
use crate::db::{StoreError, Transacted, putting, refused_at, to_attribute, to_item, updating};
use crate::outbox::Content;
use crate::welcome_mail::WelcomeMail;
use crate::workspace::{SeatRefusal, seat_refusal};

/// All that a creation writes.
pub struct NewClientWrite<'a, S> {
    pub client: &'a Client,
    pub email: &'a Email,
    /// The team that the workspace was in when it was read.
    pub team: Option<&'a TeamId>,
    /// The welcome mail, where one is to be sent.
    pub mail: Option<WelcomeMail>,
    pub intake: IntakeWrite<'a>,
    /// `new_client`, as subscribers get it and as automations send it.
    pub events: Vec<Event>,
    /// What the application learns.
    pub change: Change,
    /// Not to be told before: the welcome mail may still decide what the fact says.
    pub change_after: Timestamp,
    /// The contact that becomes this client.
    pub lead: Option<&'a StoredContact>,
    pub claim: (&'a Claims, &'a Claim, ClaimStep<'a, S>),
}

/// The new client's intake.
pub struct IntakeWrite<'a> {
    pub id: &'a IntakeId,
    pub token_sha256: &'a str,
    pub state: IntakeState,
}

/// Where the claim comes to with the transaction.
pub enum ClaimStep<'a, S> {
    /// More is to be done; a takeover goes on from here.
    Stage(&'a S),
    /// All is done.
    Answer(&'a Answer, TimeDelta),
}

/// What came of a creation.
#[derive(Debug, PartialEq, Eq)]
pub enum Created {
    Done,
    EmailTaken,
    PlanFull,
    TeamFull,
    /// Somebody else has taken over the claim.
    ClaimLost,
    /// The workspace or the lead has changed since it was read.
    Changed,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Claim,
    Email,
    Workspace,
    Team,
    Lead,
    Other,
}

#[derive(Serialize)]
struct IntakeRecord<'a> {
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
    ) -> Result<Created, StoreError> {
        let mut parts = Vec::new();
        let mut writes = Vec::new();
        for (part, write) in self.writes(new, now) {
            parts.push(part);
            writes.push(write);
        }
        match self.db.transact(&writes).await? {
            Transacted::Done => Ok(Created::Done),
            Transacted::Refused(reasons) => refusal(&parts, &reasons, new.team),
        }
    }

    fn writes<S: Serialize>(&self, new: &NewClientWrite<'_, S>, now: Timestamp) -> Vec<(Part, TransactWriteItem)> {
        let id = new.client.id.as_str();
        let coach = &new.client.coach_id;
        let fact = Content::Change(Box::new(new.change.clone()));
        let lead = new.lead.map(|lead| ContactRef::new(coach, lead.contact().id));
        let traces = Traces { lead, claim: new.claim.1.key() };
        let kept = Kept { traces: Some(traces), ..Kept::default() };
        let mut writes = vec![
            (Part::Email, self.address(&new.email.key()).take(id)),
            (Part::Workspace, self.workspaces.take_seat(coach, new.team, new.mail)),
            (Part::Other, self.put_if_new(&Record::new(new.client, now.into(), kept, Versions::FIRST))),
            (Part::Other, self.watches.create(new.client, now)),
            (Part::Other, self.put_if_new(&intake_record(&new.client.id, &new.intake, now))),
            (Part::Other, self.outbox.put(&fact, new.change_after)),
        ];
        writes.extend(self.outbox.put_events(new.events.clone(), now).map(|write| (Part::Other, write)));
        writes.extend(new.email.former_key().map(|former| (Part::Email, self.address(&former).check_free())));
        writes.extend(new.team.map(|team| (Part::Team, self.workspaces.take_team_seat(team))));
        if let Some(lead) = new.lead {
            let linked = Contact {
                client_id: Some(new.client.id.clone()),
                updated_at: lead.known.later(now),
                ..lead.contact().clone()
            };
            let updated = Content::Change(Box::new(Change::contact_updated(coach, &linked)));
            writes.push((Part::Lead, self.contacts.link(coach, lead, &new.client.id, now)));
            writes.push((Part::Other, self.outbox.put(&updated, now)));
        }
        let (claims, claim, step) = &new.claim;
        let about = About::Client(new.client.id.clone());
        let write = match step {
            ClaimStep::Stage(stage) => claims.stage(claim, stage, &about),
            ClaimStep::Answer(answer, keep) => claims.answer(claim, answer, &about, *keep, now),
        };
        writes.push((Part::Claim, write));
        writes
    }

    /// After the welcome mail: the intake's state, the application's fact with it, and the claim's answer, all at once.
    ///
    /// A fact that the schedule has sent meanwhile, or may send (its creation died), is told once more, if it is no longer true. False: the
    /// claim was taken over, and its answer is another's.
    pub async fn finish_welcome(
        &self,
        client: &ClientId,
        state: IntakeState,
        fact: &Change,
        (claims, claim, answer, keep): (&Claims, &Claim, &Answer, TimeDelta),
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let intake = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(&intake_pk(client))))
            .update_expression("SET #state = :state")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":state", to_attribute(&state));
        const INTAKE: usize = 0;
        let about = About::Client(client.clone());
        let mut writes = vec![updating(intake), claims.answer(claim, answer, &about, keep, now)];
        let release = self.outbox.release(&Content::Change(Box::new(fact.clone())), now);
        let fact_index = writes.len();
        writes.push(release);
        let mut reasons = match self.db.transact(&writes).await? {
            Transacted::Done => return Ok(true),
            Transacted::Refused(reasons) => reasons,
        };
        if refused_at(&reasons, fact_index) {
            writes.pop();
            if state == IntakeState::Sent {
                writes.push(self.outbox.put(&Content::Change(Box::new(fact.intake_sent(now))), now));
            }
            reasons = match self.db.transact(&writes).await? {
                Transacted::Done => return Ok(true),
                Transacted::Refused(reasons) => reasons,
            };
        }
        // Without an intake the client has been erased, and the claim with it: there is nobody else to answer.
        Ok(refused_at(&reasons, INTAKE))
    }

    fn put_if_new<R: Serialize>(&self, record: &R) -> TransactWriteItem {
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(record)));
        let put = put.condition_expression("attribute_not_exists(pk)");
        putting(put)
    }
}

fn intake_record<'a>(client: &ClientId, intake: &IntakeWrite<'a>, now: Timestamp) -> IntakeRecord<'a> {
    IntakeRecord {
        pk: intake_pk(client),
        intake_id: intake.id,
        token_sha256: intake.token_sha256,
        state: intake.state,
        created_at: now,
    }
}

/// The first cause in the order in which callers are told of them.
fn refusal(parts: &[Part], reasons: &[CancellationReason], team: Option<&TeamId>) -> Result<Created, StoreError> {
    let failed = |part: Part| (0..parts.len()).find(|index| parts[*index] == part && refused_at(reasons, *index));
    if failed(Part::Claim).is_some() {
        return Ok(Created::ClaimLost);
    }
    if failed(Part::Email).is_some() {
        return Ok(Created::EmailTaken);
    }
    if let Some(index) = failed(Part::Workspace) {
        return Ok(match seat_refusal(&reasons[index], team)? {
            SeatRefusal::PlanFull => Created::PlanFull,
            SeatRefusal::Changed => Created::Changed,
        });
    }
    Ok(if failed(Part::Team).is_some() { Created::TeamFull } else { Created::Changed })
}
