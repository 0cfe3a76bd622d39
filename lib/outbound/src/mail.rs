//! Mails to people, by Amazon SES. A sandbox stores them instead.

use std::sync::Arc;

use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::error::ProvideErrorMetadata;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use domain::email::Email;
use domain::id::CoachId;
use domain::mode::Mode;
use domain::sandbox::{StoredMail, is_refused};
use domain::time::Timestamp;
use domain::welcome::Mail;
use runtime::{BoxError, Clock, Environment};
use store::Db;
use store::stored_mail::StoredMails;
use store::vault::Vault;

use crate::boxed;

/// A mail was not accepted for sending. SES's message is left out: it may name addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// SES refused the mail or did not answer.
    #[error("the mail was not accepted: {code}")]
    Refused { code: String },
    /// The address can never receive mail: see [`Email::mailbox`].
    #[error("the address has no ASCII form that SES delivers to")]
    Unmailable,
}

/// The refusal of an address in a sandbox, as SES words it.
const REJECTED: &str = "MessageRejected";

/// Sends mails.
#[derive(Clone)]
pub struct Mailer(Way);

/// The way of mails.
#[derive(Clone)]
enum Way {
    Sent { client: Client, from: String },
    Stored { mails: StoredMails, clock: Arc<dyn Clock> },
}

impl Mailer {
    /// A mailer whose sender is `MAIL_FROM`. In a sandbox, a mailer that stores mails in the table that
    /// `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self(match env.config().parse(Mode::SETTING)? {
            Mode::Live => Way::Sent { client: Client::new(env.sdk()), from: env.config().get("MAIL_FROM")?.to_owned() },
            Mode::Test => Way::Stored { mails: StoredMails::new(env, db, vault)?, clock: env.clock() },
        }))
    }

    /// Sends a mail of a coach's workspace. A request that times out is retried, so a mail may go out twice.
    pub async fn send(&self, coach: &CoachId, to: &Email, mail: &Mail) -> Result<(), MailError> {
        let mailbox = to.mailbox().ok_or(MailError::Unmailable)?;
        match &self.0 {
            Way::Sent { client, from } => send(client, from, mailbox, mail).await,
            Way::Stored { .. } if is_refused(to) => Err(MailError::Refused { code: REJECTED.to_owned() }),
            Way::Stored { mails, clock } => {
                let Mail { subject, text, html } = mail.clone();
                let sent_at = Timestamp::new(clock.now());
                let stored = StoredMail { to: to.as_str().to_owned(), subject, text, html, sent_at };
                let put = mails.put(coach, &stored).await;
                put.map_err(|error| MailError::Refused { code: error.to_string() })
            }
        }
    }
}

async fn send(client: &Client, from: &str, mailbox: String, mail: &Mail) -> Result<(), MailError> {
    let body = Body::builder().text(utf8(&mail.text)).html(utf8(&mail.html)).build();
    let message = Message::builder().subject(utf8(&mail.subject)).body(body).build();
    let request = client
        .send_email()
        .from_email_address(from)
        .destination(Destination::builder().to_addresses(mailbox).build())
        .content(EmailContent::builder().simple(message).build());
    let sent = boxed(request.send()).await;
    sent.map(drop).map_err(|error| MailError::Refused { code: error.code().unwrap_or("no answer").to_owned() })
}

fn utf8(text: &str) -> Content {
    Content::builder().data(text).charset("UTF-8").build().expect("the text is given")
}
