//! Progress of what takes long, on stderr.

use store::operating::Progress;

use crate::output::say;

/// Pages of a scan between two lines.
const ITEMS_PER_LINE: u64 = 100_000;

/// Says which tables are read whole.
pub(crate) struct Said;

impl Progress for Said {
    fn read(&self, table: &str, items: u64, is_all: bool) {
        if is_all {
            say(&format!("read all {items} items of {table}"));
        } else if items % ITEMS_PER_LINE < 1_000 {
            say(&format!("reading all of {table}: {items} items so far"));
        }
    }
}
