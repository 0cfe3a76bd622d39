//! `POST /v1/clients`: an account, a client, an intake and a seat, once per idempotency key.
//!
//! Everything commits in one transaction. If the service mails the credentials, the transaction moves the claim to a
//! stage. A request that takes over after a crash finds the client created and continues with the mail (module
//! `welcome`).

use domain::account::{PASSWORD_RANDOM_BYTES, SALT_BYTES, TempPassword};
use domain::automation::{Automation, emitted_events};
use domain::change::{Change, Credential, NewIntake};
use domain::client::{Client, Origin, Phase};
use domain::client_draft::ClientDraft;
use domain::contact::Contact;
use domain::event::{Event, EventType};
use domain::id::{ClientId, IntakeId, new_uuid};
use domain::intake::{INTAKE_TOKEN_BYTES, IntakeState, IntakeToken};
use domain::workspace::Workspace;
use edge::command::Recorder;
use edge::idempotency::{Stage, key_of};
use edge::{About, Command, Decision, Inbound, Partner, Problem, Reply};
use futures::future::{try_join, try_join3};
use runtime::{Metric, Unit, random_bytes};
use store::claim::ClaimKey;
use store::contact::StoredContact;
use store::welcome_mail::WelcomeMail;
use store::workspace::StoredWorkspace;
use store::{Part, RefusedTransaction};

use crate::App;
use crate::welcome::{CHANGE_HOLD, Recipient, WelcomeStage, welcome};

/// Welcome mails beyond a coach's limit of the day. The limit keeps a stolen key from mailing strangers under our
/// sender.
const LIMITED_MAILS: Metric = Metric::new("welcome_mails_limited", Unit::Count);

pub(crate) struct Create;

/// The client that a request describes, and the records that decide its creation.
pub(crate) struct CreateRead {
    draft: ClientDraft,
    /// The claim under which the request runs.
    claim: Option<ClaimKey>,
    workspace: StoredWorkspace,
    /// The contact that becomes the client.
    lead: Option<StoredContact>,
    /// The automations that send `new_client`.
    automations: Vec<Automation>,
    random: Random,
}

/// The random parts of a new client.
struct Random {
    client: [u8; 10],
    intake: [u8; 10],
    token: [u8; INTAKE_TOKEN_BYTES],
    password: [u8; PASSWORD_RANDOM_BYTES],
    salt: [u8; SALT_BYTES],
}

impl Random {
    fn draw() -> Self {
        let (client, intake, token) = (random_bytes(), random_bytes(), random_bytes());
        Self { client, intake, token, password: random_bytes(), salt: random_bytes() }
    }
}

impl Command for Create {
    type App = App;
    type Caller = Partner;
    type Snapshot = CreateRead;

    async fn read(app: &App, partner: &Partner, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let draft = ClientDraft::parse(inbound.json()?)?;
        let claim = key_of(inbound, partner)?.as_ref().map(ClaimKey::of);
        let phone = draft.profile.phone.as_ref().and_then(|phone| phone.key(partner.country));
        let email = draft.email.key();
        let lead = app.contacts.find_lead(&partner.coach, &email, phone.as_ref(), partner.country);
        let automations = app.workspaces.automations_on(&partner.coach, &[EventType::NewClient]);
        let found = try_join3(app.workspaces.get(&partner.coach), lead, automations).await?;
        let (workspace, lead, automations) = found;
        Ok(CreateRead { draft, claim, workspace: known(workspace)?, lead, automations, random: Random::draw() })
    }

    fn decide(app: &App, partner: &Partner, found: &CreateRead) -> Result<Decision, Problem> {
        let CreateRead { draft, claim, .. } = found;
        let now = partner.now;
        let workspace = &found.workspace.workspace;
        let new = NewClient::make(partner, draft, &found.random);
        let mail = welcome_mail(app, partner, found);
        let stage = new.stage(draft, workspace);
        let about = About::Client(&new.client.id);
        let (decision, change_after) = match mail {
            Some(_) => (Decision::stage(about, &stage)?, now + CHANGE_HOLD),
            None => (Decision::password(about, Reply::created(&stage.result_with_password())?), now),
        };
        let linked = found.lead.as_ref().map(|lead| Contact {
            client_id: Some(new.client.id.clone()),
            updated_at: lead.known.later(now),
            ..lead.contact().clone()
        });
        let lead_event = found.lead.as_ref().zip(linked.as_ref()).filter(|_| workspace.entitlements.pro_crm);
        let lead_event =
            lead_event.and_then(|(lead, linked)| Event::contact_updated(&partner.coach, lead.contact(), linked));
        let creation = store::client::NewClient {
            client: &new.client,
            email: &draft.email,
            team: workspace.team_id.as_ref(),
            mail,
            intake: &new.intake_id,
            intake_token_sha256: &new.token.sha256(),
            lead: found.lead.as_ref(),
            claim: claim.clone(),
        };
        Ok(decision
            .write(app.clients.create(creation, now))
            .with(|unit| unit.held_change(new.change.clone(), change_after))
            .events(emitted_events(Event::new_client(&new.client, now), &found.automations))
            .events(lead_event)
            .change(
                linked.zip(found.lead.as_ref()).map(|(contact, lead)| {
                    Change::contact_updated(&partner.coach, &contact, lead.known.write_time(now))
                }),
            ))
    }

    async fn refused(_: &App, _: &Partner, found: &CreateRead, refused: &RefusedTransaction) -> Result<(), Problem> {
        // The order in which causes are reported to callers.
        if refused.is(Part::Address) {
            return Err(Problem::EmailTaken);
        }
        if refused.is(Part::ExternalId) {
            return Err(Problem::ExternalIdTaken);
        }
        if refused.is(Part::Workspace) {
            return if found.workspace.is_full(refused)? { Err(Problem::PlanFull) } else { Ok(()) };
        }
        if refused.is(Part::Team) { Err(Problem::TeamFull) } else { Ok(()) }
    }

    async fn committed(app: &App, partner: &Partner, found: &CreateRead, reply: Reply) -> Reply {
        if wants_mail(&found.draft) && welcome_mail(app, partner, found).is_none() {
            runtime::add(LIMITED_MAILS, 1.0);
            let coach_id = partner.coach.as_str();
            tracing::warn!(coach_id, "the coach's daily limit of welcome mails is reached");
        }
        reply
    }

    /// Takes the client as it is now. Since the stage the client may have been corrected, deactivated, handed over or
    /// erased.
    async fn resume(app: &App, partner: &Partner, stage: Stage) -> Result<Stage, Problem> {
        let stage: WelcomeStage = stage.parse()?;
        let found = try_join(app.workspaces.get(&partner.coach), app.clients.get(&stage.client_id)).await?;
        let (workspace, stored) = found;
        let client = stored.map(|stored| stored.client).filter(|client| client.coach_id == partner.coach);
        Stage::of(&stage.brought_up_to_date(client.as_ref(), &known(workspace)?.workspace))
    }

    async fn finish(app: &App, partner: &Partner, stage: Stage, recorder: Recorder<'_>) -> Result<Reply, Problem> {
        welcome(app, stage.parse()?, recorder, partner.now).await
    }
}

/// The welcome mail, if the request asks for one, the address can receive mail, and the coach's daily limit allows it.
/// `None` leads to the answer of a failed mail.
fn welcome_mail(app: &App, partner: &Partner, found: &CreateRead) -> Option<WelcomeMail> {
    let today = partner.now.utc().date_naive();
    let mail = || found.workspace.mails.one_more(today, app.mails_per_day);
    wants_mail(&found.draft).then(mail).flatten()
}

fn wants_mail(draft: &ClientDraft) -> bool {
    draft.send_welcome && draft.email.mailbox().is_some()
}

fn known(workspace: Option<StoredWorkspace>) -> Result<StoredWorkspace, Problem> {
    workspace.ok_or_else(|| Problem::internal("create a client", "the key's workspace is missing"))
}

/// A client that is about to be created.
struct NewClient {
    client: Client,
    password: TempPassword,
    token: IntakeToken,
    intake_id: IntakeId,
    change: Change,
}

impl NewClient {
    fn make(partner: &Partner, draft: &ClientDraft, random: &Random) -> Self {
        let now = partner.now;
        let client = Client {
            id: ClientId::from_uuid(new_uuid(now.ms(), random.client)),
            coach_id: partner.coach.clone(),
            profile: draft.profile.clone(),
            is_active: true,
            phase: Phase::default(),
            created_at: now,
            updated_at: now,
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        };
        let password = TempPassword::generate(&random.password);
        let token = IntakeToken::new(&random.token);
        let intake_id = IntakeId::from_uuid(new_uuid(now.ms(), random.intake));
        let credential = Credential::temporary(password.hash(random.salt));
        let intake = NewIntake { id: intake_id.clone(), state: IntakeState::Issued, token_sha256: token.sha256() };
        let change = Change::client_created(&client, credential, intake);
        Self { client, password, token, intake_id, change }
    }

    fn stage(&self, draft: &ClientDraft, workspace: &Workspace) -> WelcomeStage {
        WelcomeStage {
            client_id: self.client.id.clone(),
            email: draft.email.clone(),
            full_name: self.client.profile.full_name.clone(),
            recipient: Recipient::Client,
            coach_name: workspace.name.clone(),
            host: workspace.canonical_host.clone(),
            password: self.password.expose().to_owned(),
            intake_token: self.token.expose().to_owned(),
            change: self.change.clone(),
        }
    }
}
