//! The HTTP request of an attempt: the headers that are sent, and what the delivery log shows of them later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::DeliveryView;
use crate::id::EventId;
use crate::mode::Mode;

/// The value of `user-agent`.
const CLIENT_NAME: &str = "partner-api-webhooks/1";

/// The values of a webhook's headers.
#[derive(Debug, Clone, Copy)]
pub struct WebhookHeaders<'a> {
    pub event_id: &'a EventId,
    pub event_type: &'a str,
    /// The time of the attempt, which is signed.
    pub unix_s: i64,
    /// `None` once the signature is erased.
    pub signature: Option<&'a str>,
    /// The mode of the deployment. A sandbox says so with each request.
    pub mode: Mode,
}

impl<'a> WebhookHeaders<'a> {
    /// Returns the headers, in the order in which they are sent. The HTTP client adds `host` and `content-length`.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, Cow<'a, str>)> {
        let signature = self.signature.map(|signature| ("webhook-signature", signature.into()));
        let mode = match self.mode {
            Mode::Live => None,
            Mode::Test => Some(("x-service-mode", self.mode.as_str().into())),
        };
        let before = [
            ("accept", "*/*".into()),
            ("accept-encoding", "identity".into()),
            ("user-agent", CLIENT_NAME.into()),
            ("content-type", "application/json".into()),
            ("webhook-id", self.event_id.as_str().into()),
            ("webhook-timestamp", self.unix_s.to_string().into()),
        ];
        before.into_iter().chain(signature).chain([("x-service-event", self.event_type.into())]).chain(mode)
    }
}

/// The part of an attempt's request that is kept beside the attempt. It holds no secret, and of the URL the host alone:
/// path and query may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct SentRequest {
    pub host: String,
    pub unix_s: i64,
    /// `None` after an erasure: with the endpoint's secret, a signature confirms guesses of the erased body.
    pub signature: Option<String>,
}
crate::discreet! { SentRequest }

/// The request of a delivery's latest attempt.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct DeliveryRequest {
    /// The host of the URL. The rest of the URL is not kept.
    pub url_host: String,
    /// The headers as they were sent, by their names in lower case. `webhook-signature` is absent after an erasure.
    pub headers: BTreeMap<&'static str, String>,
    /// The exact text that was sent. Null after an erasure.
    #[schema(required)]
    pub body: Option<String>,
}
crate::discreet! { DeliveryRequest }

impl DeliveryRequest {
    /// Builds the request from its kept parts. A deployment keeps its mode, so the mode is that of the attempt.
    pub fn new(sent: SentRequest, event_id: &EventId, event_type: &str, mode: Mode, body: Option<String>) -> Self {
        let SentRequest { host, unix_s, signature } = sent;
        let headers = WebhookHeaders { event_id, event_type, unix_s, signature: signature.as_deref(), mode };
        let headers = headers.pairs().map(|(name, value)| (name, value.into_owned())).collect();
        Self { url_host: host, headers, body }
    }
}

/// A delivery with the request of its latest attempt.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct DeliveryDetail {
    #[serde(flatten)]
    pub delivery: DeliveryView,
    /// Null before the first attempt.
    #[schema(required)]
    pub request: Option<DeliveryRequest>,
    /// True if the body was erased with its client.
    pub body_erased: bool,
}
crate::discreet! { DeliveryDetail }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erased_request_keeps_its_headers_but_the_signature() {
        let event_id = EventId::parse("evt_1").unwrap();
        let sent = |signature: Option<&str>| SentRequest {
            host: "hooks.example.com".to_owned(),
            unix_s: 1_790_000_000,
            signature: signature.map(str::to_owned),
        };
        for mode in Mode::ALL {
            let body = Some("{}".to_owned());
            let whole = DeliveryRequest::new(sent(Some("v1,abc=")), &event_id, "new_client", mode, body);
            let mut erased = DeliveryRequest::new(sent(None), &event_id, "new_client", mode, None);
            erased.headers.insert("webhook-signature", "v1,abc=".to_owned());
            assert_eq!(erased.headers, whole.headers);
        }
    }

    #[test]
    fn a_sandbox_adds_its_mode_to_the_headers_and_a_live_deployment_adds_nothing() {
        let event_id = EventId::parse("evt_1").unwrap();
        let pairs = |mode| {
            let headers =
                WebhookHeaders { event_id: &event_id, event_type: "new_client", unix_s: 1, signature: None, mode };
            headers.pairs().collect::<Vec<_>>()
        };
        let mut expected = pairs(Mode::Live);
        assert!(expected.iter().all(|(name, _)| *name != "x-service-mode"), "{expected:?}");
        expected.push(("x-service-mode", "test".into()));
        assert_eq!(pairs(Mode::Test), expected);
    }
}
