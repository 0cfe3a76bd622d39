//! All data at rest: what an attacker with access to all tables, all queues and the log would find.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rusqlite::{Connection, OpenFlags};

use super::{World, bytes_of};

/// A preceding text shifts a base64 encoding by one of this many phases.
const BASE64_PHASES: usize = 3;

/// A snapshot of all data at rest.
pub(crate) struct AtRest(Vec<Location>);

struct Location {
    /// `table clients`, `queue deliveries`, `log`.
    name: String,
    /// Lower case in ASCII, for a search that ignores case.
    bytes: Vec<u8>,
    exact: Vec<u8>,
}

impl World {
    /// Takes a snapshot of all data at rest.
    pub(crate) async fn at_rest(&self) -> AtRest {
        let tables = self.tables().await.into_iter().map(|(table, item)| (format!("table {table}"), bytes_of(&item)));
        let queues = self.messages().into_iter().map(|(queue, body)| (format!("queue {queue}"), body.into_bytes()));
        let log = [("log".to_owned(), self.log().into_bytes())];
        let locations = tables.chain(queues).chain(log);
        AtRest(locations.map(|(name, exact)| Location { name, bytes: exact.to_ascii_lowercase(), exact }).collect())
    }

    /// Queue and body of every message. Reads the store directly, since the SQS endpoint hides delayed and received
    /// messages.
    pub(crate) fn messages(&self) -> Vec<(String, String)> {
        let path = self.stack.lock().unwrap().data_dir().join("services.sqlite");
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let mut query = connection.prepare("SELECT queue, body FROM messages").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

impl AtRest {
    /// Locations of a text in any case, in base64 or in hex, each with an excerpt.
    pub(crate) fn locations_of(&self, text: &str) -> Vec<String> {
        let folded = [text.to_ascii_lowercase(), hex::encode(text)];
        let encoded: Vec<String> = (0..BASE64_PHASES).map(|phase| base64_core(text, phase)).collect();
        let holds =
            |bytes: &[u8], needle: &str| bytes.windows(needle.len()).position(|window| window == needle.as_bytes());
        let mut locations = Vec::new();
        for location in &self.0 {
            let found = folded.iter().find_map(|needle| holds(&location.bytes, needle));
            if let Some(at) = found.or_else(|| encoded.iter().find_map(|needle| holds(&location.exact, needle))) {
                let excerpt = &location.exact[at.saturating_sub(100)..(at + 100).min(location.exact.len())];
                locations.push(format!("{}: ..{}..", location.name, String::from_utf8_lossy(excerpt)));
            }
        }
        locations
    }

    /// Asserts that none of the texts is at rest.
    #[track_caller]
    pub(crate) fn assert_absent<'a>(&self, texts: impl IntoIterator<Item = &'a str>) {
        self.assert_only_in(texts, &[]);
    }

    /// Asserts that each text is in at least one of the named locations and in no other. `names` are prefixes.
    #[track_caller]
    pub(crate) fn assert_only_in<'a>(&self, texts: impl IntoIterator<Item = &'a str>, names: &[&str]) {
        for text in texts {
            assert!(text.len() >= 6, "{text} is too short to be looked for");
            let (kept, strays): (Vec<String>, Vec<String>) = self
                .locations_of(text)
                .into_iter()
                .partition(|location| names.iter().any(|name| location.starts_with(name)));
            assert!(strays.is_empty(), "{text} is in {strays:#?}");
            assert!(names.is_empty() || !kept.is_empty(), "{text} is looked for in a way that finds it");
        }
    }
}

/// The part of a text's base64 encoding that does not depend on its neighbours, for `phase` bytes before the text.
fn base64_core(text: &str, phase: usize) -> String {
    let padded = [vec![0; phase], text.as_bytes().to_vec()].concat();
    let encoded = STANDARD_NO_PAD.encode(&padded);
    let whole = encoded.len() - usize::from(padded.len() % 3 != 0);
    let first = if phase == 0 { 0 } else { phase + 1 };
    encoded[first..whole].to_owned()
}
