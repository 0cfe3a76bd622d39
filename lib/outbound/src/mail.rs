//! Mails to people, by Amazon SES.

use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::error::ProvideErrorMetadata;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use domain::email::Email;
use domain::welcome::Mail;
use runtime::{BoxError, Environment};

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

/// Sends mails.
#[derive(Clone)]
pub struct Mailer {
    client: Client,
    from: String,
}

impl Mailer {
    /// A mailer whose sender is `MAIL_FROM`.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self { client: Client::new(env.sdk()), from: env.config().get("MAIL_FROM")?.to_owned() })
    }

    /// Sends a mail. A request that times out is retried, so a mail may go out twice.
    pub async fn send(&self, to: &Email, mail: &Mail) -> Result<(), MailError> {
        let mailbox = to.mailbox().ok_or(MailError::Unmailable)?;
        let body = Body::builder().text(utf8(&mail.text)).html(utf8(&mail.html)).build();
        let message = Message::builder().subject(utf8(&mail.subject)).body(body).build();
        let request = self.client.send_email().from_email_address(&self.from);
        let request = request
            .destination(Destination::builder().to_addresses(mailbox).build())
            .content(EmailContent::builder().simple(message).build());
        let sent = boxed(request.send()).await;
        sent.map(drop).map_err(|error| MailError::Refused { code: error.code().unwrap_or("no answer").to_owned() })
    }
}

fn utf8(text: &str) -> Content {
    Content::builder().data(text).charset("UTF-8").build().expect("the text is given")
}
