//! Keys that this environment has admitted. Reads run beside the check of these keys alone, so that a forged key costs
//! its own check and nothing else. The set holds hashes, lives in memory and ends with the environment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most keys that are remembered: half a megabyte of hashes. A full set starts again, and each key then waits for one
/// check.
const MAX_KNOWN_KEYS: usize = 10_000;

/// The SHA-256 of a key.
type Hash = [u8; 32];

/// Hashes of keys, shared by all clones.
#[derive(Clone, Default)]
pub(super) struct KnownKeys(Arc<Mutex<HashSet<Hash>>>);

impl KnownKeys {
    /// Returns true for a key whose latest request was admitted.
    pub(super) fn contains(&self, hash: &Hash) -> bool {
        self.set().contains(hash)
    }

    /// Remembers a key that was admitted.
    pub(super) fn insert(&self, hash: Hash) {
        let mut set = self.set();
        if set.len() >= MAX_KNOWN_KEYS && !set.contains(&hash) {
            set.clear();
        }
        set.insert(hash);
    }

    /// Forgets a key that was refused, for instance because it was revoked.
    pub(super) fn remove(&self, hash: &Hash) {
        self.set().remove(hash);
    }

    fn set(&self) -> MutexGuard<'_, HashSet<Hash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> Hash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[test]
    fn a_key_is_known_from_its_admission_to_its_refusal() {
        let known = KnownKeys::default();
        assert!(!known.contains(&hash(1)));
        known.insert(hash(1));
        assert!(known.clone().contains(&hash(1)) && !known.contains(&hash(2)));
        known.remove(&hash(1));
        assert!(!known.contains(&hash(1)));
    }

    #[test]
    fn the_number_of_known_keys_is_bounded_and_the_latest_is_known() {
        let known = KnownKeys::default();
        for number in 0..=MAX_KNOWN_KEYS {
            known.insert(hash(number));
            assert!(known.contains(&hash(number)) && known.set().len() <= MAX_KNOWN_KEYS);
        }
        known.insert(hash(MAX_KNOWN_KEYS));
        assert!(known.contains(&hash(MAX_KNOWN_KEYS)));
    }
}
