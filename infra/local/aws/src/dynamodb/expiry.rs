//! The earliest expiry of an item, while no write follows.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cache of the write count and the earliest expiry at that count. `i64::MAX` means that no item expires.
#[derive(Default)]
pub(super) struct ExpiryCache(Mutex<Option<(u64, i64)>>);

impl ExpiryCache {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<(u64, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, known: (u64, i64)) {
        *self.lock() = Some(known);
    }
}
