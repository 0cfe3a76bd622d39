//! Phone numbers: kept as given, matched as E.164 with the workspace's country as the default region.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A country by its ISO 3166 alpha-2 code, upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Country([u8; 2]);

/// A text that is no country code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a country's ISO 3166 alpha-2 code such as US")]
pub struct InvalidCountry;

impl Country {
    /// Two upper-case letters that name a region with phone numbers.
    pub fn parse(text: &str) -> Result<Self, InvalidCountry> {
        let bytes: [u8; 2] = text.as_bytes().try_into().map_err(|_| InvalidCountry)?;
        if text.parse::<phonenumber::country::Id>().is_ok() { Ok(Self(bytes)) } else { Err(InvalidCountry) }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("two ASCII letters")
    }
}

impl TryFrom<String> for Country {
    type Error = InvalidCountry;
    fn try_from(text: String) -> Result<Self, InvalidCountry> {
        Self::parse(&text)
    }
}

impl From<Country> for String {
    fn from(country: Country) -> Self {
        country.as_str().to_owned()
    }
}

/// A phone number, as given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Phone(String);

/// A phone number in E.164, the form in which numbers are compared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PhoneKey(String);

impl Phone {
    /// Any text counts: what people write as their number is kept, whether or not it can be matched.
    pub fn as_given(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The number as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The E.164 form, when the text is a valid number in the country or with its own country code.
    pub fn key(&self, country: Country) -> Option<PhoneKey> {
        let region = country.as_str().parse::<phonenumber::country::Id>().ok()?;
        let number = phonenumber::parse(Some(region), &self.0).ok()?;
        number.is_valid().then(|| PhoneKey(number.format().mode(phonenumber::Mode::E164).to_string()))
    }
}

impl PhoneKey {
    /// The number in E.164, such as `+14155552671`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phone(..)")
    }
}

impl fmt::Debug for PhoneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PhoneKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("US", "(415) 555-2671", Some("+14155552671"))]
    #[case("US", "+44 20 7946 0958", Some("+442079460958"))]
    #[case("DE", "030 901820", Some("+4930901820"))]
    #[case("US", "call me", None)]
    #[case("US", "12", None)]
    fn numbers_match_as_e164_in_the_country(#[case] country: &str, #[case] given: &str, #[case] key: Option<&str>) {
        let found = Phone::as_given(given).key(Country::parse(country).unwrap());
        assert_eq!(found.as_ref().map(PhoneKey::as_str), key);
    }

    #[test]
    fn a_country_is_two_upper_case_letters_of_a_region() {
        assert!(Country::parse("GB").is_ok());
        for bad in ["gb", "XX", "GBR", ""] {
            assert!(Country::parse(bad).is_err(), "{bad}");
        }
    }
}
