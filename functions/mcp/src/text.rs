//! Text for a model: nothing in it is invisible.

use std::fmt::Write;

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

/// Writes control and formatting characters (categories Cc and Cf) as JSON escapes. In the text of a JSON document they
/// occur in strings alone, so the document stays what it is.
pub(crate) fn visible(text: &str) -> String {
    let categories = CodePointMapData::<GeneralCategory>::new();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match categories.get(c) {
            GeneralCategory::Control | GeneralCategory::Format => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a string takes text");
                }
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_written_as_escapes_and_all_else_stays() {
        for (text, expected) in [
            ("Zoë 王 \u{1f642} Ł", "Zoë 王 \u{1f642} Ł"),
            ("a\u{202e}b", "a\\u202eb"),
            ("a\u{e0041}b", "a\\udb40\\udc41b"),
            ("a\nb\u{7f}", "a\\u000ab\\u007f"),
            ("\u{200b}\u{200d}\u{ad}\u{feff}", "\\u200b\\u200d\\u00ad\\ufeff"),
            ("\u{2028}\u{a0}", "\u{2028}\u{a0}"),
        ] {
            assert_eq!(visible(text), expected);
        }
        let name = serde_json::json!({ "name": "a\n\u{202e}\u{e0041}" });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&visible(&name.to_string())).unwrap(), name);
    }
}
