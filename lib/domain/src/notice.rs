//! Mails to a coach about a webhook endpoint: it has failed for a day, or it was disabled. Only the host of the URL is
//! named: the rest may hold a secret.

use serde::{Deserialize, Serialize};

use crate::endpoint::{Endpoint, EndpointStatus};
use crate::endpoint_health::PATIENCE;
use crate::html::escape;
use crate::id::{CoachId, EndpointId};
use crate::retry::{CHAIN_HOURS, MAX_ATTEMPTS};
use crate::time::Timestamp;
use crate::welcome::Mail;

/// A notice to a coach about an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointNotice {
    pub coach_id: CoachId,
    pub endpoint_id: EndpointId,
    host: String,
    at: Timestamp,
    what: NoticeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NoticeKind {
    FailingSince(Timestamp),
    Disabled,
    Gone,
}

impl EndpointNotice {
    /// Creates the warning that every delivery has failed since `since`.
    pub fn failing(coach: &CoachId, endpoint: &Endpoint, since: Timestamp, at: Timestamp) -> Self {
        Self::new(coach, endpoint, at, NoticeKind::FailingSince(since))
    }

    /// Creates the notice that the endpoint is disabled or gone.
    pub fn off(coach: &CoachId, endpoint: &Endpoint, at: Timestamp) -> Self {
        let gone = endpoint.status == EndpointStatus::Gone;
        Self::new(coach, endpoint, at, if gone { NoticeKind::Gone } else { NoticeKind::Disabled })
    }

    fn new(coach: &CoachId, endpoint: &Endpoint, at: Timestamp, what: NoticeKind) -> Self {
        let host = endpoint.url.host().to_owned();
        Self { coach_id: coach.clone(), endpoint_id: endpoint.id.clone(), host, at, what }
    }

    /// Returns the notice's id: equal notices are mailed once.
    pub fn id(&self) -> String {
        let what = match self.what {
            NoticeKind::FailingSince(_) => "failing",
            NoticeKind::Disabled | NoticeKind::Gone => "off",
        };
        format!("notice_{}_{}_{what}", self.endpoint_id, self.at.ms())
    }

    pub fn render(&self) -> Mail {
        let (host, days) = (&self.host, PATIENCE.num_days());
        let (subject, what, next) = match &self.what {
            NoticeKind::FailingSince(since) => (
                format!("Webhooks to {host} fail"),
                format!("Every webhook to {host} has failed since {since}."),
                format!(
                    "Events are tried {MAX_ATTEMPTS} times over {CHAIN_HOURS} hours. If it goes on, the endpoint is switched \
                     off after {days} days."
                ),
            ),
            NoticeKind::Disabled => (
                format!("Webhooks to {host} are switched off"),
                format!("Webhooks to {host} have failed for {days} days. The endpoint was switched off at {}.", self.at),
                "You can switch it on again, and have what was missed sent, under Settings, Private Integrations."
                    .to_owned(),
            ),
            NoticeKind::Gone => (
                format!("Webhooks to {host} have ended"),
                format!("The receiver at {host} answered that it is gone for good (410), at {}.", self.at),
                "It gets nothing any more. If that is not what you want, register a new endpoint under Settings, Private Integrations."
                    .to_owned(),
            ),
        };
        let log = "The delivery log of the endpoint tells what each attempt met.";
        let text = format!("Hello,\n\n{what}\n\n{next}\n\n{log}\n");
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head>\n<body><p>Hello,</p>\n\
             <p>{}</p>\n<p>{next}</p>\n<p>{log}</p>\n</body></html>\n",
            escape(&subject),
            escape(&what)
        );
        Mail { subject, text, html }
    }
}
