//! `POST /v1/clients`: an account, a client, an intake and a seat, once per idempotency key.
//!
//! Everything commits in one transaction. If the service mails the credentials, the transaction moves the claim to a
//! stage. A request that takes over after a crash finds the client created and continues with the mail. It uses the
//! client's present data, and gives no password of a client who was handed over.

use axum::extract::State;
use axum::response::Response;
use domain::account::TempPassword;
use domain::automation::{Automation, emitted_events};
use domain::change::{Change, Credential, NewIntake};
use domain::client::{Client, Origin, Phase};
use domain::client_draft::ClientDraft;
use domain::event::{Event, EventType};
use domain::id::{ClientId, IntakeId, new_uuid};
use domain::idempotency::{AnswerKind, Api, Mismatch};
use domain::intake::{IntakeState, IntakeToken};
use edge::idempotency::{ClaimedRequest, IdempotentRequest, Outcome, key_of, once};
use edge::{Inbound, Partner, Problem, Reply};
use runtime::{Metric, Unit, random_bytes};
use store::client::{ClaimStep, ClientCreation, IntakeWrite, NewClientWrite};
use store::contact::StoredContact;
use store::welcome_mail::WelcomeMail;
use store::workspace::StoredWorkspace;
use store::{StoreError, retry};

use crate::App;
use crate::welcome::{CHANGE_HOLD, Creation, Recipient, Stage, password_result};

/// Welcome mails beyond a coach's limit of the day. The limit keeps a stolen key from mailing strangers under our
/// sender.
const LIMITED_MAILS: Metric = Metric::new("welcome_mails_limited", Unit::Count);

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: Partner, ()| create_once(&app, &partner, &inbound).await;
    app.gate.partner(&inbound, async {}, work).await
}

async fn create_once(app: &App, partner: &Partner, inbound: &Inbound) -> Result<Reply, Problem> {
    let key = key_of(inbound, &partner.coach, Api::Partner)?;
    let draft = inbound.json().and_then(|body| Ok(ClientDraft::parse(body)?));
    let Some(key) = key else {
        // Without the header the e-mail is the key, so a body without an e-mail is refused.
        draft?;
        return Err(Problem::internal("create a client", "a body without an e-mail was accepted"));
    };
    let read = async {
        let draft = draft?;
        let context = CreateContext::read(app, partner, &draft).await?;
        Ok((draft, context))
    };
    let run = async |ClaimedRequest { claim, key, stage }: ClaimedRequest<Stage>, read: Result<_, Problem>| {
        let creation = Creation { app, partner, claim, key };
        match stage {
            // A committed creation is finished, whatever the payload of this request.
            Some(stage) => creation.resume(stage).await,
            None => {
                let (draft, context) = read?;
                creation.commit(&draft, context).await
            }
        }
    };
    let request = IdempotentRequest { key, mismatch: Mismatch::Replayed, payload: inbound.payload() };
    once(&app.claims, inbound, request, partner.now, read, run).await
}

/// The records that decide a creation.
struct CreateContext {
    workspace: StoredWorkspace,
    /// The contact that becomes the client.
    lead: Option<StoredContact>,
    /// The automations that send `new_client`.
    automations: Vec<Automation>,
}

impl CreateContext {
    async fn read(app: &App, partner: &Partner, draft: &ClientDraft) -> Result<Self, Problem> {
        let phone = draft.profile.phone.as_ref().and_then(|phone| phone.key(partner.country));
        let email = draft.email.key();
        let lead = app.contacts.find_lead(&partner.coach, &email, phone.as_ref(), partner.country);
        let automations = app.workspaces.automations_on(&partner.coach, &[EventType::NewClient]);
        let found = futures::future::try_join3(app.workspaces.get(&partner.coach), lead, automations).await?;
        let (workspace, lead, automations) = found;
        Ok(Self { workspace: known(workspace)?, lead, automations })
    }
}

fn known(workspace: Option<StoredWorkspace>) -> Result<StoredWorkspace, Problem> {
    workspace.ok_or_else(|| Problem::internal("create a client", "the key's workspace is missing"))
}

impl Creation<'_> {
    /// Continues after the stage of an earlier request, with the client as it is now. Since then the client may have
    /// been corrected, deactivated, handed over or erased.
    async fn resume(&self, stage: Stage) -> Result<Outcome, Problem> {
        let Self { app, partner, .. } = self;
        let found = futures::future::try_join(app.workspaces.get(&partner.coach), app.clients.get(&stage.client_id));
        let (workspace, stored) = found.await?;
        let workspace = known(workspace)?.workspace;
        match stored.map(|stored| stored.client).filter(|client| client.coach_id == partner.coach) {
            Some(client) => {
                let email = client.profile.email.as_ref().filter(|_| client.is_active);
                let recipient = email.map_or(Recipient::Caller, Recipient::Client);
                self.welcome(&workspace, &stage.of_client(&client), recipient).await
            }
            None => self.welcome(&workspace, &stage, Recipient::Nobody).await,
        }
    }

    /// Creates the client. Reads and decides again after each conflict with another write.
    async fn commit(&self, draft: &ClientDraft, context: CreateContext) -> Result<Outcome, Problem> {
        let new = &NewClient::make(self.partner, draft);
        let mut read = Some(context);
        retry("a workspace", || {
            let read = read.take();
            async move {
                let context = match read {
                    Some(context) => context,
                    None => CreateContext::read(self.app, self.partner, draft).await?,
                };
                self.commit_once(new, draft, &context).await
            }
        })
        .await
    }

    /// Tries to create the client once. `None` if the workspace or the lead has changed since the read.
    async fn commit_once(
        &self,
        new: &NewClient,
        draft: &ClientDraft,
        context: &CreateContext,
    ) -> Result<Option<Outcome>, Problem> {
        let workspace = &context.workspace.workspace;
        let answer = password_result(&new.stage, workspace)?;
        let recorded = answer.to_answer();
        let mail = self.welcome_mail(draft, &context.workspace);
        let step = match mail {
            Some(_) => ClaimStep::Stage(&new.stage),
            None => ClaimStep::Answer(&recorded, self.key.retention(AnswerKind::Password)),
        };
        match self.write(new, draft, context, mail, step).await? {
            ClientCreation::Done if mail.is_some() => {
                self.welcome(workspace, &new.stage, Recipient::Client(&draft.email)).await.map(Some)
            }
            ClientCreation::Done => {
                if draft.send_welcome && draft.email.mailbox().is_some() {
                    runtime::add(LIMITED_MAILS, 1.0);
                    tracing::warn!(
                        coach_id = self.partner.coach.as_str(),
                        "the coach's daily limit of welcome mails is reached"
                    );
                }
                Ok(Some(Outcome::Answered(answer)))
            }
            ClientCreation::EmailTaken => Err(Problem::EmailTaken),
            ClientCreation::PlanFull => Err(Problem::PlanFull),
            ClientCreation::TeamFull => Err(Problem::TeamFull),
            ClientCreation::ClaimLost => Ok(Some(Outcome::ClaimLost)),
            ClientCreation::Changed => Ok(None),
        }
    }

    /// The welcome mail, if the request asks for one, the address can receive mail, and the coach's daily limit allows
    /// it. `None` leads to the answer of a failed mail.
    fn welcome_mail(&self, draft: &ClientDraft, workspace: &StoredWorkspace) -> Option<WelcomeMail> {
        if !draft.send_welcome || draft.email.mailbox().is_none() {
            return None;
        }
        workspace.mails.one_more(self.partner.now.utc().date_naive(), self.app.mails_per_day)
    }

    async fn write(
        &self,
        new: &NewClient,
        draft: &ClientDraft,
        context: &CreateContext,
        mail: Option<WelcomeMail>,
        step: ClaimStep<'_, Stage>,
    ) -> Result<ClientCreation, StoreError> {
        let now = new.client.created_at;
        let sha256 = new.token.sha256();
        let write = NewClientWrite {
            client: &new.client,
            email: &draft.email,
            team: context.workspace.workspace.team_id.as_ref(),
            mail,
            intake: IntakeWrite { id: &new.intake_id, token_sha256: &sha256, state: IntakeState::Issued },
            events: emitted_events(Event::new_client(&new.client, now), &context.automations),
            change: new.change.clone(),
            change_after: if mail.is_some() { now + CHANGE_HOLD } else { now },
            lead: context.lead.as_ref(),
            claims: &self.app.claims,
            claim: &self.claim,
            step,
        };
        self.app.clients.create(&write, now).await
    }
}

/// A client that is about to be created.
struct NewClient {
    client: Client,
    token: IntakeToken,
    intake_id: IntakeId,
    change: Change,
    stage: Stage,
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
        let stage = Stage {
            client_id: client.id.clone(),
            email: draft.email.clone(),
            full_name: client.profile.full_name.clone(),
            password: password.expose().to_owned(),
            intake_token: token.expose().to_owned(),
            change: change.clone(),
        };
        Self { client, token, intake_id, change, stage }
    }
}
