//! Facts about calendars and the events on them.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use crate::booking::{BookingStatus, CalendarEventSaved};
use crate::busy::Span;
use crate::calendar::{
    Buffers, Calendar, HORIZON_DAYS, MAX_BUFFER_MINUTES, MAX_NOTICE_MINUTES, MAX_OVERRIDES, OpeningHours, SLOT_MINUTES,
    Weekly, hours,
};
use crate::fact_values::{cents, name, named, nullable, object, parsed, rule_of, within};
use crate::id::{CalendarEntryId, CalendarId, CoachId, ContactId};
use crate::time::{Timestamp, parse_date};
use crate::tz::Tz;

const MAX_URL_CHARS: usize = 2_048;

/// The whole record of a calendar, as the application has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CalendarSaved {
    pub coach_id: CoachId,
    pub calendar_id: CalendarId,
    #[serde(deserialize_with = "name")]
    name: String,
    time_zone: Tz,
    #[serde(deserialize_with = "cents")]
    price_cents: u64,
    #[serde(deserialize_with = "currency")]
    currency: String,
    #[serde(deserialize_with = "web_address")]
    booking_url: String,
    active: bool,
    #[serde(deserialize_with = "slot")]
    slot_minutes: u32,
    #[serde(deserialize_with = "slot")]
    slot_interval_minutes: u32,
    #[serde(deserialize_with = "buffer")]
    buffer_before_minutes: u32,
    #[serde(deserialize_with = "buffer")]
    buffer_after_minutes: u32,
    #[serde(deserialize_with = "notice")]
    min_notice_minutes: u32,
    #[serde(deserialize_with = "horizon")]
    horizon_days: u32,
    #[serde(deserialize_with = "object")]
    weekly: Weekly,
    #[serde(deserialize_with = "overrides")]
    overrides: BTreeMap<NaiveDate, Vec<OpeningHours>>,
}

impl CalendarSaved {
    pub fn calendar(&self) -> Calendar {
        Calendar {
            id: self.calendar_id,
            name: self.name.clone(),
            time_zone: self.time_zone,
            price_cents: self.price_cents,
            currency: self.currency.clone(),
            booking_url: self.booking_url.clone(),
            active: self.active,
            slot_minutes: self.slot_minutes,
            slot_interval_minutes: self.slot_interval_minutes,
            buffers: Buffers { before_min: self.buffer_before_minutes, after_min: self.buffer_after_minutes },
            min_notice_minutes: self.min_notice_minutes,
            horizon_days: self.horizon_days,
            weekly: self.weekly.clone(),
            overrides: self.overrides.clone(),
        }
    }
}

/// Reads an event on a calendar.
pub(super) fn event<'de, D: Deserializer<'de>>(input: D) -> Result<CalendarEventSaved, D::Error> {
    #[derive(Deserialize)]
    struct Event {
        event_id: CalendarEntryId,
        coach_id: CoachId,
        #[serde(deserialize_with = "nullable")]
        calendar_id: Option<CalendarId>,
        #[serde(deserialize_with = "nullable")]
        lead_id: Option<ContactId>,
        starts_at: Timestamp,
        ends_at: Timestamp,
        #[serde(deserialize_with = "named")]
        status: BookingStatus,
    }
    let Event { event_id, coach_id, calendar_id, lead_id, starts_at, ends_at, status } = Event::deserialize(input)?;
    if ends_at < starts_at {
        return Err(D::Error::custom(rule_of("ends_at", "must not be before starts_at")));
    }
    Ok(CalendarEventSaved { event_id, coach_id, calendar_id, lead_id, span: Span { starts_at, ends_at }, status })
}

fn slot<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    within(input, SLOT_MINUTES)
}

fn buffer<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    within(input, 0..=MAX_BUFFER_MINUTES)
}

fn notice<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    within(input, 0..=MAX_NOTICE_MINUTES)
}

fn horizon<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    within(input, HORIZON_DAYS)
}

fn currency<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    const RULE: &str = "must be an ISO 4217 code of three upper-case letters, such as EUR";
    let is_code = |text: &str| text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
    parsed(input, MAX_URL_CHARS, |text| if is_code(text) { Ok(text.to_owned()) } else { Err(RULE) })
}

fn web_address<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    const RULE: &str = "must be a URL that begins with https:// or http://";
    let is_web = |text: &str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    parsed(input, MAX_URL_CHARS, |text| if is_web(text) { Ok(text.to_owned()) } else { Err(RULE) })
}

/// Reads the opening hours of dates. An error names no date that is none.
fn overrides<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<NaiveDate, Vec<OpeningHours>>, D::Error> {
    let dates = BTreeMap::<String, Value>::deserialize(input)?;
    if dates.len() > MAX_OVERRIDES {
        return Err(D::Error::custom(format_args!("must have at most {MAX_OVERRIDES} dates")));
    }
    let dated = dates.into_iter().map(|(name, given)| {
        let date = parse_date(&name).ok_or_else(|| D::Error::custom("must have dates YYYY-MM-DD as names"))?;
        Ok((date, hours(given).map_err(|rule| D::Error::custom(rule_of(&name, rule)))?))
    });
    dated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{MAX_HOURS_A_DAY, MAX_PRICE_CENTS};
    use crate::fact::tests::assert_every_field_counts;
    use crate::fact::{Fact, FactBody, known_fields};
    use crate::tz::tests::zone;
    use serde_json::json;

    fn calendar_saved() -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "calendar_id": "0197A6A0-5c3b-7000-8000-2f1d3c4b5a69",
            "coach_id": "coach_1", "name": "Consultation", "time_zone": "Australia/Lord_Howe", "price_cents": 5000,
            "currency": "EUR", "booking_url": "https://book.example/c", "active": true, "slot_minutes": 45,
            "slot_interval_minutes": 15, "buffer_before_minutes": 5, "buffer_after_minutes": 10,
            "min_notice_minutes": 120, "horizon_days": 60,
            "weekly": {
                "mon": [["09:00", "12:00"], ["13:00", "24:00"]], "tue": [], "wed": [["00:00", "00:01"]], "thu": [],
                "fri": [], "sat": [], "sun": [["10:00", "11:00"]]
            },
            "overrides": {"2026-12-24": [], "2028-02-29": [["23:59", "24:00"]]}
        })
    }

    fn event_saved() -> Value {
        json!({
            "id": "f1", "occurred_at": "2026-01-02T03:04:05Z", "event_id": "0197a6a0-5c3b-7000-8000-2f1d3c4b5a70",
            "coach_id": "coach_1", "calendar_id": null, "lead_id": null, "starts_at": "2026-07-01T10:00:00Z",
            "ends_at": "2026-07-01T11:00:00.5Z", "status": "confirmed"
        })
    }

    fn calendar_of(fact: &Value) -> Calendar {
        let FactBody::CalendarSaved(saved) = Fact::parse("calendar.saved", fact).unwrap().body else {
            panic!("a calendar")
        };
        saved.calendar()
    }

    fn event_of(fact: &Value) -> CalendarEventSaved {
        let FactBody::CalendarEventSaved(saved) = Fact::parse("calendar_event.saved", fact).unwrap().body else {
            panic!("an event")
        };
        saved
    }

    #[track_caller]
    fn refused(name: &str, fact: &Value, field: &str) {
        let error = Fact::parse(name, fact).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
        assert!(error.message.contains(field), "{error}");
    }

    #[test]
    fn a_calendar_is_read_whole_and_stored_as_it_is() {
        let calendar = calendar_of(&calendar_saved());
        assert_eq!(calendar.id.to_string(), "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69");
        assert_eq!(calendar.time_zone, zone("Australia/Lord_Howe"));
        assert_eq!(calendar.buffers, Buffers { before_min: 5, after_min: 10 });
        let hours = |day: &str| {
            let hours = calendar.hours_on(day.parse().unwrap());
            hours.iter().map(|hours| (hours.opens_min(), hours.closes_min())).collect::<Vec<_>>()
        };
        assert_eq!(hours("2026-12-21"), [(540, 720), (780, 1_440)]);
        assert_eq!(hours("2026-12-22"), []);
        assert_eq!(hours("2026-12-23"), [(0, 1)]);
        assert_eq!(hours("2026-12-24"), []);
        assert_eq!(hours("2028-02-29"), [(1_439, 1_440)]);
        let stored = serde_json::to_value(&calendar).unwrap();
        assert_eq!(stored["weekly"]["mon"], json!([["09:00", "12:00"], ["13:00", "24:00"]]));
        assert_eq!(serde_json::from_value::<Calendar>(stored).unwrap(), calendar);
    }

    #[test]
    fn an_event_is_read_with_and_without_a_calendar() {
        let private = event_of(&event_saved());
        assert_eq!((private.calendar_id, private.lead_id, private.status), (None, None, BookingStatus::Confirmed));
        assert_eq!(private.span.ends_at.ms() - private.span.starts_at.ms(), 3_600_500);
        let mut booking = event_saved();
        booking["calendar_id"] = json!("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69");
        booking["lead_id"] = json!("0197A6A0-5C3B-7000-8000-2F1D3C4B5A71");
        booking["status"] = json!("cancelled");
        booking["ends_at"] = booking["starts_at"].clone();
        let booking = event_of(&booking);
        assert_eq!(booking.lead_id.unwrap().to_string(), "0197a6a0-5c3b-7000-8000-2f1d3c4b5a71");
        assert!(booking.calendar_id.is_some() && booking.span.is_empty());
        assert_eq!(booking.status, BookingStatus::Cancelled);
    }

    #[test]
    fn a_missing_or_mistyped_field_is_refused_by_name() {
        for (name, whole) in [("calendar.saved", calendar_saved()), ("calendar_event.saved", event_saved())] {
            assert_every_field_counts(name, &whole, &[json!(["x"]), json!(1.5), json!(-1)]);
            for field in whole.as_object().unwrap().keys() {
                // A calendar's name may be empty.
                if field != "name" {
                    let mut empty = whole.clone();
                    empty[field] = json!("");
                    refused(name, &empty, field);
                }
                let mut null = whole.clone();
                null[field] = Value::Null;
                let may_be_null = matches!((name, field.as_str()), ("calendar_event.saved", "calendar_id" | "lead_id"));
                assert_eq!(Fact::parse(name, &null).is_ok(), may_be_null, "{field}");
            }
        }
        for day in ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] {
            let mut lacking = calendar_saved();
            lacking["weekly"][day] = Value::Null;
            refused("calendar.saved", &lacking, &format!("weekly.{day}"));
        }
    }

    #[test]
    fn a_day_of_the_week_that_is_left_out_is_closed() {
        let mut fact = calendar_saved();
        fact["weekly"] = json!({ "tue": [["09:00", "10:00"]] });
        let weekly = calendar_of(&fact).weekly;
        assert_eq!(weekly.tue.len(), 1);
        let others = [weekly.mon, weekly.wed, weekly.thu, weekly.fri, weekly.sat, weekly.sun];
        assert!(others.iter().all(Vec::is_empty));
        fact["weekly"] = json!({});
        assert!(calendar_of(&fact).weekly.tue.is_empty());
    }

    #[rstest::rstest]
    #[case("slot_minutes", &[5, 1_440], &[4, 1_441])]
    #[case("slot_interval_minutes", &[5, 1_440], &[0, 4, 1_441])]
    #[case("buffer_before_minutes", &[0, 240], &[241])]
    #[case("buffer_after_minutes", &[0, 240], &[241])]
    #[case("min_notice_minutes", &[0, 525_600], &[525_601])]
    #[case("horizon_days", &[1, 400], &[0, 401])]
    #[case("price_cents", &[0, MAX_PRICE_CENTS], &[MAX_PRICE_CENTS + 1])]
    fn a_number_is_within_its_limits(#[case] field: &str, #[case] right: &[u64], #[case] wrong: &[u64]) {
        let with = |number: u64| {
            let mut fact = calendar_saved();
            fact[field] = json!(number);
            fact
        };
        for number in right {
            calendar_of(&with(*number));
        }
        for number in wrong {
            refused("calendar.saved", &with(*number), field);
        }
    }

    #[rstest::rstest]
    #[case("time_zone", "Europe/Atlantis")]
    #[case("time_zone", "+02:00")]
    #[case("currency", "eur")]
    #[case("currency", "EURO")]
    #[case("currency", "E1R")]
    #[case("currency", "€")]
    #[case("booking_url", "book.example")]
    #[case("booking_url", "javascript:alert(1)")]
    #[case("calendar_id", "calendar_1")]
    fn a_text_has_its_form(#[case] field: &str, #[case] wrong: &str) {
        let mut fact = calendar_saved();
        fact[field] = json!(wrong);
        refused("calendar.saved", &fact, field);
    }

    #[test]
    fn opening_hours_are_pairs_of_times_that_close_after_they_open() {
        let one = |opens: &str, closes: &str| json!([[opens, closes]]);
        let wrong = [
            one("9:00", "10:00"),
            one("09:00", "10:60"),
            one("09:00", "24:01"),
            one("24:00", "24:00"),
            one("09:00", "09:00"),
            one("10:00", "09:00"),
            one("09:00 ", "10:00"),
            json!([["09:00"]]),
            json!([["09:00", "10:00", "11:00"]]),
            json!([["09:00", 600]]),
            json!(["09:00", "10:00"]),
            json!({"from": "09:00"}),
            json!(null),
            Value::Array(vec![json!(["09:00", "10:00"]); MAX_HOURS_A_DAY + 1]),
        ];
        for hours in wrong {
            for (member, day) in [("weekly", "thu"), ("overrides", "2026-12-24")] {
                let mut fact = calendar_saved();
                fact[member][day] = hours.clone();
                refused("calendar.saved", &fact, &format!("{member}.{day}"));
                assert!(Fact::parse("calendar.saved", &known_fields("calendar.saved", &fact)).is_err(), "{hours}");
            }
        }
        let mut most = calendar_saved();
        most["weekly"]["thu"] = Value::Array(vec![json!(["09:00", "10:00"]); MAX_HOURS_A_DAY]);
        assert_eq!(calendar_of(&most).weekly.thu.len(), MAX_HOURS_A_DAY);
    }

    #[test]
    fn hours_of_their_own_have_dates_and_not_too_many() {
        for name in ["2027-02-29", "24.12.2026", "mon", ""] {
            let mut fact = calendar_saved();
            fact["overrides"][name] = json!([]);
            refused("calendar.saved", &fact, "overrides");
        }
        let first: NaiveDate = "2026-01-01".parse().unwrap();
        for (count, fits) in [(MAX_OVERRIDES, true), (MAX_OVERRIDES + 1, false)] {
            let mut fact = calendar_saved();
            fact["overrides"] = first.iter_days().take(count).map(|date| (date.to_string(), json!([]))).collect();
            assert_eq!(Fact::parse("calendar.saved", &fact).is_ok(), fits);
        }
    }

    #[test]
    fn an_event_ends_no_sooner_than_it_starts() {
        let mut fact = event_saved();
        fact["ends_at"] = json!("2026-07-01T09:59:59.999Z");
        refused("calendar_event.saved", &fact, "ends_at");
        for (field, wrong) in [("status", "tentative"), ("lead_id", "lead_1"), ("calendar_id", ""), ("event_id", "e")] {
            let mut fact = event_saved();
            fact[field] = json!(wrong);
            refused("calendar_event.saved", &fact, field);
        }
    }
}
