//! Phone numbers of all countries, in all spellings.

use proptest::prelude::*;
use rlibphonenumber::PhoneNumberType;

use super::*;

fn country(code: &str) -> Country {
    Country::parse(code).unwrap()
}

fn key(code: &str, given: &str) -> Option<String> {
    Phone::as_given(given).key(country(code)).map(|key| key.as_str().to_owned())
}

#[rstest::rstest]
#[case("US", "(415) 555-2671", Some("+14155552671"))]
#[case("US", "+39 (0)6 698 83712", Some("+390669883712"))]
#[case("US", "030 901820", None)]
#[case("US", "+868912345678", Some("+868912345678"))]
#[case("IT", "+39 391 231 2312", Some("+393912312312"))]
#[case("IN", "+91 ९८७६५ ४३२१०", Some("+919876543210"))]
#[case("AR", "011 15-2345-6789", Some("+5491123456789"))]
#[case("BR", "0 15 11 98765-4321", Some("+5511987654321"))]
#[case("RU", "8 (495) 123-45-67", Some("+74951234567"))]
#[case("US", "1-800-FLOWERS", Some("+18003569377"))]
#[case("US", "\u{200e}+1 (415) 555‑2671\u{202c}", Some("+14155552671"))]
// Ranges that are not known to be in use: fictional ones, and ones that a plan has added since.
#[case("GB", "01632 960001", Some("+441632960001"))]
#[case("IE", "020 917 4350", Some("+353209174350"))]
#[case("US", "(555) 555-0123", Some("+15555550123"))]
#[case("FR", "01 99 00 12 34", Some("+33199001234"))]
#[case("US", "555-0123", None)]
#[case("AQ", "106 123", None)]
#[case("AQ", "+1 415 555 2671", Some("+14155552671"))]
#[case("UM", "415 555 2671", None)]
#[case("US", "call me", None)]
#[case("US", "", None)]
fn numbers_match_as_e164_in_the_country(#[case] code: &str, #[case] given: &str, #[case] expected: Option<&str>) {
    assert_eq!(key(code, given).as_deref(), expected);
}

#[test]
fn a_text_longer_than_any_number_is_not_parsed() {
    let long = Phone::as_given(&"1 ".repeat(200));
    assert!(long.key(country("US")).is_none() && long.ending().is_none());
}

/// Fixed and mobile numbers of every country with numbers, and variants with other valid last digits.
fn numbers() -> Vec<(Country, PhoneNumber)> {
    let mut found = Vec::new();
    for region in PHONE_NUMBER_UTIL.get_supported_regions() {
        // Kosovo, Ascension and Tristan da Cunha have numbers, but no assigned code.
        let Ok(country) = Country::parse(&region.to_string()) else { continue };
        for kind in [PhoneNumberType::FixedLine, PhoneNumberType::Mobile] {
            let Ok(example) = PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, kind) else { continue };
            for change in [0_u64, 1, 7, 35, 110, 4_321] {
                let mut number = example.clone();
                number.national_number = example.national_number.saturating_sub(change);
                if PHONE_NUMBER_UTIL.is_valid_number_for_region(&number, region) {
                    found.push((country, number));
                }
            }
        }
    }
    found
}

/// Returns the text with its ASCII digits in another script, given by its zero.
fn in_script(text: &str, zero: char) -> String {
    text.chars().map(|c| c.to_digit(10).map_or(c, |digit| char::from_u32(zero as u32 + digit).unwrap())).collect()
}

#[test]
fn every_way_to_write_a_number_is_one_number_in_every_country() {
    let numbers = numbers();
    let countries: std::collections::BTreeSet<_> = numbers.iter().map(|(country, _)| country.as_str()).collect();
    assert!(countries.len() > 230, "{}", countries.len());
    for (country, number) in &numbers {
        let format = |format| PHONE_NUMBER_UTIL.format(number, format).into_owned();
        let e164 = format(PhoneNumberFormat::E164);
        let (national, international) = (format(PhoneNumberFormat::National), format(PhoneNumberFormat::International));
        let ways = [
            e164.clone(),
            international.clone(),
            format(PhoneNumberFormat::RFC3966),
            in_script(&international, '０'),
            in_script(&international, '٠'),
            in_script(&national, '０'),
            format!("{national} ext. 98765"),
            format!("  {}", national.replace([' ', '-'], ".")),
            national,
        ];
        let endings = Phone::as_given(&e164).key(*country).unwrap().endings();
        for way in ways {
            let phone = Phone::as_given(&way);
            let found = phone.key(*country).map(|key| key.as_str().to_owned());
            assert_eq!(found.as_ref(), Some(&e164), "{way} in {}", country.as_str());
            assert!(endings.contains(&phone.ending().unwrap()), "{way} in {}", country.as_str());
        }
    }
}

#[test]
fn a_number_with_an_international_prefix_is_one_number_from_every_country() {
    let numbers = numbers();
    for from in PHONE_NUMBER_UTIL.get_supported_regions() {
        let Ok(country) = Country::parse(&from.to_string()) else { continue };
        // Hong Kong's prefixes name carriers: `00 6` is one of them, and the library reads it before a country code.
        if country.as_str() == "HK" {
            continue;
        }
        for (_, number) in numbers.iter().step_by(251) {
            let e164 = PHONE_NUMBER_UTIL.format(number, PhoneNumberFormat::E164).into_owned();
            let way = PHONE_NUMBER_UTIL.format_out_of_country_calling_number(number, from).into_owned();
            let phone = Phone::as_given(&way);
            assert_eq!(phone.key(country).map(|key| key.as_str().to_owned()), Some(e164.clone()), "{way}");
            let own = Phone::as_given(&e164).key(country).unwrap();
            assert!(own.endings().contains(&phone.ending().unwrap()), "{way} in {}", country.as_str());
        }
    }
}

#[rstest::rstest]
#[case("GB", "+44 (0)20 7946 0958")]
#[case("DE", "+49 (0)30 901820")]
#[case("AU", "+61 (0)2 9876 5432")]
#[case("JP", "+81 (0)3 1234 5678")]
fn a_trunk_zero_in_brackets_is_dropped(#[case] code: &str, #[case] given: &str) {
    let without = given.replace("(0)", "");
    assert!(key(code, given).is_some());
    assert_eq!(key(code, given), key("US", &without));
    assert_eq!(key("US", given), key(code, &without.replace(' ', "")));
}

#[test]
fn a_short_number_is_found_however_its_country_code_is_written() {
    let key = Phone::as_given("+683 7012").key(country("US")).unwrap();
    for (code, way) in [("NU", "7012"), ("NU", "683 7012"), ("AU", "0011 683 7012"), ("US", "+683 7012")] {
        let phone = Phone::as_given(way);
        assert_eq!(phone.key(country(code)).as_ref(), Some(&key), "{way}");
        assert!(key.endings().contains(&phone.ending().unwrap()), "{way}");
    }
}

proptest! {
    #[test]
    fn any_text_is_stored_and_every_match_is_found_by_its_ending(
        text in "[+0-9 ().\\-xX/#*A-Fa-f٠-٩０-９]{0,30}|\\PC{0,40}", code in "DE|US|JP|BR|AQ|RU|NU|IT|AR|MX"
    ) {
        let phone = Phone::as_given(&text);
        prop_assert_eq!(phone.as_str(), text.as_str());
        if let Some(key) = phone.key(country(&code)) {
            prop_assert!(phone.ending().is_some_and(|ending| key.endings().contains(&ending)), "{} in {}", text, code);
        }
    }
}
