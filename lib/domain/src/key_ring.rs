//! The keys of a secret: `{"current": "<id>", "<id>": "<text>", ...}`. The current key is used for new values, all keys
//! are accepted. So a rotation has no gap: the new key is added first, and becomes current later.

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

const LEAST_TEXT_CHARS: usize = 32;

/// The texts from which keys derive: random, long, in whatever alphabet the secrets store uses.
pub struct KeyRing {
    current: u8,
    texts: BTreeMap<u8, Zeroizing<String>>,
}

/// The secret does not have the form in the module's header, with ids from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret must be a JSON object of key ids (0 to 255) and texts of at least 32 characters, with `current` naming one"
)]
pub struct InvalidSecret;

impl KeyRing {
    pub fn parse(json: &str) -> Result<Self, InvalidSecret> {
        let entries: BTreeMap<String, String> = serde_json::from_str(json).map_err(|_| InvalidSecret)?;
        let current = entries.get("current").and_then(|id| id.parse().ok()).ok_or(InvalidSecret)?;
        let mut texts = BTreeMap::new();
        for (id, text) in entries.into_iter().filter(|(id, _)| id != "current") {
            let text = Zeroizing::new(text);
            let id: u8 = id.parse().map_err(|_| InvalidSecret)?;
            if text.len() < LEAST_TEXT_CHARS {
                return Err(InvalidSecret);
            }
            texts.insert(id, text);
        }
        if texts.contains_key(&current) { Ok(Self { current, texts }) } else { Err(InvalidSecret) }
    }

    /// Returns the id of the key for new values.
    pub fn current(&self) -> u8 {
        self.current
    }

    pub fn texts(&self) -> impl Iterator<Item = (u8, &str)> {
        self.texts.iter().map(|(id, text)| (*id, text.as_str()))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing(current: {})", self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_needs_its_current_key_and_keys_of_length() {
        let text = "a".repeat(32);
        let good = KeyRing::parse(&format!(r#"{{"current": "7", "1": "{text}", "7": "{text}b"}}"#)).unwrap();
        assert_eq!(good.current(), 7);
        assert_eq!(good.texts().map(|(id, text)| (id, text.len())).collect::<Vec<_>>(), [(1, 32), (7, 33)]);
        assert_eq!(format!("{good:?}"), "KeyRing(current: 7)");
        for bad in [
            String::new(),
            "{}".to_owned(),
            r#"{"current":"1"}"#.to_owned(),
            r#"{"current":"1","1":"short"}"#.to_owned(),
            format!(r#"{{"current":"x","x":"{text}"}}"#),
            format!(r#"{{"current":"256","256":"{text}"}}"#),
            format!(r#"{{"current":"2","1":"{text}"}}"#),
        ] {
            assert_eq!(KeyRing::parse(&bad).unwrap_err(), InvalidSecret, "{bad}");
        }
    }
}
