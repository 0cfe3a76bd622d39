//! The welcome mail after the commit, and the answer that depends on it.
//!
//! `client.created` waits for the mail because the change says whether the intake was sent. If the function dies, the
//! relay's schedule publishes the change with `issued`. A retry that mails later publishes the change again, with
//! `sent` and under another id.

use chrono::TimeDelta;
use domain::account::TempPassword;
use domain::change::Change;
use domain::client::{Client, CreateClientResult};
use domain::email::Email;
use domain::id::ClientId;
use domain::idempotency::{AnswerKind, IdempotencyKey};
use domain::intake::{IntakeState, IntakeToken};
use domain::welcome::Welcome;
use domain::workspace::Workspace;
use edge::idempotency::Outcome;
use edge::{Partner, Problem, Reply};
use outbound::mail::MailError;
use serde::{Deserialize, Serialize};
use store::claim::Claim;
use store::client::WelcomeWrite;

use crate::App;

/// Time for which `client.created` waits for the result of the mail. Longer than a claim's lease, so a takeover comes
/// first.
pub(crate) const CHANGE_HOLD: TimeDelta = TimeDelta::seconds(90);

/// Welcome mails that SES refused.
const REFUSED_MAILS: runtime::Metric = runtime::Metric::new("welcome_mails_refused", runtime::Unit::Count);

/// The stage of a claim after the client is created: all that the mail and the answer need. Sealed at rest.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) client_id: ClientId,
    pub(crate) email: Email,
    pub(crate) full_name: String,
    pub(crate) password: String,
    pub(crate) intake_token: String,
    #[serde(rename = "fact")]
    pub(crate) change: Change,
}

impl Stage {
    /// The stage with the client's present data.
    pub(crate) fn of_client(&self, client: &Client) -> Self {
        let profile = &client.profile;
        Self {
            email: profile.email.clone().unwrap_or_else(|| self.email.clone()),
            full_name: profile.full_name.clone(),
            change: self.change.clone().of_client(client),
            ..self.clone()
        }
    }
}

/// The recipient of the credentials.
pub(crate) enum Recipient<'a> {
    /// The client, by mail to this address.
    Client(&'a Email),
    /// The caller, who passes them on.
    Caller,
    /// Nobody. The client belongs to another coach by now, or is erased.
    Nobody,
}

/// A creation whose claim is taken.
pub(crate) struct Creation<'a> {
    pub(crate) app: &'a App,
    pub(crate) partner: &'a Partner,
    pub(crate) claim: Claim,
    pub(crate) key: IdempotencyKey,
}

impl Creation<'_> {
    /// Gives the credentials to their recipient, and records the result together with the answer. If the mail fails,
    /// the caller passes them on.
    pub(crate) async fn welcome(
        &self,
        workspace: &Workspace,
        stage: &Stage,
        recipient: Recipient<'_>,
    ) -> Result<Outcome, Problem> {
        let app = self.app;
        let (state, kind, reply) = match recipient {
            Recipient::Client(email) if mail(app, workspace, stage, email).await => {
                (IntakeState::Sent, AnswerKind::Other, Reply::created(&result(stage, true))?)
            }
            Recipient::Client(_) | Recipient::Caller => {
                (IntakeState::Issued, AnswerKind::Password, password_result(stage, workspace)?)
            }
            Recipient::Nobody => (IntakeState::Issued, AnswerKind::Other, Reply::created(&result(stage, false))?),
        };
        let change = stage.change.clone().with_intake(state);
        let answer = reply.to_answer();
        let end = WelcomeWrite {
            client: &stage.client_id,
            state,
            change: &change,
            claims: &app.claims,
            claim: &self.claim,
            answer: &answer,
            keep: self.key.retention(kind),
        };
        let ours = app.clients.finish_welcome(&end, self.partner.now).await?;
        Ok(if ours { Outcome::Answered(reply) } else { Outcome::ClaimLost })
    }
}

/// Mails the credentials. Returns true if the mail was accepted.
async fn mail(app: &App, workspace: &Workspace, stage: &Stage, email: &Email) -> bool {
    let welcome = Welcome {
        coach_name: &workspace.name,
        client_name: &stage.full_name,
        email,
        password: &TempPassword::restore(stage.password.clone()),
        host: &workspace.canonical_host,
        intake: &IntakeToken::restore(stage.intake_token.clone()),
    };
    let sent = app.mailer.send(email, &welcome.render()).await;
    if let Err(error) = &sent {
        if matches!(error, MailError::Refused { .. }) {
            runtime::add(REFUSED_MAILS, 1.0);
        }
        tracing::warn!(client_id = stage.client_id.as_str(), %error, "the welcome mail was not sent");
    }
    sent.is_ok()
}

/// The answer that gives the caller the credentials.
pub(crate) fn password_result(stage: &Stage, workspace: &Workspace) -> Result<Reply, Problem> {
    let token = IntakeToken::restore(stage.intake_token.clone());
    Reply::created(&CreateClientResult {
        intake_url: Some(token.url(&workspace.canonical_host)),
        temp_password: Some(stage.password.clone()),
        ..result(stage, false)
    })
}

fn result(stage: &Stage, welcome_email_sent: bool) -> CreateClientResult {
    CreateClientResult {
        client_id: stage.client_id.clone(),
        email: stage.email.clone(),
        full_name: stage.full_name.clone(),
        welcome_email_sent,
        intake_url: None,
        temp_password: None,
    }
}
