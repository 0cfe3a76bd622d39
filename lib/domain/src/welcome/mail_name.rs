//! People's names in mails. A name is the caller's own text, and the mail has the service's sender. So a name must not
//! contain anything that a mail program turns into a link: no web address, e-mail address or phone number.

const MAX_CHARS: usize = 60;

/// Most digits in a name. Mail programs turn more digits into a phone link.
const MAX_DIGITS: usize = 4;

/// Returns the name for a mail: one line, at most [`MAX_CHARS`] long. `None`: nothing is left of it.
pub(super) fn mail_name(name: &str) -> Option<String> {
    let has_few_digits = name.chars().filter(|c| c.is_numeric()).count() <= MAX_DIGITS;
    let chars: Vec<char> = name.chars().collect();
    let shown = |(place, c): (usize, &char)| match c {
        // A dot between letters may belong to a domain; a dot before a blank belongs to an abbreviation.
        '.' => chars.get(place + 1).is_none_or(|next| matches!(next, ' ' | ',' | ')')),
        '/' => chars.get(place + 1) != Some(&'/') && !chars[..place].ends_with(&['/']),
        c if c.is_numeric() => has_few_digits,
        c if c.is_ascii() => c.is_ascii_graphic() && !matches!(c, ':' | '@' | '\\'),
        c => is_of_a_script(*c),
    };
    let kept: String = chars.iter().enumerate().map(|(place, c)| if shown((place, c)) { *c } else { ' ' }).collect();
    let words: Vec<&str> = kept.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some(_) => {
            let shortened: String = line.chars().take(MAX_CHARS - 1).collect();
            Some(format!("{}…", shortened.trim_end()))
        }
        None => Some(line).filter(|line| line.chars().any(char::is_alphanumeric)),
    }
}

/// Returns true for letters, marks and joiners beyond ASCII. Blanks, controls, direction marks, and variants of dots,
/// at signs, colons and slashes are excluded.
fn is_of_a_script(c: char) -> bool {
    let reads_as_ascii = matches!(c, '\u{ff00}'..='\u{ff65}') && !c.is_alphabetic();
    let is_look_alike = matches!(
        c,
        '\u{2024}'..='\u{2027}' | '\u{2044}' | '\u{2215}' | '\u{2236}' | '\u{2571}' | '\u{29f8}' | '\u{3001}'..='\u{3003}'
            | '\u{fe10}'..='\u{fe19}' | '\u{fe50}'..='\u{fe6b}' | '\u{a789}' | '\u{0589}' | '\u{06d4}' | '\u{0701}' | '\u{0702}'
    );
    let is_unseen = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..
    );
    !c.is_ascii() && !c.is_control() && !c.is_whitespace() && !reads_as_ascii && !is_look_alike && !is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[rstest::rstest]
    #[case("Ada Lovelace", "Ada Lovelace")]
    #[case("Dr. Anna-Lena O'Neil (Jr.), PhD", "Dr. Anna-Lena O'Neil (Jr.), PhD")]
    #[case("Müller & Söhne", "Müller & Söhne")]
    #[case("हिन्दी नाम", "हिन्दी नाम")]
    #[case("山田　太郎", "山田 太郎")]
    #[case("می\u{200c}خواهم", "می\u{200c}خواهم")]
    #[case("Team 2026", "Team 2026")]
    #[case("https://evil.example/pay?x=1", "https evil example/pay?x=1")]
    #[case("Win at evil.com now", "Win at evil com now")]
    #[case("www.evil.com", "www evil com")]
    #[case("evil。com ｅｖｉｌ．ｃｏｍ evil․com", "evil com ｅｖｉｌ ｃｏｍ evil com")]
    #[case("evil.\u{200b}com evil\u{200b}.com", "evil com evil com")]
    #[case("ada@evil.example", "ada evil example")]
    #[case("mailto:ada＠evil.example", "mailto ada evil example")]
    #[case("Call +1 (415) 555-2671", "Call + ( ) -")]
    #[case(r"\\evil\share file://evil/share", "evil share file evil/share")]
    #[case("Grace\r\nBcc: all@example.com", "Grace Bcc all example com")]
    #[case("<script>alert('x')</script>", "<script>alert('x')</script>")]
    #[case("\u{202e}moc.live", "moc live")]
    fn a_name_holds_nothing_that_is_linked(#[case] name: &str, #[case] shown: &str) {
        assert_eq!(mail_name(name).as_deref(), Some(shown));
    }

    #[test]
    fn a_long_name_is_shortened_and_a_name_of_signs_alone_is_none() {
        let long = mail_name(&"名".repeat(200)).unwrap();
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_CHARS, true));
        assert_eq!(mail_name(&"x".repeat(MAX_CHARS)).unwrap().chars().count(), MAX_CHARS);
        for empty in ["", " ", "://", "...", "- , -", "555-867-5309"] {
            assert_eq!(mail_name(empty), None, "{empty}");
        }
    }

    proptest! {
        #[test]
        fn no_name_keeps_a_web_or_mail_address(name in "(\\PC|[a-z.:/@#?\\n\\t]|www\\.|http://){0,80}") {
            let Some(shown) = mail_name(&name) else { return Ok(()) };
            prop_assert!(shown.chars().count() <= MAX_CHARS && !shown.contains("//"));
            prop_assert!(!shown.contains(['@', ':', '\\', '\n', '\r', '。', '．', '＠']), "{}", shown);
            let dots = shown.char_indices().filter(|(_, c)| *c == '.');
            for (place, _) in dots {
                let next = shown[place + 1..].chars().next();
                prop_assert!(next.is_none_or(|next| !next.is_alphanumeric()), "{}", shown);
            }
        }
    }
}
