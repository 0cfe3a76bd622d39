//! Phone numbers: stored as given, matched as E.164 with the workspace's present country as the default region.
//!
//! Google's libphonenumber parses them. The country of a workspace may change after its contacts were stored. So
//! contacts are indexed by the last digits of their number, which no country's rules change ([`PhoneEnding`]). A reader
//! of that index compares the E.164 forms.

use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, Region, get_national_significant_number_owned,
};
use serde::{Deserialize, Serialize};

use crate::country::Country;

/// Digits of an ending. Five digits distinguish most contacts of a workspace, and all but a few numbering plans have
/// longer numbers.
const ENDING_DIGITS: usize = 5;

/// Longest text that is parsed, in bytes. The library refuses longer ones too, but only after some work.
const MAX_PARSED_BYTES: usize = 250;

/// A phone number, as given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Phone(String);
crate::discreet! { Phone }

/// A phone number in E.164, the form in which numbers are compared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PhoneKey {
    e164: String,
    national: String,
}
crate::discreet! { PhoneKey }

/// The last digits of a number, without its extension: the same for every spelling, in any country.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PhoneEnding(String);
crate::discreet! { PhoneEnding }

impl Phone {
    /// Wraps any text: a number is stored as people write it, matchable or not.
    pub fn as_given(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the E.164 form, if the text parses to a possible number in the country or with its own country code. Its
    /// range need not be known to be in use: numbering plans change, and fictional numbers are in no range. A local
    /// number without its area code has no E.164 form.
    pub fn key(&self, country: Country) -> Option<PhoneKey> {
        let number = self.parse(country.as_str().parse().ok())?;
        let length = PHONE_NUMBER_UTIL.is_possible_number_with_reason(&number).ok()?;
        (length == NumberLengthType::IsPossible).then(|| PhoneKey {
            e164: PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164).into_owned(),
            national: get_national_significant_number_owned(&number),
        })
    }

    /// Returns the ending by which the number is found, whatever the workspace's country is then. `None`: no country
    /// reads the text as a number.
    ///
    /// Digits, extension and letters parse alike everywhere; the library requires a region. A number that begins like
    /// an international one with an unknown country code is parsed by a region with another international prefix.
    pub fn ending(&self) -> Option<PhoneEnding> {
        let number = self.parse(Some(Region::DE)).or_else(|| self.parse(Some(Region::US)))?;
        Some(PhoneEnding::of(&get_national_significant_number_owned(&number)))
    }

    fn parse(&self, region: Option<Region>) -> Option<PhoneNumber> {
        if self.0.len() > MAX_PARSED_BYTES {
            return None;
        }
        PHONE_NUMBER_UTIL.parse(&self.0, region).ok()
    }
}

impl PhoneKey {
    /// Returns the number in E.164, such as `+14155552671`.
    pub fn as_str(&self) -> &str {
        &self.e164
    }

    /// Returns the endings by which contacts with the number are found. A number of four digits, as in Niue, may be
    /// written with its country code and without a plus.
    pub fn endings(&self) -> Vec<PhoneEnding> {
        let is_short = self.national.len() < ENDING_DIGITS;
        let whole = is_short.then(|| PhoneEnding::of(self.e164.trim_start_matches('+')));
        std::iter::once(PhoneEnding::of(&self.national)).chain(whole).collect()
    }
}

impl PhoneEnding {
    fn of(digits: &str) -> Self {
        Self(digits[digits.len().saturating_sub(ENDING_DIGITS)..].to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests;
