//! Splits the text of a JSON object or list into its members, by quotes, brackets, commas and colons alone.
//!
//! A strict parser refuses a whole text for junk in one place: half a surrogate pair, an immense number, 130 levels. A
//! text that is split first loses only the unreadable member. Depth is a counter, so no text is too deep.

/// A member of an object, or an item of a list, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The member's name, in its quotes. Empty in a list.
    pub name: &'a str,
    pub value: &'a str,
}

/// The members of an object or the items of a list, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces<'a> {
    pub pieces: Vec<Piece<'a>>,
    /// False if members may be lost: the text breaks off in its last piece, continues after its end, or has a member
    /// that is not a name with a value.
    pub is_whole: bool,
}

impl<'a> Pieces<'a> {
    /// Splits an object. `None`: the text is not an object.
    pub fn of_object(text: &'a str) -> Option<Self> {
        Self::split(text, b'{', b'}')
    }

    /// Splits a list. `None`: the text is not a list.
    pub fn of_list(text: &'a str) -> Option<Self> {
        Self::split(text, b'[', b']')
    }

    fn split(text: &'a str, open: u8, close: u8) -> Option<Self> {
        let text = text.trim();
        if text.as_bytes().first() != Some(&open) {
            return None;
        }
        let mut found = Self { pieces: Vec::new(), is_whole: true };
        let is_object = open == b'{';
        let mut quotes = Quotes::default();
        let (mut depth, mut begin, mut colon) = (0_usize, 1, None);
        for (at, byte) in text.bytes().enumerate() {
            if quotes.hold(byte) {
                continue;
            }
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 1 => {
                    // Skip the empty text between the brackets or after a last comma.
                    found.add(text, (begin, colon, at), is_object);
                    found.is_whole &= byte == close && at + 1 == text.len();
                    return Some(found);
                }
                b'}' | b']' => depth -= 1,
                b',' if depth == 1 => {
                    found.is_whole &= found.add(text, (begin, colon, at), is_object);
                    (begin, colon) = (at + 1, None);
                }
                b':' if depth == 1 => {
                    found.is_whole &= is_object && colon.is_none();
                    colon = colon.or(Some(at));
                }
                _ => {}
            }
        }
        // The text breaks off in the last piece.
        found.add(text, (begin, colon, text.len()), is_object);
        found.is_whole = false;
        Some(found)
    }

    /// Adds the piece between two positions. Returns false if it is empty.
    fn add(&mut self, text: &'a str, (begin, colon, end): (usize, Option<usize>, usize), is_member: bool) -> bool {
        let piece = match colon.filter(|_| is_member) {
            Some(colon) => Piece { name: text[begin..colon].trim(), value: text[colon + 1..end].trim() },
            None => Piece { name: "", value: text[begin..end].trim() },
        };
        if piece.name.is_empty() && piece.value.is_empty() && colon.is_none() {
            return false;
        }
        self.is_whole &= is_quoted(piece.name) == is_member;
        self.pieces.push(piece);
        true
    }
}

/// Tracks whether a position is inside quotes.
#[derive(Default)]
struct Quotes {
    is_open: bool,
    is_escaped: bool,
}

impl Quotes {
    /// Takes the next byte. Returns true if it belongs to a quoted text, quotes included.
    fn hold(&mut self, byte: u8) -> bool {
        let was_open = self.is_open;
        if was_open && !self.is_escaped && byte == b'\\' {
            self.is_escaped = true;
            return true;
        }
        if byte == b'"' && !self.is_escaped {
            self.is_open = !was_open;
        }
        self.is_escaped = false;
        was_open || self.is_open
    }
}

/// Returns true if the text is exactly one quoted text.
fn is_quoted(text: &str) -> bool {
    let mut quotes = Quotes::default();
    let is_held = text.bytes().enumerate().all(|(at, byte)| (at == 0 || quotes.is_open) && quotes.hold(byte));
    !text.is_empty() && is_held && !quotes.is_open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> (Vec<(&str, &str)>, bool) {
        let found = Pieces::of_object(text).unwrap();
        (found.pieces.iter().map(|piece| (piece.name, piece.value)).collect(), found.is_whole)
    }

    #[test]
    fn an_object_splits_into_its_members_with_any_content() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for value in
            ["1", "null", r#""x""#, r#""a\"b,:{[""#, r#""\ud83d""#, "1e999", "NaN", r#"{"a":[1,{"b":2}]}"#, &deep]
        {
            let text = format!(" {{ \"a\" : {value} , \"b\":2}}\n");
            assert_eq!(members(&text), (vec![(r#""a""#, value), (r#""b""#, "2")], true));
        }
        assert_eq!(members("{}"), (vec![], true));
        assert_eq!(members(r#"{"a":1,}"#), (vec![(r#""a""#, "1")], true));
        assert_eq!(members(r#"{"a\"b":1}"#), (vec![(r#""a\"b""#, "1")], true));
    }

    #[test]
    fn a_list_is_its_items() {
        let found = Pieces::of_list(r#"[1, {"a": 2}, "x,y", []]"#).unwrap();
        let values: Vec<_> = found.pieces.iter().map(|piece| piece.value).collect();
        assert_eq!((values, found.is_whole), (vec!["1", r#"{"a": 2}"#, r#""x,y""#, "[]"], true));
        assert_eq!(Pieces::of_list("{}"), None);
        assert_eq!(Pieces::of_object("[]"), None);
        assert_eq!(Pieces::of_object(""), None);
    }

    #[test]
    fn a_text_in_which_members_may_be_lost_is_not_whole() {
        for text in [
            "{",
            r#"{"a":1"#,
            r#"{"a":"x}"#,
            r#"{"a":1}}"#,
            r#"{"a":1} {}"#,
            r#"{"a":1]"#,
            r#"{"a"}"#,
            "{1}",
            r#"{a:1}"#,
            r#"{"a" "b":1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{:1}"#,
            r#"{"a":1,"b"}"#,
            r#"["a":1]"#,
            "[1,,2]",
            r#"{"a":1,,"b":2}"#,
            "{,}",
            "{:}",
        ] {
            let found = Pieces::of_object(text).or_else(|| Pieces::of_list(text)).unwrap();
            assert!(!found.is_whole, "{text}");
        }
    }
}
