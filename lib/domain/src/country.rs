//! Countries, by ISO 3166-1 alpha-2 code.

use serde::{Deserialize, Serialize};

const ASSIGNED: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT \
    BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH \
    ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT \
    HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS \
    LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI \
    NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG \
    SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG \
    UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

/// A country by its ISO 3166-1 alpha-2 code, upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Country([u8; 2]);

/// The text is not a country code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a country's ISO 3166 alpha-2 code such as US")]
pub struct InvalidCountry;

impl Country {
    /// Parses an assigned code in upper case. Antarctica counts as a country.
    pub fn parse(text: &str) -> Result<Self, InvalidCountry> {
        let code: [u8; 2] = text.as_bytes().try_into().map_err(|_| InvalidCountry)?;
        // Two letters and a blank each. Must be fast: every key that is read has a country.
        let is_assigned = ASSIGNED.as_bytes().chunks(3).any(|assigned| assigned.starts_with(&code));
        if is_assigned { Ok(Self(code)) } else { Err(InvalidCountry) }
    }

    pub fn as_str(&self) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assigned_code_is_a_country() {
        let countries: Vec<Country> = ASSIGNED.split(' ').map(|code| Country::parse(code).unwrap()).collect();
        assert_eq!(countries.len(), 249);
        for code in ["AQ", "BV", "HM", "TF", "UM", "GB", "BQ", "SS", "CW"] {
            assert_eq!(Country::parse(code).unwrap().as_str(), code);
        }
    }

    #[test]
    fn a_code_that_is_not_assigned_is_refused() {
        for bad in ["gb", "XX", "ZZ", "XK", "UK", "EU", "AN", "GBR", "G", "", "  ", "A ", "001"] {
            assert!(Country::parse(bad).is_err(), "{bad}");
        }
    }
}
