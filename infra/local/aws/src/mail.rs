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
#[serde(rename_all = "PascalCase", default)]
struct Destination {
    to_addresses: Vec<String>,
    cc_addresses: Vec<String>,
    bcc_addresses: Vec<String>,
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
        if request.from_email_address.is_none_or(|from| from.is_empty()) {
            return Err(bad("Missing required parameter FromEmailAddress.".to_owned()));
        }
        let Destination { to_addresses, cc_addresses, bcc_addresses } = request.destination;
        let recipients = [to_addresses, cc_addresses, bcc_addresses].concat();
        if recipients.is_empty() {
            return Err(bad("A message needs a recipient.".to_owned()));
        }
        if let Some(reason) = recipients.iter().find_map(|recipient| refusal(recipient)) {
            return Err(bad(reason.to_owned()));
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

/// Returns the reason why SES refuses a recipient's address, if any. A display name may precede an address in angle
/// brackets.
fn refusal(recipient: &str) -> Option<&'static str> {
    let address = match recipient.rsplit_once('<') {
        Some((_, rest)) => rest.trim_end().strip_suffix('>').unwrap_or(rest),
        None => recipient,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return Some("Missing final '@domain'") };
    let is_quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let is_domain_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if local.is_empty() {
        Some("Missing local name")
    } else if !local.is_ascii() {
        Some("Local address contains a character that is not ASCII")
    } else if !is_quoted && local.contains(|c: char| c.is_ascii_control() || c.is_ascii_whitespace()) {
        Some("Local address contains control or whitespace")
    } else if !is_quoted && (local.starts_with('.') || local.ends_with('.') || local.contains("..")) {
        Some("Local address contains dot-dot, or starts or ends with dot")
    } else if domain.is_empty() || !domain.chars().all(is_domain_char) {
        Some("Domain contains illegal character")
    } else if domain.starts_with('.') || domain.ends_with('.') || domain.contains("..") {
        Some("Domain contains dot-dot, or starts or ends with dot")
    } else {
        None
    }
}
