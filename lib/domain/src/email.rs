//! E-mail addresses. Kept as given, compared lower-cased and otherwise untouched: no trimming, no dots or tags removed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest address anywhere, in characters (RFC 5321's path limit).
pub const MAX_EMAIL_CHARS: usize = 254;

/// An e-mail address, as given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Email(String);

/// The form in which addresses are compared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailKey(String);

/// A text that is no e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as ada@example.com")]
pub struct InvalidEmail;

impl Email {
    /// The address that `text` is. A display name, a quoted local part or an address literal is no login e-mail. Beyond ASCII it may hold
    /// whatever shows (RFC 6531): letters, and the marks of scripts that write vowels or accents with them.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let plain = text.chars().count() <= MAX_EMAIL_CHARS
            && !text.contains(|c: char| does_not_show(c) || matches!(c, '"' | '[' | ']' | '<' | '>' | '(' | ')'));
        // The library knows letters and digits beyond ASCII, and none of the marks.
        let shape: String = text.chars().map(|c| if c.is_ascii() { c } else { 'x' }).collect();
        if plain && email_address::EmailAddress::from_str(&shape).is_ok() && !text.ends_with('.') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidEmail)
        }
    }

    /// What the application has for an address, be it one by our rules or not: its record is stored as it stands.
    pub fn said(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The address as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What goes before the `@`.
    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or(self.0.as_str(), |(local, _)| local)
    }

    /// The form in which addresses are compared.
    pub fn key(&self) -> EmailKey {
        EmailKey(compared(&self.0))
    }
}

/// A text as e-mail addresses are compared: lower-cased. A sigma at the end of a word is the same letter as one within: which of the two
/// it is lower-cased to depends on its neighbours.
pub(crate) fn compared(text: &str) -> String {
    text.to_lowercase().replace('ς', "σ")
}

/// Blanks, controls, and what only tells others how to be shown: two addresses that look the same are no use to anybody.
fn does_not_show(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..)
}

impl EmailKey {
    /// The lower-cased address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(..)")
    }
}

impl fmt::Debug for EmailKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmailKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("ada@example.com", true)]
    #[case("Ada.L+tag@EXAMPLE.co.uk", true)]
    #[case("ünïcode@exämple.de", true)]
    #[case("हिन्दी@x.example", true)]
    #[case("user@உதாரணம்.இந்தியா", true)]
    #[case("jose\u{301}@example.com", true)]
    #[case("ada\u{200b}@example.com", false)]
    #[case("ada\u{a0}@example.com", false)]
    #[case("\u{202e}ada@example.com", false)]
    #[case("ä@", false)]
    #[case("", false)]
    #[case("ada", false)]
    #[case("ada@", false)]
    #[case("@example.com", false)]
    #[case(" ada@example.com", false)]
    #[case("ada@example.com\0", false)]
    #[case("Ada <ada@example.com>", false)]
    #[case("ada@[127.0.0.1]", false)]
    fn an_address_is_recognised(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(Email::parse(text).is_ok(), valid);
    }

    #[test]
    fn what_an_address_becomes_in_lower_case_is_an_address() {
        let letters = ('\u{80}'..='\u{1ffff}').filter(|c| c.is_uppercase());
        for email in letters.map(|letter| format!("{letter}st@example.com")) {
            let parsed = Email::parse(&email).unwrap();
            Email::parse(parsed.key().as_str()).unwrap();
        }
    }

    #[test]
    fn a_sigma_is_one_letter_wherever_it_stands() {
        let key = |text: &str| Email::parse(text).unwrap().key().as_str().to_owned();
        for text in ["ΝΙΚΟΣ@example.com", "νικος@example.com", "νικοσ@EXAMPLE.com"] {
            assert_eq!(key(text), "νικοσ@example.com", "{text}");
        }
    }

    #[test]
    fn addresses_compare_lower_cased_and_show_no_content_in_debug() {
        let email = Email::parse("Ada@Example.COM").unwrap();
        assert_eq!(email.key().as_str(), "ada@example.com");
        assert_eq!(email.local_part(), "Ada");
        assert_eq!(format!("{email:?} {:?}", email.key()), "Email(..) EmailKey(..)");
    }
}
