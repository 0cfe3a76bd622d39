//! Query parameters with a number. A page size or a window is never refused: anything but a positive integer falls back
//! to the default, and a large one is capped.

use serde::Serialize;

/// Bounds of a `limit`, or of another parameter with the same rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    pub default: u32,
    pub max: u32,
}

/// Page size of client lists.
pub const CLIENT_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of check-ins.
pub const CHECK_IN_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of daily-log dates.
pub const DAILY_LOG_PAGE: PageSize = PageSize { default: 90, max: 365 };
/// Page size of the lists of the CRM.
pub const CRM_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of a coach's keys.
pub const KEY_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of the audit trail.
pub const AUDIT_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of the delivery log.
pub const DELIVERY_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of the request log.
pub const REQUEST_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of the mails of a sandbox.
pub const MAIL_PAGE: PageSize = PageSize { default: 50, max: 200 };
/// Page size of the event feed.
pub const EVENT_PAGE: PageSize = PageSize { default: 50, max: 200 };

crate::named! {
    /// The direction of a list.
    Order {
        Asc = "asc",
        Desc = "desc",
    }
}

/// A page of a list of the CRM.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CrmPage<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

impl PageSize {
    /// Returns the size for a parameter. Only digits count: no sign, space, exponent or fraction. A number too large
    /// for a machine word is still a positive integer, and is capped.
    pub fn parse(self, parameter: Option<&str>) -> u32 {
        let digits = parameter.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        match digits.map(|text| text.trim_start_matches('0')) {
            None | Some("") => self.default,
            Some(text) => text.parse::<u32>().map_or(self.max, |size| size.min(self.max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[rstest::rstest]
    #[case(None, 50)]
    #[case(Some(""), 50)]
    #[case(Some("0"), 50)]
    #[case(Some("000"), 50)]
    #[case(Some("-1"), 50)]
    #[case(Some("+5"), 50)]
    #[case(Some(" 5"), 50)]
    #[case(Some("5.0"), 50)]
    #[case(Some("1e3"), 50)]
    #[case(Some("ten"), 50)]
    #[case(Some("٣"), 50)]
    #[case(Some("1"), 1)]
    #[case(Some("007"), 7)]
    #[case(Some("200"), 200)]
    #[case(Some("201"), 200)]
    #[case(Some("1000000000000000000000000000000"), 200)]
    fn a_limit_falls_back_or_is_capped(#[case] parameter: Option<&str>, #[case] size: u32) {
        assert_eq!(CLIENT_PAGE.parse(parameter), size);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_size_within_bounds(text in ".{0,40}") {
            let size = CLIENT_PAGE.parse(Some(&text));
            prop_assert!((1..=200).contains(&size));
        }
    }
}
