//! `POST /v1/clients`: an account, a client, an intake and a seat, once per idempotency key.
//!
//! Everything commits in one transaction. When the service mails the credentials, the claim goes through a stage first: whoever
//! takes over after a crash finds the client made and goes on with the mail.

use axum::extract::State;
use axum::response::Response;
use domain::account::TempPassword;
use domain::api_key::Scope;
use domain::automation::{Automation, told};
use domain::change::{Change, Credential, NewIntake};
use domain::client::{Client, Origin, Phase};
use domain::client_draft::ClientDraft;
use domain::event::{Event, EventType};
use domain::id::{ClientId, IntakeId, new_uuid};
use domain::idempotency::Mismatch;
use domain::intake::{IntakeState, IntakeToken};
use edge::idempotency::{Repeat, Ticket, key_of, once};
use edge::{Inbound, Partner, Problem, Reply};
use runtime::{Metric, Unit, random_bytes};
use serde_json::Value;
use store::client::{ClaimStep, Created, IntakeWrite, NewClientWrite};
use store::contact::StoredContact;
use store::welcome_mail::WelcomeMail;
use store::workspace::StoredWorkspace;
use store::{MAX_ROUNDS, StoreError, stand_back};

use crate::App;
use crate::welcome::{FACT_HOLD, Recipient, Stage, password_result, welcome};

/// Welcome mails beyond a coach's limit of the day. The limit keeps a stolen key from mailing strangers under our
/// sender.
const LIMITED_MAILS: Metric = Metric::new("welcome_mails_limited", Unit::Count);

/// What a creation reads before it writes: the workspace, who the new client has been so far, and what it sets off.
type Surroundings = (Option<StoredWorkspace>, Option<StoredContact>, Vec<Automation>);

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let admission = app.gate.partner(&inbound).await;
    let work = async |partner: Partner, ()| {
        let key = key_of(&inbound, &partner.coach, Scope::Partner)?;
        let draft = inbound.json().and_then(|body: Value| Ok(ClientDraft::parse(&body)?));
        let readable = draft.as_ref().ok().cloned();
        let read = async {
            match &readable {
                Some(draft) => surroundings(&app, &partner, draft).await,
                None => Ok((None, None, Vec::new())),
            }
        };
        let work = async |ticket: Option<Ticket<Stage>>, read: Result<Surroundings, StoreError>| {
            // What has been committed is finished, whatever this request says.
            if let Some(ticket) = ticket.as_ref().filter(|ticket| ticket.stage.is_some()) {
                return go_on(&app, &partner, ticket).await;
            }
            let draft = draft?;
            // A body that reads has an e-mail, and so a key.
            let ticket = ticket.ok_or_else(|| Problem::internal("create a client", "there is no claim"))?;
            settle(&app, &partner, &draft, ticket, read?).await
        };
        let repeat = Repeat { key, mismatch: Mismatch::Replayed, payload: inbound.payload() };
        once(&app.claims, &inbound, repeat, partner.now, read, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn surroundings(app: &App, partner: &Partner, draft: &ClientDraft) -> Result<Surroundings, StoreError> {
    let phone = draft.profile.phone.as_ref().and_then(|phone| phone.key(partner.country));
    let email = draft.email.key();
    let lead = app.contacts.find_lead(&partner.coach, &email, phone.as_ref(), partner.country);
    let automations = app.workspaces.automations_on(&partner.coach, &[EventType::NewClient]);
    futures::future::try_join3(app.workspaces.get(&partner.coach), lead, automations).await
}

/// Goes on where an earlier request got to, with the client as it is by now: its address may have been corrected, it may have been switched
/// off, handed over to another coach, or erased.
async fn go_on(app: &App, partner: &Partner, ticket: &Ticket<Stage>) -> Result<Reply, Problem> {
    let stage = ticket.stage.as_ref().ok_or_else(|| Problem::internal("create a client", "there is no stage"))?;
    let found = futures::future::try_join(app.workspaces.get(&partner.coach), app.clients.get(stage.client_id()));
    let (workspace, stored) = found.await?;
    let read = (workspace, None, Vec::new());
    let workspace = &workspace_of(&read)?.workspace;
    match stored.map(|stored| stored.client).filter(|client| client.coach_id == partner.coach) {
        Some(client) => {
            let stage = stage.of_client(&client);
            let email = client.profile.email.as_ref().filter(|_| client.is_active);
            let recipient = email.map_or(Recipient::Caller, Recipient::Client);
            welcome(app, partner, workspace, (ticket, &stage), recipient).await
        }
        None => welcome(app, partner, workspace, (ticket, stage), Recipient::Nobody).await,
    }
}

async fn settle(
    app: &App,
    partner: &Partner,
    draft: &ClientDraft,
    ticket: Ticket<Stage>,
    read: Surroundings,
) -> Result<Reply, Problem> {
    let mut read = read;
    let new = NewClient::make(partner, draft);
    for round in 0..MAX_ROUNDS {
        let workspace = workspace_of(&read)?;
        let stage = new.stage(draft);
        let answer = password_result(&stage, &workspace.workspace)?;
        let recorded = answer.to_answer();
        let keep = ticket.key.retention(recorded.status, true).unwrap_or_default();
        let mail = welcome_mail(app, partner, draft, workspace);
        let step = if mail.is_some() { ClaimStep::Stage(&stage) } else { ClaimStep::Answer(&recorded, keep) };
        match new.write(app, (draft, mail), (workspace, &read), (&ticket, step)).await? {
            Created::Done if mail.is_some() => {
                return welcome(app, partner, &workspace.workspace, (&ticket, &stage), Recipient::Client(&draft.email))
                    .await;
            }
            Created::Done => {
                if draft.send_welcome && draft.email.mailbox().is_some() {
                    runtime::add(LIMITED_MAILS, 1.0);
                    tracing::warn!(
                        coach_id = partner.coach.as_str(),
                        "the coach's welcome mails of the day are used up"
                    );
                }
                return Ok(answer);
            }
            Created::EmailTaken => return Err(Problem::EmailTaken),
            Created::PlanFull => return Err(Problem::PlanFull),
            Created::TeamFull => return Err(Problem::TeamFull),
            Created::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Created::Changed => {
                // Before it is read anew, not between that and the write.
                stand_back(round + 1).await;
                read = surroundings(app, partner, draft).await?;
            }
        }
    }
    Err(StoreError::kept_changing("a workspace").into())
}

/// The welcome mail, where one is asked for, can go to the address, and is within the coach's limit of the day.
/// Otherwise the answer is as after a failed send.
fn welcome_mail(app: &App, partner: &Partner, draft: &ClientDraft, workspace: &StoredWorkspace) -> Option<WelcomeMail> {
    if !draft.send_welcome || draft.email.mailbox().is_none() {
        return None;
    }
    workspace.welcome_mail(partner.now.utc().date_naive(), app.mails_per_day)
}

fn workspace_of(read: &Surroundings) -> Result<&StoredWorkspace, Problem> {
    read.0.as_ref().ok_or_else(|| Problem::internal("create a client", "the key's workspace is missing"))
}

/// A client that is about to be.
struct NewClient {
    client: Client,
    password: TempPassword,
    token: IntakeToken,
    intake_id: IntakeId,
    change: Change,
}

impl NewClient {
    fn make(partner: &Partner, draft: &ClientDraft) -> Self {
        let now = partner.now;
        let client = Client {
            id: ClientId::from_uuid(new_uuid(now.ms(), random_bytes())),
            coach_id: partner.coach.clone(),
            profile: draft.profile.clone(),
            is_active: true,
            phase: Phase::default(),
            created_at: now,
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        };
        let password = TempPassword::generate(&random_bytes());
        let token = IntakeToken::new(&random_bytes());
        let intake_id = IntakeId::from_uuid(new_uuid(now.ms(), random_bytes()));
        let credential = Credential::temporary(password.hash(random_bytes()));
        let intake = NewIntake { id: intake_id.clone(), state: IntakeState::Issued, token_sha256: token.sha256() };
        let change = Change::client_created(&client, credential, intake);
        Self { client, password, token, intake_id, change }
    }

    fn stage(&self, draft: &ClientDraft) -> Stage {
        Stage::new(&self.client, &draft.email, &self.password, &self.token, &self.change)
    }

    async fn write(
        &self,
        app: &App,
        (draft, mail): (&ClientDraft, Option<WelcomeMail>),
        (workspace, (_, lead, automations)): (&StoredWorkspace, &Surroundings),
        (ticket, step): (&Ticket<Stage>, ClaimStep<'_, Stage>),
    ) -> Result<Created, StoreError> {
        let now = self.client.created_at;
        let sha256 = self.token.sha256();
        let new = NewClientWrite {
            client: &self.client,
            email: &draft.email,
            team: workspace.workspace.team_id.as_ref(),
            mail,
            intake: IntakeWrite { id: &self.intake_id, token_sha256: &sha256, state: IntakeState::Issued },
            events: told(Event::new_client(&self.client, now), automations),
            change: self.change.clone(),
            change_after: if mail.is_some() { now + FACT_HOLD } else { now },
            lead: lead.as_ref(),
            claims: &app.claims,
            claim: &ticket.claim,
            step,
        };
        app.clients.create(&new, now).await
    }
}
