//! SES v2 `SendEmail` to a mailbox. It supports simple content only, no templates and no raw MIME.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::answer::{Answer, ServiceError};
use crate::error::StoreError;
use crate::sqlite::Sqlite;
use crate::time::{StackTime, from_ms};

pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS mails (id INTEGER PRIMARY KEY, recipients TEXT NOT NULL, \
    subject TEXT NOT NULL, text TEXT, html TEXT, sent_at INTEGER NOT NULL);";

/// A sent mail, as `GET /_local/mail` returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mail {
    /// The recipients' addresses, separated by commas.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The plain text body.
    pub text: Option<String>,
    /// The HTML body.
    pub html: Option<String>,
    /// Stack time at which the mail was sent.
    pub sent_at: DateTime<Utc>,
}

/// All sent mails.
pub struct Mailbox {
    sqlite: Sqlite,
    time: StackTime,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendEmail {
    from_email_address: Option<String>,
    #[serde(default)]
    destination: Destination,
    content: Content,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default, deny_unknown_fields)]
struct Destination {
    to_addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    simple: Option<Simple>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Simple {
    subject: Text,
    body: Body,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    text: Option<Text>,
    html: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Text {
    data: String,
}

impl Mailbox {
    pub(crate) fn open(sqlite: Sqlite, time: StackTime) -> Self {
        Self { sqlite, time }
    }

    /// Returns all mails, oldest first.
    pub async fn mails(&self) -> Result<Vec<Mail>, StoreError> {
        self.sqlite
            .run(|connection| {
                connection
                    .prepare_cached("SELECT recipients, subject, text, html, sent_at FROM mails ORDER BY id")?
                    .query_map([], |row| {
                        Ok(Mail {
                            to: row.get(0)?,
                            subject: row.get(1)?,
                            text: row.get(2)?,
                            html: row.get(3)?,
                            sent_at: from_ms(row.get(4)?),
                        })
                    })?
                    .collect()
            })
            .await
    }

    /// Handles `POST /v2/email/outbound-emails`.
    pub(crate) async fn send_email(&self, body: &[u8]) -> Result<Answer, ServiceError> {
        let bad = |message: String| ServiceError::rest(400, "BadRequestException", message);
        let request: SendEmail = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
        let Some(simple) = request.content.simple else {
            return Err(
                bad("The local stack sends simple content alone, no templates and no raw messages.".to_owned()),
            );
        };
        let Some(from) = request.from_email_address else {
            return Err(bad("Missing required parameter FromEmailAddress.".to_owned()));
        };
        let recipients = request.destination.to_addresses;
        if recipients.is_empty() {
            return Err(bad("A message needs a recipient.".to_owned()));
        }
        if let Some(refused) = recipients.iter().chain([&from]).find(|mailbox| !is_mailbox(mailbox)) {
            return Err(bad(format!("Illegal address: {refused}")));
        }
        let now = self.time.now_ms();
        let (text, html) = (simple.body.text.map(|text| text.data), simple.body.html.map(|html| html.data));
        self.sqlite
            .run(|connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO mails (recipients, subject, text, html, sent_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute((recipients.join(", "), simple.subject.data, text, html, now))
            })
            .await?;
        Ok(Answer::rest(&json!({ "MessageId": Uuid::new_v4().to_string() })))
    }
}

/// Returns true for an address, or a display name with an address in angle brackets. Everything is ASCII: SES has no
/// SMTPUTF8, and takes a domain in its ASCII form only.
fn is_mailbox(text: &str) -> bool {
    let address = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, address)| address);
    let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    is_printable && address.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'))
}
