//! Progress of what takes long, on stderr.

use std::sync::atomic::{AtomicU64, Ordering};

use store::operating::Progress;

use crate::output::say;

/// Items of a scan between two lines.
const SAID_EVERY: u64 = 100_000;

/// Says which tables are read whole. It has the number of items that it said last.
#[derive(Default)]
pub(crate) struct Said(AtomicU64);

impl Progress for Said {
    fn read(&self, table: &str, items: u64, is_all: bool) {
        if is_all {
            self.0.store(0, Ordering::Relaxed);
            say(&format!("read all {items} items of {table}"));
        } else if items / SAID_EVERY > self.0.load(Ordering::Relaxed) / SAID_EVERY {
            self.0.store(items, Ordering::Relaxed);
            say(&format!("reading all of {table}: {items} items so far"));
        }
    }
}
