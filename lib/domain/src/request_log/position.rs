//! Positions in the request log.

use super::record::request_id;
use crate::time::Timestamp;

/// A position in the log: the time of a record, then its id. As text: 13 digits of milliseconds, `#`, the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPosition {
    pub at: Timestamp,
    pub id: String,
}

impl RequestPosition {
    const TIME_DIGITS: usize = 13;

    /// Parses the text of a position.
    pub fn parse(text: &str) -> Option<Self> {
        let (ms, id) = text.split_once('#')?;
        let is_time = ms.len() == Self::TIME_DIGITS && ms.bytes().all(|b| b.is_ascii_digit());
        let at = Timestamp::from_ms(ms.parse().ok().filter(|_| is_time)?);
        request_id(id).ok().map(|id| Self { at, id })
    }

    /// The text below all positions at that time or later, and above all others.
    pub fn begin(at: Timestamp) -> String {
        format!("{:013}", at.ms().clamp(0, 9_999_999_999_999))
    }
}

impl std::fmt::Display for RequestPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", Self::begin(self.at), self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_position_reads_back_and_texts_sort_as_positions_do(
            one in 0i64..4_000_000_000_000, other in 0i64..4_000_000_000_000, ids in "[a-z]{3}[A-Z]{3}",
        ) {
            let (id, other_id) = ids.split_at(3);
            let position = |ms, id: &str| RequestPosition { at: Timestamp::from_ms(ms), id: id.to_owned() };
            let (first, second) = (position(one, id), position(other, other_id));
            prop_assert_eq!(RequestPosition::parse(&first.to_string()), Some(first.clone()));
            prop_assert_eq!(first.to_string() < second.to_string(), (one, id) < (other, other_id));
            prop_assert_eq!(first.to_string() < RequestPosition::begin(second.at), one < other);
        }
    }

    #[rstest::rstest]
    #[case("1790000000000#JKJaXmPLvHcESHA=", true)]
    #[case("1790000000000#", false)]
    #[case("179000000000#a", false)]
    #[case("+790000000000#a", false)]
    #[case("1790000000000", false)]
    #[case("1790000000000#a b", false)]
    fn a_text_of_another_form_is_no_position(#[case] text: &str, #[case] is_position: bool) {
        assert_eq!(RequestPosition::parse(text).is_some(), is_position);
    }
}
