//! Facts about calendars and the events on them.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde_json::Value;
use url::Url;

use super::values::{name, present};
use crate::booking::{BookingStatus, CalendarEventSaved};
use crate::busy::Span;
use crate::calendar::{
    Buffers, Calendar, HORIZON_DAYS, MAX_BUFFER_MINUTES, MAX_HOURS_A_DAY, MAX_NOTICE_MINUTES, MAX_OVERRIDES,
    MAX_PRICE_CENTS, OpeningHours, SLOT_MINUTES, Weekly,
};
use crate::fields::{Fields, Invalid};
use crate::id::{CalendarEventId, CalendarId, CoachId, ContactId, MAX_ID_CHARS};
use crate::time::parse_date;
use crate::tz::Tz;

const MAX_URL_CHARS: usize = 2_048;

/// The whole record of a calendar, as the application has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarSaved {
    pub coach_id: CoachId,
    pub calendar: Calendar,
}

pub(super) fn calendar(fields: Fields<'_>) -> Result<CalendarSaved, Invalid> {
    let calendar = Calendar {
        id: fields.required("calendar_id", usize::MAX, CalendarId::parse)?,
        name: name(fields, "name")?,
        time_zone: fields.required("time_zone", MAX_ID_CHARS, |text| {
            text.parse::<Tz>().map_err(|_| "must be an IANA time zone such as Europe/Berlin")
        })?,
        price_cents: fields.required_whole_number("price_cents", MAX_PRICE_CENTS)?,
        currency: fields.required("currency", 3, currency)?,
        booking_url: fields.required("booking_url", MAX_URL_CHARS, web_address)?,
        active: fields.required_boolean("active")?,
        slot_minutes: fields.required_within("slot_minutes", SLOT_MINUTES)?,
        slot_interval_minutes: fields.required_within("slot_interval_minutes", SLOT_MINUTES)?,
        buffers: Buffers {
            before_min: fields.required_within("buffer_before_minutes", 0..=MAX_BUFFER_MINUTES)?,
            after_min: fields.required_within("buffer_after_minutes", 0..=MAX_BUFFER_MINUTES)?,
        },
        min_notice_minutes: fields.required_within("min_notice_minutes", 0..=MAX_NOTICE_MINUTES)?,
        horizon_days: fields.required_within("horizon_days", HORIZON_DAYS)?,
        weekly: weekly(fields.required_object("weekly", "weekly.")?)?,
        overrides: overrides(fields.required_object("overrides", "overrides.")?)?,
    };
    Ok(CalendarSaved { coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?, calendar })
}

pub(super) fn event(fields: Fields<'_>) -> Result<CalendarEventSaved, Invalid> {
    present(fields, "calendar_id")?;
    present(fields, "lead_id")?;
    let starts_at = fields.required_timestamp("starts_at")?;
    let ends_at = fields.required_timestamp("ends_at")?;
    if ends_at < starts_at {
        return Err(fields.refuse("ends_at", "must not be before starts_at"));
    }
    Ok(CalendarEventSaved {
        event_id: fields.required("event_id", usize::MAX, CalendarEventId::parse)?,
        coach_id: fields.required("coach_id", MAX_ID_CHARS, CoachId::parse)?,
        calendar_id: fields.parsed("calendar_id", usize::MAX, CalendarId::parse)?,
        lead_id: fields.parsed("lead_id", usize::MAX, ContactId::parse)?,
        span: Span { starts_at, ends_at },
        status: fields.required("status", MAX_ID_CHARS, BookingStatus::parse)?,
    })
}

fn currency(text: &str) -> Result<String, &'static str> {
    let code = text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
    if code { Ok(text.to_owned()) } else { Err("must be an ISO 4217 code of three upper-case letters, such as EUR") }
}

fn web_address(text: &str) -> Result<String, &'static str> {
    let web = Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if web { Ok(text.to_owned()) } else { Err("must be a URL that begins with https:// or http://") }
}

/// An omitted day is closed.
fn weekly(days: Fields<'_>) -> Result<Weekly, Invalid> {
    let on = |day: &str| if days.mentions(day) { hours(days, day) } else { Ok(Vec::new()) };
    Ok(Weekly {
        mon: on("mon")?,
        tue: on("tue")?,
        wed: on("wed")?,
        thu: on("thu")?,
        fri: on("fri")?,
        sat: on("sat")?,
        sun: on("sun")?,
    })
}

fn overrides(dates: Fields<'_>) -> Result<BTreeMap<NaiveDate, Vec<OpeningHours>>, Invalid> {
    if dates.names().count() > MAX_OVERRIDES {
        return Err(Invalid::field("overrides", format_args!("must have at most {MAX_OVERRIDES} dates")));
    }
    let dated = dates.names().map(|name| {
        let date =
            parse_date(name).ok_or_else(|| Invalid::field("overrides", "must have dates YYYY-MM-DD as names"))?;
        Ok((date, hours(dates, name)?))
    });
    dated.collect()
}

/// Reads the opening hours of a day. An empty list closes it.
fn hours(days: Fields<'_>, day: &str) -> Result<Vec<OpeningHours>, Invalid> {
    let rule = format_args!("must be an array of at most {MAX_HOURS_A_DAY} pairs of times HH:MM");
    let list = days.value(day).and_then(Value::as_array).filter(|list| list.len() <= MAX_HOURS_A_DAY);
    let list = list.ok_or_else(|| days.refuse(day, rule))?;
    let pairs = list.iter().map(|pair| {
        let pair = pair.as_array().map(Vec::as_slice);
        let Some([Value::String(opens), Value::String(closes)]) = pair else { return Err(days.refuse(day, rule)) };
        OpeningHours::parse(opens, closes).map_err(|rule| days.refuse(day, rule))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Fact, FactBody, cleaned};
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
        saved.calendar
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
            assert_eq!(cleaned(name, &whole), whole);
            for field in whole.as_object().unwrap().keys() {
                let mut lacking = whole.clone();
                lacking.as_object_mut().unwrap().remove(field);
                refused(name, &lacking, field);
                for wrong in [json!(["x"]), json!(1.5), json!(-1), json!("")] {
                    // A calendar's name may be empty.
                    if field == "name" && wrong == json!("") {
                        continue;
                    }
                    let mut mistyped = whole.clone();
                    mistyped[field] = wrong;
                    refused(name, &mistyped, field);
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
                assert!(Fact::parse("calendar.saved", &cleaned("calendar.saved", &fact)).is_err(), "{hours}");
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
