//! E-mail addresses. Stored as given. Compared by the lower-cased local part and the domain in its ASCII form (UTS 46).
//! Nothing is trimmed, and no dots or tags are removed.

use std::str::FromStr;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};

use crate::visible::does_not_show;

/// Longest address anywhere, in characters (RFC 5321's path limit).
pub const MAX_EMAIL_CHARS: usize = 254;
/// Longest domain that is converted, in bytes: longer than any address can hold.
const MAX_DOMAIN_BYTES: usize = 4 * MAX_EMAIL_CHARS;

/// Longest host name and longest label of one, in bytes (RFC 1035).
const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
/// The signs of a local part beside letters and digits (`atext` of RFC 5322, and the full stop).
const LOCAL_PART_SIGNS: &str = "!#$%&'*+-/=?^_`{|}~.";

/// Invisible signs that scripts join letters with. IDNA allows them in a domain where a letter needs them.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
/// Thai and Lao AM. Unicode takes them apart for compatibility, but everybody writes them as one sign.
const WRITTEN_AS_ONE: [char; 2] = ['\u{e33}', '\u{eb3}'];
/// A full stop to IDNA, although Unicode does not replace it.
const IDEOGRAPHIC_FULL_STOP: char = '。';

/// An e-mail address, as given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Email(String);
crate::discreet! { Email }

/// The form in which addresses are compared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailKey(String);
crate::discreet! { EmailKey }

/// The text is not an e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as ada@example.com")]
pub struct InvalidEmail;

impl Email {
    /// Parses an address. A display name, a quoted local part, an encoded word (RFC 2047) or an address literal is
    /// refused. Beyond ASCII, letters are allowed (RFC 6531), and the marks of scripts that write vowels or accents
    /// with them, but no sign that mail software replaces by another.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let plain = text.chars().count() <= MAX_EMAIL_CHARS
            && !text.contains(|c: char| is_replaced(c) || matches!(c, '"' | '(' | ')'));
        // The library accepts letters and digits beyond ASCII, but no marks.
        let shape: String = text.chars().map(|c| if c.is_ascii() { c } else { 'x' }).collect();
        let mailable = plain && email_address::EmailAddress::from_str(&shape).is_ok();
        match text.rsplit_once('@') {
            Some((local, domain))
                if mailable
                    && !local.contains(does_not_show)
                    && !domain.contains(|c: char| does_not_show(c) && !JOINERS.contains(&c))
                    && !has_encoded_word(local)
                    && host_name(domain).is_some() =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidEmail),
        }
    }

    /// Wraps the application's text without a check: the application's record is stored as it is.
    pub fn unchecked(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or(self.0.as_str(), |(local, _)| local)
    }

    pub fn key(&self) -> EmailKey {
        EmailKey(compared(&self.0))
    }

    /// Returns the address for mail, with the domain in its ASCII form. `None`: Amazon SES cannot deliver to it (local
    /// part not ASCII), or it is not one mailbox of a host.
    pub fn mailbox(&self) -> Option<String> {
        let (local, domain) = self.0.rsplit_once('@')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || LOCAL_PART_SIGNS.contains(c);
        let domain = host_name(domain).filter(|_| local.chars().all(is_plain) && !has_encoded_word(local))?;
        Some(format!("{local}@{domain}"))
    }
}

/// Returns the form in which addresses are compared. A domain without an ASCII form, or a text without a domain, is
/// lower-cased.
fn compared(text: &str) -> String {
    match text.rsplit_once('@').and_then(|(local, domain)| Some((local, ascii_domain(domain)?))) {
        Some((local, domain)) => format!("{}@{domain}", lower_cased(local)),
        None => lower_cased(text),
    }
}

/// Lower-cases a text. Both lower-case sigmas become one letter: the standard library chooses between them by their
/// neighbours.
fn lower_cased(text: &str) -> String {
    text.to_lowercase().replace('ς', "σ")
}

/// Returns the ASCII form of a domain, lower-cased: `bücher.example` is `xn--bcher-kva.example`.
fn ascii_domain(domain: &str) -> Option<String> {
    if domain.len() > MAX_DOMAIN_BYTES {
        return None;
    }
    idna::domain_to_ascii(domain).ok()
}

/// Returns the ASCII form of a domain, if it is a host name: at least two labels of letters, digits and inner hyphens,
/// the last one no number (RFC 1123).
fn host_name(domain: &str) -> Option<String> {
    let ascii = ascii_domain(domain)?;
    let is_label = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let (_, last) = ascii.rsplit_once('.')?;
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (ascii.len() <= MAX_HOST_BYTES && ascii.split('.').all(is_label) && !is_number).then_some(ascii)
}

/// Returns true for a sign that Unicode keeps for compatibility with another, such as the full-width `＠`, the ligature
/// `ﬁ` and the fraction `¼`, and for a sign that is ASCII in disguise. Mail software and IDNA replace it, and would
/// read another address.
fn is_replaced(c: char) -> bool {
    if c.is_ascii() || WRITTEN_AS_ONE.contains(&c) {
        return false;
    }
    let text = c.encode_utf8(&mut [0; 4]).to_owned();
    let replaced = ComposingNormalizerBorrowed::new_nfkc().normalize(&text);
    let same = ComposingNormalizerBorrowed::new_nfc().normalize(&text);
    c == IDEOGRAPHIC_FULL_STOP || replaced.contains(|c: char| c.is_ascii()) || replaced != same
}

/// Returns true if a local part holds an encoded word, which mail software decodes to other signs.
fn has_encoded_word(local: &str) -> bool {
    local.split_once("=?").is_some_and(|(_, rest)| rest.contains("?="))
}

impl EmailKey {
    pub fn as_str(&self) -> &str {
        &self.0
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
    #[case("", false)]
    #[case("ada", false)]
    #[case("@example.com", false)]
    #[case(" ada@example.com", false)]
    #[case("ada@example.com\0", false)]
    #[case("Ada <ada@example.com>", false)]
    #[case("ada@[127.0.0.1]", false)]
    // Two addresses, or another one, once mail software has mapped the signs.
    #[case("ada@x.example，bob＠y.example", false)]
    #[case("ada@x.example,bob@y.example", false)]
    #[case("ada@evil.example＠good.example", false)]
    #[case("ada＠evil.example@good.example", false)]
    #[case("ａda@example.com", false)]
    #[case("oﬃce@example.com", false)]
    #[case("ada@x.example。", false)]
    #[case("ada@x。example", false)]
    #[case("ada@℀.example", false)]
    #[case("=?utf-8?q?a?=@x.example", false)]
    #[case("a=b?c@x.example", true)]
    #[case("\u{3164}@example.com", false)]
    #[case("b@a¼b.example", false)]
    #[case("b@µ.example", false)]
    #[case("a…b@x.example", false)]
    #[case("\u{212a}@x.example", false)]
    #[case("b@カナ.example", true)]
    #[case("b@STRASSE.ΕΛΛΑΣ", true)]
    #[case("b@İstanbul.example", true)]
    #[case("u@نامه\u{200c}ای.example", true)]
    #[case("u@क\u{94d}\u{200d}ष.example", true)]
    #[case("u@ශ\u{dca}\u{200d}රී.example", true)]
    #[case("u@a\u{200c}b.example", false)]
    #[case("u\u{200c}v@x.example", false)]
    // A host name has two labels of letters, digits and hyphens, and its last label is no number.
    #[case("x@１２７.0.0.1", false)]
    #[case("x@127.0.0.1", false)]
    #[case("ada@localhost", false)]
    #[case("ada@example.com.", false)]
    #[case("ada@-x.example", false)]
    #[case("ada@x_y.example", false)]
    #[case("ada@x..example", false)]
    #[case("ada@xn--a.example", false)]
    #[case("ada@r3---sn-x.example", true)]
    #[case("ada@1.2.example", true)]
    #[case("ada@4u.example", true)]
    #[case("น้ำ@น้ำ.example", true)]
    fn an_address_is_recognised(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(Email::parse(text).is_ok(), valid);
    }

    #[test]
    fn an_address_stays_an_address_in_lower_case() {
        let letters = ('\u{80}'..='\u{1ffff}').filter(|c| c.is_uppercase() && !is_replaced(*c));
        for email in letters.map(|letter| format!("{letter}st@example.com")) {
            let parsed = Email::parse(&email).unwrap();
            Email::parse(parsed.key().as_str()).unwrap();
        }
    }

    #[test]
    fn a_sigma_is_one_letter_in_any_position() {
        let key = |text: &str| Email::parse(text).unwrap().key().as_str().to_owned();
        for text in ["ΝΙΚΟΣ@example.com", "νικος@example.com", "νικοσ@EXAMPLE.com"] {
            assert_eq!(key(text), "νικοσ@example.com", "{text}");
        }
    }

    #[rstest::rstest]
    #[case("bob@bücher.example", "bob@xn--bcher-kva.example")]
    #[case("Bob@BÜCHER.Example", "bob@xn--bcher-kva.example")]
    #[case("bob@bu\u{308}cher.example", "bob@xn--bcher-kva.example")]
    #[case("bob@XN--BCHER-KVA.example", "bob@xn--bcher-kva.example")]
    #[case("bob@faß.example", "bob@xn--fa-hia.example")]
    #[case("bob@日本。example", "bob@xn--wgv71a.example")]
    #[case("bob@ｅｘａｍｐｌｅ.com", "bob@example.com")]
    #[case("user@உதாரணம்.இந்தியா", "user@xn--zkc6cc5bi7f6e.xn--xkc2dl3a5ee0h")]
    #[case("taro..y.@docomo.example", "taro..y.@docomo.example")]
    #[case("a@b@Example.com", "a@b@example.com")]
    #[case("Bob@xn--a.example", "bob@xn--a.example")]
    #[case("Nobody", "nobody")]
    #[case("Ada@", "ada@")]
    fn domains_compare_in_their_ascii_form(#[case] text: &str, #[case] key: &str) {
        assert_eq!(Email::unchecked(text).key().as_str(), key);
        assert_eq!(Email::unchecked(key).key().as_str(), key, "comparing is idempotent");
    }

    #[rstest::rstest]
    #[case("Ada@Example.com", Some("Ada@example.com"))]
    #[case("ada@bücher.example", Some("ada@xn--bcher-kva.example"))]
    #[case("jörg@example.com", None)]
    #[case("ada@xn--a.example", None)]
    #[case("nobody", None)]
    #[case("taro..y.@docomo.example", Some("taro..y.@docomo.example"))]
    #[case("ada@x.example，bob＠y.example", None)]
    #[case("ada@x.example,bob@y.example", None)]
    #[case("bob@y.example,ada@x.example", None)]
    #[case("Ada <ada@x.example>", None)]
    #[case("=?utf-8?q?a?=@x.example", None)]
    #[case("ada@１２７.0.0.1", None)]
    #[case("ada@localhost", None)]
    fn mail_goes_to_the_ascii_form_of_an_address(#[case] text: &str, #[case] mailbox: Option<&str>) {
        assert_eq!(Email::unchecked(text).mailbox().as_deref(), mailbox);
    }

    #[test]
    fn a_text_of_any_length_has_a_form_to_be_compared_in() {
        let long = format!("a@{}", "ü".repeat(100_000));
        assert_eq!(Email::unchecked(&long).key().as_str(), long);
    }

    #[test]
    fn addresses_compare_lower_cased_and_show_no_content_in_debug() {
        let email = Email::parse("Ada@Example.COM").unwrap();
        assert_eq!(email.key().as_str(), "ada@example.com");
        assert_eq!(email.local_part(), "Ada");
        assert_eq!(format!("{email:?} {:?}", email.key()), "Email(..) EmailKey(..)");
    }
}
