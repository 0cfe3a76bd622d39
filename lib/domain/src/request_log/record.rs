//! The record of a request.

use serde::{Deserialize, Serialize};

use crate::id::KeyId;
use crate::time::Timestamp;

/// Most characters of a request's id.
const MAX_REQUEST_ID_CHARS: usize = 128;

crate::named! {
    /// The method of a request with a key.
    RequestMethod {
        Get = "GET",
        Post = "POST",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

/// A request with a key of the coach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestRecord {
    /// Identifies the request: the `X-Request-Id` of its answer.
    pub id: String,
    /// When the request arrived.
    pub at: Timestamp,
    /// The key of the request.
    pub key_id: KeyId,
    pub method: RequestMethod,
    /// The path with names in place of ids, such as `/v1/clients/{clientId}`.
    pub route: String,
    /// The id in the path. Null: there is none, or it has not the form of an id.
    #[schema(required)]
    pub target: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The `code` of the refusal. Null: the request was not refused.
    #[schema(required)]
    pub code: Option<String>,
    /// True if the answer was the stored one of an earlier request.
    pub replayed: bool,
    /// The time until the answer, in milliseconds.
    pub duration_ms: u32,
    /// The first 12 hexadecimal digits of the SHA-256 of the `Idempotency-Key`. Null: none was sent.
    #[schema(required)]
    pub idempotency_key_sha256: Option<String>,
    #[serde(flatten)]
    pub client: RequestClient,
    /// The names of the query parameters that the route knows, without their values.
    pub parameters: Vec<String>,
}

/// The program that called.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestClient {
    /// The tool that an assistant called. Null: the request came from another program.
    #[schema(required)]
    pub tool: Option<String>,
    /// The name and version of the assistant's program.
    #[schema(required)]
    pub client: Option<String>,
    /// The `User-Agent` of the request, at most 120 visible characters.
    #[schema(required)]
    pub user_agent: Option<String>,
}

/// Parses the id of a request, which the gateway chose.
pub(super) fn request_id(text: &str) -> Result<String, &'static str> {
    let has_form = (1..=MAX_REQUEST_ID_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if has_form { Ok(text.to_owned()) } else { Err("must be the X-Request-Id of an answer") }
}

/// The characters of a header's value that show, in ASCII, at most `most`. `None`: there are none.
pub fn shown_header(value: &[u8], most: usize) -> Option<String> {
    let shown = value.iter().filter(|byte| matches!(byte, b' '..=b'~')).take(most).map(|byte| char::from(*byte));
    let text = shown.collect::<String>().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(b"n8n/1.2 (Linux)", Some("n8n/1.2 (Linux)"))]
    #[case(b" a\tb\xff\x7f ", Some("ab"))]
    #[case(b" ", None)]
    #[case(b"\xc3\xbc", None)]
    fn a_header_is_shown_as_far_as_it_can_be_seen(#[case] value: &[u8], #[case] shown: Option<&str>) {
        assert_eq!(shown_header(value, 120).as_deref(), shown);
        assert_eq!(shown_header(&[b'a'; 200], 120).map(|text| text.len()), Some(120));
    }
}
