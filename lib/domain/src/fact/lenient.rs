//! Reads JSON that a strict reader refuses as a whole: half of a surrogate pair, an immense number, a hundred levels.
//!
//! The unreadable value becomes a text with a NUL character, which no field of a fact takes. So junk in an unknown
//! field is dropped with it, and junk in a known field is an error of that field.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// Levels of nesting that are read: the deepest known value, a time in a pair of a calendar's hours, is six levels deep
/// in its message.
const MAX_LEVELS: usize = 8;
const UNREADABLE: &str = "\0";

/// Reads a text. Text that is no JSON at all becomes a text with a NUL character.
pub fn lenient(text: &str) -> Value {
    // A byte order mark is no part of the JSON.
    value(&without_half_pairs(text.trim_start_matches('\u{feff}')), MAX_LEVELS)
}

fn value(text: &str, levels: usize) -> Value {
    let read = match text.trim_start().as_bytes().first() {
        Some(b'{' | b'[') if levels == 0 => return UNREADABLE.into(),
        Some(b'{') => serde_json::from_str::<BTreeMap<String, &RawValue>>(text)
            .map(|members| members.into_iter().map(|(name, member)| (name, value(member.get(), levels - 1))).collect()),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(text)
            .map(|items| items.into_iter().map(|item| value(item.get(), levels - 1)).collect()),
        _ => serde_json::from_str(text),
    };
    read.unwrap_or_else(|_| UNREADABLE.into())
}

/// Replaces each escape that is half of a surrogate pair (RFC 8259, section 8.2) by the escape of NUL.
fn without_half_pairs(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut replaced = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(next) = text[at..].find('\\') {
        at += next;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                replaced.push_str(&text[copied..at]);
                replaced.push_str("\\u0000");
                copied = at + 6;
                6
            }
            // An escape is a backslash and a character of one byte, or the text is no JSON.
            _ if text.is_char_boundary(at + 2) => 2,
            _ => break,
        };
    }
    if copied == 0 { text.into() } else { (replaced + &text[copied..]).into() }
}
