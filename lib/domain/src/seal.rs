//! Encryption of values in the tables: recorded answers, passwords that wait for their mail, webhook secrets, contact
//! details.
//!
//! XChaCha20-Poly1305 with a random nonce of 192 bits. It is preferred to AES-GCM because random nonces are safe
//! without a bound on messages. Bodies are small, so the missing hardware support does not show. The sealed form is
//! `version (1 byte) | key id (1 byte) | nonce (24 bytes) | ciphertext and tag`. The context (which record, which
//! field) is authenticated, so a sealed value cannot be moved to another record.

use std::collections::BTreeMap;
use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::key_ring::{InvalidSecret, KeyRing};

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;
const HEADER_BYTES: usize = 2 + NONCE_BYTES;

/// Bytes of randomness that [`Sealer::seal`] takes.
pub const SEAL_RANDOM_BYTES: usize = NONCE_BYTES;

/// The service's keys: the current key seals, all keys open.
pub struct Sealer {
    current: u8,
    ciphers: BTreeMap<u8, XChaCha20Poly1305>,
}

/// The bytes were not sealed by this service for this context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sealed value cannot be opened")]
pub struct CannotOpen;

impl Sealer {
    /// Parses keys from the secret's text. The cipher's key is the SHA-256 of the text under its id.
    pub fn from_secret(json: &str) -> Result<Self, InvalidSecret> {
        let ring = KeyRing::parse(json)?;
        let cipher = |text: &str| XChaCha20Poly1305::new(&Sha256::digest(text.as_bytes()));
        Ok(Self { current: ring.current(), ciphers: ring.texts().map(|(id, text)| (id, cipher(text))).collect() })
    }

    /// Seals `plain` for `context`.
    pub fn seal(&self, context: &str, plain: &[u8], random: [u8; SEAL_RANDOM_BYTES]) -> Vec<u8> {
        let cipher = self.ciphers.get(&self.current).expect("the current key is one of the keys");
        let nonce = XNonce::from(random);
        let payload = Payload { msg: plain, aad: context.as_bytes() };
        let sealed = cipher.encrypt(&nonce, payload).expect("memory holds the ciphertext");
        let mut out = Vec::with_capacity(HEADER_BYTES + sealed.len());
        out.extend_from_slice(&[VERSION, self.current]);
        out.extend_from_slice(&random);
        out.extend_from_slice(&sealed);
        out
    }

    /// Opens what [`Sealer::seal`] sealed for the same context.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, CannotOpen> {
        let (header, ciphertext) = sealed.split_at_checked(HEADER_BYTES).ok_or(CannotOpen)?;
        if header[0] != VERSION {
            return Err(CannotOpen);
        }
        let cipher = self.ciphers.get(&header[1]).ok_or(CannotOpen)?;
        let nonce: [u8; NONCE_BYTES] = header[2..].try_into().map_err(|_| CannotOpen)?;
        let payload = Payload { msg: ciphertext, aad: context.as_bytes() };
        cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| CannotOpen)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer(current: {})", self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(current: u8) -> String {
        format!(r#"{{"current": "{current}", "1": "{}", "2": "{}"}}"#, "a".repeat(64), "b".repeat(64))
    }

    #[test]
    fn a_sealed_value_opens_for_its_context_only_and_after_a_key_rotation() {
        let old = Sealer::from_secret(&secret(1)).unwrap();
        let new = Sealer::from_secret(&secret(2)).unwrap();
        let sealed = old.seal("claim/1", b"hunter2", [9; SEAL_RANDOM_BYTES]);
        assert!(!sealed.windows(7).any(|window| window == b"hunter2"));
        assert_eq!(new.open("claim/1", &sealed).unwrap(), b"hunter2");
        assert_eq!(old.open("claim/2", &sealed), Err(CannotOpen));
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(old.open("claim/1", &changed), Err(CannotOpen));
        assert_eq!(old.open("claim/1", &sealed[..10]), Err(CannotOpen));
    }

    #[test]
    fn the_sealed_form_stays_readable() {
        // Sealed by another implementation: PyCryptodome 3, `ChaCha20_Poly1305` with a nonce of 24 bytes.
        let stored = concat!(
            "0101",
            "090909090909090909090909090909090909090909090909",
            "53e7afd18555ec",
            "c7c75546b1fa73f1054f652f5752e0dd"
        );
        let sealer = Sealer::from_secret(&secret(1)).unwrap();
        assert_eq!(hex::encode(sealer.seal("claim/1", b"hunter2", [9; SEAL_RANDOM_BYTES])), stored);
        assert_eq!(sealer.open("claim/1", &hex::decode(stored).unwrap()).unwrap(), b"hunter2");
    }
}
