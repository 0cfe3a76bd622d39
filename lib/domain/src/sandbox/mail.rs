//! Mails that are stored instead of sent.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::email::Email;
use crate::time::Timestamp;

/// Time for which a mail is kept.
pub const MAIL_RETENTION: TimeDelta = TimeDelta::days(7);

/// The beginning of addresses that take no mail.
const REFUSED: &str = "bounce";

/// Returns true for an address that takes no mail, so that a caller can meet the refusal.
pub fn is_refused(to: &Email) -> bool {
    to.as_str().get(..REFUSED.len()).is_some_and(|start| start.eq_ignore_ascii_case(REFUSED))
}

/// A mail as the live service would have sent it.
#[derive(Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoredMail {
    /// The address of the recipient.
    pub to: String,
    /// The subject of the mail.
    pub subject: String,
    /// The mail as text.
    pub text: String,
    /// The mail as HTML.
    pub html: String,
    /// When the mail would have been sent.
    pub sent_at: Timestamp,
}
crate::discreet! { StoredMail }

/// A page of a workspace's mails.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct StoredMailList {
    /// The mails of this page, newest first.
    pub data: Vec<StoredMail>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}
crate::discreet! { StoredMailList }
