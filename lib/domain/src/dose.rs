//! Doses: a client's schedule, and the number of logs of each dose per day.

use std::collections::BTreeMap;

use chrono::{Datelike, NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use crate::fact_values::{count, date, nullable_date};
use crate::id::DoseId;

/// Most doses of a schedule. With the longest ids, a message holds fewer.
pub const MAX_SCHEDULED_DOSES: usize = 2_000;
/// Days after its end for which a dose is stored: more than any window of compliance.
pub const STORED_AFTER_END: TimeDelta = TimeDelta::days(120);

/// A client's whole dose schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DoseSchedule(pub Vec<ScheduledDose>);

/// A dose to take a number of times a day, from a date on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledDose {
    pub dose_id: DoseId,
    #[serde(deserialize_with = "count")]
    pub per_day: u32,
    /// First date.
    #[serde(deserialize_with = "date")]
    pub from: NaiveDate,
    /// Last date; `None` while there is no end.
    #[serde(deserialize_with = "nullable_date")]
    pub until: Option<NaiveDate>,
}

impl ScheduledDose {
    fn on(&self, date: NaiveDate) -> u32 {
        let scheduled = self.from <= date && self.until.is_none_or(|until| date <= until);
        if scheduled { self.per_day } else { 0 }
    }
}

impl DoseSchedule {
    pub fn expected_on(&self, date: NaiveDate) -> u64 {
        self.0.iter().map(|dose| u64::from(dose.on(date))).sum()
    }

    /// Returns true if the dose is scheduled on the date.
    pub fn has(&self, dose: &DoseId, date: NaiveDate) -> bool {
        self.0.iter().any(|scheduled| scheduled.dose_id == *dose && scheduled.on(date) > 0)
    }
}

/// A calendar month. Renders as `YYYY-MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: i32,
    month: u32,
}

impl Month {
    pub fn of(date: NaiveDate) -> Self {
        Self { year: date.year(), month: date.month() }
    }

    pub fn parse(text: &str) -> Option<Self> {
        crate::time::parse_date(&format!("{text}-01")).map(Self::of)
    }
}

impl std::fmt::Display for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

const DAYS: usize = 31;
const BYTES_PER_DAY: usize = 2;

/// The number of logs of each dose on each day of a month.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonthOfDoses(BTreeMap<DoseId, [u16; DAYS]>);

impl MonthOfDoses {
    pub fn add(&mut self, dose: &DoseId, date: NaiveDate) {
        let counts = self.0.entry(dose.clone()).or_default();
        counts[date.day0() as usize] = counts[date.day0() as usize].saturating_add(1);
    }

    pub fn remove(&mut self, dose: &DoseId, date: NaiveDate) {
        let Some(counts) = self.0.get_mut(dose) else { return };
        counts[date.day0() as usize] = counts[date.day0() as usize].saturating_sub(1);
        if counts.iter().all(|count| *count == 0) {
            self.0.remove(dose);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the doses with their counts as bytes: two per day, little-endian.
    pub fn to_bytes(&self) -> impl Iterator<Item = (&DoseId, Vec<u8>)> {
        self.0.iter().map(|(dose, counts)| (dose, counts.iter().flat_map(|count| count.to_le_bytes()).collect()))
    }

    /// Reads the form of [`MonthOfDoses::to_bytes`]. `None`: another form.
    pub fn from_bytes<'a>(doses: impl Iterator<Item = (DoseId, &'a [u8])>) -> Option<Self> {
        let mut month = Self::default();
        for (dose, bytes) in doses {
            let (days, rest) = bytes.as_chunks::<BYTES_PER_DAY>();
            let counts: Vec<u16> = days.iter().map(|day| u16::from_le_bytes(*day)).collect();
            if !rest.is_empty() {
                return None;
            }
            month.0.insert(dose, counts.try_into().ok()?);
        }
        Some(month)
    }
}

/// The logs of doses in the months that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DosesLogged(pub BTreeMap<Month, MonthOfDoses>);

impl DosesLogged {
    /// Returns the number of logs of scheduled doses on a date.
    pub fn counting_on(&self, date: NaiveDate, schedule: &DoseSchedule) -> u64 {
        let Some(month) = self.0.get(&Month::of(date)) else { return 0 };
        let counting = month.0.iter().filter(|(dose, _)| schedule.has(dose, date));
        counting.map(|(_, counts)| u64::from(counts[date.day0() as usize])).sum()
    }

    pub fn last_logged_on(&self) -> Option<NaiveDate> {
        self.0.iter().rev().find_map(|(month, doses)| {
            let day = doses.0.values().filter_map(|counts| counts.iter().rposition(|count| *count > 0)).max()?;
            NaiveDate::from_ymd_opt(month.year, month.month, u32::try_from(day).ok()? + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> DoseId {
        DoseId::parse(text).unwrap()
    }

    proptest! {
        #[test]
        fn a_month_counts_logs_minus_deletions_and_survives_storage(
            events in prop::collection::vec((0u8..3, 1u32..=31, any::<bool>()), 0..200)
        ) {
            let day = |n: u32| NaiveDate::from_ymd_opt(2026, 1, n).unwrap();
            let mut month = MonthOfDoses::default();
            let mut counts: BTreeMap<(u8, u32), u16> = BTreeMap::new();
            for (dose, n, add) in events {
                let count = counts.entry((dose, n)).or_default();
                if add {
                    month.add(&id(&dose.to_string()), day(n));
                    *count += 1;
                } else {
                    month.remove(&id(&dose.to_string()), day(n));
                    *count = count.saturating_sub(1);
                }
            }
            let stored: Vec<(DoseId, Vec<u8>)> = month.to_bytes().map(|(dose, bytes)| (dose.clone(), bytes)).collect();
            let read = MonthOfDoses::from_bytes(stored.iter().map(|(dose, bytes)| (dose.clone(), bytes.as_slice())));
            prop_assert_eq!(read.as_ref(), Some(&month));
            let logged = DosesLogged(BTreeMap::from([(Month::of(day(1)), month.clone())]));
            let all = DoseSchedule((0..3).map(|dose: u8| ScheduledDose {
                dose_id: id(&dose.to_string()), per_day: 1, from: day(1), until: None,
            }).collect());
            for n in 1..=31 {
                let expected: u64 = (0..3).map(|dose| u64::from(counts.get(&(dose, n)).copied().unwrap_or(0))).sum();
                prop_assert_eq!(logged.counting_on(day(n), &all), expected);
            }
            let last = counts.iter().filter(|(_, count)| **count > 0).map(|((_, n), _)| day(*n)).max();
            prop_assert_eq!(logged.last_logged_on(), last);
            prop_assert_eq!(month.is_empty(), last.is_none());
        }
    }

    #[test]
    fn months_sort_as_their_texts_do() {
        for text in ["0001-01", "2026-09", "2026-10", "9999-12"] {
            assert_eq!(Month::parse(text).unwrap().to_string(), text);
        }
        assert!(Month::parse("2026-13").is_none() && Month::parse("2026-1").is_none());
        assert!(Month::parse("2026-09") < Month::parse("2026-10"));
    }
}
