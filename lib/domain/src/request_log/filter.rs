//! Filters of the request log.

use super::record::{RequestMethod, RequestRecord, request_id};
use crate::fields::Invalid;
use crate::id::KeyId;
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// The parameter that filters the coach's log alone: a key's own log has one key.
pub const KEY_FILTER: &str = "key_id";

/// A filter of the log. The default shows every record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestFilter {
    pub key_id: Option<KeyId>,
    pub status: Option<StatusFilter>,
    pub code: Option<String>,
    pub method: Option<RequestMethod>,
    pub route: Option<String>,
    pub request_id: Option<String>,
    /// The earliest arrival.
    pub since: Option<Timestamp>,
    /// The arrival before which the log ends.
    pub until: Option<Timestamp>,
}

/// The names that a filter may have.
#[derive(Debug, Clone, Copy)]
pub struct RequestNames<'a> {
    pub codes: &'a [&'a str],
    pub routes: &'a [&'a str],
}

/// A status, or all statuses of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    Exact(u16),
    /// The first digit.
    Class(u16),
}

impl StatusFilter {
    /// The rule, which completes a sentence that begins with the parameter's name.
    pub const RULE: &str = "must be a status such as 409, or 2xx, 4xx or 5xx";
    /// The form, as a regular expression.
    pub const PATTERN: &str = "^([245]xx|[2-5][0-9]{2})$";

    fn parse(text: &str) -> Result<Self, &'static str> {
        let class = |digit: &str| digit.parse().ok().filter(|class| [2, 4, 5].contains(class)).map(Self::Class);
        let exact = || {
            let is_number = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|status| is_number && (200..600).contains(status)).map(Self::Exact)
        };
        text.strip_suffix("xx").map_or_else(exact, class).ok_or(Self::RULE)
    }

    fn includes(self, status: u16) -> bool {
        match self {
            Self::Exact(wanted) => status == wanted,
            Self::Class(class) => status / 100 == class,
        }
    }
}

impl RequestFilter {
    /// Parses the query parameters, which `query` looks up. An empty one is no filter.
    pub fn parse(query: impl Fn(&str) -> Option<String>, names: RequestNames<'_>) -> Result<Self, Invalid> {
        let key_id =
            |text: &str| KeyId::parse_whole(text).map_err(|_| "must be key_ and 32 lower-case hexadecimal digits");
        let code = |text: &str| named(names.codes, text, "must be a code of /docs/guides/errors");
        let route =
            |text: &str| named(names.routes, text, "must be a path of /docs/reference, such as /v1/clients/{clientId}");
        Ok(Self {
            key_id: parsed(&query, KEY_FILTER, key_id)?,
            status: parsed(&query, "status", StatusFilter::parse)?,
            code: parsed(&query, "code", code)?,
            method: parsed(&query, "method", RequestMethod::parse)?,
            route: parsed(&query, "route", route)?,
            request_id: parsed(&query, "request_id", request_id)?,
            since: parsed(&query, "since", time)?,
            until: parsed(&query, "until", time)?,
        })
    }

    /// Returns true if the filter shows this record, whatever the record's time.
    pub fn includes(&self, record: &RequestRecord) -> bool {
        let fits =
            |asked: &Option<String>, found: Option<&str>| asked.as_deref().is_none_or(|asked| found == Some(asked));
        self.key_id.as_ref().is_none_or(|asked| *asked == record.key_id)
            && self.status.is_none_or(|asked| asked.includes(record.status))
            && fits(&self.code, record.code.as_deref())
            && self.method.is_none_or(|asked| asked == record.method)
            && fits(&self.route, Some(&record.route))
            && fits(&self.request_id, Some(&record.id))
    }
}

fn named(names: &[&str], text: &str, rule: &'static str) -> Result<String, &'static str> {
    if names.contains(&text) { Ok(text.to_owned()) } else { Err(rule) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_log::record::RequestClient;

    const NAMES: RequestNames<'_> =
        RequestNames { codes: &["email_taken", "rate_limited"], routes: &["/v1/clients", "/v1/clients/{clientId}"] };
    const KEY: &str = "key_6f1ed002ab5595859014ebf0951522d9";

    fn parse(name: &str, value: &str) -> Result<RequestFilter, Invalid> {
        RequestFilter::parse(|asked| (asked == name).then(|| value.to_owned()), NAMES)
    }

    fn record() -> RequestRecord {
        RequestRecord {
            id: "r-1".to_owned(),
            at: Timestamp::from_ms(1),
            key_id: KeyId::parse(KEY).unwrap(),
            method: RequestMethod::Post,
            route: "/v1/clients".to_owned(),
            target: None,
            status: 409,
            code: Some("email_taken".to_owned()),
            replayed: false,
            duration_ms: 3,
            idempotency_key_sha256: None,
            client: RequestClient::default(),
            parameters: Vec::new(),
        }
    }

    #[rstest::rstest]
    #[case("key_id", KEY, "key_6f1ed002ab5595859014ebf0951522d8")]
    #[case("status", "409", "410")]
    #[case("status", "4xx", "5xx")]
    #[case("code", "email_taken", "rate_limited")]
    #[case("method", "POST", "DELETE")]
    #[case("route", "/v1/clients", "/v1/clients/{clientId}")]
    #[case("request_id", "r-1", "r-2")]
    fn a_filter_shows_what_it_names(#[case] name: &str, #[case] shown: &str, #[case] hidden: &str) {
        assert!(parse(name, shown).unwrap().includes(&record()));
        assert!(!parse(name, hidden).unwrap().includes(&record()));
        assert_eq!(parse(name, "").unwrap(), RequestFilter::default(), "an empty filter is none");
    }

    #[rstest::rstest]
    #[case("key_id", "key_1")]
    #[case("status", "600")]
    #[case("status", "2x")]
    #[case("status", "3xx")]
    #[case("status", "4XX")]
    #[case("status", "+40")]
    #[case("status", "199")]
    #[case("code", "email-taken")]
    #[case("method", "post")]
    #[case("method", "PUT")]
    #[case("route", "POST /v1/clients")]
    #[case("route", "/v1/clients/c1")]
    #[case("request_id", "a b")]
    #[case("request_id", &"a".repeat(129))]
    #[case("since", "2026-11-20")]
    #[case("until", "now")]
    fn a_malformed_filter_is_refused_by_name(#[case] name: &str, #[case] value: &str) {
        assert_eq!(parse(name, value).unwrap_err().field.as_deref(), Some(name));
    }
}
