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
use domain::idempotency::ReplyKind;
use domain::intake::{IntakeState, IntakeToken};
use domain::time::Timestamp;
use domain::welcome::Welcome;
use domain::workspace::{CanonicalHost, Workspace};
use edge::command::Recorder;
use edge::{Problem, Reply};
use outbound::mail::MailError;
use serde::{Deserialize, Serialize};
use store::Part;
use store::unit::{Commit, Unit};

use crate::App;

/// Time for which `client.created` waits for the result of the mail. Longer than a claim's lease, so a takeover comes
/// first.
pub(crate) const CHANGE_HOLD: TimeDelta = TimeDelta::seconds(90);

/// Welcome mails that SES refused.
const REFUSED_MAILS: runtime::Metric = runtime::Metric::new("welcome_mails_refused", runtime::Unit::Count);

/// The stage of a claim after the client is created: all that the mail and the answer need. Sealed at rest.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WelcomeStage {
    pub(crate) client_id: ClientId,
    pub(crate) email: Email,
    pub(crate) full_name: String,
    pub(crate) recipient: Recipient,
    pub(crate) coach_name: String,
    pub(crate) host: CanonicalHost,
    pub(crate) password: String,
    pub(crate) intake_token: String,
    pub(crate) change: Change,
}

/// The recipient of the credentials.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Recipient {
    /// The client, by mail.
    Client,
    /// The caller, who passes them on.
    Caller,
    /// Nobody. The client belongs to another coach by now, or is erased.
    Nobody,
}

impl WelcomeStage {
    /// The stage with the present data of the client, if the coach still has the client, and of the workspace.
    pub(crate) fn brought_up_to_date(self, client: Option<&Client>, workspace: &Workspace) -> Self {
        let stage = Self { coach_name: workspace.name.clone(), host: workspace.canonical_host.clone(), ..self };
        let Some(client) = client else { return Self { recipient: Recipient::Nobody, ..stage } };
        let email = client.profile.email.clone();
        let is_mailed = client.is_active && email.is_some();
        Self {
            email: email.unwrap_or(stage.email),
            full_name: client.profile.full_name.clone(),
            recipient: if is_mailed { Recipient::Client } else { Recipient::Caller },
            change: stage.change.of_client(client),
            ..stage
        }
    }

    /// The answer that gives the caller the credentials.
    pub(crate) fn result_with_password(&self) -> CreateClientResult {
        let token = IntakeToken::restore(self.intake_token.clone());
        CreateClientResult {
            intake_url: Some(token.url(&self.host)),
            temp_password: Some(self.password.clone()),
            ..self.result(false)
        }
    }

    fn result(&self, welcome_email_sent: bool) -> CreateClientResult {
        CreateClientResult {
            client_id: self.client_id.clone(),
            email: self.email.clone(),
            full_name: self.full_name.clone(),
            welcome_email_sent,
            intake_url: None,
            temp_password: None,
        }
    }
}

/// Gives the credentials to their recipient, and records the result: the intake's state, the change with it, and the
/// answer. If the mail fails, the caller passes the credentials on.
pub(crate) async fn welcome(
    app: &App,
    stage: WelcomeStage,
    recorder: Recorder<'_>,
    now: Timestamp,
) -> Result<Reply, Problem> {
    let is_sent = matches!(stage.recipient, Recipient::Client) && mail(app, &stage).await;
    let state = if is_sent { IntakeState::Sent } else { IntakeState::Issued };
    let (kind, result) = match stage.recipient {
        Recipient::Client | Recipient::Caller if !is_sent => (ReplyKind::Password, stage.result_with_password()),
        _ => (ReplyKind::Other, stage.result(is_sent)),
    };
    let reply = Reply::created(&result)?;
    let recorded = recorder.reply_about_client(&reply, kind, &stage.client_id);
    let change = stage.change.with_intake(state);
    let intake = || Unit::new().write([app.clients.set_intake(&stage.client_id, state)]);

    let released = intake().write([app.outbox.release(change.clone(), now)]);
    let mut commit = recorder.commit(released, &recorded, now).await?;
    if matches!(&commit, Commit::Refused(refused) if refused.is(Part::Outbox)) {
        // The relay may have published the change already. If it is no longer true, it is emitted again.
        let again = intake().change(is_sent.then(|| change.intake_sent(now)));
        commit = recorder.commit(again, &recorded, now).await?;
    }
    match commit {
        Commit::Done => Ok(reply),
        // A missing intake shows that the client was erased, and its claim with it: no other request answers.
        Commit::Refused(refused) | Commit::Repeated(refused) if refused.is(Part::Intake) => Ok(reply),
        Commit::Refused(_) | Commit::Repeated(_) => Err(Problem::IdempotencyInProgress),
    }
}

/// Mails the credentials. Returns true if the mail was accepted.
async fn mail(app: &App, stage: &WelcomeStage) -> bool {
    let welcome = Welcome {
        coach_name: &stage.coach_name,
        client_name: &stage.full_name,
        email: &stage.email,
        password: &TempPassword::restore(stage.password.clone()),
        host: &stage.host,
        intake: &IntakeToken::restore(stage.intake_token.clone()),
    };
    let sent = app.mailer.send(&stage.change.coach_id, &stage.email, &welcome.render()).await;
    if let Err(error) = &sent {
        if matches!(error, MailError::Refused { .. }) {
            runtime::add(REFUSED_MAILS, 1.0);
        }
        tracing::warn!(client_id = stage.client_id.as_str(), %error, "the welcome mail was not sent");
    }
    sent.is_ok()
}
