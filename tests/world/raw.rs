//! Everything at rest: what somebody would find who got hold of all tables, all queues and the log.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rusqlite::{Connection, OpenFlags};

use super::{World, bytes_of};

/// Bytes before a text shift its base64 form to one of these many.
const BASE64_PHASES: usize = 3;

/// What was at rest at one moment.
pub(crate) struct AtRest(Vec<Place>);

struct Place {
    /// `table clients`, `queue deliveries`, `log`.
    name: String,
    /// ASCII letters in lower case: what is looked for is not to be found in any other case either.
    bytes: Vec<u8>,
    exact: Vec<u8>,
}

impl World {
    /// What is at rest now.
    pub(crate) async fn at_rest(&self) -> AtRest {
        let tables = self.tables().await.into_iter().map(|(table, item)| (format!("table {table}"), bytes_of(&item)));
        let queues = self.messages().into_iter().map(|(queue, body)| (format!("queue {queue}"), body.into_bytes()));
        let log = [("log".to_owned(), self.log().into_bytes())];
        let places = tables.chain(queues).chain(log);
        AtRest(places.map(|(name, exact)| Place { name, bytes: exact.to_ascii_lowercase(), exact }).collect())
    }

    /// Queue and body of every message, also of those that wait or are being worked on: the endpoint hands out the visible ones alone.
    pub(crate) fn messages(&self) -> Vec<(String, String)> {
        let path = self.stack.lock().unwrap().data_dir().join("services.sqlite");
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let mut query = connection.prepare("SELECT queue, body FROM messages").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

impl AtRest {
    /// Where the text is, as it is in any case of its letters, in base64 or in hex; with an excerpt.
    pub(crate) fn places_of(&self, text: &str) -> Vec<String> {
        let folded = [text.to_ascii_lowercase(), hex::encode(text)];
        let encoded: Vec<String> = (0..BASE64_PHASES).map(|phase| base64_core(text, phase)).collect();
        let holds =
            |bytes: &[u8], needle: &str| bytes.windows(needle.len()).position(|window| window == needle.as_bytes());
        let mut places = Vec::new();
        for place in &self.0 {
            let found = folded.iter().find_map(|needle| holds(&place.bytes, needle));
            if let Some(at) = found.or_else(|| encoded.iter().find_map(|needle| holds(&place.exact, needle))) {
                let excerpt = &place.exact[at.saturating_sub(100)..(at + 100).min(place.exact.len())];
                places.push(format!("{}: ..{}..", place.name, String::from_utf8_lossy(excerpt)));
            }
        }
        places
    }

    /// None of these is anywhere.
    #[track_caller]
    pub(crate) fn holds_none_of<'a>(&self, texts: impl IntoIterator<Item = &'a str>) {
        self.holds_only_in(texts, &[]);
    }

    /// Each of these is in some place whose name begins like one of these, and nowhere else.
    #[track_caller]
    pub(crate) fn holds_only_in<'a>(&self, texts: impl IntoIterator<Item = &'a str>, names: &[&str]) {
        for text in texts {
            assert!(text.len() >= 6, "{text} is too short to be looked for");
            let (kept, strays): (Vec<String>, Vec<String>) =
                self.places_of(text).into_iter().partition(|place| names.iter().any(|name| place.starts_with(name)));
            assert!(strays.is_empty(), "{text} is in {strays:#?}");
            assert!(names.is_empty() || !kept.is_empty(), "{text} is looked for in a way that finds it");
        }
    }
}

/// The characters of a text's base64 form that do not depend on what is before and after it, where so many bytes are before it.
fn base64_core(text: &str, phase: usize) -> String {
    let padded = [vec![0; phase], text.as_bytes().to_vec()].concat();
    let encoded = STANDARD_NO_PAD.encode(&padded);
    let whole = encoded.len() - usize::from(padded.len() % 3 != 0);
    let first = if phase == 0 { 0 } else { phase + 1 };
    encoded[first..whole].to_owned()
}
