//! Numbers of requests for each key.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use chrono::TimeDelta;
use serde::Serialize;

use super::record::RequestRecord;
use crate::fields::Invalid;
use crate::id::KeyId;
use crate::time::Timestamp;

/// Shortest period that a coach can ask for, and the default: the last day.
pub const MIN_SUMMARY_HOURS: u32 = 24;
/// Longest period that a coach can ask for: the time for which records are kept.
pub const MAX_SUMMARY_HOURS: u32 = 336;
/// The parameter with the length of a period.
pub const SUMMARY_PARAMETER: &str = "hours";
/// Most codes of a key.
const MAX_CODES: usize = 5;

/// The last hours before a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryPeriod {
    pub since: Timestamp,
}

impl SummaryPeriod {
    const HOURS: RangeInclusive<u32> = MIN_SUMMARY_HOURS..=MAX_SUMMARY_HOURS;

    /// Parses the number of hours in a query. An empty one is the default.
    pub fn parse(hours: Option<&str>, now: Timestamp) -> Result<Self, Invalid> {
        let parse = |text: &str| {
            let is_number = text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|hours| is_number && Self::HOURS.contains(hours))
        };
        let hours = hours.filter(|text| !text.is_empty()).map_or(Some(MIN_SUMMARY_HOURS), parse);
        let hours = hours.ok_or_else(|| Invalid::field(SUMMARY_PARAMETER, Self::rule()))?;
        Ok(Self { since: now + -TimeDelta::hours(hours.into()) })
    }

    /// The rule for the number of hours, which completes a sentence that begins with the parameter's name.
    pub fn rule() -> String {
        format!("must be a whole number from {MIN_SUMMARY_HOURS} to {MAX_SUMMARY_HOURS}")
    }
}

/// The requests of each key in a period, as far as they are kept.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RequestSummary {
    /// The keys with requests, the one with the latest request first.
    pub data: Vec<KeyRequests>,
    /// False if the period has more records than a summary reads: the numbers are those of the latest.
    pub complete: bool,
}

/// The requests of a key.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct KeyRequests {
    /// The key.
    pub key_id: KeyId,
    /// The number of requests.
    pub requests: usize,
    /// The number of those that were refused or failed.
    pub refused: usize,
    /// The codes of the refusals, the most frequent first, at most 5.
    pub codes: Vec<CodeCount>,
    /// When the latest request arrived.
    pub last_at: Timestamp,
}

/// The number of refusals with a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct CodeCount {
    /// The code.
    pub code: String,
    /// The number of refusals.
    pub count: usize,
}

impl RequestSummary {
    /// Counts records, which come newest first.
    pub fn of(records: impl IntoIterator<Item = RequestRecord>, complete: bool) -> Self {
        let mut data: Vec<KeyRequests> = Vec::new();
        let mut places: HashMap<KeyId, usize> = HashMap::new();
        for RequestRecord { key_id, at, status, code, .. } in records {
            let place = *places.entry(key_id.clone()).or_insert_with(|| {
                data.push(KeyRequests { key_id, requests: 0, refused: 0, codes: Vec::new(), last_at: at });
                data.len() - 1
            });
            let key = &mut data[place];
            key.requests += 1;
            key.refused += usize::from(status >= 400);
            let Some(code) = code else { continue };
            match key.codes.iter_mut().find(|counted| counted.code == code) {
                Some(counted) => counted.count += 1,
                None => key.codes.push(CodeCount { code, count: 1 }),
            }
        }
        for key in &mut data {
            key.codes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
            key.codes.truncate(MAX_CODES);
        }
        Self { data, complete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_log::record::{RequestClient, RequestMethod};

    fn record(key: u8, ms: i64, status: u16, code: Option<&str>) -> RequestRecord {
        RequestRecord {
            id: ms.to_string(),
            at: Timestamp::from_ms(ms),
            key_id: KeyId::from_hash(&[key; 32]),
            method: RequestMethod::Post,
            route: "/v1/clients".to_owned(),
            target: None,
            status,
            code: code.map(str::to_owned),
            replayed: false,
            duration_ms: 3,
            idempotency_key_sha256: None,
            client: RequestClient::default(),
            parameters: Vec::new(),
        }
    }

    #[test]
    fn keys_go_by_their_latest_request_and_codes_by_their_number() {
        let mut records = vec![record(2, 90, 201, None), record(1, 80, 409, Some("email_taken"))];
        let codes = ["a", "b", "b", "c", "d", "e", "f", "f", "f"];
        records.extend(codes.map(|code| record(2, 70, 400, Some(code))));
        let summary = RequestSummary::of(records, true);
        let [second, first] = &summary.data[..] else { panic!("two keys") };
        assert_eq!((second.requests, second.refused, second.last_at.ms()), (10, 9, 90));
        let counts: Vec<_> = second.codes.iter().map(|counted| (&*counted.code, counted.count)).collect();
        assert_eq!(counts, [("f", 3), ("b", 2), ("a", 1), ("c", 1), ("d", 1)]);
        assert_eq!((first.requests, first.refused, first.codes.len()), (1, 1, 1));
    }

    #[rstest::rstest]
    #[case(None, Some(24))]
    #[case(Some(""), Some(24))]
    #[case(Some("24"), Some(24))]
    #[case(Some("336"), Some(336))]
    #[case(Some("23"), None)]
    #[case(Some("337"), None)]
    #[case(Some("+24"), None)]
    #[case(Some("24h"), None)]
    fn a_period_has_a_day_to_two_weeks(#[case] asked: Option<&str>, #[case] hours: Option<i64>) {
        let now = Timestamp::from_ms(1_790_000_000_000);
        let since = hours.map(|hours| now + -TimeDelta::hours(hours));
        assert_eq!(SummaryPeriod::parse(asked, now).ok().map(|period| period.since), since);
    }
}
