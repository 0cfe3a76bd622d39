//! The request log of a coach: the requests by the coach's keys, and why each was refused.
//!
//! A record has no content: no value of a body, query or header, but for the program that called ([`RequestClient`]).

mod filter;
mod position;
mod record;
mod summary;

use chrono::TimeDelta;
use serde::Serialize;

pub use filter::{KEY_FILTER, RequestFilter, RequestNames, StatusFilter};
pub use position::RequestPosition;
pub use record::{RequestClient, RequestMethod, RequestRecord, shown_header};
pub use summary::{
    CodeCount, KeyRequests, MAX_SUMMARY_HOURS, MIN_SUMMARY_HOURS, RequestSummary, SUMMARY_PARAMETER, SummaryPeriod,
};

/// Time for which a record is kept.
pub const REQUEST_RETENTION: TimeDelta = TimeDelta::days(14);
/// Most records that one page of the log reads.
pub const MAX_READ_RECORDS: usize = 2_000;
/// Most records that one summary reads.
pub const MAX_SUMMED_RECORDS: usize = 5_000;
/// Most characters of the program that called.
pub const MAX_USER_AGENT_CHARS: usize = 120;
/// Most characters of the name and version of an assistant's program.
pub const MAX_CLIENT_CHARS: usize = 60;
/// Hexadecimal digits of an idempotency key's hash.
pub const KEY_HASH_DIGITS: usize = 12;

crate::named! {
    /// The requests that are kept: a setting of the deployment.
    KeptRequests {
        Off = "off",
        /// Requests that were refused or failed.
        Refused = "refused",
        /// Besides, the requests that wrote.
        Writes = "writes",
        /// Besides, the requests that read.
        All = "all",
    }
}

impl KeptRequests {
    /// Returns true if a request with this status is kept.
    pub fn include(self, writes: bool, status: u16) -> bool {
        let is_refusal = status >= 400;
        match self {
            Self::Off => false,
            Self::Refused => is_refusal,
            Self::Writes => is_refusal || writes,
            Self::All => true,
        }
    }
}

/// A page of the log.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct RequestPage {
    /// The records of this page, newest first. A page may be short, or empty, before the last one.
    pub data: Vec<RequestRecord>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(KeptRequests::Off, [false, false, false, false])]
    #[case(KeptRequests::Refused, [false, false, true, true])]
    #[case(KeptRequests::Writes, [false, true, true, true])]
    #[case(KeptRequests::All, [true, true, true, true])]
    fn a_setting_says_which_requests_are_kept(#[case] kept: KeptRequests, #[case] includes: [bool; 4]) {
        let requests = [(false, 200), (true, 201), (false, 404), (true, 500)];
        assert_eq!(requests.map(|(writes, status)| kept.include(writes, status)), includes);
    }

    #[test]
    fn the_longest_summary_is_of_all_records() {
        assert_eq!(i64::from(MAX_SUMMARY_HOURS), REQUEST_RETENTION.num_hours());
    }
}
