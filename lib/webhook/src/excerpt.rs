//! The beginning of an answer's body, as text for the delivery log.

use domain::delivery::EXCERPT_BYTES;

/// The kept beginning of a body.
#[derive(Default)]
pub(super) struct Excerpt(Vec<u8>);

impl Excerpt {
    /// Appends as much of the chunk as fits.
    pub(super) fn add(&mut self, chunk: &[u8]) {
        let room = EXCERPT_BYTES - self.0.len();
        self.0.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    /// The bytes as text of at most [`EXCERPT_BYTES`]. `None` if there are none. A character that the limit cuts is
    /// dropped, and invalid UTF-8 becomes U+FFFD.
    pub(super) fn into_text(self) -> Option<String> {
        let bytes = self.0;
        if bytes.is_empty() {
            return None;
        }
        let cut = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && bytes.len() == EXCERPT_BYTES => error.valid_up_to(),
            _ => bytes.len(),
        };
        let mut text = String::from_utf8_lossy(&bytes[..cut]).into_owned();
        text.truncate(text.floor_char_boundary(EXCERPT_BYTES));
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(bytes: &[u8]) -> Option<String> {
        let mut excerpt = Excerpt::default();
        for chunk in bytes.chunks(700) {
            excerpt.add(chunk);
        }
        excerpt.into_text()
    }

    #[test]
    fn an_excerpt_is_text_of_at_most_1_kib() {
        assert_eq!(excerpt(b""), None);
        assert_eq!(excerpt("äöü".as_bytes()).as_deref(), Some("äöü"));
        let cut = "ä".repeat(600);
        assert_eq!(excerpt(format!("x{cut}").as_bytes()), Some(format!("x{}", "ä".repeat(511))));
        let binary = excerpt(&[0xff; EXCERPT_BYTES + 5]).unwrap();
        assert!(binary.len() <= EXCERPT_BYTES && binary.chars().all(|c| c == char::REPLACEMENT_CHARACTER));
        assert_eq!(excerpt(b"ok\xff").as_deref(), Some("ok\u{fffd}"));
        assert_eq!(excerpt(&[b'x'; 100_000]).unwrap().len(), EXCERPT_BYTES);
    }
}
