//! Cursors of lists. A cursor holds the position behind a page, and a mark of the list and the coach that it belongs
//! to. Elsewhere the cursor is refused: it would pass over records. Callers treat a cursor as opaque.
//!
//! The mark is no proof, since a caller can make up a cursor of its own list. So each list checks its positions, too.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::fields::Invalid;
use crate::id::CoachId;

/// The rule of a cursor, which completes a sentence that begins with the parameter's name.
pub const CURSOR_RULE: &str = "must be the next_cursor of an earlier answer to the same request";
/// Longest cursor that is read.
const MAX_CURSOR_CHARS: usize = 8_192;
const MARK_BYTES: usize = 8;

/// A list of a coach.
#[derive(Debug, Clone, Copy)]
pub struct CursorList<'a> {
    pub name: &'a str,
    pub coach: &'a CoachId,
}

impl CursorList<'_> {
    /// Returns the cursor of a page that ends at a position.
    pub fn cursor(&self, position: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.mark()[..], position.as_bytes()].concat())
    }

    /// Returns the position of a cursor of this list.
    pub fn position(&self, cursor: &str) -> Option<String> {
        let decoded = Some(cursor).filter(|text| text.len() <= MAX_CURSOR_CHARS);
        let decoded = URL_SAFE_NO_PAD.decode(decoded?).ok()?;
        String::from_utf8(decoded.strip_prefix(&self.mark())?.to_vec()).ok()
    }

    /// Parses the parameter `cursor`. An empty one is the first page.
    pub fn parse<T>(
        &self,
        parameter: Option<&str>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Invalid> {
        let parsed = |cursor: &str| self.position(cursor).and_then(|position| parse(&position));
        let malformed = || Invalid::field("cursor", CURSOR_RULE);
        parameter.filter(|text| !text.is_empty()).map(|text| parsed(text).ok_or_else(malformed)).transpose()
    }

    fn mark(&self) -> [u8; MARK_BYTES] {
        let digest = Sha256::digest(format!("{}\n{}", self.name, self.coach));
        std::array::from_fn(|index| digest[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coach(id: &str) -> CoachId {
        CoachId::parse(id).unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back_in_its_own_list_alone(position in "\\PC{0,90}", other in "\\PC{0,90}") {
            let (ada, eve) = (coach("ada"), coach("eve"));
            let list = CursorList { name: "clients", coach: &ada };
            let cursor = list.cursor(&position);
            prop_assert_eq!(list.position(&cursor), Some(position));
            prop_assert_eq!(CursorList { coach: &eve, ..list }.position(&cursor), None);
            prop_assert_eq!(CursorList { name: "contacts", ..list }.position(&cursor), None);
            if let Some(read) = list.position(&other) {
                prop_assert_eq!(list.cursor(&read), other);
            }
        }
    }

    #[test]
    fn an_empty_cursor_is_the_first_page_and_a_malformed_one_is_named() {
        let ada = coach("ada");
        let list = CursorList { name: "clients", coach: &ada };
        let parse = |text: Option<&str>| list.parse(text, |position| position.parse::<u8>().ok());
        assert_eq!((parse(None), parse(Some(""))), (Ok(None), Ok(None)));
        assert_eq!(parse(Some(&list.cursor("7"))), Ok(Some(7)));
        for bad in ["7", "*", &list.cursor("x"), &format!("{}=", list.cursor("7")), &"A".repeat(MAX_CURSOR_CHARS + 4)] {
            assert_eq!(parse(Some(bad)).unwrap_err().field.as_deref(), Some("cursor"), "{bad}");
        }
    }
}
