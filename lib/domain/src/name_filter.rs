//! The filter `name` of the lists of clients and of contacts: a part of a person's name.
//!
//! The filter and a name are compared in a folded form: Unicode's compatibility decomposition (NFKD) without marks and
//! without signs that do not show, lower-cased, blanks as one, and letters that no decomposition reaches as people type
//! them on another keyboard. Each character folds by itself. So any part of a name folds to a part of the folded name.
//!
//! The length counts the text as sent, as the schema of the parameter does: `ß` is one character, although it folds to
//! two, and `e` with an accent of its own is two, although it folds to one.

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};

use crate::fields::Invalid;
use crate::query::parsed;
use crate::visible::does_not_show;

/// Fewest characters of the filter.
pub const MIN_NAME_FILTER_CHARS: usize = 2;
/// Most characters of the filter.
pub const MAX_NAME_FILTER_CHARS: usize = 100;

/// Most clients or contacts that a request with the filter reads. The next page goes on from there.
pub const MAX_READ_FOR_NAME: u32 = 2_000;

/// A part of a name, folded.
#[derive(Clone, PartialEq, Eq)]
pub struct NameFilter {
    folded: String,
}
crate::discreet! { NameFilter }

/// The rule that a filter breaks. Completes a sentence that begins with the parameter's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNameFilter {
    #[error("must be {} to {} characters", MIN_NAME_FILTER_CHARS, MAX_NAME_FILTER_CHARS)]
    Length,
    #[error("must have a letter, a digit or another sign that shows; blanks and marks alone match nobody")]
    NothingShows,
    /// The request has another filter, which finds a few records by itself.
    #[error("does not go with {0}, which finds its records by itself")]
    Beside(&'static str),
}

impl NameFilter {
    /// The query parameter.
    pub const PARAMETER: &str = "name";

    /// Parses the query parameter, which `query` looks up. An empty one is no filter. Another one does not go with the
    /// filters of `others`, empty or not.
    pub fn from_query(
        query: impl Fn(&str) -> Option<String>,
        others: &[&'static str],
    ) -> Result<Option<Self>, Invalid> {
        let beside = others.iter().find(|other| query(other).is_some());
        parsed(&query, Self::PARAMETER, |text| match beside {
            Some(other) => Err(InvalidNameFilter::Beside(other)),
            None => Self::parse(text),
        })
    }

    /// Parses the text of the filter.
    pub fn parse(text: &str) -> Result<Self, InvalidNameFilter> {
        if !(MIN_NAME_FILTER_CHARS..=MAX_NAME_FILTER_CHARS).contains(&text.chars().count()) {
            return Err(InvalidNameFilter::Length);
        }
        let folded = folded(text);
        if folded.is_empty() { Err(InvalidNameFilter::NothingShows) } else { Ok(Self { folded }) }
    }

    /// Returns true if the name contains the text of the filter.
    pub fn matches(&self, name: &str) -> bool {
        folded(name).contains(&self.folded)
    }
}

/// Returns the form in which names are compared, without blanks at its ends.
fn folded(text: &str) -> String {
    let categories = CodePointMapData::<GeneralCategory>::new();
    let counts = |c: &char| !GeneralCategoryGroup::Mark.contains(categories.get(*c)) && !does_not_show(*c);
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(text);
    let mut folded = String::with_capacity(decomposed.len());
    for word in decomposed.split_whitespace() {
        // A word may consist of marks alone.
        if !folded.is_empty() && !folded.ends_with(' ') {
            folded.push(' ');
        }
        for letter in word.chars().filter(counts).flat_map(char::to_lowercase) {
            match as_typed(letter) {
                Some(typed) => folded.push_str(typed),
                None => folded.push(letter),
            }
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

/// Returns the letters for which a lower-case letter without a decomposition counts: those that people type instead.
/// `ß` and the final sigma are Unicode's case folding, which lower-casing leaves out. The capital `İ` has a
/// decomposition.
fn as_typed(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ł' => "l",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[rstest::rstest]
    #[case::same("Ada Lovelace", "Ada Lovelace", true)]
    #[case::case("Ada Lovelace", "aDA lOVE", true)]
    #[case::inside("Ada Lovelace", "velac", true)]
    #[case::over_a_blank("Ada Lovelace", "a l", true)]
    #[case::another("Ada Lovelace", "grace", false)]
    #[case::longer("Ada", "Ada Lovelace", false)]
    #[case::another_order("Ada Lovelace", "lovelace ada", false)]
    #[case::without_the_blank("Ada Lovelace", "adalovelace", false)]
    #[case::nameless("", "ad", false)]
    #[case::umlaut("Jürgen Müller", "jurgen MULLER", true)]
    #[case::umlaut_asked("Jurgen Muller", "MÜLL", true)]
    #[case::umlaut_in_two_signs("Ju\u{308}rgen", "jürg", true)]
    #[case::umlaut_is_no_diphthong("Müller", "mueller", false)]
    #[case::sharp_s("Groß", "GROSS", true)]
    #[case::sharp_s_asked("Gross", "groß", true)]
    #[case::capital_sharp_s("GROẞ", "gross", true)]
    #[case::polish("Łukasz Wałęsa", "lukasz walesa", true)]
    #[case::polish_asked("Zolc", "ŻÓŁĆ", true)]
    #[case::danish("Søren Ærø", "soren aero", true)]
    #[case::accented_ligature("Ǣlfric", "aelf", true)]
    #[case::icelandic("Þórður Sæmundsson", "THORDUR saem", true)]
    #[case::croatian("Đorđe", "dorde", true)]
    #[case::maltese("Ħamrun", "HAMRUN", true)]
    #[case::french("Lætitia Cœur", "laetitia coeur", true)]
    #[case::vietnamese("Nguyễn Thị Đào", "nguyen thi dao", true)]
    #[case::dotless_i("Işık", "isik", true)]
    #[case::dotted_capital_i("İbrahim", "ibrahim", true)]
    #[case::dotless_i_asked("IBRAHIM", "ıbrahım", true)]
    #[case::dotted_capital_i_asked("ibrahim", "İBRAHİM", true)]
    #[case::sigma_at_the_end("Νίκος", "ΝΙΚΟΣ", true)]
    #[case::sigma_at_the_end_of_the_filter("Νίκοσα", "νικος", true)]
    #[case::cyrillic("Йосиф", "иосиф", true)]
    #[case::hangul("김철수", "철수", true)]
    #[case::full_width("ＡＤＡ", "ada", true)]
    #[case::ligature("Soﬁa", "sofia", true)]
    #[case::runs_of_blanks("Ada  \t Lovelace", "ada lovelace", true)]
    #[case::runs_of_blanks_asked("Ada Lovelace", "  ada \n\u{3000} love ", true)]
    #[case::blank_that_keeps_together("Ada\u{a0}Lovelace", "ada love", true)]
    #[case::signs_that_do_not_show("Ada\u{200b}\u{ad} Love\u{200d}lace\u{202c}", "a lovelace", true)]
    #[case::sign_of_its_own("Ada \u{a8} Lovelace", "ada lovelace", true)]
    fn a_name_matches_by_its_letters(#[case] name: &str, #[case] text: &str, #[case] is_match: bool) {
        assert_eq!(NameFilter::parse(text).unwrap().matches(name), is_match, "{:?} {:?}", folded(name), folded(text));
    }

    #[rstest::rstest]
    #[case("", Err(InvalidNameFilter::Length))]
    #[case("a", Err(InvalidNameFilter::Length))]
    #[case("é", Err(InvalidNameFilter::Length))]
    #[case("ß", Err(InvalidNameFilter::Length))]
    #[case("al", Ok("al"))]
    #[case("e\u{301}", Ok("e"))]
    #[case(" a", Ok("a"))]
    #[case("\u{1f600}\u{1f600}", Ok("\u{1f600}\u{1f600}"))]
    #[case("--", Ok("--"))]
    #[case("  ", Err(InvalidNameFilter::NothingShows))]
    #[case("\u{301}\u{308}", Err(InvalidNameFilter::NothingShows))]
    #[case("\u{301} \u{20dd}", Err(InvalidNameFilter::NothingShows))]
    #[case("\u{a8}\u{b4}", Err(InvalidNameFilter::NothingShows))]
    #[case("\u{200b}\u{feff}", Err(InvalidNameFilter::NothingShows))]
    #[case("\0\0", Err(InvalidNameFilter::NothingShows))]
    fn a_filter_has_a_length_as_sent_and_a_sign_that_shows(
        #[case] text: &str,
        #[case] expected: Result<&str, InvalidNameFilter>,
    ) {
        let parsed = NameFilter::parse(text);
        assert_eq!(parsed.as_ref().map(|filter| filter.folded.as_str()).map_err(|rule| *rule), expected);
    }

    #[test]
    fn the_longest_filter_counts_characters() {
        for letter in ["a", "ß", "\u{1f600}"] {
            assert!(NameFilter::parse(&letter.repeat(MAX_NAME_FILTER_CHARS)).is_ok(), "{letter}");
            let longer = NameFilter::parse(&letter.repeat(MAX_NAME_FILTER_CHARS + 1));
            assert_eq!(longer, Err(InvalidNameFilter::Length), "{letter}");
        }
    }

    #[test]
    fn an_empty_name_is_no_filter_and_another_goes_with_no_filter_that_finds_a_few() {
        let parse = |given: &[(&str, &str)]| {
            let look_up = |name: &str| given.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
            NameFilter::from_query(look_up, &["email", "external_id"])
        };
        let ada = Some(NameFilter::parse("ada").unwrap());
        for (given, expected) in [
            (vec![], Ok(None)),
            (vec![("name", "")], Ok(None)),
            (vec![("name", ""), ("email", "a@example.com")], Ok(None)),
            (vec![("email", "a@example.com")], Ok(None)),
            (vec![("name", "Ada"), ("active", "true")], Ok(ada)),
            (vec![("name", "a")], Err("must be 2 to 100")),
            (vec![("name", "Ada"), ("email", "")], Err("with email")),
            (vec![("name", "Ada"), ("external_id", "7")], Err("with external_id")),
        ] {
            match (parse(&given), expected) {
                (Ok(filter), Ok(expected)) => assert_eq!(filter, expected, "{given:?}"),
                (Err(invalid), Err(rule)) => {
                    assert_eq!(invalid.field.as_deref(), Some("name"), "{given:?}");
                    assert!(invalid.message.starts_with("name ") && invalid.message.contains(rule), "{invalid}");
                }
                (parsed, _) => panic!("{given:?}: {parsed:?}"),
            }
        }
    }

    #[test]
    fn a_filter_shows_no_content_in_debug() {
        assert_eq!(format!("{:?}", NameFilter::parse("gwendolyn").unwrap()), "NameFilter(..)");
    }

    #[test]
    fn a_folded_character_folds_to_itself() {
        for character in '\0'..='\u{1ffff}' {
            let once = folded(&character.to_string());
            assert_eq!(folded(&once), once, "{character:?}");
        }
    }

    /// Texts of names, of marks, blanks and letters that fold to others, and of any characters.
    fn texts() -> impl Strategy<Value = String> {
        let odd: Vec<char> =
            "aZ ß ẞłŁøÆœÞðĐħıIİΣσςÜéﬁ한ガ\t\u{a0}\u{a8}\u{301}\u{308}\u{345}\u{200b}\u{fdfa}".chars().collect();
        let character = prop_oneof![4 => prop::sample::select(odd), 1 => any::<char>()];
        prop::collection::vec(character, 2..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_each_of_its_parts(
            name in texts(), first: prop::sample::Index, last: prop::sample::Index,
        ) {
            let characters: Vec<char> = name.chars().collect();
            let (first, last) = (first.index(characters.len()), last.index(characters.len()));
            let part = String::from_iter(&characters[first.min(last)..=first.max(last)]);
            for part in [&name, &part] {
                match NameFilter::parse(part) {
                    Ok(filter) => prop_assert!(filter.matches(&name), "{:?} in {:?}", part, name),
                    Err(InvalidNameFilter::Length) => prop_assert!(part.chars().count() < MIN_NAME_FILTER_CHARS),
                    Err(rule) => {
                        prop_assert_eq!(rule, InvalidNameFilter::NothingShows);
                        prop_assert_eq!(folded(part), "");
                    }
                }
            }
        }

        #[test]
        fn folding_is_idempotent(text in texts()) {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once.as_str());
            prop_assert_eq!(once.trim(), once.as_str());
            prop_assert!(!once.contains("  "));
        }
    }
}
