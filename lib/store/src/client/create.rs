//! Creation through the API: the records of a client with its seat, address and intake.

use domain::client::Client;
use domain::email::Email;
use domain::id::{ClientId, IntakeId, TeamId};
use domain::intake::IntakeState;
use domain::register::Register;
use domain::time::Timestamp;
use serde::Serialize;

use crate::claim::ClaimKey;
use crate::client::Clients;
use crate::client::item::{CreationRefs, StoredClient, intake_pk};
use crate::contact::StoredContact;
use crate::contact_ref::ContactRef;
use crate::db::{self, Part, Write, to_attribute, to_item};
use crate::welcome_mail::WelcomeMail;

/// A client to create.
pub struct NewClient<'a> {
    pub client: &'a Client,
    pub email: &'a Email,
    /// The team of the workspace when it was read.
    pub team: Option<&'a TeamId>,
    /// The welcome mail, if one is to be sent.
    pub mail: Option<WelcomeMail>,
    pub intake: &'a IntakeId,
    pub intake_token_sha256: &'a str,
    /// The contact that becomes this client.
    pub lead: Option<&'a StoredContact>,
    /// The claim of the request, which the client's erasure removes.
    pub claim: Option<ClaimKey>,
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
    /// Parts of a transaction: store a new client, under both caps. `StoredWorkspace::is_full` reads the reason of
    /// a refused seat.
    pub fn create(&self, new: NewClient<'_>, now: Timestamp) -> Vec<Write> {
        let NewClient { client, email, team, mail, intake, intake_token_sha256, lead, claim } = new;
        let (id, coach) = (&client.id, &client.coach_id);
        let lead_ref = lead.map(|lead| ContactRef::new(coach, lead.contact().id));
        let refs = CreationRefs { lead: lead_ref, claimed_at: claim.is_some().then_some(now), claim };
        let record = StoredClient::first(client.clone(), Register::by_api(now), Some(refs));
        let intake = IntakeItem {
            pk: intake_pk(id),
            intake_id: intake,
            token_sha256: intake_token_sha256,
            state: IntakeState::Issued,
            created_at: now,
        };
        let mut writes = vec![
            self.address(&email.key()).take(id.as_str()),
            self.workspaces.take_seat(coach, team, mail),
            self.table.write(to_item(&record)).when_absent().put(Part::Client),
            self.watches.create(client, now),
            self.table.write(to_item(&intake)).when_absent().put(Part::Intake),
        ];
        writes.extend(self.move_external_id(None, Some(client)));
        writes.extend(team.map(|team| self.workspaces.take_team_seat(team)));
        writes.extend(lead.map(|lead| self.contacts.link(coach, lead, id, now)));
        writes
    }

    /// Part of a transaction: sets the state of a client's intake. Refused after the client's erasure.
    pub fn set_intake(&self, client: &ClientId, state: IntakeState) -> Write {
        let intake = self.table.write(db::pk(intake_pk(client))).set("state", to_attribute(&state));
        intake.when_present().update(Part::Intake)
    }
}
