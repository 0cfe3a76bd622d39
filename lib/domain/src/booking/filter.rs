//! Filters of the list of bookings.

use crate::fields::Invalid;
use crate::id::{CalendarId, ContactId};
use crate::query::{parsed, time};
use crate::time::Timestamp;

/// Most bookings that a request with a filter reads. The next page goes on from there.
pub const MAX_READ_BOOKINGS: u32 = 2_000;

/// A filter of the list of bookings. The default shows every booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BookingFilter {
    /// The earliest start.
    pub from: Option<Timestamp>,
    /// The start before which the list ends.
    pub to: Option<Timestamp>,
    pub calendar_id: Option<CalendarId>,
    /// The contact of a booking: the one that the booking shows, or another that lives as the same person.
    pub lead_id: Option<ContactId>,
}

impl BookingFilter {
    /// Parses the query parameters, which `query` looks up. An empty one is no filter.
    pub fn parse(query: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Ok(Self {
            from: parsed(&query, "from", time)?,
            to: parsed(&query, "to", time)?,
            calendar_id: parsed(&query, "calendarId", CalendarId::parse)?,
            lead_id: parsed(&query, "leadId", ContactId::parse)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("from", "2026-11-20T09:30:00Z", "2026-11-20")]
    #[case("to", "2026-11-20T09:30:00 02:00", "2026-11-20 09:30")]
    #[case("calendarId", "0197A6A0-5C3B-7000-8000-2F1D3C4B5A69", "0197a6a05c3b700080002f1d3c4b5a69")]
    #[case("leadId", "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69", "lead")]
    fn a_filter_takes_its_form_and_refuses_another_by_name(#[case] name: &str, #[case] good: &str, #[case] bad: &str) {
        let parse = |value: &str| BookingFilter::parse(|asked| (asked == name).then(|| value.to_owned()));
        assert_ne!(parse(good), Ok(BookingFilter::default()));
        assert_eq!(parse(bad).unwrap_err().field.as_deref(), Some(name), "{bad:?}");
        assert_eq!(parse(""), Ok(BookingFilter::default()), "an empty filter is none");
    }
}
